//! What a process and its children cost: CPU time and resident memory, read from `/proc`.
//!
//! It never signals anybody. Linux only; elsewhere everything reads as zero and the table says so.

use std::collections::HashMap;
use std::time::Duration;

/// `/proc/PID/stat` counts in hundredths of a second on every Linux that runs this.
const TICKS_PER_SECOND: u64 = 100;

/// A moment's reading of one family.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// User and system time of the process, its live descendants, and the children it has waited for.
    pub cpu: Duration,
    pub resident_kib: u64,
}

/// Reads the process `root` and all its descendants.
pub fn read(root: u32) -> Reading {
    let stats = all_stats();
    let mut reading = Reading::default();
    let mut ticks = 0;
    for (pid, stat) in &stats {
        if is_in_family(*pid, root, &stats) {
            ticks += stat.own_ticks;
            reading.resident_kib += resident_kib(*pid).unwrap_or(0);
        }
    }
    ticks += stats.get(&root).map_or(0, |stat| stat.waited_ticks);
    reading.cpu = Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND);
    reading
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    own_ticks: u64,
    waited_ticks: u64,
}

fn all_stats() -> HashMap<u32, Stat> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return HashMap::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, parse_stat(&text)?))
    })
    .collect()
}

/// The fields after the name, which may itself hold spaces and brackets.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, after) = text.rsplit_once(')')?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        own_ticks: number(11)? + number(12)?,
        waited_ticks: number(13)? + number(14)?,
    })
}

fn is_in_family(pid: u32, root: u32, stats: &HashMap<u32, Stat>) -> bool {
    let mut current = pid;
    // Deeper than any real tree; a loop read from a changing /proc must end.
    for _ in 0..64 {
        if current == root {
            return true;
        }
        match stats.get(&current) {
            Some(stat) if stat.parent > 1 => current = stat.parent,
            _ => return false,
        }
    }
    false
}

fn resident_kib(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Stat, is_in_family, parse_stat, read};
    use std::collections::HashMap;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let text = "42 (a) b (c)) S 7 1 1 0 -1 4194560 1 2 3 4 50 25 8 2 20 0 1 0 9 9 9";
        assert_eq!(parse_stat(text), Some(Stat { parent: 7, own_ticks: 75, waited_ticks: 10 }));
        assert_eq!(parse_stat("nonsense"), None);
    }

    #[test]
    fn grandchildren_belong_and_strangers_do_not() {
        let stat = |parent| Stat { parent, own_ticks: 0, waited_ticks: 0 };
        let stats = HashMap::from([(10, stat(1)), (11, stat(10)), (12, stat(11)), (20, stat(1))]);
        assert!(is_in_family(12, 10, &stats) && is_in_family(10, 10, &stats));
        assert!(!is_in_family(20, 10, &stats) && !is_in_family(99, 10, &stats));
    }

    #[test]
    fn this_process_has_memory() {
        assert!(read(std::process::id()).resident_kib > 0);
    }
}
