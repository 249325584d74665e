//! How a tool is spelt on a list: `safe` (every client takes it), `colon` (the crib's own id), `bare`.
//!
//! Spellings are made here and looked up in a table; nothing ever splits one.

use std::{collections::HashSet, sync::Arc};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The style of names on a list. Every style is accepted on a call, whatever was listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// `source__tool`: only `[A-Za-z0-9_-]`, at most 64 characters.
    #[default]
    Safe,
    /// `source:tool`.
    Colon,
    /// `tool` where only one source has it, else `source__tool`.
    Bare,
}

impl Style {
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "safe" => Some(Self::Safe),
            "colon" => Some(Self::Colon),
            "bare" => Some(Self::Bare),
            _ => None,
        }
    }
}

/// How one entry is listed in each style.
#[derive(Clone, Debug)]
pub struct Names {
    pub safe: Arc<str>,
    pub colon: Arc<str>,
    pub bare: Arc<str>,
}

/// What is put before a source's tool names on a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// The id of the source.
    Id,
    Text(String),
    /// Nothing; where that would clash with another listed name, the id after all.
    None,
}

const LONGEST: usize = 64;
/// `_` and eight hex digits.
const SUFFIX: usize = 9;

/// Only `[A-Za-z0-9_-]`, everything else becomes `_`.
fn sanitised(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect()
}

/// The first characters and a hash of the id: stable, whatever else is in the catalog.
fn hashed(name: &str, id: &str) -> String {
    let digest = Sha256::digest(id.as_bytes());
    let hex: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let kept: String = name.chars().take(LONGEST - SUFFIX).collect();
    format!("{kept}_{hex}")
}

/// One name to be spelt: its id, its source's prefix, its name in the source, and whether others share that name.
pub struct Wanted<'a> {
    pub id: &'a str,
    pub source: &'a str,
    pub prefix: &'a Prefix,
    pub name: &'a str,
    pub shared: Shared,
}

/// Whether another source has the same name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shared {
    Alone,
    WithOthers,
}

/// Spells all names of one section, so that no two are listed alike.
pub fn spell(wanted: &[Wanted<'_>]) -> Vec<Names> {
    let mut taken = HashSet::new();
    let mut safe = vec![None; wanted.len()];
    // Names that are fine as they stand keep their plain form; only altered or clashing ones carry a hash.
    for pass in [Pass::Prefixed, Pass::Untouched, Pass::Altered] {
        for (slot, want) in safe.iter_mut().zip(wanted) {
            if slot.is_none() {
                *slot = safe_name(want, pass, &mut taken);
            }
        }
    }
    let mut colons: HashSet<String> = wanted.iter().map(|want| want.id.to_owned()).collect();
    wanted
        .iter()
        .zip(safe)
        .map(|(want, safe)| {
            let safe: Arc<str> = safe.unwrap_or_else(|| hashed(&sanitised(want.id), want.id)).into();
            let plain = match want.prefix {
                Prefix::None => want.name.to_owned(),
                Prefix::Id => want.id.to_owned(),
                Prefix::Text(prefix) => format!("{prefix}:{}", want.name),
            };
            let unprefixed = *want.prefix == Prefix::None && want.shared == Shared::WithOthers;
            let free = plain == want.id || colons.insert(plain.clone());
            let colon = if unprefixed || !free { want.id.into() } else { plain.into() };
            let bare = match want.shared {
                Shared::Alone => want.name.into(),
                Shared::WithOthers => safe.clone(),
            };
            Names { safe, colon, bare }
        })
        .collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Fine as they stand, under a prefix of their own.
    Prefixed,
    /// Fine as they stand, without one.
    Untouched,
    Altered,
}

fn safe_name(want: &Wanted<'_>, pass: Pass, taken: &mut HashSet<String>) -> Option<String> {
    let plain = match want.prefix {
        Prefix::Id => format!("{}__{}", want.source, want.name),
        Prefix::Text(prefix) => format!("{prefix}__{}", want.name),
        Prefix::None if want.shared == Shared::WithOthers => format!("{}__{}", want.source, want.name),
        Prefix::None => want.name.to_owned(),
    };
    let clean = sanitised(&plain);
    let fits = clean.len() <= LONGEST;
    match pass {
        Pass::Prefixed if *want.prefix == Prefix::None => None,
        Pass::Prefixed | Pass::Untouched if clean == plain && fits && taken.insert(clean.clone()) => {
            Some(clean)
        }
        Pass::Prefixed | Pass::Untouched => None,
        Pass::Altered if clean != plain && fits && taken.insert(clean.clone()) => Some(clean),
        Pass::Altered => {
            let name = hashed(&clean, want.id);
            taken.insert(name.clone());
            Some(name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[(&str, &str)]) -> Vec<Names> {
        let ids: Vec<String> = list.iter().map(|(s, n)| format!("{s}:{n}")).collect();
        let wanted: Vec<Wanted<'_>> = list
            .iter()
            .zip(&ids)
            .map(|((source, name), id)| Wanted {
                id,
                source,
                prefix: &Prefix::Id,
                name,
                shared: if list.iter().filter(|(_, n)| n == name).count() > 1 {
                    Shared::WithOthers
                } else {
                    Shared::Alone
                },
            })
            .collect();
        spell(&wanted)
    }

    #[test]
    fn a_safe_name_has_only_safe_characters_and_is_short() {
        let long = "x".repeat(100);
        for name in names(&[("a.b", "do it/now"), ("s", &long), ("é", "ü")]) {
            assert!(name.safe.len() <= 64);
            assert!(name.safe.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
        }
    }

    #[test]
    fn two_ids_are_never_listed_alike() {
        let all = names(&[("a", "b__c"), ("a__b", "c"), ("a", "x.y"), ("a", "x/y"), ("a", "x_y")]);
        let set: HashSet<_> = all.iter().map(|n| n.safe.clone()).collect();
        assert_eq!(set.len(), all.len());
        assert_eq!(&*all[4].safe, "a__x_y", "the name that needs no change keeps its plain form");
    }

    #[test]
    fn a_prefix_that_is_anothers_id_gives_no_name_away() {
        let git = Prefix::Text("git".into());
        let wanted = [
            Wanted { id: "a:status", source: "a", prefix: &git, name: "status", shared: Shared::WithOthers },
            Wanted {
                id: "b:git__log",
                source: "b",
                prefix: &Prefix::None,
                name: "git__log",
                shared: Shared::Alone,
            },
            Wanted { id: "git:log", source: "git", prefix: &Prefix::Id, name: "log", shared: Shared::Alone },
            Wanted {
                id: "git:status",
                source: "git",
                prefix: &Prefix::Id,
                name: "status",
                shared: Shared::WithOthers,
            },
        ];
        let names = spell(&wanted);
        let of =
            |pick: fn(&Names) -> &Arc<str>| names.iter().map(|n| pick(n).to_string()).collect::<HashSet<_>>();
        assert_eq!((of(|n| &n.colon).len(), of(|n| &n.safe).len()), (4, 4));
        assert_eq!((&*names[2].safe, &*names[3].colon), ("git__log", "git:status"));
    }

    #[test]
    fn a_bare_name_is_used_only_while_one_source_has_it() {
        let all = names(&[("git", "search"), ("web", "search"), ("web", "fetch")]);
        assert_eq!([&*all[0].bare, &*all[1].bare, &*all[2].bare], ["git__search", "web__search", "fetch"]);
    }
}
