//! The port to distributed tracing: one span a call, tied to the caller's trace and handed on to the source.
//!
//! Without a tracer a trace context that comes in goes out unchanged.

use crate::{
    call::Carry,
    ledger::{Closing, Opening},
    raw,
};

/// The members of a request's metadata that carry a W3C trace context.
pub const TRACEPARENT: &str = "traceparent";
pub const TRACESTATE: &str = "tracestate";

pub trait Tracer: Send + Sync {
    /// Begins the span of a call; `parent` is the `traceparent` that came with it.
    fn begin(&self, opening: &Opening, parent: Option<&str>) -> Box<dyn Span>;
}

pub trait Span: Send {
    /// The `traceparent` the source is given.
    fn traceparent(&self) -> String;

    fn end(self: Box<Self>, closing: &Closing);
}

/// The trace context a call came with.
pub fn parent(carry: &Carry) -> Option<String> {
    carry.meta.iter().find(|(key, _)| key == TRACEPARENT).and_then(|(_, value)| raw::text(value))
}

/// Makes `traceparent` the context the call goes on with.
pub fn hand_on(carry: &mut Carry, traceparent: &str) {
    carry.meta.retain(|(key, _)| key != TRACEPARENT);
    carry.meta.push((TRACEPARENT.to_owned(), raw::from(traceparent)));
}
