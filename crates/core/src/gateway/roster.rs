//! The calls under way, for `GET /calls`.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::{id::CallId, ledger::Opening};

/// One call under way.
#[derive(Clone, Debug, Serialize)]
pub struct LiveCall {
    pub call: CallId,
    pub at: u64,
    pub caller: String,
    pub surface: &'static str,
    pub kind: &'static str,
    pub target: String,
    #[serde(skip)]
    pub cancel: CancellationToken,
}

impl LiveCall {
    pub fn new(opening: &Opening, cancel: CancellationToken) -> Self {
        Self {
            call: opening.call,
            at: opening.at,
            caller: opening.caller.to_string(),
            surface: opening.surface.word(),
            kind: opening.kind,
            target: opening.target.clone(),
            cancel,
        }
    }
}

#[derive(Clone, Default)]
pub struct Roster(Arc<Mutex<BTreeMap<CallId, LiveCall>>>);

impl Roster {
    /// Listed until the guard is dropped, also when the call's task dies.
    pub(super) fn add(&self, call: LiveCall) -> Listed {
        let id = call.call;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, call);
        Listed { id, roster: self.clone() }
    }

    /// Oldest first.
    pub fn calls(&self) -> Vec<LiveCall> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub fn cancel_all(&self) {
        for call in self.calls() {
            call.cancel.cancel();
        }
    }
}

pub(super) struct Listed {
    id: CallId,
    roster: Roster,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.roster.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}
