//! `subscriptions/listen`: a modern client's long request for news. Acknowledged first, then every notification tagged
//! with the id of the request, then, when the crib closes, one result.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde_json::value::RawValue;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;
use toolcrib_core::{
    call::Target,
    error::Retry,
    gateway::Gateway,
    id::SourceId,
    news::News,
    raw::{self, Members, ObjectWriter, Raw},
    source::{Lists, terms::Watch},
};

use crate::{
    meta,
    serve::{
        Desk,
        feed::{self, Note},
        visit::{Asker, Who},
    },
    version::Era,
    wire::{self, Id},
};

/// Most resources one listen request may name; further ones are not acknowledged.
const MOST_WATCHED: usize = 1000;

/// A source that is not there is asked again after a while.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A client whose caller was removed is let go after this long at the latest.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// One listening client.
pub struct Listening {
    id: Id,
    who: Who,
    gateway: Arc<Gateway>,
    wanted: Wanted,
    news: broadcast::Receiver<Arc<News>>,
    waiting: Vec<String>,
    closing: CancellationToken,
    /// Cancelled when nobody listens any more.
    stop: CancellationToken,
    ended: bool,
}

/// What the client asked for and may have.
#[derive(Default)]
struct Wanted {
    tools: bool,
    prompts: bool,
    resources: bool,
    /// Where each watched resource is, and how the client spells it.
    watched: HashMap<(SourceId, String), String>,
}

impl Listening {
    /// The acknowledgement says what was asked for and exists. Sources are asked to report it afterwards, each in its
    /// own time.
    pub async fn begin(desk: &Desk, asker: &Asker, id: Id, params: Option<&RawValue>) -> Self {
        let news = desk.gateway.newsroom().listen();
        let members = params.map(Members::parse_lenient).unwrap_or_default();
        let filter = members.find("notifications").map(Members::parse_lenient).unwrap_or_default();
        let on = |key: &str| filter.find(key).is_some_and(|value| value.get() == "true");
        let mut this = Self {
            id,
            who: Who::new(&desk.callers, asker),
            gateway: desk.gateway.clone(),
            wanted: Wanted {
                tools: on("toolsListChanged"),
                prompts: on("promptsListChanged"),
                resources: on("resourcesListChanged"),
                watched: HashMap::new(),
            },
            news,
            waiting: Vec::new(),
            closing: desk.closing.clone(),
            stop: CancellationToken::new(),
            ended: false,
        };
        let uris: Option<Vec<String>> =
            filter.find("resourceSubscriptions").and_then(|raw| serde_json::from_str(raw.get()).ok());
        let mut accepted = Vec::new();
        let mut places: HashMap<SourceId, Vec<String>> = HashMap::new();
        for uri in uris.unwrap_or_default().into_iter().take(MOST_WATCHED) {
            match desk.gateway.find(&Target::Resource(uri.clone()), &asker.caller).await {
                Ok(item) => {
                    let place = (item.source.clone(), item.own.to_string());
                    if this.wanted.watched.insert(place, uri.clone()).is_none() {
                        places.entry(item.source).or_default().push(item.own.to_string());
                    }
                    accepted.push(uri);
                }
                Err(failure) => tracing::debug!(uri, error = %failure.told, "not watched"),
            }
        }
        for (source, uris) in places {
            let (gateway, stop) = (desk.gateway.clone(), this.stop.clone());
            tokio::spawn(async move { keep_watching(&gateway, &source, uris, &stop).await });
        }
        this.waiting.push(this.acknowledgement(&accepted));
        this
    }

    fn acknowledgement(&self, uris: &[String]) -> String {
        let mut filter = ObjectWriter::default();
        for (wanted, key) in [
            (self.wanted.tools, "toolsListChanged"),
            (self.wanted.prompts, "promptsListChanged"),
            (self.wanted.resources, "resourcesListChanged"),
        ] {
            if wanted {
                filter.raw(key, "true");
            }
        }
        if !uris.is_empty() {
            filter.member("resourceSubscriptions", &raw::from(uris));
        }
        let mut params = ObjectWriter::default();
        params.member("notifications", &filter.finish());
        self.encode(Note {
            method: "notifications/subscriptions/acknowledged".to_owned(),
            params: Some(params.finish()),
        })
    }

    fn encode(&self, note: Note) -> String {
        wire::notification(&note.method, Some(&feed::tagged(note.params.as_deref(), self.id.raw())))
    }

    /// The next message; none after the result.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            if !self.waiting.is_empty() {
                return Some(self.waiting.remove(0));
            }
            if self.ended {
                return None;
            }
            let heard = tokio::select! {
                heard = self.news.recv() => heard,
                () = self.closing.cancelled() => Err(RecvError::Closed),
                () = tokio::time::sleep(LOOK_AGAIN) => {
                    if self.who.asker(Era::Modern).is_some() {
                        continue;
                    }
                    Err(RecvError::Closed)
                }
            };
            let notes = match heard {
                Ok(_) if self.who.asker(Era::Modern).is_none() => {
                    self.ended = true;
                    return Some(self.result());
                }
                Ok(news) => self.notes(&news),
                // What was missed may have been any of them.
                Err(RecvError::Lagged(_)) => self.lists(Lists::ALL),
                Err(RecvError::Closed) => {
                    self.ended = true;
                    return Some(self.result());
                }
            };
            let told: Vec<String> = notes.into_iter().map(|note| self.encode(note)).collect();
            self.waiting.extend(told);
        }
    }

    fn notes(&self, news: &News) -> Vec<Note> {
        match news {
            News::Catalog { tools, prompts, resources, .. } => {
                self.lists(Lists { tools: *tools, prompts: *prompts, resources: *resources })
            }
            News::Resource { source, uri, message } => {
                let asker = self.who.asker(Era::Modern);
                let heard = asker.is_some_and(|asker| feed::may_hear(&asker, source, uri, &self.gateway));
                let spelt = self.wanted.watched.get(&(source.clone(), uri.clone())).filter(|_| heard);
                spelt.map(|spelt| feed::updated(message, spelt)).into_iter().collect()
            }
            News::Log { .. } | News::Notice { .. } | News::Source { .. } => Vec::new(),
        }
    }

    /// Of the lists that changed, those the client asked for.
    fn lists(&self, changed: Lists) -> Vec<Note> {
        feed::lists(Lists {
            tools: self.wanted.tools && changed.tools,
            prompts: self.wanted.prompts && changed.prompts,
            resources: self.wanted.resources && changed.resources,
        })
    }

    fn result(&self) -> String {
        let about = vec![
            (meta::SUBSCRIPTION_ID.to_owned(), self.id.raw().to_owned()),
            (meta::SERVER_INFO.to_owned(), crate::serve::server_info()),
        ];
        let mut result = ObjectWriter::default();
        result.text("resultType", "complete").member("_meta", &meta::object(&about));
        let result: Raw = result.finish();
        wire::success(Some(&self.id), result.get())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Watches resources of one source until told to stop, then lets go of those it got.
async fn keep_watching(
    gateway: &Gateway,
    source: &SourceId,
    mut uris: Vec<String>,
    stop: &CancellationToken,
) {
    let supervisor = gateway.supervisor();
    let mut held = Vec::new();
    let mut pause = FIRST_PAUSE;
    while let Some(uri) = uris.pop()
        && !stop.is_cancelled()
    {
        match supervisor.watch(source, &uri, Watch::More).await {
            Ok(()) => held.push(uri),
            Err(failure) if failure.kind.retry() == Retry::MayHelp => {
                uris.push(uri);
                let _ = tokio::time::timeout(pause, stop.cancelled()).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(failure) => tracing::debug!(%source, uri, error = %failure.told, "not watched"),
        }
    }
    stop.cancelled().await;
    for uri in held {
        let _ = supervisor.watch(source, &uri, Watch::Fewer).await;
    }
}
