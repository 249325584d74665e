//! What callers want a source to report: changes of resources, log messages. Remembered across connections and handed to
//! the present one in the order they were made.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    call::Level,
    error::{Failure, Kind},
    source::{Connection, terms::Watch},
};

/// A source that does not take a wish within this time does not take it.
const LIMIT: Duration = Duration::from_secs(10);
/// Wishes that may wait for a slow source.
const BACKLOG: usize = 256;

#[derive(Default)]
pub(super) struct Wishes {
    watched: BTreeMap<String, usize>,
    level: Option<Level>,
    applier: Option<Applier>,
}

enum Wish {
    Watch(BTreeSet<String>, oneshot::Sender<Result<(), Failure>>),
    Hear(Level),
}

/// The way to the task that hands wishes to one connection.
pub(super) struct Applier(mpsc::Sender<Wish>);

/// The source's answer to a wish.
pub(super) struct Applied(Result<oneshot::Receiver<Result<(), Failure>>, Failure>);

impl Applied {
    pub async fn done(self) -> Result<(), Failure> {
        let gone = || Failure::new(Kind::Unavailable, "the source went away before it answered");
        self.0?.await.unwrap_or_else(|_| Err(gone()))
    }
}

impl Applier {
    pub fn start(connection: &Arc<dyn Connection>, leash: CancellationToken) -> Self {
        let (sender, mut wishes) = mpsc::channel(BACKLOG);
        let connection = connection.clone();
        tokio::spawn(async move {
            let apply = async {
                while let Some(wish) = wishes.recv().await {
                    apply(&*connection, wish).await;
                }
            };
            tokio::select! {
                () = apply => {}
                () = leash.cancelled() => {}
            }
        });
        Self(sender)
    }

    fn send(&self, wish: Wish) -> Result<(), Failure> {
        let full = |_| Failure::new(Kind::Overloaded, "too many subscriptions are waiting for this source");
        self.0.try_send(wish).map_err(full)
    }
}

async fn apply(connection: &dyn Connection, wish: Wish) {
    let late = || Failure::new(Kind::Timeout, "the source did not answer to a subscription in time");
    match wish {
        Wish::Watch(uris, answer) => {
            let done = tokio::time::timeout(LIMIT, connection.watch(uris)).await;
            let _ = answer.send(done.unwrap_or_else(|_| Err(late())));
        }
        Wish::Hear(level) => {
            if let Ok(Err(failure)) = tokio::time::timeout(LIMIT, connection.hear(level)).await {
                tracing::debug!(error = %failure.told, "log level not taken");
            }
        }
    }
}

impl Wishes {
    /// A new connection is told everything that is wanted.
    pub fn connect(&mut self, applier: Applier) {
        if let Some(level) = self.level {
            let _ = applier.send(Wish::Hear(level));
        }
        if !self.watched.is_empty() {
            let (answer, _) = oneshot::channel();
            let _ = applier.send(Wish::Watch(self.set(), answer));
        }
        self.applier = Some(applier);
    }

    pub fn disconnect(&mut self) {
        self.applier = None;
    }

    pub fn any_watched(&self) -> bool {
        !self.watched.is_empty()
    }

    fn set(&self) -> BTreeSet<String> {
        self.watched.keys().cloned().collect()
    }

    /// Counts one more or one fewer; where that changes the set, the source is told.
    pub fn watch(&mut self, uri: &str, change: Watch) -> Option<Applied> {
        let before = self.watched.get(uri).copied().unwrap_or(0);
        let after = match change {
            Watch::More => before + 1,
            Watch::Fewer => before.saturating_sub(1),
        };
        match after {
            0 => self.watched.remove(uri),
            after => self.watched.insert(uri.to_owned(), after),
        };
        if (before == 0) == (after == 0) {
            return None;
        }
        let applier = self.applier.as_ref()?;
        let (answer, applied) = oneshot::channel();
        Some(Applied(applier.send(Wish::Watch(self.set(), answer)).map(|()| applied)))
    }

    /// Takes back one that the source refused.
    pub fn forget(&mut self, uri: &str) {
        match self.watched.get_mut(uri) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.watched.remove(uri)),
        }
    }

    pub fn hear(&mut self, level: Level) {
        if self.level.is_some_and(|now| now <= level) {
            return;
        }
        self.level = Some(level);
        if let Some(applier) = &self.applier {
            let _ = applier.send(Wish::Hear(level));
        }
    }
}
