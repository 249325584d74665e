//! The modern wire: every request by itself, headers and body saying the same.

use axum::http::StatusCode;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use toolcrib_core::{
    caller::{Caller, CallerKind, Role, Roll},
    id::CallerId,
    policy::Access,
    testing::ScriptedSource,
};
use toolcrib_mcp::serve::Settings;

use crate::desk::{Counter, modern, sources};

#[tokio::test]
async fn a_stranger_discovers_lists_and_calls() {
    let counter = Counter::new(&sources()).await;
    let discovered = counter.modern("server/discover", json!({})).await.json();
    assert_eq!(discovered["result"]["supportedVersions"], json!(["2026-07-28"]));
    let listed = counter.modern("tools/list", json!({})).await.json();
    let names: Vec<&str> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["s__chatty", "s__echo", "s__fail", "s__hang"]);
    assert_eq!(
        (&listed["result"]["resultType"], &listed["result"]["cacheScope"]),
        (&json!("complete"), &json!("private"))
    );
    let called = counter.modern("tools/call", json!({ "name": "s__echo", "arguments": { "n": 1 } })).await;
    assert_eq!(called.headers["content-type"], "application/json");
    assert_eq!(called.json()["result"]["n"], 1);
    assert_eq!(called.json()["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "toolcrib");
}

#[tokio::test]
async fn names_are_listed_as_asked_and_accepted_in_every_spelling() {
    let counter = Counter::new(&sources()).await;
    for name in ["s:echo", "s__echo", "echo"] {
        let told = counter.modern("tools/call", json!({ "name": name, "arguments": {} })).await;
        assert_eq!(told.status, StatusCode::OK, "{name}: {}", told.body);
        assert!(told.json().get("error").is_none(), "{name}");
    }
}

#[tokio::test]
async fn what_headers_and_body_say_must_agree() {
    let counter = Counter::new(&sources()).await;
    let (headers, body) = modern("tools/call", json!({ "name": "s__echo", "arguments": {} }));
    for (broken, value, code) in [
        ("mcp-method", Some("tools/list"), -32020),
        ("mcp-method", None, -32020),
        ("mcp-name", Some("s__fail"), -32020),
        ("mcp-name", None, -32020),
        ("mcp-protocol-version", Some("2025-11-25"), -32020),
        ("mcp-protocol-version", None, -32020),
    ] {
        let mut headers = headers.clone();
        headers.retain(|(name, _)| name != broken);
        headers.extend(value.map(|value| (broken.to_owned(), value.to_owned())));
        let headers: Vec<(&str, &str)> = headers.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let told = counter.send("POST", &headers, &body).await;
        assert_eq!((told.status, told.code()), (StatusCode::BAD_REQUEST, code), "{broken} {value:?}");
        assert_eq!(told.json()["id"], 7);
    }
}

#[tokio::test]
async fn what_is_missing_or_unknown_is_said() {
    let counter = Counter::new(&sources()).await;
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
    let bare = counter.send("POST", &headers, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
    assert_eq!((bare.status, bare.code()), (StatusCode::BAD_REQUEST, -32602));
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"v9"}}}"#;
    let strange =
        counter.send("POST", &[("mcp-protocol-version", "v9"), ("mcp-method", "tools/list")], body).await;
    assert_eq!((strange.status, strange.code()), (StatusCode::BAD_REQUEST, -32022));
    assert_eq!(strange.json()["error"]["data"]["requested"], "v9");
    for removed in ["initialize", "ping", "logging/setLevel", "resources/subscribe"] {
        let told = counter.modern(removed, json!({})).await;
        assert_eq!((told.status, told.code()), (StatusCode::NOT_FOUND, -32601), "{removed}");
    }
    let unknown = counter.modern("tools/call", json!({ "name": "nope" })).await;
    assert_eq!((unknown.status, unknown.code()), (StatusCode::OK, -32602));
}

#[tokio::test]
async fn wrong_arguments_come_back_as_a_result_a_model_can_read() {
    let counter = Counter::new(&sources()).await;
    let told =
        counter.modern("tools/call", json!({ "name": "s__echo", "arguments": { "n": "x" } })).await.json();
    assert_eq!(told["result"]["isError"], true);
    assert!(told["result"]["content"][0]["text"].as_str().unwrap().contains("/n"));
}

#[tokio::test]
async fn progress_carries_the_clients_own_token() {
    let counter = Counter::new(&sources()).await;
    let params = json!({ "name": "s__chatty", "arguments": {}, "_meta": { "progressToken": "mine" } });
    let told = counter.modern("tools/call", params).await;
    assert_eq!(told.headers["content-type"], "text/event-stream");
    let events = told.events();
    assert_eq!(events.len(), 6);
    assert!(events[..5].iter().all(|e| e["params"]["progressToken"] == "mine"));
    assert_eq!(events[5]["id"], 7);
}

#[tokio::test]
async fn leaving_cancels_the_call() {
    let source = ScriptedSource::with_tools(&["hang"]);
    let counter = Counter::new(&[("s", source)]).await;
    let (headers, body) = modern("tools/call", json!({ "name": "hang", "arguments": {} }));
    let headers: Vec<(&str, &str)> = headers.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let left =
        tokio::time::timeout(std::time::Duration::from_millis(30), counter.open("POST", &headers, &body))
            .await;
    assert!(left.is_err(), "it was still waiting");
    while counter.crib.ledger.outcomes().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(counter.crib.ledger.outcomes(), ["cancelled"]);
}

#[tokio::test]
async fn a_listener_is_acknowledged_first_and_told_only_what_it_asked() {
    let counter = Counter::new(&[]).await;
    let (headers, body) =
        modern("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    let headers: Vec<(&str, &str)> = headers.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let mut stream = counter.open("POST", &headers, &body).await.into_body();
    let mut next = async || {
        let frame = stream.frame().await.unwrap().unwrap().into_data().unwrap();
        let text = String::from_utf8(frame.to_vec()).unwrap();
        serde_json::from_str::<Value>(text.lines().find_map(|l| l.strip_prefix("data: ")).unwrap()).unwrap()
    };
    let first = next().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"], json!({ "toolsListChanged": true }));
    let late = toolcrib_core::testing::spec("late", &ScriptedSource::with_tools(&["x"]));
    counter.crib.gateway.supervisor().apply(vec![late]);
    counter.crib.gateway.supervisor().ensure_known().await;
    let told = next().await;
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    counter.desk.closing.cancel();
    assert_eq!(next().await["result"]["resultType"], "complete");
}

#[tokio::test]
async fn strangers_and_foreign_pages_are_turned_away() {
    let mut roll = Roll::closed(Caller::local(Access::nothing()));
    let access = Access::new(&["s:echo".into()], &[]).unwrap();
    roll.add(
        "a long enough token",
        Caller { id: CallerId::new("ci"), kind: CallerKind::Agent, role: Role::User, access },
    );
    let counter = Counter::with(&sources(), roll, Settings::default()).await;
    let (headers, body) = modern("tools/list", json!({}));
    let with = async |extra: &[(&str, &str)]| {
        let mut all: Vec<(&str, &str)> = headers.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        all.extend(extra);
        counter.send("POST", &all, &body).await
    };
    let stranger = with(&[]).await;
    assert_eq!(stranger.status, StatusCode::UNAUTHORIZED);
    assert_eq!(stranger.headers["www-authenticate"], "Bearer");
    assert_eq!(with(&[("authorization", "Bearer nope")]).await.status, StatusCode::UNAUTHORIZED);
    let known = ("authorization", "Bearer a long enough token");
    let listed = with(&[known]).await.json();
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 1);
    assert_eq!(with(&[known, ("host", "evil.example")]).await.status, StatusCode::FORBIDDEN);
    assert_eq!(with(&[known, ("origin", "http://evil.example")]).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn bodies_have_a_limit_and_a_type() {
    let settings = Settings { longest_body: 1000, ..Settings::default() };
    let counter = Counter::with(&[], Roll::open(Caller::local(Access::everything())), settings).await;
    assert_eq!(counter.send("POST", &[], &"x".repeat(1001)).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(
        counter.send("POST", &[("content-type", "text/plain")], "{}").await.status,
        StatusCode::UNSUPPORTED_MEDIA_TYPE
    );
    let garbage = counter.send("POST", &[], "{nope").await;
    assert_eq!((garbage.status, garbage.code()), (StatusCode::BAD_REQUEST, -32700));
    assert_eq!(counter.send("GET", &[], "").await.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(counter.send("DELETE", &[], "").await.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(counter.send("PUT", &[], "").await.status, StatusCode::METHOD_NOT_ALLOWED);
}
