//! Someone installs the crib, starts it, and calls a tool. Start reading here.
//!
//! The crib is the real binary in an empty home folder. Nothing is configured, so it offers its own tools and lets in
//! whoever is on this machine.

use anyhow::{Context as _, Result};
use e2e::crib::{Crib, Home};
use e2e::wire::names;
use serde_json::{Value, json};

#[tokio::test]
async fn someone_starts_the_crib_and_calls_a_tool() -> Result<()> {
    // `toolcrib serve`. Its banner says where it listens; that is all there is to set up.
    let crib = Crib::serve_in(Home::empty()?).await?;

    // What is there to use? MCP of 2026-07-28 needs no handshake: one POST, one answer.
    let list = crib.ask("tools/list", json!({})).await?;
    assert_eq!(
        names(&list),
        ["crib__describe_tool", "crib__list_sources", "crib__recent_calls", "crib__search_tools"]
    );

    // Use one of them.
    let found = crib.call("crib__search_tools", json!({ "query": "recent calls" })).await?;
    assert_eq!(found["isError"], false);
    assert_eq!(found["structuredContent"]["tools"][0]["id"], "crib:recent_calls");

    // The attendant wrote down who took what, and how it went, but not what was said.
    let calls = crib.told("/calls?finished=10").await?;
    let entry = calls["entries"].get(0).context("the call is in the ledger")?;
    assert_eq!(entry["caller"], "local");
    assert_eq!(entry["item"], "crib:search_tools");
    assert_eq!(entry["outcome"], "done");
    assert!(!calls.to_string().contains("recent calls"), "arguments are not kept: {calls}");

    // A tool that is not there is told so, and that is written down too.
    let unknown = crib.call("crib__no_such_tool", json!({})).await;
    assert!(unknown.is_err_and(|error| error.to_string().contains("no_such_tool")));
    let calls = crib.told("/calls?finished=1").await?;
    assert_eq!(calls["entries"][0]["outcome"], "unknown");

    // And it goes when it is asked to.
    assert!(crib.stop().await?.success());
    Ok(())
}

#[tokio::test]
async fn a_client_from_before_2026_gets_the_same_tools() -> Result<()> {
    let crib = Crib::serve_in(Home::empty()?).await?;
    let session = e2e::session::Session::open(&crib.mcp).await?;
    let list = session.request("tools/list", json!({})).await?;
    assert_eq!(names(&list), names(&crib.ask("tools/list", json!({})).await?));
    let sources = session.call("crib__list_sources", json!({})).await?;
    assert_eq!(sources["structuredContent"]["sources"][0]["id"], "crib");
    // That era has no such field.
    assert_eq!(sources.get("resultType"), None::<&Value>);
    Ok(())
}
