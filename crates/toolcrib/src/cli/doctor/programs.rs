//! Commands of the config's servers: whether they are on `PATH`, and whether what runs them is recent enough.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use super::Finding;
use crate::config::{Config, Process, Transport};

/// A program that prints its version does so at once; package runners may look around first.
const PATIENCE: Duration = Duration::from_secs(10);

/// One runtime that servers are written for.
struct Runtime {
    program: &'static str,
    /// Commands that mean it.
    commands: &'static [&'static str],
    /// The oldest major and minor version most servers run on.
    oldest: (u32, u32),
    remedy: &'static str,
}

const RUNTIMES: &[Runtime] = &[
    Runtime {
        program: "node",
        commands: &["node", "npx", "npm", "pnpm", "yarn"],
        oldest: (18, 0),
        remedy: "install Node.js 18 or later; most MCP servers from npm need it",
    },
    Runtime {
        program: "python3",
        commands: &["python", "python3", "pip", "pipx"],
        oldest: (3, 10),
        remedy: "install Python 3.10 or later; most MCP servers from PyPI need it",
    },
    Runtime {
        program: "uv",
        commands: &["uv", "uvx"],
        oldest: (0, 4),
        remedy: "update uv: `uv self update`",
    },
];

pub async fn look(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut commands = BTreeSet::new();
    for (id, server) in config.servers.iter().filter(|(_, server)| server.enabled) {
        let Transport::Stdio(process) = &server.transport else { continue };
        let stem = Path::new(&process.command).file_stem().and_then(|stem| stem.to_str());
        commands.extend(stem.map(str::to_owned));
        if find(process).is_none() {
            findings.push(Finding::problem(
                id.to_string(),
                format!("its command `{}` is not found", process.command),
                format!("install `{}`, or write its whole path as `command`", process.command),
            ));
        }
    }
    for runtime in RUNTIMES {
        if runtime.commands.iter().any(|command| commands.contains(*command)) {
            findings.push(version(runtime).await);
        }
    }
    findings
}

/// The program as the child would be found: by path, or on `PATH`.
fn find(process: &Process) -> Option<PathBuf> {
    let command = Path::new(&process.command);
    if command.components().count() > 1 {
        let whole = process.cwd.as_deref().unwrap_or(Path::new(".")).join(command);
        return is_program(&whole).then_some(whole);
    }
    let own = process.env.get("PATH").map(|path| path.expose().to_owned());
    let path = own.or_else(|| crate::cli::env("PATH")).unwrap_or_default();
    let name = format!("{}{}", process.command, std::env::consts::EXE_SUFFIX);
    let places = std::env::split_paths(&path).collect::<Vec<_>>();
    places.into_iter().map(|folder| folder.join(&name)).find(|file| is_program(file))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file() || path.with_extension("cmd").is_file()
}

async fn version(runtime: &Runtime) -> Finding {
    let mut command = tokio::process::Command::new(runtime.program);
    command.arg("--version").stdin(Stdio::null()).kill_on_drop(true);
    let output = match tokio::time::timeout(PATIENCE, command.output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => {
            return Finding::problem(runtime.program, format!("cannot be started: {error}"), runtime.remedy);
        }
        Err(_) => return Finding::warning(runtime.program, "does not tell its version", runtime.remedy),
    };
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match numbers(&text) {
        Some(version) if version >= runtime.oldest => Finding::good(runtime.program, text),
        Some(_) => Finding::warning(runtime.program, format!("{text} is old"), runtime.remedy),
        None => Finding::warning(
            runtime.program,
            format!("its version is not understood: `{text}`"),
            runtime.remedy,
        ),
    }
}

/// Major and minor of the first version number in a line.
fn numbers(text: &str) -> Option<(u32, u32)> {
    text.split_whitespace().find_map(|word| {
        let mut parts = word.trim_start_matches('v').split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_print() {
        assert_eq!(numbers("v22.11.0"), Some((22, 11)));
        assert_eq!(numbers("Python 3.12.1"), Some((3, 12)));
        assert_eq!(numbers("uv 0.5.9 (abc 2026-01-01)"), Some((0, 5)));
        assert_eq!(numbers("nothing"), None);
    }
}
