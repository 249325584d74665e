//! Streamable HTTP, both eras: a request is a POST whose answer is JSON or an event stream.
//!
//! Legacy sources may keep a session; when one is forgotten it is opened anew, once, and the request repeated. The
//! stream of what a legacy source says unasked is `get`; the exchange itself is `exchange`.

use std::sync::{
    Arc, Mutex, PoisonError, Weak,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use reqwest::RequestBuilder;
use tokio::sync::{Notify, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolcrib_core::{
    call::Events,
    raw::Raw,
    source::{Lists, Tidings},
};

use crate::{
    dial::{
        ear::Ear,
        era, get,
        link::{Abandon, Ask, End, Link, Trouble, cancelled},
        web::Place,
    },
    param_headers,
    version::{Era, Version},
    wire::{self, Id},
};

pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const CLOSING: std::time::Duration = std::time::Duration::from_secs(2);

pub(crate) struct HttpLink {
    wire: Arc<Wire>,
    _stop_on_drop: DropGuard,
}

/// Everything requests, and the tasks beside them, share.
pub(crate) struct Wire {
    pub place: Place,
    pub ear: Arc<Ear>,
    pub end: End,
    pub stop: CancellationToken,
    next: AtomicU64,
    terms: Mutex<Terms>,
    /// Held while a forgotten session is opened anew.
    reviving: tokio::sync::Mutex<()>,
    renewed: Notify,
    /// Counts sessions, so that the stream of an old one ends.
    pub epoch: watch::Sender<u64>,
}

/// What was agreed on with the source.
#[derive(Clone, Default)]
pub(crate) struct Terms {
    pub version: Option<Version>,
    pub session: Option<HeaderValue>,
}

impl HttpLink {
    pub fn new(place: Place, ear: Arc<Ear>) -> Self {
        let stop = CancellationToken::new();
        let wire = Arc::new(Wire {
            place,
            ear,
            end: End::default(),
            stop: stop.clone(),
            next: AtomicU64::new(1),
            terms: Mutex::default(),
            reviving: tokio::sync::Mutex::default(),
            renewed: Notify::new(),
            epoch: watch::Sender::new(0),
        });
        Self { wire, _stop_on_drop: stop.drop_guard() }
    }
}

impl Wire {
    pub fn terms(&self) -> Terms {
        self.terms.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, change: impl FnOnce(&mut Terms)) {
        change(&mut self.terms.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// A request with the headers every request of this connection has.
    pub fn dressed(&self, method: Method, terms: &Terms) -> RequestBuilder {
        let mut headers = HeaderMap::new();
        if let Some(version) = terms.version {
            headers.insert(VERSION, HeaderValue::from_static(version.text()));
        }
        if let Some(session) = &terms.session {
            headers.insert(SESSION, session.clone());
        }
        self.place.ask(method).headers(headers)
    }

    /// A POST of one message. `ask`: the request it is, for the headers of the modern wire.
    pub fn post(&self, text: String, method: &str, ask: Option<&Ask>, terms: &Terms) -> RequestBuilder {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(http::header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        for (name, text) in ask.map(|ask| ask.trace.as_slice()).unwrap_or_default() {
            if let Ok(value) = HeaderValue::try_from(text) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        if terms.version.map(Version::era) == Some(Era::Modern) {
            let mut add = |name: HeaderName, text: &str| {
                if let Ok(value) = HeaderValue::try_from(param_headers::encode(text)) {
                    headers.insert(name, value);
                }
            };
            add(METHOD, method);
            if let Some(ask) = ask {
                if let Some(name) = &ask.name {
                    add(NAME, name);
                }
                for (name, text) in &ask.mirrored {
                    if let Ok(name) = HeaderName::try_from(name.as_str()) {
                        add(name, text);
                    }
                }
            }
        }
        self.dressed(Method::POST, terms).headers(headers).body(text)
    }

    /// Sends what wants no answer: notifications, and answers to the source.
    pub async fn tell(&self, text: String, method: &str, terms: &Terms) -> Result<(), Trouble> {
        let response = self.place.send(self.post(text, method, None, terms)).await?;
        let status = response.status();
        if status.is_success() { Ok(()) } else { Err(self.place.refused(status)) }
    }

    pub fn fresh_id(&self) -> Id {
        Id::number(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Marks the connection lost where that is what the trouble means.
    fn noticed(&self, trouble: Trouble) -> Trouble {
        if let Trouble::Gone(failure) = &trouble {
            self.end.set(failure.clone().into());
        }
        trouble
    }

    /// Opens a new session in place of `stale`; whoever comes second finds it done. Until it is open, the old terms
    /// stay in force: a request under them is told that its session is gone, and waits here for the new one.
    async fn revive(self: &Arc<Self>, stale: Option<HeaderValue>) -> Result<(), Trouble> {
        let _alone = self.reviving.lock().await;
        if self.terms().session != stale {
            return Ok(());
        }
        tracing::debug!(place = self.place.shown(), "the session was forgotten; opening a new one");
        let mut fresh = Terms::default();
        let result = self.exchange(&era::greeting(), None, &mut fresh).await?;
        fresh.version = Some(era::agreed(&result)?);
        let initialized = "notifications/initialized";
        self.tell(wire::notification(initialized, None), initialized, &fresh).await?;
        self.set(|terms| *terms = fresh);
        self.renewed.notify_one();
        // A server that forgot its sessions was most likely replaced, and may offer something else.
        self.ear.tell(Tidings::ListChanged(Lists::ALL));
        get::listen(self);
        Ok(())
    }
}

/// Calls a request off when dropped, on the wire where closing the stream does not.
pub(crate) struct Recall {
    wire: Weak<Wire>,
    id: Id,
    terms: Terms,
    armed: bool,
}

impl Recall {
    pub fn new(wire: &Arc<Wire>, id: &Id, ask: &Ask, terms: &Terms) -> Self {
        let legacy = terms.version.map(Version::era) == Some(Era::Legacy);
        let armed = legacy && ask.abandon == Abandon::AndTell;
        Self { wire: Arc::downgrade(wire), id: id.clone(), terms: terms.clone(), armed }
    }

    pub fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for Recall {
    fn drop(&mut self) {
        let (true, Some(wire)) = (self.armed, self.wire.upgrade()) else { return };
        let (text, terms) = (cancelled(&self.id), std::mem::take(&mut self.terms));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(trouble) = wire.tell(text, "notifications/cancelled", &terms).await {
                    tracing::debug!(?trouble, "calling off a request did not reach the source");
                }
            });
        }
    }
}

#[async_trait]
impl Link for HttpLink {
    async fn request(&self, ask: Ask, call: Option<&Events>) -> Result<Raw, Trouble> {
        let mut terms = self.wire.terms();
        let answer = match self.wire.exchange(&ask, call, &mut terms).await {
            Err(Trouble::SessionGone(_)) => match self.wire.revive(terms.session).await {
                Ok(()) => self.wire.exchange(&ask, call, &mut self.wire.terms()).await,
                // Without a session there is nothing to go on with.
                Err(trouble) => Err(Trouble::Gone(trouble.into())),
            },
            Ok(greeted) if ask.method == "initialize" => {
                self.wire.set(|now| now.session = terms.session);
                Ok(greeted)
            }
            answer => answer,
        };
        answer.map_err(|trouble| self.wire.noticed(trouble))
    }

    async fn notify(&self, method: &str, params: Option<Raw>) -> Result<(), Trouble> {
        let text = wire::notification(method, params.as_deref());
        self.wire.tell(text, method, &self.wire.terms()).await.map_err(|trouble| self.wire.noticed(trouble))
    }

    fn settle(&self, version: Option<Version>) {
        self.wire.set(|terms| terms.version = version);
    }

    fn attend(&self) {
        get::listen(&self.wire);
    }

    async fn renewed(&self) {
        self.wire.renewed.notified().await;
    }

    async fn lost(&self) -> String {
        self.wire.end.wait().await
    }

    async fn close(&self) {
        self.wire.stop.cancel();
        let terms = self.wire.terms();
        if terms.session.is_some() && self.wire.end.now().is_none() {
            let farewell = self.wire.place.send(self.wire.dressed(Method::DELETE, &terms));
            let _ = tokio::time::timeout(CLOSING, farewell).await;
        }
    }
}
