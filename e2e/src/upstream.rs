//! The `fixture` binary as a test uses it: started with some arguments, known by its URL.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::process::Command;

use crate::child::Child;
use crate::program;

/// A fixture takes milliseconds to start; the rest is for a busy machine.
const STARTING: Duration = Duration::from_secs(20);

/// A running fixture that listens.
pub struct Fixture {
    pub child: Child,
    pub url: String,
}

impl Fixture {
    /// Both eras, on a port of the system's choice.
    pub async fn http() -> Result<Self> {
        Self::with(&["--http", "127.0.0.1:0"]).await
    }

    /// The old HTTP+SSE transport.
    pub async fn http_sse() -> Result<Self> {
        Self::with(&["--http-sse", "127.0.0.1:0"]).await
    }

    /// Any arguments that make it listen.
    pub async fn with(arguments: &[&str]) -> Result<Self> {
        let mut child = Child::start(command(arguments)?)?;
        let line = child.line(STARTING, |line| line.text.starts_with("listening ")).await?;
        let url = line.strip_prefix("listening ").context("a line that starts so has a prefix")?.to_owned();
        Ok(Self { child, url })
    }
}

/// The command that starts a fixture, for a test that holds its pipes itself.
pub fn command(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(program::path("fixture")?);
    command.args(arguments);
    Ok(command)
}
