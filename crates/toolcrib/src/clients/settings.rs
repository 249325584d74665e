//! A client's settings file as text: the servers in it, and edits that keep all the rest.
//!
//! JSON and JSON with comments go through a tree that remembers every space and comment, TOML likewise. What an entry
//! means is `entry`'s business.

use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value};
use toml_edit::DocumentMut;

use super::ClientError;

/// JSON with comments and trailing commas, as editors take it; nothing looser.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

fn malformed(path: &Path, what: impl ToString) -> ClientError {
    ClientError::Malformed { path: path.to_owned(), what: what.to_string() }
}

/// The whole file as JSON; an empty file is an empty object.
pub(crate) fn read(path: &Path, text: &str) -> Result<Value, ClientError> {
    if is_toml(path) {
        return toml_edit::de::from_str(text)
            .map_err(|error: toml_edit::de::Error| malformed(path, error.message()));
    }
    let root = CstRootNode::parse(text, &options()).map_err(|error| malformed(path, error))?;
    Ok(root.to_serde_value().unwrap_or_else(|| Value::Object(Map::new())))
}

/// What stands at `section` then `name`.
pub(crate) fn entry<'v>(value: &'v Value, section: &[&str], name: &str) -> Option<&'v Value> {
    section.iter().try_fold(value, |value, key| value.get(key))?.get(name)
}

/// The text with `name` under `section` set to `value`, or taken out when there is none.
pub(crate) fn edit(
    path: &Path,
    text: &str,
    section: &[&str],
    name: &str,
    value: Option<&Value>,
) -> Result<String, ClientError> {
    if is_toml(path) {
        edit_toml(path, text, section, name, value)
    } else {
        edit_json(path, text, section, name, value)
    }
}

fn edit_json(
    path: &Path,
    text: &str,
    section: &[&str],
    name: &str,
    value: Option<&Value>,
) -> Result<String, ClientError> {
    let fresh = text.trim().is_empty();
    let root = CstRootNode::parse(if fresh { "{}\n" } else { text }, &options())
        .map_err(|error| malformed(path, error))?;
    let no_object = |key: &str| malformed(path, format!("`{key}` is not an object"));
    let mut object = root.object_value_or_create().ok_or_else(|| no_object("the whole file"))?;
    for key in section {
        let below = object.object_value_or_create(key).ok_or_else(|| no_object(key))?;
        object.ensure_multiline();
        object = below;
    }
    match (object.get(name), value) {
        (Some(property), Some(value)) => property.set_value(input(value)),
        (None, Some(value)) => append(&object, name, value),
        (Some(property), None) => property.remove(),
        (None, None) => return Ok(text.to_owned()),
    }
    Ok(root.to_string())
}

fn append(object: &CstObject, name: &str, value: &Value) {
    object.append(name, input(value));
    object.ensure_multiline();
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(key, value)| (key.clone(), input(value))).collect())
        }
    }
}

fn edit_toml(
    path: &Path,
    text: &str,
    section: &[&str],
    name: &str,
    value: Option<&Value>,
) -> Result<String, ClientError> {
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| malformed(path, error.message()))?;
    let mut table = document.as_table_mut();
    for key in section {
        let item = table.entry(key).or_insert_with(|| {
            // Implicit: no empty `[mcp_servers]` heading above `[mcp_servers.toolcrib]`.
            let mut table = toml_edit::Table::new();
            table.set_implicit(true);
            toml_edit::Item::Table(table)
        });
        table = item.as_table_mut().ok_or_else(|| malformed(path, format!("`{key}` is not a table")))?;
    }
    match value {
        Some(value) => {
            let new = toml_edit::ser::to_document(value).map_err(|error| malformed(path, error))?;
            table.insert(name, toml_edit::Item::Table(new.as_table().clone()));
        }
        None if table.remove(name).is_none() => return Ok(text.to_owned()),
        None => {}
    }
    Ok(document.to_string())
}
