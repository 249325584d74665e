//! HTTP as the dial side uses it: one client per source, its own headers, no redirects to strangers, bounded bodies.
//!
//! Knows nothing of sessions and eras; `http` and `sse` do.

use std::{error::Error as _, time::Duration};

use futures_util::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use reqwest::{Client, RequestBuilder, Response, Url, redirect};
use toolcrib_core::error::{Failure, Kind};

use crate::dial::link::{LARGEST_MESSAGE, Trouble};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MOST_REDIRECTS: usize = 3;

/// A place on the web and what is sent along to it.
#[derive(Clone)]
pub(crate) struct Place {
    client: Client,
    pub url: Url,
    headers: HeaderMap,
}

impl Place {
    pub fn new(url: &str, headers: &[(String, String)]) -> Result<Self, Failure> {
        // Whoever was first has chosen the provider for the whole process; that is as good as ours.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let wrong = |told: String| Failure::new(Kind::Unavailable, told);
        let url = Url::parse(url).map_err(|error| wrong(format!("its URL cannot be read: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong(format!("its URL must begin with http or https, not `{}`", url.scheme())));
        }
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .redirect(redirect::Policy::custom(only_at_home))
            .user_agent(concat!("toolcrib/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| wrong(format!("no HTTP client can be made: {}", reason(error))))?;
        let headers = headers.iter().map(header).collect::<Result<HeaderMap, Failure>>()?;
        Ok(Self { client, url, headers })
    }

    /// The same headers for another URL of the same origin.
    pub fn at(&self, url: Url) -> Option<Self> {
        (url.origin() == self.url.origin()).then(|| Self { url, ..self.clone() })
    }

    pub fn ask(&self, method: http::Method) -> RequestBuilder {
        self.client.request(method, self.url.clone()).headers(self.headers.clone())
    }

    /// For people: without user, password, query.
    pub fn shown(&self) -> String {
        shown(self.url.as_str())
    }

    pub async fn send(&self, request: RequestBuilder) -> Result<Response, Trouble> {
        let response = request.send().await.map_err(|error| self.unreachable(error))?;
        if response.status().is_redirection() {
            let told = format!(
                "`{}` redirects elsewhere ({}), which is not followed; write the final URL in the config",
                self.shown(),
                response.status()
            );
            return Err(Trouble::failed(Kind::Unavailable, told));
        }
        Ok(response)
    }

    fn unreachable(&self, error: reqwest::Error) -> Trouble {
        let connecting = error.is_connect();
        let failure = Failure::new(
            Kind::Unavailable,
            format!("`{}` cannot be reached: {}", self.shown(), reason(error)),
        );
        if connecting { Trouble::Gone(failure) } else { Trouble::Failed(failure) }
    }

    /// What a status without a message of the protocol means.
    pub fn refused(&self, status: StatusCode) -> Trouble {
        let place = self.shown();
        let (kind, told) = match status.as_u16() {
            401 | 403 => (
                Kind::SourceUnauthorized,
                format!("`{place}` wants credentials ({status}); give the source an `Authorization` header"),
            ),
            408 | 425 | 429 | 500..=599 => (Kind::Unavailable, format!("`{place}` answered {status}")),
            _ => (Kind::BadSource, format!("`{place}` answered {status} and nothing of MCP")),
        };
        Trouble::Status(status, Failure::new(kind, told))
    }
}

fn header((name, value): &(String, String)) -> Result<(HeaderName, HeaderValue), Failure> {
    let wrong =
        || Failure::new(Kind::Unavailable, format!("the header `{name}` cannot be sent as it is written"));
    let parsed = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
    let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| wrong())?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

/// Only within the same origin, and only redirects that keep method and body.
fn only_at_home(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let kept = matches!(attempt.status().as_u16(), 307 | 308);
    let home = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if kept && home && attempt.previous().len() <= MOST_REDIRECTS { attempt.follow() } else { attempt.stop() }
}

pub(crate) fn shown(url: &str) -> String {
    match Url::parse(url) {
        Ok(mut url) => {
            let _ = url.set_username("");
            let _ = url.set_password(None);
            url.set_query(None);
            url.set_fragment(None);
            url.to_string()
        }
        Err(_) => "(not a URL)".to_owned(),
    }
}

/// The innermost reason; the outer ones repeat the URL and say little.
pub(crate) fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        told = inner.to_string();
        cause = inner.source();
    }
    told
}

pub(crate) fn too_large() -> Failure {
    Failure::new(
        Kind::TooLarge,
        format!("too large: the source sent a message over the limit of {LARGEST_MESSAGE} bytes"),
    )
}

/// The whole body, if it is not too large.
pub(crate) async fn body(response: Response) -> Result<Vec<u8>, Trouble> {
    let mut stream = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|error| {
            Trouble::failed(Kind::Unavailable, format!("the answer broke off: {}", reason(error)))
        })?;
        if body.len() + chunk.len() > LARGEST_MESSAGE {
            return Err(Trouble::Failed(too_large()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The media type without its parameters.
pub(crate) fn media_type(response: &Response) -> String {
    let value = response.headers().get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.and_then(|value| value.split(';').next()).unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_url_are_not_shown() {
        assert_eq!(shown("https://me:pw@h.example/mcp?key=s#f"), "https://h.example/mcp");
    }
}
