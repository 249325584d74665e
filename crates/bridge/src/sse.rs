//! An incremental reader of `text/event-stream`: bytes in, whole events out.
//!
//! It keeps no more than one event and refuses one that grows past its limit. It knows nothing of JSON-RPC;
//! `stream.rs` turns events into lines.

use std::time::Duration;

/// One event, dispatched by its empty line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Event {
    pub kind: String,
    pub text: String,
    pub id: Option<String>,
    pub retry: Option<Duration>,
}

/// What makes a stream unreadable.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SseError {
    #[error("an event is longer than {0} bytes, the limit of the bridge")]
    TooLong(usize),
    #[error("an event is not UTF-8")]
    NotText,
}

/// The state between two chunks.
#[derive(Debug)]
pub struct Reader {
    limit: usize,
    line: Vec<u8>,
    after_return: bool,
    started: bool,
    kind: String,
    text: Option<String>,
    id: Option<String>,
    retry: Option<Duration>,
}

impl Reader {
    /// A reader that refuses events of more than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            after_return: false,
            started: false,
            kind: String::new(),
            text: None,
            id: None,
            retry: None,
        }
    }

    /// Takes the next chunk and appends the events it completes to `events`.
    pub fn feed(&mut self, mut chunk: &[u8], events: &mut Vec<Event>) -> Result<(), SseError> {
        if self.after_return && !chunk.is_empty() {
            self.after_return = false;
            chunk = chunk.strip_prefix(b"\n").unwrap_or(chunk);
        }
        while let Some(end) = chunk.iter().position(|b| matches!(b, b'\n' | b'\r')) {
            let (line, rest) = chunk.split_at(end);
            self.grow(line)?;
            self.end_line(events)?;
            chunk = match rest {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_return = true;
                    &[]
                }
                [_, rest @ ..] => rest,
                [] => rest,
            };
        }
        self.grow(chunk)
    }

    fn grow(&mut self, part: &[u8]) -> Result<(), SseError> {
        let held = self.line.len() + self.text.as_ref().map_or(0, String::len);
        if held + part.len() > self.limit {
            return Err(SseError::TooLong(self.limit));
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<Event>) -> Result<(), SseError> {
        let line = std::mem::take(&mut self.line);
        let mut line = String::from_utf8(line).map_err(|_| SseError::NotText)?;
        if !self.started {
            self.started = true;
            if let Some(rest) = line.strip_prefix('\u{feff}') {
                line = rest.to_owned();
            }
        }
        if line.is_empty() {
            self.dispatch(events);
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.text {
                Some(text) => {
                    text.push('\n');
                    text.push_str(value);
                }
                None => self.text = Some(value.to_owned()),
            },
            "event" => value.clone_into(&mut self.kind),
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "retry" => self.retry = value.parse().ok().map(Duration::from_millis),
            // A comment (empty field name) or a field of a later standard.
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, events: &mut Vec<Event>) {
        let (kind, text) = (std::mem::take(&mut self.kind), self.text.take());
        let (id, retry) = (self.id.take(), self.retry.take());
        if text.is_some() || id.is_some() || retry.is_some() {
            events.push(Event { kind, text: text.unwrap_or_default(), id, retry });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<Event> {
        let mut reader = Reader::new(1024);
        let mut events = Vec::new();
        for chunk in chunks {
            reader.feed(chunk, &mut events).unwrap();
        }
        events
    }

    #[test]
    fn any_cut_gives_the_same_events() {
        let stream = "\u{feff}: hello\r\nid: 7\r\nevent: message\r\ndata: {\"a\":\r\ndata: \"é\"}\r\n\r\n\
                      retry: 250\n\ndata:x\rdata\r\rdata: cut off"
            .as_bytes();
        let whole = read(&[stream]);
        assert_eq!(whole.len(), 3);
        assert_eq!(whole[0].text, "{\"a\":\n\"é\"}");
        assert_eq!((whole[0].kind.as_str(), whole[0].id.as_deref()), ("message", Some("7")));
        assert_eq!(whole[1].retry, Some(Duration::from_millis(250)));
        assert_eq!(whole[2].text, "x\n");
        for cut in 0..=stream.len() {
            let (a, b) = stream.split_at(cut);
            assert_eq!(read(&[a, b]), whole, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(read(&bytes), whole);
    }

    #[test]
    fn comments_are_not_events() {
        assert!(read(&[b": keep-alive\n\n: again\n\n"]).is_empty());
    }

    #[test]
    fn an_event_past_the_limit_is_refused_before_it_is_held() {
        let mut reader = Reader::new(16);
        let mut events = Vec::new();
        assert_eq!(reader.feed(b"data: 0123456789abcdef", &mut events), Err(SseError::TooLong(16)));
        let mut reader = Reader::new(16);
        let outcome = reader.feed(b"data: 01234\ndata: 56789\ndata: abcdef\n", &mut events);
        assert_eq!(outcome, Err(SseError::TooLong(16)));
    }
}
