//! `connect`: the crib written into a client's config, tried on a copy, or taken out again.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::import::places;
use super::trouble::{Code, Trouble};
use super::{Desk, Ended, JsonFlag};
use crate::clients::connect::{Action, Options, Report, connect, undo};
use crate::clients::{Client, Places, Scope};
use crate::output::{Cell, Table, Tint};
use crate::reach::mcp_url;

/// Point an MCP client at the crib, or take it out again
#[derive(Debug, Args)]
#[command(after_help = "\
One entry is added to the client's config; everything else in it stays as it is, and a backup is made first. A token is \
never written: the entry names the variable that holds it.

Examples:
  toolcrib connect --list
  toolcrib connect claude-code --dry-run
  toolcrib connect cursor --project
  toolcrib connect cursor --undo")]
pub struct Connect {
    #[command(flatten)]
    pub(super) form: JsonFlag,
    /// Whose config is written
    #[arg(required_unless_present = "list")]
    client: Option<Client>,
    /// Show the clients, their files, and whether the crib is in them
    #[arg(long, conflicts_with_all = ["client", "undo", "dry_run"])]
    list: bool,
    /// Take the crib out again
    #[arg(long)]
    undo: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// In the project's file (in this folder) instead of your own
    #[arg(long)]
    project: bool,
    /// The crib's address [default: the config's `listen.mcp`]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The name of the entry
    #[arg(long, value_name = "NAME", default_value = "toolcrib")]
    name: String,
    /// The variable the client finds its token in [default: TOOLCRIB_TOKEN where the config has callers]
    #[arg(long, value_name = "VARIABLE")]
    token_env: Option<String>,
    /// The bridge program, for clients that only start commands
    #[arg(long, value_name = "PATH")]
    bridge: Option<String>,
}

pub fn run(words: &Connect, desk: &Desk) -> Ended {
    let places = places()?;
    let Some(client) = words.client else { return list(words, &places, desk) };
    let options = options(words, client, desk)?;
    if words.dry_run {
        return rehearse(words, &options, &places, desk);
    }
    let report = if words.undo { undo(&options, &places)? } else { connect(&options, &places)? };
    if desk.output.is_json() {
        desk.output.json(&report)?;
    } else {
        desk.output.text(&report.to_string())?;
    }
    Ok(Code::Done)
}

fn options(words: &Connect, client: Client, desk: &Desk) -> Result<Options, Trouble> {
    let loaded = match (&words.url, desk.look()) {
        // Where the crib is was said, so a config that cannot be read is not in the way.
        (Some(_), loaded) => loaded.ok(),
        (None, loaded) => Some(loaded?),
    };
    let base = match (&words.url, &loaded) {
        (Some(url), _) => url.clone(),
        (None, Some(loaded)) if loaded.config.listen.mcp.port() != 0 || desk.mcp.is_some() => {
            mcp_url(&loaded.config, &desk.address())
        }
        _ => {
            return Err(Trouble::usage(
                "the config lets the system choose the port, so no client can be told it",
            )
            .hint("give `listen.mcp` a fixed port, or say `--url URL`"));
        }
    };
    if !url::Url::parse(&base).is_ok_and(|url| matches!(url.scheme(), "http" | "https")) {
        return Err(Trouble::usage(format!("`{base}` is not an address")).hint("write `http://host:8081`"));
    }
    let guarded = loaded.is_some_and(|loaded| !loaded.config.callers.is_empty());
    let mut options = Options::new(client, &base);
    options.scope = if words.project { Scope::Project } else { Scope::User };
    options.name.clone_from(&words.name);
    options.token_variable = words.token_env.clone().or_else(|| guarded.then(|| "TOOLCRIB_TOKEN".to_owned()));
    if let Some(bridge) = words.bridge.clone().or_else(bridge_beside) {
        options.bridge = bridge;
    }
    Ok(options)
}

/// The bridge that came with this program, by its whole path: a client started from a desktop has another `PATH`.
fn bridge_beside() -> Option<String> {
    let name = format!("toolcrib-bridge{}", std::env::consts::EXE_SUFFIX);
    let path = std::env::current_exe().ok()?.parent()?.join(name);
    path.is_file().then(|| path.to_str().map(str::to_owned))?
}

/// A client's file before and after, on a copy.
struct Rehearsal {
    report: Report,
    before: String,
    after: String,
}

/// Does it to a copy of the client's file, so that what is shown is what would happen.
fn on_a_copy(
    options: &Options,
    places: &Places,
    deed: fn(&Options, &Places) -> Result<Report, crate::clients::ClientError>,
) -> Result<Rehearsal, Trouble> {
    let stage = tempfile::tempdir()?;
    let folder = |name: &str| stage.path().join(name);
    let copy = Places {
        home: folder("home"),
        config: folder("config"),
        applications: folder("applications"),
        codex: folder("codex"),
        cwd: folder("project"),
    };
    let (Some(real), Some(staged)) =
        (places.file(options.client, options.scope), copy.file(options.client, options.scope))
    else {
        return Err(crate::clients::ClientError::NoScope { client: options.client }.into());
    };
    for file in with_backups(&real) {
        if let (Some(name), Some(parent)) = (file.file_name(), staged.parent()) {
            fs::create_dir_all(parent)?;
            fs::copy(&file, parent.join(name))?;
        }
    }
    let before = fs::read_to_string(&staged).unwrap_or_default();
    let mut report = deed(options, &copy)?;
    let after = fs::read_to_string(&staged).unwrap_or_default();
    report.file = real;
    report.backup = None;
    Ok(Rehearsal { report, before, after })
}

/// The file, where it exists, and the backups `undo` looks at.
fn with_backups(file: &Path) -> Vec<PathBuf> {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let beside = file.parent().and_then(|parent| fs::read_dir(parent).ok()).into_iter().flatten();
    let ours = |path: &PathBuf| {
        let its = path.file_name().and_then(|its| its.to_str()).unwrap_or_default();
        path.is_file() && (its == name || its.starts_with(&format!("{name}.bak-")))
    };
    beside.filter_map(|entry| Some(entry.ok()?.path())).filter(ours).collect()
}

fn rehearse(words: &Connect, options: &Options, places: &Places, desk: &Desk) -> Ended {
    let Rehearsal { report, before, after } =
        on_a_copy(options, places, if words.undo { undo } else { connect })?;
    let output = &desk.output;
    if output.is_json() {
        let lines = changes(&before, &after).into_iter().map(|(sign, _, line)| format!("{sign} {line}"));
        output.json(&json!({ "dryRun": true, "report": report, "changes": lines.collect::<Vec<_>>() }))?;
        return Ok(Code::Done);
    }
    let would = match report.action {
        Action::Added => "would add the crib to",
        Action::Renewed => "would renew the crib's entry in",
        Action::Unchanged => "nothing to do in",
        Action::Removed => "would take the crib's entry out of",
        Action::Restored => "would put back as it was:",
    };
    output.line(format!("{would} {}", report.file.display()))?;
    for (sign, tint, line) in changes(&before, &after) {
        output.line(output.paint(tint, &format!("  {sign} {}", crate::output::clean(line))))?;
    }
    output.line("nothing was written")?;
    Ok(Code::Done)
}

/// Lines that go and lines that come, between the parts both texts begin and end with.
fn changes<'a>(before: &'a str, after: &'a str) -> Vec<(char, Tint, &'a str)> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let head = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let rest = old.len().min(new.len()) - head;
    let tail =
        old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(one, other)| one == other).count();
    let middle = |lines: &[&'a str]| -> Vec<&'a str> {
        lines.iter().skip(head).take(lines.len().saturating_sub(head + tail)).copied().collect()
    };
    let gone = middle(&old).into_iter().map(|line| ('-', Tint::Bad, line));
    gone.chain(middle(&new).into_iter().map(|line| ('+', Tint::Good, line))).collect()
}

fn list(words: &Connect, places: &Places, desk: &Desk) -> Ended {
    let scope = if words.project { Scope::Project } else { Scope::User };
    let mut rows: Vec<Value> = Vec::new();
    for client in Client::ALL {
        let Some(file) = places.file(client, scope) else { continue };
        let state =
            match options(words, client, desk).and_then(|options| on_a_copy(&options, places, connect)) {
                Ok(tried) => match tried.report.action {
                    Action::Unchanged => "connected",
                    Action::Renewed => "connected elsewhere",
                    _ if file.is_file() => "not connected",
                    _ => "no file",
                },
                Err(_) => "unreadable",
            };
        rows.push(json!({ "client": client.word(), "title": client.title(), "state": state, "file": file }));
    }
    if desk.output.is_json() {
        desk.output.json(&json!({ "clients": rows }))?;
        return Ok(Code::Done);
    }
    let mut table = Table::new(&["CLIENT", "NAME", "CRIB", "FILE"]);
    for row in &rows {
        let field = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default();
        let tint = if field("state") == "connected" { Tint::Good } else { Tint::Faint };
        table.row(vec![
            Cell::new(field("client")),
            Cell::new(field("title")),
            Cell::tinted(field("state"), tint),
            Cell::tinted(field("file"), Tint::Faint),
        ]);
    }
    desk.output.table(&table)?;
    Ok(Code::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_shown() {
        let found = changes("{\n  \"a\": 1\n}\n", "{\n  \"a\": 1,\n  \"b\": 2\n}\n");
        let lines: Vec<String> = found.iter().map(|(sign, _, line)| format!("{sign}{line}")).collect();
        assert_eq!(lines, ["-  \"a\": 1", "+  \"a\": 1,", "+  \"b\": 2"]);
        assert!(changes("same\n", "same\n").is_empty());
        assert_eq!(changes("", "a\n").len(), 1);
    }
}
