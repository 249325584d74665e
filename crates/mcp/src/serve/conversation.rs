//! A running call as messages: notifications while it runs, then its one answer, in the asker's spelling.

use http::StatusCode;
use serde_json::value::RawValue;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolcrib_core::{
    call::{Event, Level, Outcome, Reply},
    error::{Failure, Kind},
    gateway::{Running, abandoned},
    raw::{Members, ObjectWriter, Raw},
};

use crate::{
    codes::{Fault, INTERNAL_ERROR},
    serve::{
        render::{self, Caching},
        underway::Ticket,
    },
    version::Era,
    wire::{self, Id},
};

/// What a call is, where that changes how its end is told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kindred {
    Tool,
    /// A read, whose result says how long it may be kept.
    Read,
    /// A method the crib does not know.
    Method,
    Other,
}

pub struct Conversation {
    running: Running,
    heard_all: bool,
    id: Id,
    kindred: Kindred,
    era: Era,
    /// The client's own progress token.
    token: Option<Raw>,
    log: Option<Level>,
    /// The client's word that it no longer wants the answer.
    called_off: CancellationToken,
    /// Where leaving means cancelling.
    leash: Option<DropGuard>,
}

pub enum Step {
    Notify(String),
    Done { message: String, status: StatusCode },
}

impl Conversation {
    pub fn new(
        running: Running,
        id: Id,
        kindred: Kindred,
        era: Era,
        token: Option<Raw>,
        log: Option<Level>,
    ) -> Self {
        let called_off = CancellationToken::new();
        Self { running, heard_all: false, id, kindred, era, token, log, called_off, leash: None }
    }

    /// A request that its client calls off cancels the call.
    pub fn heeding(mut self, ticket: &Ticket) -> Self {
        self.called_off = ticket.cancel.clone();
        self
    }

    /// Dropping the conversation before its end cancels the call.
    pub fn on_a_leash(mut self) -> Self {
        self.leash = Some(self.running.cancel.clone().drop_guard());
        self
    }

    /// The next message. After [`Step::Done`] there is none.
    pub async fn next(&mut self) -> Step {
        loop {
            tokio::select! {
                biased;
                () = self.called_off.cancelled(), if !self.running.cancel.is_cancelled() => {
                    self.running.cancel.cancel();
                }
                event = self.running.events.recv(), if !self.heard_all => match event {
                    Some(event) => {
                        if let Some(message) = self.notification(event) {
                            return Step::Notify(message);
                        }
                    }
                    None => self.heard_all = true,
                },
                reply = &mut self.running.reply => {
                    if let Some(leash) = self.leash.take() {
                        leash.disarm();
                    }
                    return self.done(reply.unwrap_or_else(|_| Err(abandoned())));
                }
            }
        }
    }

    /// What the client hears of an event, if it asked for such.
    fn notification(&self, event: Event) -> Option<String> {
        match event {
            Event::Progress(params) => {
                let params = retoken(&params, self.token.as_deref()?);
                Some(wire::notification("notifications/progress", Some(&params)))
            }
            Event::Log { level, message } => {
                (self.log? <= level).then(|| wire::notification("notifications/message", Some(&message)))
            }
            Event::Notice { method, params } => Some(wire::notification(&method, params.as_deref())),
        }
    }

    fn done(&self, end: Result<Reply, Failure>) -> Step {
        let told = match end {
            Ok(reply) if reply.outcome == Outcome::InputRequired && self.era == Era::Legacy => {
                Err(Fault::new(
                    INTERNAL_ERROR,
                    "the source wants input in the middle of the call, which cannot be passed on to this client",
                ))
            }
            Ok(reply) => Ok(self.rendered(reply.result)),
            // A model can mend its arguments when it is told what is wrong with them.
            Err(failure) if failure.kind == Kind::InvalidArguments && self.kindred == Kindred::Tool => {
                Ok(self.rendered(tool_error(&failure.told)))
            }
            Err(failure) => Err(match self.kindred {
                Kindred::Read => Fault::of_resource(&failure, self.era),
                Kindred::Method => Fault::of_method(&failure, self.era),
                Kindred::Tool | Kindred::Other => Fault::of(&failure, self.era),
            }),
        };
        match told {
            Ok(result) => {
                Step::Done { message: wire::success(Some(&self.id), &result), status: StatusCode::OK }
            }
            Err(fault) => {
                Step::Done { message: wire::failure(Some(&self.id), &fault.object), status: fault.status }
            }
        }
    }

    fn rendered(&self, result: Raw) -> String {
        let caching = if self.kindred == Kindred::Read { Caching::Hinted } else { Caching::Silent };
        render::result(result, self.era, caching)
    }
}

/// A tool's result that says what went wrong.
fn tool_error(text: &str) -> Raw {
    toolcrib_core::raw::from(&serde_json::json!({
        "content": [{ "type": "text", "text": text }],
        "isError": true,
    }))
}

fn retoken(params: &RawValue, token: &RawValue) -> Raw {
    let mut object = ObjectWriter::with_capacity(params.get().len() + 32);
    object.member("progressToken", token);
    for (key, value) in Members::parse_lenient(params).iter().filter(|(key, _)| *key != "progressToken") {
        object.member(key, value);
    }
    object.finish()
}
