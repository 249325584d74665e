//! The HTTP headers of a message: session headers in the legacy era, mirrored members in the modern one.
//!
//! It decides only from what `peek` saw and what `param` remembers; it never looks at the network.
//! `dial.rs` sends the result.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::value::RawValue;

use crate::param::Annotation;
use crate::peek::{self, Params};

pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const PARAM_PREFIX: &str = "mcp-param-";

const SENTINEL_OPEN: &str = "=?base64?";
const SENTINEL_CLOSE: &str = "?=";

/// The headers of a modern message. `annotations` are those of the tool that is called, if it has any.
pub fn modern(version: &str, method: &str, params: &Params<'_>, annotations: &[Annotation]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    put(&mut headers, VERSION, version);
    put(&mut headers, METHOD, method);
    if let Some(name) = named_by(method, params).and_then(peek::string) {
        put(&mut headers, NAME, &encode(&name));
    }
    if method == "tools/call"
        && let Some(arguments) = params.arguments
    {
        for annotation in annotations {
            let value = value_at(arguments, &annotation.path).and_then(primitive);
            let name = HeaderName::from_bytes(format!("{PARAM_PREFIX}{}", annotation.header).as_bytes());
            if let (Some(value), Ok(name)) = (value, name) {
                put(&mut headers, name, &encode(&value));
            }
        }
    }
    headers
}

/// The headers of a legacy message: none before `initialize` was answered.
pub fn legacy(session: Option<&str>, version: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(session) = session {
        put(&mut headers, SESSION, session);
    }
    if let Some(version) = version {
        put(&mut headers, VERSION, version);
    }
    headers
}

/// Wraps what a header cannot carry as it is: anything but printable ASCII, space or tab at an end, and a
/// value that looks wrapped already.
pub fn encode(value: &str) -> String {
    let bytes = value.as_bytes();
    let padded = matches!(bytes.first(), Some(b' ' | b'\t')) || matches!(bytes.last(), Some(b' ' | b'\t'));
    let printable = bytes.iter().all(|b| (0x20..=0x7e).contains(b));
    let looks_wrapped = value.starts_with(SENTINEL_OPEN) && value.ends_with(SENTINEL_CLOSE);
    if padded || !printable || looks_wrapped {
        format!("{SENTINEL_OPEN}{}{SENTINEL_CLOSE}", BASE64_STANDARD.encode(bytes))
    } else {
        value.to_owned()
    }
}

fn named_by<'a>(method: &str, params: &Params<'a>) -> Option<&'a RawValue> {
    match method {
        "tools/call" | "prompts/get" => params.name,
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => params.uri,
        _ if method.starts_with("tasks/") => params.task_id,
        _ => None,
    }
}

fn value_at<'a>(arguments: &'a RawValue, path: &[String]) -> Option<&'a RawValue> {
    let mut here = arguments;
    for step in path {
        here = peek::members(here)?.remove(step)?;
    }
    Some(here)
}

/// The text a primitive is mirrored as; `null`, arrays and objects are not mirrored.
fn primitive(raw: &RawValue) -> Option<String> {
    if raw.get().starts_with(['{', '[']) {
        return None;
    }
    match serde_json::from_str(raw.get()).ok()? {
        serde_json::Value::String(text) => Some(text),
        serde_json::Value::Bool(flag) => Some(flag.to_string()),
        serde_json::Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A value that cannot be a header is left out: the crib then refuses the message and says which one it missed.
fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peek::Message;

    fn headers_of(line: &str, annotations: &[(&[&str], &str)]) -> HeaderMap {
        let annotations: Vec<Annotation> = annotations
            .iter()
            .map(|(path, header)| Annotation {
                path: path.iter().map(|s| (*s).to_owned()).collect(),
                header: (*header).to_owned(),
            })
            .collect();
        let Message::Request { method, params, .. } = peek::message(line).unwrap() else { panic!() };
        modern("2026-07-28", &method, &params, &annotations)
    }

    #[test]
    fn plain_values_travel_as_they_are() {
        for value in ["us-west1", "a b c", "", "=?base64?abc", "SGVsbG8="] {
            assert_eq!(encode(value), value);
        }
    }

    #[test]
    fn values_a_header_cannot_carry_are_wrapped() {
        assert_eq!(encode(" padded "), "=?base64?IHBhZGRlZCA=?=");
        assert_eq!(encode("Hello, 世界"), "=?base64?SGVsbG8sIOS4lueVjA==?=");
        for value in ["\tx", "x ", "a\r\nb", "\u{7f}", "=?base64?eA==?="] {
            assert!(encode(value).starts_with("=?base64?"), "{value:?}");
        }
    }

    #[test]
    fn the_name_comes_from_the_member_the_method_is_about() {
        let name = |line: &str| headers_of(line, &[]).get(NAME).map(|v| v.to_str().unwrap().to_owned());
        let line = |method: &str| {
            format!(r#"{{"id":1,"method":"{method}","params":{{"name":"n","uri":"u","taskId":"t"}}}}"#)
        };
        assert_eq!(name(&line("tools/call")).as_deref(), Some("n"));
        assert_eq!(name(&line("prompts/get")).as_deref(), Some("n"));
        assert_eq!(name(&line("resources/read")).as_deref(), Some("u"));
        assert_eq!(name(&line("tasks/get")).as_deref(), Some("t"));
        assert_eq!(name(&line("tools/list")), None);
    }

    #[test]
    fn annotated_arguments_are_mirrored_and_null_is_not() {
        let line = r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":
            {"region":"Zürich","n":42,"flag":false,"none":null,"deep":{"er":"x"},"list":[1]}}}"#;
        let headers = headers_of(
            line,
            &[
                (&["region"], "Region"),
                (&["n"], "N"),
                (&["flag"], "Flag"),
                (&["none"], "None"),
                (&["deep", "er"], "Deeper"),
                (&["list"], "List"),
                (&["absent"], "Absent"),
            ],
        );
        let value = |name: &str| headers.get(name).map(|v| v.to_str().unwrap());
        assert_eq!(value("Mcp-Param-Region"), Some("=?base64?WsO8cmljaA==?="));
        assert_eq!(value("Mcp-Param-N"), Some("42"));
        assert_eq!(value("Mcp-Param-Flag"), Some("false"));
        assert_eq!(value("Mcp-Param-Deeper"), Some("x"));
        for absent in ["Mcp-Param-None", "Mcp-Param-List", "Mcp-Param-Absent"] {
            assert_eq!(value(absent), None, "{absent}");
        }
    }
}
