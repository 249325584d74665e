//! One thing a source offers, as the catalog keeps it: what it is called, how the source gave it, and what the
//! crib made of it once (compiled schema, listings per name style).

use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    catalog::{
        name::{Names, Style},
        schema::Schema,
        template::Template,
    },
    id::SourceId,
    raw::{Members, ObjectWriter},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    Tool,
    Prompt,
    Resource,
    Template,
    /// A method of the source's protocol the crib does not know.
    Method,
}

/// What policy judges and a source is asked for. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Item {
    pub kind: ItemKind,
    pub source: SourceId,
    /// `source:name`; for resources `source:uri`. What globs are matched against and the ledger shows.
    pub id: Arc<str>,
    /// What the source itself calls it.
    pub own: Arc<str>,
    /// What the catalog made of its definition; none for a resource no list names, and for methods.
    pub facets: Option<Arc<Facets>>,
}

impl Item {
    /// Something of a source that no list of its names.
    pub fn unlisted(kind: ItemKind, source: &SourceId, own: &str) -> Self {
        Self {
            kind,
            source: source.clone(),
            id: format!("{source}:{own}").into(),
            own: own.into(),
            facets: None,
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }
}

/// What the crib made of a definition, once.
#[derive(Debug, Default)]
pub struct Facets {
    pub schema: Schema,
    /// Arguments that also travel as HTTP headers, where the wire has them.
    pub headers: Vec<HeaderParam>,
}

/// An argument annotated to be mirrored in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderParam {
    /// The name after the wire's own header prefix.
    pub header: String,
    /// The way to the argument from the root of the arguments object.
    pub path: Vec<String>,
}

/// One line of the catalog.
pub struct Entry {
    pub item: Item,
    /// The name within its source, after stripping and renaming.
    pub name: Arc<str>,
    pub names: Names,
    /// Exactly as the source gave it.
    pub definition: Arc<RawValue>,
    /// Said instead of the source's own description.
    pub description: Option<Arc<str>>,
    pub(super) template: Option<Template>,
    pub(super) listed: [OnceLock<Arc<RawValue>>; 3],
}

impl Entry {
    /// Whether this is a template that covers `uri`.
    pub fn matches(&self, uri: &str) -> bool {
        self.template.as_ref().is_some_and(|template| template.matches(uri))
    }

    /// The definition as it is listed: the source's own bytes but for the name, and the description where the
    /// operator wrote another.
    pub fn listing(&self, style: Style) -> &Arc<RawValue> {
        let [safe, colon, bare] = &self.listed;
        let (slot, name) = match style {
            Style::Safe => (safe, &self.names.safe),
            Style::Colon => (colon, &self.names.colon),
            Style::Bare => (bare, &self.names.bare),
        };
        slot.get_or_init(|| self.render(name))
    }

    fn render(&self, name: &str) -> Arc<RawValue> {
        let key = match self.item.kind {
            ItemKind::Tool | ItemKind::Prompt | ItemKind::Method => "name",
            ItemKind::Resource => "uri",
            ItemKind::Template => "uriTemplate",
        };
        let members = Members::parse_lenient(&self.definition);
        let mut object = ObjectWriter::with_capacity(self.definition.get().len() + 64);
        for (member, value) in members.iter() {
            match (member, &self.description) {
                (member, _) if member == key => object.text(key, name),
                ("description", Some(text)) => object.text("description", text),
                _ => object.member(member, value),
            };
        }
        if let (Some(text), None) = (&self.description, members.find("description")) {
            object.text("description", text);
        }
        Arc::from(object.finish())
    }

    /// The description a person sees: the operator's, else the source's.
    pub fn described(&self) -> String {
        match &self.description {
            Some(text) => text.to_string(),
            None => Members::parse_lenient(&self.definition).text("description").unwrap_or_default(),
        }
    }
}
