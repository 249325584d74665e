//! Remembers, from the tool lists that pass through, which arguments a tool wants mirrored in headers.
//!
//! It reads `inputSchema` only for `x-mcp-header`; it never changes or hides a tool. `header.rs` uses what is
//! remembered here when that tool is called.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::peek;

const MARK: &str = "x-mcp-header";
/// Annotated tools remembered at most; a tool over it is asked about again when the crib complains.
const TOOL_LIMIT: usize = 16_384;
/// Nested `properties` followed at most.
const DEPTH_LIMIT: usize = 16;

/// One argument (by its path from the root of the arguments) and the header it is mirrored in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    pub path: Vec<String>,
    pub header: String,
}

/// Tool name → its annotations.
#[derive(Debug, Default)]
pub struct Annotations {
    tools: Mutex<HashMap<String, Arc<[Annotation]>>>,
}

#[derive(Deserialize)]
struct Listing<'a> {
    #[serde(borrow, default)]
    tools: Vec<&'a RawValue>,
    #[serde(borrow, default, rename = "nextCursor")]
    next_cursor: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Listed<'a> {
    name: String,
    #[serde(borrow, default, rename = "inputSchema")]
    input_schema: Option<&'a RawValue>,
}

impl Annotations {
    /// Learns from the result of a `tools/list`; gives the cursor of the next page, if there is one.
    pub fn learn<'a>(&self, result: &'a RawValue) -> Option<&'a RawValue> {
        let listing: Listing<'a> = serde_json::from_str(result.get()).ok()?;
        let marked = result.get().contains(MARK);
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if !marked && tools.is_empty() {
            return listing.next_cursor;
        }
        for raw in &listing.tools {
            // One tool that cannot be read must not cost the others their headers.
            let Ok(listed) = serde_json::from_str::<Listed<'_>>(raw.get()) else { continue };
            let mut found = Vec::new();
            if let Some(schema) = listed.input_schema.filter(|s| s.get().contains(MARK)) {
                collect(schema, &mut Vec::new(), &mut found);
            }
            if found.is_empty() {
                tools.remove(&listed.name);
            } else if tools.len() < TOOL_LIMIT || tools.contains_key(&listed.name) {
                tools.insert(listed.name, found.into());
            }
        }
        listing.next_cursor
    }

    /// The annotations of one tool; empty for a tool that has none or was never listed.
    pub fn of(&self, tool: &str) -> Arc<[Annotation]> {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        tools.get(tool).cloned().unwrap_or_default()
    }
}

fn collect(schema: &RawValue, path: &mut Vec<String>, found: &mut Vec<Annotation>) {
    if path.len() >= DEPTH_LIMIT {
        return;
    }
    let Some(properties) =
        peek::members(schema).and_then(|m| m.get("properties").copied()).and_then(peek::members)
    else {
        return;
    };
    for (name, property) in properties {
        if !property.get().contains(MARK) {
            continue;
        }
        path.push(name);
        let header = peek::members(property).and_then(|m| m.get(MARK).copied()).and_then(peek::string);
        if let Some(header) = header.filter(|h| is_token(h)) {
            found.push(Annotation { path: path.clone(), header });
        }
        collect(property, path, found);
        path.pop();
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_list_teaches_top_level_and_nested_annotations() {
        let seen = Annotations::default();
        let list = raw(r#"{"tools":[
            {"name":"plain","inputSchema":{"type":"object"}},
            17,
            {"name":"t","inputSchema":{"type":"object","properties":{
                "region":{"type":"string","x-mcp-header":"Region"},
                "deep":{"type":"object","properties":{"er":{"type":"string","x-mcp-header":"Deeper"}}},
                "bad":{"type":"string","x-mcp-header":"not a token"},
                "items":{"type":"array","items":{"type":"string","x-mcp-header":"Item"}}}}}],
            "nextCursor":"c2"}"#);
        assert_eq!(seen.learn(&list).map(RawValue::get), Some("\"c2\""));
        let mut found = seen.of("t").to_vec();
        found.sort_by(|a, b| a.header.cmp(&b.header));
        assert_eq!(
            found,
            [
                Annotation { path: vec!["deep".into(), "er".into()], header: "Deeper".into() },
                Annotation { path: vec!["region".into()], header: "Region".into() },
            ]
        );
        assert!(seen.of("plain").is_empty());
        assert!(seen.of("unknown").is_empty());
    }

    #[test]
    fn a_later_list_without_annotations_forgets_them() {
        let seen = Annotations::default();
        seen.learn(&raw(
            r#"{"tools":[{"name":"t","inputSchema":{"properties":{"a":{"x-mcp-header":"A"}}}}]}"#,
        ));
        assert_eq!(seen.of("t").len(), 1);
        seen.learn(&raw(r#"{"tools":[{"name":"t","inputSchema":{"properties":{"a":{}}}}]}"#));
        assert!(seen.of("t").is_empty());
    }
}
