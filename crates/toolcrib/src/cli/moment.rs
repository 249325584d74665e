//! Moments as people write and read them: `15m` ago, `2026-11-15T10:00`. Everything is UTC; no time zones are guessed.

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Milliseconds since 1970 for `15m`, `2h30m`, `2026-11-15` or `2026-11-15T10:00:30Z`.
pub fn parse(text: &str, now: u64) -> Result<u64, String> {
    let text = text.trim();
    if let Some(ago) = duration(text) {
        return Ok(now.saturating_sub(ago));
    }
    date(text)
        .ok_or_else(|| "write it like `15m`, `2h30m`, `7d`, `2026-11-15` or `2026-11-15T10:00` (UTC)".into())
}

fn duration(text: &str) -> Option<u64> {
    let mut total: u64 = 0;
    let mut number = String::new();
    for letter in text.chars() {
        if letter.is_ascii_digit() {
            number.push(letter);
            continue;
        }
        let unit = match letter {
            's' => SECOND,
            'm' => MINUTE,
            'h' => HOUR,
            'd' => DAY,
            'w' => 7 * DAY,
            _ => return None,
        };
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(unit)?)?;
        number.clear();
    }
    (number.is_empty() && !text.is_empty()).then_some(total)
}

fn date(text: &str) -> Option<u64> {
    let (day, time) = match text.split_once(['T', ' ']) {
        Some((day, time)) => (day, time.trim_end_matches('Z')),
        None => (text, "00:00"),
    };
    let mut parts = day.split('-').map(str::parse::<i64>);
    let (Some(Ok(year)), Some(Ok(month)), Some(Ok(day)), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let mut parts = time.split(':').map(str::parse::<f64>);
    let (Some(Ok(hour)), Some(Ok(minute)), second, None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let second = second.unwrap_or(Ok(0.0)).ok()?;
    let fits = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0.0..24.0).contains(&hour)
        && (0.0..60.0).contains(&minute)
        && (0.0..61.0).contains(&second);
    let days = u64::try_from(days(year, month, day)).ok().filter(|_| fits)?;
    let within = (hour * HOUR as f64 + minute * MINUTE as f64 + second * SECOND as f64) as u64;
    Some(days * DAY + within)
}

/// Days from 1970 to a date, counting years from March so that a leap day is the last of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// `2026-11-15T10:15:43.120Z`.
pub fn exact(at: u64) -> String {
    let shifted = at / DAY + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (at % DAY / HOUR, at % HOUR / MINUTE, at % MINUTE / SECOND);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", at % SECOND)
}

/// `3m ago`.
pub fn relative(at: u64, now: u64) -> String {
    let ago = now.saturating_sub(at);
    match ago {
        0..SECOND => "now".into(),
        SECOND..MINUTE => format!("{}s ago", ago / SECOND),
        MINUTE..HOUR => format!("{}m ago", ago / MINUTE),
        HOUR..DAY => format!("{}h ago", ago / HOUR),
        _ => format!("{}d ago", ago / DAY),
    }
}

/// `850 µs`, `12 ms`, `3.4 s`.
pub fn span(microseconds: u64) -> String {
    match microseconds {
        0..1000 => format!("{microseconds} µs"),
        1000..1_000_000 => format!("{} ms", microseconds / 1000),
        _ => format!("{:.1} s", microseconds as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_both_ways() {
        let now = 1_794_737_743_120;
        assert_eq!(exact(now), "2026-11-15T10:15:43.120Z");
        assert_eq!(parse("2026-11-15T10:15:43.12Z", now), Ok(now));
        assert_eq!(parse("2000-02-29", now), Ok(951_782_400_000));
        assert_eq!(parse("1h30m", now), Ok(now - 90 * MINUTE));
        assert_eq!(parse("2w", now), Ok(now - 14 * DAY));
    }

    #[test]
    fn what_is_no_moment_is_told() {
        for text in ["", "soon", "5", "h", "5y", "2026-13-01", "2026-11-15T25:00", "2026-11", "1969-01-01"] {
            assert!(parse(text, 0).is_err(), "{text}");
        }
    }

    #[test]
    fn the_past_is_told_in_words() {
        assert_eq!(relative(0, 500), "now");
        assert_eq!(relative(0, 90 * SECOND), "1m ago");
        assert_eq!(relative(0, 49 * HOUR), "2d ago");
        assert_eq!(
            (span(850), span(12_400), span(3_400_000)),
            ("850 µs".into(), "12 ms".into(), "3.4 s".into())
        );
    }
}
