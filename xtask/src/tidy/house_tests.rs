//! A bad sample for each rule of `house.rs`, and a good one beside it.

use super::*;
use crate::tidy::Rule;

fn findings(rule: Rule, files: &[(&str, &str)]) -> Vec<String> {
    rule(&Tree::sample(files)).iter().map(ToString::to_string).collect()
}

fn package(name: &str, needs: &str) -> String {
    format!("[package]\nname = \"{name}\"\ndescription = \"d\"\n[dependencies]\n{needs}\n")
}

#[test]
fn a_core_that_knows_us_is_found() {
    let bad = package("toolcrib-core", "serde = \"1\"\ntoolcrib-store.workspace = true");
    let found = findings(core_depends_on_none_of_ours, &[("crates/core/Cargo.toml", &bad)]);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("crates/core/Cargo.toml:6: `core` depends on `toolcrib-store`"));
    let good = package("toolcrib-core", "serde = \"1\"");
    assert!(findings(core_depends_on_none_of_ours, &[("crates/core/Cargo.toml", &good)]).is_empty());
}

#[test]
fn a_core_that_does_io_is_found() {
    let lib = "//! x\nuse std::{collections::HashMap, fs};\nuse tokio::net::TcpStream;\nfn a() { std::process::exit(1) }\n";
    let manifest = package("toolcrib-core", "rusqlite = \"1\"");
    let files = [("crates/core/Cargo.toml", manifest.as_str()), ("crates/core/src/lib.rs", lib)];
    let found = findings(core_does_no_io, &files);
    let told: Vec<&str> = found.iter().filter_map(|line| line.split(" uses ").next()).collect();
    assert_eq!(found.len(), 4, "{found:#?}");
    assert!(told[0].starts_with("crates/core/Cargo.toml:5"));
    for line in 2..=4 {
        assert!(found.iter().any(|text| text.starts_with(&format!("crates/core/src/lib.rs:{line}:"))));
    }
}

#[test]
fn comments_and_harmless_modules_of_core_are_not_found() {
    let lib = "//! std::fs is not used\nuse std::{fmt, sync::{atomic, mpsc}};\nuse tokio::sync::watch;\nlet x = \"std::fs\";\n";
    assert!(findings(core_does_no_io, &[("crates/core/src/lib.rs", lib)]).is_empty());
    let elsewhere = "use std::fs;";
    assert!(findings(core_does_no_io, &[("crates/store/src/lib.rs", elsewhere)]).is_empty());
}

#[test]
fn a_tongue_that_knows_a_keeper_is_found() {
    let rest = package("toolcrib-rest", "toolcrib-core = \"1\"\ntoolcrib-store = \"1\"");
    let found = findings(keepers_and_tongues_do_not_know_each_other, &[("crates/rest/Cargo.toml", &rest)]);
    assert_eq!(found, ["crates/rest/Cargo.toml:6: `rest` knows `store`: let `toolcrib` bring them together"]);
}

#[test]
fn the_binary_may_know_them_all() {
    let binary = package("toolcrib", "toolcrib-store = \"1\"\ntoolcrib-rest = \"1\"");
    let files = [("crates/toolcrib/Cargo.toml", binary.as_str())];
    assert!(findings(keepers_and_tongues_do_not_know_each_other, &files).is_empty());
}

#[test]
fn a_second_user_of_a_heavy_crate_is_found() {
    let deny = "[bans]\ndeny = [{ crate = \"rusqlite\", wrappers = [\"toolcrib-store\"], reason = \"r\" }]\n";
    let (store, rest) =
        (package("toolcrib-store", "rusqlite = \"1\""), package("toolcrib-rest", "rusqlite = \"1\""));
    let files = [("deny.toml", deny), ("crates/store/Cargo.toml", &store), ("crates/rest/Cargo.toml", &rest)];
    let found = findings(heavy_crates_have_only_their_named_users, &files);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("crates/rest/Cargo.toml:5: `toolcrib-rest` is not a named user of `rusqlite`")
    );
}

#[test]
fn a_list_that_names_nothing_is_found() {
    for deny in ["[bans]\n", "[bans]\ndeny = []\n", "not toml ["] {
        let found = findings(heavy_crates_have_only_their_named_users, &[("deny.toml", deny)]);
        assert_eq!(found.len(), 1, "{deny}");
    }
}

#[test]
fn anyhow_in_a_library_is_found() {
    let (store, xtask) = (package("toolcrib-store", "anyhow = \"1\""), package("xtask", "anyhow = \"1\""));
    let files = [("crates/store/Cargo.toml", store.as_str()), ("xtask/Cargo.toml", &xtask)];
    let found = findings(anyhow_stays_in_programs, &files);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("crates/store/Cargo.toml:5:"));
}

#[test]
fn a_crate_without_a_description_is_found() {
    let found =
        findings(every_crate_says_what_it_is, &[("crates/x/Cargo.toml", "[package]\nname = \"x\"\n")]);
    assert_eq!(found, ["crates/x/Cargo.toml:1: no `description`: say in one line what it is"]);
}
