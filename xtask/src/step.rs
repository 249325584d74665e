//! One step of the suite: a command run, timed, counted, and told about.
//!
//! Output is either let through line by line (tests: CI reads it) or kept and shown only on failure.
//! A step never stops the ones after it; `suite.rs` decides that.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::tally::Tally;

/// How many lines of a failed quiet step are shown.
const TAIL_LINES: usize = 60;

/// What happens to a command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Printed as it comes.
    Through,
    /// Kept; the tail is printed when the command fails.
    Kept,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Failed(String),
    /// Not run, and why.
    Skipped(String),
}

/// One line of the table at the end.
#[derive(Clone, Debug)]
pub struct Record {
    pub name: &'static str,
    pub outcome: Outcome,
    pub took: Duration,
    pub tally: Tally,
}

/// What a step hands back: how it ended, and the tests it counted.
pub type Ended = (Outcome, Tally);

/// Runs one step: its name before, time and result after. An error inside becomes a failed step.
pub fn record(name: &'static str, work: impl FnOnce() -> Result<Ended>) -> Record {
    println!("── {name}");
    let started = Instant::now();
    let (outcome, tally) =
        work().unwrap_or_else(|error| (Outcome::Failed(format!("{error:#}")), Tally::default()));
    let took = started.elapsed();
    match &outcome {
        Outcome::Passed => println!("── {name}: ok in {}", seconds(took)),
        Outcome::Failed(why) => println!("── {name}: FAILED in {}: {why}", seconds(took)),
        Outcome::Skipped(why) => println!("── {name}: skipped: {why}"),
    }
    Record { name, outcome, took, tally }
}

/// Runs `command` to its end and counts the tests it reports.
pub fn run(mut command: Command, output: Output) -> Result<Ended> {
    let shown = show(&command);
    println!("   {shown}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{shown}`: is it installed?"))?;
    let (sender, lines) = mpsc::channel();
    let readers = [
        child.stdout.take().map(|pipe| forward(pipe, sender.clone())),
        child.stderr.take().map(|pipe| forward(pipe, sender.clone())),
    ];
    drop(sender);
    let mut tally = Tally::default();
    let mut tail = VecDeque::new();
    for line in lines {
        tally += Tally::of_line(&line).unwrap_or_default();
        if output == Output::Through {
            println!("{line}");
            continue;
        }
        if tail.len() == TAIL_LINES {
            tail.pop_front();
        }
        tail.push_back(line);
    }
    for reader in readers.into_iter().flatten() {
        // A reader that died has only cost us lines; the exit status below still tells the truth.
        let _ = reader.join();
    }
    let status = child.wait().with_context(|| format!("lost `{shown}`"))?;
    if status.success() {
        return Ok((Outcome::Passed, tally));
    }
    for line in &tail {
        println!("   | {line}");
    }
    Ok((Outcome::Failed(format!("`{shown}` ended with {status}")), tally))
}

/// The same, where anything but success is an error. For preparations that are not a step of their own.
pub fn must(command: Command) -> Result<()> {
    match run(command, Output::Kept)? {
        (Outcome::Failed(why), _) => anyhow::bail!(why),
        _ => Ok(()),
    }
}

fn forward(pipe: impl Read + Send + 'static, lines: mpsc::Sender<String>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        while let Ok(1..) = pipe.read_until(b'\n', &mut line) {
            let text = String::from_utf8_lossy(&line).trim_end().to_string();
            line.clear();
            if lines.send(text).is_err() {
                return;
            }
        }
    })
}

fn show(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for word in command.get_args() {
        text.push(' ');
        text.push_str(&word.to_string_lossy());
    }
    text
}

/// A duration the way the table prints it.
pub fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Output, record, run};
    use crate::tally::Tally;
    use std::process::Command;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_command_that_fails_fails_its_step_and_its_tests_are_counted() {
        let script = "echo 'test result: FAILED. 3 passed; 1 failed; 0 ignored'; exit 101";
        let (outcome, tally) = run(shell(script), Output::Kept).unwrap();
        assert!(matches!(outcome, Outcome::Failed(why) if why.contains("101")));
        assert_eq!(tally, Tally { passed: 3, failed: 1 });
    }

    #[test]
    fn closing_lines_on_standard_error_are_counted_too() {
        let script = "echo '  Summary [ 0.1s] 2 tests run: 2 passed, 0 skipped' >&2";
        let (outcome, tally) = run(shell(script), Output::Kept).unwrap();
        assert_eq!((outcome, tally), (Outcome::Passed, Tally { passed: 2, failed: 0 }));
    }

    #[test]
    fn a_program_that_is_missing_is_a_failed_step() {
        let step = record("sample", || run(Command::new("no-such-program-here"), Output::Kept));
        assert!(matches!(step.outcome, Outcome::Failed(why) if why.contains("is it installed")));
    }
}
