//! Who is asking: credentials become a [`Caller`], or nothing does.
//!
//! Static bearer tokens are kept only as hashes. With no caller configured, and only on loopback, the one
//! caller is `local`; whoever assembles the crib says so aloud.

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::{
    error::{Failure, Kind},
    id::CallerId,
    policy::Access,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallerKind {
    Agent,
    Service,
    Person,
}

/// What a caller may do to the crib itself, beside using tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Uses tools.
    User,
    /// Also connects sources, reads everybody's calls.
    Admin,
}

#[derive(Debug)]
pub struct Caller {
    pub id: CallerId,
    pub kind: CallerKind,
    pub role: Role,
    pub access: Access,
}

impl Caller {
    /// The caller of an unprotected loopback crib, of `toolcrib stdio` and of the CLI.
    pub fn local(access: Access) -> Self {
        Self { id: CallerId::new("local"), kind: CallerKind::Person, role: Role::Admin, access }
    }
}

/// Everyone the crib recognises. Replaced whole when the config changes.
pub struct Callers {
    known: ArcSwap<Roll>,
}

/// The list behind [`Callers`].
pub struct Roll {
    by_token: HashMap<[u8; 32], Arc<Caller>>,
    local: Arc<Caller>,
    door: Door,
}

/// Who may come in over the network without a token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Door {
    /// Nobody.
    Closed,
    /// Whoever can reach it is the local caller: for loopback only.
    Open,
}

impl Roll {
    /// Only somebody with a token gets in over the network. `local` is who asks on a pipe and on the command line.
    pub fn closed(local: Caller) -> Self {
        Self { by_token: HashMap::new(), local: Arc::new(local), door: Door::Closed }
    }

    /// Without a token one is `local`: for loopback only.
    pub fn open(local: Caller) -> Self {
        Self { by_token: HashMap::new(), local: Arc::new(local), door: Door::Open }
    }

    pub fn add(&mut self, token: &str, caller: Caller) {
        self.by_token.insert(Sha256::digest(token.as_bytes()).into(), Arc::new(caller));
    }
}

impl Callers {
    pub fn new(roll: Roll) -> Self {
        Self { known: ArcSwap::from_pointee(roll) }
    }

    pub fn replace(&self, roll: Roll) {
        self.known.store(Arc::new(roll));
    }

    /// Whether nobody needs a token.
    pub fn is_open(&self) -> bool {
        self.known.load().door == Door::Open
    }

    /// Who asks on a pipe and on the command line: whoever may start the crib.
    pub fn local(&self) -> Arc<Caller> {
        self.known.load().local.clone()
    }

    /// The caller as it is known now; none if it is no longer let in.
    pub fn current(&self, id: &CallerId) -> Option<Arc<Caller>> {
        let known = self.known.load();
        let local = Some(&known.local).filter(|local| known.door == Door::Open && local.id == *id);
        known.by_token.values().find(|caller| caller.id == *id).or(local).cloned()
    }

    /// A token, where one is given, must be known even when none is needed.
    pub fn recognise(&self, bearer: Option<&str>) -> Result<Arc<Caller>, Failure> {
        let known = self.known.load();
        let refused = |told: &str| Failure::new(Kind::Unauthenticated, told);
        match bearer {
            Some(token) => {
                let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
                known.by_token.get(&digest).cloned().ok_or_else(|| refused("the bearer token is not known"))
            }
            None if known.door == Door::Open => Ok(known.local.clone()),
            None => Err(refused("a token is needed: send `Authorization: Bearer <token>`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn somebody(id: &str) -> Caller {
        Caller {
            id: CallerId::new(id),
            kind: CallerKind::Agent,
            role: Role::User,
            access: Access::everything(),
        }
    }

    #[test]
    fn a_token_opens_for_its_owner_only() {
        let mut roll = Roll::closed(Caller::local(Access::nothing()));
        roll.add("correct horse battery", somebody("ci"));
        let callers = Callers::new(roll);
        assert_eq!(callers.recognise(Some("correct horse battery")).unwrap().id.as_str(), "ci");
        assert_eq!(callers.recognise(Some("wrong")).unwrap_err().kind, Kind::Unauthenticated);
        assert_eq!(callers.recognise(None).unwrap_err().kind, Kind::Unauthenticated);
    }

    #[test]
    fn a_caller_that_was_removed_is_no_longer_known() {
        let mut roll = Roll::closed(Caller::local(Access::nothing()));
        roll.add("correct horse battery", somebody("ci"));
        let callers = Callers::new(roll);
        assert!(callers.current(&CallerId::new("ci")).is_some());
        assert!(callers.current(&CallerId::new("local")).is_none(), "only pipes are local here");
        callers.replace(Roll::open(Caller::local(Access::everything())));
        assert!(callers.current(&CallerId::new("ci")).is_none());
        assert!(callers.current(&CallerId::new("local")).is_some());
    }

    #[test]
    fn a_wrong_token_is_refused_even_where_none_is_needed() {
        let callers = Callers::new(Roll::open(Caller::local(Access::everything())));
        assert!(callers.recognise(None).is_ok());
        assert!(callers.recognise(Some("stale")).is_err());
    }
}
