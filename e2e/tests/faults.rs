//! Sources that misbehave, among others that do not: the others never notice, and what is wrong can be seen.

#![allow(clippy::indexing_slicing, reason = "a test that finds nothing where it looks has to fail")]

use std::time::Duration;

use anyhow::{Context as _, Result};
use e2e::crib::Crib;
use e2e::patience::eventually;
use e2e::program;
use e2e::session::Session;
use e2e::upstream::Fixture;
use e2e::wire::{names, text};
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use tokio::time::Instant;

/// The crib waits 3 s for sources it is still connecting; the rest is for a busy machine.
const LISTED_WITHIN: Duration = Duration::from_secs(6);

/// What needs no source has no reason to wait for one.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Good sources start beside each other on few cores.
const ALL_THERE: Duration = Duration::from_secs(30);

fn fixture(arguments: &str) -> Result<String> {
    Ok(format!("command: {}, args: [{arguments}]", program::path("fixture")?.display()))
}

/// What `/servers` says of one source.
async fn server(crib: &Crib, id: &str) -> Result<Value> {
    crib.told(&format!("/servers/{id}")).await
}

/// Waits until a source has failed, and gives its last error.
async fn failure(crib: &Crib, id: &str) -> Result<String> {
    eventually(&format!("`{id}` to be told as failed"), ALL_THERE, async || {
        let told = server(crib, id).await?;
        let error = told["lastError"].as_str().map(ToOwned::to_owned);
        Ok(error.filter(|_| told["state"] == "failed"))
    })
    .await
}

/// Waits until a tool of each of these is listed.
async fn listed(crib: &Crib, sources: &[String]) -> Result<()> {
    eventually("every good source to be listed", ALL_THERE, async || {
        let list = crib.ask("tools/list", json!({})).await?;
        let there = names(&list);
        let all = sources.iter().all(|id| there.contains(&format!("{id}__echo").as_str()));
        Ok(all.then_some(()))
    })
    .await
}

/// Sixteen good sources and four bad ones, none of them connected yet.
async fn twenty() -> Result<(Crib, Vec<String>)> {
    let good: Vec<String> = (1..=16).map(|number| format!("good{number}")).collect();
    let mut config = "limits: { connect: 2s }\nservers:\n".to_owned();
    for (id, fault) in [("dead", "dead"), ("hangs", "hang"), ("garbage", "garbage"), ("dies", "die-mid-call")]
    {
        config += &format!("  {id}: {{ {} }}\n", fixture(&format!("--fault, {fault}"))?);
    }
    for (number, id) in good.iter().enumerate() {
        // Two that can take their time, and small ones.
        let arguments = if number < 2 { "--stdio" } else { "--raw, --stdio" };
        config += &format!("  {id}: {{ {} }}\n", fixture(arguments)?);
    }
    Ok((Crib::serve(&config).await?, good))
}

#[tokio::test]
async fn four_bad_sources_of_twenty_do_not_hold_up_the_rest() -> Result<()> {
    let (crib, good) = twenty().await?;
    let begun = Instant::now();
    crib.ask("server/discover", json!({})).await?;
    let session = Session::open(&crib.mcp).await?;
    assert!(begun.elapsed() < AT_ONCE, "discover and initialize took {:?}", begun.elapsed());
    let begun = Instant::now();
    let (new, old) =
        tokio::join!(crib.ask("tools/list", json!({})), session.request("tools/list", json!({})));
    assert!(begun.elapsed() < LISTED_WITHIN, "the lists took {:?}", begun.elapsed());
    assert!(names(&new?).contains(&"crib__list_sources") && names(&old?).contains(&"crib__list_sources"));
    listed(&crib, &good).await?;

    // Calls run beside each other, and beside one that takes its source down.
    let begun = Instant::now();
    let slow = (0..16).map(|number| {
        let tool = format!("good{}__sleep", number % 2 + 1);
        let crib = &crib;
        async move { crib.call(&tool, json!({ "ms": 400 })).await }
    });
    let quick = good.iter().map(|id| {
        let (tool, crib) = (format!("{id}__echo"), &crib);
        async move { crib.call(&tool, json!({ "text": id })).await }
    });
    let (slow, quick, boom) =
        tokio::join!(try_join_all(slow), try_join_all(quick), crib.call("dies__boom", json!({})));
    assert!(slow?.iter().all(|result| text(result) == "slept 400 ms"));
    assert!(quick?.iter().zip(&good).all(|(result, id)| text(result) == id));
    // Sixteen sleeps in a row would take 6.4 s.
    assert!(begun.elapsed() < Duration::from_secs(4), "the calls took {:?}", begun.elapsed());
    assert!(boom.is_err(), "{boom:?}");
    Ok(())
}

#[tokio::test]
async fn what_is_wrong_with_a_source_can_be_seen() -> Result<()> {
    let (crib, good) = twenty().await?;
    listed(&crib, &good).await?;
    assert!(failure(&crib, "dead").await?.contains("dead on arrival"), "its own last words are told");
    assert!(!failure(&crib, "garbage").await?.is_empty());
    let told = failure(&crib, "hangs").await?;
    assert!(told.contains("2s") || told.contains("2 s"), "the limit that was passed is named: {told}");
    for id in ["dead", "hangs", "garbage"] {
        let called = crib.call(&format!("{id}__echo"), json!({})).await;
        assert!(called.is_err(), "{id}: {called:?}");
    }
    // One that dies in a call is told as dead, and started again when it is wanted.
    let first = server(&crib, "dies").await?["pid"].as_u64().context("it runs")?;
    assert!(crib.call("dies__boom", json!({})).await.is_err());
    let told = eventually("the death to be told", ALL_THERE, async || {
        Ok(server(&crib, "dies").await?["lastError"].as_str().map(ToOwned::to_owned))
    });
    assert!(told.await?.contains('3'), "the exit code is told");
    let again = eventually("it to be started again", ALL_THERE, async || {
        // The tool may be unknown while its source is gone.
        let _ = crib.call("dies__boom", json!({})).await;
        let outcomes = crib.told("/calls?finished=2&source=dies").await?;
        Ok(Some(outcomes["entries"].as_array().map_or(0, Vec::len)).filter(|count| *count == 2))
    });
    again.await.with_context(|| format!("after {first}"))?;
    let health = crib.told("/health").await?;
    assert_eq!((&health["live"], &health["sources"]["dead"]), (&json!(true), &json!("failed")));
    Ok(())
}

#[tokio::test]
async fn the_same_faults_over_http() -> Result<()> {
    let at = |fault: &'static str| async move {
        Fixture::with(&["--http", "127.0.0.1:0", "--fault", fault]).await.map(|fixture| (fault, fixture))
    };
    let bad = try_join_all(["dead", "hang", "garbage", "die-mid-call"].map(at)).await?;
    let good = Fixture::http().await?;
    let mut config = format!("limits: {{ connect: 2s }}\nservers:\n  good1: {{ url: \"{}\" }}\n", good.url);
    for (fault, fixture) in &bad {
        config += &format!("  {fault}: {{ url: \"{}\" }}\n", fixture.url);
    }
    let crib = Crib::serve(&config).await?;
    let begun = Instant::now();
    let list = crib.ask("tools/list", json!({})).await?;
    assert!(begun.elapsed() < LISTED_WITHIN, "{:?}", begun.elapsed());
    assert!(names(&list).contains(&"good1__echo"), "{list}");
    for id in ["dead", "hang", "garbage"] {
        assert!(!failure(&crib, id).await?.is_empty());
    }
    let (boom, echoed) = tokio::join!(
        crib.call("die-mid-call__boom", json!({})),
        crib.call("good1__echo", json!({ "text": "here" }))
    );
    assert!(boom.is_err(), "{boom:?}");
    assert_eq!(text(&echoed?), "here");
    Ok(())
}

#[tokio::test]
async fn a_malformed_tool_costs_only_itself() -> Result<()> {
    let crib = Crib::serve(&format!("servers:\n  bad: {{ {} }}\n", fixture("--fault, bad-tool")?)).await?;
    let list = crib.ask("tools/list", json!({})).await?;
    let bad: Vec<&str> = names(&list).into_iter().filter(|name| name.starts_with("bad__")).collect();
    assert_eq!(bad, ["bad__good_one", "bad__good_two"]);
    let told = server(&crib, "bad").await?;
    assert_eq!((&told["state"], &told["tools"]), (&json!("ready"), &json!(2)));
    assert_eq!(told["warnings"].as_array().map(Vec::len), Some(1), "{told}");
    Ok(())
}

#[tokio::test]
async fn a_slow_list_is_not_waited_for() -> Result<()> {
    let slow = fixture("--fault, slow-list")?;
    let crib =
        Crib::serve(&format!("servers:\n  good1: {{ {} }}\n  slow: {{ {slow} }}\n", fixture("--stdio")?))
            .await?;
    let begun = Instant::now();
    let list = crib.ask("tools/list", json!({})).await?;
    assert!(begun.elapsed() < LISTED_WITHIN, "{:?}", begun.elapsed());
    assert!(names(&list).contains(&"good1__echo"));
    // Once is enough: the next list does not wait for it again.
    let begun = Instant::now();
    crib.ask("tools/list", json!({})).await?;
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    Ok(())
}

/// The most memory a process ever held, in MiB.
fn peak_mib(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).context("no `VmHWM`")?;
    let kib: u64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
    Ok(kib / 1024)
}

#[tokio::test]
async fn a_flood_is_refused_and_not_swallowed() -> Result<()> {
    let http = Fixture::with(&["--http", "127.0.0.1:0", "--fault", "flood"]).await?;
    let flood = fixture("--fault, flood")?;
    let crib = Crib::serve(&format!(
        "servers:\n  good1: {{ {} }}\n  flood: {{ {flood} }}\n  far: {{ url: \"{}\" }}\n",
        fixture("--stdio")?,
        http.url
    ))
    .await?;
    crib.ask("tools/list", json!({})).await?;
    for id in ["flood", "far"] {
        let told = failure(&crib, id).await?;
        assert!(told.contains("over the limit"), "{told}");
    }
    assert_eq!(text(&crib.call("good1__echo", json!({ "text": "dry" })).await?), "dry");
    let peak = peak_mib(crib.child.id().context("it runs")?)?;
    assert!(peak < 300, "the crib held {peak} MiB");
    Ok(())
}
