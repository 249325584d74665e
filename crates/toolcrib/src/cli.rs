//! The command line: words become one command, the command runs, its end becomes an exit code.
//!
//! Each file below `cli/` is one command: its flags, then what it does. Commands print through `output` and reach a
//! crib through `reach`; none of them knows whether one is running. Exit codes are in [`trouble`].

pub mod trouble;

mod start;

mod call;
mod servers;
mod tools;

mod audit;

mod config;
mod connect;
mod import;

mod doctor;

mod content;
mod moment;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell as Dialect;

use crate::config::{self as settings, Loaded};
use crate::output::{Color, Form, Output, Tint};
use crate::reach::{Address, Reach};
use trouble::{Code, Trouble};

const AFTER_HELP: &str = "\
Examples:
  toolcrib serve                  start the crib and print how to connect clients
  toolcrib import --write         take over the servers your clients already have
  toolcrib connect cursor         point Cursor at the crib
  toolcrib tools search calendar  find a tool by words
  toolcrib call time:get_current_time --arg timezone=Europe/Berlin
  toolcrib audit tail -f          watch calls as they end

Without a command, and with a pipe on stdin, `toolcrib` serves MCP on stdin and stdout like `toolcrib stdio`.

Exit codes:
  0  done
  1  the operation failed, or the tool answered with an error of its own
  2  the command line, or the arguments of a tool, are wrong
  3  the config has mistakes
  4  no such tool, server or entry
  5  refused: not recognised, or not allowed
  6  the crib or a server cannot be reached, or did not answer in time";

/// One governed door to every tool: an MCP gateway for AI agents.
#[derive(Debug, Parser)]
#[command(name = "toolcrib", version, after_help = AFTER_HELP, max_term_width = 110)]
struct Cli {
    #[command(flatten)]
    form: JsonFlag,
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Option<Command>,
}

/// Before or after the command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
struct Globals {
    /// The config file [default: $TOOLCRIB_CONFIG, ./toolcrib.yaml, ~/.config/toolcrib/toolcrib.yaml]
    #[arg(long, short, value_name = "PATH", global = true)]
    config: Option<PathBuf>,
    /// For whom results are written; `--json` is short for `--output json`
    #[arg(
        long,
        short,
        value_name = "FORM",
        global = true,
        default_value = "text",
        hide_default_value = true
    )]
    output: Form,
    /// When to use colour; NO_COLOR is respected
    #[arg(long, value_name = "WHEN", global = true, default_value = "auto", hide_default_value = true)]
    color: Color,
    /// The token to show to a running crib
    #[arg(long, value_name = "TOKEN", global = true, env = "TOOLCRIB_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Where a running crib is administered [default: the config's `listen.admin`]
    #[arg(long, value_name = "URL", global = true, env = "TOOLCRIB_ADMIN")]
    admin: Option<String>,
    /// Where a running crib offers its tools [default: the config's `listen.mcp`]
    #[arg(long, value_name = "URL", global = true, env = "TOOLCRIB_MCP")]
    mcp: Option<String>,
}

/// On every command but `call`, whose `--json` takes arguments.
#[derive(Debug, Args)]
struct JsonFlag {
    /// Write results as JSON
    #[arg(long)]
    json: bool,
}

/// [`JsonFlag`] for commands that have commands of their own.
#[derive(Debug, Args)]
struct JsonBelow {
    /// Write results as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(start::Serve),
    Stdio(start::Stdio),
    Bridge(start::Bridge),
    Servers(servers::Servers),
    Tools(tools::Tools),
    Call(call::CallTool),
    Audit(audit::Audit),
    Config(config::ConfigWords),
    Import(import::Import),
    Connect(connect::Connect),
    Doctor(doctor::Doctor),
    Completions(Completions),
}

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  toolcrib completions bash > ~/.local/share/bash-completion/completions/toolcrib\n  toolcrib completions fish > ~/.config/fish/completions/toolcrib.fish"
)]
struct Completions {
    #[arg(value_name = "SHELL")]
    dialect: Dialect,
}

impl Command {
    fn wants_json(&self) -> bool {
        match self {
            Command::Serve(_) | Command::Stdio(_) | Command::Bridge(_) | Command::Completions(_) => false,
            Command::Call(_) => false,
            Command::Servers(words) => words.form.json,
            Command::Tools(words) => words.form.json,
            Command::Audit(words) => words.form.json,
            Command::Config(words) => words.form.json,
            Command::Import(words) => words.form.json,
            Command::Connect(words) => words.form.json,
            Command::Doctor(words) => words.form.json,
        }
    }
}

/// What every command is given: how to print, and which crib is meant.
pub(crate) struct Desk {
    pub output: Output,
    pub config: Option<PathBuf>,
    pub token: Option<String>,
    pub admin: Option<String>,
    pub mcp: Option<String>,
}

/// The process environment; what is not UTF-8 counts as absent.
pub(crate) fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl Desk {
    /// The config in force; what may not be meant is told.
    pub fn load(&self) -> Result<Loaded, Trouble> {
        let loaded = self.load_quietly()?;
        for warning in &loaded.warnings {
            self.warn(warning);
        }
        Ok(loaded)
    }

    pub fn load_quietly(&self) -> Result<Loaded, Trouble> {
        Ok(settings::load(self.config.as_deref(), &env)?)
    }

    /// The config for looking at, not for running: variables that are not set are not in the way.
    pub fn look(&self) -> Result<Loaded, Trouble> {
        Ok(settings::look(self.config.as_deref(), &env)?)
    }

    /// Where a running crib may be.
    pub fn address(&self) -> Address {
        Address { admin: self.admin.clone(), mcp: self.mcp.clone(), token: self.token.clone() }
    }

    /// Tells a person which crib answers.
    pub fn say_whom(&self, reach: &Reach) {
        match reach.url() {
            Some(url) => self.output.aside(format!("asking the crib at {url}")),
            None => self.output.aside("no crib is running: starting the servers for the moment"),
        }
    }

    /// On stderr, for people; programs get no loose words.
    pub fn warn(&self, text: impl Display) {
        if !self.output.is_json() {
            self.output.told("warning", Tint::Warn, text);
        }
    }
}

/// How a command ends.
type Ended = Result<Code, Trouble>;

/// Ends `work` when the person presses Ctrl-C, so that what was started for it can be closed.
async fn interruptible(work: impl Future<Output = Ended>) -> Ended {
    tokio::select! {
        ended = work => ended,
        _ = tokio::signal::ctrl_c() => Err(Trouble::new(Code::Failed, "cancelled", "interrupted")),
    }
}

/// Runs the program on `words` (its own name first) and gives the code to end the process with.
pub fn run(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.into_iter().collect();
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => return unparsed(&error),
    };
    let json = cli.form.json || cli.command.as_ref().is_some_and(Command::wants_json);
    let form = if json { Form::Json } else { cli.globals.output };
    let output = Output::new(form, cli.globals.color);
    let set = |value: Option<String>| value.filter(|text| !text.trim().is_empty());
    let desk = Desk {
        output,
        config: cli.globals.config,
        token: set(cli.globals.token).or_else(|| set(env("GATEWAY_TOKEN"))),
        admin: set(cli.globals.admin),
        mcp: set(cli.globals.mcp),
    };
    let command = match cli.command {
        Some(command) => command,
        None if io::stdin().is_terminal() => return unasked(),
        None => Command::Stdio(start::Stdio {}),
    };
    match obey(command, &desk) {
        Ok(code) => code.into(),
        Err(trouble) => trouble.tell(&output),
    }
}

/// Help and versions are printed, mistakes told; clap's own code for them is 2 as well.
fn unparsed(error: &clap::Error) -> ExitCode {
    let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    // Nobody reads it, then nobody needs it.
    let _ = error.print();
    if asked { Code::Done.into() } else { Code::Usage.into() }
}

/// On a terminal without a command: what there is.
fn unasked() -> ExitCode {
    match Cli::command().print_help() {
        Ok(()) => Code::Done.into(),
        Err(_) => Code::Failed.into(),
    }
}

fn obey(command: Command, desk: &Desk) -> Ended {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Trouble::failed(format!("cannot start: {error}")))?;
    let ended = runtime.block_on(Box::pin(async {
        match command {
            Command::Serve(words) => start::serve(words, desk).await,
            Command::Stdio(_) => start::stdio(desk).await,
            Command::Bridge(words) => start::bridge(words, desk).await,
            Command::Servers(words) => servers::run(words, desk).await,
            Command::Tools(words) => tools::run(words, desk).await,
            Command::Call(words) => call::run(words, desk).await,
            Command::Audit(words) => audit::run(words, desk).await,
            Command::Config(words) => config::run(&words, desk),
            Command::Import(words) => import::run(words, desk),
            Command::Connect(words) => connect::run(&words, desk),
            Command::Doctor(words) => doctor::run(&words, desk).await,
            Command::Completions(words) => {
                let mut script = Vec::new();
                clap_complete::generate(words.dialect, &mut Cli::command(), "toolcrib", &mut script);
                desk.output.line(String::from_utf8_lossy(&script).trim_end())?;
                Ok(Code::Done)
            }
        }
    }));
    // A read of stdin may still be blocked; waiting for it would keep the process after a signal.
    runtime.shutdown_background();
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_made() {
        Cli::command().debug_assert();
    }

    fn parsed(words: &[&str]) -> Cli {
        Cli::try_parse_from([&["toolcrib"], words].concat()).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn json_is_a_form_everywhere_but_on_call_where_it_is_arguments() {
        for words in [
            &["servers", "list", "--json"][..],
            &["servers", "--json", "list"],
            &["audit", "list", "--json"],
            &["doctor", "--json"],
        ] {
            assert!(parsed(words).command.unwrap().wants_json(), "{words:?}");
        }
        assert!(parsed(&["--json", "call", "a:b"]).form.json);
        assert_eq!(parsed(&["call", "a:b", "--json", "{}", "-o", "json"]).globals.output, Form::Json);
    }

    #[test]
    fn global_options_stand_before_or_after_the_command() {
        for words in
            [&["--config", "x.yaml", "serve"][..], &["serve", "--config", "x.yaml"], &["--config=x.yaml"]]
        {
            assert_eq!(parsed(words).globals.config, Some(PathBuf::from("x.yaml")), "{words:?}");
        }
    }
}
