//! Real servers behind the crib, each over the transports it has: they are listed, called, read and prompted.
//!
//! What the crib does to the messages between is in `relay.rs`.

#![allow(clippy::indexing_slicing, reason = "a test that finds nothing where it looks has to fail")]

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use e2e::child::Child;
use e2e::crib::Crib;
use e2e::peers::{Group, free_port};
use e2e::program;
use e2e::session::{Session, Stream};
use e2e::upstream::Fixture;
use e2e::wire::{modern_meta, names, text};
use serde_json::{Value, json};
use tokio::process::Command;

const EVERYTHING: &str = "@modelcontextprotocol/server-everything";

/// Node takes its time to start when the machine is busy.
const STARTING: Duration = Duration::from_secs(30);

/// One source `id`, said in YAML's flow form.
async fn crib_with(id: &str, source: &str) -> Result<Crib> {
    Crib::serve(&format!("servers:\n  {id}: {{ {source} }}\n")).await
}

async fn state_of(crib: &Crib, id: &str) -> Result<Value> {
    crib.told(&format!("/servers/{id}")).await
}

/// `server-everything` on a port of its own, and what its URL ends with.
async fn everything_listening(transport: &str, path: &str) -> Result<(Child, String)> {
    let port = free_port()?;
    let mut command = Command::new("node");
    command.arg(Group::Npm.module(EVERYTHING, "dist/index.js")?).arg(transport);
    command.env("PORT", port.to_string());
    let mut child = Child::start(command)?;
    child.line(STARTING, |line| line.text.contains(&format!("on port {port}"))).await?;
    Ok((child, format!("http://127.0.0.1:{port}{path}")))
}

/// Everything the reference server has, asked of it through the crib in one era and then in the other.
async fn everything_works(crib: &Crib) -> Result<()> {
    let list = crib.ask("tools/list", json!({})).await?;
    assert!(names(&list).contains(&"every__get-sum"), "{list}");
    let sum = crib.call("every__get-sum", json!({ "a": 2, "b": 3 })).await?;
    assert!(text(&sum).contains('5'), "{sum}");

    let session = Session::open(&crib.mcp).await?;
    assert_eq!(names(&session.request("tools/list", json!({})).await?), names(&list));
    let echoed = session.call("every__echo", json!({ "message": "old" })).await?;
    assert_eq!(text(&echoed), "Echo: old");

    let prompt = crib.ask("prompts/get", json!({ "name": "every__simple-prompt" })).await?;
    assert_eq!(prompt["messages"][0]["role"], "user");
    let uri = "demo://resource/static/document/features.md";
    let read = crib.ask("resources/read", json!({ "uri": uri })).await?;
    assert_eq!(read["contents"][0]["uri"], uri);
    let uri = "demo://resource/dynamic/text/7";
    let made = crib.ask("resources/read", json!({ "uri": uri })).await?;
    assert!(made["contents"][0]["text"].as_str().is_some_and(|text| text.contains('7')), "{made}");

    let asked = json!({
        "ref": { "type": "ref/prompt", "name": "every__completable-prompt" },
        "argument": { "name": "department", "value": "E" },
    });
    let completed = crib.ask("completion/complete", asked).await?;
    assert_eq!(completed["completion"]["values"], json!(["Engineering"]));
    everything_reports_progress(crib).await
}

async fn everything_reports_progress(crib: &Crib) -> Result<()> {
    let mut meta = modern_meta();
    meta["progressToken"] = json!("mine");
    let arguments = json!({ "duration": 0.4, "steps": 2 });
    let name = "every__trigger-long-running-operation";
    let params = json!({ "name": name, "arguments": arguments, "_meta": meta });
    let mut stream = Stream::modern(&crib.mcp, "tools/call", params).await?;
    let told = stream.told("notifications/progress").await?;
    assert_eq!((&told["params"]["progressToken"], &told["params"]["progress"]), (&json!("mine"), &json!(1)));
    assert!(text(&stream.result().await?).contains("completed"));
    Ok(())
}

#[tokio::test]
async fn everything_over_stdio() -> Result<()> {
    let index = Group::Npm.module(EVERYTHING, "dist/index.js")?;
    let crib = crib_with("every", &format!("command: node, args: [{}, stdio]", index.display())).await?;
    everything_works(&crib).await?;
    let state = state_of(&crib, "every").await?;
    assert_eq!((&state["transport"], &state["protocol"]), (&json!("stdio"), &json!("2025-11-25")));
    Ok(())
}

#[tokio::test]
async fn everything_over_streamable_http() -> Result<()> {
    let (_server, url) = everything_listening("streamableHttp", "/mcp").await?;
    let crib = crib_with("every", &format!("type: streamable-http, url: \"{url}\"")).await?;
    everything_works(&crib).await
}

#[tokio::test]
async fn everything_over_http_and_sse() -> Result<()> {
    let (_server, url) = everything_listening("sse", "/sse").await?;
    let crib = crib_with("every", &format!("type: sse, url: \"{url}\"")).await?;
    everything_works(&crib).await
}

#[tokio::test]
async fn the_old_transport_is_found_without_being_named() -> Result<()> {
    let (_server, url) = everything_listening("sse", "/sse").await?;
    let crib = crib_with("every", &format!("url: \"{url}\"")).await?;
    let echoed = crib.call("every__echo", json!({ "message": "found" })).await?;
    assert_eq!(text(&echoed), "Echo: found");
    Ok(())
}

#[tokio::test]
async fn the_filesystem_server_over_stdio() -> Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("note.txt"), "kept in a file")?;
    let index = Group::Npm.module("@modelcontextprotocol/server-filesystem", "dist/index.js")?;
    let place = folder.path().display().to_string();
    let crib = crib_with("files", &format!("command: node, args: [{}, {place}]", index.display())).await?;
    assert!(names(&crib.ask("tools/list", json!({})).await?).contains(&"files__read_text_file"));
    let path = format!("{place}/note.txt");
    let read = crib.call("files__read_text_file", json!({ "path": path })).await?;
    assert_eq!(text(&read), "kept in a file");
    // What the source itself forbids stays forbidden, and is told in its own words.
    let outside = crib.call("files__read_text_file", json!({ "path": "/etc/hostname" })).await?;
    assert_eq!(outside["isError"], true);
    assert!(text(&outside).contains("denied"), "{outside}");
    Ok(())
}

#[tokio::test]
async fn the_time_server_over_stdio() -> Result<()> {
    let program = Group::PyServers.program("mcp-server-time")?;
    let source = format!("command: {}, args: [--local-timezone, UTC]", program.display());
    let crib = crib_with("time", &source).await?;
    let asked = json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Kathmandu" });
    let session = Session::open(&crib.mcp).await?;
    for result in [
        crib.call("time__convert_time", asked.clone()).await?,
        session.call("time__convert_time", asked).await?,
    ] {
        assert!(text(&result).contains("17:45"), "{result}");
    }
    Ok(())
}

fn repository(folder: &Path) -> Result<()> {
    let made = std::process::Command::new("git").args(["init", "-q"]).arg(folder).status()?;
    assert!(made.success());
    std::fs::write(folder.join("new.txt"), "new")?;
    Ok(())
}

#[tokio::test]
async fn the_git_server_over_stdio_with_its_own_prefix_taken_off() -> Result<()> {
    let folder = tempfile::tempdir()?;
    repository(folder.path())?;
    let program = Group::PyServers.program("mcp-server-git")?;
    let crib = crib_with("git", &format!("command: {}, hide: [git_reset]", program.display())).await?;
    let list = crib.ask("tools/list", json!({})).await?;
    let listed = names(&list);
    assert!(listed.contains(&"git__status") && !listed.contains(&"git__reset"), "{listed:?}");
    let place = json!({ "repo_path": folder.path() });
    for spelling in ["git__status", "git:status", "status"] {
        let status = crib.call(spelling, place.clone()).await?;
        assert!(text(&status).contains("new.txt"), "{spelling}: {status}");
    }
    for spelling in ["git__reset", "git:reset", "reset", "git:git_reset", "git_reset"] {
        assert!(crib.call(spelling, place.clone()).await.is_err(), "{spelling} is hidden and was called");
    }
    Ok(())
}

/// Every way the fixture can be reached; the name says transport and era.
#[tokio::test]
async fn the_fixture_over_every_transport_in_both_eras() -> Result<()> {
    let program = program::path("fixture")?.display().to_string();
    let (http, old_http) =
        (Fixture::http().await?, Fixture::with(&["--http", "127.0.0.1:0", "--era", "legacy"]).await?);
    let new_http = Fixture::with(&["--http", "127.0.0.1:0", "--era", "modern"]).await?;
    let raw_http = Fixture::with(&["--raw", "--http", "127.0.0.1:0"]).await?;
    let sse = Fixture::http_sse().await?;
    let sources = [
        ("stdio-both", format!("command: {program}, args: [--stdio]"), "2026-07-28"),
        ("stdio-legacy", format!("command: {program}, args: [--stdio, --era, legacy]"), "2025-11-25"),
        ("stdio-modern", format!("command: {program}, args: [--stdio, --era, modern]"), "2026-07-28"),
        ("http-both", format!("url: \"{}\"", http.url), "2026-07-28"),
        ("http-told-legacy", format!("url: \"{}\", era: legacy", http.url), "2025-11-25"),
        ("http-legacy", format!("url: \"{}\"", old_http.url), "2025-11-25"),
        ("http-modern", format!("url: \"{}\"", new_http.url), "2026-07-28"),
        ("raw-stdio", format!("command: {program}, args: [--raw, --stdio]"), "2026-07-28"),
        ("raw-http", format!("url: \"{}\"", raw_http.url), "2026-07-28"),
        ("sse", format!("type: sse, url: \"{}\"", sse.url), "2024-11-05"),
    ];
    let lines = sources.iter().map(|(id, source, _)| format!("  {id}: {{ {source} }}\n"));
    let crib = Crib::serve(&format!("servers:\n{}", lines.collect::<String>())).await?;
    let session = Session::open(&crib.mcp).await?;
    let list = crib.ask("tools/list", json!({})).await?;
    for (id, _, protocol) in &sources {
        let tool = format!("{id}__echo");
        assert!(names(&list).contains(&tool.as_str()), "{tool} is not in {:?}", names(&list));
        let said = json!({ "text": format!("to {id}") });
        let new = crib.call(&tool, said.clone()).await.with_context(|| tool.clone())?;
        let old = session.call(&tool, said).await.with_context(|| tool.clone())?;
        assert_eq!((text(&new), text(&old)), (text(&old), format!("to {id}").as_str()));
        assert_eq!(state_of(&crib, id).await?["protocol"], *protocol, "{id}");
    }
    Ok(())
}

#[tokio::test]
async fn a_list_in_pages_is_gathered_whole() -> Result<()> {
    let program = program::path("fixture")?.display().to_string();
    let crib = crib_with("fx", &format!("command: {program}, args: [--stdio, --page-size, \"7\"]")).await?;
    let list = crib.ask("tools/list", json!({})).await?;
    assert_eq!(names(&list).iter().filter(|name| name.starts_with("fx__")).count(), 44);
    Ok(())
}

#[tokio::test]
async fn environment_and_headers_reach_the_source() -> Result<()> {
    let program = program::path("fixture")?.display().to_string();
    let http = Fixture::http().await?;
    let crib = Crib::serve(&format!(
        "servers:\n  child: {{ command: {program}, args: [--stdio], env: {{ GREETING: \"${{NOT_SET:-hello}}\" }} }}\n  \
         far: {{ url: \"{}\", headers: {{ X-Team: tools }} }}\n",
        http.url
    ))
    .await?;
    assert_eq!(text(&crib.call("child__env", json!({ "name": "GREETING" })).await?), "hello");
    let seen = crib.call("far__whoami", json!({})).await?;
    assert_eq!(seen["structuredContent"]["headers"]["x-team"], "tools");
    Ok(())
}
