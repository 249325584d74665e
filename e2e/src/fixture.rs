//! The fixture: an MCP server of our own that stands upstream in the tests.
//!
//! The well-behaved one speaks both eras on one endpoint (`server`, on `rmcp`) and passes the official conformance
//! suite; `raw` and `sse` are written by hand, to send what `rmcp` cannot; `fault` misbehaves on
//! purpose, and `pump` carries it.
//! Nothing here is part of the product. Start with `server`, then `call`.

#![expect(
    deprecated,
    reason = "sampling, roots and logging are deprecated in the newest revision, and callers of today still use them"
)]

pub mod ask;
pub mod board;
pub mod call;
pub mod catalog;
pub mod content;
pub mod fault;
pub mod gate;
pub mod http;
pub mod ours;
pub mod prompts;
pub mod pump;
pub mod raw;
pub mod resources;
pub mod rounds;
pub mod server;
pub mod sse;
pub mod stdio;
pub mod tasks;

/// Which revisions of the protocol the fixture admits to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Era {
    /// 2025-11-25 and older, and 2026-07-28, on one endpoint.
    Both,
    /// 2025-11-25 and older only; `server/discover` is answered as servers of that time do.
    Legacy,
    /// 2026-07-28 only.
    Modern,
}
