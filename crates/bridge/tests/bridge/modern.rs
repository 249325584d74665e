//! Stories of the modern era: mirrored headers, subscriptions, cancellation by closing the stream.

use serde_json::json;

use crate::client::{Client, modern};
use crate::crib::Crib;

#[tokio::test]
async fn every_request_is_mirrored_in_its_headers() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    assert!(client.ask(modern(1, "server/discover", json!({}))).await["result"].is_object());
    assert_eq!(client.ask(modern(2, "tools/call", json!({"name":"x"}))).await["result"]["tool"], "x");
    let seen = crib.until(|s| s.calls("tools/call")).await;
    assert_eq!(seen.header("mcp-name"), Some("x"));
    client.end().await;
    assert!(crib.seen().iter().all(|s| s.verb == axum::http::Method::POST), "no stream, no session to end");
}

#[tokio::test]
async fn annotated_arguments_are_mirrored_once_the_list_was_seen() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    client.ask(modern(1, "tools/list", json!({}))).await;
    let call = modern(2, "tools/call", json!({"name":"annotated","arguments":{"region":"eu"}}));
    assert_eq!(client.ask(call).await["result"]["tool"], "annotated");
    assert_eq!(crib.until(|s| s.calls("tools/call")).await.header("mcp-param-region"), Some("eu"));
}

#[tokio::test]
async fn a_client_that_cached_the_list_gets_its_headers_all_the_same() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    let call = modern(2, "tools/call", json!({"name":"annotated","arguments":{"region":"eu"}}));
    assert_eq!(client.ask(call).await["result"]["tool"], "annotated");
    let methods: Vec<_> = crib.seen().iter().map(|s| s.json()["method"].clone()).collect();
    assert_eq!(methods, ["tools/call", "tools/list", "tools/call"]);
}

#[tokio::test]
async fn an_error_of_the_crib_gets_the_id_it_lacked() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    let mut call = modern("mine", "tools/call", json!({"name":"x"}));
    call["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let answer = client.ask(call).await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("mine"), &json!(-32020)));
}

#[tokio::test]
async fn a_cancellation_closes_the_stream_and_is_not_sent() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    client.send(modern(1, "tools/call", json!({"name":"slow"}))).await;
    crib.until(|s| s.calls("tools/call")).await;
    client.send(json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})).await;
    crib.until_gone(1).await;
    assert!(client.end().await.is_empty(), "nobody waits for a cancelled request");
    assert!(!crib.seen().iter().any(|s| s.calls("notifications/cancelled")));
}

#[tokio::test]
async fn a_subscription_is_relayed_until_it_ends() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    let listen = modern("sub", "subscriptions/listen", json!({"notifications":{"toolsListChanged":true}}));
    assert_eq!(client.ask(listen).await["method"], "notifications/subscriptions/acknowledged");
    crib.push("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n").await;
    assert_eq!(client.next().await["method"], "notifications/tools/list_changed");
    crib.close_streams().await;
    assert_eq!(client.next().await["id"], "sub");
}

#[tokio::test]
async fn a_subscription_outlives_a_restart_of_the_crib() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    let listen = modern("sub", "subscriptions/listen", json!({"notifications":{"toolsListChanged":true}}));
    assert_eq!(client.ask(listen).await["method"], "notifications/subscriptions/acknowledged");
    let crib = Crib::start_at(crib.stop(), None);
    let changed = client.next().await;
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub");
    crib.push("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/prompts/list_changed\"}\n\n").await;
    assert_eq!(client.next().await["method"], "notifications/prompts/list_changed");
    assert!(client.end().await.is_empty(), "an open subscription does not keep the bridge");
}

#[tokio::test]
async fn a_client_may_try_the_modern_era_and_fall_back() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    client.ask(modern(1, "server/discover", json!({}))).await;
    client.initialize().await;
    let opened = crib.until(|s| s.calls("notifications/initialized")).await;
    assert_eq!(opened.header("mcp-session-id"), Some("s-1"));
    assert_eq!(opened.header("mcp-protocol-version"), Some("2025-11-25"));
}
