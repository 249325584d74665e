//! What an old source is asked to remember, and sources that never answer that.

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;
use tokio::time::timeout;
use toolcrib_core::{call::Level, error::Kind};

use crate::stage::{Stage, connect, peer};

fn set(uris: &[&str]) -> BTreeSet<String> {
    uris.iter().map(|uri| (*uri).to_owned()).collect()
}

async fn uris(stage: &Stage, method: &str) -> Vec<String> {
    let asked: Vec<Value> = stage.seen_of(method).await;
    asked.iter().map(|message| message["params"]["uri"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_source_that_never_answers_keeps_nobody_waiting() {
    let stage = connect(&peer("mute")).await.unwrap();
    tokio::time::pause();
    let both = async {
        tokio::join!(
            stage.connection.watch(set(&["a:silent"])),
            stage.connection.hear(Level::Emergency),
            stage.connection.watch(set(&["a:1", "a:silent"])),
        )
    };
    let (_, level, _) = timeout(Duration::from_secs(60), both).await.unwrap();
    assert_eq!(level.unwrap_err().kind, Kind::Timeout);
    tokio::time::resume();
    // Everything else goes on, and what was refused is not asked for again because of it.
    stage.connection.watch(set(&["a:1", "a:2", "a:silent"])).await.unwrap();
    stage.connection.hear(Level::Debug).await.unwrap();
    let mut asked = uris(&stage, "resources/subscribe").await;
    asked.sort();
    assert_eq!(asked, ["a:1", "a:2", "a:silent"]);
    stage.connection.close().await;
}

#[tokio::test]
async fn a_resource_that_was_refused_is_asked_for_again_when_it_is_wanted_again() {
    let stage = connect(&peer("mute")).await.unwrap();
    for _ in 0..2 {
        tokio::time::pause();
        let watching = timeout(Duration::from_secs(60), stage.connection.watch(set(&["a:silent"])));
        assert_eq!(watching.await.unwrap().unwrap_err().kind, Kind::Timeout);
        tokio::time::resume();
        stage.connection.watch(set(&[])).await.unwrap();
    }
    assert_eq!(uris(&stage, "resources/subscribe").await, ["a:silent", "a:silent"]);
    stage.connection.close().await;
}

#[tokio::test]
async fn the_last_set_wins() {
    let stage = connect(&peer("legacy")).await.unwrap();
    let sets = [set(&["a:1"]), set(&["a:2"]), set(&["a:3"]), set(&["a:2", "a:4"])];
    let all = futures_util::future::join_all(sets.map(|uris| stage.connection.watch(uris)));
    assert!(all.await.into_iter().all(|watched| watched.is_ok()));
    let (on, off) = (uris(&stage, "resources/subscribe").await, uris(&stage, "resources/unsubscribe").await);
    let count = |list: &[String], uri: &str| list.iter().filter(|other| *other == uri).count();
    for (uri, standing) in [("a:1", 0), ("a:2", 1), ("a:3", 0), ("a:4", 1)] {
        assert_eq!(count(&on, uri) - count(&off, uri), standing, "{uri}: {on:?} {off:?}");
    }
    stage.connection.close().await;
}

#[tokio::test]
async fn closing_ends_the_waiting_for_an_answer() {
    let stage = connect(&peer("mute")).await.unwrap();
    let (watched, ()) = tokio::join!(stage.connection.watch(set(&["a:silent"])), async {
        while uris(&stage, "resources/subscribe").await.is_empty() {}
        stage.connection.close().await;
    });
    assert_eq!(watched.unwrap_err().kind, Kind::Unavailable);
}
