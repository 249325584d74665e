//! Looks into a JSON-RPC line just far enough to route it: `id`, `method`, and a few members of `params`.
//!
//! Everything borrowed stays raw JSON text; nothing here is ever written back to the wire. What the peeked
//! members turn into is in `header.rs` (the modern headers) and `relay.rs` (who waits for what).

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

/// One line of input, as far as the bridge needs to know it.
#[derive(Debug)]
pub enum Message<'a> {
    /// A request: somebody waits for an answer with this id.
    Request { id: &'a RawValue, method: String, params: Params<'a> },
    /// A notification: nobody waits.
    Notification { method: String, params: Params<'a> },
    /// An answer to a request the crib made.
    Answer,
    /// A JSON-RPC batch, with the ids of the requests in it.
    Batch { ids: Vec<&'a RawValue> },
}

/// Why a line is not a message.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The line is not JSON at all.
    #[error("the line is not JSON ({0}); send one JSON-RPC message per line")]
    NotJson(String),
    /// The line is JSON, but not a JSON-RPC message.
    #[error("the line is JSON but not a JSON-RPC message ({0})")]
    NotMessage(String),
}

/// The members of `params` that decide a header or a cancellation. All raw.
#[derive(Debug, Default, Deserialize)]
pub struct Params<'a> {
    #[serde(borrow, default, rename = "_meta")]
    pub meta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub uri: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "taskId")]
    pub task_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub arguments: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "requestId")]
    pub request_id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'a RawValue>,
}

/// What an answer from the crib is, as far as the bridge needs to know it.
#[derive(Debug, Default, Deserialize)]
pub struct Reply<'a> {
    #[serde(borrow, default)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

/// Reads one line of input.
pub fn message(line: &str) -> Result<Message<'_>, Fault> {
    let whole: &RawValue = serde_json::from_str(line).map_err(|e| Fault::NotJson(e.to_string()))?;
    if whole.get().starts_with('[') {
        return batch(whole);
    }
    let seen: Envelope<'_> =
        serde_json::from_str(whole.get()).map_err(|e| Fault::NotMessage(e.to_string()))?;
    match (seen.id, seen.method) {
        (Some(id), Some(method)) => Ok(Message::Request { id, method, params: params(seen.params) }),
        (None, Some(method)) => Ok(Message::Notification { method, params: params(seen.params) }),
        (_, None) if seen.result.is_some() || seen.error.is_some() => Ok(Message::Answer),
        (_, None) => Err(Fault::NotMessage("it has no `method`, `result` or `error`".to_owned())),
    }
}

/// Reads one message that came from the crib. `None` when it is not a JSON object.
pub fn reply(line: &str) -> Option<Reply<'_>> {
    serde_json::from_str(line).ok()
}

/// Whether `text` is one whole JSON value.
pub fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

/// The string inside a raw value, `None` for any other kind.
pub fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

/// The members of a raw object, `None` for any other kind.
pub fn members(raw: &RawValue) -> Option<HashMap<String, &RawValue>> {
    serde_json::from_str(raw.get()).ok()
}

/// Two ids are one id when their values are equal, however they are spelled.
pub fn same_id(one: &RawValue, other: &RawValue) -> bool {
    if one.get() == other.get() {
        return true;
    }
    match (string(one), string(other)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => match (one.get().parse::<f64>(), other.get().parse::<f64>()) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        },
        _ => false,
    }
}

impl Params<'_> {
    /// The protocol version this message itself names: only modern requests do.
    pub fn version(&self) -> Option<String> {
        let meta: Meta<'_> = serde_json::from_str(self.meta?.get()).ok()?;
        string(meta.version?)
    }
}

fn params(raw: Option<&RawValue>) -> Params<'_> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

fn batch(whole: &RawValue) -> Result<Message<'_>, Fault> {
    let parts: Vec<&RawValue> =
        serde_json::from_str(whole.get()).map_err(|e| Fault::NotMessage(e.to_string()))?;
    let ids = parts
        .into_iter()
        .filter_map(|part| serde_json::from_str::<Envelope<'_>>(part.get()).ok())
        .filter(|seen| seen.method.is_some())
        .filter_map(|seen| seen.id)
        .collect();
    Ok(Message::Batch { ids })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_shows_its_id_method_and_version() {
        let line = r#"{"jsonrpc":"2.0","id":"a\u0062","method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let Message::Request { id, method, params } = message(line).unwrap() else { panic!("not a request") };
        assert_eq!(id.get(), r#""a\u0062""#);
        assert_eq!(method, "tools/call");
        assert_eq!(params.version().as_deref(), Some("2026-07-28"));
        assert_eq!(string(params.name.unwrap()).as_deref(), Some("x"));
    }

    #[test]
    fn lines_are_told_apart() {
        assert!(matches!(message(r#"{"method":"a","id":null}"#), Ok(Message::Notification { .. })));
        assert!(matches!(message(r#"{"id":1,"result":{}}"#), Ok(Message::Answer)));
        assert!(matches!(message(r#"{"id":1,"error":{}}"#), Ok(Message::Answer)));
        assert!(matches!(message(r#"{"id":1}"#), Err(Fault::NotMessage(_))));
        assert!(matches!(message("17"), Err(Fault::NotMessage(_))));
        assert!(matches!(message("{"), Err(Fault::NotJson(_))));
        assert!(matches!(message(r#"{"id":1,"id":2,"method":"a"}"#), Err(Fault::NotMessage(_))));
    }

    #[test]
    fn a_batch_shows_only_the_ids_somebody_waits_for() {
        let line = r#"[{"id":1,"method":"a"},{"method":"b"},{"id":9,"result":{}},{"id":"z","method":"c"},3]"#;
        let Message::Batch { ids } = message(line).unwrap() else { panic!("not a batch") };
        let ids: Vec<&str> = ids.iter().map(|id| id.get()).collect();
        assert_eq!(ids, ["1", "\"z\""]);
    }

    #[test]
    fn strange_params_are_not_an_error() {
        for line in [r#"{"id":1,"method":"a","params":[1]}"#, r#"{"id":1,"method":"a","params":{"_meta":7}}"#]
        {
            let Message::Request { params, .. } = message(line).unwrap() else { panic!("not a request") };
            assert_eq!(params.version(), None);
        }
    }

    #[test]
    fn ids_are_compared_by_value() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        assert!(same_id(&raw(r#""ab""#), &raw(r#""a\u0062""#)));
        assert!(same_id(&raw("1"), &raw("1.0")));
        assert!(!same_id(&raw("1"), &raw("\"1\"")));
    }
}
