//! One found entry on its way into `toolcrib.yaml`: variables translated, secrets taken out, an id of its own.
//!
//! It refuses what is there already and what is the crib itself. It reads and writes no file.

use std::path::Path;

use serde_json::{Map, Value};

use super::Places;
use super::credential::Variables;
use super::entry::{self, Draft, Found, Reach};
use super::reference::Dialect;
use crate::config::{Config, Id, Server, Transport};

/// An entry as it will be written.
#[derive(Debug, Clone)]
pub(crate) struct Taken {
    pub id: String,
    pub transport: &'static str,
    pub address: String,
    pub members: Map<String, Value>,
    pub notes: Vec<String>,
    /// What it reaches, as the client had it; two entries that reach the same are one.
    reach: Reach,
}

/// Takes an entry over, or says why not.
pub(crate) fn take(
    found: &Found,
    places: &Places,
    current: &Config,
    before: &[Taken],
    variables: &mut Variables,
) -> Result<Taken, String> {
    let draft = entry::draft(found)?;
    if is_the_crib(&draft.reach, current) {
        return Err("it is the crib itself".into());
    }
    if let Some(twin) = before.iter().find(|taken| taken.reach == draft.reach) {
        return Err(format!("the same as `{}` above", twin.id));
    }
    let id = free_id(found, current, before);
    let project = found.project.as_deref().unwrap_or(&places.cwd);
    let dialect = Dialect { client: found.client, home: &places.home, project };
    // Variables of an entry that is then refused must not be asked for.
    let mut tried = variables.clone();
    let mut writing = Writing { dialect, server: &id, variables: &mut tried };
    let mut members = Map::new();
    let (transport, address) = writing.reach(&draft.reach, folder(found, places, &draft.reach), &mut members);
    let there =
        |server: &Server| same(&draft.reach, &server.transport) || written_alike(&members, &server.transport);
    if let Some((id, _)) = current.servers.iter().find(|(_, server)| there(server)) {
        return Err(format!("already there as `{id}`"));
    }
    *variables = tried;
    rest(&draft, &mut members);
    Ok(Taken { id, transport, address, members, notes: draft.notes, reach: draft.reach })
}

/// The name made legal, with the client's behind it when another server has it.
fn free_id(found: &Found, current: &Config, before: &[Taken]) -> String {
    let legal =
        |letter: char| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '-' };
    let plain: String = found.name.chars().map(legal).take(48).collect();
    let plain = if plain.is_empty() { "server".to_owned() } else { plain };
    let client = found.client.map_or("import", super::Client::word);
    let numbered = (2..).map(|number| format!("{plain}-{number}"));
    let free = |id: &String| {
        let known = Id::new(id).is_some_and(|id| current.servers.contains_key(&id));
        !known && before.iter().all(|taken| taken.id != *id)
    };
    let mut candidates = [plain.clone(), format!("{plain}-{client}")].into_iter().chain(numbered);
    candidates.find(free).unwrap_or(plain)
}

/// A client of a project starts its servers in that project; keep that where it matters.
fn folder<'f>(found: &'f Found, places: &'f Places, reach: &Reach) -> Option<&'f Path> {
    let Reach::Process { command, args, cwd: None, .. } = reach else { return None };
    let in_project = found.file.starts_with(&places.cwd).then_some(places.cwd.as_path());
    let project = found.project.as_deref().or(in_project)?;
    let relative = |text: &String| text == "." || text.starts_with("./") || text.starts_with("../");
    std::iter::once(command).chain(args).any(relative).then_some(project)
}

struct Writing<'a> {
    dialect: Dialect<'a>,
    server: &'a str,
    variables: &'a mut Variables,
}

impl Writing<'_> {
    fn translate(&mut self, text: &str) -> String {
        let translated = self.dialect.translate(text);
        for name in &translated.variables {
            self.variables.named(name, self.server);
        }
        translated.text
    }

    fn reach(
        &mut self,
        reach: &Reach,
        folder: Option<&Path>,
        members: &mut Map<String, Value>,
    ) -> (&'static str, String) {
        match reach {
            Reach::Process { command, args, env, cwd } => {
                let command = self.translate(command);
                let args: Vec<String> = args.iter().map(|argument| self.translate(argument)).collect();
                let args = self.variables.arguments(self.server, &args);
                let cwd = cwd
                    .as_deref()
                    .map(|cwd| self.translate(cwd))
                    .or_else(|| Some(folder?.display().to_string()));
                let address = std::iter::once(&command).chain(&args).cloned().collect::<Vec<_>>().join(" ");
                members.insert("command".into(), command.into());
                if !args.is_empty() {
                    members.insert("args".into(), args.into());
                }
                let env = self.pairs(env, Variables::environment);
                insert_some(members, "env", env);
                insert_some(members, "cwd", cwd.map(Value::from));
                ("stdio", address)
            }
            Reach::Remote { kind, url, headers } => {
                let url = self.translate(url);
                let url = self.variables.url(self.server, &url);
                insert_some(members, "type", kind.map(Value::from));
                members.insert("url".into(), url.clone().into());
                let headers = self.pairs(headers, Variables::header);
                insert_some(members, "headers", headers);
                (kind.unwrap_or("http"), url)
            }
        }
    }

    fn pairs(
        &mut self,
        pairs: &[(String, String)],
        hide: fn(&mut Variables, &str, &str, &str) -> String,
    ) -> Option<Value> {
        let mut members = Map::new();
        for (key, value) in pairs {
            let value = self.translate(value);
            members.insert(key.clone(), hide(self.variables, self.server, key, &value).into());
        }
        (!members.is_empty()).then_some(Value::Object(members))
    }
}

fn insert_some(members: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        members.insert(key.into(), value);
    }
}

fn rest(draft: &Draft, members: &mut Map<String, Value>) {
    insert_some(
        members,
        "description",
        draft.description.clone().map(|text| text.replace("${", "$${").into()),
    );
    insert_some(members, "timeout", draft.timeout_seconds.map(|seconds| format!("{seconds}s").into()));
    insert_some(members, "enabled", (!draft.enabled).then_some(Value::Bool(false)));
    for (key, patterns) in [("expose", &draft.expose), ("hide", &draft.hide)] {
        if !patterns.is_empty() {
            members.insert(key.into(), patterns.clone().into());
        }
    }
}

/// Whether a configured server is reached in the same way; credentials do not make it another one.
fn same(reach: &Reach, transport: &Transport) -> bool {
    match (reach, transport) {
        (Reach::Process { command, args, .. }, Transport::Stdio(process)) => {
            *command == process.command && *args == process.args
        }
        (Reach::Remote { url, .. }, Transport::Http(remote) | Transport::Sse(remote)) => {
            url.trim_end_matches('/') == remote.url.trim_end_matches('/')
        }
        _ => false,
    }
}

/// Whether a configured server was written from the same entry before: alike but for the names of variables.
fn written_alike(members: &Map<String, Value>, transport: &Transport) -> bool {
    let ours = |key: &str| members.get(key).and_then(Value::as_str).map(nameless);
    match transport {
        Transport::Stdio(process) => {
            let args = members.get("args").and_then(Value::as_array).into_iter().flatten();
            let args: Vec<String> = args.filter_map(Value::as_str).map(nameless).collect();
            ours("command") == Some(nameless(&process.command))
                && args == process.args.iter().map(|argument| nameless(argument)).collect::<Vec<_>>()
        }
        Transport::Http(remote) | Transport::Sse(remote) => ours("url") == Some(nameless(&remote.url)),
    }
}

/// The text with every `${…}` as `${}`.
fn nameless(text: &str) -> String {
    let mut pieces = text.split("${");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out += "${}";
        out += piece.split_once('}').map_or(piece, |(_, rest)| rest);
    }
    out
}

/// The crib started as a child, its bridge, or its own address, by URL or through a proxy such as `mcp-remote`.
fn is_the_crib(reach: &Reach, current: &Config) -> bool {
    match reach {
        Reach::Remote { url, .. } => is_own_address(url, current),
        Reach::Process { command, args, .. } => {
            let program = Path::new(command).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            matches!(program, "toolcrib" | "toolcrib-bridge")
                || args.iter().any(|argument| is_own_address(argument, current))
        }
    }
}

fn is_own_address(text: &str, current: &Config) -> bool {
    let Ok(url) = url::Url::parse(text) else { return false };
    let here = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback() || address == current.listen.mcp.ip(),
        Some(url::Host::Ipv6(address)) => address.is_loopback() || address == current.listen.mcp.ip(),
        None => false,
    };
    here && url.port_or_known_default() == Some(current.listen.mcp.port())
}
