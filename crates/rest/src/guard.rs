//! What a request must look like before anybody asks who sent it: `Host` and `Origin` of this place, a JSON body of
//! bearable size. This stops web pages of others from reaching a crib on loopback, by DNS rebinding or by a form.
//!
//! Browsers are told what pages of admitted origins may do. No credentials are shared with a page: one that wants in
//! brings a token.

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use toolcrib_core::doorway::{self, Doorway};

use crate::{Desk, refusal::Refusal};

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, OPTIONS");
/// What a page may send.
const HEADERS: HeaderValue =
    HeaderValue::from_static("accept, authorization, content-type, last-event-id, traceparent, tracestate");
/// What a page may read of an answer.
const EXPOSED: HeaderValue = HeaderValue::from_static("www-authenticate");
/// A browser need not ask again for ten minutes.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

pub async fn check(State(desk): State<Desk>, request: Request, next: Next) -> Response {
    if let Err(refusal) = judge(&desk.doorway, &request) {
        return refusal.into_response();
    }
    // Let in is one thing, to be read by a page another: only those the operator named.
    let shares = |value: &&HeaderValue| value.to_str().is_ok_and(|origin| desk.doorway.shares_with(origin));
    let origin = request.headers().get(header::ORIGIN).filter(shares).cloned();
    let mut response = match body_fits(request.method(), request.headers(), desk.largest_body) {
        Err(refusal) => refusal.into_response(),
        Ok(()) if request.method() == Method::OPTIONS => preflight(),
        Ok(()) => next.run(request).await,
    };
    if let Some(origin) = origin {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
    response
}

/// The answer to a browser that asks whether a page may send what it wants to send.
fn preflight() -> Response {
    let told = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS),
        (header::ACCESS_CONTROL_MAX_AGE, MAX_AGE),
    ];
    (StatusCode::NO_CONTENT, told).into_response()
}

/// By the same rule as every HTTP listener of the crib.
fn judge(doorway: &Doorway, request: &Request) -> Result<(), Refusal> {
    let headers = request.headers();
    // HTTP/2 has the host in the URI instead.
    let host = match single(headers, &header::HOST)? {
        Some(host) => Some(host),
        None => request.uri().authority().map(|authority| authority.as_str()),
    };
    let origin = single(headers, &header::ORIGIN)?;
    doorway.admits(host, origin).map_err(|away| Refusal::forbidden(away.to_string()))
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    doorway::single(headers.get_all(name).iter().map(|value| value.to_str().ok()))
        .map_err(|unclear| Refusal::bad_request(format!("the header `{name}` {unclear}")))
}

/// A body is JSON, whatever its length says; a form of a foreign page cannot claim that.
fn body_fits(method: &Method, headers: &HeaderMap, largest: usize) -> Result<(), Refusal> {
    let length = single(headers, &header::CONTENT_LENGTH)?.and_then(|text| text.parse::<u64>().ok());
    if length.is_some_and(|length| length > largest as u64) {
        return Err(Refusal::too_large(largest));
    }
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return Ok(());
    }
    let has_body = length.is_some_and(|length| length > 0) || headers.contains_key(header::TRANSFER_ENCODING);
    let json = |kind: &str| {
        kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
    };
    match single(headers, &header::CONTENT_TYPE)? {
        Some(kind) if json(kind) => Ok(()),
        None if !has_body => Ok(()),
        _ => Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            "the body must be JSON: send `Content-Type: application/json`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(host: &str, origin: Option<&str>) -> bool {
        let doorway =
            Doorway { hosts: vec!["crib.example".into()], origins: vec!["https://ui.example".into()] };
        let mut request = Request::builder().uri("/tools").header(header::HOST, host);
        if let Some(origin) = origin {
            request = request.header(header::ORIGIN, origin);
        }
        judge(&doorway, &request.body(axum::body::Body::empty()).unwrap()).is_ok()
    }

    #[test]
    fn names_and_pages_of_others_are_turned_away() {
        for host in ["localhost:3100", "127.0.0.1", "[::1]:3100", "LOCALHOST", "crib.example:99"] {
            assert!(judged(host, None), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "::1", "10.0.0.5"]
        {
            assert!(!judged(host, None), "{host}");
        }
        assert!(
            judged("localhost", Some("https://ui.example"))
                && judged("localhost", Some("http://localhost:1"))
        );
        assert!(!judged("localhost", Some("https://evil.example")) && !judged("localhost", Some("null")));
    }

    #[test]
    fn two_hosts_are_none() {
        let request = Request::builder()
            .header(header::HOST, "localhost")
            .header(header::HOST, "evil.example")
            .body(axum::body::Body::empty())
            .unwrap();
        assert!(judge(&Doorway::default(), &request).is_err());
    }

    #[test]
    fn a_form_is_not_a_request() {
        let fits = |pairs: &[(HeaderName, &str)]| {
            let headers = pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
            body_fits(&Method::POST, &headers, 100).is_ok()
        };
        let (kind, length) = (header::CONTENT_TYPE, header::CONTENT_LENGTH);
        assert!(fits(&[(kind.clone(), "application/json; charset=utf-8"), (length.clone(), "100")]));
        assert!(!fits(&[(kind.clone(), "application/json"), (length.clone(), "101")]));
        assert!(fits(&[]) && fits(&[(length.clone(), "0")]), "nothing to read");
        assert!(!fits(&[(length, "2")]) && !fits(&[(header::TRANSFER_ENCODING, "chunked")]));
        for form in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
            assert!(!fits(&[(kind.clone(), form)]), "{form}");
        }
    }
}
