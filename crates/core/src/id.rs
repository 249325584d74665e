//! Ids, each a type of its own so that one is never passed for another.
//!
//! They are names, not credentials: whoever holds one has proved nothing.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// The name of a source as its operator wrote it: `[A-Za-z0-9._-]`, 1 to 64 characters, no `:`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SourceId(Arc<str>);

/// Why a text cannot be a source id.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` cannot name a source: use 1 to 64 of A-Z a-z 0-9 . _ -")]
pub struct BadSourceId(String);

impl SourceId {
    pub fn new(text: &str) -> Result<Self, BadSourceId> {
        let fits = (1..=64).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
        if fits { Ok(Self(text.into())) } else { Err(BadSourceId(text.chars().take(80).collect())) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SourceId {
    type Error = BadSourceId;
    fn try_from(text: String) -> Result<Self, BadSourceId> {
        Self::new(&text)
    }
}

impl From<SourceId> for String {
    fn from(id: SourceId) -> Self {
        id.0.as_ref().to_owned()
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One tool of one source. Ordered as a pair, never by the joined text: `a-b:x` comes after `a:x`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ToolId {
    pub source: SourceId,
    pub name: Arc<str>,
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source, self.name)
    }
}

/// The name of a caller: a key of `callers` in the config, or `local`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct CallerId(Arc<str>);

impl CallerId {
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One call, for life: in the ledger, in logs, in `GET /calls`. Ordered by time of making.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(uuid::Uuid);

impl CallId {
    pub fn fresh() -> Self {
        Self(uuid::Uuid::now_v7())
    }
}

impl Serialize for CallId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_simple().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_id_has_no_colon_and_is_not_empty() {
        assert!(SourceId::new("notion-local.v2").is_ok());
        for bad in ["", "a:b", "a b", "é", &"x".repeat(65)] {
            assert!(SourceId::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn tools_are_ordered_by_source_then_name() {
        let id = |s: &str, n: &str| ToolId { source: SourceId::new(s).unwrap(), name: n.into() };
        let mut ids = [id("a-b", "x"), id("a", "z"), id("a", "b")];
        ids.sort();
        assert_eq!(ids.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a:b", "a:z", "a-b:x"]);
    }
}
