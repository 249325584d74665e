//! `cargo run -p e2e --bin conformance`: the official suite against the fixture, and against the crib in front of it.
//!
//! Direct, every scored check must pass: otherwise the fixture proves nothing. Through the crib the whole result must be
//! what `e2e/conformance-baseline.yaml` says, in every cell. Words on the command line name cells to run, instead of
//! all.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use e2e::conformance::baseline::{Baseline, Section};
use e2e::conformance::suite::{self, Scenario, Status};
use e2e::conformance::{Revision, Weight};
use e2e::crib::Crib;
use e2e::program;
use e2e::upstream::Fixture;
use futures_util::future::try_join_all;

/// What the suite is run against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    /// The fixture itself.
    Direct,
    /// The crib, with the fixture on Streamable HTTP; it speaks both eras, so the crib takes the modern one.
    Http,
    /// The crib, with the fixture as its child.
    Stdio,
    /// The crib, with a fixture that knows only the legacy era.
    Legacy,
}

impl Cell {
    const ALL: [Self; 4] = [Self::Direct, Self::Http, Self::Stdio, Self::Legacy];

    fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Http => "http",
            Self::Stdio => "stdio",
            Self::Legacy => "legacy",
        }
    }

    fn named(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|cell| cell.name() == name);
        found.with_context(|| format!("no cell is called `{name}`: expected direct, http, stdio or legacy"))
    }
}

/// The suite's results in one cell; the cells do not meet, so they can be run at once.
struct Ran {
    cell: Cell,
    results: Vec<(Revision, Vec<Scenario>)>,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let named = std::env::args().skip(1).map(|name| Cell::named(&name)).collect::<Result<Vec<_>>>()?;
    let cells = if named.is_empty() { Cell::ALL.to_vec() } else { named };
    let baseline = Baseline::read()?;
    if let Some(stray) = baseline.cells().find(|name| Cell::named(name).is_err() || *name == "direct") {
        bail!("`{stray}` in the baseline is no cell of the crib");
    }
    let (mut passed, mut findings) = (0, Vec::new());
    for ran in try_join_all(cells.into_iter().map(run)).await? {
        for (revision, scenarios) in &ran.results {
            let section = baseline.section(ran.cell.name(), *revision);
            print!("{}", table(ran.cell, *revision, scenarios, &section));
            passed += scenarios.iter().map(|scenario| scenario.count(Status::Success)).sum::<usize>();
            let found = section.findings(scenarios).into_iter();
            findings.extend(found.map(|found| format!("{} {revision}: {found}", ran.cell.name())));
        }
    }
    for finding in &findings {
        println!("x {finding}");
    }
    println!("{passed} passed, {} failed", findings.len());
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn run(cell: Cell) -> Result<Ran> {
    let era = if cell == Cell::Legacy { "legacy" } else { "both" };
    let fixture = Fixture::with(&["--http", "127.0.0.1:0", "--era", era]).await?;
    let source = match cell {
        Cell::Stdio => format!("command: {}, args: [--stdio]", program::path("fixture")?.display()),
        _ => format!("url: \"{}\"", fixture.url),
    };
    let config = format!("servers:\n  fixture: {{ prefix: none, {source} }}\n");
    let (mut crib, url) = match cell {
        Cell::Direct => (None, fixture.url.clone()),
        _ => {
            let crib = Crib::serve(&config).await?;
            let url = crib.mcp.clone();
            (Some(crib), url)
        }
    };
    let mut results = Vec::new();
    for revision in Revision::ALL {
        let scenarios = suite::run(&url, revision).await;
        results.push((revision, scenarios.with_context(|| format!("{} {revision}", cell.name()))?));
    }
    if let Some(crib) = crib.take() {
        let ended = crib.stop().await?;
        if !ended.success() {
            bail!("the crib ended with {ended} in the cell `{}`", cell.name());
        }
    }
    Ok(Ran { cell, results })
}

fn table(cell: Cell, revision: Revision, scenarios: &[Scenario], section: &Section) -> String {
    let mut text = format!(
        "== {} {revision}\n  {:<50}{:>5}{:>5}{:>5}{:>5}\n",
        cell.name(),
        "scenario",
        "pass",
        "fail",
        "warn",
        "skip"
    );
    let columns = [Status::Success, Status::Failure, Status::Warning, Status::Skipped];
    let mut sums = [0; 4];
    for scenario in scenarios {
        let counts = columns.map(|status| scenario.count(status));
        let failed = !scenario.failed().is_empty();
        let mark = if failed { "x" } else { " " };
        let _ = write!(text, "{mark} {:<50}", scenario.name);
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
            let _ = write!(text, "{count:>5}");
        }
        let unscored = if scenario.weight == Weight::Unscored { "  not scored" } else { "" };
        let known = if failed && section.knows(scenario) { "  in the baseline" } else { "" };
        let _ = writeln!(text, "{unscored}{known}");
        for check in scenario.checks.iter().filter(|check| check.status == Status::Failure) {
            if !section.knows(scenario) {
                let _ = writeln!(
                    text,
                    "    {}: {}",
                    check.id,
                    check.said.as_deref().unwrap_or("no reason given")
                );
            }
        }
    }
    let sums = sums.map(|sum| format!("{sum:>5}")).concat();
    let _ = writeln!(text, "  {:<50}{sums}\n", format!("{} scenarios", scenarios.len()));
    text
}
