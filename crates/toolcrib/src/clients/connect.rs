//! `toolcrib connect`: the crib written into a client's config, and taken out again.
//!
//! One entry is added or renewed; the rest of the file keeps its text. [`connect`] twice changes nothing, and [`undo`]
//! gives the file back as it was, or takes out the one entry when the file was edited since. Nothing is started.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use super::keep::{self, Readers};
use super::{Client, ClientError, Places, Scope, settings};

/// Which client, and what it is told about the crib.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub client: Client,
    pub scope: Scope,
    /// The name of the entry.
    pub name: String,
    /// Where the crib listens, without `/mcp`: `http://127.0.0.1:8081`.
    pub base: String,
    /// The program for clients that only start commands.
    pub bridge: String,
    /// The variable that holds the caller's token, when the crib asks for one. The token itself is never written.
    pub token_variable: Option<String>,
}

impl Options {
    pub fn new(client: Client, base: &str) -> Self {
        Self {
            client,
            scope: Scope::User,
            name: "toolcrib".into(),
            base: base.trim_end_matches('/').trim_end_matches("/mcp").to_owned(),
            bridge: "toolcrib-bridge".into(),
            token_variable: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Added,
    Renewed,
    Unchanged,
    /// The entry was taken out.
    Removed,
    /// The file is as it was before the crib came.
    Restored,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    pub client: Client,
    pub file: PathBuf,
    pub action: Action,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<PathBuf>,
    /// What the person does next.
    pub next: &'static str,
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = match self.action {
            Action::Added => "the crib was added",
            Action::Renewed => "the crib's entry was renewed",
            Action::Unchanged => "nothing to do",
            Action::Removed => "the crib's entry was taken out",
            Action::Restored => "the file is as it was before",
        };
        writeln!(out, "{}: {done}\n  file: {}", self.client, self.file.display())?;
        if let Some(backup) = &self.backup {
            writeln!(out, "  backup: {}", backup.display())?;
        }
        if self.action != Action::Unchanged { writeln!(out, "  next: {}", self.next) } else { Ok(()) }
    }
}

/// Writes the crib into the client's config.
pub fn connect(options: &Options, places: &Places) -> Result<Report, ClientError> {
    let file = file(options, places)?;
    let section = options.client.section();
    let before = keep::text(&file)?;
    let text = before.as_deref().unwrap_or_default();
    let entry = entry(options);
    let report = |action, backup| Report {
        client: options.client,
        file: file.clone(),
        action,
        backup,
        next: next(options.client),
    };
    let action = match settings::entry(&settings::read(&file, text)?, section, &options.name) {
        Some(there) if *there == entry => return Ok(report(Action::Unchanged, None)),
        Some(there) if !is_ours(there, options) => {
            return Err(ClientError::Taken { path: file, name: options.name.clone() });
        }
        Some(_) => Action::Renewed,
        None => Action::Added,
    };
    let after = checked(&file, text, section, options, &entry)?;
    let backup = keep::replace(&file, before.as_deref(), &after, Readers::Owner)?;
    Ok(report(action, backup))
}

/// Takes the crib out of the client's config.
pub fn undo(options: &Options, places: &Places) -> Result<Report, ClientError> {
    let file = file(options, places)?;
    let section = options.client.section();
    let report = |action, backup| Report {
        client: options.client,
        file: file.clone(),
        action,
        backup,
        next: next(options.client),
    };
    let Some(text) = keep::text(&file)? else { return Ok(report(Action::Unchanged, None)) };
    let value = settings::read(&file, &text)?;
    let Some(there) = settings::entry(&value, section, &options.name) else {
        return Ok(report(Action::Unchanged, None));
    };
    if !is_ours(there, options) {
        return Err(ClientError::Taken { path: file, name: options.name.clone() });
    }
    // Unchanged since: adding the entry to what was there before gives exactly this text.
    let made_from = |before: &str| {
        settings::edit(&file, before, section, &options.name, Some(there)).is_ok_and(|made| made == text)
    };
    if made_from("") {
        fs::remove_file(&file).map_err(|source| ClientError::Write { path: file.clone(), source })?;
        return Ok(report(Action::Restored, None));
    }
    let earlier = keep::newest_backup(&file).and_then(|backup| fs::read_to_string(backup).ok());
    let lacks = |before: &String| {
        settings::read(&file, before)
            .is_ok_and(|value| settings::entry(&value, section, &options.name).is_none())
    };
    let (after, action) = match earlier.filter(|before| lacks(before) && made_from(before)) {
        Some(before) => (before, Action::Restored),
        None => (settings::edit(&file, &text, section, &options.name, None)?, Action::Removed),
    };
    let backup = keep::replace(&file, Some(&text), &after, Readers::Owner)?;
    Ok(report(action, backup))
}

fn file(options: &Options, places: &Places) -> Result<PathBuf, ClientError> {
    places.file(options.client, options.scope).ok_or(ClientError::NoScope { client: options.client })
}

/// The edited text, read back: the entry is there and all else means what it meant.
fn checked(
    file: &Path,
    text: &str,
    section: &[&str],
    options: &Options,
    entry: &Value,
) -> Result<String, ClientError> {
    let after = settings::edit(file, text, section, &options.name, Some(entry))?;
    let there = settings::read(file, &after)?;
    if settings::entry(&there, section, &options.name) == Some(entry) {
        Ok(after)
    } else {
        Err(ClientError::Malformed { path: file.to_owned(), what: "the entry could not be put in".into() })
    }
}

/// An entry under our own name, with our program, or with the address asked for.
fn is_ours(entry: &Value, options: &Options) -> bool {
    let program =
        entry.get("command").and_then(Value::as_str).and_then(|command| Path::new(command).file_stem());
    let url = ["url", "serverUrl", "httpUrl"].iter().find_map(|key| entry.get(*key)?.as_str());
    program.is_some_and(|name| name == "toolcrib" || name == "toolcrib-bridge")
        || url.is_some_and(|url| options.name == "toolcrib" || url == address(&options.base))
}

fn address(base: &str) -> String {
    format!("{base}/mcp")
}

/// What the client's file says of the crib.
pub(crate) fn entry(options: &Options) -> Value {
    let url = address(&options.base);
    let bearer = |reference: &dyn Fn(&str) -> String| {
        options
            .token_variable
            .as_deref()
            .map(|name| json!({ "Authorization": format!("Bearer {}", reference(name)) }))
    };
    let plain = |name: &str| format!("${{{name}}}");
    let named = |name: &str| format!("${{env:{name}}}");
    let (mut entry, headers) = match options.client {
        // It starts commands only; the bridge takes its token from `TOOLCRIB_TOKEN` in the client's environment.
        Client::ClaudeDesktop => (json!({ "command": options.bridge, "args": [options.base] }), None),
        // It takes headers only as they are, and a token is not to be written down: with one, the bridge.
        Client::Zed if options.token_variable.is_some() => {
            (json!({ "command": options.bridge, "args": [options.base] }), None)
        }
        Client::Zed => (json!({ "url": url }), None),
        Client::ClaudeCode => (json!({ "type": "http", "url": url }), bearer(&plain)),
        Client::VsCode => (json!({ "type": "http", "url": url }), bearer(&named)),
        Client::Cursor => (json!({ "url": url }), bearer(&named)),
        Client::Windsurf => (json!({ "serverUrl": url }), bearer(&named)),
        Client::Gemini => (json!({ "httpUrl": url }), bearer(&plain)),
        Client::Codex => match &options.token_variable {
            Some(name) => (json!({ "url": url, "bearer_token_env_var": name }), None),
            None => (json!({ "url": url }), None),
        },
    };
    if let (Some(headers), Value::Object(members)) = (headers, &mut entry) {
        members.insert("headers".into(), headers);
    }
    entry
}

fn next(client: Client) -> &'static str {
    match client {
        Client::ClaudeDesktop => "quit Claude Desktop and start it again",
        Client::ClaudeCode => "start a new session, then `/mcp` shows it",
        Client::Cursor => "see Settings, MCP; switch it on there if it is off",
        Client::VsCode => "run `MCP: List Servers` and start it",
        Client::Windsurf => "press refresh in the MCP panel",
        Client::Codex => "start a new session, then `/mcp` shows it",
        Client::Gemini => "start a new session, then `/mcp` shows it",
        Client::Zed => "see the agent panel's settings",
    }
}

/// What to paste, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Snippet {
    pub client: Client,
    /// `terminal`, or the file it goes into.
    pub place: String,
    pub text: String,
}

/// The exact text that points `client` at a crib on `base`: a command where the client has one, else its config.
pub fn snippet(client: Client, base: &str) -> Snippet {
    let options = Options::new(client, base);
    let url = address(&options.base);
    let command = match client {
        Client::ClaudeCode => Some(format!("claude mcp add --transport http toolcrib {url}")),
        Client::Codex => Some(format!("codex mcp add toolcrib --url {url}")),
        Client::Gemini => Some(format!("gemini mcp add --scope user --transport http toolcrib {url}")),
        Client::VsCode => {
            Some(format!("code --add-mcp '{}'", json!({ "name": "toolcrib", "type": "http", "url": url })))
        }
        Client::ClaudeDesktop | Client::Cursor | Client::Windsurf | Client::Zed => None,
    };
    let (place, text) = match command {
        Some(command) => ("terminal".to_owned(), command),
        None => {
            let place = match client {
                Client::ClaudeDesktop => "claude_desktop_config.json (Settings, Developer, Edit Config)",
                Client::Cursor => "~/.cursor/mcp.json",
                Client::Windsurf => "~/.codeium/windsurf/mcp_config.json",
                _ => "~/.config/zed/settings.json",
            };
            let servers = json!({ "toolcrib": entry(&options) });
            let whole = client.section().iter().rev().fold(servers, |inner, key| json!({ *key: inner }));
            (place.to_owned(), whole.to_string())
        }
    };
    Snippet { client, place, text }
}
