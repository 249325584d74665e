//! The port tools run behind, and the state of what stands there.
//!
//! [`Source::invoke`] takes a permit and nothing else; there is no other way to make a source do something. A
//! [`Dialer`] knows how to reach one source; [`supervisor`] decides when, keeps at most one connection to it, and
//! shows its state.

pub mod supervisor;

pub mod terms;

mod supervised;

mod attend;
mod handle;
mod wishes;

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    call::{Events, Level, Reply},
    catalog::Offer,
    error::Failure,
    policy::Permit,
    raw::Raw,
};

#[async_trait]
pub trait Source: Send + Sync {
    /// Runs what was permitted. Dropping the future, or cancelling the token, calls it off at the source too.
    async fn invoke(
        &self,
        permit: Permit,
        events: Events,
        cancel: CancellationToken,
    ) -> Result<Reply, Failure>;
}

/// A live connection to a source.
#[async_trait]
pub trait Connection: Source {
    fn facts(&self) -> Facts;

    /// Everything the source lists, asked anew.
    async fn offer(&self) -> Result<Offer, Failure>;

    /// Makes `uris` the whole set of resources whose changes the source reports.
    async fn watch(&self, uris: BTreeSet<String>) -> Result<(), Failure>;

    /// Asks for log messages from this level on, where the source has one level for all.
    async fn hear(&self, level: Level) -> Result<(), Failure>;

    /// Ends when the connection is lost; tells why.
    async fn lost(&self) -> String;

    /// Ends the connection and everything that was started for it.
    async fn close(&self);
}

/// Knows how to reach one source.
#[async_trait]
pub trait Dialer: Send + Sync {
    async fn dial(&self, tidings: mpsc::Sender<Tidings>) -> Result<Arc<dyn Connection>, Failure>;

    /// `stdio`, `http`, `sse`, `builtin`.
    fn transport(&self) -> &'static str;

    /// Where it is, for people: a URL or a command, without secrets.
    fn address(&self) -> String;
}

/// What a source says unasked.
#[derive(Debug)]
pub enum Tidings {
    /// One or more of its lists changed.
    ListChanged(Lists),
    ResourceUpdated {
        uri: String,
        message: Raw,
    },
    Log {
        level: Level,
        message: Raw,
    },
    /// A notification the crib does not know.
    Notice {
        method: String,
        params: Option<Raw>,
    },
}

/// Which lists a source says have changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    pub tools: bool,
    pub prompts: bool,
    pub resources: bool,
}

impl Lists {
    pub const ALL: Self = Self { tools: true, prompts: true, resources: true };
}

impl std::ops::BitOr for Lists {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self {
            tools: self.tools | other.tools,
            prompts: self.prompts | other.prompts,
            resources: self.resources | other.resources,
        }
    }
}

/// What is known of a live connection.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Facts {
    /// The revision of the source's protocol that is spoken.
    pub protocol: Option<String>,
    /// The source's own name and version.
    pub server: Option<Raw>,
    pub pid: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Switched off in the config.
    Disabled,
    /// Not connected; will be when needed.
    Idle,
    Connecting,
    Ready,
    /// The last attempt failed; another follows.
    Failed,
    /// Disconnected by an operator; stays so until connected again.
    Stopped,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            State::Disabled => "disabled",
            State::Idle => "idle",
            State::Connecting => "connecting",
            State::Ready => "ready",
            State::Failed => "failed",
            State::Stopped => "stopped",
        }
    }
}

/// When a source is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectMode {
    /// When its tools are first asked for; let go again when idle.
    OnDemand,
    /// From the start, and again whenever it is lost.
    Always,
}

#[cfg(test)]
mod tests;
