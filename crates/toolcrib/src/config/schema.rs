//! The config as JSON Schema (2020-12), so that editors complete, explain and check it.
//!
//! Made from the table in `shape`; committed as `docs/reference/config.schema.json`, and a test compares the two.
//! Any single value may be a `${VAR}`, whatever its kind, so the schema lets such text pass everywhere.

use serde_json::{Map, Value, json};

use super::read_server::RESERVED;
use super::shape::{self, Key, Kind, Shape};
use super::spelling;

/// The whole schema.
pub fn schema() -> Value {
    let mut schema = group(&shape::ROOT);
    if let Value::Object(members) = &mut schema {
        let mut whole = Map::new();
        whole.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
        whole.insert("title".into(), json!("toolcrib.yaml"));
        whole.insert(
            "description".into(),
            json!("Configuration of Toolcrib, one governed door to every tool."),
        );
        whole.append(members);
        whole.insert("$defs".into(), json!({ "server": server(), "caller": group(&shape::CALLER) }));
        *members = whole;
    }
    schema
}

/// A server also needs an address.
fn server() -> Value {
    let mut schema = group(&shape::SERVER);
    if let Value::Object(members) = &mut schema {
        members.insert("oneOf".into(), json!([{ "required": ["command"] }, { "required": ["url"] }]));
    }
    schema
}

fn group(shape: &Shape) -> Value {
    let mut properties = Map::new();
    for key in shape.keys {
        properties.insert(key.name.into(), property(key));
        let camel = spelling::camel(key.name);
        let others = key.aliases.iter().copied().chain((camel != key.name).then_some(camel.as_str()));
        for other in others {
            let mut schema = kind(&key.kind);
            if let Value::Object(members) = &mut schema {
                members.insert(
                    "description".into(),
                    json!(format!("Another spelling of `{}`. {}", key.name, key.help)),
                );
            }
            properties.insert(other.into(), schema);
        }
    }
    json!({ "type": ["object", "null"], "properties": properties, "additionalProperties": false })
}

fn property(key: &Key) -> Value {
    let mut schema = kind(&key.kind);
    if let Value::Object(members) = &mut schema {
        members.insert("description".into(), json!(key.help));
        if let Some(default) = key.default {
            members.insert("default".into(), typed(default));
        }
    }
    schema
}

/// A default as the editor should insert it: numbers, flags and lists as themselves, all else as text.
fn typed(default: &str) -> Value {
    serde_json::from_str(default).unwrap_or_else(|_| json!(default))
}

fn kind(kind: &Kind) -> Value {
    let variable = json!({ "type": "string", "pattern": r"\$\{.+\}" });
    match kind {
        Kind::Text | Kind::Secret => json!({ "type": ["string", "number", "boolean"] }),
        Kind::Flag => json!({ "anyOf": [{ "type": "boolean" }, variable] }),
        Kind::Count => json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, variable] }),
        Kind::Duration => json!({ "anyOf": [
            { "type": "number", "minimum": 0 },
            { "type": "string", "pattern": r"^([0-9.]+ *(ms|s|sec|m|min|h|d)?)+$" },
            variable
        ] }),
        Kind::Size => json!({ "anyOf": [
            { "type": "integer", "minimum": 0 },
            { "type": "string", "pattern": r"^[0-9._]+ *([kKmMgG]([iI]?[bB])?|[bB])?$" },
            variable
        ] }),
        Kind::Address => json!({ "anyOf": [
            { "type": "integer", "minimum": 0, "maximum": 65535 },
            { "type": "string", "pattern": r"^([0-9.]*:|localhost:|\[[0-9a-fA-F:.]+\]:)?[0-9]+$" },
            variable
        ] }),
        Kind::Url => json!({ "type": "string", "pattern": r"^(https?://|.*\$\{)" }),
        Kind::Glob => json!({ "type": "string", "minLength": 1 }),
        Kind::Choice(words) => json!({ "anyOf": [{ "enum": words() }, variable] }),
        Kind::List(item) => json!({ "type": ["array", "null"], "items": self::kind(item) }),
        Kind::Map(value) => json!({ "type": ["object", "null"], "additionalProperties": self::kind(value) }),
        Kind::Entries(shape) => json!({
            "type": ["object", "null"],
            "propertyNames": names(shape),
            "additionalProperties": { "$ref": definition(shape) }
        }),
        Kind::Group(shape) => group(shape),
    }
}

fn names(shape: &Shape) -> Value {
    let mut names = json!({ "pattern": "^[A-Za-z0-9._-]{1,64}$" });
    if let (Value::Object(members), true) = (&mut names, std::ptr::eq(shape, &shape::SERVER)) {
        members.insert("not".into(), json!({ "const": RESERVED }));
    }
    names
}

fn definition(shape: &Shape) -> &'static str {
    if std::ptr::eq(shape, &shape::SERVER) { "#/$defs/server" } else { "#/$defs/caller" }
}
