//! The real `toolcrib` binary with a folder of its own: its config, its data, its ports from the system.
//!
//! It never reads the config or the data of whoever runs the tests.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context as _, Result};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::child::Child;
use crate::program;
use crate::wire::{fetch, post_modern};

const STARTING: Duration = Duration::from_secs(30);

/// The folder a crib lives in, and what it is told there.
pub struct Home {
    folder: TempDir,
    config: PathBuf,
    told: Told,
}

/// How a crib learns its addresses and its data folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    ByConfig,
    ByEnvironment,
}

impl Home {
    /// A home without a config: the crib starts on its own defaults.
    pub fn empty() -> Result<Self> {
        let folder = tempfile::tempdir().context("no temporary folder can be made")?;
        let config = folder.path().join("toolcrib.yaml");
        Ok(Self { folder, config, told: Told::ByEnvironment })
    }

    /// `rest` is what the config says besides where to listen and where to keep its data: `servers:` and so on.
    pub fn new(rest: &str) -> Result<Self> {
        let home = Self { told: Told::ByConfig, ..Self::empty()? };
        home.configure(rest)?;
        Ok(home)
    }

    /// A config exactly as it stands; the addresses and the data folder come from the environment.
    pub fn holding(text: &str) -> Result<Self> {
        let home = Self { told: Told::ByEnvironment, ..Self::empty()? };
        std::fs::write(&home.config, text)?;
        Ok(home)
    }

    /// Writes the config anew, as an editor would.
    pub fn configure(&self, rest: &str) -> Result<()> {
        let data = self.path().join("data");
        let own = format!(
            "version: 1\ndata: {}\nlisten: {{ mcp: \"127.0.0.1:0\", admin: \"127.0.0.1:0\" }}\n{rest}\n",
            data.display()
        );
        std::fs::write(&self.config, own)
            .with_context(|| format!("`{}` cannot be written", self.config.display()))
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn config(&self) -> &Path {
        &self.config
    }

    /// `toolcrib` with these words, in this home and with nothing of the user's.
    pub fn command(&self, words: &[&str]) -> Result<Command> {
        let mut command = Command::new(program::path("toolcrib")?);
        command.args(words);
        if self.config.exists() {
            command.arg("--config").arg(&self.config);
        }
        if self.told == Told::ByEnvironment {
            command.env("TOOLCRIB_DATA", self.path().join("data"));
            command.env("TOOLCRIB_LISTEN_MCP", "127.0.0.1:0").env("TOOLCRIB_LISTEN_ADMIN", "127.0.0.1:0");
        }
        command
            .current_dir(self.path())
            .env("HOME", self.path())
            .env("XDG_CONFIG_HOME", self.path().join("config"))
            .env("XDG_DATA_HOME", self.path().join("share"))
            .env("XDG_STATE_HOME", self.path().join("state"));
        Ok(command)
    }
}

/// A crib that serves.
pub struct Crib {
    pub home: Home,
    pub child: Child,
    /// The MCP endpoint.
    pub mcp: String,
    /// The root of the admin API, without a slash at its end.
    pub admin: String,
}

impl Crib {
    pub async fn serve(rest: &str) -> Result<Self> {
        Self::serve_in(Home::new(rest)?).await
    }

    /// Starts the crib and waits until its banner has named both addresses.
    pub async fn serve_in(home: Home) -> Result<Self> {
        let command = home.command(&["serve"])?;
        Self::started(home, command).await
    }

    /// The same crib again, where it was before: its home, its data, its MCP address.
    pub async fn serve_again(self) -> Result<Self> {
        let mut command = self.home.command(&["serve"])?;
        let address = self.mcp.trim_start_matches("http://").trim_end_matches("/mcp");
        command.env("TOOLCRIB_LISTEN_MCP", address);
        Self::started(self.home, command).await
    }

    async fn started(home: Home, command: Command) -> Result<Self> {
        let mut child = Child::start(command)?;
        let (mut mcp, mut admin) = (None, None);
        while mcp.is_none() || admin.is_none() {
            let line = child.line(STARTING, |line| url_in(&line.text).is_some()).await?;
            match url_in(&line) {
                Some(url) if url.ends_with("/mcp") => mcp = mcp.or(Some(url)),
                Some(url) if line.to_lowercase().contains("admin") => {
                    admin = admin.or(Some(url.trim_end_matches('/').to_owned()));
                }
                _ => {}
            }
        }
        let mcp = mcp.context("the banner names no MCP endpoint")?;
        let admin = admin.context("the banner names no admin address")?;
        Ok(Self { home, child, mcp, admin })
    }

    /// A modern request on the MCP endpoint, and its result.
    pub async fn ask(&self, method: &str, params: Value) -> Result<Value> {
        post_modern(&self.mcp, method, params).await?.result()
    }

    /// A tool called by a modern caller, and its result.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Value> {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// What the admin API says at `path`.
    pub async fn told(&self, path: &str) -> Result<Value> {
        let reply = fetch(Method::GET, &format!("{}{path}", self.admin), &[], "").await?;
        serde_json::from_str(&reply.body)
            .with_context(|| format!("`{path}`: {} {}", reply.status, reply.body))
    }

    /// Asks the crib to end, and gives how it ended.
    pub async fn stop(mut self) -> Result<ExitStatus> {
        self.child.stop().await
    }
}

/// The first plain HTTP address in a line, without what a sentence or a shell line puts around it.
fn url_in(line: &str) -> Option<String> {
    let start = line.find("http://")?;
    let end_of_word = |letter: char| letter.is_whitespace() || "\"'`,;)<>\u{1b}".contains(letter);
    let word = line.get(start..)?.split(end_of_word).next()?;
    Some(word.trim_end_matches('.').to_owned())
}

#[cfg(test)]
mod tests {
    use super::url_in;

    #[test]
    fn an_address_is_found_in_a_sentence() {
        let told = url_in("  MCP      http://127.0.0.1:41234/mcp   (both eras)");
        assert_eq!(told.as_deref(), Some("http://127.0.0.1:41234/mcp"));
        assert_eq!(url_in("admin: `http://127.0.0.1:9`.").as_deref(), Some("http://127.0.0.1:9"));
        assert_eq!(url_in("nothing here"), None);
    }
}
