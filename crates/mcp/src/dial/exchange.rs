//! One request over Streamable HTTP: sent, and its answer found in whatever came back.
//!
//! A legacy event stream that ends before the answer is taken up again where it had got to, if the source numbers
//! its events.

use std::{sync::Arc, time::Duration};

use reqwest::Response;
use toolcrib_core::{call::Events, error::Kind, raw::Raw};

use crate::{
    dial::{
        get,
        http::{Recall, SESSION, Terms, Wire},
        link::{Ask, Trouble, object, retort},
        stream::{EventStream, message},
        web::{body, media_type},
    },
    version::{Era, Version},
    wire::{self, Id, Message},
};

/// How often a stream is taken up again for one answer without anything new in it.
const MOST_RESUMPTIONS: u32 = 5;

/// What one message on a stream was.
enum Heard {
    Answer(Result<Raw, Trouble>),
    Other,
}

impl Wire {
    /// Sends under `terms`; a greeting that opens a session leaves it there.
    pub async fn exchange(
        self: &Arc<Self>,
        ask: &Ask,
        call: Option<&Events>,
        terms: &mut Terms,
    ) -> Result<Raw, Trouble> {
        let id = self.fresh_id();
        let recall = Recall::new(self, &id, ask, terms);
        let text = wire::request(&id, &ask.method, ask.params.as_deref());
        let sent = self.place.send(self.post(text, &ask.method, Some(ask), terms)).await;
        let answer = match sent {
            Ok(response) => {
                if ask.method == "initialize" && response.status().is_success() {
                    terms.session = response.headers().get(SESSION).cloned();
                }
                self.receive(response, &id, call, terms).await
            }
            Err(trouble) => Err(trouble),
        };
        recall.disarm();
        answer
    }

    async fn receive(
        self: &Arc<Self>,
        response: Response,
        id: &Id,
        call: Option<&Events>,
        terms: &Terms,
    ) -> Result<Raw, Trouble> {
        let status = response.status();
        if matches!(status.as_u16(), 401 | 403) {
            return Err(self.place.refused(status));
        }
        if status.is_success() && media_type(&response) == "text/event-stream" {
            return self.follow(EventStream::new(response), id, call, terms).await;
        }
        let legacy = terms.version.map(Version::era) != Some(Era::Modern);
        let bytes = body(response).await?;
        let answer = match Message::parse(&bytes) {
            Ok(Message::Response { id: Some(answered), answer }) if answered == *id => Some(answer),
            // A source that could not read the request cannot name it.
            Ok(Message::Response { id: _, answer: Err(error) }) if !status.is_success() => Some(Err(error)),
            _ => None,
        };
        match answer {
            _ if status.as_u16() == 404 && terms.session.is_some() && legacy => {
                match self.place.refused(status) {
                    Trouble::Status(_, failure) => Err(Trouble::SessionGone(failure)),
                    trouble => Err(trouble),
                }
            }
            Some(answer) => answer.map_err(Trouble::Refused).and_then(object),
            None if status.is_success() => Err(Trouble::failed(
                Kind::BadSource,
                format!("`{}` answered a request with something that is not its answer", self.place.shown()),
            )),
            None => Err(self.place.refused(status)),
        }
    }

    /// Reads a stream until the answer to `id` is in it.
    async fn follow(
        self: &Arc<Self>,
        mut stream: EventStream,
        id: &Id,
        call: Option<&Events>,
        terms: &Terms,
    ) -> Result<Raw, Trouble> {
        let mut idle = 0;
        loop {
            let mut heard_any = false;
            let broken = loop {
                match stream.next().await {
                    Ok(Some(event)) => {
                        let Some(text) = message(event) else { continue };
                        heard_any = true;
                        if let Heard::Answer(answer) = self.hear(&text, Some(id), call) {
                            return answer;
                        }
                    }
                    Ok(None) => break None,
                    Err(failure) if failure.kind == Kind::TooLarge => return Err(Trouble::Failed(failure)),
                    Err(failure) => break Some(failure),
                }
            };
            let legacy = terms.version.map(Version::era) == Some(Era::Legacy);
            idle = if heard_any { 0 } else { idle + 1 };
            match stream.last_id.clone().filter(|_| legacy && idle < MOST_RESUMPTIONS) {
                Some(last) => {
                    let wait = Duration::from_millis(stream.retry_ms.unwrap_or(500).min(30_000));
                    tokio::time::sleep(wait).await;
                    stream = get::open(self, Some(&last), terms).await?;
                    stream.last_id = Some(last);
                }
                None => {
                    return Err(Trouble::Failed(broken.unwrap_or_else(|| {
                        toolcrib_core::error::Failure::new(
                            Kind::Unavailable,
                            "the event stream ended before the answer",
                        )
                    })));
                }
            }
        }
    }

    /// Takes in one message of a stream that belongs to no request.
    pub fn overhear(self: &Arc<Self>, text: &str) {
        self.hear(text, None, None);
    }

    fn hear(self: &Arc<Self>, text: &str, awaited: Option<&Id>, call: Option<&Events>) -> Heard {
        match Message::parse(text.as_bytes()) {
            Ok(Message::Response { id, answer }) => {
                if awaited.is_some() && id.as_ref() == awaited {
                    return Heard::Answer(answer.map_err(Trouble::Refused).and_then(object));
                }
                tracing::debug!("an answer to no open request was dropped");
            }
            Ok(Message::Notification { method, params }) => self.ear.hear(&method, params, call),
            Ok(Message::Request { id, method, .. }) => {
                let (wire, text) = (self.clone(), retort(&id, &method));
                tokio::spawn(async move {
                    if let Err(trouble) = wire.tell(text, &method, &wire.terms()).await {
                        tracing::debug!(?trouble, "a question of the source was not answered");
                    }
                });
            }
            Err(error) => tracing::warn!(%error, "a source sent an event that is not a message"),
        }
        Heard::Other
    }
}
