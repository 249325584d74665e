//! The rules of the house: each one function over the tracked files, each with a sample it catches.
//!
//! A rule never changes a file and never asks the network. `tests/tidy.rs` runs each on the tree as it stands;
//! `cargo xtask tidy` prints all findings at once. Files that may break a rule, and why: `tidy/exceptions.rs`.

pub mod docs;
pub mod exceptions;
pub mod habits;
pub mod house;
pub mod manifest;
pub mod names;
pub mod scan;
pub mod shape;
pub mod tree;

use std::fmt;

use anyhow::Result;

use crate::place::Place;
use tree::Tree;

/// One thing that is not tidy: where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub path: String,
    pub line: usize,
    pub what: String,
}

impl Finding {
    pub fn new(path: &str, line: usize, what: impl Into<String>) -> Finding {
        Finding { path: path.to_string(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// A rule looks at the whole tree and says what is wrong with it.
pub type Rule = fn(&Tree) -> Vec<Finding>;

/// Every rule, by the name of its test.
pub const RULES: &[(&str, Rule)] = &[
    ("core_depends_on_none_of_ours", house::core_depends_on_none_of_ours),
    ("core_does_no_io", house::core_does_no_io),
    ("keepers_and_tongues_do_not_know_each_other", house::keepers_and_tongues_do_not_know_each_other),
    ("heavy_crates_have_only_their_named_users", house::heavy_crates_have_only_their_named_users),
    ("anyhow_stays_in_programs", house::anyhow_stays_in_programs),
    ("every_crate_says_what_it_is", house::every_crate_says_what_it_is),
    ("every_file_opens_by_saying_what_it_is", shape::every_file_opens_by_saying_what_it_is),
    ("no_file_is_called_mod", shape::no_file_is_called_mod),
    ("files_are_one_sitting_long", shape::files_are_one_sitting_long),
    ("functions_fit_a_screen", shape::functions_fit_a_screen),
    ("core_keeps_its_budget", shape::core_keeps_its_budget),
    ("names_say_what_a_thing_is", names::names_say_what_a_thing_is),
    ("functions_are_named_by_their_verb", names::functions_are_named_by_their_verb),
    ("unfinished_work_names_its_issue", habits::unfinished_work_names_its_issue),
    ("no_test_is_ignored", habits::no_test_is_ignored),
    ("no_test_sleeps", habits::no_test_sleeps),
    ("nothing_names_a_private_place", habits::nothing_names_a_private_place),
    ("links_lead_somewhere", docs::links_lead_somewhere),
    ("every_page_can_be_reached", docs::every_page_can_be_reached),
    ("exceptions_are_still_needed", exceptions::exceptions_are_still_needed),
];

/// Prints every finding of every rule; hands back how many there are.
pub fn report(place: &Place) -> Result<usize> {
    let tree = Tree::read(&place.root)?;
    let mut count = 0;
    for (name, rule) in RULES {
        let findings = rule(&tree);
        if !findings.is_empty() {
            println!("{name}");
        }
        for finding in &findings {
            println!("  {finding}");
        }
        count += findings.len();
    }
    println!("{} rules, {} files, {count} findings", RULES.len(), tree.files.len());
    Ok(count)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_rule_is_run_on_the_tree() {
        let tests = include_str!("../tests/tidy.rs");
        for (name, _) in super::RULES {
            assert!(tests.contains(&format!("fn {name}()")), "add `{name}` to xtask/tests/tidy.rs");
        }
    }

    #[test]
    fn a_finding_names_file_line_and_remedy() {
        let finding = super::Finding::new("a/b.rs", 7, "split it");
        assert_eq!(finding.to_string(), "a/b.rs:7: split it");
    }
}
