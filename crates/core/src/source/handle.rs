//! The way a call takes to a supervised source: connected first if it is not, and counted while it lasts.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::{
    call::{Events, Reply},
    error::Failure,
    policy::Permit,
    source::{Connection, Source, supervised::Supervised, terms::Urgency},
};

/// How often a call that waits for a connection says that it does.
const PULSE: Duration = Duration::from_millis(50);

pub(super) struct Handle(pub Arc<Supervised>);

struct InFlight<'a>(&'a Supervised);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Handle {
    /// Connecting has its own limit; it does not count as the source's silence.
    async fn connected(&self, events: &Events) -> Result<Arc<dyn Connection>, Failure> {
        let connecting = self.0.connect(Urgency::Caller);
        tokio::pin!(connecting);
        loop {
            tokio::select! {
                biased;
                connected = &mut connecting => {
                    events.touch();
                    return connected;
                }
                () = tokio::time::sleep(PULSE) => events.touch(),
            }
        }
    }
}

#[async_trait]
impl Source for Handle {
    async fn invoke(
        &self,
        permit: Permit,
        events: Events,
        cancel: CancellationToken,
    ) -> Result<Reply, Failure> {
        // Counted before the connection is taken, so that it is not let go in between.
        self.0.enter();
        let _used = InFlight(&self.0);
        let connection = self.connected(&events).await?;
        connection.invoke(permit, events, cancel).await
    }
}
