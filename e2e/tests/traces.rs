//! A trace goes through the crib: the caller's context comes in, the source gets the crib's, a collector gets the span.
#![allow(clippy::unwrap_used)]
#![allow(
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that finds nothing where it looks has to fail"
)]

use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::{Router, body::Bytes, routing::post};
use e2e::{crib::Crib, upstream::Fixture, wire::modern_meta};
use serde_json::{Value, json};
use tokio::sync::mpsc;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// What the fixture saw of a call that came with a trace context in `_meta`.
async fn seen(crib: &Crib) -> Result<Value> {
    let mut meta = modern_meta();
    meta["traceparent"] = json!(format!("00-{TRACE}-{SPAN}-01"));
    let params = json!({ "name": "fx__whoami", "arguments": {}, "_meta": meta });
    let result = crib.ask("tools/call", params).await?;
    let text = result["content"][0]["text"].as_str().context("no text")?;
    Ok(serde_json::from_str(text)?)
}

#[tokio::test]
async fn without_a_collector_the_context_passes_unchanged() -> Result<()> {
    let fixture = Fixture::http().await?;
    let crib = Crib::serve(&format!("servers: {{ fx: {{ url: {:?} }} }}", fixture.url)).await?;
    let seen = seen(&crib).await?;
    let expected = format!("00-{TRACE}-{SPAN}-01");
    assert_eq!(seen["meta"]["traceparent"], expected, "{seen}");
    assert_eq!(seen["headers"]["traceparent"], expected, "{seen}");
    Ok(())
}

#[tokio::test]
async fn a_collector_gets_the_span_and_the_source_gets_its_context() -> Result<()> {
    let (sender, mut exports) = mpsc::channel::<Bytes>(8);
    let collector = Router::new().route(
        "/v1/traces",
        post(move |body: Bytes| async move {
            sender.send(body).await.ok();
        }),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, collector).await });

    let fixture = Fixture::http().await?;
    let config =
        format!("telemetry: {{ otlp: 'http://{address}' }}\nservers: {{ fx: {{ url: {:?} }} }}", fixture.url);
    let crib = Crib::serve(&config).await?;
    let seen = seen(&crib).await?;
    let handed_on = seen["meta"]["traceparent"].as_str().context("no context")?;
    assert!(handed_on.starts_with(&format!("00-{TRACE}-")), "the same trace: {handed_on}");
    assert!(!handed_on.contains(SPAN), "another span: {handed_on}");

    // The exporter gathers spans; stopping the crib flushes them.
    assert!(crib.stop().await?.success());
    let export =
        tokio::time::timeout(Duration::from_secs(10), exports.recv()).await?.context("nothing came")?;
    let has = |text: &str| export.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("tool fx__whoami") && has("toolcrib.outcome") && has("done"));
    let trace: Vec<u8> =
        (0..32).step_by(2).map(|at| u8::from_str_radix(&TRACE[at..at + 2], 16).unwrap()).collect();
    assert!(export.windows(16).any(|window| window == trace), "the span belongs to the caller's trace");
    Ok(())
}
