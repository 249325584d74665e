//! The audit memory. An entry is opened before anything happens and closed when it has ended, whatever happened.
//!
//! Two phases, so that a call whose process died is still seen: opened, never closed, *unfinished*. Arguments and
//! results are not stored. The keeper behind the port is `store`.

use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use serde::Serialize;

use crate::{
    call::{Outcome, Surface},
    caller::{Caller, CallerKind},
    error::{Failure, Kind},
    id::{CallId, CallerId, SourceId},
};

#[derive(Debug, thiserror::Error)]
#[error("the ledger cannot be used: {0}")]
pub struct LedgerDown(pub String);

/// What is known when a call comes in.
#[derive(Debug, Clone)]
pub struct Opening {
    pub call: CallId,
    /// Milliseconds since 1970.
    pub at: u64,
    pub caller: CallerId,
    pub caller_kind: CallerKind,
    pub surface: Surface,
    /// `tool`, `prompt`, `resource`, …
    pub kind: &'static str,
    /// As the caller spelt it, cut to a sane length.
    pub target: String,
    pub bytes_in: u64,
}

const LONGEST_TARGET: usize = 512;

impl Opening {
    pub fn new(call: &crate::call::Call) -> Self {
        let Caller { id, kind, .. } = &*call.caller;
        Self {
            call: call.id,
            at: now(),
            caller: id.clone(),
            caller_kind: *kind,
            surface: call.surface,
            kind: call.target.kind(),
            target: call.target.name().chars().take(LONGEST_TARGET).collect(),
            bytes_in: call.arguments.as_ref().map_or(0, |raw| raw.get().len() as u64),
        }
    }
}

/// An open entry. It is handed back to be closed.
#[derive(Debug)]
#[must_use = "an entry that is not closed reads as a call whose process died"]
pub struct Entry {
    pub number: i64,
}

/// What is known when a call has ended.
#[derive(Debug, Clone)]
pub struct Closing {
    pub at: u64,
    pub ending: Ending,
    /// `source:name`, where the target was found.
    pub item: Option<String>,
    pub source: Option<SourceId>,
    pub duration_us: u64,
    pub bytes_out: u64,
    /// The layer of policy that refused.
    pub layer: Option<&'static str>,
    pub detail: Option<String>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Ran(Outcome),
    /// Policy refused, whatever the caller was told.
    Denied,
    Failed(Kind),
}

impl Ending {
    pub fn of(failure: &Failure) -> Self {
        match failure.layer {
            Some(_) => Ending::Denied,
            None => Ending::Failed(failure.kind),
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Ending::Ran(Outcome::Done) => "done",
            Ending::Ran(Outcome::ToolError) => "tool_error",
            Ending::Ran(Outcome::InputRequired) => "input_required",
            Ending::Denied => "denied",
            Ending::Failed(kind) => kind.word(),
        }
    }
}

/// Whether an entry is closed, still open, or will never be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    Running,
    Finished,
    /// The process that opened it is gone.
    Unfinished,
}

/// One line of the ledger, as it is read back.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    pub number: i64,
    pub call: String,
    pub at: u64,
    pub caller: String,
    pub caller_kind: String,
    pub surface: String,
    pub kind: String,
    pub target: String,
    pub progress: Progress,
    pub item: Option<String>,
    pub source: Option<String>,
    /// The word of [`Ending`]; none while it is open.
    pub outcome: Option<String>,
    pub duration_us: Option<u64>,
    pub bytes_in: u64,
    pub bytes_out: Option<u64>,
    pub layer: Option<String>,
    pub detail: Option<String>,
}

impl Line {
    /// What somebody who is not an admin may read: not why policy refused, nor that there was something to refuse.
    pub fn told_to_user(mut self) -> Self {
        let hidden = self.outcome.as_deref() == Some(Ending::Denied.word());
        if hidden {
            self.outcome = Some(Kind::Unknown.word().to_owned());
            (self.item, self.source) = (None, None);
        }
        (self.layer, self.detail) = (None, None);
        self
    }
}

/// Which lines to read. Every member narrows; all empty reads everything.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub call: Option<String>,
    pub caller: Option<String>,
    pub source: Option<String>,
    /// Part of the target or of the item's id.
    pub about: Option<String>,
    pub outcome: Option<String>,
    /// Milliseconds since 1970, inclusive.
    pub since: Option<u64>,
    pub until: Option<u64>,
    /// Only lines with a higher number.
    pub after: Option<i64>,
    pub order: Order,
    pub limit: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    NewestFirst,
    OldestFirst,
}

#[async_trait]
pub trait Ledger: Send + Sync {
    /// Returns once the entry is committed. Failing means that nothing may happen.
    async fn open(&self, opening: Opening) -> Result<Entry, LedgerDown>;

    /// Returns once the end is committed.
    async fn close(&self, entry: Entry, closing: Closing) -> Result<(), LedgerDown>;

    async fn read(&self, filter: Filter) -> Result<Vec<Line>, LedgerDown>;
}

/// Milliseconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
