//! A source's result as the asker's era wants it: what that era requires is added, what belongs to the other era or to
//! the other hop is taken away, everything else keeps its bytes.

use serde_json::value::RawValue;
use toolcrib_core::raw::{Members, ObjectWriter, Raw};

use crate::{meta, serve::server_info, version::Era};

/// Whether a result says for how long it may be kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    Silent,
    Hinted,
}

/// The text of the result, ready to go out.
pub fn result(result: Raw, era: Era, caching: Caching) -> String {
    match era {
        Era::Legacy => legacy(result),
        Era::Modern => modern(&result, caching),
    }
}

fn legacy(result: Raw) -> String {
    let members = Members::parse_lenient(&result);
    let foreign = |key: &str| matches!(key, "resultType" | "ttlMs" | "cacheScope");
    let tagged = |raw: &RawValue| raw.get().contains(meta::RESERVED);
    if !members.iter().any(|(key, value)| foreign(key) || (key == "_meta" && tagged(value))) {
        return String::from(Box::<str>::from(result));
    }
    let mut object = ObjectWriter::with_capacity(result.get().len());
    for (key, value) in members.iter().filter(|(key, _)| !foreign(key)) {
        if key != "_meta" {
            object.member(key, value);
            continue;
        }
        let kept = meta::without_reserved(value);
        if !kept.is_empty() {
            object.member("_meta", &meta::object(&kept));
        }
    }
    object.into_text()
}

fn modern(result: &RawValue, caching: Caching) -> String {
    let members = Members::parse_lenient(result);
    let mut object = ObjectWriter::with_capacity(result.get().len() + 192);
    for (key, value) in members.iter().filter(|(key, _)| *key != "_meta") {
        match key {
            // A source cannot know who may see what the crib shows to some and not to others.
            "cacheScope" if caching == Caching::Hinted => object.text(key, "private"),
            key => object.member(key, value),
        };
    }
    let kind = members.text("resultType");
    if kind.is_none() {
        object.text("resultType", "complete");
    }
    let complete = kind.is_none_or(|kind| kind == "complete");
    if caching == Caching::Hinted && complete {
        if members.find("ttlMs").is_none() {
            object.raw("ttlMs", "0");
        }
        if members.find("cacheScope").is_none() {
            object.text("cacheScope", "private");
        }
    }
    sign(&mut object, members.find("_meta").map(meta::without_reserved).unwrap_or_default());
    object.into_text()
}

/// `_meta` with the crib's name in it, as every result of the modern wire has.
pub fn sign(result: &mut ObjectWriter, mut about: Vec<(String, Raw)>) {
    about.push((meta::SERVER_INFO.to_owned(), server_info()));
    result.member("_meta", &meta::object(&about));
}

#[cfg(test)]
mod tests {
    use toolcrib_core::testing::json;

    use super::*;

    #[test]
    fn a_legacy_client_sees_nothing_of_the_modern_wire() {
        let from = json(
            r#"{"content":[ ],"resultType":"complete","ttlMs":5,"x":1.50,"_meta":{"io.modelcontextprotocol/serverInfo":{},"v/k":1}}"#,
        );
        let told = result(from, Era::Legacy, Caching::Silent);
        assert_eq!(told, r#"{"content":[ ],"x":1.50,"_meta":{"v/k":1}}"#);
    }

    #[test]
    fn a_modern_client_gets_what_its_wire_requires() {
        let told = result(json(r#"{"contents":[],"_meta":{"v/k":1}}"#), Era::Modern, Caching::Hinted);
        assert!(told.starts_with(
            r#"{"contents":[],"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"v/k":1,"#
        ));
        assert!(told.contains(r#""name":"toolcrib""#));
        let shared = json(r#"{"contents":[],"ttlMs":9,"cacheScope":"public"}"#);
        let told = result(shared, Era::Modern, Caching::Hinted);
        assert!(told.starts_with(r#"{"contents":[],"ttlMs":9,"cacheScope":"private","#), "{told}");
        let asking = result(json(r#"{"resultType":"input_required"}"#), Era::Modern, Caching::Hinted);
        assert!(!asking.contains("ttlMs"));
    }
}
