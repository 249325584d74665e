//! Lists from the catalog: what this caller may see, page by page, in the catalog's order.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::value::RawValue;
use toolcrib_core::{
    catalog::{Catalog, Section},
    gateway::Gateway,
    raw::{Members, ObjectWriter},
};

use crate::{
    codes::Fault,
    serve::{render, request::invalid, visit::Asker},
    version::Era,
};

/// Entries on one page.
const PAGE: usize = 500;

/// One of the four lists.
#[derive(Clone, Copy)]
pub enum List {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl List {
    pub fn of(method: &str) -> Option<Self> {
        match method {
            "tools/list" => Some(List::Tools),
            "prompts/list" => Some(List::Prompts),
            "resources/list" => Some(List::Resources),
            "resources/templates/list" => Some(List::Templates),
            _ => None,
        }
    }

    fn key(self) -> &'static str {
        match self {
            List::Tools => "tools",
            List::Prompts => "prompts",
            List::Resources => "resources",
            List::Templates => "resourceTemplates",
        }
    }

    fn section(self, catalog: &Catalog) -> &Section {
        match self {
            List::Tools => catalog.tools(),
            List::Prompts => catalog.prompts(),
            List::Resources => catalog.resources(),
            List::Templates => catalog.templates(),
        }
    }
}

/// The text of the result of a list request.
pub async fn list(
    gateway: &Gateway,
    asker: &Asker,
    which: List,
    params: Option<&RawValue>,
) -> Result<String, Fault> {
    gateway.supervisor().ensure_known().await;
    let catalog = gateway.catalog().snapshot();
    let members = params.map(Members::parse_lenient).unwrap_or_default();
    let after = match members.find("cursor") {
        None => None,
        Some(raw) => {
            Some(place(raw).ok_or_else(|| invalid("`params.cursor` is not one this crib gave out"))?)
        }
    };
    let mut entries = which.section(&catalog).visible(&asker.caller, gateway.policy()).peekable();
    if let Some(after) = &after {
        // The entry the last page ended with may be gone by now; then the client starts over.
        if !entries.by_ref().any(|entry| *entry.item.id == **after) {
            return Err(invalid(
                "`params.cursor` has expired because the list changed; list again without it",
            ));
        }
    }
    let mut body = String::from("[");
    let mut last = None;
    for entry in entries.by_ref().take(PAGE) {
        if body.len() > 1 {
            body.push(',');
        }
        body.push_str(entry.listing(asker.style).get());
        last = Some(entry.item.id.clone());
    }
    body.push(']');
    let mut result = ObjectWriter::with_capacity(body.len() + 256);
    result.raw(which.key(), &body);
    if let (Some(last), true) = (last, entries.peek().is_some()) {
        result.text("nextCursor", &URL_SAFE_NO_PAD.encode(last.as_bytes()));
    }
    if asker.era == Era::Modern {
        result.text("resultType", "complete");
        result.raw("ttlMs", &fresh_ms(&catalog).to_string()).text("cacheScope", "private");
        render::sign(&mut result, Vec::new());
    }
    Ok(result.into_text())
}

fn place(raw: &RawValue) -> Option<String> {
    String::from_utf8(URL_SAFE_NO_PAD.decode(toolcrib_core::raw::text(raw)?).ok()?).ok()
}

/// A list made of many is as fresh as the least fresh of them.
fn fresh_ms(catalog: &Catalog) -> u64 {
    let sources = catalog.shelves().iter().filter(|shelf| !shelf.builtin);
    sources.map(|shelf| shelf.offer.fresh_ms.unwrap_or(0)).min().unwrap_or(0)
}
