//! What is not there, and what is nobody's: the same answers from every wire, with the codes of its era.

use axum::http::StatusCode;
use serde_json::json;
use toolcrib_core::testing::ScriptedSource;

use crate::desk::{Counter, sources};

#[tokio::test]
async fn a_method_nobody_has_is_not_found() {
    let two = [("a", ScriptedSource::with_tools(&["x"])), ("b", ScriptedSource::with_tools(&["y"]))];
    let counter = Counter::new(&two).await;
    let told = counter.modern("vendor/thing", json!({})).await;
    assert_eq!((told.status, told.code()), (StatusCode::NOT_FOUND, -32601));
    assert_eq!(told.json()["error"]["data"]["kind"], "unknown");
    let session = counter.session("2025-11-25").await;
    let told = counter.legacy(&session, 1, "vendor/thing", json!({})).await;
    assert_eq!((told.status, told.code()), (StatusCode::OK, -32601));
}

#[tokio::test]
async fn a_resource_nobody_has_is_told_in_the_code_of_its_era() {
    let counter = Counter::new(&sources()).await;
    let nowhere = json!({ "uri": "test://nowhere" });
    assert_eq!(counter.modern("resources/read", nowhere.clone()).await.code(), -32602);
    let session = counter.session("2025-11-25").await;
    for method in ["resources/read", "resources/subscribe"] {
        assert_eq!(counter.legacy(&session, 1, method, nowhere.clone()).await.code(), -32002, "{method}");
    }
    let told = counter.legacy(&session, 1, "tools/call", json!({ "name": "nope" })).await;
    assert_eq!(told.code(), -32602, "only resources have a code of their own");
}

#[tokio::test]
async fn the_protocols_own_methods_never_reach_a_source() {
    let source = ScriptedSource::with_tools(&["echo"]);
    let counter = Counter::new(&[("s", source.clone())]).await;
    let session = counter.session("2025-03-26").await;
    for method in [
        "server/discover",
        "subscriptions/listen",
        "notifications/initialized",
        "notifications/vendor",
        "sampling/createMessage",
        "elicitation/create",
        "roots/list",
    ] {
        assert_eq!(counter.legacy(&session, 1, method, json!({})).await.code(), -32601, "{method}");
    }
    let batch =
        r#"[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}]"#;
    let told = counter.send("POST", &[("mcp-session-id", &session)], batch).await.json();
    assert_eq!(told[0]["error"]["code"], -32601);
    for method in ["initialize", "ping", "notifications/initialized", "sampling/createMessage", "roots/list"]
    {
        let told = counter.modern(method, json!({})).await;
        assert_eq!((told.status, told.code()), (StatusCode::NOT_FOUND, -32601), "{method}");
    }
    assert!(source.invoked.lock().unwrap().is_empty());
    counter.modern("vendor/thing", json!({})).await;
    assert_eq!(source.invoked.lock().unwrap()[..], ["vendor/thing"], "a vendor's method does");
}
