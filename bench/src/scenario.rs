//! What is asked, how often at once, and on which wire.
//!
//! Scenarios are the same for every path; what an answer must look like is in `wire.rs`.

/// What one call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// `tools/call` of `echo` with a short text of its own per call.
    Echo,
    /// `tools/call` of `blob`: a result of 64 KiB.
    Blob,
    /// `tools/list` of a hundred tools.
    List,
}

/// Which MCP wire the caller speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// 2026-07-28: every request stands alone.
    Modern,
    /// 2025-11-25: `initialize`, then calls in that session.
    Legacy,
}

/// One row group of the table.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub ask: Ask,
    pub era: Era,
    /// Calls in flight at once, each on its own connection.
    pub concurrency: usize,
}

/// In the order of the table.
pub const ALL: &[Scenario] = &[
    Scenario { name: "echo, 1 at once", ask: Ask::Echo, era: Era::Modern, concurrency: 1 },
    Scenario { name: "echo, 16 at once", ask: Ask::Echo, era: Era::Modern, concurrency: 16 },
    Scenario { name: "echo, 64 at once", ask: Ask::Echo, era: Era::Modern, concurrency: 64 },
    Scenario { name: "64 KiB result, 16 at once", ask: Ask::Blob, era: Era::Modern, concurrency: 16 },
    Scenario { name: "list of 100 tools, 16 at once", ask: Ask::List, era: Era::Modern, concurrency: 16 },
    Scenario {
        name: "echo in a legacy session, 16 at once",
        ask: Ask::Echo,
        era: Era::Legacy,
        concurrency: 16,
    },
];
