//! How the crib reaches MCP servers: child processes and HTTP, both eras, raw JSON throughout.
//!
//! Two dialers, [`StdioDialer`] and [`HttpDialer`]; each finds out which era its source speaks, remembers it, and hands
//! out a connection. Read `dial::stdio` and `dial::pipe` for processes, `dial::http` and `dial::exchange` for HTTP, then
//! `dial::era` (greetings) and `dial::connection` (what core asks of a source).

mod link;

mod child;
mod lines;
mod pipe;
mod stdio;

mod exchange;
mod get;
mod http;
mod sse;
mod stream;
mod web;

mod era;
mod peer;

mod connection;
mod ear;
mod listen;
mod offer;
mod params;
mod standing;

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::FutureExt;
use tokio::sync::mpsc;
use toolcrib_core::{
    error::Failure,
    source::{Connection, Dialer, Tidings},
};

use self::{
    child::Launch,
    connection::Upstream,
    ear::Ear,
    era::{Memory, greet},
    http::HttpLink,
    link::{Link, Trouble},
    web::Place,
};
use crate::version::Era;

/// How long a process may leave the question for its era unanswered: many old ones ignore it.
const PROCESS_WAIT: Duration = Duration::from_secs(2);
const HTTP_WAIT: Duration = Duration::from_secs(10);

/// Reaches a source that is a child process.
pub struct StdioDialer {
    launch: Launch,
    /// What the operator says; none: it is found out by asking.
    told: Option<Era>,
    era: Memory<Era>,
}

impl StdioDialer {
    /// `env` is added to the few variables a child inherits: home, user, path, locale, terminal, temporary and XDG
    /// directories.
    pub fn new(
        command: impl Into<String>,
        args: Vec<String>,
        env: Vec<(String, String)>,
        cwd: Option<PathBuf>,
    ) -> Self {
        let launch = Launch { command: command.into(), args, env, cwd };
        Self { launch, told: None, era: Memory::default() }
    }

    /// Speaks this era without asking.
    pub fn speaking(mut self, era: Era) -> Self {
        self.told = Some(era);
        self
    }

    async fn connect(&self, ear: &Arc<Ear>) -> Result<Arc<Upstream>, Trouble> {
        let known = self.told.or_else(|| self.era.recall());
        match self.attempt(ear, known).await {
            // Some old servers die of a question they do not know: once more, without it.
            Err(Trouble::Gone(_)) if known.is_none() => self.attempt(ear, Some(Era::Legacy)).await,
            attempted => attempted,
        }
    }

    async fn attempt(&self, ear: &Arc<Ear>, known: Option<Era>) -> Result<Arc<Upstream>, Trouble> {
        let link = Arc::new(stdio::open(&self.launch, ear.clone()).map_err(Trouble::Failed)?);
        let mut trouble = match greet(&*link, known, PROCESS_WAIT).await {
            Ok(peer) => return Ok(Upstream::new(link, ear.clone(), peer)),
            Err(trouble) => trouble,
        };
        // Nothing was called yet, so the process can only have spoken of itself.
        if let (Trouble::Gone(failure), Some(why)) = (&mut trouble, link.lost().now_or_never()) {
            failure.told = why;
        }
        link.close().await;
        Err(trouble)
    }
}

#[async_trait]
impl Dialer for StdioDialer {
    async fn dial(&self, tidings: mpsc::Sender<Tidings>) -> Result<Arc<dyn Connection>, Failure> {
        let connected = self.connect(&Ear::new(tidings)).await;
        self.era.keep(connected.as_ref().ok().map(|upstream| upstream.era()));
        Ok(connected?)
    }

    fn transport(&self) -> &'static str {
        "stdio"
    }

    fn address(&self) -> String {
        self.launch.shown()
    }
}

/// Which HTTP transport a source speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpKind {
    /// Streamable HTTP, or HTTP+SSE where that fails.
    Auto,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

/// Reaches a source over HTTP.
pub struct HttpDialer {
    url: String,
    headers: Vec<(String, String)>,
    kind: HttpKind,
    /// What the operator says; none: it is found out by asking.
    told: Option<Era>,
    /// Made once: reading the machine's certificates takes a while.
    place: OnceLock<Place>,
    way: Memory<Way>,
}

/// The way that worked last time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Streamable(Era),
    Sse,
}

impl HttpDialer {
    /// `headers` go with every request, credentials among them.
    pub fn new(url: impl Into<String>, headers: Vec<(String, String)>, kind: HttpKind) -> Self {
        Self { url: url.into(), headers, kind, told: None, place: OnceLock::new(), way: Memory::default() }
    }

    /// Speaks this era without asking.
    pub fn speaking(mut self, era: Era) -> Self {
        self.told = Some(era);
        self
    }

    fn place(&self) -> Result<Place, Failure> {
        if let Some(place) = self.place.get() {
            return Ok(place.clone());
        }
        let place = Place::new(&self.url, &self.headers)?;
        Ok(self.place.get_or_init(|| place).clone())
    }

    async fn connect(&self, ear: &Arc<Ear>) -> Result<(Arc<Upstream>, Way), Trouble> {
        let place = self.place().map_err(Trouble::Failed)?;
        let known = match (self.kind, self.way.recall()) {
            (HttpKind::Sse, _) | (HttpKind::Auto, Some(Way::Sse)) => return by_sse(&place, ear).await,
            (HttpKind::Auto, Some(Way::Streamable(era))) => Some(self.told.unwrap_or(era)),
            (HttpKind::Auto, None) => self.told,
        };
        let link = Arc::new(HttpLink::new(place.clone(), ear.clone()));
        match greet(&*link, known, HTTP_WAIT).await {
            Ok(peer) => {
                let way = Way::Streamable(peer.era());
                Ok((Upstream::new(link, ear.clone(), peer), way))
            }
            Err(Trouble::Status(status, failure))
                if matches!(status.as_u16(), 400 | 404 | 405 | 406 | 415) =>
            {
                // Whatever the older transport says, the first answer is what the operator should see.
                by_sse(&place, ear).await.map_err(|older| {
                    tracing::debug!(?older, "neither Streamable HTTP nor HTTP+SSE");
                    Trouble::Status(status, failure)
                })
            }
            Err(trouble) => {
                link.close().await;
                Err(trouble)
            }
        }
    }
}

async fn by_sse(place: &Place, ear: &Arc<Ear>) -> Result<(Arc<Upstream>, Way), Trouble> {
    let link = Arc::new(sse::open(place, ear.clone()).await?);
    let peer = era::initialize(&*link).await?;
    Ok((Upstream::new(link, ear.clone(), peer), Way::Sse))
}

#[async_trait]
impl Dialer for HttpDialer {
    async fn dial(&self, tidings: mpsc::Sender<Tidings>) -> Result<Arc<dyn Connection>, Failure> {
        let connected = self.connect(&Ear::new(tidings)).await;
        self.way.keep(connected.as_ref().ok().map(|(_, way)| *way));
        Ok(connected?.0)
    }

    fn transport(&self) -> &'static str {
        match (self.kind, self.way.recall()) {
            (HttpKind::Sse, _) | (HttpKind::Auto, Some(Way::Sse)) => "sse",
            (HttpKind::Auto, _) => "http",
        }
    }

    fn address(&self) -> String {
        web::shown(&self.url)
    }
}
