//! Facts about the machine and the programs, without which numbers mean nothing.

use std::path::Path;
use std::process::Command;

use crate::door::{Way, locate};

/// One fact per line, as a markdown list.
pub fn facts() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut lines = vec![
        format!("machine: {}, {cores} cores, {} of memory", cpu(), memory()),
        format!("system: Linux {}, {}", first_line("/proc/sys/kernel/osrelease"), distribution()),
        format!("date: {}", said(Path::new("date"), &["-u", "+%Y-%m-%d"])),
        format!("load of the machine before: {}", before()),
        format!(
            "bench: {}",
            if cfg!(debug_assertions) { "debug build: do not use these numbers" } else { "release" }
        ),
    ];
    if let Ok(program) = locate(Way::Nginx) {
        lines.push(said(&program, &["-v"]));
    }
    if let Ok(program) = locate(Way::Crib) {
        lines.push(said(&program, &["--version"]));
    }
    lines.iter().map(|line| format!("- {line}\n")).collect()
}

/// The one-minute load average: above a fraction, somebody else was measured too.
fn before() -> String {
    first_line("/proc/loadavg").split(' ').next().unwrap_or_default().to_string()
}

fn cpu() -> String {
    value_of("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_string())
}

fn memory() -> String {
    let kib =
        value_of("/proc/meminfo", "MemTotal").and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    kib.map_or_else(|| "unknown".to_string(), |kib| format!("{:.1} GiB", kib / 1024.0 / 1024.0))
}

fn distribution() -> String {
    let text = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or("unknown distribution").trim_matches('"').to_string()
}

fn value_of(path: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

fn first_line(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().lines().next().unwrap_or_default().to_string()
}

/// What a program says about itself, on either output.
fn said(program: &Path, words: &[&str]) -> String {
    let Ok(output) = Command::new(program).args(words).output() else { return "unknown".to_string() };
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().trim().to_string()
}
