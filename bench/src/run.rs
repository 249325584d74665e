//! One run: open the doors, measure every scenario on every way, print, close.
//!
//! The ways of one scenario are measured one right after the other, so that a noisy moment hits neighbours alike.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::args::Plan;
use crate::door::{self, Door, Way};
use crate::scenario::{self, Scenario};
use crate::table::{self, Row};
use crate::{load, machine};

/// Measures and prints. Fails when any answer was wrong, or a way that was asked for by name cannot be had.
pub async fn measure(plan: &Plan) -> Result<ExitCode> {
    let folder =
        tempfile::Builder::new().prefix("toolcrib-bench").tempdir().context("no folder to work in")?;
    let facts = machine::facts();
    let doors = open_doors(plan, folder.path()).await?;
    let mut rows = Vec::new();
    for scenario in scenario::ALL.iter().filter(|scenario| is_wanted(scenario, plan)) {
        for door in &doors {
            eprintln!("{} · {}", scenario.name, door.way.name());
            rows.push(measure_one(*scenario, door, plan).await?);
        }
    }
    let text = format!(
        "{}\n{}\n{}\nEach line: {} s after {} s of warm-up, callers in a closed loop, one connection each; \
         load generator, upstream and proxy share the machine.\n",
        facts,
        table::calls(&rows),
        table::processes(&doors),
        plan.measured.as_secs_f64(),
        plan.warm_up.as_secs_f64(),
    );
    println!("{text}");
    if let Some(out) = &plan.out {
        std::fs::write(out, &text).with_context(|| format!("cannot write `{}`", out.display()))?;
    }
    Ok(verdict(&rows))
}

fn is_wanted(scenario: &Scenario, plan: &Plan) -> bool {
    plan.only.as_ref().is_none_or(|text| scenario.name.contains(text))
}

/// The upstream is always there; the others as asked for, or as far as they are installed.
async fn open_doors(plan: &Plan, folder: &std::path::Path) -> Result<Vec<Door>> {
    let upstream = door::open_upstream().await?;
    let behind = upstream.address;
    let mut doors = vec![upstream];
    for way in [Way::Nginx, Way::Crib] {
        match &plan.ways {
            Some(ways) if !ways.contains(&way) => continue,
            None if door::locate(way).is_err() => {
                let reason = door::locate(way).err().map(|error| error.to_string()).unwrap_or_default();
                eprintln!("not measured: {}: {reason}", way.name());
                continue;
            }
            _ => doors.push(Door::open(way, behind, folder).await?),
        }
    }
    Ok(doors)
}

async fn measure_one(scenario: Scenario, door: &Door, plan: &Plan) -> Result<Row> {
    load::phase(door.address, scenario, plan.warm_up).await?;
    let before = door.read().cpu;
    let seen = load::phase(door.address, scenario, plan.measured).await?;
    let used = door.read().cpu.saturating_sub(before);
    let cpu = (door.way != Way::Direct).then_some(used);
    Ok(Row { scenario: scenario.name, way: door.way, seen, cpu })
}

fn verdict(rows: &[Row]) -> ExitCode {
    let complaints = complaints(rows);
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One line for each measurement that had wrong answers, or none at all.
fn complaints(rows: &[Row]) -> Vec<String> {
    let bad = rows.iter().filter(|row| row.seen.wrong > 0 || row.seen.latencies.count() == 0);
    bad.map(|row| {
        let example = row.seen.example.as_deref().unwrap_or("no answer at all");
        format!("{} · {}: {} wrong answers, such as: {example}", row.scenario, row.way.name(), row.seen.wrong)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::complaints;
    use crate::door::Way;
    use crate::latency::Latencies;
    use crate::load::Seen;
    use crate::table::Row;

    #[test]
    fn wrong_answers_and_no_answers_fail_the_run() {
        let row = |right: usize, wrong: u64| {
            let seen = Seen { latencies: Latencies::new(vec![1; right]), wrong, ..Seen::default() };
            Row { scenario: "echo", way: Way::Crib, seen, cpu: None }
        };
        assert_eq!(complaints(&[row(9, 0), row(9, 1), row(0, 0)]).len(), 2);
    }
}
