//! Real clients in front of the crib: through HTTP, through `toolcrib stdio` and through the bridge, in each era they
//! know.
//!
//! The scripts in `e2e/clients` do what a client does and print what they saw; judging that is done here.

#![allow(clippy::indexing_slicing, reason = "a test that finds nothing where it looks has to fail")]

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use e2e::crib::{Crib, Home};
use e2e::peers::{self, Group};
use e2e::program;
use e2e::wire::{modern_meta, names, text};
use serde_json::{Value, json};
use tokio::process::Command;

/// One client from start to end, on a busy machine.
const WHOLE: Duration = Duration::from_secs(60);

/// How a client reaches the crib.
#[derive(Debug, Clone, Copy)]
enum Door {
    Http,
    Stdio,
    Bridge,
}

impl Door {
    const ALL: [Self; 3] = [Self::Http, Self::Stdio, Self::Bridge];
}

/// What a client needs to know to get in. The crib lives as long as this does.
struct Opened {
    words: Vec<String>,
    _crib: Option<Crib>,
    _home: Option<Home>,
}

fn config() -> Result<String> {
    Ok(format!("servers:\n  fx: {{ command: {}, args: [--stdio] }}\n", program::path("fixture")?.display()))
}

async fn open(door: Door) -> Result<Opened> {
    match door {
        Door::Http => {
            let crib = Crib::serve(&config()?).await?;
            let words = vec!["http".to_owned(), crib.mcp.clone()];
            Ok(Opened { words, _crib: Some(crib), _home: None })
        }
        Door::Bridge => {
            let crib = Crib::serve(&config()?).await?;
            let bridge = program::path("toolcrib-bridge")?.display().to_string();
            let words = vec!["stdio".to_owned(), bridge, crib.mcp.clone()];
            Ok(Opened { words, _crib: Some(crib), _home: None })
        }
        Door::Stdio => {
            let home = Home::new(&config()?)?;
            let toolcrib = program::path("toolcrib")?.display().to_string();
            let config = home.config().display().to_string();
            let words = ["stdio", &toolcrib, "stdio", "--config", &config].map(ToOwned::to_owned).to_vec();
            Ok(Opened { words, _crib: None, _home: Some(home) })
        }
    }
}

fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("clients").join(name)
}

fn python() -> Result<Command> {
    let mut command = Command::new(Group::PyClient.program("python")?);
    command.arg(script("python.py"));
    Ok(command)
}

fn node(name: &str) -> Result<Command> {
    let mut command = Command::new("node");
    command.arg(script(name)).env("NODE_PATH", Group::Npm.installed()?.join("node_modules"));
    Ok(command)
}

/// Runs a client to its end; its last line of output is what it saw.
async fn saw(mut command: Command) -> Result<Value> {
    let told = format!("{command:?}");
    let output = match tokio::time::timeout(WHOLE, command.kill_on_drop(true).output()).await {
        Ok(output) => output?,
        Err(_) => bail!("{told} did not end within {WHOLE:?}"),
    };
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        bail!("{told} failed ({}):\n{out}\n{err}", output.status);
    }
    serde_json::from_str(out.trim()).with_context(|| format!("{told} printed no JSON:\n{out}\n{err}"))
}

/// Everything each of the scripts does.
async fn gets_everything(client: impl Fn() -> Result<Command>, era: &str, protocol: &str) -> Result<()> {
    for door in Door::ALL {
        let opened = open(door).await?;
        let mut command = client()?;
        command.arg(era).args(&opened.words);
        let seen = saw(command).await.with_context(|| format!("{door:?}"))?;
        let told = format!("{door:?}: {seen}");
        // Some clients do not say over a pipe what they agreed on.
        assert!(seen["protocol"] == protocol || seen["protocol"].is_null(), "{told}");
        assert_eq!(seen["server"], "toolcrib", "{told}");
        let listed = seen["tools"].as_array().context("tools")?;
        assert!(
            listed.contains(&json!("fx__echo")) && listed.contains(&json!("crib__search_tools")),
            "{told}"
        );
        assert!(seen["echo"].as_str().is_some_and(|text| text.starts_with("from ")), "{told}");
        assert_eq!(seen["resource"], "This is the content of the static text resource.", "{told}");
        assert_eq!(seen["prompt"], "This is a simple prompt for testing.", "{told}");
        assert!(seen["progress"].as_u64() >= Some(2), "{told}");
        assert_eq!(seen["changed"], true, "{told}");
    }
    Ok(())
}

#[tokio::test]
async fn python_in_the_legacy_era() -> Result<()> {
    gets_everything(python, "legacy", "2025-11-25").await
}

#[tokio::test]
async fn python_in_the_modern_era() -> Result<()> {
    gets_everything(python, "modern", "2026-07-28").await
}

#[tokio::test]
async fn node_1_in_the_legacy_era() -> Result<()> {
    gets_everything(|| node("node-v1.cjs"), "legacy", "2025-11-25").await
}

#[tokio::test]
async fn node_2_in_the_legacy_era() -> Result<()> {
    gets_everything(|| node("node-v2.cjs"), "legacy", "2025-11-25").await
}

#[tokio::test]
async fn node_2_in_the_modern_era() -> Result<()> {
    gets_everything(|| node("node-v2.cjs"), "modern", "2026-07-28").await
}

/// The Inspector's CLI: one method per run.
fn inspector(home: &Home, era: &str, words: &[String], method: &[&str]) -> Result<Command> {
    let launcher = "clients/launcher/build/index.js";
    let mut command = Command::new(peers::node()?);
    command.arg(Group::Node22.module("@modelcontextprotocol/inspector", launcher)?).arg("--cli");
    command.args(["--format", "json", "--quiet", "--protocol-era", era]).args(method);
    match words {
        [kind, url] if kind == "http" => command.args(["--transport", "http", "--server-url", url]),
        [_, program, rest @ ..] => command.args(["--transport", "stdio", "--", program]).args(rest),
        _ => bail!("nowhere to connect to"),
    };
    command.env("HOME", home.path());
    Ok(command)
}

async fn inspected(command: Command) -> Result<Value> {
    Ok(saw(command).await?["result"].take())
}

#[tokio::test]
async fn the_inspector_through_http_in_both_eras() -> Result<()> {
    let opened = open(Door::Http).await?;
    let home = Home::empty()?;
    for era in ["legacy", "modern"] {
        let run = async |method: &[&str]| inspected(inspector(&home, era, &opened.words, method)?).await;
        let list = run(&["--method", "tools/list"]).await?;
        assert!(names(&list).contains(&"fx__echo"), "{era}: {list}");
        let called = ["--method", "tools/call", "--tool-name", "fx__echo", "--tool-arg", "text=inspected"];
        assert_eq!(text(&run(&called).await?), "inspected", "{era}");
        let read = run(&["--method", "resources/read", "--uri", "test://static-text"]).await?;
        assert_eq!(read["contents"][0]["mimeType"], "text/plain", "{era}");
        let prompt = run(&["--method", "prompts/get", "--prompt-name", "fx__test_simple_prompt"]).await?;
        assert_eq!(prompt["messages"][0]["role"], "user", "{era}");
    }
    Ok(())
}

#[tokio::test]
async fn the_inspector_through_pipes() -> Result<()> {
    let home = Home::empty()?;
    for (door, era) in
        [(Door::Stdio, "legacy"), (Door::Stdio, "modern"), (Door::Bridge, "legacy"), (Door::Bridge, "modern")]
    {
        let opened = open(door).await?;
        let called = ["--method", "tools/call", "--tool-name", "fx__echo", "--tool-arg", "text=piped"];
        let seen = inspected(inspector(&home, era, &opened.words, &called)?).await;
        assert_eq!(text(&seen.with_context(|| format!("{door:?} {era}"))?), "piped", "{door:?} {era}");
    }
    Ok(())
}

/// One POST as the documentation shows it: the answer is plain JSON.
async fn curl(url: &str, headers: &[String], message: &Value) -> Result<Value> {
    let mut command = Command::new("curl");
    command.args(["-sS", "--fail-with-body", "-H", "Content-Type: application/json"]);
    command.args(["-H", "Accept: application/json, text/event-stream"]);
    for header in headers {
        command.args(["-H", header]);
    }
    command.args(["-d", &message.to_string(), url]);
    Ok(saw(command).await?["result"].take())
}

#[tokio::test]
async fn curl_without_a_handshake() -> Result<()> {
    let crib = Crib::serve(&config()?).await?;
    let ask = async |method: &str, name: Option<&str>, mut params: Value| {
        params["_meta"] = modern_meta();
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut headers =
            vec!["MCP-Protocol-Version: 2026-07-28".to_owned(), format!("Mcp-Method: {method}")];
        headers.extend(name.map(|name| format!("Mcp-Name: {name}")));
        curl(&crib.mcp, &headers, &message).await
    };
    let list = ask("tools/list", None, json!({})).await?;
    assert!(names(&list).contains(&"fx__echo"), "{list}");
    let arguments = json!({ "name": "fx__echo", "arguments": { "text": "curled" } });
    assert_eq!(text(&ask("tools/call", Some("fx__echo"), arguments).await?), "curled");
    let uri = "test://static-text";
    let read = ask("resources/read", Some(uri), json!({ "uri": uri })).await?;
    assert_eq!(read["contents"][0]["uri"], uri);
    let name = "fx__test_simple_prompt";
    let prompt = ask("prompts/get", Some(name), json!({ "name": name })).await?;
    assert_eq!(prompt["messages"][0]["role"], "user");
    Ok(())
}

#[tokio::test]
async fn curl_on_the_tools_api() -> Result<()> {
    let crib = Crib::serve(&config()?).await?;
    let base = crib.mcp.trim_end_matches("/mcp");
    let body = json!({ "server": "fx", "tool": "echo", "args": { "text": "plain" } }).to_string();
    let mut command = Command::new("curl");
    command.args(["-sS", "--fail-with-body", "-H", "Content-Type: application/json", "-d", &body]);
    let answered = saw({
        command.arg(format!("{base}/api/call"));
        command
    })
    .await?;
    assert!(answered.to_string().contains("plain"), "{answered}");
    let mut command = Command::new("curl");
    command.args(["-sS", "--fail-with-body"]).arg(format!("{base}/openapi.json"));
    let document = saw(command).await?;
    assert!(document["paths"].to_string().contains("echo"), "{document}");
    Ok(())
}
