//! Stories of bad input, refusals, and how a bridge ends.

use std::time::Duration;

use axum::http::Method;
use serde_json::json;

use crate::client::{Client, call, options};
use crate::crib::Crib;

#[tokio::test]
async fn a_bad_line_is_told_and_the_bridge_goes_on() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    client.send("{ not json").await;
    let answer = client.next().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(null), &json!(-32700)));
    client.send("{\"hello\":1}").await;
    assert_eq!(client.next().await["error"]["code"], -32600);
    assert!(client.initialize().await["result"].is_object());
}

#[tokio::test]
async fn a_line_past_the_limit_is_told_and_the_bridge_goes_on() {
    let crib = Crib::start();
    let mut given = options(&crib.url());
    given.line_limit = 1000;
    let mut client = Client::of(given);
    client.send(format!("{{\"method\":\"{}\"}}", "x".repeat(2000))).await;
    assert_eq!(client.next().await["error"]["code"], -32600);
    assert!(client.initialize().await["result"].is_object());
}

#[tokio::test]
async fn a_missing_token_is_told_with_what_to_do() {
    let crib = Crib::start_at("127.0.0.1:0".parse().unwrap(), Some("s3cret"));
    let mut client = Client::to(&crib.url());
    let answer = client.initialize().await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("401") && message.contains("TOOLCRIB_TOKEN"), "{message}");
    assert_eq!(answer["error"]["data"]["httpStatus"], 401);

    let mut client = Client::of(options(&crib.url()).with_token("s3cret").unwrap());
    assert!(client.initialize().await["result"].is_object());
}

#[tokio::test]
async fn every_failure_is_an_error_with_the_id() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    client.initialize().await;
    for (tool, words) in [("fails", "500"), ("html", "not JSON")] {
        let answer = client.ask(call(tool, tool)).await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(tool), &json!(-32603)));
        assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
    }
}

#[tokio::test]
async fn a_request_past_its_time_is_told_and_cancelled() {
    let crib = Crib::start();
    let mut given = options(&crib.url());
    given.timeout = Some(Duration::from_millis(200));
    let mut client = Client::of(given);
    client.initialize().await;
    let answer = client.ask(call(3, "slow")).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("no answer within"), "{answer}");
    let cancelled = crib.until(|s| s.calls("notifications/cancelled")).await;
    assert_eq!(cancelled.json()["params"]["requestId"], 3);
}

#[tokio::test]
async fn requests_in_flight_are_answered_after_the_input_ended() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    client.initialize().await;
    client.send(call(1, "slow")).await;
    crib.until(|s| s.calls("tools/call")).await;
    client.close();
    crib.release();
    let rest = client.rest().await;
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0]["result"]["tool"], "slow");
    crib.until(|s| s.verb == Method::DELETE).await;
}

#[tokio::test]
async fn the_grace_has_an_end() {
    let crib = Crib::start();
    let mut given = options(&crib.url());
    given.grace = Duration::from_millis(100);
    let mut client = Client::of(given);
    client.initialize().await;
    client.send(call(1, "slow")).await;
    crib.until(|s| s.calls("tools/call")).await;
    let rest = client.end().await;
    assert_eq!((rest.len(), &rest[0]["id"]), (1, &json!(1)));
    assert!(rest[0]["error"]["message"].as_str().unwrap().contains("ended"), "{rest:?}");
    crib.until(|s| s.verb == Method::DELETE).await;
}

#[tokio::test]
async fn a_signal_ends_it_like_the_end_of_input() {
    let crib = Crib::start();
    let mut client = Client::to(&crib.url());
    client.initialize().await;
    client.send(call(1, "slow")).await;
    crib.until(|s| s.calls("tools/call")).await;
    client.signal();
    crib.release();
    assert_eq!(client.rest().await[0]["result"]["tool"], "slow");
    crib.until(|s| s.verb == Method::DELETE).await;
    assert_eq!(crib.sessions(), 0);
}

#[tokio::test]
async fn more_requests_than_may_be_in_flight_all_get_their_answer() {
    let crib = Crib::start();
    let mut given = options(&crib.url());
    given.in_flight = 4;
    let mut client = Client::of(given);
    client.initialize().await;
    for id in 0..64 {
        client.send(call(id, "plain")).await;
    }
    let mut ids = Vec::new();
    for _ in 0..64 {
        ids.push(client.next().await["id"].as_u64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, (0..64).collect::<Vec<_>>());
}
