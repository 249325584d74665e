//! Who gets as far as the counter: headers that say one thing only, and pages of welcome origins.

use axum::http::StatusCode;
use serde_json::json;
use toolcrib_core::{
    caller::{Caller, Roll},
    doorway::Doorway,
    policy::Access,
};
use toolcrib_mcp::serve::Settings;

use crate::desk::{Counter, modern, sources};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[tokio::test]
async fn a_header_that_says_two_things_is_refused() {
    let counter = Counter::new(&sources()).await;
    let session = counter.session("2025-11-25").await;
    let here = ("mcp-session-id", session.as_str());
    for twice in [
        ("origin", "http://evil.example"),
        ("origin", "http://localhost"),
        ("authorization", "Bearer x"),
        ("mcp-protocol-version", "2025-11-25"),
        here,
    ] {
        let told = counter.send("POST", &[here, twice, twice], PING).await;
        assert_eq!(told.status, StatusCode::BAD_REQUEST, "{twice:?}");
    }
    let last = ("last-event-id", "0-0");
    let told = counter.send("GET", &[here, ("accept", "text/event-stream"), last, last], "").await;
    assert_eq!(told.status, StatusCode::BAD_REQUEST);
    let (headers, body) = modern("tools/list", json!({}));
    let mut headers: Vec<(&str, &str)> = headers.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    headers.push(("mcp-method", "tools/call"));
    let told = counter.send("POST", &headers, &body).await;
    assert_eq!((told.status, told.code()), (StatusCode::BAD_REQUEST, -32020));
}

async fn closed() -> Counter {
    let doorway = Doorway { hosts: Vec::new(), origins: vec!["https://page.example".into()] };
    let settings = Settings { doorway, ..Settings::default() };
    Counter::with(&sources(), Roll::closed(Caller::local(Access::nothing())), settings).await
}

#[tokio::test]
async fn a_browser_may_ask_without_a_token_what_a_page_may_send() {
    let counter = closed().await;
    let asked = "content-type, mcp-session-id, mcp-param-region, x-evil";
    let ask = async |origin: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", asked),
        ];
        counter.send("OPTIONS", &headers, "").await
    };
    let told = ask("https://page.example").await;
    assert_eq!(told.status, StatusCode::NO_CONTENT);
    assert_eq!(told.headers["access-control-allow-origin"], "https://page.example");
    assert_eq!(told.headers["vary"], "origin");
    assert!(told.headers["access-control-allow-methods"].to_str().unwrap().contains("DELETE"));
    let allowed = told.headers["access-control-allow-headers"].to_str().unwrap();
    for name in ["authorization", "content-type", "last-event-id", "mcp-session-id", "mcp-param-region"] {
        assert!(allowed.split(", ").any(|allowed| allowed == name), "{name}");
    }
    assert!(!allowed.contains("x-evil") && !told.headers.contains_key("access-control-allow-credentials"));
    let told = ask("https://other.example").await;
    assert_eq!(told.status, StatusCode::FORBIDDEN);
    assert!(!told.headers.contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn a_welcome_page_can_read_its_answers_refusals_too() {
    let counter = closed().await;
    let told = counter.send("POST", &[("origin", "https://page.example")], PING).await;
    assert_eq!(told.status, StatusCode::UNAUTHORIZED);
    assert_eq!(told.headers["access-control-allow-origin"], "https://page.example");
    let exposed = told.headers["access-control-expose-headers"].to_str().unwrap();
    assert!(exposed.contains("mcp-session-id"));
    for nobody in [&[][..], &[("origin", "http://localhost:3000")]] {
        let told = counter.send("POST", nobody, PING).await;
        assert!(
            !told.headers.contains_key("access-control-allow-origin"),
            "{nobody:?}: only pages that were named"
        );
    }
}
