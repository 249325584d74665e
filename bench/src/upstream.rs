//! The server everything is measured against: raw JSON, no state, as little work as possible per call.
//!
//! It speaks enough of both eras for a client to list and call: `server/discover`, `initialize`, `tools/list`,
//! `tools/call`. It checks nothing a benchmark does not send.

use std::borrow::Cow;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::LazyLock;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::Response;
use axum::routing::post;
use axum::serve::ListenerExt;
use http::{StatusCode, header};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::{BLOB_BYTES, LEGACY, MODERN, TOOLS};

/// Listens on loopback, says where on standard output, and serves until it is killed.
pub async fn serve(port: u16) -> Result<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener =
        tokio::net::TcpListener::bind(address).await.with_context(|| format!("cannot bind {address}"))?;
    println!("listening {}", listener.local_addr()?);
    // Without it a small answer can wait for the acknowledgement of the last one.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    axum::serve(listener, router()).await.context("the upstream stopped")
}

pub fn router() -> Router {
    Router::new().route("/mcp", post(answer))
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Echo<'a> {
    #[serde(borrow)]
    text: &'a RawValue,
}

async fn answer(body: Bytes) -> Response {
    let Ok(message) = serde_json::from_slice::<Message>(&body) else {
        return json(StatusCode::BAD_REQUEST, error("null", -32700, "not JSON-RPC"));
    };
    let Some(id) = message.id.map(RawValue::get) else {
        return json(StatusCode::ACCEPTED, String::new());
    };
    let result = match message.method.as_ref() {
        "tools/call" => message.params.and_then(called),
        "tools/list" => Some(LIST.clone()),
        "server/discover" => Some(DISCOVER.clone()),
        "initialize" => Some(INITIALIZE.clone()),
        "ping" => Some("{}".to_string()),
        _ => return json(StatusCode::NOT_FOUND, error(id, -32601, "no such method")),
    };
    match result {
        Some(result) => json(StatusCode::OK, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)),
        None => json(StatusCode::BAD_REQUEST, error(id, -32602, "no such tool, or not its arguments")),
    }
}

fn called(params: &RawValue) -> Option<String> {
    let call: Call = serde_json::from_str(params.get()).ok()?;
    match call.name.as_ref() {
        "echo" => {
            let echo: Echo = serde_json::from_str(call.arguments?.get()).ok()?;
            Some(content(echo.text.get()))
        }
        "blob" => Some(BLOB.clone()),
        name if name.starts_with("filler_") => Some(content("\"\"")),
        _ => None,
    }
}

/// A complete result with one text block; `text` is JSON already.
fn content(text: &str) -> String {
    format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":false,"resultType":"complete"}}"#)
}

fn error(id: &str, code: i32, text: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{text}"}}}}"#)
}

fn json(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}

static BLOB: LazyLock<String> = LazyLock::new(|| content(&format!("\"{}\"", "x".repeat(BLOB_BYTES))));

static DISCOVER: LazyLock<String> = LazyLock::new(|| {
    format!(
        r#"{{"resultType":"complete","supportedVersions":["{MODERN}"],"capabilities":{{"tools":{{}}}},"ttlMs":60000,"cacheScope":"public","_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"bench","version":"1"}}}}}}"#
    )
});

static INITIALIZE: LazyLock<String> = LazyLock::new(|| {
    format!(
        r#"{{"protocolVersion":"{LEGACY}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"bench","version":"1"}}}}"#
    )
});

/// A hundred tools, each about as large as tools are.
static LIST: LazyLock<String> = LazyLock::new(|| {
    let mut tools = vec![
        tool("echo", r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#),
        tool("blob", r#"{"type":"object","properties":{"bytes":{"type":"integer","minimum":0}}}"#),
    ];
    let schema = r#"{"type":"object","properties":{"path":{"type":"string","description":"Where to look, from the root of the project."},"limit":{"type":"integer","minimum":1,"maximum":1000,"default":50},"recursive":{"type":"boolean","default":false}},"required":["path"],"additionalProperties":false}"#;
    tools.extend((0..TOOLS - tools.len()).map(|number| tool(&format!("filler_{number:02}"), schema)));
    format!(
        r#"{{"resultType":"complete","ttlMs":60000,"cacheScope":"public","tools":[{}]}}"#,
        tools.join(",")
    )
});

fn tool(name: &str, schema: &str) -> String {
    let about = "Does one thing and says so in a sentence of ordinary length, as most tools do.";
    format!(
        r#"{{"name":"{name}","title":"{name}","description":"{about}","inputSchema":{schema},"annotations":{{"readOnlyHint":true}}}}"#
    )
}

#[cfg(test)]
mod tests {
    use super::{DISCOVER, INITIALIZE, LIST, TOOLS};

    #[test]
    fn what_is_written_by_hand_is_json() {
        for text in [&*DISCOVER, &*INITIALIZE] {
            assert!(serde_json::from_str::<serde_json::Value>(text).is_ok(), "{text}");
        }
        let list: serde_json::Value = serde_json::from_str(&LIST).unwrap();
        assert_eq!(list["tools"].as_array().unwrap().len(), TOOLS);
    }
}
