//! What `toolcrib.yaml` means once it is read: plain values, checked, with every default filled in.
//!
//! Two configs are compared to find what a reload changed, so everything here is `PartialEq`.
//! It knows no other crate of the house; `assemble` turns it into sources, callers and listeners.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::secret::Secret;
use super::server::Server;

/// What a server or a caller is called in the file: `[A-Za-z0-9._-]{1,64}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Id(String);

impl Id {
    /// `None` when the text is not a legal id.
    pub fn new(text: &str) -> Option<Self> {
        super::scalar::id(text).ok().map(|text| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Config {
    /// Where the crib keeps what it remembers; absolute unless no home folder is known.
    pub data: PathBuf,
    pub listen: Listen,
    pub names: Names,
    pub callers: BTreeMap<Id, Caller>,
    pub local: Local,
    pub limits: Limits,
    pub log: Log,
    pub telemetry: Telemetry,
    pub servers: BTreeMap<Id, Server>,
}

impl Config {
    /// The embedded default: what an empty file means.
    pub fn with_data(data: PathBuf) -> Self {
        Self {
            data,
            listen: Listen::default(),
            names: Names::default(),
            callers: BTreeMap::new(),
            local: Local::default(),
            limits: Limits::default(),
            log: Log::default(),
            telemetry: Telemetry::default(),
            servers: BTreeMap::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listen {
    pub mcp: SocketAddr,
    pub admin: SocketAddr,
    /// `Host` values let in besides the listener's own and loopback names.
    pub allowed_hosts: Vec<String>,
    /// `Origin` values let in besides loopback ones.
    pub allowed_origins: Vec<String>,
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            mcp: SocketAddr::from((Ipv4Addr::LOCALHOST, 8081)),
            admin: SocketAddr::from((Ipv4Addr::LOCALHOST, 3100)),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
        }
    }
}

/// How tool names are spelled in MCP listings; every spelling is accepted on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Names {
    /// `source__tool`: only letters every client and model takes.
    #[default]
    Safe,
    /// `source:tool`.
    Colon,
    /// `tool`.
    Bare,
}

/// Somebody known by a static bearer token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Caller {
    pub token: Secret,
    pub kind: CallerKind,
    pub tools: Tools,
    /// Whether the token also opens the admin listener.
    pub admin: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CallerKind {
    #[default]
    Agent,
    Service,
    Person,
}

/// Patterns over tool ids `source:tool`. A tool is permitted when `allow` matches it and `deny` does not.
/// Both empty permits nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Tools {
    pub allow: Vec<String>,
    pub deny: Vec<String>,
}

impl Tools {
    pub fn all() -> Self {
        Self { allow: vec!["*".into()], deny: Vec::new() }
    }
}

/// The caller on loopback when no callers are configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Local {
    pub tools: Tools,
}

impl Default for Local {
    fn default() -> Self {
        Self { tools: Tools::all() }
    }
}

/// Caps: reaching one is a clear error for whoever asked, never growth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Largest request body accepted, in bytes.
    pub body: u64,
    /// Legacy MCP sessions open at once.
    pub sessions: usize,
    #[serde(serialize_with = "super::scalar::show_duration")]
    pub session_idle: Duration,
    /// Calls in flight at once.
    pub calls: usize,
    /// How long reaching a source may take.
    #[serde(serialize_with = "super::scalar::show_duration")]
    pub connect: Duration,
    /// How long calls in flight may finish after a stop was asked for.
    #[serde(serialize_with = "super::scalar::show_duration")]
    pub shutdown: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 4 << 20,
            sessions: 1000,
            session_idle: Duration::from_secs(30 * 60),
            calls: 1024,
            connect: Duration::from_secs(30),
            shutdown: Duration::from_secs(10),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Log {
    /// A level, or directives such as `info,toolcrib_mcp=debug`.
    pub level: String,
    pub format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".into(), format: LogFormat::default() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    #[default]
    Auto,
    Text,
    Json,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Telemetry {
    /// Where traces are sent (OTLP over HTTP); none by default.
    pub otlp: Option<String>,
}
