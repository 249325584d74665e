//! Arguments that travel in headers too: checked from the very first call on, when the tool was never listed before.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use axum::http::StatusCode;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolcrib_core::{
    call::{Events, Level, Outcome, Reply},
    catalog::Offer,
    error::Failure,
    policy::Permit,
    raw,
    source::{Connection, Dialer, Facts, Source, Tidings},
    testing::{ScriptedSource, spec},
};

use crate::desk::{Counter, modern};

/// Offers one tool whose `region` must be repeated in a header.
struct Annotated;

#[async_trait]
impl Source for Annotated {
    async fn invoke(&self, _: Permit, _: Events, _: CancellationToken) -> Result<Reply, Failure> {
        Ok(Reply { result: raw::empty_object(), outcome: Outcome::Done })
    }
}

#[async_trait]
impl Connection for Annotated {
    fn facts(&self) -> Facts {
        Facts::default()
    }
    async fn offer(&self) -> Result<Offer, Failure> {
        let region = json!({ "type": "string", "x-mcp-header": "Region" });
        let schema = json!({ "type": "object", "properties": { "region": region } });
        let mut offer = Offer::default();
        let tool = raw::from(&json!({ "name": "deploy", "inputSchema": schema }));
        Offer::read(&mut offer.tools, "name", vec![tool], &mut offer.mishaps);
        Ok(offer)
    }
    async fn watch(&self, _: BTreeSet<String>) -> Result<(), Failure> {
        Ok(())
    }
    async fn hear(&self, _: Level) -> Result<(), Failure> {
        Ok(())
    }
    async fn lost(&self) -> String {
        std::future::pending().await
    }
    async fn close(&self) {}
}

struct Way(mpsc::Sender<mpsc::Sender<Tidings>>);

#[async_trait]
impl Dialer for Way {
    async fn dial(&self, tidings: mpsc::Sender<Tidings>) -> Result<Arc<dyn Connection>, Failure> {
        // Kept by the test: a connection whose tidings end is a lost one.
        self.0.send(tidings).await.unwrap();
        Ok(Arc::new(Annotated))
    }
    fn transport(&self) -> &'static str {
        "scripted"
    }
    fn address(&self) -> String {
        "memory".into()
    }
}

#[tokio::test]
async fn the_first_call_of_a_tool_is_checked_like_any_other() {
    let counter = Counter::new(&[]).await;
    let (keep, _kept) = mpsc::channel(8);
    let mut annotated = spec("s", &ScriptedSource::with_tools(&[]));
    annotated.dialer = Arc::new(Way(keep));
    counter.crib.gateway.supervisor().apply(vec![annotated]);
    let (headers, body) = modern("tools/call", json!({ "name": "deploy", "arguments": { "region": "eu" } }));
    let mut headers: Vec<(&str, &str)> = headers.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let told = counter.send("POST", &headers, &body).await;
    assert_eq!((told.status, told.code()), (StatusCode::BAD_REQUEST, -32020), "{}", told.body);
    headers.push(("mcp-param-region", "us"));
    assert_eq!(counter.send("POST", &headers, &body).await.code(), -32020);
    headers.pop();
    headers.push(("mcp-param-region", "eu"));
    let told = counter.send("POST", &headers, &body).await;
    assert_eq!((told.status, told.code()), (StatusCode::OK, 0), "{}", told.body);
}
