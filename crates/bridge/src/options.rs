//! What the bridge is told before it starts: where the crib is, how to be recognised, how long to wait.
//!
//! No command line here (that is `args.rs`), so that `toolcrib bridge` can fill it from its own.

use std::time::Duration;

use http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

/// Everything `run` needs to know. Start from [`Options::new`] and change what differs.
#[derive(Debug, Clone)]
pub struct Options {
    /// The MCP endpoint, path included.
    pub endpoint: Uri,
    /// Headers sent with every message. Values given as a token do not print.
    pub headers: HeaderMap,
    /// How long a message waits for a crib that refuses connections.
    pub wait: Duration,
    /// How long one request may take; `None` is as long as it takes.
    pub timeout: Option<Duration>,
    /// How long requests in flight may go on after the input has ended.
    pub grace: Duration,
    /// Requests in flight at most; over it the input is not read.
    pub in_flight: usize,
    /// The longest line read or written, in bytes.
    pub line_limit: usize,
}

/// Why the options cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum OptionsError {
    #[error(
        "`{0}` is not an http or https URL; give the address of the crib, such as `http://tool-gateway:8081`"
    )]
    NotUrl(String),
    #[error(
        "the URL carries a user name or password; pass a token with `--token` or `TOOLCRIB_TOKEN` instead"
    )]
    Credentials,
    #[error("`{0}` is not a header; write `Name: value`")]
    NotHeader(String),
    #[error("the header `{0}` is written by the bridge itself; leave it out")]
    OwnHeader(String),
    #[error("the token has characters a header cannot carry; check for line breaks in it")]
    NotToken,
}

impl Options {
    /// Options for the crib at `url`: its base address, or its endpoint when the path already ends in `/mcp`
    /// (or `/mcp/gateway`). A query is kept.
    pub fn new(url: &str) -> Result<Self, OptionsError> {
        Ok(Self {
            endpoint: endpoint(url)?,
            headers: HeaderMap::new(),
            wait: Duration::from_secs(60),
            timeout: None,
            grace: Duration::from_secs(10),
            in_flight: 128,
            line_limit: 64 * 1024 * 1024,
        })
    }

    /// Adds `Authorization: Bearer <token>`.
    pub fn with_token(mut self, token: &str) -> Result<Self, OptionsError> {
        let mut value =
            HeaderValue::from_str(&format!("Bearer {}", token.trim())).map_err(|_| OptionsError::NotToken)?;
        value.set_sensitive(true);
        self.headers.insert(AUTHORIZATION, value);
        Ok(self)
    }

    /// Adds a header written as `Name: value`. Its value may be a secret, so it does not print.
    pub fn with_header(mut self, header: &str) -> Result<Self, OptionsError> {
        let wrong = || OptionsError::NotHeader(header.split(':').next().unwrap_or_default().to_owned());
        let (name, value) = header.split_once(':').ok_or_else(wrong)?;
        let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value.trim()).map_err(|_| wrong())?;
        if [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING].contains(&name) {
            return Err(OptionsError::OwnHeader(name.to_string()));
        }
        value.set_sensitive(true);
        self.headers.append(name, value);
        Ok(self)
    }
}

fn endpoint(url: &str) -> Result<Uri, OptionsError> {
    let wrong = || OptionsError::NotUrl(url.to_owned());
    let uri: Uri = url.parse().map_err(|_| wrong())?;
    let scheme = uri.scheme_str().filter(|s| matches!(*s, "http" | "https")).ok_or_else(wrong)?;
    let authority = uri.authority().filter(|a| !a.host().is_empty()).ok_or_else(wrong)?;
    if authority.as_str().contains('@') {
        return Err(OptionsError::Credentials);
    }
    let path = uri.path().trim_end_matches('/');
    let whole = path.ends_with("/mcp") || path.ends_with("/mcp/gateway");
    let tail = if whole { "" } else { "/mcp" };
    let query = uri.query().map(|q| format!("?{q}")).unwrap_or_default();
    format!("{scheme}://{authority}{path}{tail}{query}").parse().map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_is_found_from_the_address() {
        for (given, meant) in [
            ("http://tool-gateway:8081", "http://tool-gateway:8081/mcp"),
            ("http://tool-gateway:8081/", "http://tool-gateway:8081/mcp"),
            ("https://host/crib", "https://host/crib/mcp"),
            ("https://host/crib/mcp", "https://host/crib/mcp"),
            ("http://host/mcp/", "http://host/mcp"),
            ("http://host/mcp/gateway", "http://host/mcp/gateway"),
            ("http://[::1]:8081/?names=colon", "http://[::1]:8081/mcp?names=colon"),
        ] {
            assert_eq!(Options::new(given).unwrap().endpoint.to_string(), meant);
        }
    }

    #[test]
    fn what_is_not_an_address_is_refused() {
        for given in ["", "host:8081", "ftp://host", "/mcp", "http://"] {
            assert!(matches!(Options::new(given), Err(OptionsError::NotUrl(_))), "{given}");
        }
        assert_eq!(Options::new("http://user:pw@host").unwrap_err(), OptionsError::Credentials);
    }

    #[test]
    fn secrets_do_not_print() {
        let options = Options::new("http://host").unwrap();
        let options = options.with_token("s3cret").unwrap().with_header("X-Key: hidden").unwrap();
        let printed = format!("{options:?}");
        assert!(!printed.contains("s3cret") && !printed.contains("hidden"), "{printed}");
        assert_eq!(options.headers.get(AUTHORIZATION).unwrap(), "Bearer s3cret");
    }

    #[test]
    fn headers_that_frame_the_message_are_refused() {
        let options = Options::new("http://host").unwrap();
        assert!(matches!(options.clone().with_header("Content-Length: 3"), Err(OptionsError::OwnHeader(_))));
        assert!(matches!(options.with_header("no colon"), Err(OptionsError::NotHeader(_))));
    }
}
