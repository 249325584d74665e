//! The life of one message on the wire: sent, answered, its answer on the output.
//!
//! Everything that can be put right without the client is put right here, each at most once: a session the crib
//! has forgotten, headers it missed, a lost connection where repeating does no harm. What cannot is a `Failure`.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::answer::{Asker, Failure};
use crate::dial::{self, DialError, Progress, Way};
use crate::header;
use crate::link::{Form, Link, session_id};
use crate::peek::{self, Message};
use crate::session::{Seen, Session};
use crate::stream::{Feed, Place};
use crate::subscription::{self, Turn};

/// Broken legacy answers are taken up again this often without progress before they are given up.
const RESUME_LIMIT: u32 = 5;
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A subscription that held this long was not at fault when it broke.
const STEADY: Duration = Duration::from_secs(10);

/// Which protocol a message speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Era {
    Legacy,
    Modern { version: String },
}

/// One message to be carried.
#[derive(Debug)]
pub struct Errand {
    pub line: Bytes,
    pub asker: Asker,
    /// Empty for answers and batches.
    pub method: String,
    pub era: Era,
    pub progress: Progress,
}

/// What has been put right already.
#[derive(Default)]
struct Remedies {
    revived: bool,
    relisted: bool,
    repeated: bool,
    resubscribed: u32,
}

impl Errand {
    fn opens_session(&self) -> bool {
        self.method == "initialize"
    }

    fn was_heard(&self) -> bool {
        *self.progress.borrow() == Way::Heard
    }

    /// Asking twice changes nothing at the crib.
    fn is_harmless(&self) -> bool {
        matches!(self.method.as_str(), "initialize" | "ping" | "server/discover" | "completion/complete")
            || self.method.ends_with("/list")
            || matches!(self.method.as_str(), "resources/read" | "prompts/get" | "tasks/get" | "tasks/result")
    }
}

/// Carries one message: when this returns, its answer (if it has one) is on the output.
pub async fn carry(link: &Link, errand: &Errand) -> Result<(), Failure> {
    let mut remedies = Remedies::default();
    loop {
        let seen = link.session.seen();
        let turn = if remedies.resubscribed == 0 { Turn::First } else { Turn::Again };
        let begun = Instant::now();
        let failure = match attempt(link, errand, &seen, turn).await {
            Ok(()) => return Ok(()),
            Err(failure) => failure,
        };
        let subscribed = errand.was_heard() || turn == Turn::Again;
        if errand.method == subscription::LISTEN && failure.is_cut() && subscribed {
            // A subscription that held for a while is taken up at once, one that keeps breaking ever later.
            remedies.resubscribed = if begun.elapsed() > STEADY { 1 } else { remedies.resubscribed + 1 };
            tokio::time::sleep(pause(remedies.resubscribed)).await;
            continue;
        }
        if !put_right(link, errand, &seen, &failure, &mut remedies).await? {
            return Err(failure);
        }
    }
}

async fn attempt(link: &Link, errand: &Errand, seen: &Seen, turn: Turn) -> Result<(), Failure> {
    let headers = match &errand.era {
        Era::Modern { version } => link.modern_headers(&errand.line, version),
        Era::Legacy if errand.opens_session() => HeaderMap::new(),
        Era::Legacy => seen.headers(),
    };
    let response = link.dial.post(&headers, &errand.line, Some(&errand.progress)).await?;
    let session = session_id(&response);
    let (form, response) = link.accepted(response).await?;
    match form {
        Form::Nothing => match errand.asker {
            Asker::Nobody => Ok(()),
            _ => Err(Failure::NoAnswer(response.status())),
        },
        Form::Json => {
            let status = response.status();
            let line = link.json(response).await?;
            match (line.is_empty(), &errand.asker) {
                (true, Asker::Nobody) => Ok(()),
                (true, _) => Err(Failure::NoAnswer(status)),
                (false, _) => deliver(link, errand, session.as_deref(), line).await.map(|_| ()),
            }
        }
        Form::Events => {
            let mut feed = Feed::new(response.into_body(), link.limit);
            if turn == Turn::Again {
                refresh(link, errand, &mut feed).await?;
            }
            follow(link, errand, seen, session.as_deref(), feed).await
        }
    }
}

/// Whether the cause of `failure` is gone and another attempt makes sense.
async fn put_right(
    link: &Link,
    errand: &Errand,
    seen: &Seen,
    failure: &Failure,
    done: &mut Remedies,
) -> Result<bool, Failure> {
    match failure {
        Failure::Refused(refusal)
            if refusal.forgot_session()
                && errand.era == Era::Legacy
                && !errand.opens_session()
                && seen.id.is_some()
                && !done.revived =>
        {
            done.revived = true;
            match link.revive(seen).await {
                Ok(()) => Ok(true),
                Err(Failure::OutputClosed) => Err(Failure::OutputClosed),
                Err(Failure::Refused(refusal)) => Err(Failure::NotRevived(refusal.words())),
                Err(other) => Err(Failure::NotRevived(other.to_string())),
            }
        }
        Failure::Refused(refusal) if refusal.is_header_mismatch() && !done.relisted => {
            done.relisted = true;
            Ok(relearn(link, errand).await)
        }
        Failure::Dial(DialError::Lost { .. }) if errand.is_harmless() && !done.repeated => {
            done.repeated = true;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// A client may know a tool from a list this bridge never saw (its cache): then the bridge asks for the list
/// itself, in the name of the very call that was refused.
async fn relearn(link: &Link, errand: &Errand) -> bool {
    let Era::Modern { version } = &errand.era else { return false };
    let text = std::str::from_utf8(&errand.line).unwrap_or_default();
    let Ok(Message::Request { method, params, .. }) = peek::message(text) else { return false };
    let Some(tool) = params.name.and_then(peek::string).filter(|_| method == "tools/call") else {
        return false;
    };
    let before = link.annotations.of(&tool);
    if let Err(failure) = link.learn_tools(params.meta, version).await {
        eprintln!("toolcrib-bridge: could not list the tools to learn their headers: {failure}");
    }
    link.annotations.of(&tool) != before
}

/// Puts one message of the answer on the output. True when it was the answer itself.
async fn deliver(link: &Link, errand: &Errand, session: Option<&str>, line: String) -> Result<bool, Failure> {
    let mut answered = false;
    if let (Asker::One(id), Some(reply)) = (&errand.asker, peek::reply(&line)) {
        answered = reply.method.is_none() && reply.id.is_some_and(|got| peek::same_id(got, id));
        if let Some(result) = reply.result.filter(|_| answered) {
            learn(link, errand, session, result);
        }
    }
    link.say(line).await?;
    Ok(answered)
}

fn learn(link: &Link, errand: &Errand, session: Option<&str>, result: &RawValue) {
    let session = session.map(str::to_owned);
    match errand.method.as_str() {
        "initialize" => {
            link.session.open(errand.line.clone(), Session::read(session, result), result);
        }
        "tools/list" => {
            link.annotations.learn(result);
        }
        _ => {}
    }
}

/// The client knows its subscription is confirmed; instead of hearing it twice it hears what may have changed.
async fn refresh(link: &Link, errand: &Errand, feed: &mut Feed) -> Result<(), Failure> {
    let first = feed.next(&mut Place::default()).await?.ok_or(Failure::CutOff)?;
    for line in subscription::refresh(&errand.line) {
        link.say(line).await?;
    }
    if subscription::is_acknowledgement(&first) { Ok(()) } else { link.say(first).await }
}

/// Relays an answer that comes as a stream. A legacy stream that breaks is taken up again where it was.
async fn follow(
    link: &Link,
    errand: &Errand,
    seen: &Seen,
    session: Option<&str>,
    mut feed: Feed,
) -> Result<(), Failure> {
    let mut place = Place::default();
    let mut idle_resumes = 0;
    loop {
        let broken = loop {
            match feed.next(&mut place).await {
                Ok(Some(line)) => {
                    idle_resumes = 0;
                    if deliver(link, errand, session, line).await? {
                        dial::let_finish(feed.into_body());
                        return Ok(());
                    }
                }
                Ok(None) => break Failure::CutOff,
                Err(failure @ Failure::Stream(_)) => return Err(failure),
                Err(_) => break Failure::CutOff,
            }
        };
        if !matches!(errand.asker, Asker::One(_)) {
            return Ok(());
        }
        let resumable = errand.era == Era::Legacy && !errand.opens_session() && place.last_id.is_some();
        if !resumable || idle_resumes >= RESUME_LIMIT {
            return Err(broken);
        }
        idle_resumes += 1;
        feed = resume(link, seen, &place, idle_resumes).await.ok_or(broken)?;
    }
}

/// Opens the stream again after the last event seen; `None` when the crib cannot go on with it.
async fn resume(link: &Link, seen: &Seen, place: &Place, round: u32) -> Option<Feed> {
    let mut headers = seen.headers();
    let value = place.last_id.as_deref().and_then(|id| HeaderValue::from_str(id).ok())?;
    headers.insert(header::LAST_EVENT, value);
    for again in 0..RESUME_LIMIT {
        let rest = place.retry.unwrap_or_else(|| pause(round)) * 2u32.saturating_pow(again);
        tokio::time::sleep(rest.min(LONGEST_PAUSE)).await;
        match link.dial.listen(&headers).await {
            Ok(response) if response.status() == StatusCode::OK => {
                return Some(Feed::new(response.into_body(), link.limit));
            }
            Ok(response) if !response.status().is_server_error() => return None,
            _ => {}
        }
    }
    None
}

fn pause(round: u32) -> Duration {
    (Duration::from_millis(100) * 2u32.saturating_pow(round.min(16))).min(LONGEST_PAUSE)
}
