//! One source and its at most one connection: connect once for many waiters, back off after failures, notice loss,
//! let go when idle.
//!
//! Everything that happens to a connection carries the number of the life it belongs to; what comes from an earlier
//! life changes nothing. What the source offers is put on its shelf under the same lock, so the catalog never shows
//! what a stopped source had.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    call::Level,
    catalog::{LiveCatalog, Offer, Shelf},
    error::{Failure, Kind},
    news::{News, Newsroom},
    source::{
        ConnectMode, Connection, Dialer, Facts, State, Tidings,
        terms::{Awaited, Terms, Urgency, Watch, backoff},
        wishes::{Applier, Wishes},
    },
};

/// After so many failures in a row what the source offered before is no longer listed.
const FAILURES_UNTIL_UNLISTED: u32 = 3;
/// A source that was lost and is wanted is tried again after this long.
const SOON: Duration = Duration::from_millis(500);

/// A connection that held this long was a good one.
const STEADY: Duration = Duration::from_secs(10);

type Attempt = watch::Receiver<Option<Result<Arc<dyn Connection>, Failure>>>;

pub struct Supervised {
    pub(super) dialer: Arc<dyn Dialer>,
    pub(super) newsroom: Newsroom,
    catalog: Arc<LiveCatalog>,
    inner: Mutex<Inner>,
    in_flight: AtomicUsize,
}

/// Which attempt or connection something belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life(u64);

struct Inner {
    terms: Terms,
    state: State,
    life: Life,
    /// Ends the tasks of the present life.
    leash: CancellationToken,
    connection: Option<Arc<dyn Connection>>,
    attempt: Option<Attempt>,
    attempt_began: Instant,
    offer: Option<Arc<Offer>>,
    failures: u32,
    retry_at: Instant,
    last_error: Option<String>,
    last_used: Instant,
    ready_at: Instant,
    /// Taken out of the config: never connected again, whoever still holds it.
    removed: bool,
    wishes: Wishes,
}

impl Inner {
    /// Begins another life: whatever still belongs to the last one is too late.
    fn renew(&mut self, state: State) -> Option<Arc<dyn Connection>> {
        self.leash.cancel();
        self.leash = CancellationToken::new();
        self.life = Life(self.life.0 + 1);
        self.attempt = None;
        self.state = state;
        self.wishes.disconnect();
        self.connection.take()
    }

    fn shelf(&self) -> Option<Shelf> {
        let offer = self.offer.clone()?;
        Some(Shelf::new(self.terms.id.clone(), self.terms.shelf.clone(), offer))
    }
}

/// What `servers` shows of one source.
pub(super) struct Glance {
    pub terms: Terms,
    pub state: State,
    pub last_error: Option<String>,
    pub offer: Option<Arc<Offer>>,
    pub facts: Facts,
    pub in_flight: usize,
}

impl Supervised {
    pub(super) fn new(
        terms: Terms,
        dialer: Arc<dyn Dialer>,
        catalog: Arc<LiveCatalog>,
        newsroom: Newsroom,
    ) -> Arc<Self> {
        let now = Instant::now();
        let inner = Inner {
            state: if terms.enabled { State::Idle } else { State::Disabled },
            terms,
            life: Life(0),
            leash: CancellationToken::new(),
            connection: None,
            attempt: None,
            attempt_began: now,
            offer: None,
            failures: 0,
            retry_at: now,
            last_error: None,
            last_used: now,
            ready_at: now,
            removed: false,
            wishes: Wishes::default(),
        };
        Arc::new(Self { dialer, newsroom, catalog, inner: Mutex::new(inner), in_flight: AtomicUsize::new(0) })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn terms(&self) -> Terms {
        self.inner().terms.clone()
    }

    pub(super) fn glance(&self) -> Glance {
        let inner = self.inner();
        Glance {
            terms: inner.terms.clone(),
            state: inner.state,
            last_error: inner.last_error.clone(),
            offer: inner.offer.clone(),
            facts: inner.connection.as_ref().map(|c| c.facts()).unwrap_or_default(),
            in_flight: self.in_flight.load(Ordering::Relaxed),
        }
    }

    /// Takes new terms without touching the connection.
    pub(super) fn amend(self: &Arc<Self>, terms: Terms) {
        let wanted = terms.mode == ConnectMode::Always;
        let mut inner = self.inner();
        inner.terms = terms;
        if let Some(shelf) = inner.shelf() {
            self.catalog.put(shelf);
        }
        let connect = wanted && inner.state == State::Idle;
        if wanted && inner.state == State::Failed {
            self.retry(&inner, inner.retry_at);
        }
        drop(inner);
        if connect {
            let this = self.clone();
            tokio::spawn(async move { this.connect(Urgency::Supervisor).await.map(drop) });
        }
    }

    fn say(&self, inner: &Inner, error: Option<&str>) {
        let (source, error) = (inner.terms.id.clone(), error.map(str::to_owned));
        self.newsroom.tell(News::Source { source, state: inner.state, error });
    }

    /// The connection, made now if there is none. Many callers share one attempt; within a backoff one is refused at
    /// once.
    pub(super) async fn connect(self: &Arc<Self>, urgency: Urgency) -> Result<Arc<dyn Connection>, Failure> {
        let mut attempt = {
            let mut inner = self.inner();
            if let Some(connection) = &inner.connection {
                return Ok(connection.clone());
            }
            match inner.attempt.clone() {
                Some(attempt) => attempt,
                None => {
                    may_connect(&inner, urgency)?;
                    self.begin(&mut inner)
                }
            }
        };
        let settled = attempt.wait_for(Option::is_some).await;
        match settled.map(|result| result.clone()) {
            Ok(Some(result)) => result,
            Ok(None) | Err(_) => Err(stopped()),
        }
    }

    fn begin(self: &Arc<Self>, inner: &mut Inner) -> Attempt {
        let (settle, attempt) = watch::channel(None);
        inner.renew(State::Connecting);
        inner.attempt = Some(attempt.clone());
        inner.attempt_began = Instant::now();
        self.say(inner, None);
        let (this, life, leash) = (self.clone(), inner.life, inner.leash.clone());
        let limit = inner.terms.connect_limit;
        tokio::spawn(async move {
            let (sender, tidings) = mpsc::channel(256);
            let result = tokio::select! {
                result = this.dial(sender, limit) => result,
                () = leash.cancelled() => return,
            };
            let told = match result {
                Ok((connection, offer)) => this.ready(life, connection, offer, tidings).await,
                Err(failure) => {
                    this.failed(life, &failure.told);
                    Err(failure)
                }
            };
            let _ = settle.send(Some(told));
        });
        attempt
    }

    async fn dial(
        &self,
        sender: mpsc::Sender<Tidings>,
        limit: Duration,
    ) -> Result<(Arc<dyn Connection>, Offer), Failure> {
        let late = || {
            let told = format!("it did not connect and list its tools within {} s", limit.as_secs_f32());
            Failure::new(Kind::Timeout, told)
        };
        let deadline = Instant::now() + limit;
        let connection =
            tokio::time::timeout_at(deadline, self.dialer.dial(sender)).await.map_err(|_| late())??;
        let listed = tokio::time::timeout_at(deadline, connection.offer()).await.map_err(|_| late());
        match listed.and_then(|offer| offer) {
            Ok(offer) => Ok((connection, offer)),
            Err(failure) => {
                connection.close().await;
                Err(failure)
            }
        }
    }

    /// An attempt succeeded, unless it was overtaken.
    async fn ready(
        self: &Arc<Self>,
        life: Life,
        connection: Arc<dyn Connection>,
        offer: Offer,
        tidings: mpsc::Receiver<Tidings>,
    ) -> Result<Arc<dyn Connection>, Failure> {
        let overtaken = {
            let mut inner = self.inner();
            let overtaken = inner.life != life;
            if !overtaken {
                inner.state = State::Ready;
                inner.connection = Some(connection.clone());
                inner.attempt = None;
                inner.offer = Some(Arc::new(offer));
                inner.last_error = None;
                inner.last_used = Instant::now();
                inner.ready_at = Instant::now();
                let applier = Applier::start(&connection, inner.leash.clone());
                inner.wishes.connect(applier);
                if let Some(shelf) = inner.shelf() {
                    self.catalog.put(shelf);
                }
                self.say(&inner, None);
                let leash = inner.leash.clone();
                tokio::spawn(super::attend::attend(self.clone(), life, connection.clone(), tidings, leash));
            }
            overtaken
        };
        if overtaken {
            connection.close().await;
            return Err(stopped());
        }
        Ok(connection)
    }

    fn failed(self: &Arc<Self>, life: Life, error: &str) {
        let mut inner = self.inner();
        if inner.life != life {
            return;
        }
        inner.state = State::Failed;
        inner.attempt = None;
        inner.failures += 1;
        inner.last_error = Some(error.to_owned());
        inner.retry_at = Instant::now() + backoff(inner.failures);
        if inner.failures >= FAILURES_UNTIL_UNLISTED {
            inner.offer = None;
            self.catalog.remove(&inner.terms.id);
        }
        self.say(&inner, Some(error));
        if inner.terms.mode == ConnectMode::Always || inner.wishes.any_watched() {
            self.retry(&inner, inner.retry_at);
        }
    }

    fn retry(self: &Arc<Self>, inner: &Inner, at: Instant) {
        let (this, leash) = (self.clone(), inner.leash.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep_until(at) => { let _ = this.connect(Urgency::Supervisor).await; }
                () = leash.cancelled() => {}
            }
        });
    }

    /// The connection of this life is gone. What the source offered stays listed: the next call connects again.
    pub(super) fn lost(self: &Arc<Self>, life: Life, why: &str) {
        let mut inner = self.inner();
        if inner.life != life {
            return;
        }
        tracing::warn!(source = %inner.terms.id, "connection lost; `toolcrib servers show` says why");
        tracing::debug!(source = %inner.terms.id, why, "why the connection was lost");
        inner.renew(State::Idle);
        inner.last_error = Some(why.to_owned());
        self.say(&inner, Some(why));
        // One that comes up only to go down again is waited for longer each time.
        let steady = inner.ready_at.elapsed() >= STEADY;
        inner.failures = if steady { 0 } else { inner.failures + 1 };
        if inner.terms.mode == ConnectMode::Always || inner.wishes.any_watched() {
            let pause = if steady { SOON } else { backoff(inner.failures) };
            self.retry(&inner, Instant::now() + pause);
        }
    }

    /// What the source lists now, unless its life is over.
    pub(super) fn relisted(&self, life: Life, offer: Offer) {
        let mut inner = self.inner();
        if inner.life == life {
            inner.offer = Some(Arc::new(offer));
            if let Some(shelf) = inner.shelf() {
                self.catalog.put(shelf);
            }
        }
    }

    /// Ends the present life at once and takes what was offered off its shelf, unless the source only rests. The
    /// connection is handed back to be closed, which may take a while.
    pub(super) fn retire(&self, state: State) -> Option<Arc<dyn Connection>> {
        let mut inner = self.inner();
        if inner.removed {
            return None;
        }
        let connection = inner.renew(state);
        if matches!(state, State::Stopped | State::Disabled) {
            inner.offer = None;
            self.catalog.remove(&inner.terms.id);
        }
        self.say(&inner, None);
        connection
    }

    /// As [`Supervised::retire`], and for good. What was wished of it is handed back for whoever takes its place.
    pub(super) fn remove(&self) -> (Option<Arc<dyn Connection>>, Wishes) {
        let connection = self.retire(State::Stopped);
        let mut inner = self.inner();
        inner.removed = true;
        (connection, std::mem::take(&mut inner.wishes))
    }

    /// Takes over what was wished of the source before it was changed.
    pub(super) fn inherit(self: &Arc<Self>, wishes: Wishes) {
        let wanted = wishes.any_watched();
        self.inner().wishes = wishes;
        if wanted {
            let this = self.clone();
            tokio::spawn(async move { this.connect(Urgency::Supervisor).await.map(drop) });
        }
    }

    /// As [`Supervised::retire`], if nobody used the connection for as long as its terms allow.
    pub(super) fn rest_if_idle(&self) -> Option<Arc<dyn Connection>> {
        let mut inner = self.inner();
        let idle = inner.terms.mode == ConnectMode::OnDemand
            && inner.connection.is_some()
            && !inner.wishes.any_watched()
            && self.in_flight.load(Ordering::SeqCst) == 0
            && inner.last_used.elapsed() >= inner.terms.idle_after;
        if !idle {
            return None;
        }
        let connection = inner.renew(State::Idle);
        inner.failures = 0;
        self.say(&inner, None);
        connection
    }

    /// Whether a list should wait for this source.
    pub(super) fn awaited(&self) -> Awaited {
        let inner = self.inner();
        match inner.state {
            _ if inner.offer.is_some() => Awaited::Settled,
            State::Idle => Awaited::Unasked,
            State::Failed if Instant::now() >= inner.retry_at => Awaited::Again,
            // Who failed before has had its wait.
            State::Connecting if inner.failures == 0 => Awaited::Since(inner.attempt_began),
            State::Connecting | State::Failed | State::Disabled | State::Stopped | State::Ready => {
                Awaited::Settled
            }
        }
    }

    /// One more, or one fewer, wants to hear of changes of `uri`.
    pub(super) async fn watch(self: &Arc<Self>, uri: &str, change: Watch) -> Result<(), Failure> {
        if change == Watch::More {
            self.connect(Urgency::Caller).await?;
        }
        let applied = self.inner().wishes.watch(uri, change);
        let done = match applied {
            Some(applied) => applied.done().await,
            None => Ok(()),
        };
        if done.is_err() && change == Watch::More {
            self.inner().wishes.forget(uri);
        }
        done
    }

    /// A call begins: the connection is not let go while it lasts.
    pub(super) fn enter(&self) {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn leave(&self) {
        self.inner().last_used = Instant::now();
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
    }

    /// Somebody wants log messages from `level` on; the source is asked for the most anybody wants.
    pub(super) fn hear(&self, level: Level) {
        self.inner().wishes.hear(level);
    }
}

fn stopped() -> Failure {
    Failure::new(Kind::Unavailable, "the source was stopped while connecting")
}

/// What a caller is told never says why: that may quote what others sent.
fn may_connect(inner: &Inner, urgency: Urgency) -> Result<(), Failure> {
    let id = &inner.terms.id;
    let why = match inner.state {
        _ if inner.removed => format!("source `{id}` is no longer in the config"),
        State::Disabled => format!("source `{id}` is disabled in the config"),
        State::Stopped if urgency != Urgency::Operator => {
            format!("source `{id}` was disconnected; `toolcrib servers connect {id}` brings it back")
        }
        State::Failed if urgency == Urgency::Caller && Instant::now() < inner.retry_at => {
            let wait = inner.retry_at.duration_since(Instant::now()).as_secs() + 1;
            format!(
                "source `{id}` is not available; next try in {wait} s, `toolcrib servers show {id}` says why"
            )
        }
        _ => return Ok(()),
    };
    Err(Failure::new(Kind::Unavailable, why))
}
