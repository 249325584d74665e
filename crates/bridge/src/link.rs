//! What all messages of one bridge share: the client, the session, what was learnt, and the way to the output.
//!
//! It opens the session again when the crib has forgotten it, and ends it. Single messages are carried in
//! `courier.rs`; the order among them is kept in `relay.rs`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::answer::{Failure, Refusal};
use crate::dial::{self, Dial};
use crate::header;
use crate::param::Annotations;
use crate::peek::{self, Message};
use crate::session::{Seen, Session};
use crate::stream::{Feed, Place};

/// How much of a refusal is kept to be shown.
const REFUSAL_LIMIT: usize = 1024 * 1024;

/// The shared side of a bridge.
#[derive(Debug)]
pub struct Link {
    pub dial: Dial,
    pub session: Session,
    pub annotations: Annotations,
    pub limit: usize,
    out: mpsc::Sender<String>,
    reviving: tokio::sync::Mutex<()>,
    modern: Mutex<Option<String>>,
}

/// How a successful answer is written.
pub enum Form {
    Json,
    Events,
    Nothing,
}

impl Link {
    pub fn new(dial: Dial, limit: usize, out: mpsc::Sender<String>) -> Self {
        Self {
            dial,
            session: Session::default(),
            annotations: Annotations::default(),
            limit,
            out,
            reviving: tokio::sync::Mutex::default(),
            modern: Mutex::default(),
        }
    }

    /// Writes one line to the output.
    pub async fn say(&self, line: String) -> Result<(), Failure> {
        self.out.send(line).await.map_err(|_| Failure::OutputClosed)
    }

    /// The modern version last spoken: what a notification that names none is sent with.
    pub fn modern_version(&self) -> Option<String> {
        self.modern.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers the modern version spoken.
    pub fn speak_modern(&self, version: &str) {
        let mut modern = self.modern.lock().unwrap_or_else(PoisonError::into_inner);
        if modern.as_deref() != Some(version) {
            *modern = Some(version.to_owned());
        }
    }

    /// The headers of a modern line, from its own members and what tool lists have taught.
    pub fn modern_headers(&self, line: &[u8], version: &str) -> HeaderMap {
        let text = std::str::from_utf8(line).unwrap_or_default();
        match peek::message(text) {
            Ok(Message::Request { method, params, .. } | Message::Notification { method, params }) => {
                let tool = params.name.and_then(peek::string).unwrap_or_default();
                header::modern(version, &method, &params, &self.annotations.of(&tool))
            }
            _ => header::legacy(None, Some(version)),
        }
    }

    /// Opens the session again if it is still the one that was `seen` failing. Several may ask; one acts.
    pub async fn revive(&self, seen: &Seen) -> Result<(), Failure> {
        let _turn = self.reviving.lock().await;
        if self.session.seen().epoch != seen.epoch {
            return Ok(());
        }
        let Some((initialize, initialized)) = self.session.opening() else {
            return Err(Failure::NotRevived("no `initialize` was seen".to_owned()));
        };
        let response = self.dial.post(&HeaderMap::new(), &initialize, None).await?;
        let id = session_id(&response);
        let answer = self.single_answer(response).await?;
        let result = peek::reply(&answer).and_then(|reply| reply.result);
        let result = result.ok_or_else(|| Failure::NotRevived(answer.chars().take(300).collect()))?;
        let opened = Session::read(id, result);
        if let Some(line) = initialized {
            let response = self.dial.post(&opened.headers(), &line, None).await?;
            dial::let_finish(response.into_body());
        }
        self.session.open(initialize, opened, result);
        eprintln!("toolcrib-bridge: the crib did not know the session any more; opened a new one");
        for line in self.session.list_changes() {
            self.say(line).await?;
        }
        Ok(())
    }

    /// Tells the crib that the session is over. Best effort: a crib that is gone has forgotten it anyway.
    pub async fn end_session(&self, limit: Duration) {
        let seen = self.session.seen();
        if seen.id.is_some() {
            let _ = tokio::time::timeout(limit, self.dial.end(&seen.headers())).await;
        }
    }

    /// The one answer of a request the bridge makes itself, which the client never sees.
    pub async fn single_answer(&self, response: Response<Incoming>) -> Result<String, Failure> {
        match self.accepted(response).await? {
            (Form::Json, response) => self.json(response).await,
            (Form::Nothing, response) => Err(Failure::NoAnswer(response.status())),
            (Form::Events, response) => {
                let mut feed = Feed::new(response.into_body(), self.limit);
                while let Some(line) = feed.next(&mut Place::default()).await? {
                    if peek::reply(&line).is_some_and(|r| r.method.is_none()) {
                        dial::let_finish(feed.into_body());
                        return Ok(line);
                    }
                }
                Err(Failure::CutOff)
            }
        }
    }

    /// Sorts an answer by its status and type; one that is not a success becomes a `Refusal`.
    pub async fn accepted(
        &self,
        response: Response<Incoming>,
    ) -> Result<(Form, Response<Incoming>), Failure> {
        let status = response.status();
        if !status.is_success() {
            let body = dial::whole(response.into_body(), REFUSAL_LIMIT).await.unwrap_or_default();
            return Err(Failure::Refused(Refusal { status, body, with_token: self.dial.has_token() }));
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let form = if kind.eq_ignore_ascii_case("text/event-stream") {
            Form::Events
        } else if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            Form::Nothing
        } else {
            Form::Json
        };
        Ok((form, response))
    }

    /// A JSON body as one line; empty when the body is.
    pub async fn json(&self, response: Response<Incoming>) -> Result<String, Failure> {
        let body = dial::whole(response.into_body(), self.limit).await?;
        let text = String::from_utf8(body).map_err(|_| Failure::NotJson)?;
        if !text.trim().is_empty() && !peek::is_json(&text) {
            return Err(Failure::NotJson);
        }
        Ok(crate::line::joined(text).trim().to_owned())
    }

    /// Asks for the tool lists the client did not ask for through this bridge, to learn what is mirrored.
    pub async fn learn_tools(&self, meta: Option<&RawValue>, version: &str) -> Result<(), Failure> {
        let mut cursor: Option<Box<RawValue>> = None;
        for page in 0..100 {
            let line = list_line(page, meta, cursor.as_deref());
            let headers = header::modern(version, "tools/list", &peek::Params::default(), &[]);
            let response = self.dial.post(&headers, &line, None).await?;
            let answer = self.single_answer(response).await?;
            let Some(result) = peek::reply(&answer).and_then(|r| r.result) else { return Ok(()) };
            match self.annotations.learn(result) {
                Some(next) => cursor = Some(next.to_owned()),
                None => return Ok(()),
            }
        }
        Ok(())
    }
}

/// The session id an `initialize` was answered with.
pub fn session_id(response: &Response<Incoming>) -> Option<String> {
    response.headers().get(header::SESSION).and_then(|v| v.to_str().ok()).map(str::to_owned)
}

fn list_line(page: usize, meta: Option<&RawValue>, cursor: Option<&RawValue>) -> Bytes {
    let mut params = Vec::new();
    params.extend(meta.map(|meta| format!(r#""_meta":{meta}"#)));
    params.extend(cursor.map(|cursor| format!(r#""cursor":{cursor}"#)));
    let params = params.join(",");
    format!(
        r#"{{"jsonrpc":"2.0","id":"toolcrib-bridge-{page}","method":"tools/list","params":{{{params}}}}}"#
    )
    .into()
}
