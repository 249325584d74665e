//! One request to use one thing, free of any wire format; what comes back while it runs; how it ends.
//!
//! Arguments and results are raw JSON. A tongue makes a [`Call`], `gateway` turns it into an
//! [`Invocation`] (what was asked, resolved) and, if policy allows, a source runs it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::Serialize;
use tokio::{sync::mpsc, time::Instant};

use crate::{
    caller::Caller,
    catalog::Item,
    id::{CallId, SourceId},
    raw::Raw,
};

/// What a caller asks for, in the caller's own spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Tool(String),
    Prompt(String),
    /// A resource by URI.
    Resource(String),
    /// Completion of an argument of a prompt.
    CompletePrompt(String),
    /// Completion of a variable of a resource template.
    CompleteResource(String),
    /// A method of a source's protocol that the crib itself does not know. Without a source it goes to
    /// the only one there is.
    Method {
        source: Option<SourceId>,
        method: String,
    },
}

impl Target {
    /// The kind of thing, as the ledger spells it.
    pub fn kind(&self) -> &'static str {
        match self {
            Target::Tool(_) => "tool",
            Target::Prompt(_) => "prompt",
            Target::Resource(_) => "resource",
            Target::CompletePrompt(_) | Target::CompleteResource(_) => "completion",
            Target::Method { .. } => "method",
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Target::Tool(name)
            | Target::Prompt(name)
            | Target::Resource(name)
            | Target::CompletePrompt(name)
            | Target::CompleteResource(name)
            | Target::Method { method: name, .. } => name,
        }
    }
}

/// Where a call came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Surface {
    McpHttp,
    McpStdio,
    Rest,
    Cli,
}

impl Surface {
    pub fn word(self) -> &'static str {
        match self {
            Surface::McpHttp => "mcp_http",
            Surface::McpStdio => "mcp_stdio",
            Surface::Rest => "rest",
            Surface::Cli => "cli",
        }
    }
}

/// How loud a log message is; syslog's eight levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl Level {
    const ALL: [(Level, &'static str); 8] = [
        (Level::Debug, "debug"),
        (Level::Info, "info"),
        (Level::Notice, "notice"),
        (Level::Warning, "warning"),
        (Level::Error, "error"),
        (Level::Critical, "critical"),
        (Level::Alert, "alert"),
        (Level::Emergency, "emergency"),
    ];

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, w)| *w == word).map(|(level, _)| *level)
    }

    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(level, _)| *level == self).map_or("info", |(_, word)| word)
    }
}

/// What travels beside the arguments, untouched by the crib.
#[derive(Clone, Debug, Default)]
pub struct Carry {
    /// Other members of the request, as they came.
    pub fields: Vec<(String, Raw)>,
    /// Metadata of the request that is neither the wire's nor the crib's: vendor keys, trace keys.
    pub meta: Vec<(String, Raw)>,
    /// The caller follows the progress of this call.
    pub progress: Progress,
    /// The loudness from which on the caller wants log messages of this call; none: no messages.
    pub log: Option<Level>,
    /// What the asking program can do (answer questions, sample, …), as it declared it for this call.
    pub abilities: Option<Raw>,
}

/// Whether the caller wants to hear how far a call has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    #[default]
    Unwanted,
    Wanted,
}

/// One request, from one recognised caller.
#[derive(Debug)]
pub struct Call {
    pub id: CallId,
    pub caller: Arc<Caller>,
    pub surface: Surface,
    pub target: Target,
    /// The arguments, one JSON object; none where the caller sent none.
    pub arguments: Option<Raw>,
    pub carry: Carry,
}

impl Call {
    pub fn new(caller: Arc<Caller>, surface: Surface, target: Target, arguments: Option<Raw>) -> Self {
        Self { id: CallId::fresh(), caller, surface, target, arguments, carry: Carry::default() }
    }

    pub fn carrying(mut self, carry: Carry) -> Self {
        self.carry = carry;
        self
    }
}

/// What is done with the item: used (called, got, read), or one of its arguments completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Use,
    Complete,
}

impl Verb {
    pub fn of(target: &Target) -> Self {
        match target {
            Target::CompletePrompt(_) | Target::CompleteResource(_) => Verb::Complete,
            Target::Tool(_) | Target::Prompt(_) | Target::Resource(_) | Target::Method { .. } => Verb::Use,
        }
    }
}

/// A call whose target was found, was visible to its caller, and whose arguments fit.
#[derive(Debug)]
pub struct Invocation {
    pub call: CallId,
    pub caller: Arc<Caller>,
    pub verb: Verb,
    pub item: Item,
    pub arguments: Option<Raw>,
    pub carry: Carry,
    /// How long the source may stay silent.
    pub patience: Duration,
}

/// What a source says while it works.
#[derive(Debug)]
pub enum Event {
    /// How far it has come: the members of the source's progress message.
    Progress(Raw),
    /// A log message.
    Log { level: Level, message: Raw },
    /// A notification the crib does not know, tied to this call.
    Notice { method: String, params: Option<Raw> },
}

/// The sink for a call's events. Bounded; what does not fit is dropped, since events inform and never decide.
#[derive(Clone, Debug)]
pub struct Events {
    sender: mpsc::Sender<Event>,
    last: Arc<Mutex<Instant>>,
}

/// Events a caller may be behind by before newer ones are dropped.
const EVENT_BACKLOG: usize = 256;

impl Events {
    pub fn channel() -> (Self, mpsc::Receiver<Event>) {
        let (sender, receiver) = mpsc::channel(EVENT_BACKLOG);
        (Self { sender, last: Arc::new(Mutex::new(Instant::now())) }, receiver)
    }

    pub fn emit(&self, event: Event) {
        self.touch();
        if self.sender.try_send(event).is_err() {
            tracing::debug!("an event of a call was dropped: its caller does not keep up or has left");
        }
    }

    /// The source is not silent, even if it says nothing: it is being connected.
    pub fn touch(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// When the source was last heard; a source that reports progress is not silent.
    pub fn last_heard(&self) -> Instant {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a source ended a call it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Done,
    /// The tool itself reports that it failed.
    ToolError,
    /// The source wants something from the caller before it goes on.
    InputRequired,
}

/// The one answer to a call: the source's result object, untouched.
#[derive(Debug)]
pub struct Reply {
    pub result: Raw,
    pub outcome: Outcome,
}
