//! Which checks are known to fail, where and why: `e2e/conformance-baseline.yaml`.
//!
//! It is strict both ways. A failure that is not listed is a finding, and so is a listed one that passes, fails in
//! another check, or is no longer run. Only what a later stage of the crib brings may be listed.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, anyhow};
use serde::Deserialize;

use super::suite::Scenario;
use super::{Revision, Weight};

const FILE: &str = include_str!("../../conformance-baseline.yaml");

/// What a listed failure may be about; anything else is a bug to be fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum About {
    Elicitation,
    Sampling,
    Roots,
    Tasks,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    pub about: About,
    pub why: String,
    /// Exactly the checks that fail.
    pub checks: BTreeSet<String>,
}

/// The known failures of one cell on one revision.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    pub scored: BTreeMap<String, Known>,
    pub unscored: BTreeMap<String, Known>,
}

impl Section {
    fn of(&self, weight: Weight) -> &BTreeMap<String, Known> {
        match weight {
            Weight::Scored => &self.scored,
            Weight::Unscored => &self.unscored,
        }
    }

    /// Whether this scenario's failure is a known one.
    pub fn knows(&self, scenario: &Scenario) -> bool {
        self.of(scenario.weight).contains_key(&scenario.name)
    }

    /// Everything about the result that was not agreed, as sentences.
    pub fn findings(&self, scenarios: &[Scenario]) -> Vec<String> {
        let unrun = [Weight::Scored, Weight::Unscored].into_iter().flat_map(|weight| {
            let run = move |name: &str| scenarios.iter().any(|one| one.name == name && one.weight == weight);
            let listed = self.of(weight).keys().filter(move |name| !run(name));
            listed.map(move |name| {
                format!("`{name}` is in the baseline and not among the {weight:?} scenarios")
            })
        });
        scenarios.iter().filter_map(|scenario| self.finding(scenario)).chain(unrun).collect()
    }

    fn finding(&self, scenario: &Scenario) -> Option<String> {
        let (name, failed) = (&scenario.name, scenario.failed());
        if scenario.is_vacuous() {
            return Some(format!("`{name}` left no result"));
        }
        match self.of(scenario.weight).get(name) {
            None if failed.is_empty() => None,
            None => Some(format!("`{name}` fails in {}", list(&failed))),
            Some(_) if failed.is_empty() => Some(format!("`{name}` passes: take it out of the baseline")),
            Some(known) => {
                let agreed: BTreeSet<&str> = known.checks.iter().map(String::as_str).collect();
                let found = format!("`{name}` fails in {}, listed are {}", list(&failed), list(&agreed));
                (failed != agreed).then_some(found)
            }
        }
    }
}

fn list(ids: &BTreeSet<&str>) -> String {
    ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ")
}

/// Cell, then revision. A cell or revision that is not listed has no known failures.
#[derive(Debug, Clone, Deserialize)]
pub struct Baseline(BTreeMap<String, BTreeMap<Revision, Section>>);

impl Baseline {
    pub fn read() -> Result<Self> {
        serde_saphyr::from_str(FILE).map_err(|error| anyhow!("`e2e/conformance-baseline.yaml`: {error}"))
    }

    pub fn section(&self, cell: &str, revision: Revision) -> Section {
        let found = self.0.get(cell).and_then(|revisions| revisions.get(&revision));
        found.cloned().unwrap_or_default()
    }

    pub fn cells(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::super::suite::{Check, Status};
    use super::*;

    fn scenario(name: &str, failing: &[&str]) -> Scenario {
        let failures = failing.iter().map(|id| Check {
            id: (*id).to_owned(),
            status: Status::Failure,
            said: Some("no".to_owned()),
        });
        let good = Check { id: "good".to_owned(), status: Status::Success, said: None };
        let checks = failures.chain([good]).collect();
        Scenario { name: name.to_owned(), weight: Weight::Scored, checks }
    }

    fn section() -> Section {
        serde_saphyr::from_str("scored: { s: { about: tasks, why: later, checks: [c] } }").expect("parses")
    }

    #[test]
    fn a_listed_failure_is_no_finding() {
        assert!(section().findings(&[scenario("s", &["c"]), scenario("t", &[])]).is_empty());
    }

    #[test]
    fn a_failure_nobody_listed_is_a_finding() {
        let found = section().findings(&[scenario("s", &["c"]), scenario("t", &["d"])]);
        assert_eq!(found, ["`t` fails in `d`"]);
    }

    #[test]
    fn a_listed_failure_that_passes_is_a_finding() {
        let found = section().findings(&[scenario("s", &[])]);
        assert_eq!(found, ["`s` passes: take it out of the baseline"]);
    }

    #[test]
    fn another_check_than_the_listed_one_is_a_finding() {
        assert_eq!(section().findings(&[scenario("s", &["c", "d"])]).len(), 1);
    }

    #[test]
    fn what_is_listed_must_be_run() {
        assert_eq!(section().findings(&[]).len(), 1);
    }

    #[test]
    fn only_what_comes_later_may_be_listed() {
        let other = "scored: { s: { about: ping, why: later, checks: [c] } }";
        assert!(serde_saphyr::from_str::<Section>(other).is_err());
    }

    #[test]
    fn the_baseline_in_the_tree_can_be_read() {
        Baseline::read().expect("it parses");
    }
}
