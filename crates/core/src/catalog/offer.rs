//! What a source puts on the counter, and how its operator wants it shown.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use globset::GlobSet;
use serde_json::value::RawValue;

use crate::{
    catalog::name::Prefix,
    id::SourceId,
    raw::{Members, Raw},
};

/// How long a source may stay silent during a call, unless its config says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// One definition as a source gave it, and the member that names it.
#[derive(Clone, Debug)]
pub struct Definition {
    pub name: String,
    pub raw: Arc<RawValue>,
}

/// Everything a source lists.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    pub tools: Vec<Definition>,
    pub prompts: Vec<Definition>,
    pub resources: Vec<Definition>,
    pub templates: Vec<Definition>,
    /// The source says it has resources, whether or not it lists any.
    pub has_resources: bool,
    /// What the source told its users about itself.
    pub instructions: Option<String>,
    /// For how long the source's own lists stay fresh, in milliseconds; none: it did not say.
    pub fresh_ms: Option<u64>,
    /// Definitions that had to be left out, and why.
    pub mishaps: Vec<String>,
}

/// Definitions are this long at most; a longer one is left out.
const LONGEST_DEFINITION: usize = 1024 * 1024;
/// A source may list this many things of one kind.
pub const MOST_DEFINITIONS: usize = 10_000;

impl Offer {
    /// Reads definitions one by one, so that a malformed one costs only itself.
    pub fn read(list: &mut Vec<Definition>, key: &str, raws: Vec<Raw>, mishaps: &mut Vec<String>) {
        for raw in raws {
            let named = Members::parse(&raw).map_err(|error| error.to_string()).and_then(|members| {
                members.text(key).ok_or_else(|| format!("`{key}` is missing or not a text"))
            });
            match named {
                Ok(name) if usable(&name) && raw.get().len() <= LONGEST_DEFINITION => {
                    if list.len() < MOST_DEFINITIONS {
                        list.push(Definition { name, raw: Arc::from(raw) });
                    }
                }
                Ok(name) => mishaps.push(format!(
                    "left out `{}`: the name is blank, too long or has control characters, or the definition is too large",
                    name.chars().take(80).collect::<String>()
                )),
                Err(reason) => mishaps.push(format!("left out one definition: {reason}")),
            }
        }
    }
}

fn usable(name: &str) -> bool {
    !name.trim().is_empty() && name.len() <= 2048 && !name.chars().any(char::is_control)
}

/// One source's place in the catalog: what it offers, and how that is shown.
pub struct Shelf {
    pub id: SourceId,
    pub settings: Arc<ShelfSettings>,
    pub offer: Arc<Offer>,
    pub has_resources: bool,
    pub builtin: bool,
    pub patience: Duration,
}

impl Shelf {
    pub fn new(id: SourceId, settings: Arc<ShelfSettings>, offer: Arc<Offer>) -> Self {
        let (has_resources, builtin, patience) = (offer.has_resources, settings.builtin, settings.patience);
        Self { id, settings, offer, has_resources, builtin, patience }
    }
}

/// What the operator of a source decided about showing it.
#[derive(Clone, Debug)]
pub struct ShelfSettings {
    pub prefix: Prefix,
    /// `notion-search` of source `notion` is shown as `search`.
    pub strip: bool,
    /// Only names that match; none: all.
    pub expose: Option<GlobSet>,
    pub hide: GlobSet,
    pub rename: BTreeMap<String, String>,
    pub describe: BTreeMap<String, String>,
    pub patience: Duration,
    /// The crib's own tools: never the target of unknown methods.
    pub builtin: bool,
}

impl Default for ShelfSettings {
    fn default() -> Self {
        Self {
            prefix: Prefix::Id,
            strip: true,
            expose: None,
            hide: GlobSet::empty(),
            rename: BTreeMap::new(),
            describe: BTreeMap::new(),
            patience: PATIENCE,
            builtin: false,
        }
    }
}

impl ShelfSettings {
    /// Whether a tool, prompt or method of this name is shown. Resources are only ever hidden, never exposed by name.
    pub fn shows(&self, own: &str) -> bool {
        self.expose.as_ref().is_none_or(|expose| expose.is_match(own)) && !self.hide.is_match(own)
    }
}
