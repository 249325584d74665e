//! The legacy wire: sessions, streams that can be resumed, and clients that never say goodbye.

use std::time::Duration;

use axum::http::StatusCode;
use http_body_util::BodyExt;
use serde_json::json;
use toolcrib_core::{
    caller::{Caller, CallerKind, Role, Roll},
    id::CallerId,
    policy::Access,
    testing::ScriptedSource,
};
use toolcrib_mcp::serve::Settings;

use crate::desk::{Counter, patient, sources};

#[tokio::test]
async fn a_session_begins_serves_and_ends() {
    let counter = Counter::new(&sources()).await;
    let session = counter.session("2025-06-18").await;
    let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(
        counter.send("POST", &[("mcp-session-id", &session)], body).await.status,
        StatusCode::ACCEPTED
    );
    assert_eq!(counter.legacy(&session, 1, "ping", json!({})).await.json()["result"], json!({}));
    let listed = counter.legacy(&session, 2, "tools/list", json!({})).await.json();
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 4);
    assert!(listed["result"].get("resultType").is_none() && listed["result"].get("ttlMs").is_none());
    let called = counter
        .legacy(&session, 3, "tools/call", json!({ "name": "s__echo", "arguments": { "n": 2 } }))
        .await;
    assert_eq!(called.json()["result"], json!({ "n": 2 }));
    assert_eq!(
        counter.send("DELETE", &[("mcp-session-id", &session)], "").await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(counter.legacy(&session, 4, "ping", json!({})).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_revision_is_negotiated() {
    let counter = Counter::new(&[]).await;
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999", "2025-11-25"),
    ] {
        let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": asked } });
        let told = counter.send("POST", &[], &body.to_string()).await;
        assert_eq!(told.json()["result"]["protocolVersion"], answered);
    }
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    assert_eq!(
        counter.send("POST", &[], body).await.status,
        StatusCode::BAD_REQUEST,
        "no session, no service"
    );
    let session = counter.session("2025-06-18").await;
    let strange = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "bogus")];
    assert_eq!(counter.send("POST", &strange, body).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_session_is_its_callers_alone() {
    let mut roll = Roll::closed(Caller::local(Access::nothing()));
    for id in ["alice", "bob"] {
        let caller = Caller {
            id: CallerId::new(id),
            kind: CallerKind::Agent,
            role: Role::User,
            access: Access::everything(),
        };
        roll.add(&format!("token of {id} here"), caller);
    }
    let counter = Counter::with(&sources(), roll, Settings::default()).await;
    let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": "2025-11-25" } });
    let told =
        counter.send("POST", &[("authorization", "Bearer token of alice here")], &body.to_string()).await;
    let session = told.headers["mcp-session-id"].to_str().unwrap();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (who, status) in [("alice", StatusCode::OK), ("bob", StatusCode::NOT_FOUND)] {
        let token = format!("Bearer token of {who} here");
        let told =
            counter.send("POST", &[("authorization", &token), ("mcp-session-id", session)], ping).await;
        assert_eq!(told.status, status, "{who}");
    }
}

#[tokio::test]
async fn a_cut_off_answer_waits_in_its_stream() {
    let counter = Counter::new(&sources()).await;
    let session = counter.session("2025-11-25").await;
    let params = json!({ "name": "s__chatty", "arguments": {}, "_meta": { "progressToken": 1 } });
    let body = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params }).to_string();
    let mut cut = counter.open("POST", &[("mcp-session-id", &session)], &body).await.into_body();
    let first = String::from_utf8(cut.frame().await.unwrap().unwrap().into_data().unwrap().to_vec()).unwrap();
    drop(cut);
    let last = first.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    let headers =
        [("mcp-session-id", session.as_str()), ("accept", "text/event-stream"), ("last-event-id", &last)];
    let resumed = counter.send("GET", &headers, "").await;
    let events = resumed.events();
    assert_eq!(events.last().unwrap()["id"], 5, "the answer arrived after all");
    assert_eq!(events.len(), 5, "the four other reports of progress, and the answer");
    assert_eq!(counter.crib.ledger.outcomes(), ["done"], "leaving did not cancel");
}

#[tokio::test]
async fn an_answer_that_was_sent_can_be_had_again() {
    let counter = Counter::new(&sources()).await;
    let session = counter.session("2025-11-25").await;
    let params = json!({ "name": "s__chatty", "arguments": {}, "_meta": { "progressToken": 1 } });
    let sent = counter.legacy(&session, 5, "tools/call", params.clone()).await;
    counter.legacy(&session, 6, "tools/call", params).await;
    let last = sent.body.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    let headers =
        [("mcp-session-id", session.as_str()), ("accept", "text/event-stream"), ("last-event-id", last)];
    let again = counter.send("GET", &headers, "").await;
    assert_eq!(again.events()[..], sent.events()[1..]);
}

#[tokio::test]
async fn who_left_before_the_first_word_can_still_cancel() {
    let counter = Counter::new(&[]).await;
    let source = ScriptedSource::with_tools(&["hang"]);
    patient(&counter, &source);
    let session = counter.session("2025-11-25").await;
    let call = counter.legacy(&session, 9, "tools/call", json!({ "name": "s__hang", "arguments": {} }));
    let left = tokio::time::timeout(Duration::from_millis(50), call).await;
    assert!(left.is_err(), "it was still waiting");
    assert!(counter.crib.ledger.outcomes().is_empty(), "leaving did not cancel");
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 9 } });
    counter.send("POST", &[("mcp-session-id", &session)], &note.to_string()).await;
    while counter.crib.ledger.outcomes().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(counter.crib.ledger.outcomes(), ["cancelled"]);
}

#[tokio::test]
async fn a_cancelled_call_ends() {
    let counter = Counter::new(&sources()).await;
    let session = counter.session("2025-11-25").await;
    let call = counter.legacy(&session, 9, "tools/call", json!({ "name": "s__hang", "arguments": {} }));
    let cancel = async {
        while counter.crib.gateway.roster().calls().is_empty() {
            tokio::task::yield_now().await;
        }
        let note =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 9 } });
        counter.send("POST", &[("mcp-session-id", &session)], &note.to_string()).await
    };
    let (told, _) = tokio::join!(call, cancel);
    assert_eq!(told.json()["error"]["data"]["kind"], "cancelled");
}

#[tokio::test]
async fn news_reach_the_standing_stream_even_if_it_opens_late() {
    let counter = Counter::new(&sources()).await;
    let session = counter.session("2025-11-25").await;
    counter.crib.gateway.supervisor().ensure_known().await;
    let headers = [("mcp-session-id", session.as_str()), ("accept", "text/event-stream")];
    let mut stream = counter.open("GET", &headers, "").await.into_body();
    let frame = stream.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(String::from_utf8(frame.to_vec()).unwrap().contains("notifications/tools/list_changed"));
    let next = counter.open("GET", &headers, "").await;
    assert_eq!(next.status(), StatusCode::OK, "a connection may be dead without anybody having noticed");
    assert!(stream.frame().await.is_none(), "one reader at a time: the latest");
}

#[tokio::test]
async fn idle_sessions_are_forgotten_and_the_cap_holds() {
    let settings =
        Settings { most_sessions: 2, session_idle: Duration::from_millis(50), ..Settings::default() };
    let roll = Roll::open(Caller::local(Access::everything()));
    let counter = Counter::with(&[], roll, settings).await;
    let first = counter.session("2025-11-25").await;
    counter.session("2025-11-25").await;
    let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": "2025-11-25" } });
    assert_eq!(counter.send("POST", &[], &body.to_string()).await.status, StatusCode::SERVICE_UNAVAILABLE);
    while counter.desk.sessions.load(std::sync::atomic::Ordering::Relaxed) > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(counter.legacy(&first, 1, "ping", json!({})).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn only_the_one_revision_that_has_batches_takes_them() {
    let counter = Counter::new(&sources()).await;
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{}}},7]"#;
    let old = counter.session("2025-03-26").await;
    let told = counter.send("POST", &[("mcp-session-id", &old)], batch).await.json();
    assert_eq!(told.as_array().unwrap().len(), 3);
    let new = counter.session("2025-06-18").await;
    assert_eq!(
        counter.send("POST", &[("mcp-session-id", &new)], batch).await.status,
        StatusCode::BAD_REQUEST
    );
}

#[tokio::test]
async fn a_session_is_judged_by_what_its_caller_may_now() {
    let roll = |allow: &str| {
        let mut roll = Roll::closed(Caller::local(Access::nothing()));
        let access = Access::new(&[allow.into()], &[]).unwrap();
        let bob = Caller { id: CallerId::new("bob"), kind: CallerKind::Agent, role: Role::User, access };
        roll.add("token of bob here", bob);
        roll
    };
    let counter = Counter::with(&sources(), roll("*"), Settings::default()).await;
    let bob = ("authorization", "Bearer token of bob here");
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": "2025-11-25" } });
    let told = counter.send("POST", &[bob], &hello.to_string()).await;
    let session = told.headers["mcp-session-id"].to_str().unwrap();
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let tools = async || {
        let told = counter.send("POST", &[bob, ("mcp-session-id", session)], list).await;
        (told.status, told.json()["result"]["tools"].as_array().map(Vec::len))
    };
    assert_eq!(tools().await, (StatusCode::OK, Some(4)));
    counter.desk.callers.replace(roll("s:echo"));
    assert_eq!(tools().await, (StatusCode::OK, Some(1)), "narrowed at once");
    counter.desk.callers.replace(Roll::closed(Caller::local(Access::nothing())));
    assert_eq!(tools().await.0, StatusCode::UNAUTHORIZED, "and out");
}

#[tokio::test]
async fn no_line_break_of_a_source_reaches_the_wire() {
    let counter = Counter::new(&sources()).await;
    let session = counter.session("2025-11-25").await;
    let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\n\"n\":\r\n1}}}";
    let told = counter.send("POST", &[("mcp-session-id", &session)], body).await;
    assert_eq!(told.json()["result"], json!({ "n": 1 }));
    assert!(!told.body.contains(['\n', '\r']), "{}", told.body);
}
