//! Makes one snapshot from what all sources offer. Pure: the same shelves always give the same catalog.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    sync::{Arc, OnceLock},
};

use serde_json::{Value, value::RawValue};
use sha2::{Digest, Sha256};

use crate::{
    catalog::{
        Catalog, Section,
        entry::{Entry, Facets, HeaderParam, Item, ItemKind},
        name::{self, Names, Shared, Wanted},
        offer::{Definition, Shelf},
        schema::Schema,
        template::Template,
    },
    id::SourceId,
    raw::Members,
};

/// `shelves` in any order; the catalog is in the order of their ids.
pub fn build(mut shelves: Vec<Arc<Shelf>>) -> Catalog {
    shelves.sort_by(|a, b| a.id.cmp(&b.id));
    let named = |kind, pick: fn(&Shelf) -> &[Definition]| named_section(&shelves, kind, pick);
    let addressed = |kind, pick: fn(&Shelf) -> &[Definition]| addressed_section(&shelves, kind, pick);
    let mut catalog = Catalog {
        revision: String::new(),
        tools: named(ItemKind::Tool, |shelf| &shelf.offer.tools),
        prompts: named(ItemKind::Prompt, |shelf| &shelf.offer.prompts),
        resources: addressed(ItemKind::Resource, |shelf| &shelf.offer.resources),
        templates: addressed(ItemKind::Template, |shelf| &shelf.offer.templates),
        shelves,
    };
    catalog.revision = revision(&catalog);
    catalog
}

fn revision(catalog: &Catalog) -> String {
    let mut hash = Sha256::new();
    for section in [&catalog.tools, &catalog.prompts, &catalog.resources, &catalog.templates] {
        for entry in &section.entries {
            for part in [&*entry.item.id, &*entry.names.safe, entry.definition.get(), &*entry.described()] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part.as_bytes());
            }
        }
        hash.update([0xff]);
    }
    hash.finalize().iter().take(8).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// One definition on its way into a section.
struct Draft<'a> {
    shelf: &'a Shelf,
    own: &'a str,
    name: String,
    id: String,
    raw: &'a Arc<RawValue>,
}

/// Tools and prompts: renamed, stripped, spelt in every style.
fn named_section(shelves: &[Arc<Shelf>], kind: ItemKind, pick: fn(&Shelf) -> &[Definition]) -> Section {
    let mut drafts: Vec<Draft<'_>> = shelves.iter().flat_map(|shelf| drafts(shelf, pick(shelf))).collect();
    drafts.sort_by(|a, b| (&a.shelf.id, &a.name).cmp(&(&b.shelf.id, &b.name)));
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for draft in &drafts {
        *uses.entry(&draft.name).or_default() += 1;
    }
    let wanted: Vec<Wanted<'_>> = drafts
        .iter()
        .map(|draft| Wanted {
            id: &draft.id,
            source: draft.shelf.id.as_str(),
            prefix: &draft.shelf.settings.prefix,
            name: &draft.name,
            shared: if uses.get(draft.name.as_str()) == Some(&1) {
                Shared::Alone
            } else {
                Shared::WithOthers
            },
        })
        .collect();
    let names = name::spell(&wanted);
    let entries =
        drafts.iter().zip(names).map(|(draft, names)| Arc::new(entry(draft, kind, names))).collect();
    section(entries)
}

/// What one source shows, under the names it is shown by. Of two that end up alike the first stays.
fn drafts<'a>(shelf: &'a Shelf, definitions: &'a [Definition]) -> Vec<Draft<'a>> {
    let settings = &shelf.settings;
    let own_names: HashSet<&str> = definitions.iter().map(|d| d.name.as_str()).collect();
    let mut seen = HashSet::new();
    definitions
        .iter()
        .filter(|definition| settings.shows(&definition.name))
        .filter_map(|definition| {
            let own = definition.name.as_str();
            let name = match settings.rename.get(own) {
                Some(name) => name.clone(),
                None if settings.strip => stripped(&shelf.id, own, &own_names).to_owned(),
                None => own.to_owned(),
            };
            seen.insert(name.clone()).then(|| Draft {
                shelf,
                own,
                id: format!("{}:{name}", shelf.id),
                name,
                raw: &definition.raw,
            })
        })
        .collect()
}

/// `notion-search` of `notion` is `search`, unless that is empty or taken by another tool of the source.
fn stripped<'a>(source: &SourceId, own: &'a str, own_names: &HashSet<&str>) -> &'a str {
    let rest = own.strip_prefix(source.as_str()).and_then(|rest| rest.strip_prefix(['-', '_']));
    match rest {
        Some(rest) if !rest.is_empty() && !own_names.contains(rest) => {
            // Two spellings of one prefix (`a-x`, `a_x`) would end up alike: then neither is stripped.
            let twins = ["-", "_"]
                .iter()
                .filter(|mark| own_names.contains(format!("{source}{mark}{rest}").as_str()))
                .count();
            if twins > 1 { own } else { rest }
        }
        _ => own,
    }
}

fn entry(draft: &Draft<'_>, kind: ItemKind, names: Names) -> Entry {
    let members = Members::parse_lenient(draft.raw);
    let schema = members.find("inputSchema").filter(|_| kind == ItemKind::Tool);
    let settings = &draft.shelf.settings;
    let description = settings.describe.get(draft.own).or_else(|| settings.describe.get(&draft.name));
    let description: Option<Arc<str>> = match description {
        Some(text) => Some(text.as_str().into()),
        // Some clients refuse a tool that says nothing about itself.
        None if kind == ItemKind::Tool && members.text("description").is_none() => Some(
            members.text("title").unwrap_or_else(|| format!("{} tool {}", draft.shelf.id, draft.name)).into(),
        ),
        None => None,
    };
    let facets = Facets {
        headers: schema.map(header_params).unwrap_or_default(),
        schema: Schema::new(schema.map(|raw| Arc::from(raw.to_owned()))),
    };
    Entry {
        item: Item {
            kind,
            source: draft.shelf.id.clone(),
            id: draft.id.as_str().into(),
            own: draft.own.into(),
            facets: Some(Arc::new(facets)),
        },
        name: draft.name.as_str().into(),
        names,
        definition: draft.raw.clone(),
        description,
        template: (kind == ItemKind::Template).then(|| Template::parse(draft.own)),
        listed: [const { OnceLock::new() }; 3],
    }
}

/// Arguments annotated `x-mcp-header`, found through nested object properties. One wrong annotation voids them all, as
/// it does for clients; the tool itself stays usable.
fn header_params(schema: &RawValue) -> Vec<HeaderParam> {
    fn walk(schema: &Value, path: &mut Vec<String>, found: &mut Vec<HeaderParam>) -> Option<()> {
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            path.push(name.clone());
            if let Some(header) = property.get("x-mcp-header") {
                let header = header.as_str().filter(|text| is_token(text))?;
                let kind = property.get("type").and_then(Value::as_str)?;
                let twice = found.iter().any(|param| param.header.eq_ignore_ascii_case(header));
                if twice || !matches!(kind, "string" | "integer" | "boolean") {
                    return None;
                }
                found.push(HeaderParam { header: header.to_owned(), path: path.clone() });
            }
            walk(property, path, found)?;
            path.pop();
        }
        Some(())
    }
    if !schema.get().contains("x-mcp-header") {
        return Vec::new();
    }
    let mut found = Vec::new();
    let value: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    walk(&value, &mut Vec::new(), &mut found).map(|()| found).unwrap_or_default()
}

/// A token of RFC 9110, which is what a header's name may be.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// Resources and templates keep their URI; where two sources share one, each is listed as `source+uri`.
fn addressed_section(shelves: &[Arc<Shelf>], kind: ItemKind, pick: fn(&Shelf) -> &[Definition]) -> Section {
    let mut owners: HashMap<&str, HashSet<&SourceId>> = HashMap::new();
    for shelf in shelves {
        for definition in pick(shelf) {
            owners.entry(&definition.name).or_default().insert(&shelf.id);
        }
    }
    let mut entries = Vec::new();
    for shelf in shelves {
        let mut seen = HashSet::new();
        let mut kept: Vec<&Definition> = pick(shelf)
            .iter()
            .filter(|d| !shelf.settings.hide.is_match(&d.name) && seen.insert(&d.name))
            .collect();
        kept.sort_by(|a, b| a.name.cmp(&b.name));
        for definition in kept {
            let uri = definition.name.as_str();
            let clash = owners.get(uri).is_some_and(|sources| sources.len() > 1);
            let listed: Arc<str> = if clash { qualified(&shelf.id, uri).into() } else { uri.into() };
            let names = Names { safe: listed.clone(), colon: listed.clone(), bare: listed };
            let draft = Draft {
                shelf,
                own: uri,
                name: uri.to_owned(),
                id: format!("{}:{uri}", shelf.id),
                raw: &definition.raw,
            };
            entries.push(Arc::new(entry(&draft, kind, names)));
        }
    }
    section(entries)
}

/// A URI told apart from another source's. `ui://` keeps its scheme, because hosts look for it.
fn qualified(source: &SourceId, uri: &str) -> String {
    match uri.strip_prefix("ui://") {
        Some(rest) => format!("ui://{source}/{rest}"),
        None => format!("{source}+{uri}"),
    }
}

fn section(entries: Vec<Arc<Entry>>) -> Section {
    let mut section = Section { entries, exact: HashMap::new(), bare: HashMap::new() };
    let entries = section.entries.iter().enumerate();
    for (at, entry) in entries.clone() {
        section.exact.entry((*entry.item.id).into()).or_insert(at);
    }
    for (at, entry) in entries.clone() {
        for listed in [&entry.names.safe, &entry.names.colon] {
            section.exact.entry((**listed).into()).or_insert(at);
        }
    }
    for (at, entry) in entries {
        let raw_id = format!("{}:{}", entry.item.source, entry.item.own);
        section.exact.entry(raw_id.into()).or_insert(at);
        for bare in [&entry.name, &entry.item.own] {
            let places = section.bare.entry((**bare).into()).or_default();
            if !places.contains(&at) {
                places.push(at);
            }
        }
    }
    section
}
