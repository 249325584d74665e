//! Stories of web pages from elsewhere: which may ask, and what their browser is told.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that trips has failed"
)]

#[path = "stories/crib.rs"]
#[allow(dead_code, reason = "shared with the other test files")]
mod crib;

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    http::{Request, Response, StatusCode, header},
};
use crib::{USER, answer, crib, request};
use toolcrib_core::doorway::Doorway;
use toolcrib_rest::{admin_router, tools_router};

const PAGE: &str = "https://ui.example";

/// Each router with one of its paths and the method that path has.
async fn routers() -> [(Router, &'static str, &'static str); 2] {
    let mut desk = crib().await.desk;
    desk.doorway = Arc::new(Doorway { hosts: vec![], origins: vec![PAGE.into()] });
    [(admin_router(desk.clone()), "/calls", "GET"), (tools_router(desk), "/api/call", "POST")]
}

fn from(origin: &str, mut request: Request<Body>) -> Request<Body> {
    request.headers_mut().insert(header::ORIGIN, origin.parse().unwrap());
    request
}

fn preflight(origin: &str, path: &str, method: &str) -> Request<Body> {
    let mut request = from(origin, request("OPTIONS", path, None, None));
    request.headers_mut().insert(header::ACCESS_CONTROL_REQUEST_METHOD, method.parse().unwrap());
    request
}

fn told(response: &Response<Body>, name: header::HeaderName) -> &str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn a_browser_may_ask_for_a_page_of_an_admitted_origin_without_a_token() {
    for (router, path, method) in routers().await {
        let response = answer(&router, preflight(PAGE, path, method)).await;
        assert_eq!(response.status(), StatusCode::NO_CONTENT, "{path}");
        assert_eq!(told(&response, header::ACCESS_CONTROL_ALLOW_ORIGIN), PAGE);
        assert!(told(&response, header::ACCESS_CONTROL_ALLOW_METHODS).contains(method));
        for name in ["authorization", "content-type"] {
            assert!(told(&response, header::ACCESS_CONTROL_ALLOW_HEADERS).contains(name), "{name}");
        }
        assert_eq!(told(&response, header::VARY), "origin");
        assert_eq!(told(&response, header::ACCESS_CONTROL_ALLOW_CREDENTIALS), "");
    }
}

#[tokio::test]
async fn an_answer_may_be_read_by_the_page_it_is_for_and_by_no_other() {
    for (router, path, method) in routers().await {
        let asked =
            |token| request(method, path, token, (method == "POST").then_some(r#"{"tool":"s:echo"}"#));
        for (token, status) in [(Some(USER), 200), (None, 401)] {
            let response = answer(&router, from(PAGE, asked(token))).await;
            assert_eq!(response.status().as_u16(), status, "{path}");
            assert_eq!(told(&response, header::ACCESS_CONTROL_ALLOW_ORIGIN), PAGE);
            assert_eq!(told(&response, header::VARY), "origin");
        }
        let plain = answer(&router, asked(Some(USER))).await;
        assert_eq!(told(&plain, header::ACCESS_CONTROL_ALLOW_ORIGIN), "", "no page asked");
        for strange in ["https://evil.example", "null"] {
            for request in [preflight(strange, path, method), from(strange, asked(Some(USER)))] {
                let response = answer(&router, request).await;
                assert_eq!(response.status(), StatusCode::FORBIDDEN, "{strange}");
                assert_eq!(told(&response, header::ACCESS_CONTROL_ALLOW_ORIGIN), "");
            }
        }
    }
}
