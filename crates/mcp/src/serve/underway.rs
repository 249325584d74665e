//! Requests under way on one wire, each with the token that calls it off. A request is entered before anything is done
//! for it, so that a cancellation right behind it finds it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use toolcrib_core::raw::Members;

use crate::wire::Id;

#[derive(Default)]
pub struct UnderWay(Mutex<Entered>);

#[derive(Default)]
struct Entered {
    last: u64,
    requests: HashMap<Id, (u64, CancellationToken)>,
}

impl UnderWay {
    fn entered(&self) -> MutexGuard<'_, Entered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request is under way for as long as its ticket lives.
    pub fn enter(self: &Arc<Self>, id: &Id) -> Ticket {
        let cancel = CancellationToken::new();
        let mut entered = self.entered();
        entered.last += 1;
        let number = entered.last;
        entered.requests.insert(id.clone(), (number, cancel.clone()));
        Ticket { id: id.clone(), number, cancel, list: self.clone() }
    }

    /// The client is gone for good: nobody is left to call anything off.
    pub fn cancel_all(&self) {
        self.entered().requests.values().for_each(|(_, cancel)| cancel.cancel());
    }

    /// What a client tells without waiting for an answer.
    pub fn noted(&self, method: &str, params: Option<&RawValue>) {
        if method == "notifications/cancelled"
            && let Some(id) =
                params.map(Members::parse_lenient).and_then(|m| m.find("requestId")).and_then(Id::parse)
            && let Some((_, cancel)) = self.entered().requests.get(&id)
        {
            cancel.cancel();
        }
    }
}

/// One request under way.
pub struct Ticket {
    pub id: Id,
    number: u64,
    /// Cancelled when the client calls the request off.
    pub cancel: CancellationToken,
    list: Arc<UnderWay>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut entered = self.list.entered();
        // A client that uses an id twice at once must not lose sight of the later request.
        if entered.requests.get(&self.id).is_some_and(|(number, _)| *number == self.number) {
            entered.requests.remove(&self.id);
        }
    }
}
