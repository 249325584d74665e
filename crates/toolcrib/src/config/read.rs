//! From the tree of the file to [`Config`]: every group but the servers, the environment's overrides, and the checks
//! that need more than one key.
//!
//! Reading never stops at a mistake: a value that does not fit is reported and its default stands in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::fields::Fields;
use super::mistake::Mistake;
use super::model::{
    Caller, CallerKind, Config, Id, Limits, Listen, Local, Log, LogFormat, Names, Telemetry, Tools,
};
use super::node::{Node, Span, Value};
use super::reading::Reading;
use super::secret::Secret;
use super::shape::{self, Choice};
use super::{find, read_server, scalar};

/// Shorter tokens can be guessed.
const TOKEN_LENGTH: usize = 16;

impl Choice for Names {
    const WORDS: &'static [(&'static str, Self)] =
        &[("safe", Names::Safe), ("colon", Names::Colon), ("bare", Names::Bare)];
}

impl Choice for CallerKind {
    const WORDS: &'static [(&'static str, Self)] =
        &[("agent", CallerKind::Agent), ("service", CallerKind::Service), ("person", CallerKind::Person)];
}

impl Choice for LogFormat {
    const WORDS: &'static [(&'static str, Self)] =
        &[("auto", LogFormat::Auto), ("text", LogFormat::Text), ("json", LogFormat::Json)];
}

/// Reads the whole file. `folder` is where its relative paths start.
pub(crate) fn config(reading: &Reading<'_>, tree: &Node, folder: &Path) -> Config {
    let root = Fields::open(reading, tree, tree.span, &shape::ROOT);
    if root.count("version").is_some_and(|version| version != 1) {
        root.mistake("version", "this version of the file's format is not known", "`1`");
    }
    let data = match root.text("data") {
        Some(text) => find::path(&text, folder, reading),
        None => find::default_data(reading),
    };
    let listeners = root.group("listen");
    let mut config = Config {
        data,
        listen: listeners.as_ref().map_or_else(Listen::default, listen),
        names: root.choice("names").unwrap_or_default(),
        callers: callers(&root),
        local: root.group("local").map_or_else(Local::default, |fields| local(&fields)),
        limits: root.group("limits").map_or_else(Limits::default, |fields| limits(&fields)),
        log: root.group("log").map_or_else(Log::default, |fields| log(&fields)),
        telemetry: Telemetry { otlp: root.group("telemetry").and_then(|fields| fields.url("otlp")) },
        servers: read_server::servers(&root, folder),
    };
    override_from_environment(reading, &mut config);
    check_ports(&root, &config);
    check_reach(&root, listeners.as_ref(), &config);
    config
}

fn listen(fields: &Fields<'_, '_>) -> Listen {
    let default = Listen::default();
    Listen {
        mcp: fields.address("mcp").unwrap_or(default.mcp),
        admin: fields.address("admin").unwrap_or(default.admin),
        allowed_hosts: fields.texts("allowed_hosts").unwrap_or_default(),
        allowed_origins: fields.texts("allowed_origins").unwrap_or_default(),
    }
}

fn callers(root: &Fields<'_, '_>) -> BTreeMap<Id, Caller> {
    let mut callers: BTreeMap<Id, Caller> = BTreeMap::new();
    for (word, span, node) in root.pairs("callers") {
        let fields = Fields::open(root.reading, node, span, &shape::CALLER);
        let id = id(root.reading, word, span, "caller");
        let token = token(&fields, word);
        if let Some((other, _)) = callers.iter().find(|(_, caller)| Some(&caller.token) == token.as_ref()) {
            fields.mistake(
                "token",
                format!("caller `{word}` has the token of `{other}`"),
                "a token of its own",
            );
        }
        let tools =
            fields.group("tools").map(|tools| self::tools(&tools, Tools::default())).unwrap_or_default();
        if tools.allow.is_empty() {
            let hint = "`tools: { allow: [\"*\"] }`, or narrower".to_owned();
            root.reading.warning(span, format!("caller `{word}` may use no tool at all"), Some(hint));
        }
        let kind = fields.choice("kind").unwrap_or_default();
        let admin = fields.flag("admin").unwrap_or(false);
        if let (Some(id), Some(token)) = (id, token) {
            callers.insert(id, Caller { token, kind, tools, admin });
        }
    }
    callers
}

fn token(fields: &Fields<'_, '_>, caller: &str) -> Option<Secret> {
    if fields.lacks("token") {
        fields.mistake("token", format!("caller `{caller}` has no `token`"), "`token: \"${VAR}\"`");
        return None;
    }
    let token = fields.secret("token")?;
    if token.expose().chars().count() < TOKEN_LENGTH && !fields.reading.forgiving() {
        fields.mistake("token", format!("the token of `{caller}` is too short"), "at least 16 characters");
    }
    Some(token)
}

fn local(fields: &Fields<'_, '_>) -> Local {
    let default = Local::default();
    Local { tools: fields.group("tools").map_or(default.tools.clone(), |group| tools(&group, default.tools)) }
}

fn tools(fields: &Fields<'_, '_>, default: Tools) -> Tools {
    let tools = Tools {
        allow: fields.globs("allow").unwrap_or(default.allow),
        deny: fields.globs("deny").unwrap_or(default.deny),
    };
    for (name, patterns) in [("allow", &tools.allow), ("deny", &tools.deny)] {
        for pattern in patterns.iter().filter(|pattern| !pattern.contains([':', '*', '?', '[', '{'])) {
            let hint =
                format!("`{pattern}:*` for all tools of a server, `*:{pattern}` for a tool of any server");
            fields.reading.warning(
                fields.span_of(name),
                format!("`{pattern}` matches nothing: tools are called `server:tool`"),
                Some(hint),
            );
        }
    }
    tools
}

fn limits(fields: &Fields<'_, '_>) -> Limits {
    let default = Limits::default();
    let positive = |name: &str, otherwise: usize| match fields.count(name) {
        Some(0) => {
            fields.mistake(name, format!("`{name}` cannot be 0"), "at least 1");
            otherwise
        }
        given => given.unwrap_or(otherwise),
    };
    Limits {
        body: fields.size("body").unwrap_or(default.body),
        sessions: positive("sessions", default.sessions),
        session_idle: fields.duration("session_idle").unwrap_or(default.session_idle),
        calls: positive("calls", default.calls),
        connect: fields.duration("connect").unwrap_or(default.connect),
        shutdown: fields.duration("shutdown").unwrap_or(default.shutdown),
    }
}

fn log(fields: &Fields<'_, '_>) -> Log {
    let default = Log::default();
    Log {
        level: fields.value("level", scalar::log_level).unwrap_or(default.level),
        format: fields.choice("format").unwrap_or_default(),
    }
}

/// The id of an entry, or a mistake at its key.
pub(crate) fn id(reading: &Reading<'_>, word: &str, span: Span, what: &str) -> Option<Id> {
    let id = Id::new(word);
    if id.is_none() {
        let expected = scalar::id(word).err();
        reading.mistake(span, format!("`{word}` cannot be the id of a {what}"), expected);
    }
    id
}

/// A value of the environment through `parse`; a bad one is a mistake of that variable.
fn from_environment<T>(
    reading: &Reading<'_>,
    name: &str,
    parse: impl Fn(&str) -> Result<T, scalar::Expected>,
) -> Option<T> {
    let text = reading.variable(name).filter(|text| !text.is_empty())?;
    match parse(&text) {
        Ok(value) => Some(value),
        Err(expected) => {
            let place = format!("environment variable `{name}`");
            reading.outside(Mistake::outside(place, format!("cannot be `{text}`"), Some(expected)));
            None
        }
    }
}

fn override_from_environment(reading: &Reading<'_>, config: &mut Config) {
    let port = |text: &str| text.parse::<u16>().map_err(|_| "a port number".to_owned());
    if let Some(data) = reading.variable("TOOLCRIB_DATA").filter(|text| !text.is_empty()) {
        config.data = PathBuf::from(data);
    }
    let listeners = [
        (&mut config.listen.mcp, "MCP_PORT", "TOOLCRIB_LISTEN_MCP"),
        (&mut config.listen.admin, "ADMIN_PORT", "TOOLCRIB_LISTEN_ADMIN"),
    ];
    for (address, port_name, address_name) in listeners {
        if let Some(port) = from_environment(reading, port_name, port) {
            address.set_port(port);
        }
        if let Some(whole) = from_environment(reading, address_name, scalar::address) {
            *address = whole;
        }
    }
    if let Some(level) = from_environment(reading, "TOOLCRIB_LOG", scalar::log_level) {
        config.log.level = level;
    }
    caller_from_environment(reading, config);
}

/// `TOOLCRIB_TOKEN`, else `GATEWAY_TOKEN`, is a caller `default` that may use every tool.
fn caller_from_environment(reading: &Reading<'_>, config: &mut Config) {
    let given = ["TOOLCRIB_TOKEN", "GATEWAY_TOKEN"]
        .into_iter()
        .find_map(|name| Some((name, reading.variable(name).filter(|text| !text.is_empty())?)));
    let Some((name, token)) = given else { return };
    let place = format!("environment variable `{name}`");
    if token.chars().count() < TOKEN_LENGTH {
        let expected = Some("at least 16 characters".to_owned());
        reading.outside(Mistake::outside(place, "the token is too short", expected));
        return;
    }
    let Some(id) = Id::new("default") else { return };
    let token = Secret::new(token);
    // A config that names the same variable for a caller of its own has said what that caller may do.
    if config.callers.values().any(|caller| caller.token == token) {
        return;
    }
    if config.callers.contains_key(&id) {
        let expected = Some("another name for the caller in the file".to_owned());
        reading.outside(Mistake::outside(
            place,
            "the file has a caller `default` with another token",
            expected,
        ));
        return;
    }
    config.callers.insert(id, Caller { token, kind: CallerKind::Agent, tools: Tools::all(), admin: false });
}

fn check_ports(root: &Fields<'_, '_>, config: &Config) {
    let Listen { mcp, admin, .. } = &config.listen;
    let same_host = mcp.ip() == admin.ip() || mcp.ip().is_unspecified() || admin.ip().is_unspecified();
    if mcp.port() == admin.port() && mcp.port() != 0 && same_host {
        let what = format!("`mcp` ({mcp}) and `admin` ({admin}) listen on the same port");
        root.mistake("listen", what, "two different ports");
    }
}

/// Without callers everyone who reaches a listener is let in, so only this machine may reach it.
fn check_reach(root: &Fields<'_, '_>, listeners: Option<&Fields<'_, '_>>, config: &Config) {
    let reading = root.reading;
    // Where a config is only looked at, the token may be in an environment that is not here.
    let written =
        matches!(root.node("callers"), Some(Node { value: Value::Map(all), .. }) if !all.is_empty());
    if written || !config.callers.is_empty() || reading.forgiving() {
        return;
    }
    let Listen { mcp, admin, .. } = &config.listen;
    for (name, address, variable) in
        [("mcp", mcp, "TOOLCRIB_LISTEN_MCP"), ("admin", admin, "TOOLCRIB_LISTEN_ADMIN")]
    {
        if address.ip().is_loopback() {
            continue;
        }
        let what =
            format!("`listen.{name}` is {address}, which others can reach, and there are no `callers`");
        let expected = "`callers` with tokens, `TOOLCRIB_TOKEN` in the environment, or 127.0.0.1";
        match (reading.variable(variable).filter(|text| !text.is_empty()), listeners) {
            (None, Some(listeners)) => listeners.mistake(name, what, expected),
            _ => {
                let place = format!("environment variable `{variable}`");
                reading.outside(Mistake::outside(place, what, Some(expected.to_owned())));
            }
        }
    }
}
