//! Everything CI runs, in order, and the table at the end.
//!
//! A failing step does not hide the ones after it, except those that cannot mean anything without it (`needs`).
//! How one command is run: `step.rs`. How tests are counted: `tally.rs`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::licences;
use crate::place::Place;
use crate::step::{self, Ended, Outcome, Output, Record};
use crate::tally::Tally;

/// End-to-end tests start several processes each: more at once than this and a small machine times out.
const E2E_THREADS: &str = "2";

/// The bridge ships alone and small.
const BRIDGE_LIMIT_BYTES: u64 = 6_000_000;

/// One named step of `cargo xtask test`.
struct Step {
    name: &'static str,
    what: &'static str,
    /// Steps without which this one says nothing.
    needs: &'static [&'static str],
    work: fn(&Place) -> Result<Ended>,
}

const STEPS: &[Step] = &[
    Step { name: "fmt", what: "formatting", needs: &[], work: fmt },
    Step { name: "clippy", what: "lints, warnings are errors", needs: &[], work: clippy },
    Step { name: "tidy", what: "the rules of the house (tests of xtask)", needs: &[], work: tidy },
    Step { name: "build", what: "every target of every crate", needs: &[], work: build },
    Step { name: "tests", what: "unit, story and wire tests", needs: &["build"], work: tests },
    Step { name: "peers", what: "servers and clients from npm and PyPI", needs: &[], work: peers },
    Step { name: "e2e", what: "the real binary with real peers", needs: &["build", "peers"], work: e2e },
    Step { name: "doc", what: "doc tests", needs: &["build"], work: doc },
    Step {
        name: "deny",
        what: "bans, licences, sources (no advisories: they need a database)",
        needs: &[],
        work: licences::check,
    },
    Step {
        name: "conformance",
        what: "the official MCP suite through the crib",
        needs: &["build", "peers"],
        work: conformance,
    },
    Step {
        name: "bridge-size",
        what: "the release bridge is at most 6 MB",
        needs: &["build"],
        work: bridge_size,
    },
];

/// Which steps were asked for.
#[derive(Debug, PartialEq, Eq)]
pub enum Wanted {
    All,
    Only(Vec<String>),
    List,
}

impl Wanted {
    /// Reads `--list` and any number of `--only STEP`.
    pub fn parse(words: &[String]) -> Result<Wanted> {
        let mut only = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let name = match (word.as_str(), word.strip_prefix("--only=")) {
                ("--list", _) => return Ok(Wanted::List),
                ("--only", _) => words.next().map(String::as_str).unwrap_or_default(),
                (_, Some(name)) => name,
                (other, None) => bail!("unknown argument `{other}`: expected `--list` or `--only STEP`"),
            };
            if !STEPS.iter().any(|step| step.name == name) {
                bail!("unknown step `{name}`: expected one of {}", names().join(", "));
            }
            only.push(name.to_string());
        }
        Ok(if only.is_empty() { Wanted::All } else { Wanted::Only(only) })
    }

    /// Exactly these steps, in the suite's own order.
    pub fn steps(names: &[&str]) -> Wanted {
        Wanted::Only(names.iter().map(|name| name.to_string()).collect())
    }

    fn includes(&self, name: &str) -> bool {
        match self {
            Wanted::All => true,
            Wanted::Only(only) => only.iter().any(|wanted| wanted == name),
            Wanted::List => false,
        }
    }
}

/// Runs what is wanted and prints the table; the exit code is a failure when any step failed.
pub fn run(place: &Place, wanted: &Wanted) -> Result<ExitCode> {
    if *wanted == Wanted::List {
        for step in STEPS {
            println!("{:<12} {}", step.name, step.what);
        }
        return Ok(ExitCode::SUCCESS);
    }
    place.warn_if_disk_is_low();
    let mut records: Vec<Record> = Vec::new();
    for step in STEPS.iter().filter(|step| wanted.includes(step.name)) {
        let broken = step.needs.iter().find(|need| failed(&records, need));
        records.push(step::record(step.name, || match broken {
            Some(need) => Ok((Outcome::Skipped(format!("`{need}` failed")), Tally::default())),
            None => (step.work)(place),
        }));
    }
    place.warn_if_disk_is_low();
    Ok(print_table(&records))
}

fn names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.name).collect()
}

fn failed(records: &[Record], name: &str) -> bool {
    records.iter().any(|record| record.name == name && matches!(record.outcome, Outcome::Failed(_)))
}

fn print_table(records: &[Record]) -> ExitCode {
    println!("\n{:<12} {:>9} {:>8} {:>8}  result", "step", "time", "passed", "failed");
    let mut took = Duration::ZERO;
    for record in records {
        let counts = match record.tally.is_empty() {
            true => (String::new(), String::new()),
            false => (record.tally.passed.to_string(), record.tally.failed.to_string()),
        };
        let result = match &record.outcome {
            Outcome::Passed => "ok".to_string(),
            Outcome::Failed(why) => format!("FAILED: {why}"),
            Outcome::Skipped(why) => format!("skipped: {why}"),
        };
        println!(
            "{:<12} {:>9} {:>8} {:>8}  {result}",
            record.name,
            step::seconds(record.took),
            counts.0,
            counts.1
        );
        took += record.took;
    }
    println!("{:<12} {:>9}\n", "together", step::seconds(took));
    let sum = total(records);
    println!("{} passed, {} failed", sum.passed, sum.failed);
    if sum.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Tests summed over steps. A step that failed without a failing test of its own counts as one failure.
fn total(records: &[Record]) -> Tally {
    let mut sum = Tally::default();
    for record in records {
        sum += record.tally;
        if matches!(record.outcome, Outcome::Failed(_)) && record.tally.failed == 0 {
            sum.failed += 1;
        }
    }
    sum
}

fn fmt(place: &Place) -> Result<Ended> {
    step::run(place.cargo(&["fmt", "--all", "--check"]), Output::Kept)
}

fn clippy(place: &Place) -> Result<Ended> {
    step::run(place.cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]), Output::Kept)
}

fn tidy(place: &Place) -> Result<Ended> {
    step::run(place.cargo(&["test", "-p", "xtask"]), Output::Through)
}

fn build(place: &Place) -> Result<Ended> {
    step::run(place.cargo(&["build", "--workspace", "--all-targets"]), Output::Kept)
}

/// Everything but `xtask` (run as `tidy`) and `e2e` (run by itself, few at a time).
fn tests(place: &Place) -> Result<Ended> {
    let chosen = ["--workspace", "--exclude", "xtask", "--exclude", "e2e"];
    let mut words: Vec<&str> = test_runner(place).to_vec();
    words.extend(chosen);
    if has_nextest(place) {
        words.extend(["--no-fail-fast", "--no-tests", "pass"]);
    } else {
        // Doc tests have a step of their own.
        words.extend(["--no-fail-fast", "--lib", "--bins", "--tests"]);
    }
    step::run(place.cargo(&words), Output::Through)
}

fn e2e(place: &Place) -> Result<Ended> {
    let mut words: Vec<&str> = test_runner(place).to_vec();
    words.extend(["-p", "e2e", "--no-fail-fast"]);
    if has_nextest(place) {
        words.extend(["--no-tests", "pass", "--test-threads", E2E_THREADS]);
    } else {
        words.extend(["--lib", "--bins", "--tests", "--", "--test-threads", E2E_THREADS]);
    }
    step::run(place.cargo(&words), Output::Through)
}

fn test_runner(place: &Place) -> &'static [&'static str] {
    if has_nextest(place) { &["nextest", "run"] } else { &["test"] }
}

fn has_nextest(place: &Place) -> bool {
    place.cargo(&["nextest", "--version"]).output().is_ok_and(|output| output.status.success())
}

/// What to install and where is told by the tests that need it: `e2e/peers`, `e2e/src/peers.rs`.
fn peers(place: &Place) -> Result<Ended> {
    step::run(place.cargo(&["run", "--quiet", "-p", "e2e", "--bin", "peers"]), Output::Through)
}

fn doc(place: &Place) -> Result<Ended> {
    step::run(place.cargo(&["test", "--workspace", "--doc", "--no-fail-fast"]), Output::Through)
}

fn conformance(place: &Place) -> Result<Ended> {
    if !place.root.join("e2e/src/bin/conformance.rs").exists() {
        let why = "`e2e/src/bin/conformance.rs` does not exist".to_string();
        return Ok((Outcome::Skipped(why), Tally::default()));
    }
    step::run(place.cargo(&["run", "--quiet", "-p", "e2e", "--bin", "conformance"]), Output::Through)
}

fn bridge_size(place: &Place) -> Result<Ended> {
    step::must(place.cargo(&["build", "--release", "-p", "toolcrib-bridge"]))?;
    let path = place.target.join("release/toolcrib-bridge");
    let bytes = std::fs::metadata(&path)?.len();
    println!("   {bytes} bytes of at most {BRIDGE_LIMIT_BYTES}: {}", path.display());
    let outcome = match bytes <= BRIDGE_LIMIT_BYTES {
        true => Outcome::Passed,
        false => Outcome::Failed(format!(
            "{bytes} bytes, over {BRIDGE_LIMIT_BYTES}: find what grew (`cargo tree`)"
        )),
    };
    Ok((outcome, Tally::default()))
}

#[cfg(test)]
mod tests {
    use super::{Wanted, failed, total};
    use crate::step::{Outcome, Record};
    use crate::tally::Tally;
    use std::time::Duration;

    fn ended(name: &'static str, outcome: Outcome, passed: u64, failed: u64) -> Record {
        Record { name, outcome, took: Duration::ZERO, tally: Tally { passed, failed } }
    }

    #[test]
    fn a_step_that_fails_without_a_failing_test_counts_as_one_failure() {
        let records = [
            ended("fmt", Outcome::Failed("x".into()), 0, 0),
            ended("tests", Outcome::Failed("x".into()), 7, 2),
            ended("doc", Outcome::Passed, 3, 0),
        ];
        assert_eq!(total(&records), Tally { passed: 10, failed: 3 });
        assert!(failed(&records, "fmt") && !failed(&records, "doc"));
    }

    #[test]
    fn unknown_steps_and_words_are_refused() {
        let words = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
        assert!(Wanted::parse(&words("--only nothing")).is_err());
        assert!(Wanted::parse(&words("--fast")).is_err());
        assert!(Wanted::parse(&words("--only")).is_err());
        assert_eq!(Wanted::parse(&words("--only fmt --only=doc")).unwrap(), Wanted::steps(&["fmt", "doc"]));
        assert_eq!(Wanted::parse(&[]).unwrap(), Wanted::All);
    }
}
