//! The only maker of a [`Permit`].
//!
//! Layers are asked in order, cheapest first, and the strictest answer wins: any no is a no, else any
//! "ask a person" is that, else yes. Lists and calls ask the same [`Policy`], so what is hidden cannot be
//! called by any spelling. A new layer is a new [`Layer`]; the path of a call does not change.
//!
//! A permit cannot be forged:
//!
//! ```compile_fail,E0451
//! # fn forge(invocation: toolcrib_core::call::Invocation) {
//! let permit = toolcrib_core::policy::Permit { invocation };
//! # }
//! ```
//!
//! nor used twice:
//!
//! ```compile_fail,E0382
//! # fn twice(permit: toolcrib_core::policy::Permit) {
//! let first = permit.spend();
//! let second = permit.spend();
//! # }
//! ```
//!
//! nor copied:
//!
//! ```compile_fail,E0599
//! # fn copy(permit: toolcrib_core::policy::Permit) {
//! let copy = permit.clone();
//! # }
//! ```
//!
//! nor can what was judged be swapped before it is sent:
//!
//! ```compile_fail,E0594
//! # fn swap(mut permit: toolcrib_core::policy::Permit) {
//! permit.invocation().arguments = None;
//! # }
//! ```

use std::sync::Arc;

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::{call::Invocation, caller::Caller, catalog::Item};

/// Proof that this very invocation was allowed. Made only here, spent by use, never stored or sent.
#[derive(Debug)]
#[must_use = "a permit that is not spent is a call that was allowed and never made"]
pub struct Permit {
    invocation: Invocation,
}

impl Permit {
    /// What was judged.
    pub fn invocation(&self) -> &Invocation {
        &self.invocation
    }

    pub fn spend(self) -> Invocation {
        self.invocation
    }
}

/// What policy says of one invocation.
#[derive(Debug)]
pub enum Decision {
    Allow(Permit),
    /// A person has to say yes first. It keeps the invocation that was judged.
    Ask {
        invocation: Invocation,
        reason: String,
        layer: &'static str,
    },
    Deny {
        reason: String,
        layer: &'static str,
    },
}

/// What one layer says.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing against it.
    Pass,
    Ask(String),
    Deny(String),
}

/// One reason to refuse. A no-op for callers and items it is not about.
pub trait Layer: Send + Sync {
    /// The word by which decision records name this layer.
    fn name(&self) -> &'static str;

    /// May this caller know that the item exists? Asked for lists, and before arguments are looked at.
    fn shows(&self, caller: &Caller, item: &Item) -> bool;

    /// May this very invocation happen? Asked after [`Layer::shows`] said yes.
    fn judges(&self, invocation: &Invocation) -> Verdict;
}

/// All layers, in order.
#[derive(Clone)]
pub struct Policy {
    layers: Arc<[Box<dyn Layer>]>,
}

impl Policy {
    pub fn new(layers: Vec<Box<dyn Layer>>) -> Self {
        Self { layers: layers.into() }
    }

    /// The layers of this release: what each caller's config lets it use.
    pub fn by_access() -> Self {
        Self::new(vec![Box::new(AccessLayer)])
    }

    /// The layer that hides the item from the caller, if one does.
    pub fn hides(&self, caller: &Caller, item: &Item) -> Option<&'static str> {
        self.layers.iter().find(|layer| !layer.shows(caller, item)).map(|layer| layer.name())
    }

    pub fn shows(&self, caller: &Caller, item: &Item) -> bool {
        self.hides(caller, item).is_none()
    }

    pub fn decide(&self, invocation: Invocation) -> Decision {
        if let Some(layer) = self.hides(&invocation.caller, &invocation.item) {
            return Decision::Deny { reason: "not visible to this caller".into(), layer };
        }
        let mut ask = None;
        for layer in self.layers.iter() {
            match layer.judges(&invocation) {
                Verdict::Pass => {}
                Verdict::Ask(reason) => ask = ask.or(Some((reason, layer.name()))),
                Verdict::Deny(reason) => return Decision::Deny { reason, layer: layer.name() },
            }
        }
        match ask {
            Some((reason, layer)) => Decision::Ask { invocation, reason, layer },
            None => Decision::Allow(Permit { invocation }),
        }
    }
}

/// Which items a caller may use, by globs over `source:name`. Refuses what nothing allows; a deny beats an allow.
#[derive(Clone, Debug)]
pub struct Access {
    allow: Names,
    deny: Names,
}

/// A set of names. Most callers have everything or nothing on a side, which needs no pattern to be tried.
#[derive(Clone, Debug)]
enum Names {
    All,
    None,
    Matching(GlobSet),
}

impl Names {
    fn new(patterns: &[String]) -> Result<Self, globset::Error> {
        Ok(match patterns {
            [] => Names::None,
            patterns if patterns.iter().any(|pattern| pattern == "*") => Names::All,
            patterns => Names::Matching(globs(patterns)?),
        })
    }

    fn have(&self, name: &str) -> bool {
        match self {
            Names::All => true,
            Names::None => false,
            Names::Matching(globs) => globs.is_match(name),
        }
    }
}

impl Access {
    pub fn new(allow: &[String], deny: &[String]) -> Result<Self, globset::Error> {
        Ok(Self { allow: Names::new(allow)?, deny: Names::new(deny)? })
    }

    pub fn everything() -> Self {
        Self { allow: Names::All, deny: Names::None }
    }

    pub fn nothing() -> Self {
        Self { allow: Names::None, deny: Names::None }
    }

    pub fn covers(&self, id: &str) -> bool {
        self.allow.have(id) && !self.deny.have(id)
    }
}

/// Globs over names: `*` matches any run of characters, `/` and `:` included.
pub fn globs(patterns: &[String]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(Glob::new(pattern)?);
    }
    set.build()
}

/// The layer over [`Access`].
struct AccessLayer;

impl Layer for AccessLayer {
    fn name(&self) -> &'static str {
        "access"
    }

    fn shows(&self, caller: &Caller, item: &Item) -> bool {
        caller.access.covers(item.id())
    }

    fn judges(&self, _: &Invocation) -> Verdict {
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_allows_is_refused() {
        assert!(!Access::nothing().covers("git:status"));
        let access = Access::new(&["git:*".into()], &[]).unwrap();
        assert!(access.covers("git:status") && !access.covers("fs:read"));
    }

    #[test]
    fn a_deny_beats_an_allow() {
        let access = Access::new(&["*".into()], &["*:delete_*".into()]).unwrap();
        assert!(access.covers("fs:read") && !access.covers("fs:delete_file"));
    }
}
