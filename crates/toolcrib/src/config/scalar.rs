//! Single values as people write them: `30s`, `4MiB`, `127.0.0.1:8081`, `https://…`.
//!
//! Each function takes the text and returns the value or what was expected. None of them knows where the text stood.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// What was expected instead, in words that finish the sentence "expected …".
pub(crate) type Expected = String;

pub(crate) fn flag(text: &str) -> Result<bool, Expected> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("`true` or `false`".into()),
    }
}

pub(crate) fn count(text: &str) -> Result<usize, Expected> {
    text.replace('_', "").parse().map_err(|_| "a whole number, such as `1000`".into())
}

/// `150ms`, `30s`, `5m`, `1h30m`, `2d`; a plain number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, Expected> {
    let expected = || Expected::from("a duration, such as `500ms`, `30s`, `5m` or `1h30m`");
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| expected());
    }
    let mut total = Duration::ZERO;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (number, after) = split_number(rest).ok_or_else(expected)?;
        let unit_end = after.find(|letter: char| letter.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(unit_end).ok_or_else(expected)?;
        let seconds = match unit.trim() {
            "ms" => 0.001,
            "s" | "sec" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return Err(expected()),
        };
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| expected())?;
        total = total.checked_add(part).ok_or_else(expected)?;
        rest = after;
    }
    if text.trim().is_empty() { Err(expected()) } else { Ok(total) }
}

/// As a person would write it: `30m`, `45s`, `150ms`.
pub(crate) fn show_duration<S: serde::Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let (seconds, millis) = (duration.as_secs(), duration.subsec_millis());
    serializer.collect_str(&match (seconds, millis) {
        (seconds, 0) if seconds > 0 && seconds % 3600 == 0 => format!("{}h", seconds / 3600),
        (seconds, 0) if seconds > 0 && seconds % 60 == 0 => format!("{}m", seconds / 60),
        (seconds, 0) => format!("{seconds}s"),
        _ => format!("{}ms", duration.as_millis()),
    })
}

/// `4MiB`, `512KB`, `1.5GiB`; a plain number is bytes.
pub(crate) fn size(text: &str) -> Result<u64, Expected> {
    let expected = || Expected::from("a size, such as `65536`, `512KiB` or `4MiB`");
    let (number, unit) = split_number(text.trim()).ok_or_else(expected)?;
    let factor: f64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "kb" => 1000.0,
        "m" | "mib" => 1024.0 * 1024.0,
        "mb" => 1_000_000.0,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "gb" => 1_000_000_000.0,
        _ => return Err(expected()),
    };
    let bytes = number * factor;
    // Up to 2^53 a float holds every whole number, so the cast below loses nothing.
    if bytes.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&bytes) {
        Ok(bytes as u64)
    } else {
        Err(expected())
    }
}

fn split_number(text: &str) -> Option<(f64, &str)> {
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != '_')
        .unwrap_or(text.len());
    let (number, rest) = text.split_at_checked(end)?;
    Some((number.replace('_', "").parse().ok()?, rest))
}

/// `127.0.0.1:8081`, `[::1]:8081`, `localhost:8081`, `:8081` or `8081`; a bare port is on 127.0.0.1.
pub(crate) fn address(text: &str) -> Result<SocketAddr, Expected> {
    let home = IpAddr::V4(Ipv4Addr::LOCALHOST);
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address);
    }
    let port = text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':')).unwrap_or(text);
    match port.parse::<u16>() {
        Ok(port) => Ok(SocketAddr::new(home, port)),
        Err(_) => Err("an address and port, such as `127.0.0.1:8081`, or a port alone".into()),
    }
}

/// An absolute `http` or `https` URL, given back as it was written.
pub(crate) fn web_url(text: &str) -> Result<String, Expected> {
    let expected = "a URL that starts with `http://` or `https://`";
    match url::Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(text.to_owned()),
        Ok(url) if matches!(url.scheme(), "ws" | "wss") => {
            Err(format!("{expected}; WebSocket is not spoken here"))
        }
        Ok(_) | Err(_) => Err(expected.into()),
    }
}

/// A pattern over tool names: `*` any text, `?` one letter, `[ab]`, `{one,two}`.
pub(crate) fn glob(text: &str) -> Result<String, Expected> {
    if text.is_empty() {
        return Err("a pattern over tool names, such as `git:*`".into());
    }
    match globset::Glob::new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!("a pattern such as `git:*` ({})", error.kind())),
    }
}

/// `[A-Za-z0-9._-]{1,64}`: what a source or a caller may be called. No colon, which parts source from tool.
pub(crate) fn id(text: &str) -> Result<&str, Expected> {
    let legal = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    if !text.is_empty() && text.len() <= 64 && text.chars().all(legal) {
        Ok(text)
    } else {
        Err("1 to 64 letters, digits, `.`, `_` or `-`".into())
    }
}

/// `info`, or a list of directives such as `info,toolcrib_mcp=debug`.
pub(crate) fn log_level(text: &str) -> Result<String, Expected> {
    const LEVELS: &[&str] = &["trace", "debug", "info", "warn", "error", "off"];
    let known = |part: &str| {
        let level = part.rsplit_once('=').map_or(part, |(_, level)| level).trim().to_ascii_lowercase();
        LEVELS.contains(&level.as_str())
    };
    if text.split(',').all(known) {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "{}, or a list such as `info,toolcrib_mcp=debug`",
            super::spelling::one_of(LEVELS.iter().copied())
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("150ms"), Ok(Duration::from_millis(150)));
        assert_eq!(duration("2.5"), Ok(Duration::from_millis(2500)));
        for bad in ["", "s", "30 parsecs", "-1", "1e400", "30s30", "∞", "NaN"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        assert_eq!(size("4MiB"), Ok(4 << 20));
        assert_eq!(size("512 KB"), Ok(512_000));
        assert_eq!(size("65_536"), Ok(65_536));
        assert_eq!(size("1.5k"), Ok(1536));
        for bad in ["", "MiB", "-1", "1.1", "4 apples", "99999999999999999999"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn addresses_default_to_this_machine() {
        assert_eq!(address("8081").unwrap().to_string(), "127.0.0.1:8081");
        assert_eq!(address("localhost:1").unwrap().to_string(), "127.0.0.1:1");
        assert_eq!(address("[::1]:8081").unwrap().to_string(), "[::1]:8081");
        assert_eq!(address("0.0.0.0:8081").unwrap().to_string(), "0.0.0.0:8081");
        for bad in ["", "example.com:80", "127.0.0.1", "99999"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn urls_globs_ids_and_levels_are_checked() {
        assert!(web_url("https://mcp.notion.com/mcp").is_ok());
        assert!(web_url("ftp://x/y").is_err() && web_url("/mcp").is_err());
        assert!(web_url("wss://x/y").unwrap_err().contains("WebSocket"));
        assert!(glob("*:delete_*").is_ok() && glob("[").is_err() && glob("").is_err());
        assert!(id("notion-local").is_ok() && id("a:b").is_err() && id("").is_err());
        assert!(id(&"x".repeat(65)).is_err());
        assert!(log_level("info,toolcrib_mcp=debug").is_ok() && log_level("loud").is_err());
    }
}
