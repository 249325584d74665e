//! The bytes of a question, and whether the bytes of an answer are right.
//!
//! An answer is right when it is the answer to this very question: its id, no error, and the expected content.
//! Nothing here is shared with the crib: an instrument must not use what it measures.

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::Full;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::scenario::{Ask, Era};

pub const MODERN: &str = "2026-07-28";
pub const LEGACY: &str = "2025-11-25";
pub const SESSION_HEADER: &str = "mcp-session-id";

/// Bytes of text in a `blob` result.
pub const BLOB_BYTES: usize = 64 * 1024;

/// Tools the upstream lists: `echo`, `blob` and the rest fillers.
pub const TOOLS: usize = 100;

/// Every tool of the upstream has one of these names or starts with the last.
const NAMES: [&str; 3] = ["echo", "blob", "filler_"];

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}"#;

/// One question: its JSON-RPC id and body, ready to send.
#[derive(Debug)]
pub struct Question {
    id: u64,
    ask: Ask,
    /// What an echo must give back.
    marker: String,
}

impl Question {
    pub fn new(ask: Ask, id: u64) -> Question {
        Question { id, ask, marker: format!("call number {id}") }
    }

    fn method(&self) -> &'static str {
        match self.ask {
            Ask::Echo | Ask::Blob => "tools/call",
            Ask::List => "tools/list",
        }
    }

    fn tool(&self) -> Option<&'static str> {
        match self.ask {
            Ask::Echo => Some("echo"),
            Ask::Blob => Some("blob"),
            Ask::List => None,
        }
    }

    fn body(&self, era: Era) -> String {
        let Question { id, marker, .. } = self;
        let call = match self.ask {
            Ask::Echo => format!(r#""name":"echo","arguments":{{"text":"{marker}"}}"#),
            Ask::Blob => format!(r#""name":"blob","arguments":{{"bytes":{BLOB_BYTES}}}"#),
            Ask::List => String::new(),
        };
        let meta = if era == Era::Modern { META } else { "" };
        let comma = if call.is_empty() || meta.is_empty() { "" } else { "," };
        let method = self.method();
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{call}{comma}{meta}}}}}"#)
    }

    /// The HTTP request, with the headers its era wants.
    pub fn request(&self, host: &str, era: Era, session: Option<&str>) -> Result<Request<Full<Bytes>>> {
        let mut builder = post(host);
        match era {
            Era::Modern => {
                builder = builder.header("mcp-protocol-version", MODERN).header("mcp-method", self.method());
                if let Some(tool) = self.tool() {
                    builder = builder.header("mcp-name", tool);
                }
            }
            Era::Legacy => builder = builder.header("mcp-protocol-version", LEGACY),
        }
        if let Some(session) = session {
            builder = builder.header(SESSION_HEADER, session);
        }
        builder.body(Full::new(Bytes::from(self.body(era)))).context("a request that cannot be built")
    }

    /// Fails with what is wrong about the answer.
    pub fn check(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Result<()> {
        ensure!(status == StatusCode::OK, "status {status}: {}", excerpt(body));
        let message = message_of(headers, body, self.id)?;
        let answer: Answer =
            serde_json::from_slice(message).with_context(|| format!("not JSON: {}", excerpt(body)))?;
        ensure!(
            answer.id == Some(self.id),
            "answer to {:?}, asked {}: {}",
            answer.id,
            self.id,
            excerpt(body)
        );
        let Some(result) = answer.result.filter(|_| answer.error.is_none()) else {
            bail!("an error: {}", excerpt(body));
        };
        let right = match self.ask {
            Ask::Echo => called(result)?.is_some_and(|text| text == self.marker),
            Ask::Blob => called(result)?.is_some_and(|text| text.len() == BLOB_BYTES),
            Ask::List => listed(result)? == TOOLS,
        };
        ensure!(right, "not the answer that was asked for: {}", excerpt(body));
        Ok(())
    }
}

/// `initialize` of a legacy session.
pub fn initialize(host: &str) -> Result<Request<Full<Bytes>>> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{LEGACY}","capabilities":{{}},"clientInfo":{{"name":"bench","version":"1"}}}}}}"#
    );
    post(host).body(Full::new(Bytes::from(body))).context("a request that cannot be built")
}

/// `notifications/initialized`, which opens the session for calls.
pub fn initialized(host: &str, session: Option<&str>) -> Result<Request<Full<Bytes>>> {
    let mut builder = post(host).header("mcp-protocol-version", LEGACY);
    if let Some(session) = session {
        builder = builder.header(SESSION_HEADER, session);
    }
    let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    builder.body(Full::new(Bytes::from(body))).context("a request that cannot be built")
}

fn post(host: &str) -> http::request::Builder {
    Request::post("/mcp")
        .header(header::HOST, host)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, text/event-stream")
}

#[derive(Deserialize)]
struct Answer<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// The JSON message in a body: the body itself, or the event that carries the answer.
fn message_of<'a>(headers: &HeaderMap, body: &'a [u8], id: u64) -> Result<&'a [u8]> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("text/event-stream") {
        return Ok(body);
    }
    let lines = body.split(|byte| *byte == b'\n');
    let mut events = lines.filter_map(|line| line.strip_prefix(b"data:"));
    let is_answer = |event: &&[u8]| serde_json::from_slice::<Answer>(event).is_ok_and(|a| a.id == Some(id));
    events.find(is_answer).with_context(|| format!("no event answers {id}: {}", excerpt(body)))
}

/// The text of a call's first content block, unless the tool failed.
fn called(result: &RawValue) -> Result<Option<String>> {
    #[derive(Deserialize)]
    struct Block {
        #[serde(default)]
        text: String,
    }
    #[derive(Deserialize)]
    struct Called {
        content: Vec<Block>,
        #[serde(default, rename = "isError")]
        is_error: bool,
    }
    let called: Called = serde_json::from_str(result.get()).context("not the result of a call")?;
    Ok(called.content.into_iter().next().filter(|_| !called.is_error).map(|block| block.text))
}

/// How many of the upstream's tools a list holds; a proxy may add tools of its own.
fn listed(result: &RawValue) -> Result<usize> {
    #[derive(Deserialize)]
    struct Tool<'a> {
        #[serde(borrow)]
        name: std::borrow::Cow<'a, str>,
    }
    #[derive(Deserialize)]
    struct Listed<'a> {
        #[serde(borrow)]
        tools: Vec<Tool<'a>>,
    }
    let list: Listed = serde_json::from_str(result.get()).context("not a list of tools")?;
    Ok(list.tools.iter().filter(|tool| NAMES.iter().any(|name| tool.name.starts_with(name))).count())
}

fn excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(question: &Question, kind: &str, status: u16, body: &str) -> Result<()> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, kind.parse().unwrap());
        question.check(StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes())
    }

    const JSON: &str = "application/json";

    #[test]
    fn the_right_answer_is_right_on_both_wires() {
        let body =
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"call number 7"}]}}"#;
        let question = Question::new(Ask::Echo, 7);
        checked(&question, JSON, 200, body).unwrap();
        let events =
            format!("event: message\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"x\"}}\n\ndata: {body}\n\n");
        checked(&question, "text/event-stream; charset=utf-8", 200, &events).unwrap();
    }

    #[test]
    fn wrong_answers_are_wrong() {
        let question = Question::new(Ask::Echo, 7);
        let answer = |id: u64, text: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
            )
        };
        assert!(checked(&question, JSON, 200, &answer(8, "call number 7")).is_err());
        assert!(checked(&question, JSON, 200, &answer(7, "call number 8")).is_err());
        assert!(checked(&question, JSON, 502, &answer(7, "call number 7")).is_err());
        assert!(checked(&question, JSON, 200, r#"{"id":7,"error":{"code":-1}}"#).is_err());
        let failed =
            r#"{"id":7,"result":{"isError":true,"content":[{"type":"text","text":"call number 7"}]}}"#;
        assert!(checked(&question, JSON, 200, failed).is_err());
        assert!(checked(&question, JSON, 200, "<html>").is_err());
        assert!(checked(&question, "text/event-stream", 200, "data: {}\n\n").is_err());
        assert!(
            checked(&Question::new(Ask::List, 7), JSON, 200, r#"{"id":7,"result":{"tools":[]}}"#).is_err()
        );
    }

    #[test]
    fn bodies_are_json_in_every_combination() {
        for ask in [Ask::Echo, Ask::Blob, Ask::List] {
            for era in [Era::Modern, Era::Legacy] {
                let body: serde_json::Value = serde_json::from_str(&Question::new(ask, 3).body(era)).unwrap();
                assert_eq!(body["id"], 3);
                assert_eq!(body["params"]["_meta"].is_object(), era == Era::Modern);
            }
        }
    }
}
