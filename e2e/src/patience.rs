//! Waiting for something to become true, without guessing how long it takes.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Between two looks; short beside anything a test waits for.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks again and again until `look` finds something, and gives that. After `within` it is an error that says `what`
/// was waited for.
pub async fn eventually<T>(
    what: &str,
    within: Duration,
    mut look: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + within;
    let mut looks = interval(PAUSE);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if Instant::now() > deadline {
            bail!("waited {within:?} for {what}");
        }
    }
}
