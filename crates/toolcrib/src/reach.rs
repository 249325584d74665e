//! The crib a command asks: the one that is running, or else one put together in this process for the moment.
//!
//! Commands see one type and do not know which it is. A running crib is asked over its REST interface; one made here
//! starts the config's servers when they are needed and closes them again at the end ([`Reach::close`]). Both write
//! the same ledger. What it gives back has one shape, whichever it was.

mod here;
mod running;
mod wire;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

pub use here::Here;
pub use running::{Running, mcp_url};

use crate::cli::trouble::Trouble;
use crate::config::Config;

/// One server and how it is doing, as every listing shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    pub id: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub transport: String,
    pub address: String,
    pub enabled: bool,
    pub connect: String,
    pub state: String,
    pub last_error: Option<String>,
    pub tools: Option<usize>,
    pub prompts: Option<usize>,
    pub resources: Option<usize>,
    #[serde(default)]
    pub in_flight: usize,
    pub protocol: Option<String>,
    pub server: Option<Value>,
    pub pid: Option<u32>,
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// One tool, as every listing shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    pub tool_id: String,
    pub server_id: String,
    /// As MCP listings spell it.
    pub name: String,
    pub description: String,
    /// The definition as the server gave it.
    pub tool: Value,
}

/// Where a crib may be running, and who asks it.
#[derive(Debug, Clone, Default)]
pub struct Address {
    /// Given by the person; then nothing else will do.
    pub admin: Option<String>,
    pub mcp: Option<String>,
    pub token: Option<String>,
}

/// What a person does to one server of a running crib.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    Connect,
    Disconnect,
    Restart,
}

impl Deed {
    pub fn word(self) -> &'static str {
        match self {
            Deed::Connect => "connect",
            Deed::Disconnect => "disconnect",
            Deed::Restart => "restart",
        }
    }
}

pub enum Reach {
    Running(Box<Running>),
    Here(Box<Here>),
}

impl Reach {
    /// The running crib where one answers, else one made here.
    pub async fn find(config: &Config, address: &Address) -> Result<Self, Trouble> {
        match Running::find(config, address).await? {
            Some(running) => Ok(Self::Running(Box::new(running))),
            None => Ok(Self::Here(Box::new(Here::assemble(config).await?))),
        }
    }

    /// Where the running crib is; none for one made here.
    pub fn url(&self) -> Option<&str> {
        match self {
            Reach::Running(running) => Some(running.url()),
            Reach::Here(_) => None,
        }
    }

    pub async fn servers(&self) -> Result<Vec<Server>, Trouble> {
        match self {
            Reach::Running(running) => running.servers().await,
            Reach::Here(here) => here.servers().await,
        }
    }

    /// The servers as they are now; none is connected for this.
    pub async fn glance(&self) -> Result<Vec<Server>, Trouble> {
        match self {
            Reach::Running(running) => running.servers().await,
            Reach::Here(here) => Ok(here.glance()),
        }
    }

    pub async fn server(&self, id: &str) -> Result<Server, Trouble> {
        match self {
            Reach::Running(running) => running.server(id).await,
            Reach::Here(here) => here.server(id).await,
        }
    }

    /// All tools the caller may see; with `source`, only that server's.
    pub async fn tools(&self, source: Option<&str>) -> Result<Vec<Tool>, Trouble> {
        match self {
            Reach::Running(running) => running.tools(source).await,
            Reach::Here(here) => here.tools(source).await,
        }
    }

    /// The tools that are known now; no server is connected for this.
    pub async fn known_tools(&self) -> Result<Vec<Tool>, Trouble> {
        match self {
            Reach::Running(running) => running.tools(None).await,
            Reach::Here(here) => Ok(here.known_tools(None)),
        }
    }

    /// One tool by any of its spellings.
    pub async fn tool(&self, spelling: &str) -> Result<Tool, Trouble> {
        match self {
            Reach::Running(running) => running.tool(spelling).await,
            Reach::Here(here) => here.tool(spelling).await,
        }
    }

    /// Calls a tool and gives its result object as it came. What it says on the way goes to `progress`, where the way
    /// to the crib carries that.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Box<RawValue>,
        progress: mpsc::Sender<String>,
    ) -> Result<Box<RawValue>, Trouble> {
        match self {
            Reach::Running(running) => running.call(tool, &arguments).await,
            Reach::Here(here) => here.call(tool, arguments, progress).await,
        }
    }

    /// Ends what was started for the moment.
    pub async fn close(self) {
        match self {
            Reach::Running(_) => {}
            Reach::Here(here) => here.close().await,
        }
    }
}
