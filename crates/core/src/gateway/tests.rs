//! Stories told through `Gateway::call` with in-memory ports.

use std::sync::{Arc, atomic::Ordering};

use crate::{
    call::{Invocation, Outcome, Target},
    caller::Caller,
    catalog::Item,
    error::Kind,
    policy::{Layer, Policy, Verdict},
    testing::{ScriptedSource, TestCrib, call, caller},
};

#[tokio::test]
async fn a_call_is_written_down_before_and_after() {
    let crib = TestCrib::new(&[("s", ScriptedSource::with_tools(&["echo"]))]).await;
    let me = caller("me", &["*"], &[]);
    let reply = crib.call(&me, "s:echo", r#"{"n":1, "x" : 1.50}"#).await.unwrap();
    assert_eq!(reply.result.get(), r#"{"n":1, "x" : 1.50}"#, "arguments and results keep their bytes");
    assert_eq!(crib.ledger.opened.lock().unwrap().len(), 1);
    assert_eq!(crib.ledger.outcomes(), ["done"]);
}

#[tokio::test]
async fn without_a_ledger_nothing_happens() {
    let source = ScriptedSource::with_tools(&["echo"]);
    let crib = TestCrib::new(&[("s", source.clone())]).await;
    crib.ledger.broken.store(true, Ordering::Relaxed);
    let failure = crib.call(&caller("me", &["*"], &[]), "s:echo", "{}").await.unwrap_err();
    assert_eq!(failure.kind, Kind::LedgerDown);
    assert!(source.invoked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_hidden_tool_is_told_as_unknown_and_recorded_as_denied() {
    let source = ScriptedSource::with_tools(&["echo", "secret"]);
    let crib = TestCrib::new(&[("s", source.clone())]).await;
    let me = caller("me", &["s:*"], &["s:secret"]);
    for spelling in ["s:secret", "s__secret", "secret"] {
        let hidden = crib.call(&me, spelling, r#"{"n":"not a number"}"#).await.unwrap_err();
        let absent = crib.call(&me, &format!("{spelling}x"), "{}").await.unwrap_err();
        assert_eq!(hidden.kind, Kind::Unknown);
        assert_eq!(hidden.told.replace(spelling, ""), absent.told.replace(&format!("{spelling}x"), ""));
    }
    assert_eq!(crib.ledger.outcomes(), ["denied", "unknown", "denied", "unknown", "denied", "unknown"]);
    assert!(source.invoked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn arguments_that_do_not_fit_never_reach_the_source() {
    let source = ScriptedSource::with_tools(&["echo"]);
    let crib = TestCrib::new(&[("s", source.clone())]).await;
    let failure = crib.call(&caller("me", &["*"], &[]), "echo", r#"{"n":"x"}"#).await.unwrap_err();
    assert_eq!(failure.kind, Kind::InvalidArguments);
    assert!(failure.told.contains("/n"), "{}", failure.told);
    assert!(source.invoked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_ledger_keeps_no_arguments_not_even_wrong_ones() {
    let crib = TestCrib::new(&[("s", ScriptedSource::with_tools(&["echo"]))]).await;
    let failure = crib.call(&caller("me", &["*"], &[]), "echo", r#"{"n":"hunter2"}"#).await.unwrap_err();
    assert!(failure.told.contains("hunter2"), "the caller is told what it sent");
    assert!(!format!("{:?}", crib.ledger.closed.lock().unwrap()).contains("hunter2"));
}

#[tokio::test]
async fn every_spelling_means_the_same_tool_and_a_shared_one_must_be_qualified() {
    let (a, b) =
        (ScriptedSource::with_tools(&["a-echo", "echo"]), ScriptedSource::with_tools(&["echo", "b_only"]));
    let crib = TestCrib::new(&[("a", a), ("b", b.clone())]).await;
    let me = caller("me", &["*"], &[]);
    for spelling in ["b:only", "b__only", "only", "b_only", "b:b_only"] {
        assert!(crib.call(&me, spelling, "{}").await.is_ok(), "{spelling}");
    }
    assert_eq!(*b.invoked.lock().unwrap(), ["b_only"; 5], "the source is called by its own name");
    let failure = crib.call(&me, "echo", "{}").await.unwrap_err();
    assert_eq!(failure.kind, Kind::Ambiguous);
    assert!(failure.told.contains("`a:echo`") && failure.told.contains("`b:echo`"), "{}", failure.told);
    let only_b = caller("only-b", &["b:*"], &[]);
    assert!(crib.call(&only_b, "echo", "{}").await.is_ok(), "what one cannot see does not confuse");
}

#[tokio::test]
async fn silence_ends_a_call_and_progress_keeps_it_alive() {
    let source = ScriptedSource::with_tools(&["hang", "chatty"]);
    let crib = TestCrib::new(&[("s", source.clone())]).await;
    let me = caller("me", &["*"], &[]);
    assert_eq!(crib.call(&me, "hang", "{}").await.unwrap_err().kind, Kind::Timeout);
    assert_eq!(source.cancelled.load(Ordering::Relaxed), 1, "the source is told");
    assert!(crib.call(&me, "chatty", "{}").await.is_ok(), "200 ms of work, never 100 ms of silence");
    assert_eq!(crib.ledger.outcomes(), ["timeout", "done"]);
}

#[tokio::test]
async fn a_caller_that_leaves_does_not_skip_the_record() {
    let source = ScriptedSource::with_tools(&["chatty", "hang"]);
    let crib = TestCrib::new(&[("s", source.clone())]).await;
    let me = caller("me", &["*"], &[]);
    drop(crib.gateway.call(call(&me, "chatty", "{}")));
    let running = crib.gateway.call(call(&me, "hang", "{}"));
    running.cancel.cancel();
    assert_eq!(running.finish().await.unwrap_err().kind, Kind::Cancelled);
    while crib.ledger.outcomes().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(crib.ledger.outcomes(), ["cancelled", "done"]);
}

#[tokio::test]
async fn a_tool_that_fails_says_so_in_the_record() {
    let crib = TestCrib::new(&[("s", ScriptedSource::with_tools(&["fail"]))]).await;
    let reply = crib.call(&caller("me", &["*"], &[]), "fail", "{}").await.unwrap();
    assert_eq!(reply.outcome, Outcome::ToolError);
    assert_eq!(crib.ledger.outcomes(), ["tool_error"]);
}

#[tokio::test]
async fn one_dead_source_does_not_hide_the_others() {
    let dead = ScriptedSource::with_tools(&["x"]);
    dead.refuse.store(true, Ordering::Relaxed);
    let crib = TestCrib::new(&[("dead", dead), ("well", ScriptedSource::with_tools(&["echo"]))]).await;
    crib.gateway.supervisor().ensure_known().await;
    let snapshot = crib.gateway.catalog().snapshot();
    let ids: Vec<_> = snapshot.tools().entries().iter().map(|entry| entry.item.id.to_string()).collect();
    assert_eq!(ids, ["well:echo"]);
    let status = crib.gateway.supervisor().statuses();
    assert_eq!(status[0].last_error.as_deref(), Some("nobody home"));
}

#[tokio::test]
async fn many_callers_share_one_connection() {
    let source = ScriptedSource::with_tools(&["echo"]);
    let crib = TestCrib::new(&[("s", source.clone())]).await;
    let me = caller("me", &["*"], &[]);
    let running: Vec<_> = (0..8).map(|_| crib.gateway.call(call(&me, "echo", "{}"))).collect();
    for one in running {
        one.finish().await.unwrap();
    }
    assert_eq!(source.dials.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn over_the_cap_is_an_error_and_not_a_queue() {
    let crib = TestCrib::new(&[("s", ScriptedSource::with_tools(&["hang", "echo"]))]).await;
    let me = caller("me", &["*"], &[]);
    let running: Vec<_> = (0..8).map(|_| crib.gateway.call(call(&me, "hang", "{}"))).collect();
    while crib.gateway.roster().calls().len() < 8 {
        tokio::task::yield_now().await;
    }
    tokio::task::yield_now().await;
    assert_eq!(crib.call(&me, "echo", "{}").await.unwrap_err().kind, Kind::Overloaded);
    crib.gateway.roster().cancel_all();
    for one in running {
        assert!(one.finish().await.is_err());
    }
}

/// A layer that wants a person's yes for everything.
struct AskAlways;

impl Layer for AskAlways {
    fn name(&self) -> &'static str {
        "ask-always"
    }
    fn shows(&self, _: &Caller, _: &Item) -> bool {
        true
    }
    fn judges(&self, _: &Invocation) -> Verdict {
        Verdict::Ask("it is Friday".into())
    }
}

/// A layer that refuses everything it is asked about.
struct Refuse;

impl Layer for Refuse {
    fn name(&self) -> &'static str {
        "refuse"
    }
    fn shows(&self, _: &Caller, _: &Item) -> bool {
        true
    }
    fn judges(&self, _: &Invocation) -> Verdict {
        Verdict::Deny("never".into())
    }
}

#[tokio::test]
async fn silence_is_a_no_and_the_strictest_layer_wins() {
    let source = ScriptedSource::with_tools(&["echo"]);
    let me = caller("me", &["*"], &[]);
    let asking =
        TestCrib::with_policy(&[("s", source.clone())], Policy::new(vec![Box::new(AskAlways)])).await;
    assert_eq!(asking.call(&me, "echo", "{}").await.unwrap_err().kind, Kind::ApprovalRequired);
    let layers: Vec<Box<dyn Layer>> = vec![Box::new(AskAlways), Box::new(Refuse)];
    let both = TestCrib::with_policy(&[("s", source.clone())], Policy::new(layers)).await;
    let failure = both.call(&me, "echo", "{}").await.unwrap_err();
    assert_eq!((failure.kind, failure.layer), (Kind::Denied, Some("refuse")));
    assert!(source.invoked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_unknown_method_goes_to_the_only_source_there_is() {
    let (a, b) = (ScriptedSource::with_tools(&["x"]), ScriptedSource::with_tools(&["x"]));
    let me = caller("me", &["*"], &[]);
    let ask = |crib: &TestCrib| {
        let target = Target::Method { source: None, method: "vendor/thing".into() };
        let call = crate::call::Call::new(me.clone(), crate::call::Surface::Cli, target, None);
        crib.gateway.call(call).finish()
    };
    let one = TestCrib::new(&[("a", a.clone())]).await;
    assert!(ask(&one).await.is_ok());
    assert_eq!(*a.invoked.lock().unwrap(), ["vendor/thing"]);
    let two = TestCrib::new(&[("a", a), ("b", Arc::clone(&b))]).await;
    assert_eq!(ask(&two).await.unwrap_err().kind, Kind::Unknown);
}
