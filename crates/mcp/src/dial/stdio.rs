//! A source that is a child process: messages are lines on its standard input and output.
//!
//! The process itself is `child`; matching answers to requests is `pipe`.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::{
    io::AsyncWriteExt,
    process::{ChildStdin, ChildStdout},
};
use tokio_util::sync::CancellationToken;
use toolcrib_core::error::{Failure, Kind};

use crate::dial::{
    child::{Epitaph, Launch},
    ear::Ear,
    lines::{LineFault, Lines, Overlong},
    link::{Ended, LARGEST_MESSAGE},
    pipe::{Aftermath, Inbound, Outbound, Pipe, Unsent},
};

/// Starts the child and speaks with it.
pub(crate) fn open(launch: &Launch, ear: Arc<Ear>) -> Result<Pipe, Failure> {
    let stop = CancellationToken::new();
    let child = launch.start(stop.clone())?;
    let lines = Lines::new(child.stdout, LARGEST_MESSAGE, Overlong::Refuse);
    let inbound = FromChild { lines, epitaph: child.epitaph.clone() };
    let outbound = ToChild { stdin: child.stdin };
    Ok(Pipe::over(inbound, outbound, ear, stop, Remains { pid: child.pid, epitaph: child.epitaph }))
}

struct FromChild {
    lines: Lines<ChildStdout>,
    epitaph: Arc<Epitaph>,
}

#[async_trait]
impl Inbound for FromChild {
    async fn next(&mut self) -> Result<Vec<u8>, Ended> {
        let line = tokio::select! {
            biased;
            line = self.lines.next() => line,
            // Something the child started may hold its output open after it is gone.
            () = self.epitaph.gone() => self.rest().await,
        };
        match line {
            Ok(Some(line)) => Ok(line),
            Ok(None) => Err(self.epitaph.ended().await),
            Err(fault @ LineFault::TooLarge(_)) => {
                Err(Failure::new(Kind::TooLarge, fault.to_string()).into())
            }
            Err(fault @ LineFault::Io(_)) => {
                Err(Failure::new(Kind::Unavailable, format!("the output of the process {fault}")).into())
            }
        }
    }
}

impl FromChild {
    /// What is still in the pipe after the child ended.
    async fn rest(&mut self) -> Result<Option<Vec<u8>>, LineFault> {
        match tokio::time::timeout(std::time::Duration::from_millis(100), self.lines.next()).await {
            Ok(line) => line,
            Err(_) => Ok(None),
        }
    }
}

struct ToChild {
    stdin: ChildStdin,
}

#[async_trait]
impl Outbound for ToChild {
    async fn send(&mut self, mut text: String) -> Result<(), Unsent> {
        // A line is a message, so a message is a line: line ends between its tokens become spaces.
        if text.contains(['\n', '\r']) {
            text = text.replace(['\n', '\r'], " ");
        }
        text.push('\n');
        let written = match self.stdin.write_all(text.as_bytes()).await {
            Ok(()) => self.stdin.flush().await,
            Err(error) => Err(error),
        };
        written.map_err(|error| {
            Unsent::All(Failure::new(Kind::Unavailable, format!("the process does not take input: {error}")))
        })
    }
}

struct Remains {
    pid: Option<u32>,
    epitaph: Arc<Epitaph>,
}

#[async_trait]
impl Aftermath for Remains {
    async fn finish(&self) {
        self.epitaph.gone().await;
    }

    fn pid(&self) -> Option<u32> {
        self.pid
    }
}
