//! The legacy session: what `initialize` opened, and what it takes to open it again after the crib restarted.
//!
//! Memory only; it sends nothing. `link.rs` opens, revives and ends the session over HTTP.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::header;
use crate::peek;

/// The session as it was at one moment. `epoch` tells whether it has been opened anew since.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    pub open: bool,
    pub id: Option<String>,
    pub version: Option<String>,
    pub epoch: u64,
}

/// What is remembered about the session.
#[derive(Debug)]
pub struct Session {
    state: Mutex<State>,
    epoch: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    seen: Seen,
    initialize: Option<Bytes>,
    initialized: Option<Bytes>,
    lists: Lists,
}

/// The lists a client must ask for again after a restart.
#[derive(Debug, Default, Clone, Copy)]
struct Lists {
    tools: bool,
    prompts: bool,
    resources: bool,
}

#[derive(Deserialize)]
struct Initialized<'a> {
    #[serde(borrow, default, rename = "protocolVersion")]
    version: Option<&'a RawValue>,
    #[serde(borrow, default)]
    capabilities: Option<&'a RawValue>,
}

impl Default for Session {
    fn default() -> Self {
        Self { state: Mutex::default(), epoch: watch::Sender::new(0) }
    }
}

impl Seen {
    /// The headers of a message in this session.
    pub fn headers(&self) -> HeaderMap {
        header::legacy(self.id.as_deref(), self.version.as_deref())
    }
}

impl Session {
    /// The session as it is now.
    pub fn seen(&self) -> Seen {
        self.state().seen.clone()
    }

    /// Tells when the session is opened anew.
    pub fn epochs(&self) -> watch::Receiver<u64> {
        self.epoch.subscribe()
    }

    /// Reads the result of an `initialize` that was answered with the header `id`.
    pub fn read(id: Option<String>, result: &RawValue) -> Seen {
        let version = parsed(result).and_then(|r| r.version).and_then(peek::string);
        Seen { open: true, id, version, epoch: 0 }
    }

    /// Remembers an opened session, the line that opened it and what the crib can do.
    pub fn open(&self, line: Bytes, seen: Seen, result: &RawValue) {
        let capabilities =
            parsed(result).and_then(|r| r.capabilities).and_then(peek::members).unwrap_or_default();
        let has = |name: &str| capabilities.contains_key(name);
        let mut state = self.state();
        let epoch = state.seen.epoch + 1;
        state.seen = Seen { epoch, ..seen };
        state.initialize = Some(line);
        state.lists = Lists { tools: has("tools"), prompts: has("prompts"), resources: has("resources") };
        drop(state);
        self.epoch.send_replace(epoch);
    }

    /// Remembers the line that says the client is ready.
    pub fn confirm(&self, line: Bytes) {
        self.state().initialized = Some(line);
    }

    /// The lines to say again to a crib that has forgotten the session: `initialize`, then the client's readiness.
    pub fn opening(&self) -> Option<(Bytes, Option<Bytes>)> {
        let state = self.state();
        state.initialize.clone().map(|line| (line, state.initialized.clone()))
    }

    /// The notifications that make the client ask for its lists again.
    pub fn list_changes(&self) -> Vec<String> {
        let lists = self.state().lists;
        let all = [("tools", lists.tools), ("prompts", lists.prompts), ("resources", lists.resources)];
        all.into_iter()
            .filter(|(_, offered)| *offered)
            .map(|(name, _)| format!(r#"{{"jsonrpc":"2.0","method":"notifications/{name}/list_changed"}}"#))
            .collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn parsed(result: &RawValue) -> Option<Initialized<'_>> {
    serde_json::from_str(result.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_remembers_version_headers_and_lists() {
        let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}}}"#;
        let result = RawValue::from_string(result.to_owned()).unwrap();
        let session = Session::default();
        assert!(!session.seen().open);
        assert!(session.seen().headers().is_empty());
        session.open(Bytes::from_static(b"{}"), Session::read(Some("s-1".into()), &result), &result);
        let seen = session.seen();
        assert_eq!((seen.open, seen.epoch), (true, 1));
        assert_eq!(seen.headers().get("mcp-session-id").unwrap(), "s-1");
        assert_eq!(seen.headers().get("mcp-protocol-version").unwrap(), "2025-11-25");
        let changes = session.list_changes();
        assert_eq!(changes.len(), 2);
        assert!(changes.iter().all(|line| line.contains("/list_changed") && !line.contains("prompts")));
    }
}
