//! One source and its at most one connection: connect once for many waiters, back off after failures, notice loss,
//! refresh what it offers, let go when idle.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    call::{Events, Level, Reply},
    catalog::{LiveCatalog, Offer, Shelf},
    error::{Failure, Kind},
    news::{News, Newsroom},
    policy::Permit,
    source::{
        ConnectMode, Connection, Dialer, Facts, Lists, Source, State, Tidings,
        terms::{Awaited, Terms, Urgency, Watch, backoff},
    },
};

/// After so many failures in a row what the source offered before is no longer listed.
const FAILURES_UNTIL_UNLISTED: u32 = 3;

type Attempt = watch::Receiver<Option<Result<Arc<dyn Connection>, Failure>>>;

pub struct Supervised {
    pub(super) terms: Mutex<Terms>,
    pub(super) dialer: Arc<dyn Dialer>,
    catalog: Arc<LiveCatalog>,
    newsroom: Newsroom,
    inner: Mutex<Inner>,
    in_flight: AtomicUsize,
}

struct Inner {
    state: State,
    connection: Option<Arc<dyn Connection>>,
    attempt: Option<Attempt>,
    attempt_began: Instant,
    offer: Option<Arc<Offer>>,
    failures: u32,
    retry_at: Instant,
    last_error: Option<String>,
    last_used: Instant,
    watched: BTreeMap<String, usize>,
    hearing: Option<Level>,
    /// Ends the tasks of the present connection.
    leash: CancellationToken,
}

/// What `servers` shows of one source.
pub(super) struct Glance {
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
        let state = if terms.enabled { State::Idle } else { State::Disabled };
        Arc::new(Self {
            terms: Mutex::new(terms),
            dialer,
            catalog,
            newsroom,
            inner: Mutex::new(Inner {
                state,
                connection: None,
                attempt: None,
                attempt_began: now,
                offer: None,
                failures: 0,
                retry_at: now,
                last_error: None,
                last_used: now,
                watched: BTreeMap::new(),
                hearing: None,
                leash: CancellationToken::new(),
            }),
            in_flight: AtomicUsize::new(0),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn terms(&self) -> Terms {
        self.terms.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes new terms without touching the connection.
    pub(super) fn amend(&self, terms: Terms) {
        *self.terms.lock().unwrap_or_else(PoisonError::into_inner) = terms;
        self.show();
    }

    pub(super) fn glance(&self) -> Glance {
        let inner = self.inner();
        Glance {
            state: inner.state,
            last_error: inner.last_error.clone(),
            offer: inner.offer.clone(),
            facts: inner.connection.as_ref().map(|c| c.facts()).unwrap_or_default(),
            in_flight: self.in_flight.load(Ordering::Relaxed),
        }
    }

    /// Puts what the source offers on its shelf, under its present terms.
    fn show(&self) {
        let offer = self.inner().offer.clone();
        if let Some(offer) = offer {
            let terms = self.terms();
            self.catalog.put(Shelf::new(terms.id, terms.shelf, offer));
        }
    }

    fn say(&self, state: State, error: Option<String>) {
        self.newsroom.tell(News::Source { source: self.terms().id, state, error });
    }

    /// The connection, made now if there is none. Many callers share one attempt; within a backoff the last failure
    /// is told at once.
    pub(super) async fn connect(self: &Arc<Self>, urgency: Urgency) -> Result<Arc<dyn Connection>, Failure> {
        let mut attempt = {
            let mut inner = self.inner();
            if let Some(connection) = &inner.connection {
                return Ok(connection.clone());
            }
            match inner.attempt.clone() {
                Some(attempt) => attempt,
                None => {
                    self.may_connect(&inner, urgency)?;
                    self.begin(&mut inner)
                }
            }
        };
        let settled = attempt.wait_for(Option::is_some).await;
        match settled.map(|result| result.clone()) {
            Ok(Some(result)) => result,
            Ok(None) | Err(_) => {
                Err(Failure::new(Kind::Unavailable, "the source was stopped while connecting"))
            }
        }
    }

    fn may_connect(&self, inner: &Inner, urgency: Urgency) -> Result<(), Failure> {
        let id = self.terms().id;
        let why = match inner.state {
            State::Disabled => format!("source `{id}` is disabled in the config"),
            State::Stopped if urgency != Urgency::Operator => {
                format!("source `{id}` was disconnected; `toolcrib servers connect {id}` brings it back")
            }
            State::Failed if urgency == Urgency::Caller && Instant::now() < inner.retry_at => {
                let wait = inner.retry_at.duration_since(Instant::now()).as_secs() + 1;
                let error = inner.last_error.as_deref().unwrap_or("it cannot be reached");
                format!("source `{id}` is not available: {error}; next try in {wait} s")
            }
            _ => return Ok(()),
        };
        Err(Failure::new(Kind::Unavailable, why))
    }

    fn begin(self: &Arc<Self>, inner: &mut Inner) -> Attempt {
        let (settle, attempt) = watch::channel(None);
        inner.state = State::Connecting;
        inner.attempt = Some(attempt.clone());
        inner.attempt_began = Instant::now();
        inner.leash = CancellationToken::new();
        let (this, leash) = (self.clone(), inner.leash.clone());
        tokio::spawn(async move {
            this.say(State::Connecting, None);
            let (sender, tidings) = mpsc::channel(256);
            let result = tokio::select! {
                result = this.dial(sender) => result,
                () = leash.cancelled() => return,
            };
            let told = this.settle(result, tidings, leash).await;
            let _ = settle.send(Some(told));
        });
        attempt
    }

    async fn dial(&self, sender: mpsc::Sender<Tidings>) -> Result<(Arc<dyn Connection>, Offer), Failure> {
        let limit = self.terms().connect_limit;
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

    /// Ends an attempt: the one place where a source becomes ready or failed.
    async fn settle(
        self: &Arc<Self>,
        result: Result<(Arc<dyn Connection>, Offer), Failure>,
        tidings: mpsc::Receiver<Tidings>,
        leash: CancellationToken,
    ) -> Result<Arc<dyn Connection>, Failure> {
        match result {
            Ok((connection, offer)) => {
                let (watched, hearing) = {
                    let mut inner = self.inner();
                    inner.state = State::Ready;
                    inner.connection = Some(connection.clone());
                    inner.attempt = None;
                    inner.offer = Some(Arc::new(offer));
                    inner.failures = 0;
                    inner.last_error = None;
                    inner.last_used = Instant::now();
                    (inner.watched.keys().cloned().collect::<BTreeSet<_>>(), inner.hearing)
                };
                self.show();
                self.say(State::Ready, None);
                tokio::spawn(self.clone().attend(connection.clone(), tidings, leash));
                if !watched.is_empty() {
                    let _ = connection.watch(watched).await;
                }
                if let Some(level) = hearing {
                    let _ = connection.hear(level).await;
                }
                Ok(connection)
            }
            Err(failure) => {
                self.failed(&failure.told);
                Err(failure)
            }
        }
    }

    fn failed(self: &Arc<Self>, error: &str) {
        let (unlist, retry_at) = {
            let mut inner = self.inner();
            inner.state = State::Failed;
            inner.attempt = None;
            inner.connection = None;
            inner.failures += 1;
            inner.last_error = Some(error.to_owned());
            inner.retry_at = Instant::now() + backoff(inner.failures);
            (inner.failures >= FAILURES_UNTIL_UNLISTED, inner.retry_at)
        };
        if unlist {
            self.inner().offer = None;
            self.catalog.remove(&self.terms().id);
        }
        self.say(State::Failed, Some(error.to_owned()));
        if self.terms().mode == ConnectMode::Always {
            self.retry_later(retry_at);
        }
    }

    fn retry_later(self: &Arc<Self>, at: Instant) {
        let (this, leash) = (self.clone(), self.inner().leash.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep_until(at) => { let _ = this.connect(Urgency::Supervisor).await; }
                () = leash.cancelled() => {}
            }
        });
    }

    /// Lives as long as one connection: hears it, and notices its loss.
    async fn attend(
        self: Arc<Self>,
        connection: Arc<dyn Connection>,
        mut tidings: mpsc::Receiver<Tidings>,
        leash: CancellationToken,
    ) {
        loop {
            tokio::select! {
                () = leash.cancelled() => return,
                why = connection.lost() => {
                    connection.close().await;
                    return self.lost(&why);
                }
                said = tidings.recv() => match said {
                    Some(Tidings::ListChanged(lists)) => self.refresh(&connection, lists).await,
                    Some(said) => self.pass_on(said),
                    None => {
                        connection.lost().await;
                        connection.close().await;
                        return self.lost("the connection ended");
                    }
                },
            }
        }
    }

    fn lost(self: &Arc<Self>, why: &str) {
        tracing::warn!(source = %self.terms().id, why, "connection lost");
        // A source that was ready and went away is tried again at once when next asked, or after a moment when it is
        // to be there always; it counts as a failure only when that try fails.
        let mode = self.terms().mode;
        {
            let mut inner = self.inner();
            inner.connection = None;
            inner.state = State::Idle;
            inner.last_error = Some(why.to_owned());
        }
        self.say(State::Idle, Some(why.to_owned()));
        if mode == ConnectMode::Always {
            self.retry_later(Instant::now() + Duration::from_millis(500));
        }
    }

    /// Reads the lists anew. The news is passed on even where nothing differs: the source said so.
    async fn refresh(&self, connection: &Arc<dyn Connection>, lists: Lists) {
        match tokio::time::timeout(self.terms().connect_limit, connection.offer()).await {
            Ok(Ok(offer)) => {
                let before = self.catalog.snapshot();
                self.inner().offer = Some(Arc::new(offer));
                self.show();
                let revision = self.catalog.snapshot().revision().to_owned();
                if revision == before.revision() {
                    let Lists { tools, prompts, resources } = lists;
                    self.newsroom.tell(News::Catalog { revision, tools, prompts, resources });
                }
            }
            Ok(Err(failure)) => {
                tracing::warn!(source = %self.terms().id, error = %failure.told, "its lists changed but cannot be read");
            }
            Err(_) => {
                tracing::warn!(source = %self.terms().id, "its lists changed but did not arrive in time")
            }
        }
    }

    fn pass_on(&self, said: Tidings) {
        let source = self.terms().id;
        self.newsroom.tell(match said {
            Tidings::ListChanged(_) => return,
            Tidings::ResourceUpdated { uri, message } => News::Resource { source, uri, message },
            Tidings::Log { level, message } => News::Log { source, level, message },
            Tidings::Notice { method, params } => News::Notice { source, method, params },
        });
    }

    /// Lets the connection go and leaves `state`.
    pub(super) async fn stop(&self, state: State) {
        let connection = {
            let mut inner = self.inner();
            inner.leash.cancel();
            inner.attempt = None;
            inner.state = state;
            inner.connection.take()
        };
        if let Some(connection) = connection {
            connection.close().await;
        }
        if matches!(state, State::Stopped | State::Disabled) {
            self.inner().offer = None;
            self.catalog.remove(&self.terms().id);
        }
        self.say(state, None);
    }

    /// Whether nobody used the connection for as long as its terms allow.
    pub(super) fn is_idle(&self) -> bool {
        let terms = self.terms();
        let inner = self.inner();
        terms.mode == ConnectMode::OnDemand
            && inner.connection.is_some()
            && inner.watched.is_empty()
            && self.in_flight.load(Ordering::Relaxed) == 0
            && inner.last_used.elapsed() >= terms.idle_after
    }

    /// A source nobody asked yet what it offers: when its connecting began, or none if it has not.
    pub(super) fn awaited(&self) -> Awaited {
        let inner = self.inner();
        match inner.state {
            _ if inner.offer.is_some() => Awaited::Settled,
            State::Idle => Awaited::Unasked,
            State::Failed if Instant::now() >= inner.retry_at => Awaited::Again,
            State::Connecting => Awaited::Since(inner.attempt_began),
            State::Failed | State::Disabled | State::Stopped | State::Ready => Awaited::Settled,
        }
    }

    /// One more, or one fewer, wants to hear of changes of `uri`.
    pub(super) async fn watch(self: &Arc<Self>, uri: &str, change: Watch) -> Result<(), Failure> {
        let connection = match change {
            Watch::More => Some(self.connect(Urgency::Caller).await?),
            Watch::Fewer => self.inner().connection.clone(),
        };
        let set = {
            let mut inner = self.inner();
            let count = inner.watched.entry(uri.to_owned()).or_default();
            *count = match change {
                Watch::More => *count + 1,
                Watch::Fewer => count.saturating_sub(1),
            };
            inner.watched.retain(|_, count| *count > 0);
            inner.watched.keys().cloned().collect()
        };
        match connection {
            Some(connection) => connection.watch(set).await,
            None => Ok(()),
        }
    }

    /// Somebody wants log messages from `level` on; the source is asked for the most anybody wants.
    pub(super) async fn hear(&self, level: Level) {
        let connection = {
            let mut inner = self.inner();
            if inner.hearing.is_some_and(|now| now <= level) {
                return;
            }
            inner.hearing = Some(level);
            inner.connection.clone()
        };
        if let Some(connection) = connection
            && let Err(failure) = connection.hear(level).await
        {
            tracing::debug!(source = %self.terms().id, error = %failure.told, "log level not taken");
        }
    }
}

struct InFlight<'a>(&'a Supervised);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.0.inner().last_used = Instant::now();
    }
}

/// The handle by which the gateway reaches a supervised source.
pub(super) struct Handle(pub Arc<Supervised>);

#[async_trait]
impl Source for Handle {
    async fn invoke(
        &self,
        permit: Permit,
        events: Events,
        cancel: CancellationToken,
    ) -> Result<Reply, Failure> {
        self.0.in_flight.fetch_add(1, Ordering::Relaxed);
        let _used = InFlight(&self.0);
        let connection = self.0.connect(Urgency::Caller).await?;
        connection.invoke(permit, events, cancel).await
    }
}
