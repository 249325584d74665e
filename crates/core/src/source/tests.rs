//! Stories of sources that are changed, stopped and lost at the worst moments.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use crate::{
    error::Kind,
    id::SourceId,
    source::{State, terms::Watch},
    testing::{ScriptedSource, TestCrib, spec},
};

const A_WHILE: Duration = Duration::from_millis(100);

fn id() -> SourceId {
    SourceId::new("s").unwrap()
}

/// The clock of these tests stands still; this moves it on and lets everybody do what was due.
async fn later(duration: Duration) {
    tokio::time::advance(duration).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

fn listed(crib: &TestCrib) -> Vec<String> {
    let catalog = crib.gateway.catalog().snapshot();
    catalog.tools().entries().iter().map(|entry| entry.item.id.to_string()).collect()
}

fn state(crib: &TestCrib) -> State {
    crib.gateway.supervisor().status(&id()).unwrap().state
}

#[tokio::test(start_paused = true)]
async fn an_edited_source_is_listed_even_while_the_old_one_is_still_closing() {
    let old = ScriptedSource::with_tools(&["old"]);
    let crib = TestCrib::new(&[("s", old.clone())]).await;
    let supervisor = crib.gateway.supervisor();
    supervisor.ensure_known().await;
    *old.slow.lock().unwrap() = A_WHILE;
    let mut edited = spec("s", &ScriptedSource::with_tools(&["new"]));
    edited.dial_print = "another".into();
    supervisor.apply(vec![edited]);
    assert!(listed(&crib).is_empty(), "the old tools are gone at once");
    supervisor.ensure_known().await;
    assert_eq!(listed(&crib), ["s:new"]);
    later(2 * A_WHILE).await;
    assert_eq!(listed(&crib), ["s:new"], "and stay when the old one has closed");
    assert_eq!(old.open.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_source_removed_while_it_connects_does_not_come_back() {
    let source = ScriptedSource::with_tools(&["x"]);
    *source.slow.lock().unwrap() = A_WHILE;
    let crib = TestCrib::new(&[("s", source.clone())]).await;
    let supervisor = crib.gateway.supervisor().clone();
    let connecting = tokio::spawn({
        let supervisor = supervisor.clone();
        async move { supervisor.connect(&id()).await }
    });
    tokio::task::yield_now().await;
    assert_eq!(state(&crib), State::Connecting);
    supervisor.apply(Vec::new());
    assert_eq!(connecting.await.unwrap().unwrap_err().kind, Kind::Unavailable);
    later(3 * A_WHILE).await;
    assert!(listed(&crib).is_empty());
    assert_eq!(source.open.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lost_source_stays_listed_and_an_operators_stop_stays_a_stop() {
    let source = ScriptedSource::with_tools(&["x"]);
    let crib = TestCrib::new(&[("s", source.clone())]).await;
    let supervisor = crib.gateway.supervisor();
    supervisor.connect(&id()).await.unwrap();
    *source.slow.lock().unwrap() = A_WHILE;
    tokio::task::yield_now().await;
    source.lose.notify_waiters();
    while state(&crib) != State::Idle {
        tokio::task::yield_now().await;
    }
    assert_eq!(listed(&crib), ["s:x"], "the next call connects again");
    supervisor.disconnect(&id()).await.unwrap();
    later(2 * A_WHILE).await;
    assert_eq!(state(&crib), State::Stopped, "the loss that was still being cleared away changed nothing");
    assert!(listed(&crib).is_empty());
}

#[tokio::test]
async fn watchers_are_counted_and_a_refused_one_is_not() {
    let source = ScriptedSource::with_tools(&["x"]);
    let crib = TestCrib::new(&[("s", source.clone())]).await;
    let supervisor = crib.gateway.supervisor();
    supervisor.watch(&id(), "u://1", Watch::More).await.unwrap();
    supervisor.watch(&id(), "u://1", Watch::More).await.unwrap();
    source.refuse_watch.store(true, Ordering::Relaxed);
    assert!(supervisor.watch(&id(), "u://2", Watch::More).await.is_err());
    source.refuse_watch.store(false, Ordering::Relaxed);
    supervisor.watch(&id(), "u://1", Watch::Fewer).await.unwrap();
    assert_eq!(
        source.watched.lock().unwrap().len(),
        1,
        "told once, the second watcher and its leaving change nothing"
    );
    supervisor.watch(&id(), "u://1", Watch::Fewer).await.unwrap();
    assert!(source.watched.lock().unwrap().last().unwrap().is_empty());
}

#[tokio::test]
async fn terms_take_hold_without_a_new_connection() {
    let source = ScriptedSource::with_tools(&["x", "y"]);
    let crib = TestCrib::new(&[("s", source.clone())]).await;
    let supervisor = crib.gateway.supervisor();
    supervisor.ensure_known().await;
    let mut edited = spec("s", &source);
    edited.terms_print = "another".into();
    let mut shelf = (*edited.terms.shelf).clone();
    shelf.hide = crate::policy::globs(&["y".into()]).unwrap();
    edited.terms.shelf = Arc::new(shelf);
    supervisor.apply(vec![edited]);
    assert_eq!(listed(&crib), ["s:x"]);
    assert_eq!(source.dials.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn watchers_follow_a_source_that_is_changed() {
    let (old, new) = (ScriptedSource::with_tools(&["x"]), ScriptedSource::with_tools(&["x"]));
    let crib = TestCrib::new(&[("s", old)]).await;
    let supervisor = crib.gateway.supervisor();
    supervisor.watch(&id(), "u://1", Watch::More).await.unwrap();
    let mut edited = spec("s", &new);
    edited.dial_print = "another".into();
    supervisor.apply(vec![edited]);
    while new.watched.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    supervisor.watch(&id(), "u://1", Watch::More).await.unwrap();
    supervisor.watch(&id(), "u://1", Watch::Fewer).await.unwrap();
    let told = new.watched.lock().unwrap().clone();
    assert!(told.last().unwrap().contains("u://1"), "the one who came later is not cut off: {told:?}");
}

#[tokio::test]
async fn a_disabled_source_is_not_started_by_a_restart() {
    let source = ScriptedSource::with_tools(&["x"]);
    let crib = TestCrib::new(&[]).await;
    let mut off = spec("s", &source);
    off.terms.enabled = false;
    crib.gateway.supervisor().apply(vec![off]);
    assert!(crib.gateway.supervisor().restart(&id()).await.is_err());
    assert_eq!((state(&crib), source.dials.load(Ordering::Relaxed)), (State::Disabled, 0));
}

#[tokio::test(start_paused = true)]
async fn a_source_that_comes_up_only_to_go_down_is_waited_for_longer_each_time() {
    let source = ScriptedSource::with_tools(&["x"]);
    let crib = TestCrib::new(&[]).await;
    let mut always = spec("s", &source);
    always.terms.mode = crate::source::ConnectMode::Always;
    crib.gateway.supervisor().apply(vec![always]);
    for _ in 0..600 {
        later(Duration::from_millis(100)).await;
        source.lose.notify_waiters();
    }
    let dials = source.dials.load(Ordering::Relaxed);
    assert!((3..=10).contains(&dials), "{dials} times in a minute");
}
