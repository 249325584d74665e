//! `import`: the servers other clients already have. A plan unless told to write.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValue;
use serde_json::json;

use super::trouble::{Code, Trouble};
use super::{Desk, Ended, JsonFlag};
use crate::clients::import::{EnvFile, Options, plan};
use crate::clients::{Client, Places};
use crate::config as settings;

/// Bring in the servers your MCP clients already have
#[derive(Debug, Args)]
#[command(after_help = "\
It shows what it would add; nothing is written without --write, and never without a backup. Secrets stay out of the \
config: each becomes a ${VARIABLE}, and the plan names them.

Examples:
  toolcrib import                       everything that is found, as a plan
  toolcrib import cursor claude-code --write
  toolcrib import --file .mcp.json --write --env-file")]
pub struct Import {
    #[command(flatten)]
    pub(super) form: JsonFlag,
    /// Only from these clients
    #[arg(value_name = "CLIENT")]
    clients: Vec<Client>,
    /// From this file instead: anything with `mcpServers`, `servers` or `mcp_servers`
    #[arg(long, value_name = "PATH", conflicts_with = "clients")]
    file: Option<PathBuf>,
    /// Into this config instead of the one in force
    #[arg(long, value_name = "PATH")]
    to: Option<PathBuf>,
    /// Write it
    #[arg(long)]
    write: bool,
    /// With --write: also put the secrets' values into `<config>.env`, readable by you only
    #[arg(long, requires = "write")]
    env_file: bool,
}

impl clap::ValueEnum for Client {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.word()))
    }
}

/// The folders of whoever runs this.
pub(super) fn places() -> Result<Places, Trouble> {
    let cwd = std::env::current_dir()?;
    Places::here(&super::env, &cwd)
        .ok_or_else(|| Trouble::failed("no home folder is known").hint("set HOME and try again"))
}

pub fn run(words: Import, desk: &Desk) -> Ended {
    let target = words
        .to
        .or_else(|| settings::locate(desk.config.as_deref(), &super::env))
        .or_else(|| settings::user_file(&super::env))
        .ok_or_else(|| Trouble::failed("no place for a config is known").hint("name one with `--to PATH`"))?;
    let options = Options { clients: words.clients, file: words.file };
    let plan = plan(&options, &places()?, &target, &super::env)?;
    let applied = if words.write {
        let env_file = if words.env_file { EnvFile::Write } else { EnvFile::Leave };
        Some(plan.apply(env_file)?)
    } else {
        None
    };
    let output = &desk.output;
    if output.is_json() {
        output.json(&json!({ "plan": plan, "applied": applied }))?;
        return Ok(Code::Done);
    }
    output.text(&plan.to_string())?;
    match applied {
        Some(_) if plan.added.is_empty() => {}
        Some(applied) => output.text(&applied.to_string())?,
        None if plan.added.is_empty() => {}
        None => output.line(
            "\nThis is what it would add; nothing was written. Run it again with --write to apply it.",
        )?,
    }
    Ok(Code::Done)
}
