//! JSON-RPC 2.0 envelopes over raw JSON: what a message is, never what it means.
//!
//! An envelope is checked before anything is forwarded: the version, the type of the id, a result or an error and
//! not both.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolcrib_core::raw::{self, Raw, push_quoted};

/// The id of a request, kept as it was written. A string or a number, never null.
#[derive(Clone, Debug)]
pub struct Id(Raw);

impl Id {
    pub fn number(n: u64) -> Self {
        Self(raw::from(&n))
    }

    pub fn parse(raw: &RawValue) -> Option<Self> {
        let number =
            || raw.get().bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+' | b'.' | b'e' | b'E'));
        (raw.get().starts_with('"') || number()).then(|| Self(raw.to_owned()))
    }

    /// The JSON text of the id.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    pub fn raw(&self) -> &RawValue {
        &self.0
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Id {}

impl std::hash::Hash for Id {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.text().hash(state);
    }
}

/// One message of the wire.
#[derive(Clone, Debug)]
pub enum Message {
    Request {
        id: Id,
        method: String,
        params: Option<Raw>,
    },
    Notification {
        method: String,
        params: Option<Raw>,
    },
    /// An answer; the error is the whole error object.
    Response {
        id: Option<Id>,
        answer: Result<Raw, Raw>,
    },
}

/// Why bytes are not a message.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    #[error("not JSON: {0}")]
    Json(String),
    #[error("not a JSON-RPC 2.0 message: {why}")]
    Envelope { id: Option<Id>, why: &'static str },
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// A member that is there, even if it is `null`: a null id is a mistake, not a notification.
fn present<'de: 'a, 'a, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Message {
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let envelope: Envelope<'_> = match serde_json::from_slice(bytes) {
            Ok(envelope) => envelope,
            Err(error) if error.is_data() => {
                return Err(Malformed::Envelope { id: None, why: "its members have wrong types" });
            }
            Err(error) => return Err(Malformed::Json(error.to_string())),
        };
        let id = envelope.id.and_then(Id::parse);
        let wrong = |why| Err(Malformed::Envelope { id: id.clone(), why });
        if envelope.jsonrpc.as_deref() != Some("2.0") {
            return wrong("`jsonrpc` must be \"2.0\"");
        }
        let params = envelope.params.map(RawValue::to_owned);
        if params.as_ref().is_some_and(|params| !params.get().starts_with(['{', '['])) {
            return wrong("`params` must be an object");
        }
        match (envelope.method, envelope.result, envelope.error) {
            (Some(method), None, None) => match (envelope.id, id) {
                (None, _) => Ok(Message::Notification { method: method.into_owned(), params }),
                (Some(_), Some(id)) => Ok(Message::Request { id, method: method.into_owned(), params }),
                (Some(_), None) => {
                    Err(Malformed::Envelope { id: None, why: "`id` must be a string or a number" })
                }
            },
            (None, Some(result), None) => Ok(Message::Response { id, answer: Ok(result.to_owned()) }),
            (None, None, Some(error)) => Ok(Message::Response { id, answer: Err(error.to_owned()) }),
            _ => wrong("it must be a request, a notification, a result or an error"),
        }
    }

    pub fn encode(&self) -> String {
        match self {
            Message::Request { id, method, params } => request(id, method, params.as_deref()),
            Message::Notification { method, params } => notification(method, params.as_deref()),
            Message::Response { id, answer: Ok(result) } => success(id.as_ref(), result.get()),
            Message::Response { id, answer: Err(error) } => failure(id.as_ref(), error),
        }
    }
}

fn with_head(size: usize, head: impl FnOnce(&mut String)) -> String {
    let mut out = String::with_capacity(size + 64);
    out.push_str(r#"{"jsonrpc":"2.0""#);
    head(&mut out);
    out.push('}');
    one_line(out)
}

/// A message without line breaks. JSON strings have none of their own, so those in the text are white space between
/// values, kept as a peer wrote it; on a pipe and in an event stream they would end the message.
pub fn one_line(message: String) -> String {
    let breaks = |chunk: &[u8]| chunk.iter().fold(false, |found, &b| found | (b == b'\n') | (b == b'\r'));
    // Most messages have none; by the chunk, this costs next to nothing.
    if message.as_bytes().chunks(256).any(breaks) { message.replace(['\n', '\r'], " ") } else { message }
}

fn push_member(out: &mut String, key: &str, value: &str) {
    out.push(',');
    push_quoted(out, key);
    out.push(':');
    out.push_str(value);
}

pub fn request(id: &Id, method: &str, params: Option<&RawValue>) -> String {
    with_head(params.map_or(0, |p| p.get().len()), |out| {
        push_member(out, "id", id.text());
        push_method(out, method, params);
    })
}

pub fn notification(method: &str, params: Option<&RawValue>) -> String {
    with_head(params.map_or(0, |p| p.get().len()), |out| push_method(out, method, params))
}

fn push_method(out: &mut String, method: &str, params: Option<&RawValue>) {
    out.push_str(r#","method":"#);
    push_quoted(out, method);
    if let Some(params) = params {
        push_member(out, "params", params.get());
    }
}

/// `result` is one valid JSON value.
pub fn success(id: Option<&Id>, result: &str) -> String {
    with_head(result.len(), |out| {
        push_member(out, "id", id.map_or("null", Id::text));
        push_member(out, "result", result);
    })
}

pub fn failure(id: Option<&Id>, error: &RawValue) -> String {
    with_head(error.get().len(), |out| {
        push_member(out, "id", id.map_or("null", Id::text));
        push_member(out, "error", error.get());
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_exactly_one_kind() {
        let parse = |text: &str| Message::parse(text.as_bytes());
        assert!(matches!(parse(r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#), Ok(Message::Request { .. })));
        assert!(matches!(parse(r#"{"jsonrpc":"2.0","method":"a"}"#), Ok(Message::Notification { .. })));
        assert!(matches!(parse(r#"{"jsonrpc":"2.0","id":"x","result":{}}"#), Ok(Message::Response { .. })));
        for bad in [
            r#"{"id":1,"method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":7}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
            r#"[]"#,
        ] {
            assert!(matches!(parse(bad), Err(Malformed::Envelope { .. })), "{bad}");
        }
        assert!(matches!(parse("{nope"), Err(Malformed::Json(_))));
    }

    #[test]
    fn a_message_is_one_line_whatever_a_peer_wrote() {
        let inner = toolcrib_core::testing::json("{\r\n  \"a\\nb\": [1,\n 2]\n}");
        for message in [
            success(None, inner.get()),
            failure(None, &inner),
            notification("n\n", Some(&inner)),
            request(&Id::number(1), "m", Some(&inner)),
        ] {
            assert!(!message.contains(['\n', '\r']), "{message}");
            assert!(message.contains(r#"{    "a\nb": [1,  2] }"#), "{message}");
        }
    }

    #[test]
    fn what_is_carried_keeps_its_bytes() {
        let text = r#"{"jsonrpc":"2.0","id":"a\"b","result":{"x": 1.50 , "y":12345678901234567890123}}"#;
        let message = Message::parse(text.as_bytes()).unwrap();
        assert_eq!(message.encode(), text);
    }
}
