//! What passes through the crib besides calls and answers: fields nobody specified, progress, cancellation, changes,
//! completion, logging; from sources of both eras to callers of both eras.

#![allow(clippy::indexing_slicing, reason = "a test that finds nothing where it looks has to fail")]

use std::time::Duration;

use anyhow::{Context as _, Result};
use e2e::crib::Crib;
use e2e::patience::eventually;
use e2e::program;
use e2e::session::{Session, Stream};
use e2e::upstream::{Fixture, command};
use e2e::wire::{PATIENCE, Pipe, modern_meta, names, post_modern, text};
use serde_json::{Value, json};

/// How the fixture stands behind the crib.
#[derive(Debug, Clone, Copy)]
enum Stand {
    HttpModern,
    HttpLegacy,
    StdioModern,
    StdioLegacy,
}

/// A crib with the fixture as its one source, `fx`. The fixture on HTTP lives as long as this does.
struct Setting {
    crib: Crib,
    _upstream: Option<Fixture>,
}

impl Stand {
    const ALL: [Self; 4] = [Self::HttpModern, Self::HttpLegacy, Self::StdioModern, Self::StdioLegacy];

    async fn set(self) -> Result<Setting> {
        let era = match self {
            Self::HttpModern | Self::StdioModern => "both",
            Self::HttpLegacy | Self::StdioLegacy => "legacy",
        };
        let (source, upstream) = match self {
            Self::HttpModern | Self::HttpLegacy => {
                let fixture = Fixture::with(&["--http", "127.0.0.1:0", "--era", era]).await?;
                (format!("url: \"{}\"", fixture.url), Some(fixture))
            }
            Self::StdioModern | Self::StdioLegacy => {
                let program = program::path("fixture")?;
                (format!("command: {}, args: [--stdio, --era, {era}]", program.display()), None)
            }
        };
        let crib = Crib::serve(&format!("servers:\n  fx: {{ {source} }}\n")).await?;
        Ok(Setting { crib, _upstream: upstream })
    }
}

/// `_meta` of a modern request with one more key.
fn meta_with(key: &str, value: Value) -> Value {
    let mut meta = modern_meta();
    if let Some(keys) = meta.as_object_mut() {
        keys.insert(key.to_owned(), value);
    }
    meta
}

async fn cancellations(crib: &Crib) -> Result<String> {
    Ok(text(&crib.call("fx__cancellations", json!({})).await?).to_owned())
}

async fn is_cancelled(stand: Stand, crib: &Crib) -> Result<()> {
    let what = format!("the cancellation to arrive at {stand:?}");
    eventually(&what, PATIENCE, async || Ok((cancellations(crib).await? == "1").then_some(()))).await
}

#[tokio::test]
async fn fields_nobody_specified_pass_byte_for_byte() -> Result<()> {
    let mut direct = Pipe::open(command(&["--raw", "--stdio"])?)?;
    direct.initialize().await?;
    let list = direct.request("tools/list", json!({})).await?;
    let defined = list["tools"].as_array().context("a list")?.iter().find(|tool| tool["name"] == "vendor");
    let defined = defined.context("the vendor's tool")?.to_string();
    // The name is the crib's; all else is the source's.
    let expected = defined.replacen("\"name\":\"vendor\"", "\"name\":\"raw__vendor\"", 1);
    let answered = direct.request("tools/call", json!({ "name": "vendor", "arguments": {} })).await?;

    let (http, sse) = (Fixture::with(&["--raw", "--http", "127.0.0.1:0"]).await?, Fixture::http_sse().await?);
    let child = format!("command: {}, args: [--raw, --stdio]", program::path("fixture")?.display());
    for source in [child, format!("url: \"{}\"", http.url), format!("type: sse, url: \"{}\"", sse.url)] {
        let crib = Crib::serve(&format!("servers:\n  raw: {{ {source} }}\n")).await?;
        let session = Session::open(&crib.mcp).await?;
        let new = post_modern(&crib.mcp, "tools/list", json!({})).await?;
        let old = session.post("tools/list", json!({})).await?;
        for listed in [new, old] {
            assert!(listed.body.contains(&expected), "{source}\nwanted {expected}\n   got {}", listed.body);
        }
        let old = session.call("raw__vendor", json!({})).await?;
        assert_eq!(old, answered, "{source}");
        let new = crib.call("raw__vendor", json!({})).await?;
        assert_eq!((&new["content"], &new["x-result"]), (&answered["content"], &answered["x-result"]));
        assert_eq!(new["_meta"]["vendor.example/trace"], "kept");
        let block = crib.call("raw__vendor_block", json!({})).await?;
        assert_eq!(block["content"], json!([{ "type": "x-vendor-block", "payload": { "a": 1 } }]));
        let resources = crib.ask("resources/list", json!({})).await?;
        assert_eq!(resources["resources"][0]["x-vendor"], "kept");
    }
    Ok(())
}

#[tokio::test]
async fn a_method_nobody_specified_reaches_its_source() -> Result<()> {
    let program = program::path("fixture")?;
    let crib = Crib::serve(&format!(
        "servers:\n  raw: {{ command: {}, args: [--raw, --stdio] }}\n",
        program.display()
    ))
    .await?;
    let meta = meta_with("toolcrib/source", json!("raw"));
    let pong = crib.ask("x-vendor/ping", json!({ "value": 7, "_meta": meta })).await?;
    assert_eq!((&pong["pong"], &pong["saw"]), (&json!(true), &json!(7)));
    let session = Session::open(&crib.mcp).await?;
    let asked = json!({ "value": 8, "_meta": { "toolcrib/source": "raw" } });
    assert_eq!(session.request("x-vendor/ping", asked).await?, json!({ "pong": true, "saw": 8 }));
    Ok(())
}

#[tokio::test]
async fn progress_comes_with_the_callers_own_token() -> Result<()> {
    for stand in Stand::ALL {
        let setting = stand.set().await?;
        let crib = &setting.crib;
        let session = Session::open(&crib.mcp).await?;
        let arguments = json!({ "ms": 200 });
        let params = |meta: Value| json!({ "name": "fx__sleep", "arguments": arguments, "_meta": meta });
        // The same token at the same time, from callers who know nothing of each other.
        let token = json!({ "progressToken": 7 });
        let (_, mut old) = session.stream("tools/call", params(token)).await?;
        let meta = meta_with("progressToken", json!(7));
        let mut new = Stream::modern(&crib.mcp, "tools/call", params(meta)).await?;
        let meta = meta_with("progressToken", json!("word"));
        let mut other = Stream::modern(&crib.mcp, "tools/call", params(meta)).await?;
        for (stream, token) in [(&mut old, json!(7)), (&mut new, json!(7)), (&mut other, json!("word"))] {
            let (mut reported, mut answered) = (Vec::new(), None);
            while let (None, Some(message)) = (&answered, stream.next().await?) {
                match message.get("method").and_then(Value::as_str) {
                    Some("notifications/progress") => {
                        assert_eq!(message["params"]["progressToken"], token, "{stand:?}");
                        reported.extend(message["params"]["progress"].as_f64());
                    }
                    _ => answered = message.get("result").cloned(),
                }
            }
            assert!(reported.len() >= 2 && reported.is_sorted(), "{stand:?}: {reported:?}");
            assert_eq!(text(&answered.context("an answer")?), "slept 200 ms", "{stand:?}");
        }
        // Who gave no token is told nothing.
        let mut silent = Stream::modern(&crib.mcp, "tools/call", params(modern_meta())).await?;
        assert!(silent.next().await?.is_some_and(|message| message.get("result").is_some()), "{stand:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_modern_caller_that_hangs_up_cancels_its_call() -> Result<()> {
    for stand in Stand::ALL {
        let setting = stand.set().await?;
        let meta = meta_with("progressToken", json!(1));
        let params = json!({ "name": "fx__sleep", "arguments": { "ms": 60_000 }, "_meta": meta });
        let mut stream = Stream::modern(&setting.crib.mcp, "tools/call", params).await?;
        // Progress shows that it has begun.
        stream.told("notifications/progress").await?;
        drop(stream);
        is_cancelled(stand, &setting.crib).await?;
        let calls = setting.crib.told("/calls?finished=10&about=sleep").await?;
        assert_eq!(calls["entries"][0]["outcome"], "cancelled", "{stand:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_legacy_caller_cancels_by_saying_so_and_not_by_hanging_up() -> Result<()> {
    for stand in Stand::ALL {
        let setting = stand.set().await?;
        let session = Session::open(&setting.crib.mcp).await?;
        let asked = |ms: u32| {
            let meta = json!({ "progressToken": 1 });
            json!({ "name": "fx__sleep", "arguments": { "ms": ms }, "_meta": meta })
        };
        let (_, mut left) = session.stream("tools/call", asked(300)).await?;
        left.told("notifications/progress").await?;
        drop(left);
        let finished = eventually("the abandoned call to finish", PATIENCE, async || {
            let calls = setting.crib.told("/calls?finished=10&about=sleep").await?;
            Ok(calls["entries"][0]["outcome"].as_str().filter(|word| *word != "running").map(str::to_owned))
        });
        assert_eq!(finished.await?, "done", "{stand:?}");
        assert_eq!(cancellations(&setting.crib).await?, "0", "{stand:?}");

        let (id, mut stream) = session.stream("tools/call", asked(60_000)).await?;
        stream.told("notifications/progress").await?;
        session.notify("notifications/cancelled", json!({ "requestId": id })).await?;
        is_cancelled(stand, &setting.crib).await?;
    }
    Ok(())
}

const WATCHED: &str = "test://watched-resource";

#[tokio::test]
async fn a_changed_resource_is_told_to_those_who_asked() -> Result<()> {
    for stand in Stand::ALL {
        let setting = stand.set().await?;
        let crib = &setting.crib;
        crib.ask("resources/list", json!({})).await?;
        let filter = json!({ "notifications": { "resourceSubscriptions": [WATCHED] } });
        let mut new = Stream::modern(&crib.mcp, "subscriptions/listen", filter).await?;
        let granted = new.told("notifications/subscriptions/acknowledged").await?;
        assert_eq!(
            granted["params"]["notifications"]["resourceSubscriptions"],
            json!([WATCHED]),
            "{stand:?}"
        );
        let session = Session::open(&crib.mcp).await?;
        let mut old = session.listen().await?;
        session.request("resources/subscribe", json!({ "uri": WATCHED })).await?;
        crib.call("fx__touch_resource", json!({})).await?;
        let told = new.told("notifications/resources/updated").await.with_context(|| format!("{stand:?}"))?;
        assert_eq!(told["params"]["uri"], WATCHED);
        assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
        let told = old.told("notifications/resources/updated").await.with_context(|| format!("{stand:?}"))?;
        assert_eq!(told["params"]["uri"], WATCHED);
        let read = crib.ask("resources/read", json!({ "uri": WATCHED })).await?;
        assert_eq!(read["contents"][0]["text"], "touched 1 times", "{stand:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_changed_list_is_told_and_shown() -> Result<()> {
    for stand in Stand::ALL {
        let setting = stand.set().await?;
        let crib = &setting.crib;
        assert!(!names(&crib.ask("tools/list", json!({})).await?).contains(&"fx__late_tool"));
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        let mut new = Stream::modern(&crib.mcp, "subscriptions/listen", filter).await?;
        new.told("notifications/subscriptions/acknowledged").await?;
        let session = Session::open(&crib.mcp).await?;
        let mut old = session.listen().await?;
        crib.call("fx__emit_list_changed", json!({})).await?;
        for stream in [&mut new, &mut old] {
            let told = stream.told("notifications/tools/list_changed").await;
            told.with_context(|| format!("{stand:?}"))?;
        }
        // Who was told finds it there.
        let list = session.request("tools/list", json!({})).await?;
        assert!(names(&list).contains(&"fx__late_tool"), "{stand:?}");
    }
    Ok(())
}

#[tokio::test]
async fn arguments_are_completed_by_the_source() -> Result<()> {
    for stand in Stand::ALL {
        let setting = stand.set().await?;
        let asked = json!({
            "ref": { "type": "ref/prompt", "name": "fx__test_prompt_with_arguments" },
            "argument": { "name": "arg1", "value": "par" },
        });
        let session = Session::open(&setting.crib.mcp).await?;
        let (new, old) = (
            setting.crib.ask("completion/complete", asked.clone()).await?,
            session.request("completion/complete", asked).await?,
        );
        for result in [new, old] {
            assert_eq!(result["completion"]["values"], json!(["paris", "park", "party"]), "{stand:?}");
        }
    }
    Ok(())
}

/// How many log messages come before the answer.
async fn logged(stream: &mut Stream) -> Result<usize> {
    let mut count = 0;
    while let Some(message) = stream.next().await? {
        match message.get("method").and_then(Value::as_str) {
            Some("notifications/message") => count += 1,
            Some(_) => {}
            None => break,
        }
    }
    Ok(count)
}

const LOGS: &str = "fx__test_tool_with_logging";

#[tokio::test]
async fn log_messages_come_to_those_who_asked() -> Result<()> {
    for stand in Stand::ALL {
        let setting = stand.set().await?;
        let (loud, quiet) =
            (Session::open(&setting.crib.mcp).await?, Session::open(&setting.crib.mcp).await?);
        loud.request("logging/setLevel", json!({ "level": "info" })).await?;
        quiet.request("logging/setLevel", json!({ "level": "error" })).await?;
        // A source may say it beside the call; then it comes where a session is told such things.
        let mut beside = loud.listen().await?;
        let (_, mut stream) = loud.stream("tools/call", json!({ "name": LOGS })).await?;
        for _ in logged(&mut stream).await?..3 {
            let told = beside.told("notifications/message").await.with_context(|| format!("{stand:?}"))?;
            assert_eq!(told["params"]["level"], "info");
        }
        let (_, mut stream) = quiet.stream("tools/call", json!({ "name": LOGS })).await?;
        assert_eq!(logged(&mut stream).await?, 0, "{stand:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_modern_caller_names_the_log_level_on_each_call() -> Result<()> {
    const LEVEL: &str = "io.modelcontextprotocol/logLevel";
    let asked = |meta: Value| json!({ "name": LOGS, "_meta": meta });
    // On a pipe nothing says which call a message belongs to, so this is about HTTP.
    let setting = Stand::HttpModern.set().await?;
    let url = &setting.crib.mcp;
    let mut loud = Stream::modern(url, "tools/call", asked(meta_with(LEVEL, json!("info")))).await?;
    assert_eq!(logged(&mut loud).await?, 3);
    let mut errors = Stream::modern(url, "tools/call", asked(meta_with(LEVEL, json!("error")))).await?;
    assert_eq!(logged(&mut errors).await?, 0, "errors only");
    let mut quiet = Stream::modern(url, "tools/call", asked(modern_meta())).await?;
    assert_eq!(logged(&mut quiet).await?, 0, "no level");
    Ok(())
}

#[tokio::test]
async fn a_call_takes_no_longer_than_its_source_may() -> Result<()> {
    let program = program::path("fixture")?;
    let crib = Crib::serve(&format!(
        "servers:\n  fx: {{ command: {}, args: [--stdio], timeout: 300ms }}\n",
        program.display()
    ))
    .await?;
    let begun = tokio::time::Instant::now();
    let late = crib.call("fx__sleep", json!({ "ms": 60_000 })).await;
    assert!(late.is_err() && begun.elapsed() < Duration::from_secs(10), "{late:?}");
    assert_eq!(crib.told("/calls?finished=1&about=sleep").await?["entries"][0]["outcome"], "timeout");
    is_cancelled(Stand::StdioModern, &crib).await
}
