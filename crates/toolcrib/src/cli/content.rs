//! The content blocks of a tool's answer, for people: text as it is, everything else described; and the bytes in them.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::trouble::Trouble;

/// The answer in words.
pub fn text(result: &Value) -> String {
    let blocks = blocks(result);
    if blocks.is_empty() {
        return match result.get("structuredContent") {
            Some(structured) => serde_json::to_string_pretty(structured).unwrap_or_default(),
            None => String::new(),
        };
    }
    blocks.iter().map(described).collect::<Vec<_>>().join("\n")
}

fn blocks(result: &Value) -> &[Value] {
    result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn member<'a>(block: &'a Value, key: &str) -> Option<&'a str> {
    block.get(key).and_then(Value::as_str)
}

fn described(block: &Value) -> String {
    let kind = member(block, "type").unwrap_or("block of no type");
    match kind {
        "text" => member(block, "text").unwrap_or_default().to_owned(),
        "image" | "audio" => {
            let size = bytes(block).map_or_else(|| "unreadable".into(), |bytes| size(bytes.len()));
            let mime = member(block, "mimeType").unwrap_or("no type given");
            format!("[{kind}: {mime}, {size}; save it with --out FILE]")
        }
        "resource_link" => {
            let name = member(block, "title").or_else(|| member(block, "name")).unwrap_or("resource");
            format!("[link: {name} <{}>]", member(block, "uri").unwrap_or_default())
        }
        "resource" => {
            let resource = block.get("resource").unwrap_or(&Value::Null);
            let uri = member(resource, "uri").unwrap_or_default();
            match (member(resource, "text"), bytes(block)) {
                (Some(text), _) => format!("[resource: {uri}]\n{text}"),
                (None, Some(bytes)) => {
                    format!("[resource: {uri}, {}; save it with --out FILE]", size(bytes.len()))
                }
                (None, None) => format!("[resource: {uri}]"),
            }
        }
        other => format!("[{other}: {block}]"),
    }
}

/// What a block carries besides words.
fn bytes(block: &Value) -> Option<Vec<u8>> {
    match member(block, "type")? {
        "image" | "audio" => STANDARD.decode(member(block, "data")?).ok(),
        "resource" => {
            let resource = block.get("resource")?;
            match member(resource, "blob") {
                Some(blob) => STANDARD.decode(blob).ok(),
                None => member(resource, "text").map(|text| text.as_bytes().to_vec()),
            }
        }
        _ => None,
    }
}

/// Writes the first image, audio or file of the answer, else its text; tells what was written.
pub fn save(result: &Value, path: &Path) -> Result<String, Trouble> {
    let found = blocks(result).iter().find_map(|block| Some((member(block, "type")?, bytes(block)?)));
    let (kind, bytes) = match found {
        Some(found) => found,
        None => ("text", text(result).into_bytes()),
    };
    std::fs::write(path, &bytes)
        .map_err(|error| Trouble::failed(format!("`{}` cannot be written: {error}", path.display())))?;
    Ok(format!("{kind}, {}", size(bytes.len())))
}

/// Bytes for people.
pub fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_printed_and_the_rest_described() {
        let result = json!({ "content": [
            { "type": "text", "text": "one\ntwo" },
            { "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" },
            { "type": "resource_link", "uri": "file:///a", "name": "a" },
            { "type": "resource", "resource": { "uri": "x:y", "text": "inside" } },
            { "type": "hologram", "depth": 3 },
        ]});
        assert_eq!(
            text(&result),
            "one\ntwo\n[image: image/png, 8 B; save it with --out FILE]\n[link: a <file:///a>]\n[resource: x:y]\ninside\n[hologram: {\"type\":\"hologram\",\"depth\":3}]"
        );
        assert_eq!(text(&json!({ "content": [], "structuredContent": { "a": 1 } })), "{\n  \"a\": 1\n}");
    }

    #[test]
    fn the_first_picture_is_saved() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        let result = json!({ "content": [{ "type": "text", "text": "see" }, { "type": "image", "data": "iVBORw0KGgo=" }] });
        assert_eq!(save(&result, &path).unwrap(), "image, 8 B");
        assert_eq!(std::fs::read(&path).unwrap(), b"\x89PNG\r\n\x1a\n");
    }
}
