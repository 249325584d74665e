//! Resources that are watched for clients of both eras, at sources that are slow, refuse, or were never asked before.

use std::{collections::BTreeSet, sync::atomic::Ordering, time::Duration};

use axum::{body::Body, http::StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use toolcrib_core::testing::ScriptedSource;

use crate::desk::{Counter, modern};

fn watched(source: &ScriptedSource) -> Vec<Vec<String>> {
    let told = source.watched.lock().unwrap();
    told.iter().map(|uris: &BTreeSet<String>| uris.iter().cloned().collect()).collect()
}

async fn until(source: &ScriptedSource, last: &[&str]) {
    while watched(source).last().is_none_or(|uris| uris != last) {
        tokio::task::yield_now().await;
    }
}

async fn listen(counter: &Counter, uris: &[&str]) -> Body {
    let (headers, body) =
        modern("subscriptions/listen", json!({ "notifications": { "resourceSubscriptions": uris } }));
    let headers: Vec<(&str, &str)> = headers.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    counter.open("POST", &headers, &body).await.into_body()
}

async fn acknowledged(stream: &mut Body) -> Value {
    let frame = stream.frame().await.unwrap().unwrap().into_data().unwrap();
    let text = String::from_utf8(frame.to_vec()).unwrap();
    let told: Value =
        serde_json::from_str(text.lines().find_map(|l| l.strip_prefix("data: ")).unwrap()).unwrap();
    assert_eq!(told["method"], "notifications/subscriptions/acknowledged");
    told["params"]["notifications"]["resourceSubscriptions"].clone()
}

#[tokio::test]
async fn a_listener_is_acknowledged_before_its_sources_are_asked() {
    let source = ScriptedSource::with_tools(&["x"]);
    let counter = Counter::new(&[("s", source.clone())]).await;
    counter.crib.gateway.supervisor().ensure_known().await;
    *source.slow.lock().unwrap() = Duration::from_secs(3600);
    source.lose.notify_waiters();
    while counter.crib.gateway.supervisor().statuses()[0].state.word() != "idle" {
        tokio::task::yield_now().await;
    }
    let told = async { acknowledged(&mut listen(&counter, &["s+test://a", "test://nowhere"]).await).await };
    let told = tokio::time::timeout(Duration::from_secs(5), told).await.unwrap();
    assert_eq!(told, json!(["s+test://a"]), "what nobody has is not promised");
}

#[tokio::test]
async fn what_is_watched_for_a_listener_is_let_go_with_it() {
    let source = ScriptedSource::with_tools(&["x"]);
    let counter = Counter::new(&[("s", source.clone())]).await;
    let mut stream = listen(&counter, &["s+test://a", "s+test://b"]).await;
    assert_eq!(
        acknowledged(&mut stream).await,
        json!(["s+test://a", "s+test://b"]),
        "asked for the first time"
    );
    until(&source, &["test://a", "test://b"]).await;
    drop(stream);
    until(&source, &[]).await;
}

#[tokio::test]
async fn a_subscription_that_failed_takes_nothing_from_others() {
    let source = ScriptedSource::with_tools(&["x"]);
    let counter = Counter::new(&[("s", source.clone())]).await;
    let (unlucky, lucky) = (counter.session("2025-11-25").await, counter.session("2025-11-25").await);
    let a = json!({ "uri": "s+test://a" });
    source.refuse_watch.store(true, Ordering::Relaxed);
    let told = counter.legacy(&unlucky, 1, "resources/subscribe", a.clone()).await;
    assert_eq!((told.status, told.code()), (StatusCode::OK, -32603), "{}", told.body);
    source.refuse_watch.store(false, Ordering::Relaxed);
    for _ in 0..2 {
        let told = counter.legacy(&lucky, 1, "resources/subscribe", a.clone()).await;
        assert_eq!(told.json()["result"], json!({}));
    }
    counter.legacy(&unlucky, 2, "resources/unsubscribe", a.clone()).await;
    assert_eq!(watched(&source), [["test://a"]], "still watched for the other");
    counter.legacy(&lucky, 2, "resources/unsubscribe", a).await;
    assert_eq!(watched(&source).last().unwrap().len(), 0);
}
