//! One run of the suite: started on Node 22, its `checks.json` files read, one result per required scenario.
//!
//! What was required comes from the suite's own list, not from what it happened to write: a scenario without a result
//! is a failure, and so is one that checked nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::Method;
use serde::Deserialize;
use tokio::process::Command;

use super::{Revision, Weight};
use crate::peers::{self, Group};
use crate::wire::fetch;

const PACKAGE: &str = "@modelcontextprotocol/conformance";

/// What one scenario may take, as the suite is told.
const SCENARIO_MS: &str = "30000";

/// What a whole run may take.
const RUN: Duration = Duration::from_secs(300);

/// The part of a check that matters here.
#[derive(Debug, Clone, Deserialize)]
pub struct Check {
    pub id: String,
    pub status: Status,
    #[serde(rename = "errorMessage")]
    pub said: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    Success,
    Failure,
    Warning,
    Skipped,
    Info,
}

/// One scenario and what came of it.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub name: String,
    pub weight: Weight,
    /// Empty when the suite left no result.
    pub checks: Vec<Check>,
}

impl Scenario {
    pub fn count(&self, status: Status) -> usize {
        self.checks.iter().filter(|check| check.status == status).count()
    }

    /// The ids of the checks that failed.
    pub fn failed(&self) -> BTreeSet<&str> {
        let failed = self.checks.iter().filter(|check| check.status == Status::Failure);
        failed.map(|check| check.id.as_str()).collect()
    }

    /// Nothing was found good or bad, where something had to be.
    pub fn is_vacuous(&self) -> bool {
        let judged = self.count(Status::Success) + self.count(Status::Failure);
        self.checks.is_empty() || (self.weight == Weight::Scored && judged == 0)
    }
}

/// Runs every server scenario of `revision` against `url`.
pub async fn run(url: &str, revision: Revision) -> Result<Vec<Scenario>> {
    // Half of the suite passes against an address where nobody is.
    fetch(Method::GET, url, &[], "").await.with_context(|| format!("nothing answers at `{url}`"))?;
    let (node, index) = (peers::node()?, Group::Node22.module(PACKAGE, "dist/index.js")?);
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(node);
    command.arg(index).args(["server", "--url", url, "--requirements", revision.date()]);
    command.args(["--timeout", SCENARIO_MS, "-o"]).arg(folder.path()).kill_on_drop(true);
    let output = match tokio::time::timeout(RUN, command.output()).await {
        Ok(output) => output.context("the conformance suite cannot be started")?,
        Err(_) => bail!("the conformance suite did not end within {RUN:?}"),
    };
    let mut found = results(folder.path())?;
    if found.is_empty() {
        bail!("the suite left no results; it said:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let scenarios = required(revision)?.into_iter().map(|(name, weight)| {
        let checks = found.remove(&name).unwrap_or_default();
        Scenario { name, weight, checks }
    });
    let scenarios = scenarios.collect();
    match found.into_keys().next() {
        None => Ok(scenarios),
        Some(stray) => bail!("the suite ran `{stray}`, which is in none of its requirements"),
    }
}

/// The checks of every folder the suite wrote, by scenario.
fn results(folder: &Path) -> Result<BTreeMap<String, Vec<Check>>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let text = match std::fs::read_to_string(entry.path().join("checks.json")) {
            Ok(text) => text,
            Err(_) => continue,
        };
        let folder = entry.file_name().to_string_lossy().into_owned();
        let name = scenario_of(&folder).with_context(|| format!("`{folder}` names no scenario"))?;
        let checks = serde_json::from_str(&text).with_context(|| format!("the checks of `{name}`"))?;
        found.insert(name.to_owned(), checks);
    }
    Ok(found)
}

/// `server-tools-list-2026-11-15T10-23-36-544Z` is about `tools-list`.
fn scenario_of(folder: &str) -> Option<&str> {
    const TIME: usize = "-2026-11-15T10-23-36-544Z".len();
    let name = folder.strip_prefix("server-")?;
    name.get(..name.len().checked_sub(TIME)?)
}

#[derive(Deserialize)]
struct Requirements {
    server: Vec<String>,
    #[serde(default)]
    not_scored: Vec<NotScored>,
}

#[derive(Deserialize)]
struct NotScored {
    scenario: String,
    leg: String,
}

/// What the suite itself says must be run, in its order.
fn required(revision: Revision) -> Result<Vec<(String, Weight)>> {
    let path = Group::Node22.module(PACKAGE, &format!("requirements/{revision}.yaml"))?;
    let text = std::fs::read_to_string(&path)?;
    let requirements: Requirements = serde_saphyr::from_str(&text)
        .map_err(|error| anyhow::anyhow!("`{}` cannot be read: {error}", path.display()))?;
    let unscored = requirements.not_scored.into_iter().filter(|entry| entry.leg == "server");
    let scored = requirements.server.into_iter().map(|name| (name, Weight::Scored));
    Ok(scored.chain(unscored.map(|entry| (entry.scenario, Weight::Unscored))).collect())
}

#[cfg(test)]
mod tests {
    use super::{Check, Scenario, Status, Weight, scenario_of};

    fn scenario(weight: Weight, statuses: &[Status]) -> Scenario {
        let check = |status: &Status| Check { id: "c".to_owned(), status: *status, said: None };
        Scenario { name: "s".to_owned(), weight, checks: statuses.iter().map(check).collect() }
    }

    #[test]
    fn a_folder_names_its_scenario() {
        let folder = "server-server-sse-polling-2026-11-15T10-23-37-578Z";
        assert_eq!(scenario_of(folder), Some("server-sse-polling"));
        assert_eq!(scenario_of("server-x"), None);
    }

    #[test]
    fn a_scenario_that_checked_nothing_is_vacuous() {
        assert!(scenario(Weight::Scored, &[]).is_vacuous());
        assert!(scenario(Weight::Scored, &[Status::Skipped]).is_vacuous());
        assert!(!scenario(Weight::Unscored, &[Status::Skipped]).is_vacuous());
        assert!(!scenario(Weight::Scored, &[Status::Success]).is_vacuous());
    }
}
