//! The generated schema and reference page match what is committed, and say yes to the files that load.
//!
//! `TOOLCRIB_BLESS=1 cargo test -p toolcrib --test config_schema` writes the generated files anew.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::path::{Path, PathBuf};

use serde_json::Value;
use toolcrib::config;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn compare(path: &str, generated: &str) {
    let path = root().join(path);
    if std::env::var_os("TOOLCRIB_BLESS").is_some() {
        std::fs::write(&path, generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == generated, "{} is out of date: run with TOOLCRIB_BLESS=1", path.display());
}

#[test]
fn the_committed_schema_is_the_generated_one() {
    compare("docs/reference/config.schema.json", &format!("{:#}\n", config::schema()));
}

#[test]
fn the_committed_reference_is_the_generated_one() {
    compare("docs/reference/configuration.md", &config::reference());
}

/// Enough YAML for our own files: what the crib's reader takes, as JSON.
fn as_json(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

#[test]
fn examples_and_the_short_form_load_and_fit_the_schema() {
    let validator = jsonschema::draft202012::new(&config::schema()).unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config");
    let mut files = vec![fixtures.join("servers.yaml"), fixtures.join("full.yaml")];
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    assert!(files.len() >= 4);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let faults: Vec<String> = validator
            .iter_errors(&as_json(&text))
            .map(|fault| format!("{}: {fault}", fault.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{}: {faults:#?}", file.display());
        let env = |name: &str| match name {
            "HOME" => Some("/home/someone".to_owned()),
            "CI_TOKEN" => Some("0123456789abcdef".to_owned()),
            _ => None,
        };
        let loaded = config::load(Some(&file), &env).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        assert_eq!(loaded.warnings, [], "{}", file.display());
    }
}

#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let validator = jsonschema::draft202012::new(&config::schema()).unwrap();
    for bad in [
        "servers: {x: {comand: npx}}",
        "servers: {x: {name: no address}}",
        "servers: {x: {command: a, url: 'http://b'}}",
        "servers: {'a:b': {command: x}}",
        "servers: {crib: {command: x}}",
        "servers: {x: {command: a, timeout: soon}}",
        "servers: {x: {url: 'ftp://x'}}",
        "limits: {body: lots}",
        "names: loud",
        "listen: {mcp: nowhere}",
        "local: {tools: {allow: [1]}}",
        "colour: red",
    ] {
        assert!(!validator.is_valid(&as_json(bad)), "schema takes {bad}");
        if !bad.contains("allow: [1]") {
            assert!(config::parse(bad, None, &|_| None).is_err(), "reader takes {bad}");
        }
    }
}

#[test]
fn documented_defaults_are_the_real_ones() {
    fn defaults(schema: &Value) -> Value {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return Value::Null;
        };
        let members = properties.iter().filter(|(key, _)| !key.contains(char::is_uppercase));
        members
            .filter_map(|(key, schema)| match (schema.get("default"), defaults(schema)) {
                (Some(default), _) => Some((key.clone(), default.clone())),
                (None, inner) if inner.as_object().is_none_or(serde_json::Map::is_empty) => None,
                (None, inner) => Some((key.clone(), inner)),
            })
            .collect::<serde_json::Map<_, _>>()
            .into()
    }
    let schema = config::schema();
    let env = |name: &str| (name == "HOME").then(|| "/home/someone".to_owned());
    let empty = config::parse("", None, &env).unwrap().config;
    let spelled = config::parse(&defaults(&schema).to_string(), None, &env).unwrap().config;
    assert_eq!(spelled, empty);

    let mut server = defaults(&schema["$defs"]["server"]);
    let bare = config::parse("servers: {x: {command: y}}", None, &env).unwrap().config;
    server["command"] = "y".into();
    let spelled = serde_json::json!({ "servers": { "x": server } }).to_string();
    assert_eq!(config::parse(&spelled, None, &env).unwrap().config, bare);
}
