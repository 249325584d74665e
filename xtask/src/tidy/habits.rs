//! Rules about habits: unfinished work, tests that do not test, traces of one machine.
//!
//! Words that a rule looks for are spelled in two pieces here, so that the rules can be held to themselves.

use super::Finding;
use super::exceptions::{self, SLEEPS};
use super::scan::{scrub, test_regions, tokens};
use super::tree::{TextFile, Tree};

const UNFINISHED: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME")];

/// Places on the machine of whoever wrote a file, with what may stand before them.
const PRIVATE_PLACES: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("sha", "red/")];

/// Hosts of package registries: which one serves a build is the machine's business.
const REGISTRY_HOSTS: &[&str] = &[
    concat!("registry.npm", "js.org"),
    concat!("registry.yarn", "pkg.com"),
    concat!("pypi.org", "/simple"),
    concat!("files.python", "hosted.org"),
    concat!("index.crates", ".io"),
    concat!("static.crates", ".io"),
    concat!("deb.deb", "ian.org"),
];

/// Settings that name a registry by address, whatever its host.
const REGISTRY_SETTINGS: &[&str] = &[
    concat!("\"resolved\": ", "\"http"),
    concat!("source = \"spa", "rse+"),
    concat!("index-", "url"),
    concat!("registry=", "http"),
    concat!("--registry ", "http"),
];

/// Unfinished work names its issue, `(#n)`, or it is forgotten.
pub fn unfinished_work_names_its_issue(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in &tree.files {
        for (number, line) in file.lines() {
            for mark in UNFINISHED {
                if rests_after_word(line, mark).any(|rest| !rest.starts_with("(#")) {
                    let what = format!("`{mark}` without an issue: write `{mark}(#n)`, or do it now");
                    found.push(Finding::new(&file.path, number, what));
                }
            }
        }
    }
    found
}

/// What follows each whole-word `mark` in `line`.
fn rests_after_word<'a>(line: &'a str, mark: &'a str) -> impl Iterator<Item = &'a str> {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(mark).filter_map(move |(at, _)| {
        let before = line.get(..at)?.chars().next_back();
        let rest = line.get(at + mark.len()..)?;
        let whole = !before.is_some_and(is_letter) && !rest.starts_with(is_letter);
        whole.then_some(rest)
    })
}

/// No ignored tests: a test that never runs is a claim nobody checks.
pub fn no_test_is_ignored(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.rust() {
        let scrubbed = scrub(&file.text);
        for window in tokens(&scrubbed).windows(3) {
            if let [hash, bracket, word] = window
                && (hash.text, bracket.text, word.text) == ("#", "[", "ignore")
            {
                found.push(Finding::new(&file.path, word.line, "an ignored test: make it run, or delete it"));
            }
        }
    }
    found
}

/// Tests do not sleep: a sleep is a guess about a machine, too short on one and too long on the other.
pub fn no_test_sleeps(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.rust().filter(|file| exceptions::limit(SLEEPS, &file.path, "").is_none()) {
        for line in sleeping_lines(file) {
            let what = "a sleep in a test: wait for the thing itself (a line, a channel, a health answer)";
            found.push(Finding::new(&file.path, line, what));
        }
    }
    found
}

/// Lines of tests that call `sleep` or `sleep_until`.
pub fn sleeping_lines(file: &TextFile) -> Vec<usize> {
    // The fixture is a peer, not a test: being slow is one of its tools.
    let is_fixture = file.path.starts_with("e2e/src/fixture") || file.path == "e2e/src/bin/fixture.rs";
    let in_e2e = file.path.starts_with("e2e/") && !is_fixture;
    let all_of_it = in_e2e || file.path.contains("/tests/") || file.path.ends_with("tests.rs");
    let scrubbed = scrub(&file.text);
    let tokens = tokens(&scrubbed);
    let regions = test_regions(&tokens);
    let in_test = |line: usize| all_of_it || regions.iter().any(|region| region.contains(&line));
    let mut found = Vec::new();
    for pair in tokens.windows(2) {
        if let [name, open] = pair
            && matches!(name.text, "sleep" | "sleep_until" | "sleep_ms")
            && open.text == "("
            && in_test(name.line)
        {
            found.push(name.line);
        }
    }
    found
}

/// No tracked file names a private place or a registry's host: the repository must mean the same everywhere.
pub fn nothing_names_a_private_place(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in &tree.files {
        for (number, line) in file.lines() {
            for place in PRIVATE_PLACES.iter().filter(|place| names_place(line, place)) {
                let what = format!("`{place}` is a place on one machine: use a path inside the repository");
                found.push(Finding::new(&file.path, number, what));
            }
            for host in REGISTRY_HOSTS.iter().chain(REGISTRY_SETTINGS).filter(|host| line.contains(**host)) {
                let what = format!("`{host}` names a registry: leave the choice to the machine");
                found.push(Finding::new(&file.path, number, what));
            }
        }
    }
    found
}

/// Whether `place` stands in `line` as the start of a path, or after a step up.
fn names_place(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line.get(..at).unwrap_or_default();
        before.ends_with("../") || !before.ends_with(|c: char| c.is_alphanumeric() || "_-./".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rule: crate::tidy::Rule, path: &str, text: &str) -> Vec<usize> {
        rule(&Tree::sample(&[(path, text)])).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn unfinished_work_without_an_issue_is_found() {
        let text = format!("{0}: later\n{0}(#12): later\n// {1} x\nMAS{0}N\n", UNFINISHED[0], UNFINISHED[1]);
        assert_eq!(lines(unfinished_work_names_its_issue, "a.md", &text), [1, 3]);
    }

    #[test]
    fn an_ignored_test_is_found() {
        let text = "#[test]\n#[ignore]\nfn a() {}\n// #[ignore]\n#[ignore = \"slow\"]\n";
        assert_eq!(lines(no_test_is_ignored, "a.rs", text), [2, 5]);
    }

    #[test]
    fn a_sleep_in_a_test_is_found() {
        let text = "fn backoff() { sleep(1); }\n#[cfg(test)]\nmod tests {\n  fn a() {\n    thread::sleep(x);\n    tokio::time::sleep(y).await;\n  }\n}\n";
        assert_eq!(lines(no_test_sleeps, "crates/x/src/a.rs", text), [5, 6]);
        assert_eq!(lines(no_test_sleeps, "crates/x/tests/a.rs", text), [1, 5, 6]);
        assert_eq!(lines(no_test_sleeps, "e2e/src/lib.rs", "fn a() { sleep_until(x) }"), [1]);
        assert!(lines(no_test_sleeps, "e2e/src/fixture/slow.rs", "fn a() { sleep_until(x) }").is_empty());
    }

    #[test]
    fn a_private_place_is_found() {
        for place in PRIVATE_PLACES {
            let text = format!("see {place}x\n`../{place}x`\nfine: net{place}x crates{place}x\n");
            assert_eq!(lines(nothing_names_a_private_place, "a.md", &text), [1, 2], "{place}");
        }
    }

    #[test]
    fn a_registry_is_found_by_host_and_by_setting() {
        for mark in REGISTRY_HOSTS.iter().chain(REGISTRY_SETTINGS) {
            assert_eq!(
                lines(nothing_names_a_private_place, "a.txt", &format!("x {mark}s://y")),
                [1],
                "{mark}"
            );
        }
        let lock = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
        assert!(lines(nothing_names_a_private_place, "Cargo.lock", lock).is_empty());
    }
}
