//! Which web pages may knock: `Host` and `Origin` of a request against what the listener expects.
//!
//! A page in the user's browser can reach loopback, under its own name (DNS rebinding) or from its own origin. Both
//! are refused here, for every HTTP listener, before anything else is looked at.

/// What a listener accepts beside loopback.
#[derive(Clone, Debug, Default)]
pub struct Doorway {
    /// Names without port, lower case.
    pub hosts: Vec<String>,
    /// Whole origins, such as `https://inspector.example`.
    pub origins: Vec<String>,
}

/// Why a request is turned away.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TurnedAway {
    #[error("the `Host` header is missing or not one of this crib's names; add it to `listen.allowed_hosts`")]
    Host,
    #[error("requests from this `Origin` are not allowed; add it to `listen.allowed_origins`")]
    Origin,
}

impl Doorway {
    pub fn admits(&self, host: Option<&str>, origin: Option<&str>) -> Result<(), TurnedAway> {
        let known = |name: &str| is_loopback(name) || self.hosts.iter().any(|h| h.eq_ignore_ascii_case(name));
        if !host.is_some_and(|host| known(without_port(host))) {
            return Err(TurnedAway::Host);
        }
        match origin {
            None => Ok(()),
            Some(origin) if self.shares_with(origin) => Ok(()),
            Some(origin) => {
                match origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")) {
                    Some(name) if known(without_port(name)) => Ok(()),
                    _ => Err(TurnedAway::Origin),
                }
            }
        }
    }
}

impl Doorway {
    /// Whether pages of this origin may read answers. Only those the operator named: a request from loopback is let in,
    /// but a page that happens to be served there gets nothing to read.
    pub fn shares_with(&self, origin: &str) -> bool {
        self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }
}

/// Why a header cannot be read as one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    #[error("was sent twice")]
    Repeated,
    #[error("is not plain text")]
    NotText,
}

/// The one value of a header, given all of them, each as text where it is text. Two readers of two values might each
/// believe another one.
pub fn single<'a>(mut values: impl Iterator<Item = Option<&'a str>>) -> Result<Option<&'a str>, Unclear> {
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(Unclear::Repeated),
        (Some(value), None) => value.map(Some).ok_or(Unclear::NotText),
    }
}

/// The token in the text of an `Authorization` header; none where it is of another scheme.
pub fn bearer(text: &str) -> Option<&str> {
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<::core::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// `[::1]:80` → `::1`, `host:80` → `host`. What stands after the colon is a port or nothing here is a name.
fn without_port(authority: &str) -> &str {
    let (name, rest) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => (address, rest),
        None => authority.find(':').map_or((authority, ""), |at| authority.split_at(at)),
    };
    let port = rest.strip_prefix(':').unwrap_or(rest);
    if port.bytes().all(|byte| byte.is_ascii_digit()) { name } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_one_thing_or_is_unclear() {
        assert_eq!(single([].into_iter()), Ok(None));
        assert_eq!(single([Some("a")].into_iter()), Ok(Some("a")));
        assert_eq!(single([None].into_iter()), Err(Unclear::NotText));
        assert_eq!(single([Some("a"), Some("a")].into_iter()), Err(Unclear::Repeated));
        assert_eq!((bearer("bEARER  t "), bearer("Basic t"), bearer("t")), (Some("t"), None, None));
    }

    #[test]
    fn a_page_from_elsewhere_is_turned_away() {
        let door = Doorway { hosts: vec!["crib.example".into()], origins: vec!["https://ui.example".into()] };
        for (host, origin) in [
            ("127.0.0.1:8081", None),
            ("localhost", None),
            ("[::1]:8081", Some("http://[::1]:8081")),
            ("Crib.Example:443", Some("https://crib.example")),
            ("127.0.0.1:1", Some("https://ui.example")),
            ("127.0.0.1:1", Some("http://localhost:6274")),
        ] {
            assert_eq!(door.admits(Some(host), origin), Ok(()), "{host} {origin:?}");
        }
        assert_eq!(door.admits(Some("evil.example"), None), Err(TurnedAway::Host));
        assert_eq!(door.admits(None, None), Err(TurnedAway::Host));
        for origin in [
            "http://evil.example",
            "null",
            "file://",
            "https://ui.example.evil.example",
            "http://localhost:x@evil.example",
        ] {
            assert_eq!(door.admits(Some("127.0.0.1"), Some(origin)), Err(TurnedAway::Origin), "{origin}");
        }
    }
}
