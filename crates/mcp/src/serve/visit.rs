//! One client on one wire: who it is, which era it speaks, and, in the legacy era, what it has set for its stay.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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

/// A resource where it is: its source, and the source's own URI.
type Place = (SourceId, String);

/// A legacy client's stay: a session over HTTP, or the life of a pipe.
pub struct Visit {
    pub who: Who,
    pub version: Version,
    gateway: Arc<Gateway>,
    log: Mutex<Level>,
    /// Watched resources: where they are, and how this client spells them.
    watched: Mutex<HashMap<Place, String>>,
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

    fn watched(&self) -> MutexGuard<'_, HashMap<Place, String>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn place(&self, caller: &Caller, uri: &str) -> Result<Place, Failure> {
        let item = self.gateway.find(&Target::Resource(uri.to_owned()), caller).await?;
        Ok((item.source, item.own.to_string()))
    }

    /// Watches a resource this caller may see. One that its source refuses is not watched.
    pub async fn watch(&self, caller: &Caller, uri: &str) -> Result<(), Failure> {
        let place = self.place(caller, uri).await?;
        {
            let watched = self.watched();
            if watched.contains_key(&place) {
                return Ok(());
            }
            if watched.len() >= MOST_WATCHED {
                let told = format!("at most {MOST_WATCHED} resources can be watched at once");
                return Err(Failure::new(Kind::Overloaded, told));
            }
        }
        let supervisor = self.gateway.supervisor();
        supervisor.watch(&place.0, &place.1, Watch::More).await?;
        if !self.keep(place.clone(), uri) {
            supervisor.watch(&place.0, &place.1, Watch::Fewer).await?;
        }
        Ok(())
    }

    /// Whether it was not kept already, and the stay is not over meanwhile.
    fn keep(&self, place: Place, uri: &str) -> bool {
        let mut watched = self.watched();
        !self.closed.is_cancelled() && watched.insert(place, uri.to_owned()).is_none()
    }

    /// Stops watching, also what this caller may no longer see.
    pub async fn unwatch(&self, caller: &Caller, uri: &str) -> Result<(), Failure> {
        let known = self.watched().iter().find(|(_, spelt)| *spelt == uri).map(|(place, _)| place.clone());
        let place = match known {
            Some(place) => place,
            None => self.place(caller, uri).await?,
        };
        if self.watched().remove(&place).is_some() {
            self.gateway.supervisor().watch(&place.0, &place.1, Watch::Fewer).await?;
        }
        Ok(())
    }

    /// How this client spells a resource it watches.
    pub fn spelling(&self, source: &SourceId, own: &str) -> Option<String> {
        self.watched().get(&(source.clone(), own.to_owned())).cloned()
    }

    /// The stay is over: nothing is watched for it any more.
    pub fn end(&self) {
        self.closed.cancel();
        let watched = std::mem::take(&mut *self.watched());
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
