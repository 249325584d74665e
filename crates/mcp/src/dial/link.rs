//! What every way to a source can do: ask, tell, end. The eras and the meaning of messages are not known here.
//!
//! Implemented by `pipe` (one duplex for everything) and `http` (a request is an exchange of its own).

use async_trait::async_trait;
use serde_json::value::RawValue;
use tokio::sync::watch;
use toolcrib_core::{
    call::{Events, Level},
    error::{Failure, Kind},
    raw::{ObjectWriter, Raw},
};

use crate::{
    codes::{self, Fault},
    version::Version,
    wire::{self, Id},
};

/// Anything longer is not read to its end.
pub(crate) const LARGEST_MESSAGE: usize = 64 * 1024 * 1024;

#[async_trait]
pub(crate) trait Link: Send + Sync {
    /// Asks and waits for the answer. What the source says meanwhile about this very request goes to `call` where
    /// the link can tell. Dropping the future calls the request off.
    async fn request(&self, ask: Ask, call: Option<&Events>) -> Result<Raw, Trouble>;

    async fn notify(&self, method: &str, params: Option<Raw>) -> Result<(), Trouble>;

    /// The revision spoken from now on; none: not yet settled.
    fn settle(&self, _version: Option<Version>) {}

    /// The greeting is over: whatever the source says unasked may be fetched now.
    fn attend(&self) {}

    /// Ends whenever the source has forgotten the session and it was opened anew.
    async fn renewed(&self) {
        std::future::pending().await
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    async fn lost(&self) -> String;

    async fn close(&self);
}

/// One request, ready to go.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub method: String,
    pub params: Option<Raw>,
    /// What `Mcp-Name` says, where the wire has headers.
    pub name: Option<String>,
    /// What `Mcp-Param-*` say: header and text.
    pub mirrored: Vec<(String, String)>,
    /// The W3C trace context, where the wire has headers for it.
    pub trace: Vec<(&'static str, String)>,
    /// From which loudness on the caller wants log messages.
    pub log: Option<Level>,
    pub abandon: Abandon,
}

impl Ask {
    pub fn new(method: &str, params: Option<Raw>) -> Self {
        Self {
            method: method.to_owned(),
            params,
            name: None,
            mirrored: Vec::new(),
            trace: Vec::new(),
            log: None,
            abandon: Abandon::AndTell,
        }
    }

    pub fn quietly(mut self) -> Self {
        self.abandon = Abandon::Quietly;
        self
    }
}

/// What happens at the source when a request is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Abandon {
    AndTell,
    /// Greetings cannot be called off.
    Quietly,
}

/// Why a request has no result.
#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    /// The source answered with an error object.
    Refused(Raw),
    /// The source answered with an HTTP status and nothing of its own protocol.
    Status(http::StatusCode, Failure),
    /// The source has forgotten the session.
    SessionGone(Failure),
    /// The connection is over.
    Gone(Failure),
    Failed(Failure),
}

impl Trouble {
    pub fn failed(kind: Kind, told: impl Into<String>) -> Self {
        Trouble::Failed(Failure::new(kind, told))
    }

    /// The code of the source's error object, if it sent one.
    pub fn code(&self) -> Option<i64> {
        match self {
            Trouble::Refused(object) => codes::failure(object).peer.map(|peer| peer.code),
            _ => None,
        }
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Refused(object) => refused(&object),
            Trouble::Status(_, failure)
            | Trouble::SessionGone(failure)
            | Trouble::Gone(failure)
            | Trouble::Failed(failure) => failure,
        }
    }
}

/// A source's error as a failure. What it says of the hop between the crib and itself is not passed on: the caller
/// would take it for the crib's own word about the caller's request.
fn refused(object: &RawValue) -> Failure {
    let failure = codes::failure(object);
    let told = match failure.peer.as_ref().map(|peer| peer.code) {
        Some(codes::HEADER_MISMATCH) => {
            "the source finds that headers and body of the request differ (its error -32020); its tools are listed \
             anew, try again"
        }
        Some(codes::UNSUPPORTED_VERSION) => {
            "the source no longer takes the protocol revision it was greeted with (its error -32022); restart its \
             connection"
        }
        _ => return failure,
    };
    Failure { kind: Kind::BadSource, told: told.to_owned(), peer: None, ..failure }
}

/// The end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// How everything that was open fails.
    pub failure: Failure,
    /// The reason, for operators: it may quote the source, and so what callers sent to it.
    pub why: String,
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self { why: failure.told.clone(), failure }
    }
}

/// How a connection ended; set once, seen by everyone.
#[derive(Clone)]
pub(crate) struct End(watch::Sender<Option<Ended>>);

impl Default for End {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl End {
    pub fn set(&self, ended: Ended) {
        self.0.send_if_modified(|end| {
            let first = end.is_none();
            if first {
                *end = Some(ended);
            }
            first
        });
    }

    pub fn now(&self) -> Option<Failure> {
        self.0.borrow().as_ref().map(|ended| ended.failure.clone())
    }

    pub async fn wait(&self) -> String {
        let mut end = self.0.subscribe();
        match end.wait_for(Option::is_some).await {
            Ok(end) => end.as_ref().map_or_else(String::new, |ended| ended.why.clone()),
            Err(_) => "the connection ended".to_owned(),
        }
    }
}

/// The answer to what a source asks of us: we are there, and declared nothing else.
pub(crate) fn retort(id: &Id, method: &str) -> String {
    match method {
        "ping" => wire::success(Some(id), "{}"),
        _ => {
            let told = format!("`{method}` is not supported by this client");
            wire::failure(Some(id), &Fault::new(codes::METHOD_NOT_FOUND, &told).object)
        }
    }
}

/// The message that calls request `id` off.
pub(crate) fn cancelled(id: &Id) -> String {
    let mut params = ObjectWriter::default();
    params.raw("requestId", id.text()).text("reason", "the caller called it off");
    wire::notification("notifications/cancelled", Some(&params.finish()))
}

/// A result is an object; anything else is the source's mistake.
pub(crate) fn object(result: Raw) -> Result<Raw, Trouble> {
    let is_object = |raw: &RawValue| raw.get().starts_with('{');
    match is_object(&result) {
        true => Ok(result),
        false => {
            Err(Trouble::failed(Kind::BadSource, "the source answered with a result that is not an object"))
        }
    }
}
