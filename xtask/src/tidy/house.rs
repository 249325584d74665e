//! Rules about the shape of the house: which crate may know which.
//!
//! The three invariants of ARCHITECTURE.md are the first four functions here. What a manifest is: `manifest.rs`.

use toml_edit::{Document, Item};

use super::Finding;
use super::manifest::{self, Manifest};
use super::scan::{scrub, tokens};
use super::tree::Tree;

/// Crates that must not know each other: three keepers, three tongues, and the agents.
const SIDES: &[&str] = &["store", "vault", "sandbox", "mcp", "grpc", "rest", "agent"];

/// Third-party crates that open sockets, files or processes.
const IO_CRATES: &[&str] = &[
    "axum",
    "bollard",
    "hyper",
    "hyper-rustls",
    "hyper-util",
    "mio",
    "nix",
    "notify",
    "process-wrap",
    "redis",
    "reqwest",
    "rmcp",
    "rusqlite",
    "rustix",
    "socket2",
    "tempfile",
    "tokio-postgres",
    "tonic",
    "tower-http",
    "ureq",
    "walkdir",
];

/// Modules of `std` and `tokio` that do input or output.
const IO_MODULES: &[&str] = &["fs", "net", "process", "os"];

/// Crates that are programs: their errors end on a terminal, so they need no type.
const PROGRAMS: &[&str] = &["toolcrib", "xtask", "e2e", "bench"];

fn is_ours(manifests: &[Manifest], package: &str) -> bool {
    package.starts_with("toolcrib") || manifests.iter().any(|manifest| manifest.name == package)
}

/// `core` depends on none of ours: every arrow of the house points to it, so one back would be a circle of
/// knowledge even where cargo allows it.
pub fn core_depends_on_none_of_ours(tree: &Tree) -> Vec<Finding> {
    let manifests = manifest::all(tree);
    let mut found = Vec::new();
    for core in manifests.iter().filter(|manifest| manifest.folder() == "crates/core") {
        for need in core.needs.iter().filter(|need| is_ours(&manifests, &need.package)) {
            let what =
                format!("`core` depends on `{}`: move what it needs into `core`, as a port", need.package);
            found.push(Finding::new(&core.path, need.line, what));
        }
    }
    found
}

/// `core` does no input or output: what it decides can then be tested without a machine around it.
pub fn core_does_no_io(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for core in manifest::all(tree).iter().filter(|manifest| manifest.folder() == "crates/core") {
        for need in core.needs.iter().filter(|need| IO_CRATES.contains(&need.package.as_str())) {
            let what = format!("`core` depends on `{}`, which does I/O: put it behind a port", need.package);
            found.push(Finding::new(&core.path, need.line, what));
        }
    }
    for file in tree.rust().filter(|file| file.path.starts_with("crates/core/")) {
        let scrubbed = scrub(&file.text);
        for (line, module) in io_uses(&scrubbed) {
            let what = format!("`core` uses `{module}`, which does I/O: put it behind a port");
            found.push(Finding::new(&file.path, line, what));
        }
    }
    found
}

/// Paths such as `std::fs` and `tokio::{net, sync}` in scrubbed source.
fn io_uses(scrubbed: &str) -> Vec<(usize, String)> {
    let tokens = tokens(scrubbed);
    let mut found = Vec::new();
    for (index, root) in tokens.iter().enumerate().filter(|(_, token)| matches!(token.text, "std" | "tokio"))
    {
        let mut after = tokens.iter().skip(index + 1);
        if !(after.next().is_some_and(|t| t.text == ":") && after.next().is_some_and(|t| t.text == ":")) {
            continue;
        }
        let mut depth = 0_i32;
        let mut at_start = true;
        for token in after {
            match token.text {
                "{" => depth += 1,
                "}" => depth -= 1,
                name if at_start && depth < 2 && IO_MODULES.contains(&name) => {
                    found.push((token.line, format!("{}::{name}", root.text)));
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
            at_start = matches!(token.text, "{" | ",");
        }
    }
    found
}

/// Keepers and tongues do not depend on each other: each can be read, tested and replaced alone, and `toolcrib`
/// is the one place where they meet.
pub fn keepers_and_tongues_do_not_know_each_other(tree: &Tree) -> Vec<Finding> {
    let manifests = manifest::all(tree);
    let side_of = |package: &str| {
        let known = manifests.iter().find(|manifest| manifest.name == package).map(Manifest::short);
        let short = known.unwrap_or_else(|| package.strip_prefix("toolcrib-").unwrap_or_default());
        SIDES.iter().find(|side| **side == short)
    };
    let mut found = Vec::new();
    for manifest in manifests.iter().filter(|manifest| SIDES.contains(&manifest.short())) {
        for need in &manifest.needs {
            let Some(other) = side_of(&need.package).filter(|other| **other != manifest.short()) else {
                continue;
            };
            let what = format!("`{}` knows `{other}`: let `toolcrib` bring them together", manifest.short());
            found.push(Finding::new(&manifest.path, need.line, what));
        }
    }
    found
}

/// Each heavy crate has the direct users that `deny.toml` names and no other: it is then replaced in one place.
/// cargo-deny checks the same list on the resolved graph; here it is checked without any tool.
pub fn heavy_crates_have_only_their_named_users(tree: &Tree) -> Vec<Finding> {
    const LIST: &str = "deny.toml";
    let rules = tree.file(LIST).map(|file| banned(&file.text)).unwrap_or_default();
    if rules.iter().all(|(_, wrappers)| wrappers.is_empty()) {
        return vec![Finding::new(
            LIST,
            1,
            "no `[bans] deny` entry with `wrappers`: name the heavy crates there",
        )];
    }
    let mut found = Vec::new();
    for manifest in manifest::all(tree) {
        for need in &manifest.needs {
            let Some((_, wrappers)) = rules.iter().find(|(package, _)| *package == need.package) else {
                continue;
            };
            if !wrappers.contains(&manifest.name) {
                let what = format!(
                    "`{}` is not a named user of `{}`: go through {}, or change `deny.toml` and say why",
                    manifest.name,
                    need.package,
                    wrappers.join(", ")
                );
                found.push(Finding::new(&manifest.path, need.line, what));
            }
        }
    }
    found
}

/// `[bans] deny` of a `deny.toml`: each crate with the users it is allowed.
fn banned(text: &str) -> Vec<(String, Vec<String>)> {
    let Ok(document) = Document::parse(text) else { return Vec::new() };
    let deny = document.get("bans").and_then(|bans| bans.get("deny")).and_then(Item::as_array);
    let mut rules = Vec::new();
    for entry in deny.into_iter().flatten().filter_map(|entry| entry.as_inline_table()) {
        let name = entry.get("crate").or_else(|| entry.get("name")).and_then(|name| name.as_str());
        let wrappers = entry.get("wrappers").and_then(|wrappers| wrappers.as_array());
        let wrappers =
            wrappers.into_iter().flatten().filter_map(|user| user.as_str()).map(str::to_string).collect();
        if let Some(name) = name.and_then(|name| name.split('@').next()) {
            rules.push((name.to_string(), wrappers));
        }
    }
    rules
}

/// `anyhow` only in programs: a library's errors are part of what it promises.
pub fn anyhow_stays_in_programs(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for manifest in manifest::all(tree).iter().filter(|manifest| !PROGRAMS.contains(&manifest.short())) {
        for need in manifest.needs.iter().filter(|need| need.package == "anyhow") {
            let what = "`anyhow` in a library: make a `thiserror` enum beside the code that fails";
            found.push(Finding::new(&manifest.path, need.line, what));
        }
    }
    found
}

/// Every crate has a description: the shortest map of the house is the list of them.
pub fn every_crate_says_what_it_is(tree: &Tree) -> Vec<Finding> {
    let silent = manifest::all(tree).into_iter().filter(|manifest| manifest.description.trim().is_empty());
    silent
        .map(|manifest| Finding::new(&manifest.path, 1, "no `description`: say in one line what it is"))
        .collect()
}

#[cfg(test)]
#[path = "house_tests.rs"]
mod tests;
