//! The side that listens: one endpoint, both eras, over HTTP and stdio.
//!
//! Read `http` (`door`, then bytes become one request, the era is settled), then `modern` or `legacy`, then `dispatch` (a method
//! becomes a list or a call). Nothing here decides who may do what; that is asked of core, on every request.

pub mod http;

mod door;

mod legacy;
mod modern;

mod dispatch;

mod lists;
mod request;

mod batch;
mod underway;

mod conversation;
mod render;

mod feed;
mod listen;

mod session;
mod stream;
mod streams;
mod visit;

pub mod stdio;

use std::{
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolcrib_core::{
    caller::Callers,
    catalog::Style,
    doorway::Doorway,
    gateway::Gateway,
    raw::{self, Raw},
};

/// What every wire of this tongue serves from.
pub struct Desk {
    pub gateway: Arc<Gateway>,
    pub callers: Arc<Callers>,
    pub settings: Settings,
    /// Ends every stream when the crib closes.
    pub closing: CancellationToken,
    /// Legacy sessions open now, for the metrics.
    pub sessions: Arc<AtomicUsize>,
}

/// How this tongue behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    pub style: Style,
    pub doorway: Doorway,
    /// The longest request body and stdio line, in bytes.
    pub longest_body: usize,
    pub most_sessions: usize,
    /// A legacy session without a stream is forgotten after this time.
    pub session_idle: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            style: Style::Safe,
            doorway: Doorway::default(),
            longest_body: 4 * 1024 * 1024,
            most_sessions: 1000,
            session_idle: Duration::from_secs(30 * 60),
        }
    }
}

/// Who the crib is, on every wire.
pub fn server_info() -> Raw {
    raw::from(&json!({ "name": "toolcrib", "title": "Toolcrib", "version": env!("CARGO_PKG_VERSION") }))
}

/// What the crib can do. Fixed: it never depends on how the sources are doing.
fn capabilities() -> Raw {
    raw::from(&json!({
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "resources": { "subscribe": true, "listChanged": true },
        "logging": {},
        "completions": {},
    }))
}
