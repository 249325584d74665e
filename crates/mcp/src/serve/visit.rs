//! One client on one wire: who it is, which era it speaks, and, in the legacy era, what it has set for its stay.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio_util::sync::CancellationToken;
use toolcrib_core::{
    call::{Level, Surface, Target},
    caller::{Caller, Callers},
    catalog::Style,
    error::{Failure, Kind},
    gateway::Gateway,
    id::{CallerId, SourceId},
    source::terms::Watch,
};

use crate::version::{Era, Version};

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

/// Somebody at the counter, looked up anew each time: one whose config changed is judged by the new one, one that was
/// removed is gone.
#[derive(Clone)]
pub struct Who {
    callers: Arc<Callers>,
    pub id: CallerId,
    surface: Surface,
    style: Style,
}

impl Who {
    pub fn new(callers: &Arc<Callers>, asker: &Asker) -> Self {
        let Asker { caller, surface, style, .. } = asker;
        Self { callers: callers.clone(), id: caller.id.clone(), surface: *surface, style: *style }
    }

    pub fn asker(&self, era: Era) -> Option<Asker> {
        let caller = match self.surface {
            Surface::McpStdio => self.callers.local(),
            Surface::McpHttp | Surface::Rest | Surface::Cli => self.callers.current(&self.id)?,
        };
        Some(Asker { caller, surface: self.surface, era, style: self.style })
    }
}

/// A legacy client's stay: a session over HTTP, or the life of a pipe.
pub struct Visit {
    pub who: Who,
    pub version: Version,
    gateway: Arc<Gateway>,
    log: Mutex<Level>,
    /// Watched resources: where they are, and how this client spells them.
    watched: Mutex<HashMap<(SourceId, String), String>>,
    pub closed: CancellationToken,
}

impl Visit {
    pub fn new(who: Who, version: Version, gateway: Arc<Gateway>) -> Self {
        Self {
            who,
            version,
            gateway,
            log: Mutex::new(Level::Info),
            watched: Mutex::default(),
            closed: CancellationToken::new(),
        }
    }

    /// Who is here, as known now; none once the caller was removed.
    pub fn asker(&self) -> Option<Asker> {
        self.who.asker(Era::Legacy)
    }

    pub fn log(&self) -> Level {
        *self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_log(&self, level: Level) {
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = level;
    }

    /// Starts or stops watching a resource this caller may see.
    pub async fn watch(&self, caller: &Caller, uri: &str, change: Watch) -> Result<(), Failure> {
        let gateway = &self.gateway;
        let target = Target::Resource(uri.to_owned());
        let item = gateway.catalog().snapshot().find(&target, caller, gateway.policy())?;
        let place = (item.source.clone(), item.own.to_string());
        let changed = {
            let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
            match change {
                Watch::More if watched.len() >= MOST_WATCHED => {
                    return Err(Failure::new(
                        Kind::Overloaded,
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
