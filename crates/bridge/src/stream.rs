//! Event streams as lines: one JSON message per event, and the place to resume from.
//!
//! A `Feed` reads one response body; a `Place` outlives it, so that a broken legacy stream can be taken up again
//! with `Last-Event-ID`. `listener.rs` and `courier.rs` decide when.

use std::collections::VecDeque;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::answer::Failure;
use crate::dial::{DialError, chain};
use crate::line;
use crate::peek;
use crate::sse::{Event, Reader};

/// How far a stream was read, and how long the crib wants us to wait before we come back.
#[derive(Debug, Default)]
pub struct Place {
    pub last_id: Option<String>,
    pub retry: Option<Duration>,
}

/// The messages of one response body.
#[derive(Debug)]
pub struct Feed {
    body: Incoming,
    reader: Reader,
    ready: VecDeque<Event>,
}

impl Feed {
    pub fn new(body: Incoming, limit: usize) -> Self {
        Self { body, reader: Reader::new(limit), ready: VecDeque::new() }
    }

    /// The next message as one line; `None` when the stream has ended in order.
    pub async fn next(&mut self, place: &mut Place) -> Result<Option<String>, Failure> {
        loop {
            while let Some(event) = self.ready.pop_front() {
                if let Some(line) = taken(event, place) {
                    return Ok(Some(line));
                }
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|e| DialError::Lost { why: chain(&e) })?;
            let Ok(chunk) = frame.into_data() else { continue };
            let mut events = Vec::new();
            self.reader.feed(&chunk, &mut events)?;
            self.ready.extend(events);
        }
    }

    /// The body, for the rest to be read away.
    pub fn into_body(self) -> Incoming {
        self.body
    }
}

fn taken(event: Event, place: &mut Place) -> Option<String> {
    if event.id.is_some() {
        place.last_id = event.id.filter(|id| !id.is_empty());
    }
    if event.retry.is_some() {
        place.retry = event.retry;
    }
    // Other kinds belong to other protocols; an event without text only marks a place.
    if event.text.is_empty() || !matches!(event.kind.as_str(), "" | "message") {
        return None;
    }
    if !peek::is_json(&event.text) {
        eprintln!("toolcrib-bridge: dropped an event that is not JSON");
        return None;
    }
    Some(line::joined(event.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, text: &str, id: Option<&str>) -> Event {
        Event { kind: kind.into(), text: text.into(), id: id.map(Into::into), retry: None }
    }

    #[test]
    fn a_message_becomes_a_line_and_its_id_the_place() {
        let mut place = Place::default();
        assert_eq!(taken(event("", "{\n}", Some("4")), &mut place).as_deref(), Some("{ }"));
        assert_eq!(place.last_id.as_deref(), Some("4"));
    }

    #[test]
    fn what_is_not_a_message_is_not_a_line() {
        let mut place = Place::default();
        assert_eq!(taken(event("", "", Some("1")), &mut place), None);
        assert_eq!(taken(event("endpoint", "/messages", None), &mut place), None);
        assert_eq!(taken(event("message", "not json", None), &mut place), None);
        assert_eq!(place.last_id.as_deref(), Some("1"));
    }
}
