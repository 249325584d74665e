//! From the tree of the file to its [`Server`]s: transports in every spelling, and which keys go together.
//!
//! A disabled server is checked like the others, except that its variables may be missing.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use super::fields::Fields;
use super::find;
use super::model::Id;
use super::read;
use super::scalar;
use super::secret::Secret;
use super::server::{ApiKey, Auth, Connect, Era, Prefix, Process, Remote, Server, Transport};
use super::shape::{self, Choice};

/// The source of the built-in tools; a server of this id would take their place.
pub(crate) const RESERVED: &str = "crib";

/// A transport as it is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spoken {
    Stdio,
    Http,
    Sse,
    WebSocket,
}

impl Choice for Spoken {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("stdio", Spoken::Stdio),
        ("http", Spoken::Http),
        ("sse", Spoken::Sse),
        ("streamable-http", Spoken::Http),
        ("streamable_http", Spoken::Http),
        ("streamableHttp", Spoken::Http),
        ("remote-mcp", Spoken::Http),
        ("http+sse", Spoken::Sse),
        ("stdio-mcp", Spoken::Stdio),
        ("websocket", Spoken::WebSocket),
        ("ws", Spoken::WebSocket),
    ];
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthKind {
    OAuth,
    ApiKey,
}

impl Choice for AuthKind {
    const WORDS: &'static [(&'static str, Self)] =
        &[("oauth2-pkce", AuthKind::OAuth), ("oauth2", AuthKind::OAuth), ("api-key", AuthKind::ApiKey)];
}

impl Choice for Connect {
    const WORDS: &'static [(&'static str, Self)] =
        &[("on-demand", Connect::OnDemand), ("always", Connect::Always)];
}

impl Choice for Era {
    const WORDS: &'static [(&'static str, Self)] =
        &[("auto", Era::Auto), ("legacy", Era::Legacy), ("modern", Era::Modern)];
}

pub(crate) fn servers(root: &Fields<'_, '_>, folder: &Path) -> BTreeMap<Id, Server> {
    let mut servers = BTreeMap::new();
    for (word, span, node) in root.pairs("servers") {
        let id = read::id(root.reading, word, span, "server");
        if word == RESERVED {
            let what = format!("`{word}` is the id of the crib's own tools");
            root.reading.mistake(span, what, Some("another id".to_owned()));
        }
        let fields = Fields::open(root.reading, node, span, &shape::SERVER);
        let enabled = fields.flag("enabled").unwrap_or(true);
        let read = || server(&fields, folder, enabled);
        let server = if enabled { read() } else { root.reading.forgive(read) };
        if let (Some(id), Some(server)) = (id, server) {
            servers.insert(id, server);
        }
    }
    servers
}

/// `None` only when something was reported.
fn server(fields: &Fields<'_, '_>, folder: &Path, enabled: bool) -> Option<Server> {
    let transport = transport(fields, folder);
    let server = Server {
        name: fields.text("name"),
        description: fields.text("description"),
        auth: fields.group("auth").and_then(|group| auth(&group)),
        enabled,
        connect: fields.choice("connect").unwrap_or_default(),
        era: fields.choice("era").unwrap_or_default(),
        timeout: timeout(fields),
        prefix: prefix(fields),
        strip_server_prefix: fields.flag("strip_server_prefix").unwrap_or(true),
        expose: fields.globs("expose").unwrap_or_default(),
        hide: fields.globs("hide").unwrap_or_default(),
        rename: fields.map("rename"),
        describe: fields.map("describe"),
        transport: transport?,
    };
    check_renames(fields, &server.rename);
    Some(server)
}

/// Everything about the transport is read, used or not, so that every mistake in it is told.
fn transport(fields: &Fields<'_, '_>, folder: &Path) -> Option<Transport> {
    let spoken = spoken(fields);
    let process = process(fields, folder);
    let remote = remote(fields);
    let spoken = spoken?;
    match spoken {
        Spoken::Stdio => ignored(fields, &["headers"], "a server started by `command`"),
        _ => ignored(fields, &["args", "env", "cwd"], "a remote server"),
    }
    match spoken {
        Spoken::Stdio => process.map(Transport::Stdio),
        Spoken::Sse => remote.map(Transport::Sse),
        Spoken::Http => remote.map(Transport::Http),
        Spoken::WebSocket => None,
    }
}

/// Which transport is meant, by `type` or by what is given.
fn spoken(fields: &Fields<'_, '_>) -> Option<Spoken> {
    const EITHER: &str = "`command` for a local server, or `url` for a remote one";
    let written = fields.choice::<Spoken>("type");
    let (what, expected) = match (written, fields.has("command"), fields.has("url")) {
        (Some(Spoken::WebSocket), ..) => {
            let hint = "the server's Streamable HTTP or SSE address; WebSocket is not spoken here";
            fields.mistake("type", "`websocket` is not supported", hint);
            return None;
        }
        (_, true, true) => ("both `command` and `url` are given", EITHER),
        (_, false, false) if fields.lacks("command") && fields.lacks("url") => {
            ("neither `command` nor `url` is given", EITHER)
        }
        (_, false, false) => return None,
        (Some(Spoken::Stdio), _, true) => {
            ("a `stdio` server is given a `url`", "`command`, or a `type` such as `http`")
        }
        (Some(Spoken::Http | Spoken::Sse), true, _) => {
            ("a remote server is given a `command`", "`url`, or `type: stdio`")
        }
        (Some(spoken), ..) => return Some(spoken),
        (None, true, _) => return Some(Spoken::Stdio),
        (None, false, _) => return Some(Spoken::Http),
    };
    fields.lacking(what, expected);
    None
}

fn process(fields: &Fields<'_, '_>, folder: &Path) -> Option<Process> {
    let env = secrets(fields, "env");
    let args = fields.texts("args").unwrap_or_default();
    let cwd = fields.text("cwd").map(|text| find::path(&text, folder, fields.reading));
    let command = fields.value("command", |text| match text.trim() {
        "" => Err("a program, such as `npx`".to_owned()),
        command => Ok(command.to_owned()),
    });
    let command = command.or_else(|| fields.unresolved("command"))?;
    Some(Process { command: find::home(&command, fields.reading), args, env, cwd })
}

fn remote(fields: &Fields<'_, '_>) -> Option<Remote> {
    let headers = secrets(fields, "headers");
    let url = fields.url("url").or_else(|| fields.unresolved("url"))?;
    Some(Remote { url, headers })
}

fn ignored(fields: &Fields<'_, '_>, names: &[&str], of: &str) {
    for name in names.iter().filter(|name| fields.has(name)) {
        fields.reading.warning(fields.span_of(name), format!("`{name}` of {of} is not used"), None);
    }
}

fn secrets(fields: &Fields<'_, '_>, name: &str) -> BTreeMap<String, Secret> {
    fields.map(name).into_iter().map(|(key, value)| (key, Secret::new(value))).collect()
}

fn auth(fields: &Fields<'_, '_>) -> Option<Auth> {
    if !fields.has("type") {
        fields.mistake("type", "`auth` has no `type`", "`type: oauth2-pkce`, `oauth2` or `api-key`");
        return None;
    }
    match fields.choice::<AuthKind>("type")? {
        AuthKind::OAuth => {
            ignored(fields, &["env", "key"], "OAuth");
            Some(Auth::OAuth)
        }
        AuthKind::ApiKey => api_key(fields).map(Auth::ApiKey),
    }
}

fn api_key(fields: &Fields<'_, '_>) -> Option<ApiKey> {
    let env = fields.value("env", |name| match super::variables::is_name(name) {
        true => Ok(name.to_owned()),
        false => Err("the name of an environment variable".to_owned()),
    });
    if !fields.has("env") && !fields.has("key") {
        fields.lacking("`auth` of type `api-key` has no key", "`env: VAR`, or `key: \"${VAR}\"`");
        return None;
    }
    if fields.has("key") {
        return Some(ApiKey { env, key: fields.secret("key") });
    }
    let name = env?;
    let key = fields.reading.variable(&name).map(Secret::new);
    if key.is_none() && !fields.reading.forgiving() {
        let hint = format!("set `{name}`, or `enabled: false`");
        fields.mistake("env", format!("environment variable `{name}` is not set"), &hint);
    }
    Some(ApiKey { env: Some(name), key })
}

fn timeout(fields: &Fields<'_, '_>) -> Duration {
    match fields.duration("timeout") {
        Some(Duration::ZERO) => {
            fields.mistake("timeout", "`timeout` cannot be 0", "a duration, such as `30s`");
            Duration::from_secs(30)
        }
        given => given.unwrap_or(Duration::from_secs(30)),
    }
}

fn prefix(fields: &Fields<'_, '_>) -> Prefix {
    let text = fields.value("prefix", |text| match text {
        "" => Ok("none".to_owned()),
        text => scalar::id(text).map(str::to_owned),
    });
    match text.as_deref() {
        None => Prefix::Id,
        Some("none") => Prefix::None,
        Some(text) => Prefix::Text(text.to_owned()),
    }
}

fn check_renames(fields: &Fields<'_, '_>, rename: &BTreeMap<String, String>) {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    for (tool, new) in rename {
        if let Some(other) = seen.insert(new, tool) {
            let what = format!("`{other}` and `{tool}` are both renamed to `{new}`");
            fields.mistake("rename", what, "different names");
        }
        if new.is_empty() {
            fields.mistake("rename", format!("`{tool}` is renamed to nothing"), "a name");
        }
    }
}
