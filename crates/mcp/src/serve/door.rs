//! The door of `/mcp`: which requests are looked at at all, and what a browser is told about pages from elsewhere.
//!
//! Which hosts and origins are welcome is core's to say (`doorway`). No credentials are ever shared with a page: one that
//! wants in brings a token.

use axum::{body::Body, response::Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use toolcrib_core::doorway::Doorway;

use crate::{
    codes::{Fault, HEADER_MISMATCH},
    param_headers,
    serve::http::{fault, refusal, text},
};

/// What a page may send; and further `Mcp-Param-*`, as the tool has them.
const HEADERS: &str = "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, \
                       mcp-protocol-version, mcp-session-id, traceparent, tracestate";
/// What a page may read of an answer.
const EXPOSED: &str = "mcp-session-id, www-authenticate";
const METHODS: &str = "GET, POST, DELETE, OPTIONS";
/// A browser need not ask again for ten minutes.
const MAX_AGE: &str = "600";

/// Turns away what must not come in; gives the origin of a page that may read the answer.
pub fn admit(doorway: &Doorway, headers: &HeaderMap) -> Result<Option<HeaderValue>, Response> {
    plain(headers)?;
    let origin = text(headers, header::ORIGIN.as_str());
    doorway
        .admits(text(headers, header::HOST.as_str()), origin)
        .map_err(|away| refusal(StatusCode::FORBIDDEN, &away.to_string()))?;
    let shared = origin.is_some_and(|origin| doorway.shares_with(origin));
    Ok(headers.get(header::ORIGIN).filter(|_| shared).cloned())
}

/// The headers that decide who is let in and where a request goes are there once and in plain text, or not at all:
/// whoever stands in front of the crib may have read the other of two.
fn plain(headers: &HeaderMap) -> Result<(), Response> {
    for name in headers.keys() {
        let mcp = name.as_str().starts_with("mcp-");
        if !mcp && !matches!(name.as_str(), "host" | "origin" | "authorization" | "last-event-id") {
            continue;
        }
        let mut values = headers.get_all(name).iter();
        let readable = values.next().is_some_and(|value| value.to_str().is_ok());
        if readable && values.next().is_none() {
            continue;
        }
        let told = format!("`{name}` is repeated or not plain text");
        return Err(match mcp {
            true => fault(None, &Fault::new(HEADER_MISMATCH, &told)),
            false => refusal(StatusCode::BAD_REQUEST, &told),
        });
    }
    Ok(())
}

/// The answer to a browser that asks whether a page may send what it wants to send.
pub fn preflight(headers: &HeaderMap) -> Response {
    let mut allowed = HEADERS.to_owned();
    let asked = text(headers, header::ACCESS_CONTROL_REQUEST_HEADERS.as_str()).unwrap_or_default();
    for name in asked.split(',').filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok()) {
        if name.as_str().starts_with(param_headers::PREFIX) {
            allowed.push_str(", ");
            allowed.push_str(name.as_str());
        }
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let told = response.headers_mut();
    told.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    told.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
    if let Ok(allowed) = HeaderValue::from_str(&allowed) {
        told.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    response
}

/// Lets the page of an admitted origin read the answer.
pub fn share(response: &mut Response, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_plain_text_is_turned_away() {
        let status = |name: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("localhost"));
            headers.insert(name, HeaderValue::from_bytes(b"\xe9").unwrap());
            admit(&Doorway::default(), &headers).map_err(|refusal| refusal.status()).err()
        };
        for name in ["host", "origin", "authorization", "mcp-session-id", "mcp-param-x", "last-event-id"] {
            assert_eq!(status(name), Some(StatusCode::BAD_REQUEST), "{name}");
        }
        assert_eq!(status("x-vendor"), None);
    }
}
