//! `toolcrib-bridge`: the command line around [`toolcrib_bridge::run_until`].
//!
//! One thread, stdin to stdout. Exit codes: 0 the input ended or a signal came, 1 the pipes broke, 2 the command
//! line was wrong.

use std::io::Write as _;
use std::process::ExitCode;

use toolcrib_bridge::args::{self, Wanted};
use toolcrib_bridge::{Options, run_until, stop_signal};

fn main() -> ExitCode {
    let wanted = args::parse(std::env::args_os().skip(1), |name| std::env::var(name).ok());
    match wanted {
        Ok(Wanted::Bridge(options)) => bridge(*options),
        Ok(Wanted::Help) => print(args::HELP),
        Ok(Wanted::Version) => print(concat!("toolcrib-bridge ", env!("CARGO_PKG_VERSION"), "\n")),
        Err(error) => {
            eprintln!("toolcrib-bridge: {error}\ntry `toolcrib-bridge --help`");
            ExitCode::from(2)
        }
    }
}

fn bridge(options: Options) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("toolcrib-bridge: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let outcome =
        runtime.block_on(run_until(options, tokio::io::stdin(), tokio::io::stdout(), stop_signal()));
    // A read of stdin may still be blocked; waiting for it would keep the process after a signal.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|c| format!(": {c}")).unwrap_or_default();
            eprintln!("toolcrib-bridge: {error}{cause}");
            ExitCode::FAILURE
        }
    }
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
