//! Owns every source: adds, changes and removes them without touching the others, and tells how each is doing.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::Serialize;
use tokio::time::Instant;

use crate::{
    call::Level,
    catalog::LiveCatalog,
    error::{Failure, Kind},
    id::SourceId,
    news::Newsroom,
    source::{
        ConnectMode, Dialer, Facts, Source, State,
        supervised::{Handle, Supervised},
        terms::{Awaited, Terms, Urgency, Watch},
    },
};

/// A first list waits this long for sources that are being connected; the rest follow by `list_changed`.
const LIST_WAIT: Duration = Duration::from_secs(3);
const REAP_EVERY: Duration = Duration::from_secs(5);

/// One source as the config wants it. Two specs with the same `dial_print` reach the same source the same way.
pub struct SourceSpec {
    pub terms: Terms,
    pub dialer: Arc<dyn Dialer>,
    pub dial_print: String,
}

pub struct Supervisor {
    catalog: Arc<LiveCatalog>,
    newsroom: Newsroom,
    sources: Mutex<BTreeMap<SourceId, (String, Arc<Supervised>)>>,
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
        Arc::new(Self { catalog, newsroom, sources: Mutex::new(BTreeMap::new()) })
    }

    fn all(&self) -> Vec<Arc<Supervised>> {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.values().map(|(_, source)| source.clone()).collect()
    }

    fn find(&self, id: &SourceId) -> Result<Arc<Supervised>, Failure> {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let found = sources.get(id).map(|(_, source)| source.clone());
        found.ok_or_else(|| Failure::unknown("source", id.as_str()))
    }

    /// Makes `specs` the whole set of sources. Unchanged ones keep their connection; where only the terms changed
    /// they are shown anew.
    pub async fn apply(self: &Arc<Self>, specs: Vec<SourceSpec>) {
        let mut gone = Vec::new();
        let mut fresh = Vec::new();
        {
            let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
            let mut last = std::mem::take(&mut *sources);
            for spec in specs {
                let id = spec.terms.id.clone();
                match last.remove(&id) {
                    Some((print, source))
                        if print == spec.dial_print && source.terms().enabled == spec.terms.enabled =>
                    {
                        source.amend(spec.terms);
                        sources.insert(id, (print, source));
                    }
                    replaced => {
                        gone.extend(replaced.map(|(_, source)| source));
                        let source = Supervised::new(
                            spec.terms,
                            spec.dialer,
                            self.catalog.clone(),
                            self.newsroom.clone(),
                        );
                        fresh.push(source.clone());
                        sources.insert(id, (spec.dial_print, source));
                    }
                }
            }
            gone.extend(last.into_values().map(|(_, source)| source));
        }
        for source in gone {
            source.stop(State::Stopped).await;
        }
        for source in fresh.into_iter().filter(|source| source.terms().mode == ConnectMode::Always) {
            tokio::spawn(async move { source.connect(Urgency::Supervisor).await.map(drop) });
        }
    }

    /// Runs until dropped: lets idle connections go.
    pub async fn reap(self: Arc<Self>) {
        let mut tick = tokio::time::interval(REAP_EVERY);
        loop {
            tick.tick().await;
            for source in self.all() {
                if source.is_idle() {
                    source.stop(State::Idle).await;
                }
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
        source.stop(State::Stopped).await;
        Ok(())
    }

    pub async fn restart(&self, id: &SourceId) -> Result<(), Failure> {
        let source = self.find(id)?;
        source.stop(State::Idle).await;
        source.connect(Urgency::Operator).await.map(drop)
    }

    pub async fn watch(&self, id: &SourceId, uri: &str, change: Watch) -> Result<(), Failure> {
        self.find(id)?.watch(uri, change).await
    }

    /// Somebody wants log messages from `level` on, of all sources.
    pub async fn hear(&self, level: Level) {
        for source in self.all() {
            source.hear(level).await;
        }
    }

    pub fn statuses(&self) -> Vec<Status> {
        self.all().iter().map(|source| status(source)).collect()
    }

    pub fn status(&self, id: &SourceId) -> Result<Status, Failure> {
        Ok(status(&*self.find(id)?))
    }

    /// Closes every connection, at the end.
    pub async fn close(&self) {
        let closing: Vec<_> = self
            .all()
            .into_iter()
            .map(|source| tokio::spawn(async move { source.stop(State::Stopped).await }))
            .collect();
        for one in closing {
            let _ = one.await;
        }
    }
}

fn status(source: &Supervised) -> Status {
    let terms = source.terms();
    let glance = source.glance();
    let offer = glance.offer.as_deref();
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
