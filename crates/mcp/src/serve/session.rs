//! Legacy sessions over HTTP: opened by `initialize`, bound to their caller, forgotten when idle, never more than the
//! cap. Most clients never say goodbye, so nothing here relies on it.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;
use toolcrib_core::{gateway::Gateway, id::CallerId};

use crate::{
    serve::{feed, streams::Streams, underway::UnderWay, visit::Visit},
    wire,
};

/// A full house lets in a newcomer when a guest was silent for this long.
const SILENT: Duration = Duration::from_secs(60);
const REAP_EVERY: Duration = Duration::from_secs(10);

pub struct Session {
    pub id: String,
    pub visit: Arc<Visit>,
    pub under_way: Arc<UnderWay>,
    pub streams: Streams,
    last_seen: Mutex<Instant>,
}

impl Session {
    fn new(visit: Visit) -> Arc<Self> {
        Arc::new(Self {
            id: uuid::Uuid::new_v4().simple().to_string(),
            visit: Arc::new(visit),
            under_way: Arc::default(),
            streams: Streams::default(),
            last_seen: Mutex::new(Instant::now()),
        })
    }

    fn touch(&self) {
        *self.last_seen.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn silent_for(&self) -> Duration {
        if self.streams.are_read() {
            return Duration::ZERO;
        }
        self.last_seen.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    fn is_over(&self, idle: Duration) -> bool {
        self.silent_for() >= idle || self.visit.asker().is_none()
    }

    /// Nobody can come back for what still runs, nor call it off, so it is called off here.
    fn close(&self) {
        self.under_way.cancel_all();
        self.visit.end();
        self.streams.end();
    }

    /// Puts the crib's news on the standing stream for as long as the session lives. A crib that closes ends the stream,
    /// because it would otherwise wait for a reader that never leaves; answers under way have their own streams.
    async fn follow(self: Arc<Self>, gateway: Arc<Gateway>, closing: CancellationToken) {
        let mut news = gateway.newsroom().listen();
        loop {
            let heard = tokio::select! {
                () = self.visit.closed.cancelled() => return,
                () = closing.cancelled() => return self.streams.standing.end(),
                heard = news.recv() => heard,
            };
            let Some(notes) = feed::heard(heard, &self.visit, &gateway) else { return };
            for note in notes {
                let message = wire::notification(&note.method, note.params.as_deref());
                self.streams.push(&self.streams.standing, &message);
            }
        }
    }
}

pub struct Sessions {
    open: Mutex<HashMap<String, Arc<Session>>>,
    count: Arc<AtomicUsize>,
    most: usize,
    idle: Duration,
}

/// Every place is taken by somebody active.
#[derive(Debug)]
pub struct Full;

impl Sessions {
    pub fn new(most: usize, idle: Duration, count: Arc<AtomicUsize>) -> Arc<Self> {
        Arc::new(Self { open: Mutex::default(), count, most, idle })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn begin(
        &self,
        visit: Visit,
        gateway: &Arc<Gateway>,
        closing: &CancellationToken,
    ) -> Result<Arc<Session>, Full> {
        let session = Session::new(visit);
        let evicted = {
            let mut open = self.open();
            let mut evicted = None;
            if open.len() >= self.most {
                let quietest = open.values().max_by_key(|session| session.silent_for()).cloned();
                let quietest = quietest.filter(|session| session.silent_for() >= SILENT).ok_or(Full)?;
                evicted = open.remove(&quietest.id);
            }
            open.insert(session.id.clone(), session.clone());
            self.count.store(open.len(), Ordering::Relaxed);
            evicted
        };
        if let Some(session) = evicted {
            session.close();
        }
        tokio::spawn(session.clone().follow(gateway.clone(), closing.clone()));
        Ok(session)
    }

    /// The session of this caller. Another caller's id is as good as none.
    pub fn find(&self, id: &str, caller: &CallerId) -> Option<Arc<Session>> {
        let session = self.open().get(id).cloned().filter(|session| session.visit.who.id == *caller)?;
        session.touch();
        Some(session)
    }

    pub fn end(&self, session: &Session) {
        let mut open = self.open();
        open.remove(&session.id);
        self.count.store(open.len(), Ordering::Relaxed);
        drop(open);
        session.close();
    }

    /// Runs until dropped: forgets sessions that are idle, those whose caller is no longer let in, and streams nobody
    /// came back for.
    pub async fn reap(self: Arc<Self>) {
        let mut tick = tokio::time::interval(REAP_EVERY.min(self.idle));
        loop {
            tick.tick().await;
            let open: Vec<_> = self.open().values().cloned().collect();
            for session in open {
                if session.is_over(self.idle) {
                    self.end(&session);
                } else {
                    session.streams.sweep();
                }
            }
        }
    }
}
