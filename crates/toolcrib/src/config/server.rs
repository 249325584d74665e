//! One entry under `servers`: how a source is reached and how its tools are shown.
//!
//! Values only; reading them is `read_server`, using them is the assembly's work.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::secret::Secret;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Server {
    pub name: Option<String>,
    pub description: Option<String>,
    pub transport: Transport,
    pub auth: Option<Auth>,
    pub enabled: bool,
    pub connect: Connect,
    pub era: Era,
    /// How long it may stay silent during a call.
    #[serde(serialize_with = "super::scalar::show_duration")]
    pub timeout: Duration,
    pub prefix: Prefix,
    /// `notion-search` of source `notion` is shown as `search`.
    pub strip_server_prefix: bool,
    /// Patterns over the source's own names of tools and prompts; empty shows all.
    pub expose: Vec<String>,
    /// Patterns over the source's own names of tools and prompts; wins over `expose`.
    pub hide: Vec<String>,
    /// The source's name of a tool → the name it is shown under.
    pub rename: BTreeMap<String, String>,
    /// The source's name of a tool → the description it is shown with.
    pub describe: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Transport {
    Stdio(Process),
    /// Streamable HTTP; falls back to HTTP+SSE when the source speaks only that.
    Http(Remote),
    /// HTTP+SSE of 2024-11-05 and nothing else.
    Sse(Remote),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Process {
    pub command: String,
    pub args: Vec<String>,
    /// Added to the child's environment.
    pub env: BTreeMap<String, Secret>,
    /// Absolute; a relative one was written against the config file's folder.
    pub cwd: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remote {
    pub url: String,
    pub headers: BTreeMap<String, Secret>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Auth {
    /// OAuth 2.0 with PKCE; tokens are kept by the crib, never in the file. `oauth2` means the same.
    #[serde(rename = "oauth2-pkce")]
    OAuth,
    ApiKey(ApiKey),
}

/// A key for the source: into the child's environment as `env`, or as a bearer token over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApiKey {
    /// The variable the key came from, and the one a child process finds it in.
    pub env: Option<String>,
    /// `None` only for a disabled server whose variable is not set.
    pub key: Option<Secret>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connect {
    /// When its tools are first wanted.
    #[default]
    OnDemand,
    /// At start, and again whenever the connection is lost.
    Always,
}

/// Which MCP wire the source is spoken to on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// Found out by asking.
    #[default]
    Auto,
    /// With `initialize`: 2025-11-25 and before.
    Legacy,
    /// Stateless: 2026-07-28 and after.
    Modern,
}

/// What stands before a tool's name in MCP listings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Prefix {
    #[default]
    Id,
    None,
    Text(String),
}
