//! A JSON value as indented lines, the way YAML is read by people. It is meant for reading and for pasting into a
//! config; texts that YAML would take for something else are quoted.

use serde_json::Value;

/// The lines of `value`; members that are null are left out.
pub fn tree(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(_) | Value::Array(_) if !is_empty(value) => block(value, 0, &mut out),
        single => out += &scalar(single),
    }
    out.trim_end().to_owned()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().all(Value::is_null),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn block(value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(members) => {
            for (key, member) in members.iter().filter(|(_, member)| !member.is_null()) {
                entry(&format!("{indent}{}:", text(key)), member, depth, out);
            }
        }
        Value::Array(items) => {
            for item in items {
                entry(&format!("{indent}-"), item, depth, out);
            }
        }
        single => *out += &format!("{indent}{}\n", scalar(single)),
    }
}

fn entry(lead: &str, value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(_) | Value::Array(_) if !is_empty(value) => {
            *out += lead;
            out.push('\n');
            block(value, depth + 1, out);
        }
        single => *out += &format!("{lead} {}\n", scalar(single)),
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(words) => text(words),
        Value::Object(_) => "{}".to_owned(),
        other => other.to_string(),
    }
}

/// Plain where YAML reads it back as the same text.
fn text(words: &str) -> String {
    let taken = matches!(
        words.to_ascii_lowercase().as_str(),
        "" | "null" | "~" | "true" | "false" | "yes" | "no" | "on" | "off"
    );
    let starts = words.starts_with(|c: char| "-?:,[]{}#&*!|>'\"%@` ".contains(c));
    let inside = words.contains(": ") || words.contains(" #") || words.ends_with([':', ' ']);
    let quoted =
        taken || starts || inside || words.parse::<f64>().is_ok() || words.contains(char::is_control);
    if quoted { Value::from(words).to_string() } else { words.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_reads_like_yaml_and_means_the_same() {
        let value = json!({
            "listen": { "mcp": "127.0.0.1:8081", "hosts": [] },
            "token": "***", "none": null, "args": ["-y", "pkg", { "a": true, "b": "true" }],
        });
        let shown = tree(&value);
        let expected = "listen:\n  mcp: 127.0.0.1:8081\n  hosts: []\ntoken: \"***\"\nargs:\n  - \"-y\"\n  - pkg\n  -\n    a: true\n    b: \"true\"";
        assert_eq!(shown, expected);
        let back: Value = serde_saphyr::from_str(&shown).unwrap();
        assert_eq!(back["args"], value["args"]);
        assert_eq!(back["token"], "***");
    }
}
