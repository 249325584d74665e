//! Logs to standard error (text for people, JSON otherwise) and, where the config names a collector, one span a call
//! over OTLP. Arguments, results and secrets are in neither.

use std::{
    io::IsTerminal,
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::Context as _;
use opentelemetry::{
    Context, KeyValue,
    trace::{
        Span as _, SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags, TraceId, TraceState,
        Tracer as _, TracerProvider as _,
    },
};
use opentelemetry_otlp::{Protocol, WithExportConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use toolcrib_core::{
    ledger::{Closing, Ending, Opening},
    trace::{Span, Tracer},
};
use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};

/// Keeps the exporter alive; flushed at the end.
pub struct Telemetry {
    provider: Option<SdkTracerProvider>,
}

/// Once per process. A second start leaves the first one's log in place.
pub fn start(config: &Config) -> anyhow::Result<Telemetry> {
    let filter = EnvFilter::try_new(&config.log.level)
        .with_context(|| format!("`log.level` is `{}`, which is not a filter", config.log.level))?;
    let text = match config.log.format {
        LogFormat::Text => true,
        LogFormat::Json => false,
        LogFormat::Auto => std::io::stderr().is_terminal(),
    };
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let _ = if text {
        log.with_ansi(std::io::stderr().is_terminal()).with_target(false).try_init()
    } else {
        log.json().flatten_event(true).try_init()
    };
    let provider = config.telemetry.otlp.as_deref().map(provider).transpose()?;
    Ok(Telemetry { provider })
}

fn provider(endpoint: &str) -> anyhow::Result<SdkTracerProvider> {
    // The exporter's client takes the process's provider of cryptography; one that was chosen before is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
    // The exporter's HTTP client is a blocking one and must not be made on a runtime thread.
    let made = std::thread::spawn(move || {
        opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(url)
            .with_timeout(Duration::from_secs(5))
            .build()
            .map(|exporter| {
                SdkTracerProvider::builder()
                    .with_batch_exporter(exporter)
                    .with_resource(Resource::builder().with_service_name("toolcrib").build())
                    .build()
            })
    });
    match made.join() {
        Ok(provider) => provider.context("`telemetry.otlp` cannot be used"),
        Err(_) => anyhow::bail!("`telemetry.otlp` cannot be used: the exporter did not start"),
    }
}

impl Telemetry {
    pub fn tracer(&self) -> Option<Arc<dyn Tracer>> {
        let provider = self.provider.as_ref()?;
        Some(Arc::new(OtelTracer(provider.tracer("toolcrib"))))
    }

    pub async fn flush(self) {
        if let Some(provider) = self.provider {
            let done = tokio::task::spawn_blocking(move || provider.shutdown());
            if let Ok(Ok(Err(error))) = tokio::time::timeout(Duration::from_secs(5), done).await {
                tracing::warn!(%error, "the last spans could not be sent");
            }
        }
    }
}

struct OtelTracer(opentelemetry_sdk::trace::SdkTracer);

impl Tracer for OtelTracer {
    fn begin(&self, opening: &Opening, parent: Option<&str>) -> Box<dyn Span> {
        let around = match parent.and_then(context_of) {
            Some(context) => Context::new().with_remote_span_context(context),
            None => Context::new(),
        };
        let builder = self
            .0
            .span_builder(format!("{} {}", opening.kind, opening.target))
            .with_kind(SpanKind::Server)
            .with_attributes([
                KeyValue::new("toolcrib.call", opening.call.to_string()),
                KeyValue::new("toolcrib.caller", opening.caller.to_string()),
                KeyValue::new("toolcrib.surface", opening.surface.word()),
            ]);
        Box::new(OtelSpan(builder.start_with_context(&self.0, &around)))
    }
}

struct OtelSpan(opentelemetry_sdk::trace::Span);

impl Span for OtelSpan {
    fn traceparent(&self) -> String {
        let context = self.0.span_context();
        format!("00-{}-{}-{:02x}", context.trace_id(), context.span_id(), context.trace_flags().to_u8())
    }

    fn end(mut self: Box<Self>, closing: &Closing) {
        self.0.set_attribute(KeyValue::new("toolcrib.outcome", closing.ending.word()));
        if let Some(item) = &closing.item {
            self.0.set_attribute(KeyValue::new("toolcrib.item", item.clone()));
        }
        match closing.ending {
            Ending::Ran(_) => self.0.set_status(Status::Ok),
            Ending::Denied | Ending::Failed(_) => self.0.set_status(Status::error(closing.ending.word())),
        }
        self.0.end_with_timestamp(SystemTime::now());
    }
}

/// `00-<32 hex>-<16 hex>-<2 hex>`; anything else counts as none.
fn context_of(traceparent: &str) -> Option<SpanContext> {
    let mut parts = traceparent.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    if version.len() != 2 || version == "ff" {
        return None;
    }
    let context = SpanContext::new(
        TraceId::from_hex(trace).ok()?,
        SpanId::from_hex(span).ok()?,
        TraceFlags::new(u8::from_str_radix(flags, 16).ok()?),
        true,
        TraceState::default(),
    );
    context.is_valid().then_some(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_context_is_read_or_ignored() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(context_of(good).unwrap().span_id().to_string(), "00f067aa0ba902b7");
        for bad in ["", "00-0-0-0", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "junk"] {
            assert!(context_of(bad).is_none(), "{bad}");
        }
    }
}
