//! The bridge is small while it works: at most 12 MB resident after a few hundred answers went through it.

use anyhow::{Context as _, Result};
use e2e::{crib::Crib, program, upstream::Fixture, wire::Pipe, wire::hello};
use serde_json::json;
use tokio::process::Command;

const MOST_KIB: u64 = 12_000_000 / 1024;

fn resident_kib(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no `VmRSS`")?;
    Ok(line.split_whitespace().nth(1).context("no number")?.parse()?)
}

#[tokio::test]
async fn the_bridge_stays_small() -> Result<()> {
    let fixture = Fixture::http().await?;
    let crib = Crib::serve(&format!("servers: {{ fx: {{ url: {:?} }} }}", fixture.url)).await?;
    let mut command = Command::new(program::path("toolcrib-bridge")?);
    command.arg(&crib.mcp);
    let mut bridge = Pipe::open(command)?;
    bridge.request("initialize", hello()).await?;
    bridge.notify("notifications/initialized", json!({})).await?;
    for turn in 0..300 {
        let text = turn.to_string();
        let told = bridge
            .request("tools/call", json!({ "name": "fx__echo", "arguments": { "text": text } }))
            .await?;
        assert_eq!(told["content"][0]["text"], text);
    }
    let pid = bridge.child.id().context("the bridge is gone")?;
    let kib = resident_kib(pid)?;
    assert!(kib <= MOST_KIB, "{kib} KiB resident, at most {MOST_KIB}");
    Ok(())
}
