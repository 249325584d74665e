//! One client on one wire: who it is, which era it speaks, and, in the legacy era, what it has set for its stay.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio_util::sync::CancellationToken;
use toolcrib_core::{
    call::{Level, Surface, Target},
    caller::Caller,
    catalog::Style,
    error::Failure,
    gateway::Gateway,
    id::SourceId,
    source::terms::Watch,
};

use crate::{
    version::{Era, Version},
    wire::Id,
};

/// Most resources one client may watch.
const MOST_WATCHED: usize = 1000;

/// Who asks, and how its answers are spelt. Cheap to clone.
#[derive(Clone)]
pub struct Asker {
    pub caller: Arc<Caller>,
    pub surface: Surface,
    pub era: Era,
    pub style: Style,
}

/// A legacy client's stay: a session over HTTP, or the life of a pipe.
pub struct Visit {
    pub asker: Asker,
    pub version: Version,
    gateway: Arc<Gateway>,
    log: Mutex<Level>,
    running: Mutex<HashMap<Id, CancellationToken>>,
    /// Watched resources: where they are, and how this client spells them.
    watched: Mutex<HashMap<(SourceId, String), String>>,
    pub closed: CancellationToken,
}

impl Visit {
    pub fn new(asker: Asker, version: Version, gateway: Arc<Gateway>) -> Self {
        Self {
            asker,
            version,
            gateway,
            log: Mutex::new(Level::Info),
            running: Mutex::default(),
            watched: Mutex::default(),
            closed: CancellationToken::new(),
        }
    }

    pub fn log(&self) -> Level {
        *self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_log(&self, level: Level) {
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = level;
    }

    /// Remembers how to cancel a request while the guard lives.
    pub fn track(self: &Arc<Self>, id: &Id, cancel: CancellationToken) -> Tracked {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), cancel);
        Tracked { id: id.clone(), visit: self.clone() }
    }

    pub fn cancel(&self, id: &Id) {
        if let Some(cancel) = self.running.lock().unwrap_or_else(PoisonError::into_inner).get(id) {
            cancel.cancel();
        }
    }

    /// Starts or stops watching a resource this caller may see.
    pub async fn watch(&self, uri: &str, change: Watch) -> Result<(), Failure> {
        let gateway = &self.gateway;
        let item = gateway.catalog().snapshot().find(
            &Target::Resource(uri.to_owned()),
            &self.asker.caller,
            gateway.policy(),
        )?;
        let place = (item.source.clone(), item.own.to_string());
        let changed = {
            let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
            match change {
                Watch::More if watched.len() >= MOST_WATCHED => {
                    return Err(Failure::new(
                        toolcrib_core::error::Kind::Overloaded,
                        format!("at most {MOST_WATCHED} resources can be watched at once"),
                    ));
                }
                Watch::More => watched.insert(place.clone(), uri.to_owned()).is_none(),
                Watch::Fewer => watched.remove(&place).is_some(),
            }
        };
        if changed { gateway.supervisor().watch(&item.source, &item.own, change).await } else { Ok(()) }
    }

    /// How this client spells a resource it watches.
    pub fn spelling(&self, source: &SourceId, own: &str) -> Option<String> {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.get(&(source.clone(), own.to_owned())).cloned()
    }

    /// The stay is over: nothing is watched for it any more.
    pub fn end(&self) {
        self.closed.cancel();
        let watched = std::mem::take(&mut *self.watched.lock().unwrap_or_else(PoisonError::into_inner));
        if watched.is_empty() {
            return;
        }
        let gateway = self.gateway.clone();
        tokio::spawn(async move {
            for (source, own) in watched.into_keys() {
                let _ = gateway.supervisor().watch(&source, &own, Watch::Fewer).await;
            }
        });
    }
}

pub struct Tracked {
    id: Id,
    visit: Arc<Visit>,
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.visit.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}
