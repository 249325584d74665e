//! What happens in the crib, told to whoever listens: sessions that owe their client a `list_changed`, the
//! `/events` stream, the log. Listeners that fall behind lose old news and are told that they did.

use std::sync::Arc;

use serde::Serialize;
use tokio::sync::broadcast;

use crate::{
    call::Level,
    id::{CallId, SourceId},
    raw::Raw,
    source::State,
};

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum News {
    /// A source changed its state.
    Source { source: SourceId, state: State, error: Option<String> },
    /// The catalog has a new revision; which lists differ.
    Catalog { revision: String, tools: bool, prompts: bool, resources: bool },
    /// A watched resource changed. The message is the source's own.
    Resource { source: SourceId, uri: String, message: Raw },
    /// A log message of a source that belongs to no call.
    Log { source: SourceId, level: Level, message: Raw },
    /// A notification of a source that the crib does not know.
    Notice { source: SourceId, method: String, params: Option<Raw> },
}

/// The beginning and the end of calls; apart from [`News`], because there are many more of them.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum CallNews {
    CallOpened { call: CallId, caller: String, kind: &'static str, target: String },
    CallClosed { call: CallId, item: Option<String>, outcome: &'static str, duration_us: u64 },
}

const BACKLOG: usize = 1024;

/// Where news are told and heard.
#[derive(Clone)]
pub struct Newsroom {
    news: broadcast::Sender<Arc<News>>,
    calls: broadcast::Sender<Arc<CallNews>>,
}

impl Default for Newsroom {
    fn default() -> Self {
        Self { news: broadcast::channel(BACKLOG).0, calls: broadcast::channel(BACKLOG).0 }
    }
}

impl Newsroom {
    pub fn tell(&self, news: News) {
        // No listener is no error.
        let _ = self.news.send(Arc::new(news));
    }

    pub fn tell_call(&self, news: impl FnOnce() -> CallNews) {
        if self.calls.receiver_count() > 0 {
            let _ = self.calls.send(Arc::new(news()));
        }
    }

    pub fn listen(&self) -> broadcast::Receiver<Arc<News>> {
        self.news.subscribe()
    }

    pub fn listen_calls(&self) -> broadcast::Receiver<Arc<CallNews>> {
        self.calls.subscribe()
    }
}
