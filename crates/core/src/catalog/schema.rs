//! A tool's input schema, compiled once, at its first call.
//!
//! Nothing is ever fetched: a `$ref` to a network or file address makes the schema unusable, and then the source
//! is left to judge the arguments itself, as it does anyway. Depth is bounded by the JSON reader (128), size here.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, value::RawValue};

/// Larger schemas are not compiled.
const LARGEST: usize = 256 * 1024;
/// Mistakes told at once.
const TOLD: usize = 5;

#[derive(Debug, Default)]
pub struct Schema {
    text: Option<Arc<RawValue>>,
    compiled: OnceLock<Option<jsonschema::Validator>>,
}

impl Schema {
    pub fn new(text: Option<Arc<RawValue>>) -> Self {
        Self { text, compiled: OnceLock::new() }
    }

    fn validator(&self) -> Option<&jsonschema::Validator> {
        self.compiled.get_or_init(|| self.text.as_deref().and_then(compile)).as_ref()
    }

    /// Checks the arguments; absent ones count as `{}`. The mistakes are for the caller's eyes only: they quote values.
    pub fn check(&self, arguments: Option<&RawValue>) -> Result<(), String> {
        let value = match arguments {
            None => Value::Object(serde_json::Map::new()),
            Some(raw) => serde_json::from_str(raw.get()).map_err(|error| error.to_string())?,
        };
        if !value.is_object() {
            return Err("they must be a JSON object".into());
        }
        let Some(validator) = self.validator() else { return Ok(()) };
        if validator.is_valid(&value) {
            return Ok(());
        }
        let mistakes: Vec<String> = validator
            .iter_errors(&value)
            .take(TOLD)
            .map(|error| {
                let place = error.instance_path().to_string();
                if place.is_empty() { error.to_string() } else { format!("at `{place}`: {error}") }
            })
            .collect();
        Err(mistakes.join("; "))
    }
}

fn compile(text: &RawValue) -> Option<jsonschema::Validator> {
    if text.get().len() > LARGEST {
        tracing::warn!(
            bytes = text.get().len(),
            "an input schema is too large to compile; arguments go unchecked"
        );
        return None;
    }
    let schema: Value = serde_json::from_str(text.get()).ok()?;
    match jsonschema::options().build(&schema) {
        Ok(validator) => Some(validator),
        Err(error) => {
            tracing::warn!(%error, "an input schema cannot be used; arguments go unchecked");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &str) -> Schema {
        Schema::new(Some(Arc::from(RawValue::from_string(text.into()).unwrap())))
    }
    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.into()).unwrap()
    }

    #[test]
    fn all_mistakes_are_told_with_their_place() {
        let schema = schema(
            r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/n"},"b":{"type":"string"}},"required":["a"],
               "$defs":{"n":{"type":"integer","minimum":3}}}"##,
        );
        assert!(schema.check(Some(&raw(r#"{"a":3}"#))).is_ok());
        let told = schema.check(Some(&raw(r#"{"a":1,"b":2}"#))).unwrap_err();
        assert!(told.contains("/a") && told.contains("/b"), "{told}");
        assert!(schema.check(None).unwrap_err().contains("\"a\""));
    }

    #[test]
    fn a_network_reference_is_never_fetched_and_leaves_the_source_to_judge() {
        let schema = schema(r#"{"type":"object","properties":{"a":{"$ref":"http://127.0.0.1:9/x.json"}}}"#);
        assert!(schema.check(Some(&raw(r#"{"a":1}"#))).is_ok());
    }

    #[test]
    fn arguments_are_an_object() {
        assert!(Schema::default().check(Some(&raw("[1]"))).is_err());
        assert!(Schema::default().check(None).is_ok());
    }
}
