//! Owns every source: adds, changes and removes them without touching the others, and tells how each is doing.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::Serialize;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::{
    call::Level,
    catalog::LiveCatalog,
    error::{Failure, Kind},
    id::SourceId,
    news::Newsroom,
    source::{
        ConnectMode, Dialer, Facts, Source, State,
        handle::Handle,
        supervised::Supervised,
        terms::{Awaited, Terms, Urgency, Watch},
        wishes::Wishes,
    },
};

/// A first list waits this long for sources that are being connected; the rest follow by `list_changed`.
const LIST_WAIT: Duration = Duration::from_secs(3);
const REAP_EVERY: Duration = Duration::from_secs(5);

/// One source as the config wants it.
pub struct SourceSpec {
    pub terms: Terms,
    pub dialer: Arc<dyn Dialer>,
    /// Two specs with the same print reach the same source the same way.
    pub dial_print: String,
    /// Two specs with the same print have the same terms.
    pub terms_print: String,
}

struct Place {
    source: Arc<Supervised>,
    dial_print: String,
    terms_print: String,
}

impl Place {
    fn reaches_like(&self, spec: &SourceSpec) -> bool {
        self.dial_print == spec.dial_print && self.source.terms().enabled == spec.terms.enabled
    }
}

pub struct Supervisor {
    catalog: Arc<LiveCatalog>,
    newsroom: Newsroom,
    sources: Mutex<BTreeMap<SourceId, Place>>,
    /// Connections on their way out.
    closing: TaskTracker,
}

/// How one source is doing.
#[derive(Debug, Serialize)]
pub struct Status {
    pub id: SourceId,
    pub name: Option<String>,
    pub description: Option<String>,
    pub transport: &'static str,
    pub address: String,
    pub enabled: bool,
    pub connect: ConnectMode,
    pub state: State,
    pub last_error: Option<String>,
    pub tools: Option<usize>,
    pub prompts: Option<usize>,
    pub resources: Option<usize>,
    pub in_flight: usize,
    #[serde(flatten)]
    pub facts: Facts,
    pub warnings: Vec<String>,
}

impl Supervisor {
    pub fn new(catalog: Arc<LiveCatalog>, newsroom: Newsroom) -> Arc<Self> {
        let sources = Mutex::new(BTreeMap::new());
        Arc::new(Self { catalog, newsroom, sources, closing: TaskTracker::new() })
    }

    fn all(&self) -> Vec<Arc<Supervised>> {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.values().map(|place| place.source.clone()).collect()
    }

    fn find(&self, id: &SourceId) -> Result<Arc<Supervised>, Failure> {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let found = sources.get(id).map(|place| place.source.clone());
        found.ok_or_else(|| Failure::unknown("source", id.as_str()))
    }

    /// Makes `specs` the whole set of sources. Unchanged ones are not touched; where only the terms changed they are
    /// shown anew; the others are taken off at once and closed in their own time.
    pub fn apply(self: &Arc<Self>, specs: Vec<SourceSpec>) {
        let mut fresh = Vec::new();
        {
            let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
            let mut last = std::mem::take(&mut *sources);
            for spec in specs {
                let id = spec.terms.id.clone();
                let place = match last.remove(&id) {
                    Some(place) if place.reaches_like(&spec) => {
                        if place.terms_print != spec.terms_print {
                            place.source.amend(spec.terms);
                        }
                        Place { terms_print: spec.terms_print, ..place }
                    }
                    replaced => {
                        let wishes = replaced.map(|place| self.clear(&place));
                        let (catalog, newsroom) = (self.catalog.clone(), self.newsroom.clone());
                        let source = Supervised::new(spec.terms, spec.dialer, catalog, newsroom);
                        if let Some(wishes) = wishes {
                            source.inherit(wishes);
                        }
                        fresh.push(source.clone());
                        Place { dial_print: spec.dial_print, terms_print: spec.terms_print, source }
                    }
                };
                sources.insert(id, place);
            }
            last.values().for_each(|place| drop(self.clear(place)));
        }
        for source in fresh.into_iter().filter(|source| source.terms().mode == ConnectMode::Always) {
            tokio::spawn(async move { source.connect(Urgency::Supervisor).await.map(drop) });
        }
    }

    fn clear(&self, place: &Place) -> Wishes {
        let (connection, wishes) = place.source.remove();
        if let Some(connection) = connection {
            self.closing.spawn(async move { connection.close().await });
        }
        wishes
    }

    /// Runs until dropped: lets idle connections go.
    pub async fn reap(self: Arc<Self>) {
        let mut tick = tokio::time::interval(REAP_EVERY);
        loop {
            tick.tick().await;
            for connection in self.all().iter().filter_map(|source| source.rest_if_idle()) {
                self.closing.spawn(async move { connection.close().await });
            }
        }
    }

    /// Waits, briefly, until every source was asked once what it offers. Sources that need longer never hold up a list
    /// more than once.
    pub async fn ensure_known(&self) {
        loop {
            let now = Instant::now();
            let mut waits = Vec::new();
            for source in self.all() {
                let began = match source.awaited() {
                    Awaited::Settled => continue,
                    Awaited::Unasked => now,
                    Awaited::Again => {
                        tokio::spawn(async move { source.connect(Urgency::Caller).await.map(drop) });
                        continue;
                    }
                    Awaited::Since(began) => began,
                };
                if began + LIST_WAIT > now {
                    waits.push((source, began + LIST_WAIT));
                }
            }
            if waits.is_empty() {
                return;
            }
            let attempts: Vec<_> = waits
                .into_iter()
                .map(|(source, deadline)| {
                    tokio::spawn(async move {
                        let _ = tokio::time::timeout_at(deadline, source.connect(Urgency::Caller)).await;
                    })
                })
                .collect();
            for attempt in attempts {
                let _ = attempt.await;
            }
        }
    }

    pub fn source(&self, id: &SourceId) -> Result<Arc<dyn Source>, Failure> {
        Ok(Arc::new(Handle(self.find(id)?)))
    }

    pub async fn connect(&self, id: &SourceId) -> Result<(), Failure> {
        self.find(id)?.connect(Urgency::Operator).await.map(drop)
    }

    pub async fn disconnect(&self, id: &SourceId) -> Result<(), Failure> {
        let source = self.find(id)?;
        if !source.terms().enabled {
            return Err(Failure::new(Kind::Unavailable, format!("source `{id}` is disabled in the config")));
        }
        if let Some(connection) = source.retire(State::Stopped) {
            connection.close().await;
        }
        Ok(())
    }

    pub async fn restart(&self, id: &SourceId) -> Result<(), Failure> {
        let source = self.find(id)?;
        if !source.terms().enabled {
            return Err(Failure::new(Kind::Unavailable, format!("source `{id}` is disabled in the config")));
        }
        if let Some(connection) = source.retire(State::Idle) {
            connection.close().await;
        }
        source.connect(Urgency::Operator).await.map(drop)
    }

    pub async fn watch(&self, id: &SourceId, uri: &str, change: Watch) -> Result<(), Failure> {
        self.find(id)?.watch(uri, change).await
    }

    /// Somebody wants log messages from `level` on, of all sources.
    pub fn hear(&self, level: Level) {
        self.all().iter().for_each(|source| source.hear(level));
    }

    pub fn statuses(&self) -> Vec<Status> {
        self.all().iter().map(|source| status(source)).collect()
    }

    pub fn status(&self, id: &SourceId) -> Result<Status, Failure> {
        Ok(status(&*self.find(id)?))
    }

    /// Closes every connection, at the end.
    pub async fn close(&self) {
        for connection in self.all().iter().filter_map(|source| source.remove().0) {
            self.closing.spawn(async move { connection.close().await });
        }
        self.closing.close();
        self.closing.wait().await;
    }
}

fn status(source: &Supervised) -> Status {
    let glance = source.glance();
    let (terms, offer) = (glance.terms, glance.offer.as_deref());
    Status {
        id: terms.id,
        name: terms.title,
        description: terms.description,
        transport: source.dialer.transport(),
        address: source.dialer.address(),
        enabled: terms.enabled,
        connect: terms.mode,
        state: glance.state,
        last_error: glance.last_error,
        tools: offer.map(|offer| offer.tools.len()),
        prompts: offer.map(|offer| offer.prompts.len()),
        resources: offer.map(|offer| offer.resources.len()),
        in_flight: glance.in_flight,
        facts: glance.facts,
        warnings: offer.map(|offer| offer.mishaps.clone()).unwrap_or_default(),
    }
}
