//! `cargo xtask <command>`: arguments become one command; everything else is in the library.
//!
//! It never guesses: an unknown word is an error that prints the help.

use std::process::ExitCode;

use anyhow::{Result, bail};
use xtask::place::Place;
use xtask::{speed, suite, tidy};

const HELP: &str = "\
cargo xtask <command>

  test [--list] [--only STEP]...   everything CI runs, in order; a table and an exit code at the end
  tidy                             the rules of the house, on the tree as it stands
  peers                            install the peers that the end-to-end tests talk to
  conformance                      the official MCP conformance suite through the crib
  bench [ARGS]...                  the load generator; ARGS go to the bench program (try --help)
  help                             this text

Caches live in ${XDG_CACHE_HOME:-~/.cache}/toolcrib/{target,tools,peers}; CARGO_TARGET_DIR is respected.";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<ExitCode> {
    let (command, rest) = match words.split_first() {
        Some((first, rest)) => (first.as_str(), rest),
        None => ("help", words),
    };
    let place = Place::find()?;
    match command {
        "test" => suite::run(&place, &suite::Wanted::parse(rest)?),
        "conformance" => suite::run(&place, &suite::Wanted::steps(&["build", "peers", "conformance"])),
        "tidy" => Ok(code(tidy::report(&place)?)),
        "peers" => suite::run(&place, &suite::Wanted::steps(&["peers"])),
        "bench" => speed::run(&place, rest),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        other => bail!("unknown command `{other}`\n\n{HELP}"),
    }
}

fn code(findings: usize) -> ExitCode {
    if findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
