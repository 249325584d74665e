//! The program. Everything it does is in the library beside it; the commands are in `cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolcrib::cli::run(std::env::args_os())
}
