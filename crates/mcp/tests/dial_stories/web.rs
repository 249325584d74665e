//! A small HTTP server that answers as a story wants and remembers what it was asked.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    response::Response,
};
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};

/// One request as the server saw it.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: Method,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Asked {
    pub fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The JSON-RPC answer to this request.
    pub fn result(&self, result: &Value) -> Response {
        json_body(StatusCode::OK, &json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result }))
    }

    pub fn error(&self, status: StatusCode, code: i64) -> Response {
        let error = json!({ "code": code, "message": "no" });
        json_body(status, &json!({ "jsonrpc": "2.0", "id": self.body["id"], "error": error }))
    }
}

pub fn json_body(status: StatusCode, value: &Value) -> Response {
    Response::builder()
        .status(status)
        .header("content-type", "application/json; charset=utf-8")
        .body(Body::from(value.to_string()))
        .unwrap()
}

pub fn status(status: u16) -> Response {
    Response::builder().status(status).body(Body::from("a page, not a message")).unwrap()
}

/// An event stream that ends after these texts.
pub fn events(texts: &[String]) -> Response {
    Response::builder().header("content-type", "text/event-stream").body(Body::from(texts.concat())).unwrap()
}

/// An event stream fed by hand.
pub fn feed() -> (tokio::sync::mpsc::Sender<String>, Response) {
    let (sender, receiver) = tokio::sync::mpsc::channel::<String>(64);
    let stream = futures_util::stream::unfold(receiver, |mut receiver| async {
        let text = receiver.recv().await?;
        Some((Ok::<_, std::io::Error>(Bytes::from(text)), receiver))
    });
    let response = Response::builder()
        .header("content-type", "text/event-stream")
        .body(Body::from_stream(stream))
        .unwrap();
    (sender, response)
}

pub fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;
type Script = Arc<dyn Fn(Asked) -> Answering + Send + Sync>;

#[derive(Clone)]
pub struct Web {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    count: Arc<watch::Sender<usize>>,
    script: Script,
    task: Arc<Mutex<Option<tokio::task::JoinHandle<()>>>>,
}

impl Web {
    pub async fn serve<F, A>(script: F) -> Self
    where
        F: Fn(Asked) -> A + Send + Sync + 'static,
        A: Future<Output = Response> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let web = Self {
            url: format!("http://{}/mcp", listener.local_addr().unwrap()),
            asked: Arc::default(),
            count: Arc::new(watch::Sender::new(0)),
            script: Arc::new(move |asked| Box::pin(script(asked))),
            task: Arc::default(),
        };
        let router = Router::new().fallback(answer).with_state(web.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        *web.task.lock().unwrap() = Some(task);
        web
    }

    /// Takes no more connections; those that are kept open stay.
    pub async fn stop(&self) {
        let task = self.task.lock().unwrap().take().unwrap();
        task.abort();
        let _ = task.await;
    }

    pub fn asked(&self, rpc: &str) -> Vec<Asked> {
        self.asked.lock().unwrap().iter().filter(|asked| asked.rpc() == rpc).cloned().collect()
    }

    pub fn asked_by(&self, method: &Method) -> Vec<Asked> {
        self.asked.lock().unwrap().iter().filter(|asked| asked.method == *method).cloned().collect()
    }

    /// Waits until `enough` is true of what was asked.
    pub async fn until(&self, enough: impl Fn(&Self) -> bool) {
        let mut count = self.count.subscribe();
        tokio::time::timeout(std::time::Duration::from_secs(10), async {
            while !enough(self) {
                count.changed().await.unwrap();
            }
        })
        .await
        .unwrap();
    }
}

async fn answer(State(web): State<Web>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    let asked = Asked {
        method: parts.method,
        path: parts.uri.path().to_owned(),
        headers: parts.headers,
        body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
    };
    web.asked.lock().unwrap().push(asked.clone());
    web.count.send_modify(|count| *count += 1);
    (web.script)(asked).await
}

/// What a well-behaved legacy source with a session answers to greetings and lists; none: the story's own turn.
pub fn legacy(asked: &Asked, session: &str) -> Option<Response> {
    let capabilities = json!({ "tools": {}, "resources": { "subscribe": true }, "logging": {} });
    Some(match (asked.method.as_str(), asked.rpc()) {
        ("POST", "server/discover") => {
            let error = json!({ "code": -32000, "message": "Server not initialized" });
            json_body(StatusCode::BAD_REQUEST, &json!({ "jsonrpc": "2.0", "id": null, "error": error }))
        }
        ("POST", "initialize") => {
            let mut response = asked.result(&json!({
                "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": { "name": "w" },
            }));
            response.headers_mut().insert("mcp-session-id", session.parse().unwrap());
            response
        }
        ("POST", method) if method.starts_with("notifications/") => status(202),
        ("POST", "tools/list") => asked.result(&json!({ "tools": [{ "name": "t", "inputSchema": {} }] })),
        ("POST", method) if method.ends_with("/list") => {
            asked.result(&json!({ "resources": [], "resourceTemplates": [] }))
        }
        ("GET", _) => status(405),
        ("DELETE", _) => status(200),
        _ => return None,
    })
}

/// The same for a modern source.
pub fn modern(asked: &Asked) -> Option<Response> {
    Some(match (asked.method.as_str(), asked.rpc()) {
        ("POST", "server/discover") => asked.result(&json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
            "ttlMs": 0, "cacheScope": "private",
        })),
        ("POST", "tools/list") => asked.result(&json!({ "tools": [{ "name": "t", "inputSchema": {} }] })),
        ("POST", "initialize") => asked.error(StatusCode::NOT_FOUND, -32601),
        ("GET" | "DELETE", _) => status(405),
        _ => return None,
    })
}
