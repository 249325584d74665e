//! The REST tongue: the admin API ([`admin_router`]) and the tools of the catalog as plain HTTP ([`tools_router`]).
//!
//! It makes routers and never listens: whoever assembles the crib binds the ports. Everything asked here goes through
//! `core`, by the same gateway and policy as MCP. Arguments and results are never logged. Read `guard` and `door` for
//! who gets in, `admin` and `tools` for what is there.

mod guard;

mod door;

mod admin;
mod tools;

mod ask;
mod refusal;

use std::{sync::Arc, time::Instant};

use tokio_util::sync::CancellationToken;
use toolcrib_core::{caller::Callers, catalog::Style, doorway::Doorway, gateway::Gateway};

pub use admin::admin_router;
pub use tools::tools_router;

/// The longest request body, unless told otherwise.
pub const LARGEST_BODY: usize = 4 * 1024 * 1024;

/// Tells how many there are of something the crib counts elsewhere.
pub type Count = Arc<dyn Fn() -> usize + Send + Sync>;

/// What a router stands on. Each listener has its own; only the parts are the same.
#[derive(Clone)]
pub struct Desk {
    pub gateway: Arc<Gateway>,
    pub callers: Arc<Callers>,
    /// Which hosts and origins may knock.
    pub doorway: Arc<Doorway>,
    /// How tools are spelt in `GET /tools`.
    pub names: Style,
    /// Bytes a request body may have.
    pub largest_body: usize,
    /// The version of the crib.
    pub version: &'static str,
    /// Open MCP sessions, where somebody counts them.
    pub sessions: Option<Count>,
    pub began: Instant,
    /// Cancelled when the crib starts to shut down: it is no longer ready, and event streams end.
    pub closing: CancellationToken,
}

impl Desk {
    /// Loopback only, default limits.
    pub fn new(gateway: Arc<Gateway>, callers: Arc<Callers>) -> Self {
        Self {
            gateway,
            callers,
            doorway: Arc::default(),
            names: Style::Safe,
            largest_body: LARGEST_BODY,
            version: env!("CARGO_PKG_VERSION"),
            sessions: None,
            began: Instant::now(),
            closing: CancellationToken::new(),
        }
    }
}
