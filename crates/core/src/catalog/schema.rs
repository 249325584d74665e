//! A tool's input schema, compiled once, at its first call.
//!
//! Nothing is ever fetched: a `$ref` to a network or file address makes the schema unusable, and then the source
//! is left to judge the arguments itself, as it does anyway. Depth is bounded by the JSON reader (128), size here.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, value::RawValue};

use crate::catalog::cost::{Cost, MOST_STEPS};

/// Larger schemas are not compiled.
const LARGEST: usize = 256 * 1024;
/// Arguments of this size at most, in bytes, are searched for every mistake.
const SMALL: usize = 8 * 1024;
/// Mistakes told at once.
const TOLD: usize = 5;

#[derive(Debug, Default)]
pub struct Schema {
    text: Option<Arc<RawValue>>,
    compiled: OnceLock<Option<Compiled>>,
}

#[derive(Debug)]
struct Compiled {
    validator: jsonschema::Validator,
    cost: Cost,
}

impl Schema {
    pub fn new(text: Option<Arc<RawValue>>) -> Self {
        Self { text, compiled: OnceLock::new() }
    }

    fn compiled(&self) -> Option<&Compiled> {
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
        let Some(Compiled { validator, cost }) = self.compiled() else { return Ok(()) };
        if !cost.bears(&value) {
            tracing::warn!("arguments nest too deep for a recursive input schema; they go unchecked");
            return Ok(());
        }
        if validator.is_valid(&value) {
            return Ok(());
        }
        let size = arguments.map_or(0, |raw| raw.get().len());
        Err(mistakes(validator, *cost, &value, size))
    }
}

/// What is wrong, as far as it can be told cheaply: finding every mistake takes time and memory with every one.
fn mistakes(validator: &jsonschema::Validator, cost: Cost, value: &Value, size: usize) -> String {
    let told = |error: &jsonschema::ValidationError<'_>| {
        let place = error.instance_path().to_string();
        if place.is_empty() { error.to_string() } else { format!("at `{place}`: {error}") }
    };
    match (cost.is_small(), size <= SMALL) {
        (true, true) => {
            let all: Vec<String> =
                validator.iter_errors(value).take(TOLD).map(|error| told(&error)).collect();
            all.join("; ")
        }
        (true, false) => validator.validate(value).err().map(|error| told(&error)).unwrap_or_default(),
        (false, _) => "they do not fit, and the schema is too involved to say where".into(),
    }
}

fn compile(text: &RawValue) -> Option<Compiled> {
    if text.get().len() > LARGEST {
        tracing::warn!(
            bytes = text.get().len(),
            "an input schema is too large to compile; arguments go unchecked"
        );
        return None;
    }
    let schema: Value = serde_json::from_str(text.get()).ok()?;
    let cost = Cost::of(&schema);
    if cost.steps > MOST_STEPS {
        tracing::warn!("an input schema takes too many steps to check; arguments go unchecked");
        return None;
    }
    match jsonschema::options().build(&schema) {
        Ok(validator) => Some(Compiled { validator, cost }),
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
    fn large_arguments_are_told_one_mistake_and_quickly() {
        let schema =
            schema(r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}"#);
        let many = format!(r#"{{"a":[{}1]}}"#, "1,".repeat(200_000));
        let told = schema.check(Some(&raw(&many))).unwrap_err();
        assert!(told.contains("/a/0") && !told.contains(';'), "{told}");
    }

    #[test]
    fn references_that_hide_what_they_lead_to_are_not_followed_at_all() {
        for link in ["#n", "#/%24defs/n"] {
            let step = |n: u32| {
                format!(
                    r##""n{n}":{{"$anchor":"n{n}","allOf":[{{"$ref":"{link}{0}"}},{{"$ref":"{link}{0}"}}]}}"##,
                    n + 1
                )
            };
            let chain: Vec<String> = (0..40).map(step).collect();
            let text = format!(
                r##"{{"type":"object","$ref":"{link}0","$defs":{{{},"n40":{{"$anchor":"n40","type":"string"}}}}}}"##,
                chain.join(",")
            );
            assert!(schema(&text).check(Some(&raw("{}"))).is_ok(), "{link}, and quickly");
        }
    }

    #[test]
    fn a_schema_that_doubles_with_every_step_is_left_to_the_source() {
        let link = |n: u32| {
            format!(r##""n{n}":{{"allOf":[{{"$ref":"#/$defs/n{0}"}},{{"$ref":"#/$defs/n{0}"}}]}}"##, n + 1)
        };
        let chain: Vec<String> = (0..40).map(link).collect();
        let text = format!(
            r##"{{"type":"object","$ref":"#/$defs/n0","$defs":{{{},"n40":{{"type":"string"}}}}}}"##,
            chain.join(",")
        );
        assert!(schema(&text).check(Some(&raw("{}"))).is_ok(), "and quickly");
    }

    #[test]
    fn a_schema_that_doubles_with_every_level_is_checked_only_on_shallow_arguments() {
        let schema = schema(
            r##"{"type":"object","$ref":"#/$defs/n","$defs":{"n":{"properties":{"s":{"type":"string"}},
               "allOf":[{"properties":{"a":{"$ref":"#/$defs/n"}}},{"properties":{"a":{"$ref":"#/$defs/n"}}}]}}}"##,
        );
        assert!(schema.check(Some(&raw(r#"{"a":{"s":7}}"#))).is_err());
        let deep = format!("{}{{}}{}", r#"{"a":"#.repeat(100), "}".repeat(100));
        assert!(schema.check(Some(&raw(&deep))).is_ok());
    }

    #[test]
    fn arguments_are_an_object() {
        assert!(Schema::default().check(Some(&raw("[1]"))).is_err());
        assert!(Schema::default().check(None).is_ok());
    }
}
