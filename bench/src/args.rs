//! The command line of the bench: words become a plan.
//!
//! It never touches the machine; names of paths and scenarios are checked here, so a run fails early.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::door::Way;

pub const HELP: &str = "\
bench [OPTIONS]            measure, print a markdown table
bench upstream --port N    the upstream alone (0: a free port), until it is killed

  --seconds N      measured time per scenario and path        (default 5)
  --warm-up N      time before it that is not counted          (default 1)
  --paths LIST     of direct,nginx,crib                        (default: those that are installed)
  --only TEXT      scenarios whose name contains TEXT
  --out FILE       also write what is printed to FILE
  --help           this text

The crib is `$TOOLCRIB_BIN`, else `toolcrib` beside this program. nginx is found on the path or in /usr/sbin.";

/// What to do.
#[derive(Debug)]
pub enum Command {
    Help,
    Upstream { port: u16 },
    Measure(Plan),
}

/// What to measure.
#[derive(Debug)]
pub struct Plan {
    pub measured: Duration,
    pub warm_up: Duration,
    /// The ways asked for by name; `None` means all that can be had.
    pub ways: Option<Vec<Way>>,
    pub only: Option<String>,
    pub out: Option<PathBuf>,
}

/// Reads the words after the program's name.
pub fn parse(words: &[String]) -> Result<Command> {
    let mut plan = Plan {
        measured: Duration::from_secs(5),
        warm_up: Duration::from_secs(1),
        ways: None,
        only: None,
        out: None,
    };
    let mut port = None;
    let mut words = words.iter().map(String::as_str);
    let mut is_upstream = false;
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("`{word}` wants a value"));
        match word {
            "--help" | "-h" | "help" => return Ok(Command::Help),
            "upstream" => is_upstream = true,
            "--port" => port = Some(value()?.parse().context("`--port` wants a port number")?),
            "--seconds" => plan.measured = seconds(value()?)?,
            "--warm-up" => plan.warm_up = seconds(value()?)?,
            "--paths" => plan.ways = Some(value()?.split(',').map(Way::parse).collect::<Result<_>>()?),
            "--only" => plan.only = Some(value()?.to_string()),
            "--out" => plan.out = Some(PathBuf::from(value()?)),
            other => bail!("unknown argument `{other}`\n\n{HELP}"),
        }
    }
    Ok(if is_upstream { Command::Upstream { port: port.unwrap_or(0) } } else { Command::Measure(plan) })
}

fn seconds(text: &str) -> Result<Duration> {
    let number: f64 = text.parse().with_context(|| format!("`{text}` is not a number of seconds"))?;
    Duration::try_from_secs_f64(number).with_context(|| format!("`{text}` is not a number of seconds"))
}

#[cfg(test)]
mod tests {
    use super::{Command, parse};
    use crate::door::Way;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_string).collect()
    }

    #[test]
    fn a_plan_is_read() {
        let Ok(Command::Measure(plan)) = parse(&words("--seconds 0.5 --paths direct,nginx --only echo"))
        else {
            panic!("a plan")
        };
        assert_eq!(plan.measured.as_millis(), 500);
        assert_eq!(plan.ways, Some(vec![Way::Direct, Way::Nginx]));
        assert_eq!(plan.only.as_deref(), Some("echo"));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in
            ["--second 5", "--seconds", "--seconds x", "--seconds -1", "--paths elsewhere", "--port 99999"]
        {
            assert!(parse(&words(text)).is_err(), "{text}");
        }
    }
}
