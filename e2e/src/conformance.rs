//! The official conformance suite, run against one URL, and its whole result held against what was agreed.
//!
//! `suite` runs it and reads what it wrote; `baseline` says which failures are known and why. Neither decides what is
//! put in front of the fixture: the `conformance` binary does.

pub mod baseline;
pub mod suite;

use std::fmt;

/// A revision of the protocol the suite has requirements for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
pub enum Revision {
    #[serde(rename = "2025-11-25")]
    Legacy,
    #[serde(rename = "2026-07-28")]
    Modern,
}

impl Revision {
    pub const ALL: [Self; 2] = [Self::Legacy, Self::Modern];

    pub fn date(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.date())
    }
}

/// Whether a scenario counts towards conformance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    Scored,
    Unscored,
}
