//! A crib with scripted sources behind the real router, and clients that speak to it in raw HTTP.

use std::{
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, Request, StatusCode},
};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolcrib_core::{
    caller::{Caller, Callers, Roll},
    catalog::offer::ShelfSettings,
    policy::Access,
    testing::{ScriptedSource, TestCrib},
};
use toolcrib_mcp::serve::{Desk, Settings, http};
use tower::ServiceExt;

pub const MODERN: &str = "2026-07-28";

pub struct Counter {
    pub crib: TestCrib,
    pub desk: Arc<Desk>,
    router: Router,
}

pub struct Told {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

impl Told {
    /// The body as JSON, or the last event of the stream.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| self.events().pop().unwrap_or_default())
    }

    /// The data of each event of the stream.
    pub fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|text| serde_json::from_str(text).unwrap()).collect()
    }

    pub fn code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().unwrap_or_default()
    }
}

impl Counter {
    pub async fn new(sources: &[(&str, Arc<ScriptedSource>)]) -> Self {
        Self::with(sources, Roll::open(Caller::local(Access::everything())), Settings::default()).await
    }

    pub async fn with(sources: &[(&str, Arc<ScriptedSource>)], roll: Roll, settings: Settings) -> Self {
        let crib = TestCrib::new(sources).await;
        let desk = Arc::new(Desk {
            gateway: crib.gateway.clone(),
            callers: Arc::new(Callers::new(roll)),
            settings,
            closing: CancellationToken::new(),
            sessions: Arc::new(AtomicUsize::new(0)),
        });
        let router = http::router(desk.clone());
        Self { crib, desk, router }
    }

    pub async fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Told {
        let response = self.open(method, headers, body).await;
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Told { status: head.status, headers: head.headers, body: String::from_utf8(bytes.to_vec()).unwrap() }
    }

    /// The response with its body unread.
    pub async fn open(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> axum::http::Response<Body> {
        let mut request = Request::builder().method(method).uri("/mcp");
        let defaults = [("host", "127.0.0.1:8081"), ("content-type", "application/json")];
        for (name, value) in defaults.iter().chain(headers) {
            if defaults.iter().any(|(d, _)| d == name) {
                request.headers_mut().unwrap().remove(*name);
            }
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// A modern request with every header it needs.
    pub async fn modern(&self, method: &str, params: Value) -> Told {
        let (headers, body) = modern(method, params);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        self.send("POST", &headers, &body).await
    }

    /// Opens a legacy session and gives its id.
    pub async fn session(&self, version: &str) -> String {
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let told = self.send("POST", &[], &body.to_string()).await;
        assert_eq!(told.status, StatusCode::OK, "{}", told.body);
        told.headers["mcp-session-id"].to_str().unwrap().to_owned()
    }

    pub async fn legacy(&self, session: &str, id: u64, method: &str, params: Value) -> Told {
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send("POST", &[("mcp-session-id", session)], &body.to_string()).await
    }
}

/// The headers and the body of a modern request.
pub fn modern(method: &str, mut params: Value) -> (Vec<(String, String)>, String) {
    let mut headers = vec![
        ("mcp-protocol-version".to_owned(), MODERN.to_owned()),
        ("mcp-method".to_owned(), method.to_owned()),
    ];
    if let Some(name) = params.get("name").or(params.get("uri")).and_then(Value::as_str) {
        headers.push(("mcp-name".to_owned(), name.to_owned()));
    }
    let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
    meta["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    (headers, json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string())
}

pub fn sources() -> Vec<(&'static str, Arc<ScriptedSource>)> {
    vec![("s", ScriptedSource::with_tools(&["echo", "hang", "chatty", "fail"]))]
}

/// Puts a source in place that may be silent for an hour.
pub fn patient(counter: &Counter, source: &Arc<ScriptedSource>) {
    let mut spec = toolcrib_core::testing::spec("s", source);
    spec.terms.shelf =
        Arc::new(ShelfSettings { patience: Duration::from_secs(3600), ..ShelfSettings::default() });
    counter.crib.gateway.supervisor().apply(vec![spec]);
}
