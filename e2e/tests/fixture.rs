//! The fixture itself, before anything is put in front of it: what the other tests rely on.

use std::time::Duration;

use anyhow::{Context as _, Result};
use e2e::upstream::{Fixture, command};
use e2e::wire::{PATIENCE, Pipe, hello, modern_meta, names, post, post_modern, text};
use http::StatusCode;
use serde_json::{Value, json};

fn call(name: &str, arguments: Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

fn modern(mut params: Value) -> Value {
    if let Some(object) = params.as_object_mut() {
        object.insert("_meta".to_owned(), modern_meta());
    }
    params
}

/// What the server said by itself; it may come before or after the answer that caused it.
async fn unasked(pipe: &mut Pipe) -> Result<Value> {
    match pipe.heard.pop() {
        Some(message) => Ok(message),
        None => pipe.next().await,
    }
}

#[tokio::test]
async fn both_eras_are_served_on_one_url() -> Result<()> {
    let fixture = Fixture::http().await?;
    let modern = post_modern(&fixture.url, "tools/call", call("echo", json!({ "text": "new" }))).await?;
    assert_eq!(text(&modern.answer()?["result"]), "new");
    let opened = post(&fixture.url, "initialize", hello(), &[]).await?;
    let session = opened.headers.get("mcp-session-id").context("a session id")?.to_str()?.to_owned();
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    let legacy = post(&fixture.url, "tools/call", call("echo", json!({ "text": "old" })), &headers).await?;
    assert_eq!(text(&legacy.answer()?["result"]), "old");
    Ok(())
}

#[tokio::test]
async fn one_era_can_be_kept_out() -> Result<()> {
    let legacy = Fixture::with(&["--http", "127.0.0.1:0", "--era", "legacy"]).await?;
    let probed = post_modern(&legacy.url, "server/discover", json!({})).await?;
    assert_eq!(
        (probed.status, probed.answer()?["error"]["code"].as_i64()),
        (StatusCode::BAD_REQUEST, Some(-32000))
    );
    let modern = Fixture::with(&["--http", "127.0.0.1:0", "--era", "modern"]).await?;
    let greeted = post(&modern.url, "initialize", hello(), &[]).await?;
    assert_eq!(greeted.answer()?["error"]["code"], -32022);
    let mut pipe = Pipe::open(command(&["--stdio", "--era", "legacy"])?)?;
    let id = pipe.send("server/discover", modern_meta()).await?;
    assert_eq!(pipe.answer(id).await?["error"]["code"], -32601);
    assert_eq!(pipe.initialize().await?["protocolVersion"], "2025-11-25");
    Ok(())
}

#[tokio::test]
async fn a_cancelled_sleep_is_counted() -> Result<()> {
    let mut pipe = Pipe::open(command(&["--stdio"])?)?;
    let mut params = modern(call("sleep", json!({ "ms": 60_000 })));
    params["_meta"]["progressToken"] = json!("t");
    let id = pipe.send("tools/call", params).await?;
    // Progress shows that it has begun.
    assert_eq!(pipe.next().await?["params"]["progressToken"], "t");
    pipe.notify("notifications/cancelled", json!({ "requestId": id, "_meta": modern_meta() })).await?;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let counted = pipe.request("tools/call", modern(call("cancellations", json!({})))).await?;
        if text(&counted) == "1" {
            return Ok(());
        }
        assert!(tokio::time::Instant::now() < deadline, "the cancellation never arrived");
    }
}

#[tokio::test]
async fn a_touched_resource_is_told_in_each_era() -> Result<()> {
    let uri = "test://watched-resource";
    let mut old = Pipe::open(command(&["--stdio"])?)?;
    old.initialize().await?;
    old.request("resources/subscribe", json!({ "uri": uri })).await?;
    old.request("tools/call", call("touch_resource", json!({}))).await?;
    assert_eq!(
        unasked(&mut old).await?,
        json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": uri } })
    );

    let mut new = Pipe::open(command(&["--stdio"])?)?;
    let filter = json!({ "notifications": { "resourceSubscriptions": [uri] } });
    let listen = new.send("subscriptions/listen", modern(filter)).await?;
    assert_eq!(new.next().await?["method"], "notifications/subscriptions/acknowledged");
    new.request("tools/call", modern(call("touch_resource", json!({})))).await?;
    let told = unasked(&mut new).await?;
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], listen);
    Ok(())
}

#[tokio::test]
async fn a_late_tool_appears_and_is_announced() -> Result<()> {
    let mut pipe = Pipe::open(command(&["--stdio"])?)?;
    pipe.initialize().await?;
    assert!(!names(&pipe.request("tools/list", json!({})).await?).contains(&"late_tool"));
    pipe.request("tools/call", call("emit_list_changed", json!({}))).await?;
    assert_eq!(unasked(&mut pipe).await?["method"], "notifications/tools/list_changed");
    assert!(names(&pipe.request("tools/list", json!({})).await?).contains(&"late_tool"));
    Ok(())
}

#[tokio::test]
async fn lists_can_come_in_pages() -> Result<()> {
    let mut pipe = Pipe::open(command(&["--stdio", "--page-size", "10"])?)?;
    pipe.initialize().await?;
    let (mut seen, mut params) = (Vec::new(), json!({}));
    loop {
        let page = pipe.request("tools/list", params).await?;
        seen.extend(names(&page).into_iter().map(ToOwned::to_owned));
        match page.get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    assert_eq!(seen.len(), 44);
    Ok(())
}

#[tokio::test]
async fn faults_are_what_they_are_called() -> Result<()> {
    let mut dead = Pipe::open(command(&["--fault", "dead"])?)?;
    assert_eq!(dead.child.ended(PATIENCE).await?.code(), Some(1));

    let mut hangs = Pipe::open(command(&["--fault", "hang"])?)?;
    hangs.send("initialize", hello()).await?;
    assert!(hangs.child.next_line(Duration::from_millis(300)).await.is_err());

    let mut garbage = Pipe::open(command(&["--fault", "garbage"])?)?;
    garbage.send("initialize", hello()).await?;
    assert!(garbage.next().await.is_err());

    let mut dies = Pipe::open(command(&["--fault", "die-mid-call"])?)?;
    dies.initialize().await?;
    assert_eq!(names(&dies.request("tools/list", json!({})).await?), ["boom"]);
    dies.send("tools/call", call("boom", json!({}))).await?;
    assert_eq!(dies.child.ended(PATIENCE).await?.code(), Some(3));

    let mut bad = Pipe::open(command(&["--fault", "bad-tool"])?)?;
    bad.initialize().await?;
    assert_eq!(names(&bad.request("tools/list", json!({})).await?), ["good_one", "good_two"]);
    Ok(())
}

#[tokio::test]
async fn fields_nobody_specified_are_sent() -> Result<()> {
    let mut raw = Pipe::open(command(&["--raw", "--stdio"])?)?;
    raw.initialize().await?;
    let list = raw.request("tools/list", json!({})).await?;
    let tools = list["tools"].as_array().context("a list")?;
    let vendor = tools.iter().find(|tool| tool["name"] == "vendor").context("the vendor's tool")?;
    assert_eq!(vendor["x-vendor"]["nested"]["deep"], json!([null, 1.5, "two"]));
    assert_eq!(vendor["execution"]["taskSupport"], "forbidden");
    assert_eq!(raw.request("x-vendor/ping", json!({ "value": 7 })).await?, json!({ "pong": true, "saw": 7 }));
    Ok(())
}

#[tokio::test]
async fn nothing_is_left_running_when_a_child_is_dropped() -> Result<()> {
    let fixture = Fixture::http_sse().await?;
    let url = fixture.url.clone();
    assert!(url.ends_with("/sse"));
    drop(fixture);
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while post(&url, "ping", json!({}), &[]).await.is_ok() {
        assert!(tokio::time::Instant::now() < deadline, "it still answers");
    }
    Ok(())
}
