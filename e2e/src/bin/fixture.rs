//! The `fixture` binary: an MCP server for tests, well-behaved or not. The behaviour is in `e2e::fixture`.

use std::net::SocketAddr;

use anyhow::bail;
use clap::Parser;
use e2e::fixture::board::Board;
use e2e::fixture::fault::{Fault, Reactor};
use e2e::fixture::raw::Raw;
use e2e::fixture::{Era, http, pump, sse, stdio};
use tokio::net::TcpListener;

/// An MCP server for tests.
#[derive(Parser)]
struct Arguments {
    /// Serve Streamable HTTP on this address; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", group = "place")]
    http: Option<SocketAddr>,

    /// Serve the old HTTP+SSE transport on this address, by hand.
    #[arg(long, value_name = "ADDRESS", group = "place")]
    http_sse: Option<SocketAddr>,

    /// Serve standard input and output.
    #[arg(long, group = "place")]
    stdio: bool,

    /// The path of the HTTP endpoint.
    #[arg(long, default_value = "/mcp")]
    path: String,

    /// Which revisions of the protocol to admit to.
    #[arg(long, value_enum, default_value = "both")]
    era: Era,

    /// Hand out lists in pages of this many entries.
    #[arg(long, value_name = "N")]
    page_size: Option<usize>,

    /// The small server written by hand, with fields nobody specified, instead of the one on rmcp.
    #[arg(long, conflicts_with = "page_size")]
    raw: bool,

    /// Misbehave; on standard input and output unless `--http` is given.
    #[arg(long, value_enum, conflicts_with_all = ["raw", "era", "page_size", "http_sse"])]
    fault: Option<Fault>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if let Some(fault) = arguments.fault {
        return misbehave(fault, arguments.http, &arguments.path).await;
    }
    if let Some(address) = arguments.http_sse {
        return sse::serve(address).await;
    }
    let by_hand = arguments.raw.then(|| Reactor::well_behaved(Raw::new(arguments.era)));
    let board = Board::new(arguments.era, arguments.page_size)?;
    match (arguments.http, by_hand) {
        (Some(address), Some(reactor)) => pump::http(reactor, address, &arguments.path).await,
        (Some(address), None) => http::serve(address, &arguments.path, board).await,
        (None, Some(reactor)) if arguments.stdio => pump::stdio(reactor).await,
        (None, None) if arguments.stdio => stdio::serve(board).await,
        _ => bail!("say where to serve: `--http ADDRESS`, `--http-sse ADDRESS` or `--stdio`"),
    }
}

async fn misbehave(fault: Fault, address: Option<SocketAddr>, path: &str) -> anyhow::Result<()> {
    if fault == Fault::Dead {
        if let Some(address) = address {
            // The address was real, and nobody is there any more.
            let listener = TcpListener::bind(address).await?;
            println!("listening http://{}{path}", listener.local_addr()?);
        }
        eprintln!("fixture: dead on arrival");
        std::process::exit(1);
    }
    match address {
        Some(address) => pump::http(Reactor::faulty(fault), address, path).await,
        None => pump::stdio(Reactor::faulty(fault)).await,
    }
}
