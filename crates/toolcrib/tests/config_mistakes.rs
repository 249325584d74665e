//! A file with every kind of mistake: all are told at once, each with its place, and no secret is shown.
//!
//! The expected text is `config/bad.txt`; `TOOLCRIB_BLESS=1` writes it anew.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::path::Path;

use toolcrib::config::{self, Mistakes};

fn mistakes(text: &str) -> Mistakes {
    config::parse(text, Some(Path::new("toolcrib.yaml")), &|_| None).unwrap_err()
}

#[test]
fn all_mistakes_are_told_together() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config");
    let text = std::fs::read_to_string(folder.join("bad.yaml")).unwrap();
    let told = format!("{}\n", mistakes(&text));
    if std::env::var_os("TOOLCRIB_BLESS").is_some() {
        std::fs::write(folder.join("bad.txt"), &told).unwrap();
    }
    assert_eq!(told, std::fs::read_to_string(folder.join("bad.txt")).unwrap());
    assert!(!told.contains("a-very-secret-value") && !told.contains("abc"), "{told}");
}

#[test]
fn a_mistake_has_file_line_column_and_caret() {
    let found = mistakes("servers:\n  git:\n    comand: npx\n    url: http://x/\n");
    let one = &found.mistakes[0];
    assert_eq!((one.file.as_str(), one.line, one.column), ("toolcrib.yaml", 3, 5));
    assert_eq!(
        one.to_string(),
        "toolcrib.yaml:3:5: unknown key `comand` in a server\n  3 |     comand: npx\n    |     ^^^^^^\n  \
         expected: did you mean `command`?"
    );
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["mistakes"][0]["line"], 3);
    assert_eq!(json["mistakes"][0]["expected"], "did you mean `command`?");
}

#[test]
fn a_listener_others_can_reach_needs_callers() {
    let found = mistakes("listen:\n  mcp: 0.0.0.0:1\n  admin: \"[::]:2\"\n");
    let places: Vec<_> = found.mistakes.iter().map(|one| (one.line, one.column)).collect();
    assert_eq!(places, [(2, 8), (3, 10)], "{found}");
    for (one, what) in found.mistakes.iter().zip(["`listen.mcp` is 0.0.0.0:1", "`listen.admin` is [::]:2"]) {
        assert!(one.what.starts_with(what) && one.what.contains("no `callers`"), "{one}");
    }
    let by_env = |pairs: &'static [(&str, &str)], text: &str| {
        let env =
            |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        config::parse(text, None, &env).map_err(|mistakes| mistakes.to_string())
    };
    let told = by_env(&[("TOOLCRIB_LISTEN_ADMIN", "0.0.0.0:7")], "listen: {mcp: 1}").unwrap_err();
    assert!(told.starts_with("environment variable `TOOLCRIB_LISTEN_ADMIN`: "), "{told}");
    // A token makes it right, wherever it comes from; a caller with a mistake is one mistake, not two.
    assert!(by_env(&[("TOOLCRIB_TOKEN", "0123456789abcdef")], "listen: {mcp: '0.0.0.0:1'}").is_ok());
    assert!(by_env(&[("TOOLCRIB_LISTEN_MCP", "127.0.0.1:1")], "listen: {mcp: '0.0.0.0:1'}").is_ok());
    assert!(by_env(&[], "listen: {mcp: '0.0.0.0:1'}\ncallers: {}").is_err());
    let told = by_env(&[], "listen: {mcp: '0.0.0.0:1'}\ncallers: {a: {token: short}}").unwrap_err();
    assert!(!told.contains("no `callers`") && told.ends_with("1 mistake"), "{told}");
    assert!(config::outline("listen: {mcp: '0.0.0.0:1'}", None, &|_| None).is_ok());
}

#[test]
fn the_id_of_the_cribs_own_tools_is_taken() {
    let found = mistakes("servers:\n  crib: { command: x }\n");
    let one = &found.mistakes[0];
    assert_eq!((one.line, one.column), (2, 3));
    assert!(one.what.contains("`crib` is the id of the crib's own tools"), "{one}");
}

#[test]
fn broken_yaml_is_placed_and_keeps_secrets() {
    let found = mistakes("callers:\n  a:\n    token: \"hush-hush-hush\n");
    let told = found.to_string();
    assert!(told.contains("not valid YAML"), "{told}");
    assert!(!told.contains("hush"), "{told}");
}

#[test]
fn long_lines_are_cut_around_the_caret() {
    let found = mistakes(&format!("{{ names: safe, {}colour: red }}", " ".repeat(5000)));
    let one = &found.mistakes[0];
    assert_eq!(one.column, 5016);
    assert!(one.excerpt.chars().count() <= 120);
    let caret = one.caret.find('^').unwrap();
    assert!(one.excerpt[caret..].starts_with("colour"), "{one}");
}

#[test]
fn a_flood_of_mistakes_is_counted() {
    let text: String = (0..80).map(|n| format!("unknown{n}: 1\n")).collect();
    let found = mistakes(&text);
    assert_eq!((found.mistakes.len(), found.more), (50, 30));
    assert!(found.to_string().ends_with("80 mistakes, the first 50 shown"));
}

#[test]
fn files_that_are_no_config_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("toolcrib.yaml");
    let load = || config::load(Some(&path), &|_| None).unwrap_err().to_string();
    assert!(load().contains("cannot be read"));
    std::fs::write(&path, b"name: \xff\n").unwrap();
    assert!(load().contains("is not UTF-8 text (line 1)"));
    std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert!(load().contains("is too large"));
    std::fs::write(&path, "- just\n- a list\n").unwrap();
    assert!(load().contains("the file is a list"));
}
