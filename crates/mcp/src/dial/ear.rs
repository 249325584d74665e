//! Where everything a source says beside its answers is sorted: to the call it belongs to, or to the supervisor.
//!
//! Never waits. When the supervisor is behind, log messages and unknown notices are dropped; news of lists and of
//! resources is put together and told as soon as there is room, since whoever missed it would stay wrong for good.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::value::RawValue;
use tokio::sync::mpsc::{self, error::TrySendError};
use toolcrib_core::{
    call::{Event, Events, Level},
    raw::{self, Members, ObjectWriter, Raw},
    source::{Lists, Tidings},
};

use crate::meta;

/// Resources whose news may wait for room; the news of more is dropped.
const MOST_OVERDUE: usize = 1024;

pub(crate) struct Ear {
    tidings: mpsc::Sender<Tidings>,
    overdue: Arc<Mutex<Overdue>>,
    following: Mutex<HashMap<u64, Events>>,
    next: AtomicU64,
}

/// News that found no room. Somebody waits to tell it exactly while it is not empty.
#[derive(Default)]
struct Overdue {
    lists: Option<Lists>,
    /// The last news of each resource, by its uri.
    resources: BTreeMap<String, Raw>,
}

impl Overdue {
    fn is_empty(&self) -> bool {
        self.lists.is_none() && self.resources.is_empty()
    }

    /// Keeps what must not be lost; gives back what may be.
    fn keep(&mut self, tidings: Tidings) -> Option<Tidings> {
        match tidings {
            Tidings::ListChanged(lists) => self.lists = Some(lists | self.lists.unwrap_or_default()),
            Tidings::ResourceUpdated { uri, message }
                if self.resources.len() < MOST_OVERDUE || self.resources.contains_key(&uri) =>
            {
                self.resources.insert(uri, message);
            }
            tidings => return Some(tidings),
        }
        None
    }

    fn next(&mut self) -> Option<Tidings> {
        let lists = self.lists.take().map(Tidings::ListChanged);
        lists.or_else(|| {
            let (uri, message) = self.resources.pop_first()?;
            Some(Tidings::ResourceUpdated { uri, message })
        })
    }
}

/// A call whose progress is followed until this is dropped.
pub(crate) struct Following {
    ear: Arc<Ear>,
    pub token: u64,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.ear.following.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

impl Ear {
    pub fn new(tidings: mpsc::Sender<Tidings>) -> Arc<Self> {
        let next = AtomicU64::new(1);
        Arc::new(Self { tidings, overdue: Arc::default(), following: Mutex::default(), next })
    }

    /// A progress token of our own, tied to `events`.
    pub fn follow(self: &Arc<Self>, events: &Events) -> Following {
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        self.following.lock().unwrap_or_else(PoisonError::into_inner).insert(token, events.clone());
        Following { ear: self.clone(), token }
    }

    /// Sorts one notification. `call`: the call on whose own stream it came, where there is such a stream.
    pub fn hear(&self, method: &str, params: Option<Raw>, call: Option<&Events>) {
        let tools = Lists { tools: true, ..Lists::default() };
        let prompts = Lists { prompts: true, ..Lists::default() };
        let resources = Lists { resources: true, ..Lists::default() };
        match method {
            "notifications/progress" => self.progress(params),
            "notifications/message" => self.log(params.unwrap_or_else(raw::empty_object), call),
            "notifications/tools/list_changed" => self.tell(Tidings::ListChanged(tools)),
            "notifications/prompts/list_changed" => self.tell(Tidings::ListChanged(prompts)),
            "notifications/resources/list_changed" => self.tell(Tidings::ListChanged(resources)),
            "notifications/resources/updated" => self.updated(params),
            "notifications/cancelled" | "notifications/subscriptions/acknowledged" => {}
            method => {
                let (method, params) = (method.to_owned(), params.map(without_reserved));
                match call {
                    Some(call) => call.emit(Event::Notice { method, params }),
                    None => self.tell(Tidings::Notice { method, params }),
                }
            }
        }
    }

    fn progress(&self, params: Option<Raw>) {
        let Some(params) = params.map(without_reserved) else { return };
        let token = Members::parse_lenient(&params)
            .find("progressToken")
            .and_then(|token| token.get().trim_matches('"').parse::<u64>().ok());
        let events = token.and_then(|token| {
            self.following.lock().unwrap_or_else(PoisonError::into_inner).get(&token).cloned()
        });
        match events {
            Some(events) => events.emit(Event::Progress(params)),
            None => tracing::debug!("progress of a call nobody follows was dropped"),
        }
    }

    fn log(&self, params: Raw, call: Option<&Events>) {
        let message = without_reserved(params);
        let level = Members::parse_lenient(&message)
            .text("level")
            .and_then(|word| Level::parse(&word))
            .unwrap_or(Level::Info);
        match call {
            Some(call) => call.emit(Event::Log { level, message }),
            None => self.tell(Tidings::Log { level, message }),
        }
    }

    fn updated(&self, params: Option<Raw>) {
        let Some(message) = params.map(without_reserved) else { return };
        match Members::parse_lenient(&message).text("uri") {
            Some(uri) => self.tell(Tidings::ResourceUpdated { uri, message }),
            None => tracing::debug!("news of a resource without `uri` was dropped"),
        }
    }

    pub fn tell(&self, tidings: Tidings) {
        let mut overdue = self.overdue.lock().unwrap_or_else(PoisonError::into_inner);
        let told = match tidings {
            // Not ahead of what came before it.
            Tidings::ListChanged(_) | Tidings::ResourceUpdated { .. } if !overdue.is_empty() => Err(tidings),
            tidings => self.tidings.try_send(tidings).map_err(TrySendError::into_inner),
        };
        let waited_for = !overdue.is_empty();
        let dropped = told.err().and_then(|tidings| overdue.keep(tidings));
        if dropped.is_some() {
            tracing::debug!("what a source said was dropped: there is no room for it");
        }
        if !waited_for && !overdue.is_empty() {
            tokio::spawn(catch_up(self.tidings.clone(), self.overdue.clone()));
        }
    }
}

/// Tells what is overdue, piece by piece, as room comes.
async fn catch_up(tidings: mpsc::Sender<Tidings>, overdue: Arc<Mutex<Overdue>>) {
    while let Ok(room) = tidings.reserve().await {
        let mut overdue = overdue.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(next) = overdue.next() {
            room.send(next);
        }
        if overdue.is_empty() {
            return;
        }
    }
}

/// The params without the `_meta` keys that belong to this hop; untouched bytes where there are none.
fn without_reserved(params: Raw) -> Raw {
    if !params.get().contains(meta::RESERVED) {
        return params;
    }
    let mut object = ObjectWriter::with_capacity(params.get().len());
    for (key, value) in Members::parse_lenient(&params).iter() {
        match key {
            "_meta" => {
                let rest = meta::without_reserved(value);
                if !rest.is_empty() {
                    object.member(key, &meta::object(&rest));
                }
            }
            key => {
                object.member(key, value as &RawValue);
            }
        }
    }
    object.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolcrib_core::testing::json;

    #[test]
    fn keys_of_the_hop_are_taken_out_and_others_keep_their_bytes() {
        let params = json(
            r#"{"uri":"a:b","_meta":{"io.modelcontextprotocol/subscriptionId":7,"x/y": 1.0},"z": 12345678901234567890}"#,
        );
        assert_eq!(
            without_reserved(params).get(),
            r#"{"uri":"a:b","_meta":{"x/y":1.0},"z":12345678901234567890}"#
        );
        let untouched = r#"{"a": 1 ,"_meta": {"b" :2}}"#;
        assert_eq!(without_reserved(json(untouched)).get(), untouched);
    }

    #[tokio::test]
    async fn news_of_lists_and_resources_waits_until_there_is_room() {
        let (sender, mut tidings) = mpsc::channel(1);
        let ear = Ear::new(sender);
        let updated = |n: u32| Some(json(&format!(r#"{{"uri":"a:b","n":{n}}}"#)));
        ear.hear("notifications/message", None, None);
        ear.hear("notifications/tools/list_changed", None, None);
        ear.hear("notifications/resources/updated", updated(1), None);
        ear.hear("notifications/prompts/list_changed", None, None);
        ear.hear("notifications/resources/updated", updated(2), None);
        ear.hear("notifications/message", None, None);
        assert!(matches!(tidings.recv().await, Some(Tidings::Log { .. })));
        let both = Lists { tools: true, prompts: true, resources: false };
        assert!(matches!(tidings.recv().await, Some(Tidings::ListChanged(lists)) if lists == both));
        assert!(matches!(tidings.recv().await, Some(Tidings::ResourceUpdated { message, .. })
            if message.get().contains(r#""n":2"#)));
        assert!(tidings.try_recv().is_err(), "log messages are dropped when there is no room");
        ear.hear("notifications/tools/list_changed", None, None);
        assert!(matches!(tidings.recv().await, Some(Tidings::ListChanged(_))));
    }

    #[test]
    fn progress_goes_to_the_call_that_holds_the_token() {
        let (sender, _tidings) = mpsc::channel(1);
        let ear = Ear::new(sender);
        let (events, mut heard) = Events::channel();
        let (other, mut unheard) = Events::channel();
        let (one, two) = (ear.follow(&events), ear.follow(&other));
        assert_ne!(one.token, two.token);
        ear.hear(
            "notifications/progress",
            Some(json(&format!(r#"{{"progressToken":{}}}"#, one.token))),
            None,
        );
        assert!(matches!(heard.try_recv(), Ok(Event::Progress(_))));
        assert!(unheard.try_recv().is_err());
        let token = one.token;
        drop(one);
        ear.hear("notifications/progress", Some(json(&format!(r#"{{"progressToken":{token}}}"#))), None);
        assert!(heard.try_recv().is_err());
    }
}
