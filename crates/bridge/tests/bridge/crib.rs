//! A crib to test against: both eras on one endpoint, on a runtime of its own so that stopping it closes every
//! connection as a killed process would.
//!
//! It checks what a strict crib checks (session, mirrored headers, token) and remembers what it saw.

use std::collections::HashSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures_util::stream::{self, Stream, StreamExt};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::{broadcast, watch};

/// One HTTP request as it arrived.
#[derive(Debug, Clone)]
pub struct Seen {
    pub verb: Method,
    pub headers: HeaderMap,
    pub body: String,
}

impl Seen {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    pub fn calls(&self, method: &str) -> bool {
        self.verb == Method::POST && self.json()["method"] == method
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|v| v.to_str().ok())
    }
}

pub struct Crib {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

struct Shared {
    token: Option<String>,
    sessions: Mutex<HashSet<String>>,
    seen: watch::Sender<Vec<Seen>>,
    push: broadcast::Sender<String>,
    release: watch::Sender<bool>,
    gone: watch::Sender<usize>,
    opened: watch::Sender<usize>,
}

impl Shared {
    fn pushed(&self) -> impl Stream<Item = Result<String, Infallible>> + use<> {
        let pushed = self.push.subscribe();
        self.opened.send_modify(|opened| *opened += 1);
        stream::unfold(pushed, |mut pushed| async {
            let event = pushed.recv().await.ok().filter(|event| event != "close")?;
            Some((Ok(event), pushed))
        })
    }
}

impl Crib {
    pub fn start() -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), None)
    }

    pub fn start_at(address: SocketAddr, token: Option<&str>) -> Self {
        Self::start_on(std::net::TcpListener::bind(address).unwrap(), token)
    }

    fn start_on(listener: std::net::TcpListener, token: Option<&str>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let shared = Arc::new(Shared {
            token: token.map(str::to_owned),
            sessions: Mutex::default(),
            seen: watch::Sender::new(Vec::new()),
            push: broadcast::Sender::new(16),
            release: watch::Sender::new(false),
            gone: watch::Sender::new(0),
            opened: watch::Sender::new(0),
        });
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/mcp", any(answer)).with_state(Arc::clone(&shared));
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
        Self { address, shared, runtime: Some(runtime) }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops at once, with all connections, and frees the port.
    pub fn stop(mut self) -> SocketAddr {
        if let Some(runtime) = self.runtime.take() {
            // A runtime may not be waited for inside another one.
            let stopping =
                std::thread::spawn(move || runtime.shutdown_timeout(std::time::Duration::from_secs(5)));
            stopping.join().unwrap();
        }
        self.address
    }

    /// Sends one event to every open stream, once there is one.
    pub async fn push(&self, event: &str) {
        let open = |_: &usize| self.shared.push.receiver_count() > 0;
        self.shared.opened.subscribe().wait_for(open).await.unwrap();
        self.shared.push.send(event.to_owned()).unwrap();
    }

    /// Closes every GET stream without forgetting a session.
    pub async fn close_streams(&self) {
        self.push("close").await;
    }

    /// Lets the tool `slow` answer.
    pub fn release(&self) {
        self.shared.release.send_replace(true);
    }

    /// Waits for a request like this and gives it.
    pub async fn until(&self, like: impl Fn(&Seen) -> bool) -> Seen {
        let mut seen = self.shared.seen.subscribe();
        let all = seen.wait_for(|all| all.iter().any(&like)).await.unwrap();
        all.iter().find(|one| like(one)).unwrap().clone()
    }

    /// Waits until `count` streams were closed by the other side before they were answered.
    pub async fn until_gone(&self, count: usize) {
        self.shared.gone.subscribe().wait_for(|gone| *gone >= count).await.unwrap();
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.shared.seen.borrow().clone()
    }

    pub fn sessions(&self) -> usize {
        self.shared.sessions.lock().unwrap().len()
    }
}

/// A port that is taken but refuses connections, as that of a crib which is not up yet.
pub struct Closed {
    socket: tokio::net::TcpSocket,
}

impl Closed {
    pub fn reserve() -> Self {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self { socket }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.socket.local_addr().unwrap())
    }

    pub fn open(self) -> Crib {
        Crib::start_on(self.socket.listen(64).unwrap().into_std().unwrap(), None)
    }
}

impl Drop for Crib {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    verb: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body = String::from_utf8(body.to_vec()).unwrap();
    let seen = Seen { verb: verb.clone(), headers, body };
    shared.seen.send_modify(|all| all.push(seen.clone()));
    let authorized = match &shared.token {
        Some(token) => seen.header("authorization") == Some(&format!("Bearer {token}")),
        None => true,
    };
    if !authorized {
        return (StatusCode::UNAUTHORIZED, "who are you?").into_response();
    }
    let session = seen.header("mcp-session-id").map(str::to_owned);
    let message = seen.json();
    if message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string() {
        return modern(&shared, &seen, &message);
    }
    if verb == Method::POST && message["method"] == "initialize" {
        return initialize(&shared, &message);
    }
    if !session.as_ref().is_some_and(|id| shared.sessions.lock().unwrap().contains(id)) {
        let status = if session.is_some() { StatusCode::NOT_FOUND } else { StatusCode::BAD_REQUEST };
        return (status, "no such session").into_response();
    }
    match verb {
        Method::GET => listen(&shared, &seen),
        Method::DELETE => {
            shared.sessions.lock().unwrap().remove(&session.unwrap());
            StatusCode::NO_CONTENT.into_response()
        }
        _ => legacy(&shared, &message),
    }
}

fn initialize(shared: &Shared, message: &Value) -> Response {
    let mut sessions = shared.sessions.lock().unwrap();
    let id = format!("s-{}", sessions.len() + 1);
    sessions.insert(id.clone());
    let result = json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "crib", "version": "0"},
        "capabilities": {"tools": {"listChanged": true}, "prompts": {}}});
    // Pretty on purpose: the answer has line breaks that must not reach the output.
    let body = serde_json::to_string_pretty(&json!({"jsonrpc":"2.0","id":message["id"],"result":result}));
    ([("content-type", "application/json"), ("mcp-session-id", id.as_str())], body.unwrap()).into_response()
}

fn legacy(shared: &Arc<Shared>, message: &Value) -> Response {
    if message.is_array() {
        let parts = message.as_array().unwrap().iter().filter(|m| m["id"].is_number());
        let answers: Vec<Value> = parts.map(|m| json!({"jsonrpc":"2.0","id":m["id"],"result":{}})).collect();
        return axum::Json(answers).into_response();
    }
    if message["id"].is_null() || message["method"].is_null() {
        return StatusCode::ACCEPTED.into_response();
    }
    let tool = message["params"]["name"].as_str().unwrap_or_default();
    let result = json!({"jsonrpc":"2.0","id":message["id"],"result":{"tool":tool}});
    match tool {
        "slow" => slow(shared, result),
        "stream" => events(vec![
            "id: 1\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"notifications/progress\"}\n\n".to_owned(),
            format!(": still here\n\ndata: {result}\n\n"),
        ]),
        // Ends after its first event: the answer waits on the GET stream.
        "broken" => events(vec!["retry: 1\nid: resume-me\ndata:\n\n".to_owned()]),
        "html" => ([("content-type", "text/html")], "<html>").into_response(),
        "fails" => (StatusCode::INTERNAL_SERVER_ERROR, "boom").into_response(),
        _ => axum::Json(result).into_response(),
    }
}

fn slow(shared: &Arc<Shared>, result: Value) -> Response {
    let mut release = shared.release.subscribe();
    let guard = Gone(Arc::clone(shared), false);
    let later = stream::once(async move {
        let mut guard = guard;
        let _ = release.wait_for(|open| *open).await;
        guard.1 = true;
        Ok::<_, Infallible>(format!("data: {result}\n\n"))
    });
    let opened = stream::iter([Ok::<_, Infallible>(": wait\n\n".to_owned())]);
    sse(opened.chain(later).boxed())
}

/// Counts streams dropped before they were answered.
struct Gone(Arc<Shared>, bool);

impl Drop for Gone {
    fn drop(&mut self) {
        if !self.1 {
            self.0.gone.send_modify(|gone| *gone += 1);
        }
    }
}

fn listen(shared: &Shared, seen: &Seen) -> Response {
    if seen.header("last-event-id") == Some("resume-me") {
        let call = |one: &&Seen| one.json()["params"]["name"] == "broken";
        let id = shared.seen.borrow().iter().rfind(call).unwrap().json()["id"].clone();
        return events(vec![format!(
            "data: {}\n\n",
            json!({"jsonrpc":"2.0","id":id,"result":{"resumed":true}})
        )]);
    }
    sse(stream::iter([Ok(": open\n\n".to_owned())]).chain(shared.pushed()).boxed())
}

fn modern(shared: &Arc<Shared>, seen: &Seen, message: &Value) -> Response {
    let (method, params) = (&message["method"], &message["params"]);
    let mirrored = |name: &str, value: &Value| seen.header(name) == value.as_str();
    let region = params["arguments"]["region"].as_str().filter(|_| params["name"] == "annotated");
    let meant = mirrored("mcp-protocol-version", &json!("2026-07-28"))
        && mirrored("mcp-method", method)
        && mirrored("mcp-name", params.get("name").unwrap_or(&Value::Null))
        && seen.header("mcp-param-region") == region
        && seen.header("mcp-session-id").is_none();
    if !meant {
        let error = json!({"code": -32020, "message": "header mismatch"});
        let body = json!({"jsonrpc":"2.0","id":null,"error":error});
        return (StatusCode::BAD_REQUEST, axum::Json(body)).into_response();
    }
    let result = |result: Value| json!({"jsonrpc":"2.0","id":message["id"],"result":result});
    match (method.as_str().unwrap(), params["name"].as_str().unwrap_or_default()) {
        ("tools/call", "slow") => slow(shared, result(json!({}))),
        ("tools/list", _) => axum::Json(result(json!({"tools":[{"name":"annotated","inputSchema":
            {"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]})))
        .into_response(),
        ("subscriptions/listen", _) => {
            let acknowledged = json!({"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"});
            let ended = format!("data: {}\n\n", result(json!({})));
            let first = stream::iter([Ok(format!("data: {acknowledged}\n\n"))]);
            sse(first.chain(shared.pushed()).chain(stream::iter([Ok(ended)])).boxed())
        }
        (_, name) => axum::Json(result(json!({"tool": name}))).into_response(),
    }
}

fn events(parts: Vec<String>) -> Response {
    sse(stream::iter(parts.into_iter().map(Ok::<_, Infallible>)).boxed())
}

fn sse(parts: stream::BoxStream<'static, Result<String, Infallible>>) -> Response {
    ([("content-type", "text/event-stream")], Body::from_stream(parts)).into_response()
}
