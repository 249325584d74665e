//! Stories of the legacy era: sessions, the GET stream, answers as JSON and as events, a crib that restarts.

use axum::http::Method;
use serde_json::json;

use crate::client::{Client, call, options};
use crate::crib::{Closed, Crib};

#[tokio::test]
async fn a_session_is_opened_used_and_ended() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    let answer = client.initialize().await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(client.ask(call(1, "plain")).await["result"]["tool"], "plain");

    let opening = crib.until(|s| s.calls("initialize")).await;
    assert_eq!(opening.header("mcp-session-id"), None);
    for method in ["notifications/initialized", "tools/call"] {
        let seen = crib.until(|s| s.calls(method)).await;
        assert_eq!(seen.header("mcp-session-id"), Some("s-1"), "{method}");
        assert_eq!(seen.header("mcp-protocol-version"), Some("2025-11-25"), "{method}");
        assert_eq!(seen.header("mcp-method"), None, "{method}");
    }
    assert!(client.end().await.is_empty());
    crib.until(|s| s.verb == Method::DELETE).await;
    assert_eq!(crib.sessions(), 0);
}

#[tokio::test]
async fn the_line_reaches_the_crib_byte_for_byte() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    client.initialize().await;
    let line = r#"{ "id" :1.50e1,"unknown":{"b":1,"a":[ 1 , 2]}, "method":"tools\/call","params":{"name":"\u0061"} }"#;
    client.send(line).await;
    assert_eq!(client.next().await["id"], 15.0);
    assert!(crib.seen().iter().any(|s| s.body == line));
}

#[tokio::test]
async fn messages_sent_at_once_wait_for_the_session() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    let lines = [
        json!({"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}),
        json!({"jsonrpc":"2.0","method":"notifications/initialized"}),
        call(1, "plain"),
    ]
    .map(|line| line.to_string());
    client.send(lines.join("\n")).await;
    assert_eq!(client.next().await["id"], 0);
    assert_eq!(client.next().await["id"], 1);
    let posts: Vec<String> =
        crib.seen().iter().filter(|s| s.verb == Method::POST).map(|s| s.body.clone()).collect();
    assert_eq!(posts, lines);
}

#[tokio::test]
async fn an_event_stream_becomes_lines_as_they_come() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    client.initialize().await;
    let progress = client.ask(call(1, "stream")).await;
    assert_eq!(progress["method"], "notifications/progress");
    assert_eq!(client.next().await["result"]["tool"], "stream");
}

#[tokio::test]
async fn a_slow_request_does_not_hold_up_the_next() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    client.initialize().await;
    client.send(call("slow", "slow")).await;
    assert_eq!(client.ask(call("quick", "plain")).await["id"], "quick");
    crib.release();
    assert_eq!(client.next().await["id"], "slow");
}

#[tokio::test]
async fn what_the_crib_says_unasked_reaches_the_client() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    client.initialize().await;
    crib.until(|s| s.verb == Method::GET).await;
    crib.push("id: 41\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
        .await;
    assert_eq!(client.next().await["method"], "notifications/tools/list_changed");
    crib.push("id: 42\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\"}\n\n").await;
    assert_eq!(client.next().await["method"], "elicitation/create");
    client.send(json!({"jsonrpc":"2.0","id":"q","result":{"action":"accept"}})).await;
    crib.until(|s| s.json()["result"]["action"] == "accept").await;

    crib.close_streams().await;
    let again = crib.until(|s| s.header("last-event-id").is_some()).await;
    assert_eq!(again.header("last-event-id"), Some("42"));
    assert_eq!(again.header("mcp-session-id"), Some("s-1"));
}

#[tokio::test]
async fn a_broken_answer_is_taken_up_where_it_was() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    client.initialize().await;
    assert_eq!(
        client.ask(call(7, "broken")).await,
        json!({"jsonrpc":"2.0","id":7,"result":{"resumed":true}})
    );
}

#[tokio::test]
async fn a_cancellation_follows_its_request() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    client.initialize().await;
    client.send(call(5, "slow")).await;
    client.send(json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}})).await;
    crib.until(|s| s.calls("notifications/cancelled")).await;
    let order: Vec<_> = crib
        .seen()
        .iter()
        .filter(|s| s.json()["params"].is_object())
        .map(|s| s.json()["method"].clone())
        .collect();
    assert_eq!(order[1..], ["tools/call", "notifications/cancelled"]);
    crib.release();
}

#[tokio::test]
async fn a_batch_passes_as_it_is() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    client.initialize().await;
    let answer = client.ask(json!([call(1, "a"), {"jsonrpc":"2.0","method":"n"}, call(2, "b")])).await;
    assert_eq!((&answer[0]["id"], &answer[1]["id"]), (&json!(1), &json!(2)));
}

#[tokio::test]
async fn a_restart_of_the_crib_costs_the_client_nothing() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    client.initialize().await;
    crib.until(|s| s.verb == Method::GET).await;
    let address = crib.stop();

    client.send(call(1, "plain")).await;
    let crib = Crib::start_at(address, None);
    let mut lines = [client.next().await, client.next().await, client.next().await];
    lines.sort_by_key(|line| line["method"].as_str().unwrap_or_default().to_owned());
    assert_eq!(lines[0]["result"]["tool"], "plain");
    assert_eq!(lines[1]["method"], "notifications/prompts/list_changed");
    assert_eq!(lines[2]["method"], "notifications/tools/list_changed");
    crib.until(|s| s.verb == Method::GET && s.header("mcp-session-id") == Some("s-1")).await;

    let opened = crib.seen().iter().filter(|s| s.calls("initialize")).count();
    assert_eq!(opened, 1, "one session for all who noticed");
    assert!(crib.seen().iter().any(|s| s.calls("notifications/initialized")));
    assert!(client.end().await.is_empty());
}

#[tokio::test]
async fn a_crib_that_restarts_unasked_makes_the_client_refresh() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    client.initialize().await;
    crib.until(|s| s.verb == Method::GET).await;
    let _crib = Crib::start_at(crib.stop(), None);
    assert_eq!(client.next().await["method"], "notifications/tools/list_changed");
    assert_eq!(client.next().await["method"], "notifications/prompts/list_changed");
}

#[tokio::test]
async fn a_crib_that_is_not_up_yet_is_waited_for() {
    let closed = Closed::reserve();
    let mut client = Client::to(&closed.url());
    client.send(json!({"jsonrpc":"2.0","id":0,"method":"initialize","params":{}})).await;
    let _crib = closed.open();
    assert_eq!(client.next().await["result"]["serverInfo"]["name"], "crib");
}

#[tokio::test]
async fn a_crib_that_never_comes_is_an_error_with_the_id() {
    let closed = Closed::reserve();
    let mut given = options(&closed.url());
    given.wait = std::time::Duration::from_millis(150);
    let mut client = Client::of(given);
    let answer = client.ask(json!({"jsonrpc":"2.0","id":"a","method":"initialize","params":{}})).await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("a"), &json!(-32603)));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("cannot reach the crib") && message.contains("refused"), "{message}");
}
