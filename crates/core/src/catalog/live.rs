//! The catalog that changes: shelves are put in and taken out, readers get whole snapshots without a lock.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;

use crate::{
    catalog::{Catalog, Section, build::build, offer::Shelf},
    id::SourceId,
    news::{News, Newsroom},
};

pub struct LiveCatalog {
    current: ArcSwap<Catalog>,
    shelves: Mutex<BTreeMap<SourceId, Arc<Shelf>>>,
    newsroom: Newsroom,
}

impl LiveCatalog {
    pub fn new(newsroom: Newsroom) -> Self {
        Self {
            current: ArcSwap::from_pointee(build(Vec::new())),
            shelves: Mutex::new(BTreeMap::new()),
            newsroom,
        }
    }

    pub fn snapshot(&self) -> Arc<Catalog> {
        self.current.load_full()
    }

    pub fn put(&self, shelf: Shelf) {
        self.change(|shelves| {
            shelves.insert(shelf.id.clone(), Arc::new(shelf));
        });
    }

    pub fn remove(&self, id: &SourceId) {
        self.change(|shelves| {
            shelves.remove(id);
        });
    }

    /// Builds the next snapshot and says what changed. The lock keeps writers in line; no reader waits for it.
    fn change(&self, edit: impl FnOnce(&mut BTreeMap<SourceId, Arc<Shelf>>)) {
        let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        edit(&mut shelves);
        let next = Arc::new(build(shelves.values().cloned().collect()));
        let last = self.current.swap(next.clone());
        if last.revision() != next.revision() {
            self.newsroom.tell(News::Catalog {
                revision: next.revision().to_owned(),
                tools: differs(last.tools(), next.tools()),
                prompts: differs(last.prompts(), next.prompts()),
                resources: differs(last.resources(), next.resources())
                    || differs(last.templates(), next.templates()),
            });
        }
    }
}

fn differs(last: &Section, next: &Section) -> bool {
    last.entries().len() != next.entries().len()
        || last.entries().iter().zip(next.entries()).any(|(a, b)| {
            a.item.id != b.item.id
                || a.names.safe != b.names.safe
                || a.definition.get() != b.definition.get()
                || a.description != b.description
        })
}
