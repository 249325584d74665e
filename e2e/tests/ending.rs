//! How a crib ends and comes back: asked to, killed, restarted under a client that stays.

#![allow(clippy::indexing_slicing, reason = "a test that finds nothing where it looks has to fail")]

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use e2e::crib::Crib;
use e2e::patience::eventually;
use e2e::program;
use e2e::session::Stream;
use e2e::wire::{PATIENCE, Pipe, modern_meta, names, text};
use serde_json::{Value, json};
use tokio::process::Command;

async fn with_fixture() -> Result<Crib> {
    let fixture = program::path("fixture")?;
    Crib::serve(&format!("servers:\n  fx: {{ command: {}, args: [--stdio] }}\n", fixture.display())).await
}

/// A call that sleeps, already under way.
async fn sleeping(crib: &Crib, ms: u32) -> Result<Stream> {
    let mut meta = modern_meta();
    meta["progressToken"] = json!(1);
    let params = json!({ "name": "fx__sleep", "arguments": { "ms": ms }, "_meta": meta });
    let mut stream = Stream::modern(&crib.mcp, "tools/call", params).await?;
    stream.told("notifications/progress").await?;
    Ok(stream)
}

async fn pid_of_fixture(crib: &Crib) -> Result<u64> {
    crib.told("/servers/fx").await?["pid"].as_u64().context("the fixture runs")
}

async fn is_gone(pid: u64) -> Result<()> {
    eventually(&format!("process {pid} to be gone"), PATIENCE, async || {
        Ok((!Path::new(&format!("/proc/{pid}")).exists()).then_some(()))
    })
    .await
}

#[tokio::test]
async fn asked_to_end_it_finishes_what_runs_and_leaves_nothing_behind() -> Result<()> {
    let mut crib = with_fixture().await?;
    let mut running = sleeping(&crib, 1_000).await?;
    let child = pid_of_fixture(&crib).await?;
    let (ended, answered) = tokio::join!(crib.child.stop(), running.result());
    assert_eq!(text(&answered?), "slept 1000 ms");
    assert_eq!(ended?.code(), Some(0));
    is_gone(child).await?;
    // It is in the ledger as any other call.
    let crib = crib.serve_again().await?;
    let calls = crib.told("/calls?finished=1").await?;
    assert_eq!(calls["entries"][0]["outcome"], "done", "{calls}");
    Ok(())
}

#[tokio::test]
async fn asked_to_end_it_does_not_wait_for_ever() -> Result<()> {
    let fixture = program::path("fixture")?;
    let mut crib = Crib::serve(&format!(
        "limits: {{ shutdown: 500ms }}\nservers:\n  fx: {{ command: {}, args: [--stdio], timeout: 10m }}\n",
        fixture.display()
    ))
    .await?;
    let _running = sleeping(&crib, 600_000).await?;
    let child = pid_of_fixture(&crib).await?;
    let begun = tokio::time::Instant::now();
    assert_eq!(crib.child.stop().await?.code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    is_gone(child).await?;
    let crib = crib.serve_again().await?;
    let calls = crib.told("/calls?finished=1").await?;
    assert_eq!(calls["entries"][0]["outcome"], "cancelled", "{calls}");
    Ok(())
}

#[tokio::test]
async fn killed_in_the_middle_of_a_call_it_says_so_afterwards() -> Result<()> {
    let mut crib = with_fixture().await?;
    crib.call("fx__echo", json!({ "text": "before" })).await?;
    let _running = sleeping(&crib, 60_000).await?;
    let child = pid_of_fixture(&crib).await?;
    crib.child.kill().await?;
    is_gone(child).await?;

    let crib = crib.serve_again().await?;
    let calls = crib.told("/calls?finished=10").await?;
    let told = |entry: &Value| (entry["item"].clone(), entry["progress"].clone(), entry["outcome"].clone());
    let entries: Vec<_> = calls["entries"].as_array().context("a list")?.iter().map(told).collect();
    assert_eq!(entries.len(), 2, "{calls}");
    assert_eq!(entries[0].1, "unfinished", "{calls}");
    assert_eq!((&entries[1].0, &entries[1].2), (&json!("fx:echo"), &json!("done")), "{calls}");
    let listed = crib.home.command(&["audit", "list", "--json"])?.output().await?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("unfinished"), "{listed}");
    // And it works as before.
    assert_eq!(text(&crib.call("fx__echo", json!({ "text": "after" })).await?), "after");
    Ok(())
}

fn bridge_to(crib: &Crib) -> Result<Pipe> {
    let mut command = Command::new(program::path("toolcrib-bridge")?);
    command.arg(&crib.mcp);
    Pipe::open(command)
}

fn echo(word: &str) -> Value {
    json!({ "name": "fx__echo", "arguments": { "text": word } })
}

fn modern(mut params: Value) -> Value {
    params["_meta"] = modern_meta();
    params
}

/// The next message of this method, among those already heard and those to come.
async fn told(pipe: &mut Pipe, method: &str) -> Result<Value> {
    loop {
        let message = if pipe.heard.is_empty() { pipe.next().await? } else { pipe.heard.remove(0) };
        if message["method"] == method {
            return Ok(message);
        }
    }
}

const CHANGED: &str = "notifications/tools/list_changed";

#[tokio::test]
async fn a_bridged_session_outlives_its_crib() -> Result<()> {
    let mut crib = with_fixture().await?;
    let mut bridge = bridge_to(&crib)?;
    bridge.initialize().await?;
    assert_eq!(text(&bridge.request("tools/call", echo("one")).await?), "one");
    assert!(crib.child.stop().await?.success());
    let mut crib = crib.serve_again().await?;
    // The bridge opens a new session by itself.
    assert_eq!(text(&bridge.request("tools/call", echo("two")).await?), "two");
    assert!(names(&bridge.request("tools/list", json!({})).await?).contains(&"fx__echo"));
    crib.child.kill().await?;
    let crib = crib.serve_again().await?;
    assert_eq!(text(&bridge.request("tools/call", echo("three")).await?), "three");
    bridge.heard.clear();
    crib.call("fx__test_trigger_tool_change", json!({})).await?;
    told(&mut bridge, CHANGED).await?;
    // A bridge ends with its input.
    bridge.child.close_input();
    assert!(bridge.child.ended(PATIENCE).await?.success());
    Ok(())
}

#[tokio::test]
async fn a_bridged_subscription_outlives_a_crash() -> Result<()> {
    let mut crib = with_fixture().await?;
    let mut bridge = bridge_to(&crib)?;
    assert_eq!(text(&bridge.request("tools/call", modern(echo("one"))).await?), "one");
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let listening = bridge.send("subscriptions/listen", modern(filter.clone())).await?;
    told(&mut bridge, "notifications/subscriptions/acknowledged").await?;
    crib.child.kill().await?;
    let mut crib = crib.serve_again().await?;
    assert_eq!(text(&bridge.request("tools/call", modern(echo("two"))).await?), "two");
    crib.call("fx__test_trigger_tool_change", json!({})).await?;
    let change = told(&mut bridge, CHANGED).await?;
    assert_eq!(change["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], listening);

    // A crib that ends properly ends the subscription, and says so.
    assert!(crib.child.stop().await?.success());
    assert_eq!(bridge.answer(listening).await?["result"]["resultType"], "complete");
    let _crib = crib.serve_again().await?;
    bridge.send("subscriptions/listen", modern(filter)).await?;
    bridge.heard.clear();
    told(&mut bridge, "notifications/subscriptions/acknowledged").await?;
    Ok(())
}

#[tokio::test]
async fn a_bridge_waits_for_a_crib_that_is_not_there_yet() -> Result<()> {
    let mut crib = with_fixture().await?;
    assert!(crib.child.stop().await?.success());
    let mut bridge = bridge_to(&crib)?;
    let id = bridge.send("tools/call", modern(echo("patience"))).await?;
    let _crib = crib.serve_again().await?;
    assert_eq!(text(&bridge.answer(id).await?["result"]), "patience");
    // What is no JSON is told as that, and the pipe stays.
    bridge.child.say("this is not JSON").await?;
    assert_eq!(bridge.next().await?["error"]["code"], -32700);
    Ok(())
}
