//! Everything a source lists, read page by page and definition by definition.
//!
//! Only declared lists are asked for. A list of tools that cannot be read is a failure; the others are a mishap.

use std::collections::HashSet;

use serde_json::value::RawValue;
use toolcrib_core::{
    catalog::Offer,
    error::{Failure, Kind},
    raw::{self, Members, ObjectWriter, Raw},
};

use crate::{
    codes,
    dial::{
        link::{Ask, Link, Trouble},
        params,
        peer::{Listed, Peer},
    },
    version::Era,
};

const MOST_PAGES: usize = 200;

/// One list, whole.
#[derive(Default)]
struct Listing {
    raws: Vec<Raw>,
    fresh_ms: Option<u64>,
}

pub(crate) async fn read(link: &dyn Link, peer: &Peer) -> Result<Offer, Failure> {
    let (tools, prompts, resources, templates) = tokio::join!(
        list(link, peer, peer.can.tools, "tools/list", "tools"),
        list(link, peer, peer.can.prompts, "prompts/list", "prompts"),
        list(link, peer, peer.can.resources, "resources/list", "resources"),
        list(link, peer, peer.can.resources, "resources/templates/list", "resourceTemplates"),
    );
    let mut offer = Offer {
        has_resources: peer.can.resources.is_some(),
        instructions: peer.instructions.clone(),
        ..Offer::default()
    };
    let mut mishaps = Vec::new();
    let lists = [
        (&mut offer.tools, "name", tools?),
        (&mut offer.prompts, "name", or_mishap(prompts, "prompts", &mut mishaps)),
        (&mut offer.resources, "uri", or_mishap(resources, "resources", &mut mishaps)),
        (&mut offer.templates, "uriTemplate", or_mishap(templates, "resource templates", &mut mishaps)),
    ];
    for (definitions, key, listing) in lists {
        offer.fresh_ms = offer.fresh_ms.into_iter().chain(listing.fresh_ms).min();
        Offer::read(definitions, key, listing.raws, &mut mishaps);
    }
    offer.mishaps = mishaps;
    Ok(offer)
}

fn or_mishap(listing: Result<Listing, Trouble>, what: &str, mishaps: &mut Vec<String>) -> Listing {
    listing.unwrap_or_else(|trouble| {
        // Whoever declares resources need not have templates, and many then do not know the method.
        if trouble.code() != Some(codes::METHOD_NOT_FOUND) {
            mishaps.push(format!("its {what} cannot be listed: {}", Failure::from(trouble).told));
        }
        Listing::default()
    })
}

async fn list(
    link: &dyn Link,
    peer: &Peer,
    declared: Option<Listed>,
    method: &str,
    key: &str,
) -> Result<Listing, Trouble> {
    let mut listing = Listing::default();
    if declared.is_none() {
        return Ok(listing);
    }
    let mut seen = HashSet::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let page = link.request(Ask::new(method, page_params(peer, cursor.as_deref())), None).await?;
        let members = Members::parse_lenient(&page);
        listing.raws.extend(members.find(key).and_then(definitions).ok_or_else(|| {
            Trouble::failed(Kind::BadSource, format!("the answer to `{method}` has no list `{key}`"))
        })?);
        if peer.era() == Era::Modern {
            let fresh = members.find("ttlMs").and_then(|ttl| ttl.get().parse().ok());
            listing.fresh_ms = listing.fresh_ms.into_iter().chain(fresh).min();
        }
        match members.find("nextCursor").and_then(raw::text) {
            Some(next) if seen.insert(next.clone()) => cursor = Some(next),
            Some(_) => {
                tracing::warn!(method, "a source repeats its cursor; the list ends here");
                return Ok(listing);
            }
            None => return Ok(listing),
        }
    }
    tracing::warn!(method, pages = MOST_PAGES, "a source's list has no end; the rest is left out");
    Ok(listing)
}

fn definitions(list: &RawValue) -> Option<Vec<Raw>> {
    serde_json::from_str(list.get()).ok()
}

fn page_params(peer: &Peer, cursor: Option<&str>) -> Option<Raw> {
    let mut params = ObjectWriter::default();
    if let Some(cursor) = cursor {
        params.text("cursor", cursor);
    }
    let params = params.finish();
    match (peer.era(), cursor) {
        (Era::Modern, _) => Some(params::modern(params)),
        (Era::Legacy, Some(_)) => Some(params),
        (Era::Legacy, None) => None,
    }
}
