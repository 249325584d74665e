//! What the bridge itself says: JSON-RPC errors for requests the crib did not answer.
//!
//! An error the crib wrote is passed on as it is, with the id filled in where the crib did not know it.
//! Codes: only those every era understands (`-32700`, `-32600`, `-32603`); the reasons are in words.

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::dial::DialError;
use crate::peek;
use crate::sse::SseError;

pub const NOT_JSON: i32 = -32700;
pub const NOT_MESSAGE: i32 = -32600;
const INTERNAL: i32 = -32603;
const HEADER_MISMATCH: i64 = -32020;
/// What servers built on the TypeScript SDK's examples answer, with 400, to a session they do not know.
const NO_SESSION: i64 = -32000;

/// Who waits for the answer to a message.
#[derive(Debug, Clone)]
pub enum Asker {
    One(Box<RawValue>),
    Batch(Vec<Box<RawValue>>),
    Nobody,
}

/// Why a message did not get the crib's answer.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error("the crib's event stream cannot be read: {0}")]
    Stream(#[from] SseError),
    #[error("the crib refused the message")]
    Refused(Refusal),
    #[error("the crib sent something that is not JSON; is the URL that of an MCP endpoint?")]
    NotJson,
    #[error("the crib accepted the request ({0}) but gave no answer")]
    NoAnswer(StatusCode),
    #[error(
        "the crib's stream ended before the answer came; the request may or may not have been carried out"
    )]
    CutOff,
    #[error("no answer within {0} s")]
    TimedOut(u64),
    #[error("the bridge was ended before the answer came")]
    Ended,
    #[error("the crib no longer knows the session and a new one could not be opened: {0}")]
    NotRevived(String),
    #[error("the output is closed")]
    OutputClosed,
}

impl Failure {
    /// Whether the connection went away before the answer.
    pub fn is_cut(&self) -> bool {
        matches!(self, Self::CutOff | Self::Dial(DialError::Lost { .. }))
    }
}

/// An HTTP answer that is not a success.
#[derive(Debug)]
pub struct Refusal {
    pub status: StatusCode,
    pub body: Vec<u8>,
    /// Whether the message carried a token.
    pub with_token: bool,
}

#[derive(Serialize)]
struct ErrorLine<'a> {
    jsonrpc: &'static str,
    id: Option<&'a RawValue>,
    error: Told<'a>,
}

#[derive(Serialize)]
struct Told<'a> {
    code: i32,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Details>,
}

#[derive(Serialize, Clone)]
struct Details {
    #[serde(rename = "httpStatus")]
    http_status: u16,
    #[serde(skip_serializing_if = "String::is_empty")]
    body: String,
}

#[derive(Serialize)]
struct Passed<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    error: &'a RawValue,
}

#[derive(Deserialize)]
struct Code {
    code: i64,
    #[serde(default)]
    message: String,
}

/// An error about a line whose sender cannot be named.
pub fn to_nobody(code: i32, message: &str) -> String {
    object(None, code, message, None)
}

impl Asker {
    /// The line (an array for a batch) that tells everyone who waits; `None` when nobody does.
    pub fn told(&self, failure: &Failure) -> Option<String> {
        if let (Self::One(id), Failure::Refused(refusal)) = (self, failure)
            && let Some(line) = refusal.passed_on(id)
        {
            return Some(line);
        }
        let (message, details) = match failure {
            Failure::Refused(refusal) => (refusal.words(), Some(refusal.details())),
            other => (other.to_string(), None),
        };
        match self {
            Self::Nobody => None,
            Self::One(id) => Some(object(Some(id), INTERNAL, &message, details)),
            Self::Batch(ids) => {
                let parts: Vec<String> =
                    ids.iter().map(|id| object(Some(id), INTERNAL, &message, details.clone())).collect();
                Some(format!("[{}]", parts.join(",")))
            }
        }
    }
}

impl Refusal {
    /// Whether the crib does not know the session it was given: 404, or what some servers answer instead.
    pub fn forgot_session(&self) -> bool {
        if self.status != StatusCode::BAD_REQUEST {
            return self.status == StatusCode::NOT_FOUND;
        }
        let error = self.error().and_then(|error| serde_json::from_str::<Code>(error.get()).ok());
        error.is_some_and(|e| e.code == NO_SESSION && e.message.to_ascii_lowercase().contains("session"))
    }

    /// Whether the crib missed or doubted a mirrored header.
    pub fn is_header_mismatch(&self) -> bool {
        let code = self.error().and_then(|error| serde_json::from_str::<Code>(error.get()).ok());
        code.is_some_and(|error| error.code == HEADER_MISMATCH)
    }

    /// What to say to a person.
    pub fn words(&self) -> String {
        let what_now = match self.status.as_u16() {
            300..=399 => "it redirects; give the bridge the final URL",
            401 if self.with_token => "it does not accept the token; check `--token` or `TOOLCRIB_TOKEN`",
            401 => "it wants a token; pass one with `--token` or `TOOLCRIB_TOKEN`",
            403 => {
                "it does not allow this; check the token's rights and the crib's allowed hosts and origins"
            }
            404 => "there is no MCP endpoint at this URL; check it",
            405 => "this URL does not take MCP messages; check it",
            413 => "the message is too long for it; send less, or raise its body limit",
            429 => "it is asked too often; try again later",
            502..=504 => "it or a proxy before it is not ready; try again later",
            500..=599 => "it failed; see its log",
            _ => "see `data` for what it said",
        };
        format!("the crib answered {}: {what_now}", self.status)
    }

    fn error(&self) -> Option<&RawValue> {
        let text = std::str::from_utf8(&self.body).ok()?;
        let error = peek::reply(text)?.error?;
        // An `error` without a number in `code` is some other server's way of saying no.
        serde_json::from_str::<Code>(error.get()).is_ok().then_some(error)
    }

    fn passed_on(&self, id: &RawValue) -> Option<String> {
        serde_json::to_string(&Passed { jsonrpc: "2.0", id, error: self.error()? })
            .ok()
            .map(crate::line::joined)
    }

    fn details(&self) -> Details {
        let body: String = String::from_utf8_lossy(&self.body).trim().chars().take(500).collect();
        Details { http_status: self.status.as_u16(), body }
    }
}

fn object(id: Option<&RawValue>, code: i32, message: &str, data: Option<Details>) -> String {
    let line = ErrorLine { jsonrpc: "2.0", id, error: Told { code, message, data } };
    // Strings and raw JSON always serialise; the fallback keeps the stream well formed all the same.
    serde_json::to_string(&line).unwrap_or_else(|_| {
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"the bridge failed"}}"#.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn one(id: &str) -> Asker {
        Asker::One(RawValue::from_string(id.to_owned()).unwrap())
    }

    fn refused(status: u16, body: &str) -> Failure {
        let status = StatusCode::from_u16(status).unwrap();
        Failure::Refused(Refusal { status, body: body.as_bytes().to_vec(), with_token: false })
    }

    fn told(asker: &Asker, failure: &Failure) -> Value {
        serde_json::from_str(&asker.told(failure).unwrap()).unwrap()
    }

    #[test]
    fn an_error_of_the_crib_is_passed_on_with_the_id_filled_in() {
        let failure = refused(
            400,
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32022,\n\"message\":\"no\",\"data\":{\"x\":1}}}",
        );
        let line = one("\"a\"").told(&failure).unwrap();
        assert!(!line.contains('\n'));
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            value,
            json!({"jsonrpc":"2.0","id":"a","error":{"code":-32022,"message":"no","data":{"x":1}}})
        );
    }

    #[test]
    fn other_refusals_say_the_status_and_what_to_do() {
        let value = told(&one("7"), &refused(401, r#"{"error":"unauthorized"}"#));
        assert_eq!((&value["id"], &value["error"]["code"]), (&json!(7), &json!(-32603)));
        let message = value["error"]["message"].as_str().unwrap();
        assert!(message.contains("401") && message.contains("--token"), "{message}");
        assert_eq!(value["error"]["data"], json!({"httpStatus":401,"body":"{\"error\":\"unauthorized\"}"}));
    }

    #[test]
    fn a_batch_is_told_one_error_each() {
        let ids = ["1", "\"b\""].map(|id| RawValue::from_string(id.to_owned()).unwrap());
        let value = told(&Asker::Batch(ids.into()), &Failure::CutOff);
        assert_eq!((&value[0]["id"], &value[1]["id"]), (&json!(1), &json!("b")));
    }

    #[test]
    fn nobody_is_told_nothing() {
        assert!(Asker::Nobody.told(&Failure::CutOff).is_none());
    }

    #[test]
    fn a_forgotten_session_is_recognised() {
        let forgot =
            |status, body| matches!(refused(status, body), Failure::Refused(r) if r.forgot_session());
        assert!(forgot(404, "gone"));
        assert!(forgot(
            400,
            r#"{"id":null,"error":{"code":-32000,"message":"No valid session ID provided"}}"#
        ));
        assert!(!forgot(400, r#"{"id":null,"error":{"code":-32600,"message":"bad session"}}"#));
        assert!(!forgot(400, r#"{"id":null,"error":{"code":-32000,"message":"no"}}"#));
    }

    #[test]
    fn a_header_mismatch_is_recognised() {
        let Failure::Refused(refusal) = refused(400, r#"{"id":1,"error":{"code":-32020,"message":"m"}}"#)
        else {
            panic!()
        };
        assert!(refusal.is_header_mismatch());
    }
}
