//! The markdown that is printed: one table of calls, one of processes.
//!
//! Latencies are in microseconds. "added" is over the direct way of the same scenario in the same run.

use std::time::Duration;

use crate::door::{Door, Way};
use crate::load::Seen;

/// One measurement.
#[derive(Debug)]
pub struct Row {
    pub scenario: &'static str,
    pub way: Way,
    pub seen: Seen,
    /// What the proxy's processes used meanwhile; `None` where there is no proxy.
    pub cpu: Option<Duration>,
}

/// The table of calls.
pub fn calls(rows: &[Row]) -> String {
    let mut text = String::from(
        "| scenario | path | calls/s | p50 µs | p99 µs | added p50 µs | added p99 µs | CPU µs/call | wrong |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for row in rows {
        let direct = rows.iter().find(|other| other.scenario == row.scenario && other.way == Way::Direct);
        let added = |share: f64| match direct.filter(|_| row.way != Way::Direct) {
            Some(direct) => {
                micros(row.seen.latencies.percentile(share)) - micros(direct.seen.latencies.percentile(share))
            }
            None => f64::NAN,
        };
        let cpu = row.cpu.map_or(f64::NAN, |cpu| micros(cpu) / row.seen.calls().max(1) as f64);
        text.push_str(&format!(
            "| {} | {} | {:.0} | {:.0} | {:.0} | {} | {} | {} | {} |\n",
            row.scenario,
            row.way.name(),
            row.seen.right_per_second(),
            micros(row.seen.latencies.percentile(0.5)),
            micros(row.seen.latencies.percentile(0.99)),
            number(added(0.5)),
            number(added(0.99)),
            tenths(cpu),
            row.seen.wrong,
        ));
    }
    text
}

/// The table of processes: start-up and memory.
pub fn processes(doors: &[Door]) -> String {
    let mut text = String::from(
        "| process | start to first right answer | memory then | memory after load |\n|---|--:|--:|--:|\n",
    );
    for door in doors {
        text.push_str(&format!(
            "| {} | {:.0} ms | {} | {} |\n",
            if door.way == Way::Direct { "upstream" } else { door.way.name() },
            door.start_up.as_secs_f64() * 1000.0,
            mebibytes(door.idle_kib),
            mebibytes(door.read().resident_kib),
        ));
    }
    text
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn number(value: f64) -> String {
    if value.is_nan() { "–".to_string() } else { format!("{value:.0}") }
}

fn tenths(value: f64) -> String {
    if value.is_nan() { "–".to_string() } else { format!("{value:.1}") }
}

fn mebibytes(kib: u64) -> String {
    format!("{:.1} MiB", kib as f64 / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::{Row, calls};
    use crate::door::Way;
    use crate::latency::Latencies;
    use crate::load::Seen;
    use std::time::Duration;

    fn row(way: Way, nanoseconds: u64, cpu: Option<u64>) -> Row {
        let latencies = Latencies::new(vec![nanoseconds; 10]);
        let seen = Seen { latencies, took: Duration::from_secs(1), ..Seen::default() };
        Row { scenario: "echo", way, seen, cpu: cpu.map(Duration::from_micros) }
    }

    #[test]
    fn added_is_over_direct_and_cpu_is_per_call() {
        let text = calls(&[row(Way::Direct, 100_000, None), row(Way::Nginx, 150_000, Some(300))]);
        assert!(text.contains("| echo | direct | 10 | 100 | 100 | – | – | – | 0 |"), "{text}");
        assert!(text.contains("| echo | nginx | 10 | 150 | 150 | 50 | 50 | 30.0 | 0 |"), "{text}");
    }

    #[test]
    fn without_a_direct_row_nothing_is_said_to_be_added() {
        assert!(calls(&[row(Way::Crib, 1000, Some(10))]).contains("| 1 | 1 | – | – | 1.0 | 0 |"));
    }
}
