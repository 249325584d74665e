//! All tools, prompts and resources known now: one immutable snapshot with a revision, swapped whole.
//!
//! A snapshot is built from what each source offers ([`Shelf`]) and answers three questions: what is there,
//! in a fixed order; what does this spelling mean to this caller; do these arguments fit. It never asks a
//! source anything. Who may see what is `policy`'s to say, and is asked before arguments are looked at.

pub mod entry;
pub mod name;
pub mod offer;

pub mod build;

mod cost;
pub mod schema;
pub mod template;

pub mod live;

use std::{collections::HashMap, sync::Arc};

pub use entry::{Entry, Item, ItemKind};
pub use live::LiveCatalog;
pub use name::Style;
pub use offer::{Definition, Offer, Shelf};

use crate::{
    call::{Call, Invocation, Target, Verb},
    caller::Caller,
    error::{Failure, Kind},
    id::SourceId,
    policy::Policy,
};

/// One snapshot.
#[derive(Default)]
pub struct Catalog {
    /// Hash of everything in it: equal revisions mean equal catalogs, also across restarts.
    revision: String,
    tools: Section,
    prompts: Section,
    resources: Section,
    templates: Section,
    shelves: Vec<Arc<Shelf>>,
}

/// The entries of one kind, in the order (source, name), and every spelling they answer to.
#[derive(Default)]
pub struct Section {
    entries: Vec<Arc<Entry>>,
    /// Ids and listed names: one meaning each.
    exact: HashMap<Box<str>, usize>,
    /// Bare names: as many meanings as there are sources that use them.
    bare: HashMap<Box<str>, Vec<usize>>,
}

impl Section {
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// The entries this caller may see.
    pub fn visible<'a>(
        &'a self,
        caller: &'a Caller,
        policy: &'a Policy,
    ) -> impl Iterator<Item = &'a Arc<Entry>> {
        self.entries.iter().filter(move |entry| policy.shows(caller, &entry.item))
    }

    /// What `spelling` means to one who sees what `sees` says: none, one, or several.
    fn meanings(&self, spelling: &str, sees: impl Fn(&Entry) -> bool) -> Vec<&Arc<Entry>> {
        if let Some(entry) = self.exact.get(spelling).and_then(|at| self.entries.get(*at))
            && sees(entry)
        {
            return vec![entry];
        }
        let places = self.bare.get(spelling).map(Vec::as_slice).unwrap_or_default();
        places.iter().filter_map(|at| self.entries.get(*at)).filter(|entry| sees(entry)).collect()
    }
}

impl Catalog {
    pub fn revision(&self) -> &str {
        &self.revision
    }
    pub fn tools(&self) -> &Section {
        &self.tools
    }
    pub fn prompts(&self) -> &Section {
        &self.prompts
    }
    pub fn resources(&self) -> &Section {
        &self.resources
    }
    pub fn templates(&self) -> &Section {
        &self.templates
    }
    pub fn shelves(&self) -> &[Arc<Shelf>] {
        &self.shelves
    }

    fn shelf(&self, id: &SourceId) -> Option<&Arc<Shelf>> {
        self.shelves.iter().find(|shelf| shelf.id == *id)
    }

    /// Step 4 of the path, first half: a name becomes an item this caller may see.
    pub fn find(&self, target: &Target, caller: &Caller, policy: &Policy) -> Result<Item, Failure> {
        match target {
            Target::Tool(name) => Ok(self.pick(&self.tools, "tool", name, caller, policy)?.item.clone()),
            Target::Prompt(name) | Target::CompletePrompt(name) => {
                Ok(self.pick(&self.prompts, "prompt", name, caller, policy)?.item.clone())
            }
            Target::Resource(uri) => self.resource(uri, caller, policy),
            Target::CompleteResource(template) => self.template(template, caller, policy),
            Target::Method { source, method } => self.method(source.as_ref(), method, caller, policy),
        }
    }

    /// Step 4, second half: the arguments against the tool's schema.
    pub fn check(&self, call: Call, item: Item) -> Result<Invocation, Failure> {
        if let (Target::Tool(_), Some(facets)) = (&call.target, &item.facets) {
            facets.schema.check(call.arguments.as_deref()).map_err(|mistakes| {
                let told = format!("the arguments do not fit the schema of `{}`: {mistakes}", item.id);
                // The mistakes quote arguments, which the ledger does not keep.
                Failure::new(Kind::InvalidArguments, told).detail("the arguments do not fit the schema")
            })?;
        }
        let patience = self.shelf(&item.source).map_or(offer::PATIENCE, |shelf| shelf.patience);
        Ok(Invocation {
            call: call.id,
            caller: call.caller,
            verb: Verb::of(&call.target),
            item,
            arguments: call.arguments,
            carry: call.carry,
            patience,
        })
    }

    /// The one entry this spelling means to this caller.
    pub fn pick<'a>(
        &self,
        section: &'a Section,
        what: &str,
        spelling: &str,
        caller: &Caller,
        policy: &Policy,
    ) -> Result<&'a Arc<Entry>, Failure> {
        match section.meanings(spelling, |entry| policy.shows(caller, &entry.item)).as_slice() {
            [one] => Ok(one),
            [] => {
                let hidden = section
                    .meanings(spelling, |_| true)
                    .first()
                    .and_then(|entry| policy.hides(caller, &entry.item));
                let unknown = Failure::unknown(what, spelling);
                Err(match hidden {
                    Some(layer) => unknown.detail("it exists and is hidden from this caller").layer(layer),
                    None => unknown,
                })
            }
            several => {
                let ids: Vec<_> = several.iter().map(|entry| format!("`{}`", entry.item.id)).collect();
                Err(Failure::new(
                    Kind::Ambiguous,
                    format!("`{spelling}` is offered by several sources, say which: {}", ids.join(", ")),
                ))
            }
        }
    }

    /// A resource by its URI: listed, covered by a template, spelt `source+uri`, or the only source's.
    fn resource(&self, uri: &str, caller: &Caller, policy: &Policy) -> Result<Item, Failure> {
        let listed = self.pick(&self.resources, "resource", uri, caller, policy);
        match listed {
            Ok(entry) => return Ok(entry.item.clone()),
            Err(failure) if failure.kind == Kind::Ambiguous || failure.layer.is_some() => {
                return Err(failure);
            }
            Err(_) => {}
        }
        let sees = |item: &Item| policy.shows(caller, item);
        if let Some((shelf, own)) = self.qualified(uri) {
            let item = Item::unlisted(ItemKind::Resource, &shelf.id, own);
            let shown = sees(&item) && !shelf.settings.hide.is_match(own);
            return if shown { Ok(item) } else { Err(Failure::unknown("resource", uri)) };
        }
        let by_template = self.templates.entries.iter().filter(|entry| entry.matches(uri));
        let mut places: Vec<&SourceId> = by_template.map(|entry| &entry.item.source).collect();
        places.dedup();
        if places.is_empty() {
            places = self.shelves.iter().filter(|shelf| shelf.has_resources).map(|shelf| &shelf.id).collect();
        }
        let mut items = places
            .into_iter()
            .filter(|source| self.shelf(source).is_none_or(|shelf| !shelf.settings.hide.is_match(uri)))
            .map(|source| Item::unlisted(ItemKind::Resource, source, uri))
            .filter(|item| sees(item));
        match (items.next(), items.next()) {
            (Some(item), None) => Ok(item),
            (None, _) => Err(Failure::unknown("resource", uri)),
            (Some(first), Some(_)) => Err(Failure::unknown("resource", uri)
                .detail(format!("no source lists it; `{}+{uri}` would ask one of them", first.source))),
        }
    }

    /// `source+uri`, where there is such a source.
    fn qualified<'a>(&self, uri: &'a str) -> Option<(&Arc<Shelf>, &'a str)> {
        let (source, own) = uri.split_once('+')?;
        Some((self.shelves.iter().find(|shelf| shelf.id.as_str() == source)?, own))
    }

    fn template(&self, uri: &str, caller: &Caller, policy: &Policy) -> Result<Item, Failure> {
        match self.pick(&self.templates, "resource template", uri, caller, policy) {
            Ok(entry) => Ok(entry.item.clone()),
            Err(failure) => self.resource(uri, caller, policy).map_err(|other| match other.layer {
                Some(_) => other,
                None => failure,
            }),
        }
    }

    fn method(
        &self,
        source: Option<&SourceId>,
        method: &str,
        caller: &Caller,
        policy: &Policy,
    ) -> Result<Item, Failure> {
        let mut items = self
            .shelves
            .iter()
            .filter(|shelf| !shelf.builtin && source.is_none_or(|id| shelf.id == *id))
            .filter(|shelf| shelf.settings.shows(method))
            .map(|shelf| Item::unlisted(ItemKind::Method, &shelf.id, method))
            .filter(|item| policy.shows(caller, item));
        match (items.next(), items.next()) {
            (Some(item), None) => Ok(item),
            _ => Err(Failure::unknown("method", method)),
        }
    }
}

#[cfg(test)]
mod tests;
