//! Processes that misbehave, and how they end.

use std::{path::Path, time::Duration};

use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use toolcrib_core::{call::Events, error::Kind};

use crate::stage::{connect, peer, tool};

fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

async fn dies(pid: &str) {
    timeout(Duration::from_secs(10), async {
        while lives(pid) {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn when_a_process_dies_every_open_call_fails_at_once_and_none_hears_what_it_said() {
    let stage = connect(&peer("legacy")).await.unwrap();
    let began = Instant::now();
    let (one, two) = tokio::join!(stage.run(tool("hang", "{}")), stage.run(tool("die", "{}")));
    assert!(began.elapsed() < Duration::from_secs(5));
    for failure in [one.unwrap_err(), two.unwrap_err()] {
        assert_eq!(failure.kind, Kind::Unavailable);
        assert!(failure.told.contains("exit status: 7"), "{}", failure.told);
        // What a server says last may be the arguments of another caller.
        assert!(!format!("{failure:?}").contains("the cat ate the wires"), "{failure:?}");
    }
    let why = stage.connection.lost().await;
    assert!(why.contains("exit status: 7") && why.contains("the cat ate the wires"), "{why}");
    let late = stage.run(tool("raw", "{}")).await.unwrap_err();
    assert_eq!(late.kind, Kind::Unavailable);
    assert!(!format!("{late:?}").contains("the cat ate the wires"), "{late:?}");
    stage.connection.close().await;
}

#[tokio::test]
async fn a_line_over_the_limit_ends_the_connection() {
    let stage = connect(&peer("huge")).await.unwrap();
    let failure = stage.connection.offer().await.unwrap_err();
    assert_eq!(failure.kind, Kind::TooLarge);
    assert!(stage.connection.lost().await.contains("too large"));
    stage.connection.close().await;
}

#[tokio::test]
async fn some_garbage_is_skipped_and_much_is_the_end() {
    let stage = connect(&peer("legacy")).await.unwrap();
    assert_eq!(stage.text("garbage", r#"{"lines":99}"#).await, "done");
    assert_eq!(stage.text("garbage", r#"{"lines":99}"#).await, "done");
    let failure = stage.run(tool("garbage", r#"{"lines":100}"#)).await.unwrap_err();
    assert!(failure.told.contains("garbage"), "{}", failure.told);
    stage.connection.close().await;
}

#[tokio::test]
async fn closing_ends_the_whole_group() {
    let stage = connect(&peer("legacy")).await.unwrap();
    let own = stage.connection.facts().pid.unwrap().to_string();
    let litter = stage.text("litter", "{}").await;
    assert!(lives(&own) && lives(&litter));
    stage.connection.close().await;
    dies(&own).await;
    dies(&litter).await;
}

#[tokio::test]
async fn letting_go_of_a_connection_ends_its_process_too() {
    let stage = connect(&peer("legacy")).await.unwrap();
    let own = stage.connection.facts().pid.unwrap().to_string();
    let litter = stage.text("litter", "{}").await;
    drop(stage);
    dies(&own).await;
    dies(&litter).await;
}

#[tokio::test]
async fn a_process_that_does_not_want_to_leave_is_killed() {
    let stage = connect(&peer("stubborn")).await.unwrap();
    let own = stage.connection.facts().pid.unwrap().to_string();
    timeout(Duration::from_secs(10), stage.connection.close()).await.unwrap();
    dies(&own).await;
}

#[tokio::test]
async fn a_call_that_is_called_off_is_called_off_at_the_source() {
    let stage = connect(&peer("legacy")).await.unwrap();
    // By dropping the future.
    let _ =
        timeout(Duration::from_millis(200), stage.run(tool("hang", r#"{"by":"drop"}"#))).await.unwrap_err();
    // By the token.
    let cancel = CancellationToken::new();
    let (events, _heard) = Events::channel();
    let call = stage.connection.invoke(tool("hang", r#"{"by":"token"}"#), events, cancel.clone());
    let (failure, ()) = tokio::join!(call, async {
        // The source has the call once it answers a later one.
        stage.seen().await;
        cancel.cancel();
    });
    assert_eq!(failure.unwrap_err().kind, Kind::Cancelled);
    let seen = stage.seen().await;
    let hung: Vec<_> = seen.iter().filter(|m| m["params"]["name"] == "hang").map(|m| &m["id"]).collect();
    let off: Vec<_> = seen
        .iter()
        .filter(|m| m["method"] == "notifications/cancelled")
        .map(|m| &m["params"]["requestId"])
        .collect();
    assert_eq!((hung.len(), &hung), (2, &off));
    stage.connection.close().await;
}
