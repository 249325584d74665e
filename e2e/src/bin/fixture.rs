//! The `fixture` binary: an MCP server for tests, well-behaved or not. The behaviour is in `e2e::fixture`.

use std::net::SocketAddr;

use anyhow::bail;
use clap::Parser;
use e2e::fixture::Era;
use e2e::fixture::board::Board;
use e2e::fixture::{http, stdio};

/// An MCP server for tests.
#[derive(Parser)]
struct Arguments {
    /// Serve Streamable HTTP on this address; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,

    /// The path of the HTTP endpoint.
    #[arg(long, default_value = "/mcp")]
    path: String,

    /// Serve standard input and output.
    #[arg(long)]
    stdio: bool,

    /// Which revisions of the protocol to admit to.
    #[arg(long, value_enum, default_value = "both")]
    era: Era,

    /// Hand out lists in pages of this many entries.
    #[arg(long, value_name = "N")]
    page_size: Option<usize>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let board = Board::new(arguments.era, arguments.page_size)?;
    match arguments.http {
        Some(address) => http::serve(address, &arguments.path, board).await,
        None if arguments.stdio => stdio::serve(board).await,
        None => bail!("say where to serve: `--http ADDRESS` or `--stdio`"),
    }
}
