//! Values that travel both in the body and in a header (`Mcp-Name`, `Mcp-Param-*`): how they are written, and whether
//! the two agree.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, value::RawValue};
use toolcrib_core::catalog::entry::HeaderParam;

pub const PREFIX: &str = "mcp-param-";
const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// A text as a header value: as it is where that is safe, else in base64 between marks.
pub fn encode(text: &str) -> String {
    let plain = !text.is_empty()
        && text.trim() == text
        && text.bytes().all(|b| b == b'\t' || (0x20..=0x7e).contains(&b))
        && !(text.starts_with(OPEN) && text.ends_with(CLOSE));
    if plain { text.to_owned() } else { format!("{OPEN}{}{CLOSE}", STANDARD.encode(text)) }
}

/// The text behind a header value; none where the base64 is broken.
pub fn decode(value: &str) -> Option<String> {
    let value = value.trim_matches([' ', '\t']);
    match value.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(CLOSE)) {
        Some(coded) => String::from_utf8(STANDARD.decode(coded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

/// The header of each annotated argument that has a value.
pub fn expected(params: &[HeaderParam], arguments: Option<&RawValue>) -> Vec<(String, String)> {
    let arguments: Value =
        arguments.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or(Value::Null);
    params
        .iter()
        .filter_map(|param| {
            let value = param.path.iter().try_fold(&arguments, |value, key| value.get(key))?;
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Bool(flag) => flag.to_string(),
                Value::Number(number) => number.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
            };
            Some((format!("{PREFIX}{}", param.header.to_ascii_lowercase()), text))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        for text in ["plain", " padded ", "é", "", "=?base64?x?=", "line\nbreak", "tab\there"] {
            assert_eq!(decode(&encode(text)).as_deref(), Some(text));
        }
        assert_eq!(encode("us-west1"), "us-west1");
    }

    #[test]
    fn broken_base64_is_nothing_and_half_a_mark_is_literal() {
        assert_eq!(decode("=?base64?SGVsbG8?="), None);
        assert_eq!(decode("=?base64?SGVs!!!bG8=?="), None);
        assert_eq!(decode("=?base64?SGVsbG8=").as_deref(), Some("=?base64?SGVsbG8="));
        assert_eq!(decode("  a  ").as_deref(), Some("a"));
    }
}
