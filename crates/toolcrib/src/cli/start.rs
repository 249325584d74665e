//! `serve`, `stdio` and `bridge`: the commands that stay. What they run is in `serve.rs` and in the bridge crate.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

use super::trouble::{Code, Trouble, whole};
use super::{Desk, Ended};
use crate::serve::ServeFlags;

/// Start the crib: MCP and tools on one port, administration on another
#[derive(Debug, Args)]
#[command(after_help = "\
Without a config it starts on an embedded default. The banner shows both URLs and the line to paste into each client. \
An edit of the config takes hold at once; a bad edit is refused and the old config stays.

Examples:
  toolcrib serve
  toolcrib serve --config toolcrib.yaml --listen-mcp 127.0.0.1:9000")]
pub struct Serve {
    /// Where MCP and tools are offered, instead of the config's `listen.mcp`; port 0 takes any free one
    #[arg(long, value_name = "ADDR")]
    listen_mcp: Option<SocketAddr>,
    /// Where the crib is administered, instead of the config's `listen.admin`
    #[arg(long, value_name = "ADDR")]
    listen_admin: Option<SocketAddr>,
}

/// Serve MCP on stdin and stdout, for clients that start their servers
#[derive(Debug, Args)]
#[command(after_help = "\
`toolcrib --config servers.yaml` with a pipe on stdin does the same.

Example, in a client's config:
  { \"command\": \"toolcrib\", \"args\": [\"stdio\", \"--config\", \"toolcrib.yaml\"] }")]
pub struct Stdio {}

/// Relay MCP between stdin/stdout and a crib elsewhere
#[derive(Debug, Args)]
#[command(after_help = "\
It waits for a crib that is not up yet and survives its restart. `toolcrib-bridge` is the same as a small program of \
its own. The token comes from --token, TOOLCRIB_TOKEN or GATEWAY_TOKEN.

Example:
  toolcrib bridge http://tool-gateway:8081")]
pub struct Bridge {
    /// The crib; `/mcp` is added where it is missing
    url: String,
    /// Send this header with every message; may be repeated
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// Wait this long for a crib that refuses connections
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    wait: Duration,
    /// Give up on a request after this long; 0 never
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    timeout: Duration,
    /// Let requests in flight finish this long after the input ends
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    grace: Duration,
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(number).map_err(|error| error.to_string())
}

pub async fn serve(words: Serve, desk: &Desk) -> Ended {
    let loaded = desk.load_quietly()?;
    crate::serve::serve(loaded, ServeFlags { mcp: words.listen_mcp, admin: words.listen_admin }).await?;
    Ok(Code::Done)
}

pub async fn stdio(desk: &Desk) -> Ended {
    crate::serve::stdio(desk.load_quietly()?).await?;
    Ok(Code::Done)
}

pub async fn bridge(words: Bridge, desk: &Desk) -> Ended {
    let wrong = |error: toolcrib_bridge::OptionsError| Trouble::usage(error.to_string());
    let mut options = toolcrib_bridge::Options::new(&words.url).map_err(wrong)?;
    if let Some(token) = &desk.token {
        options = options.with_token(token).map_err(wrong)?;
    }
    for header in &words.header {
        options = options.with_header(header).map_err(wrong)?;
    }
    options.wait = words.wait;
    options.grace = words.grace;
    options.timeout = Some(words.timeout).filter(|timeout| !timeout.is_zero());
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    toolcrib_bridge::run_until(options, input, output, toolcrib_bridge::stop_signal())
        .await
        .map_err(|error| Trouble::failed(whole(&error)))?;
    Ok(Code::Done)
}
