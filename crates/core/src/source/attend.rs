//! The task that lives as long as one connection: it hears what the source says unasked, and notices its loss.

use std::{sync::Arc, time::Duration};

use tokio::{sync::mpsc, task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    news::News,
    source::{
        Connection, Tidings,
        supervised::{Life, Supervised},
    },
};

/// A source whose lists change all the time is asked for them this often at most.
const RELIST_EVERY: Duration = Duration::from_secs(1);

pub(super) async fn attend(
    source: Arc<Supervised>,
    life: Life,
    connection: Arc<dyn Connection>,
    mut tidings: mpsc::Receiver<Tidings>,
    leash: CancellationToken,
) {
    let mut relisting: Option<JoinHandle<()>> = None;
    let mut relist_at: Option<Instant> = None;
    let mut relisted_at = Instant::now().checked_sub(RELIST_EVERY);
    let why = loop {
        let due = relist_at.unwrap_or_else(Instant::now);
        tokio::select! {
            () = leash.cancelled() => return,
            why = connection.lost() => break why,
            () = tokio::time::sleep_until(due), if relist_at.is_some() => {
                if relisting.as_ref().is_some_and(|task| !task.is_finished()) {
                    relist_at = Some(Instant::now() + RELIST_EVERY);
                    continue;
                }
                relist_at = None;
                relisted_at = Some(Instant::now());
                relisting = Some(tokio::spawn(relist(source.clone(), life, connection.clone())));
            }
            said = tidings.recv() => match said {
                Some(Tidings::ListChanged(_)) => {
                    let soonest = relisted_at.map_or_else(Instant::now, |last| last + RELIST_EVERY);
                    relist_at = relist_at.or(Some(soonest.max(Instant::now())));
                }
                Some(said) => pass_on(&source, said),
                None => break connection.lost().await,
            },
        }
    };
    // First it is known to be gone, then it is cleared away: a call that comes meanwhile connects anew.
    source.lost(life, &why);
    connection.close().await;
}

async fn relist(source: Arc<Supervised>, life: Life, connection: Arc<dyn Connection>) {
    let terms = source.terms();
    match tokio::time::timeout(terms.connect_limit, connection.offer()).await {
        Ok(Ok(offer)) => source.relisted(life, offer),
        Ok(Err(failure)) => {
            tracing::warn!(source = %terms.id, error = %failure.told, "its lists changed but cannot be read");
        }
        Err(_) => tracing::warn!(source = %terms.id, "its lists changed but did not arrive in time"),
    }
}

fn pass_on(supervised: &Supervised, said: Tidings) {
    let source = supervised.terms().id;
    supervised.newsroom.tell(match said {
        Tidings::ListChanged(_) => return,
        Tidings::ResourceUpdated { uri, message } => News::Resource { source, uri, message },
        Tidings::Log { level, message } => News::Log { source, level, message },
        Tidings::Notice { method, params } => News::Notice { source, method, params },
    });
}
