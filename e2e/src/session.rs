//! A caller over HTTP, for tests that care about streams: one legacy session, or one modern request kept open.
//!
//! It answers nothing a server asks and resumes nothing; a test that wants a real client takes one from `peers`.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result, bail};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::wire::{PATIENCE, Reply, fetch, hello, modern_meta};

/// What every POST of MCP says about its body.
const PLAIN: [(&str, &str); 2] =
    [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];

/// An answer that is read event by event. Dropping it closes the connection, as a caller that goes away does.
pub struct Stream {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Incoming,
    unread: Vec<u8>,
}

impl Stream {
    pub async fn open(method: Method, url: &str, headers: &[(&str, &str)], body: &str) -> Result<Self> {
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body.to_owned())))?;
        // A client of its own, so that the connection is nobody else's.
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build_http();
        let response = timeout(PATIENCE, client.request(request)).await.context("no answer in time")??;
        let (parts, body) = response.into_parts();
        Ok(Self { status: parts.status, headers: parts.headers, body, unread: Vec::new() })
    }

    /// One modern request whose answer is read as it comes.
    pub async fn modern(url: &str, method: &str, mut params: Value) -> Result<Self> {
        let name = ["name", "uri"].iter().find_map(|key| params.get(key)).and_then(Value::as_str);
        let name = name.map(ToOwned::to_owned);
        if let Some(object) = params.as_object_mut() {
            object.entry("_meta").or_insert_with(modern_meta);
        }
        let mut headers = PLAIN.to_vec();
        headers.extend([("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)]);
        headers.extend(name.as_deref().map(|name| ("mcp-name", name)));
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        Self::open(Method::POST, url, &headers, &message.to_string()).await
    }

    /// The next message; `None` when the stream has ended.
    pub async fn next(&mut self) -> Result<Option<Value>> {
        match timeout(PATIENCE, self.line()).await {
            Ok(message) => message,
            Err(_) => bail!("the stream said nothing within {PATIENCE:?}"),
        }
    }

    /// Passes over messages until one is of this method.
    pub async fn told(&mut self, method: &str) -> Result<Value> {
        while let Some(message) = self.next().await? {
            if message.get("method").and_then(Value::as_str) == Some(method) {
                return Ok(message);
            }
        }
        bail!("the stream ended without `{method}`")
    }

    /// Passes over notifications until the answer is there, and gives its result.
    pub async fn result(&mut self) -> Result<Value> {
        while let Some(message) = self.next().await? {
            match (message.get("result"), message.get("error")) {
                (Some(result), _) => return Ok(result.clone()),
                (None, Some(error)) => bail!("{error}"),
                (None, None) => {}
            }
        }
        bail!("the stream ended without an answer")
    }

    async fn line(&mut self) -> Result<Option<Value>> {
        loop {
            while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                let event =
                    line.strip_prefix(b"data:").map(<[u8]>::trim_ascii).filter(|text| !text.is_empty());
                if let Some(event) = event {
                    return Ok(Some(serde_json::from_slice(event)?));
                }
            }
            match self.body.frame().await {
                Some(frame) => {
                    if let Ok(bytes) = frame.context("the stream broke")?.into_data() {
                        self.unread.extend_from_slice(&bytes);
                    }
                }
                // What is left without a line's end is one document, when the answer was no stream of events.
                None => return Ok(serde_json::from_slice(&std::mem::take(&mut self.unread)).ok()),
            }
        }
    }
}

/// A legacy session.
pub struct Session {
    url: String,
    id: String,
    token: Option<String>,
    sent: AtomicU64,
}

impl Session {
    pub async fn open(url: &str) -> Result<Self> {
        Self::open_as(url, None).await
    }

    /// Opens a session with a bearer token.
    pub async fn open_as(url: &str, token: Option<&str>) -> Result<Self> {
        let token = token.map(|token| format!("Bearer {token}"));
        let mut session = Self { url: url.to_owned(), id: String::new(), token, sent: AtomicU64::new(0) };
        let opened = session.post("initialize", hello()).await?;
        let id = opened.headers.get("mcp-session-id").with_context(|| format!("no session: {opened:?}"))?;
        session.id = id.to_str()?.to_owned();
        session.notify("notifications/initialized", json!({})).await?;
        Ok(session)
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    fn headers(&self) -> Vec<(&str, &str)> {
        let mut headers = PLAIN.to_vec();
        if !self.id.is_empty() {
            headers.extend([("mcp-session-id", self.id.as_str()), ("mcp-protocol-version", "2025-11-25")]);
        }
        headers.extend(self.token.as_deref().map(|token| ("authorization", token)));
        headers
    }

    fn message(&self, method: &str, params: &Value) -> (u64, String) {
        let id = self.sent.fetch_add(1, Ordering::SeqCst) + 1;
        (id, json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string())
    }

    pub async fn post(&self, method: &str, params: Value) -> Result<Reply> {
        let (_, message) = self.message(method, &params);
        fetch(Method::POST, &self.url, &self.headers(), &message).await
    }

    pub async fn request(&self, method: &str, params: Value) -> Result<Value> {
        self.post(method, params).await?.result().with_context(|| format!("`{method}` in a session"))
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Value> {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    pub async fn notify(&self, method: &str, params: Value) -> Result<()> {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string();
        let reply = fetch(Method::POST, &self.url, &self.headers(), &message).await?;
        if reply.status != StatusCode::ACCEPTED {
            bail!("`{method}` was answered with {} {}", reply.status, reply.body);
        }
        Ok(())
    }

    /// A request whose answer is read as it comes, and its id.
    pub async fn stream(&self, method: &str, params: Value) -> Result<(u64, Stream)> {
        let (id, message) = self.message(method, &params);
        Ok((id, Stream::open(Method::POST, &self.url, &self.headers(), &message).await?))
    }

    /// The stream on which the server speaks by itself.
    pub async fn listen(&self) -> Result<Stream> {
        Stream::open(Method::GET, &self.url, &self.headers(), "").await
    }
}
