//! News of the crib as notifications for one client.

use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::sync::broadcast::error::RecvError;
use toolcrib_core::{
    call::Level,
    catalog::{Item, ItemKind},
    gateway::Gateway,
    id::SourceId,
    news::News,
    raw::{Members, ObjectWriter, Raw},
    source::Lists,
};

use crate::{
    meta,
    serve::visit::{Asker, Visit},
};

/// One notification to send.
pub struct Note {
    pub method: String,
    pub params: Option<Raw>,
}

impl Note {
    pub fn plain(method: &str) -> Self {
        Self { method: method.to_owned(), params: None }
    }
}

pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";

/// What a legacy client is told next; none when there will be no more news.
pub fn heard(
    heard: Result<Arc<News>, RecvError>,
    visit: &Visit,
    gateway: &Arc<Gateway>,
) -> Option<Vec<Note>> {
    match heard {
        Ok(news) => Some(legacy(&news, visit, gateway)),
        // What was missed may have been any of them.
        Err(RecvError::Lagged(_)) => Some(lists(Lists::ALL)),
        Err(RecvError::Closed) => None,
    }
}

/// One `list_changed` for each of the lists.
pub fn lists(changed: Lists) -> Vec<Note> {
    [
        (changed.tools, "notifications/tools/list_changed"),
        (changed.prompts, "notifications/prompts/list_changed"),
        (changed.resources, "notifications/resources/list_changed"),
    ]
    .into_iter()
    .filter(|(told, _)| *told)
    .map(|(_, method)| Note::plain(method))
    .collect()
}

fn legacy(news: &News, visit: &Visit, gateway: &Arc<Gateway>) -> Vec<Note> {
    match news {
        News::Catalog { tools, prompts, resources, .. } => {
            lists(Lists { tools: *tools, prompts: *prompts, resources: *resources })
        }
        News::Resource { source, uri, message } => {
            let spelt = visit
                .spelling(source, uri)
                .filter(|_| visit.asker().is_some_and(|asker| may_hear(&asker, source, uri, gateway)));
            spelt.map(|spelt| updated(message, &spelt)).into_iter().collect()
        }
        News::Log { source, level, message } if wanted(visit, *level, source, gateway) => {
            vec![Note { method: "notifications/message".to_owned(), params: Some(message.clone()) }]
        }
        News::Notice { source, method, params } if sees(visit, source, gateway) => {
            vec![Note { method: method.clone(), params: params.clone() }]
        }
        News::Log { .. } | News::Notice { .. } | News::Source { .. } => Vec::new(),
    }
}

fn wanted(visit: &Visit, level: Level, source: &SourceId, gateway: &Arc<Gateway>) -> bool {
    visit.log() <= level && sees(visit, source, gateway)
}

/// Whether the caller may still see a resource it once began to watch.
pub fn may_hear(asker: &Asker, source: &SourceId, uri: &str, gateway: &Gateway) -> bool {
    gateway.policy().shows(&asker.caller, &Item::unlisted(ItemKind::Resource, source, uri))
}

/// Whether the client's caller may see anything of the source.
fn sees(visit: &Visit, source: &SourceId, gateway: &Arc<Gateway>) -> bool {
    let Some(asker) = visit.asker() else { return false };
    let catalog = gateway.catalog().snapshot();
    let policy = gateway.policy();
    [catalog.tools(), catalog.prompts(), catalog.resources()]
        .into_iter()
        .any(|section| section.visible(&asker.caller, policy).any(|entry| entry.item.source == *source))
}

/// `resources/updated` under the URI by which the client knows the resource.
pub fn updated(message: &RawValue, uri: &str) -> Note {
    let mut object = ObjectWriter::default();
    object.text("uri", uri);
    for (key, value) in Members::parse_lenient(message).iter().filter(|(key, _)| *key != "uri") {
        object.member(key, value);
    }
    Note { method: RESOURCE_UPDATED.to_owned(), params: Some(object.finish()) }
}

/// The params of a notification with the id of the subscription it belongs to.
pub fn tagged(params: Option<&RawValue>, subscription: &RawValue) -> Raw {
    let members = params.map(Members::parse_lenient).unwrap_or_default();
    let mut object = ObjectWriter::default();
    for (key, value) in members.iter().filter(|(key, _)| *key != "_meta") {
        object.member(key, value);
    }
    let mut about = members.find("_meta").map(meta::without_reserved).unwrap_or_default();
    about.push((meta::SUBSCRIPTION_ID.to_owned(), subscription.to_owned()));
    object.member("_meta", &meta::object(&about));
    object.finish()
}
