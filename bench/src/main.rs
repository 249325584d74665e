//! The bench: what the crib costs, next to no proxy and next to a plain one, in one run on one machine.
//!
//! `bench` measures and prints; `bench upstream` is the server measured against, as a process of its own.
//! It never judges: targets live elsewhere. But a wrong answer fails the run. Read on in `run.rs`.

mod args;
mod door;
mod family;
mod latency;
mod load;
mod machine;
mod run;
mod scenario;
mod table;
mod upstream;
mod wire;

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::args::Command;

fn main() -> ExitCode {
    match begin() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn begin() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // One thread: the machine's other cores belong to what is measured.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    match args::parse(&words)? {
        Command::Help => {
            println!("{}", args::HELP);
            Ok(ExitCode::SUCCESS)
        }
        Command::Upstream { port } => runtime.block_on(upstream::serve(port)).map(|()| ExitCode::SUCCESS),
        Command::Measure(plan) => runtime.block_on(run::measure(&plan)),
    }
}
