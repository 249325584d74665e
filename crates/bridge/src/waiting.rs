//! The requests in flight: who waits, how to call one off, and whether it has left.
//!
//! Only a register; the tasks themselves belong to `relay.rs`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::{Notify, watch};

use crate::answer::Asker;
use crate::courier::{Era, Errand};
use crate::dial::Way;
use crate::peek;
use crate::subscription;

/// The register.
#[derive(Debug, Default)]
pub struct Waiting {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    next: u64,
    held: HashMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    asker: Asker,
    modern: bool,
    endless: bool,
    off: Arc<Notify>,
    progress: watch::Receiver<Way>,
}

/// One entry; it leaves the register when dropped.
#[derive(Debug)]
pub struct Ticket {
    register: Arc<Waiting>,
    number: u64,
    off: Arc<Notify>,
}

/// What a cancellation found.
#[derive(Debug)]
pub enum Called {
    /// A modern request: its stream is being closed, which is how it is cancelled.
    Off,
    /// A legacy request: the notification must follow it to the crib, once it has left.
    Follow(watch::Receiver<Way>),
    /// No such request in flight.
    Unknown,
}

impl Waiting {
    /// Registers a request before it is started.
    pub fn enter(self: &Arc<Self>, errand: &Errand) -> Ticket {
        let off = Arc::new(Notify::new());
        let mut entries = self.entries();
        let number = entries.next;
        entries.next += 1;
        let entry = Entry {
            asker: errand.asker.clone(),
            modern: matches!(errand.era, Era::Modern { .. }),
            endless: errand.method == subscription::LISTEN,
            off: Arc::clone(&off),
            progress: errand.progress.subscribe(),
        };
        entries.held.insert(number, entry);
        Ticket { register: Arc::clone(self), number, off }
    }

    /// Calls off the request with this id.
    pub fn call_off(&self, id: &RawValue) -> Called {
        let entries = self.entries();
        let found = entries.held.values().find(|entry| match &entry.asker {
            Asker::One(own) => peek::same_id(own, id),
            Asker::Batch(ids) => ids.iter().any(|own| peek::same_id(own, id)),
            Asker::Nobody => false,
        });
        match found {
            Some(entry) if entry.modern => {
                entry.off.notify_one();
                Called::Off
            }
            Some(entry) => Called::Follow(entry.progress.clone()),
            None => Called::Unknown,
        }
    }

    /// Calls off what would never end by itself.
    pub fn call_off_endless(&self) {
        for entry in self.entries().held.values().filter(|entry| entry.endless) {
            entry.off.notify_one();
        }
    }

    /// Everyone who waits now.
    pub fn askers(&self) -> Vec<Asker> {
        self.entries().held.values().map(|entry| entry.asker.clone()).collect()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// Returns when the request is called off.
    pub async fn called_off(&self) {
        self.off.notified().await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.register.entries().held.remove(&self.number);
    }
}
