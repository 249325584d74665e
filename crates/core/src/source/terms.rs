//! The terms on which a source is kept: what the config says, who may want it connected, how long to wait after failures.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{catalog::offer::ShelfSettings, id::SourceId, source::ConnectMode};

const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

/// What the config says of a source, beyond how to dial it.
#[derive(Clone)]
pub struct Terms {
    pub id: SourceId,
    /// For people.
    pub title: Option<String>,
    pub description: Option<String>,
    pub enabled: bool,
    pub mode: ConnectMode,
    /// An on-demand connection unused for this long is closed.
    pub idle_after: Duration,
    /// Connecting and listing together may take this long.
    pub connect_limit: Duration,
    pub shelf: Arc<ShelfSettings>,
}

/// Who wants the connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    Caller,
    Supervisor,
    /// Also ends a backoff and a stop.
    Operator,
}

pub(super) enum Awaited {
    Settled,
    Unasked,
    /// It failed before and may be tried again; nobody should wait for that.
    Again,
    Since(Instant),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    More,
    Fewer,
}

/// 1, 2, 4 … seconds, at most a minute, a fifth more or less so that many do not come back at once.
pub(super) fn backoff(failures: u32) -> Duration {
    let plain = Duration::from_secs(1 << failures.saturating_sub(1).min(6)).min(LONGEST_BACKOFF);
    let jitter = f64::from(uuid::Uuid::now_v7().as_bytes().last().copied().unwrap_or(128)) / 255.0;
    plain.mul_f64(0.8 + 0.4 * jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_stay_within_a_minute_and_a_fifth() {
        assert!(backoff(1) <= Duration::from_millis(1200) && backoff(1) >= Duration::from_millis(800));
        assert!(backoff(4) >= Duration::from_millis(6400));
        assert!(backoff(40) <= Duration::from_secs(72));
    }
}
