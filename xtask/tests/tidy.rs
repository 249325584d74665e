//! Each rule of the house, run on the tree as it stands. What a rule is and why: `xtask/src/tidy/`.

use std::path::Path;

use xtask::tidy::tree::Tree;
use xtask::tidy::{Rule, docs, exceptions, habits, house, names, shape};

fn tidy(rule: Rule) -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let tree = Tree::read(&root)?;
    let findings: Vec<String> = rule(&tree).iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
    Ok(())
}

#[test]
fn core_depends_on_none_of_ours() -> anyhow::Result<()> {
    tidy(house::core_depends_on_none_of_ours)
}

#[test]
fn core_does_no_io() -> anyhow::Result<()> {
    tidy(house::core_does_no_io)
}

#[test]
fn keepers_and_tongues_do_not_know_each_other() -> anyhow::Result<()> {
    tidy(house::keepers_and_tongues_do_not_know_each_other)
}

#[test]
fn heavy_crates_have_only_their_named_users() -> anyhow::Result<()> {
    tidy(house::heavy_crates_have_only_their_named_users)
}

#[test]
fn anyhow_stays_in_programs() -> anyhow::Result<()> {
    tidy(house::anyhow_stays_in_programs)
}

#[test]
fn every_crate_says_what_it_is() -> anyhow::Result<()> {
    tidy(house::every_crate_says_what_it_is)
}

#[test]
fn every_file_opens_by_saying_what_it_is() -> anyhow::Result<()> {
    tidy(shape::every_file_opens_by_saying_what_it_is)
}

#[test]
fn no_file_is_called_mod() -> anyhow::Result<()> {
    tidy(shape::no_file_is_called_mod)
}

#[test]
fn files_are_one_sitting_long() -> anyhow::Result<()> {
    tidy(shape::files_are_one_sitting_long)
}

#[test]
fn functions_fit_a_screen() -> anyhow::Result<()> {
    tidy(shape::functions_fit_a_screen)
}

#[test]
fn core_keeps_its_budget() -> anyhow::Result<()> {
    tidy(shape::core_keeps_its_budget)
}

#[test]
fn names_say_what_a_thing_is() -> anyhow::Result<()> {
    tidy(names::names_say_what_a_thing_is)
}

#[test]
fn functions_are_named_by_their_verb() -> anyhow::Result<()> {
    tidy(names::functions_are_named_by_their_verb)
}

#[test]
fn unfinished_work_names_its_issue() -> anyhow::Result<()> {
    tidy(habits::unfinished_work_names_its_issue)
}

#[test]
fn no_test_is_ignored() -> anyhow::Result<()> {
    tidy(habits::no_test_is_ignored)
}

#[test]
fn no_test_sleeps() -> anyhow::Result<()> {
    tidy(habits::no_test_sleeps)
}

#[test]
fn nothing_names_a_private_place() -> anyhow::Result<()> {
    tidy(habits::nothing_names_a_private_place)
}

#[test]
fn links_lead_somewhere() -> anyhow::Result<()> {
    tidy(docs::links_lead_somewhere)
}

#[test]
fn every_page_can_be_reached() -> anyhow::Result<()> {
    tidy(docs::every_page_can_be_reached)
}

#[test]
fn exceptions_are_still_needed() -> anyhow::Result<()> {
    tidy(exceptions::exceptions_are_still_needed)
}
