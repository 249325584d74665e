//! The config of a running crib: what an edit changes, what it leaves alone, and what a bad edit says.

#![allow(clippy::indexing_slicing, reason = "a test that finds nothing where it looks has to fail")]

use std::time::Duration;

use anyhow::{Context as _, Result};
use e2e::crib::{Crib, Home};
use e2e::patience::eventually;
use e2e::program;
use e2e::session::{Session, Stream};
use e2e::wire::{PATIENCE, Pipe, names, text};
use serde_json::{Value, json};

/// An edit takes hold within a second; the rest is for a busy machine.
const TAKEN: Duration = Duration::from_secs(3);

fn fixture(arguments: &str, more: &str) -> Result<String> {
    Ok(format!("{{ command: {}, args: [{arguments}]{more} }}", program::path("fixture")?.display()))
}

async fn server(crib: &Crib, id: &str) -> Result<Value> {
    crib.told(&format!("/servers/{id}")).await
}

async fn ids(crib: &Crib) -> Result<Vec<String>> {
    let told = crib.told("/servers").await?;
    let servers = told["servers"].as_array().context("a list")?;
    Ok(servers.iter().filter_map(|server| server["id"].as_str()).map(ToOwned::to_owned).collect())
}

/// Waits until exactly these servers are there, beside the crib's own.
async fn servers_are(crib: &Crib, expected: &[&str]) -> Result<()> {
    eventually(&format!("the servers to be {expected:?}"), TAKEN, async || {
        let there = ids(crib).await?;
        Ok(there.iter().filter(|id| *id != "crib").eq(expected.iter()).then_some(()))
    })
    .await
}

#[tokio::test]
async fn an_edit_touches_only_what_it_names() -> Result<()> {
    let (stays, raw) = (fixture("--stdio", "")?, fixture("--raw, --stdio", "")?);
    let home = Home::new(&format!("servers:\n  changes: {raw}\n  goes: {raw}\n  stays: {stays}\n"))?;
    let crib = Crib::serve_in(home).await?;
    crib.ask("tools/list", json!({})).await?;
    let before = (server(&crib, "stays").await?, server(&crib, "changes").await?);
    let going = server(&crib, "goes").await?["pid"].as_u64().context("it runs")?;

    // A call is under way while the config is edited.
    let slow = json!({ "name": "stays__sleep", "arguments": { "ms": 2_000 } });
    let mut running = Stream::modern(&crib.mcp, "tools/call", {
        let mut params = slow;
        params["_meta"] = e2e::wire::modern_meta();
        params["_meta"]["progressToken"] = json!(1);
        params
    })
    .await?;
    running.told("notifications/progress").await?;
    let changed = fixture("--raw, --stdio", ", env: { NEW: \"1\" }")?;
    crib.home.configure(&format!("servers:\n  changes: {changed}\n  comes: {raw}\n  stays: {stays}\n"))?;
    servers_are(&crib, &["changes", "comes", "stays"]).await?;

    assert_eq!(text(&crib.call("comes__echo", json!({ "text": "new" })).await?), "new");
    assert_eq!(text(&crib.call("changes__echo", json!({ "text": "other" })).await?), "other");
    let after = (server(&crib, "stays").await?, server(&crib, "changes").await?);
    assert_eq!(before.0["pid"], after.0["pid"], "what was not edited keeps its process");
    assert_ne!(before.1["pid"], after.1["pid"], "what was edited gets a new one");
    assert!(crib.call("goes__echo", json!({ "text": "gone" })).await.is_err());
    eventually("the removed server's process to end", PATIENCE, async || {
        Ok((!std::path::Path::new(&format!("/proc/{going}")).exists()).then_some(()))
    })
    .await?;
    assert_eq!(text(&running.result().await?), "slept 2000 ms");
    Ok(())
}

#[tokio::test]
async fn an_edit_is_told_to_whoever_listens() -> Result<()> {
    let raw = fixture("--raw, --stdio", "")?;
    let crib = Crib::serve("servers: {}\n").await?;
    let session = Session::open(&crib.mcp).await?;
    let mut old = session.listen().await?;
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let mut new = Stream::modern(&crib.mcp, "subscriptions/listen", filter).await?;
    new.told("notifications/subscriptions/acknowledged").await?;
    crib.home.configure(&format!("servers:\n  added: {}\n", raw.replace(" }", ", connect: always }")))?;
    for stream in [&mut old, &mut new] {
        stream.told("notifications/tools/list_changed").await?;
    }
    assert!(names(&session.request("tools/list", json!({})).await?).contains(&"added__echo"));
    Ok(())
}

#[tokio::test]
async fn what_is_shown_of_a_server_changes_without_a_new_connection() -> Result<()> {
    let crib = Crib::serve(&format!("servers:\n  raw: {}\n", fixture("--raw, --stdio", "")?)).await?;
    crib.ask("tools/list", json!({})).await?;
    let pid = server(&crib, "raw").await?["pid"].clone();
    let shown = ", hide: [vendor*], rename: { echo: say }, describe: { add: \"Adds\" }, prefix: r";
    crib.home.configure(&format!("servers:\n  raw: {}\n", fixture("--raw, --stdio", shown)?))?;
    let list = eventually("the new names to be listed", TAKEN, async || {
        let list = crib.ask("tools/list", json!({})).await?;
        Ok(names(&list).contains(&"r__say").then_some(list))
    })
    .await?;
    let raw: Vec<&Value> = list["tools"].as_array().context("a list")?.iter().skip(4).collect();
    assert_eq!(raw.len(), 2, "{raw:?}");
    assert!(raw.iter().any(|tool| tool["description"] == "Adds"), "{raw:?}");
    assert_eq!(server(&crib, "raw").await?["pid"], pid);
    Ok(())
}

#[tokio::test]
async fn a_bad_edit_is_refused_with_its_place_and_the_old_config_stays() -> Result<()> {
    let raw = fixture("--raw, --stdio", "")?;
    let mut crib = Crib::serve(&format!("servers:\n  raw: {raw}\n")).await?;
    crib.ask("tools/list", json!({})).await?;
    let pid = server(&crib, "raw").await?["pid"].clone();
    // Two mistakes, and both are told: lines 5 and 6, after the three that say where to listen.
    let wrong = "servers:\n  raw: { comand: x }\n  other: { url: \"http://x/mcp\", timeout: soon }\n";
    crib.home.configure(wrong)?;
    let told = crib.child.line(PATIENCE, |line| line.text.contains("toolcrib.yaml:5:10")).await?;
    assert!(told.contains("comand") && told.contains("toolcrib.yaml:6:"), "{told}");
    assert_eq!(server(&crib, "raw").await?["pid"], pid);
    assert_eq!(text(&crib.call("raw__echo", json!({ "text": "still" })).await?), "still");
    // The next good edit takes hold as if nothing had been.
    crib.home.configure(&format!("servers:\n  raw: {raw}\n  second: {raw}\n"))?;
    servers_are(&crib, &["raw", "second"]).await?;
    assert_eq!(server(&crib, "raw").await?["pid"], pid);
    Ok(())
}

#[tokio::test]
async fn a_bad_config_keeps_the_crib_from_starting() -> Result<()> {
    let home =
        Home::new("servers:\n  a: { comand: x }\n  b: { command: x, token: \"${NO_SUCH_VARIABLE}\" }\n")?;
    for words in [["serve"].as_slice(), &["config", "check"]] {
        let output = home.command(words)?.output().await?;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{words:?}");
        assert!(told.contains("toolcrib.yaml:5:8") && told.contains("toolcrib.yaml:6:"), "{words:?}: {told}");
    }
    Ok(())
}

/// As in the architecture this crib was first drawn in.
const SERVERS_YAML: &str = "\
servers:
  notion:
    name: Notion
    type: remote-mcp
    url: https://mcp.notion.com/mcp
    auth:
      type: oauth2-pkce
      # tokens managed by gateway, not in config
    enabled: true
    connect: on-demand    # connect when first tool is called

  notion-local:
    name: Notion (self-hosted)
    type: stdio-mcp
    command: npx
    args: [\"-y\", \"@notionhq/notion-mcp-server\"]
    auth:
      type: api-key
      env: NOTION_API_KEY
    enabled: false

  gdrive:
    name: Google Drive
    type: remote-mcp
    url: https://some-gdrive-mcp-server/mcp
    auth:
      type: oauth2
    enabled: false

  custom:
    name: Custom Server
    type: stdio-mcp
    command: python3
    args: [\"-m\", \"my_mcp_server\"]
    auth:
      type: api-key
      env: CUSTOM_API_KEY
    enabled: false
";

#[tokio::test]
async fn a_servers_yaml_of_old_loads_as_it_stands() -> Result<()> {
    let crib = Crib::serve_in(Home::holding(SERVERS_YAML)?).await?;
    servers_are(&crib, &["custom", "gdrive", "notion", "notion-local"]).await?;
    let notion = server(&crib, "notion").await?;
    assert_eq!((&notion["name"], &notion["state"]), (&json!("Notion"), &json!("idle")));
    assert_eq!(server(&crib, "custom").await?["state"], "disabled");
    // Nobody can be reached there; the list comes all the same.
    assert!(names(&crib.ask("tools/list", json!({})).await?).contains(&"crib__search_tools"));
    Ok(())
}

#[tokio::test]
async fn with_only_a_config_and_a_pipe_the_crib_serves_the_pipe() -> Result<()> {
    let home = Home::new(&format!("servers:\n  raw: {}\n", fixture("--raw, --stdio", "")?))?;
    let mut pipe = Pipe::open(home.command(&[])?)?;
    pipe.initialize().await?;
    assert!(names(&pipe.request("tools/list", json!({})).await?).contains(&"raw__echo"));
    let said = json!({ "name": "raw__echo", "arguments": { "text": "piped" } });
    assert_eq!(text(&pipe.request("tools/call", said).await?), "piped");
    pipe.child.close_input();
    assert!(pipe.child.ended(PATIENCE).await?.success());
    Ok(())
}
