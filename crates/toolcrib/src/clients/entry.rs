//! One server in a client's file, read into one form whatever the client calls its keys.
//!
//! Values are as they were written there; translating variables and taking out secrets is `import`'s work.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::place::Client;

/// An entry as found, with where it was found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub name: String,
    pub client: Option<Client>,
    pub file: PathBuf,
    /// The project it belongs to, when it belongs to one.
    pub project: Option<PathBuf>,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Draft {
    pub reach: Reach,
    pub enabled: bool,
    pub description: Option<String>,
    pub timeout_seconds: Option<f64>,
    pub expose: Vec<String>,
    pub hide: Vec<String>,
    /// What the entry asks for and the crib does not carry over.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reach {
    Process { command: String, args: Vec<String>, env: Vec<(String, String)>, cwd: Option<String> },
    Remote { kind: Option<&'static str>, url: String, headers: Vec<(String, String)> },
}

/// Every server in the file of a client.
pub(crate) fn all(file: &Path, client: Option<Client>, value: &Value) -> Vec<Found> {
    let mut found = Vec::new();
    let mut add = |servers: Option<&Value>, project: Option<&str>| {
        for (name, value) in servers.and_then(Value::as_object).into_iter().flatten() {
            let project = project.map(PathBuf::from);
            found.push(Found {
                name: name.clone(),
                client,
                file: file.to_owned(),
                project,
                value: value.clone(),
            });
        }
    };
    match client {
        Some(Client::VsCode) if value.get("servers").is_none() => add(value.pointer("/mcp/servers"), None),
        Some(client) => add(client.section().iter().try_fold(value, |value, key| value.get(key)), None),
        // A file by path: whichever of the known sections it has.
        None => {
            for section in ["mcpServers", "servers", "mcp_servers", "context_servers"] {
                add(value.get(section), None);
            }
        }
    }
    if client == Some(Client::ClaudeCode) {
        for (project, settings) in value.get("projects").and_then(Value::as_object).into_iter().flatten() {
            add(settings.get("mcpServers"), Some(project));
        }
    }
    found
}

/// The entry in one form, or why it cannot be taken over.
pub(crate) fn draft(found: &Found) -> Result<Draft, String> {
    let members = found.value.as_object().ok_or("it is not a group of keys")?;
    let reach = reach(found.client, members)?;
    let milliseconds = number(members, "timeout").filter(|_| found.client == Some(Client::Gemini));
    let disabled = flag(members, "disabled") == Some(true) || flag(members, "enabled") == Some(false);
    Ok(Draft {
        reach,
        enabled: !disabled,
        description: text(members, "description"),
        timeout_seconds: number(members, "tool_timeout_sec").or(milliseconds.map(|number| number / 1000.0)),
        expose: first_list(members, &["enabled_tools", "includeTools"]),
        hide: first_list(members, &["disabled_tools", "excludeTools", "disabledTools"]),
        notes: ["envFile", "oauth", "auth", "authProviderType"]
            .into_iter()
            .filter(|key| members.contains_key(*key))
            .map(|key| format!("`{key}` is not carried over"))
            .collect(),
    })
}

fn reach(client: Option<Client>, members: &Map<String, Value>) -> Result<Reach, String> {
    let kind =
        text(members, "type").or_else(|| text(members, "transport")).unwrap_or_default().to_ascii_lowercase();
    if matches!(kind.as_str(), "ws" | "websocket") {
        return Err("WebSocket is not supported".into());
    }
    match members.get("command") {
        Some(Value::String(command)) if !command.is_empty() => return Ok(process(command, members, members)),
        // Zed's older form: the command is a group of its own.
        Some(Value::Object(inner)) => {
            if let Some(path) = text(inner, "path") {
                return Ok(process(&path, inner, members));
            }
        }
        _ => {}
    }
    let given = |key: &str| text(members, key).filter(|url| !url.is_empty());
    let (url, word) = match (given("httpUrl"), given("serverUrl"), given("url")) {
        (Some(url), ..) => (url, None),
        (_, Some(url), _) => (url, None),
        // Gemini CLI's `url` is HTTP+SSE unless it says otherwise.
        (.., Some(url)) if client == Some(Client::Gemini) && kind != "http" => (url, Some("sse")),
        (.., Some(url)) => (url, (kind == "sse").then_some("sse")),
        (None, None, None) if text(members, "source").as_deref() == Some("extension") => {
            return Err("it is an extension of the editor, which only the editor can start".into());
        }
        (None, None, None) => return Err("it has neither a command nor a URL".into()),
    };
    Ok(Reach::Remote { kind: word, url, headers: headers(members) })
}

fn process(command: &str, inner: &Map<String, Value>, outer: &Map<String, Value>) -> Reach {
    let mut env = pairs(inner, "env");
    // Codex hands these through from its own environment.
    env.extend(list(outer, "env_vars").into_iter().map(|name| (name.clone(), format!("${{{name}}}"))));
    Reach::Process { command: command.to_owned(), args: list(inner, "args"), env, cwd: text(outer, "cwd") }
}

/// Headers, and the ways Codex writes them.
fn headers(members: &Map<String, Value>) -> Vec<(String, String)> {
    let mut headers = pairs(members, "headers");
    headers.extend(pairs(members, "http_headers"));
    headers.extend(
        pairs(members, "env_http_headers").into_iter().map(|(key, name)| (key, format!("${{{name}}}"))),
    );
    if let Some(name) = text(members, "bearer_token_env_var") {
        headers.push(("Authorization".into(), format!("Bearer ${{{name}}}")));
    }
    headers
}

fn text(members: &Map<String, Value>, key: &str) -> Option<String> {
    members.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn flag(members: &Map<String, Value>, key: &str) -> Option<bool> {
    members.get(key).and_then(Value::as_bool)
}

fn number(members: &Map<String, Value>, key: &str) -> Option<f64> {
    members.get(key).and_then(Value::as_f64).filter(|number| *number > 0.0)
}

/// Text, or what is plainly meant as text: clients differ on whether a port needs quotes.
fn loose(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn list(members: &Map<String, Value>, key: &str) -> Vec<String> {
    members.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(loose).collect()
}

fn first_list(members: &Map<String, Value>, keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| list(members, key)).find(|list| !list.is_empty()).unwrap_or_default()
}

fn pairs(members: &Map<String, Value>, key: &str) -> Vec<(String, String)> {
    let entries = members.get(key).and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), loose(value)?))).collect()
}
