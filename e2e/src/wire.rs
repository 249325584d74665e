//! Plain JSON-RPC, over a pipe or HTTP, with nothing between the test and the bytes.
//!
//! It knows no lifecycle and no era: a test that wants a real client takes one from `peers`.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::child::{Child, Said};

/// How long an answer may take when a test does not say.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The `_meta` every request of the modern era carries.
pub fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "e2e", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// The params of a legacy `initialize`.
pub fn hello() -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "e2e", "version": "0" },
    })
}

/// A server at the other end of a pipe.
pub struct Pipe {
    pub child: Child,
    sent: u64,
    /// Notifications and requests of the server that came while an answer was waited for.
    pub heard: Vec<Value>,
}

impl Pipe {
    pub fn open(command: Command) -> Result<Self> {
        Ok(Self { child: Child::start(command)?, sent: 0, heard: Vec::new() })
    }

    /// Opens a legacy session.
    pub async fn initialize(&mut self) -> Result<Value> {
        let result = self.request("initialize", hello()).await?;
        self.notify("notifications/initialized", json!({})).await?;
        Ok(result)
    }

    /// Sends a request without waiting, and gives its id.
    pub async fn send(&mut self, method: &str, params: Value) -> Result<u64> {
        self.sent += 1;
        let message = json!({ "jsonrpc": "2.0", "id": self.sent, "method": method, "params": params });
        self.child.say(&message.to_string()).await?;
        Ok(self.sent)
    }

    pub async fn notify(&mut self, method: &str, params: Value) -> Result<()> {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.child.say(&message.to_string()).await
    }

    /// The whole answer to one request, be it a result or an error.
    pub async fn answer(&mut self, id: u64) -> Result<Value> {
        loop {
            let message = self.next().await?;
            if message.get("method").is_none() && message.get("id") == Some(&json!(id)) {
                return Ok(message);
            }
            self.heard.push(message);
        }
    }

    /// The next message, whatever it is.
    pub async fn next(&mut self) -> Result<Value> {
        let line = self.child.line(PATIENCE, |line| line.said == Said::Out).await?;
        serde_json::from_str(&line).with_context(|| format!("not JSON: `{line}`"))
    }

    /// Sends a request and gives its result; an error is an error here too.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        let id = self.send(method, params).await?;
        let answer = self.answer(id).await?;
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => bail!("`{method}` was answered with {answer}"),
        }
    }
}

/// What came back from one HTTP request.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

impl Reply {
    /// The JSON-RPC messages in the body, be it one document or a stream of events.
    pub fn messages(&self) -> Vec<Value> {
        let streamed = self.headers.get(header::CONTENT_TYPE);
        if streamed.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
            let events = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
            return events.filter_map(|event| serde_json::from_str(event.trim()).ok()).collect();
        }
        serde_json::from_str(&self.body).into_iter().collect()
    }

    /// The one answer among the messages.
    pub fn answer(&self) -> Result<Value> {
        let answered = |message: &Value| message.get("result").is_some() || message.get("error").is_some();
        let found = self.messages().into_iter().find(answered);
        found.with_context(|| format!("no answer in {} `{}`", self.status, self.body))
    }

    /// The result in the answer; an error is an error here too.
    pub fn result(&self) -> Result<Value> {
        let mut answer = self.answer()?;
        match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => bail!("{} {answer}", self.status),
        }
    }
}

/// Sends one request and reads the whole answer, within `PATIENCE`.
pub async fn fetch(method: Method, url: &str, headers: &[(&str, &str)], body: &str) -> Result<Reply> {
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::from(body.to_owned())))?;
    let client = Client::builder(TokioExecutor::new()).build_http();
    let exchange = async {
        let response = client.request(request).await.with_context(|| format!("`{url}` did not answer"))?;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.context("the answer broke off")?.to_bytes();
        let body = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Reply { status: parts.status, headers: parts.headers, body })
    };
    match tokio::time::timeout(PATIENCE, exchange).await {
        Ok(reply) => reply,
        Err(_) => bail!("`{url}` did not answer within {PATIENCE:?}"),
    }
}

/// Posts one JSON-RPC request with the headers every era asks for, and those given.
pub async fn post(url: &str, method: &str, params: Value, extra: &[(&str, &str)]) -> Result<Reply> {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut headers =
        vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    headers.extend_from_slice(extra);
    fetch(Method::POST, url, &headers, &message.to_string()).await
}

/// Posts one request of the modern era: `_meta` and the mirrored headers are filled in.
pub async fn post_modern(url: &str, method: &str, mut params: Value) -> Result<Reply> {
    let name = ["name", "uri"].iter().find_map(|key| params.get(key)).and_then(Value::as_str);
    let name = name.map(ToOwned::to_owned);
    if let Some(object) = params.as_object_mut() {
        object.entry("_meta").or_insert_with(modern_meta);
    }
    let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
    headers.extend(name.as_deref().map(|name| ("mcp-name", name)));
    post(url, method, params, &headers).await
}

/// The names in a list of tools, in its order.
pub fn names(list: &Value) -> Vec<&str> {
    let tools = list.get("tools").and_then(Value::as_array).into_iter().flatten();
    tools.filter_map(|tool| tool.get("name").and_then(Value::as_str)).collect()
}

/// The text a tool answered with.
pub fn text(result: &Value) -> &str {
    result.pointer("/content/0/text").and_then(Value::as_str).unwrap_or("no text")
}
