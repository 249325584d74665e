//! What only a real connection shows: streams of events, and clients that go away.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that trips has failed"
)]

#[path = "stories/crib.rs"]
#[allow(dead_code, reason = "shared with the other test files")]
mod crib;

use axum::Router;
use crib::{ADMIN, Crib, USER, crib, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};
use toolcrib_core::{
    caller::Roll,
    id::SourceId,
    news::{CallNews, News},
    raw,
    testing::call,
};
use toolcrib_rest::{admin_router, tools_router};

struct Connection(BufReader<TcpStream>);

impl Connection {
    /// Sends one request to a server of its own.
    async fn open(router: Router, head: &str, body: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let mut stream = TcpStream::connect(address).await.unwrap();
        let length = body.len();
        let request = format!(
            "{head} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
             Authorization: Bearer {ADMIN}\r\nConnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        Self(BufReader::new(stream))
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.0.read_line(&mut line).await.unwrap();
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// The rest of the head; the stream of events follows.
    async fn head(&mut self) -> Vec<String> {
        let mut head = Vec::new();
        while let Some(line) = self.line().await.filter(|line| !line.is_empty()) {
            head.push(line);
        }
        head
    }

    /// The next event: its name and what it says. None when the stream ended.
    async fn event(&mut self) -> Option<(String, serde_json::Value)> {
        let mut name = String::new();
        loop {
            let line = self.line().await?;
            if let Some(event) = line.strip_prefix("event: ") {
                name = event.to_owned();
            } else if let Some(text) = line.strip_prefix("data: ") {
                return Some((name, json(text)));
            }
        }
    }
}

#[tokio::test]
async fn events_tell_of_sources_catalog_and_calls() {
    let Crib { desk, .. } = crib().await;
    let gateway = desk.gateway.clone();
    let ann = desk.callers.recognise(Some(USER)).unwrap();
    let closing = desk.closing.clone();
    let mut events = Connection::open(admin_router(desk), "GET /events", "").await;
    let head = events.head().await;
    assert!(head.iter().any(|line| line.eq_ignore_ascii_case("content-type: text/event-stream")), "{head:?}");
    gateway.call(call(&ann, "s:echo", "{}")).finish().await.unwrap();
    let mut heard = Vec::new();
    while !heard.contains(&"call_closed".to_owned()) {
        let (name, told) = events.event().await.unwrap();
        assert_eq!(told["event"], name.as_str());
        if name == "call_closed" {
            assert_eq!((&told["outcome"], &told["item"]), (&"done".into(), &"s:echo".into()));
            assert!(told["durationUs"].is_u64(), "{told}");
        }
        heard.push(name);
    }
    for name in ["source", "catalog", "call_opened"] {
        assert!(heard.contains(&name.to_owned()), "{name} in {heard:?}");
    }
    closing.cancel();
    assert!(events.event().await.is_none(), "the stream ends when the crib shuts down");
}

#[tokio::test]
async fn only_what_was_asked_for_is_told() {
    let Crib { desk, .. } = crib().await;
    let newsroom = desk.gateway.newsroom().clone();
    let mut events = Connection::open(admin_router(desk), "GET /events?only=catalog", "").await;
    events.head().await;
    let source = SourceId::new("s").unwrap();
    newsroom.tell(News::Notice { source, method: "x".into(), params: Some(raw::empty_object()) });
    newsroom.tell_call(|| unreachable!("nobody listens to calls"));
    newsroom.tell(News::Catalog { revision: "r".into(), tools: true, prompts: false, resources: false });
    assert_eq!(events.event().await.unwrap().0, "catalog");
}

#[tokio::test]
async fn a_topic_that_is_not_one_is_refused() {
    let mut events =
        Connection::open(admin_router(crib().await.desk), "GET /events?only=source,news", "").await;
    assert!(events.head().await[0].contains("400"));
}

#[tokio::test]
async fn a_listener_that_falls_behind_is_told() {
    let Crib { desk, .. } = crib().await;
    let newsroom = desk.gateway.newsroom().clone();
    let mut events = Connection::open(admin_router(desk), "GET /events?only=catalog", "").await;
    events.head().await;
    // No await in between: on this one thread the listener cannot read while they are told.
    for n in 0..5_000 {
        newsroom.tell(News::Catalog {
            revision: n.to_string(),
            tools: true,
            prompts: false,
            resources: false,
        });
    }
    let (name, told) = events.event().await.unwrap();
    assert_eq!(name, "lagged");
    let missed = told["missed"].as_u64().unwrap();
    assert!(missed > 3_000, "{told}");
    assert_eq!(events.event().await.unwrap().1["revision"], missed.to_string(), "and goes on from there");
}

/// Time is the test's own here, so the stream is read without a socket.
#[tokio::test(start_paused = true)]
async fn a_token_that_is_taken_away_closes_its_stream() {
    let Crib { desk, .. } = crib().await;
    let callers = desk.callers.clone();
    let events = crib::answer(&admin_router(desk), crib::request("GET", "/events", Some(ADMIN), None)).await;
    assert!(events.status().is_success());
    callers.replace(Roll::closed(toolcrib_core::caller::Caller::local(
        toolcrib_core::policy::Access::nothing(),
    )));
    assert_eq!(crib::text(events).await, "", "it ends, and before the first sign of life");
}

#[tokio::test]
async fn a_client_that_leaves_cancels_its_call() {
    let Crib { desk, ledger, source } = crib().await;
    let gateway = desk.gateway.clone();
    let mut calls = gateway.newsroom().listen_calls();
    let client = Connection::open(tools_router(desk), "POST /api/call", r#"{"tool":"s:hang"}"#).await;
    while source.invoked.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    drop(client);
    while !matches!(&*calls.recv().await.unwrap(), CallNews::CallClosed { outcome: "cancelled", .. }) {}
    while ledger.lines.lock().unwrap()[0].outcome.is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(ledger.lines.lock().unwrap()[0].outcome.as_deref(), Some("cancelled"));
}
