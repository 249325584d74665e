//! The bridge: MCP as lines on one side, the crib's `/mcp` over HTTP on the other.
//!
//! Messages pass as they are; only a few members are looked at, to set headers and to know who waits. It keeps
//! no tools, decides nothing, and writes nothing but JSON-RPC to its output (diagnostics go to stderr). Both
//! eras of MCP are spoken: sessions and the GET stream (up to 2025-11-25), and mirrored headers (2026-07-28).
//!
//! Read `relay.rs` for the order of things, then `courier.rs` for the life of one message.

mod answer;
pub mod args;
mod courier;
mod dial;
mod header;
mod line;
mod link;
mod listener;
mod options;
mod param;
mod peek;
mod relay;
mod session;
mod sse;
mod stream;
mod subscription;
mod waiting;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};

pub use crate::options::{Options, OptionsError};

use crate::answer::{Asker, Failure};
use crate::dial::Dial;
use crate::line::{Input, Lines};
use crate::link::Link;
use crate::relay::Relay;
use crate::waiting::Waiting;

/// How long the last things (ending the session, writing what is left) may take.
const LAST_LIMIT: Duration = Duration::from_secs(5);

/// Why the bridge could not do its work. A crib that cannot be reached is not among these: each request is
/// told so on the output.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    #[error("the secure transport could not be set up")]
    Tls(#[source] rustls::Error),
    #[error("the input could not be read")]
    Input(#[source] std::io::Error),
    #[error("the output could not be written")]
    Output(#[source] std::io::Error),
}

/// Relays until `input` ends.
pub async fn run<I, O>(options: Options, input: I, output: O) -> Result<(), BridgeError>
where
    I: AsyncRead + Send + Unpin + 'static,
    O: AsyncWrite + Send + Unpin + 'static,
{
    run_until(options, input, output, std::future::pending()).await
}

/// Relays until `input` ends or `stop` is ready; either way requests in flight get [`Options::grace`] to finish
/// and the session is ended.
///
/// With tokio's stdin as the input, end the runtime with `shutdown_background`: after `stop` a read may still
/// be blocked.
pub async fn run_until<I, O>(
    options: Options,
    input: I,
    output: O,
    stop: impl Future<Output = ()>,
) -> Result<(), BridgeError>
where
    I: AsyncRead + Send + Unpin + 'static,
    O: AsyncWrite + Send + Unpin + 'static,
{
    let dial = Dial::new(&options).map_err(BridgeError::Tls)?;
    let (out, lines_out) = mpsc::channel(64);
    let (lines, lines_in) = mpsc::channel(16);
    let (ended, at_end) = watch::channel(false);
    let link = Arc::new(Link::new(dial, options.line_limit, out));
    let waiting = Arc::new(Waiting::default());
    let mut writer = tokio::spawn(write(output, lines_out));
    let reader = tokio::spawn(read(input, options.line_limit, lines, ended.clone()));

    let relay = Relay::new(Arc::clone(&link), Arc::clone(&waiting), options.in_flight, options.timeout);
    let relaying = Box::pin(relay.run(lines_in));
    let grace = options.grace;
    let stopping = async {
        stop.await;
        reader.abort();
        ended.send_replace(true);
        std::future::pending::<()>().await;
    };
    let mut written = None;
    tokio::select! {
        _ = relaying => {}
        unanswered = out_of_time(at_end, grace, &waiting) => {
            for asker in unanswered {
                if let Some(line) = asker.told(&Failure::Ended) {
                    let _ = tokio::time::timeout(LAST_LIMIT, link.say(line)).await;
                }
            }
        }
        outcome = &mut writer => written = Some(outcome),
        () = stopping => {}
    }
    link.end_session(LAST_LIMIT).await;
    drop(link);
    let written = match written {
        Some(outcome) => Some(outcome),
        None => tokio::time::timeout(LAST_LIMIT, writer).await.ok(),
    };
    if let Some(Ok(Err(error))) = written {
        reader.abort();
        return Err(BridgeError::Output(error));
    }
    if !reader.is_finished() {
        reader.abort();
        return Ok(());
    }
    match reader.await {
        Ok(Err(error)) => Err(BridgeError::Input(error)),
        _ => Ok(()),
    }
}

/// Ready at SIGTERM or SIGINT; never where they cannot be listened to.
pub async fn stop_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let (Ok(mut term), Ok(mut int)) =
            (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
        {
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
            }
            return;
        }
    }
    #[cfg(not(unix))]
    if tokio::signal::ctrl_c().await.is_ok() {
        return;
    }
    std::future::pending().await
}

/// Ready when the grace after the end is over, with those who still wait.
async fn out_of_time(mut ended: watch::Receiver<bool>, grace: Duration, waiting: &Waiting) -> Vec<Asker> {
    let _ = ended.wait_for(|ended| *ended).await;
    tokio::time::sleep(grace).await;
    waiting.askers()
}

async fn read(
    input: impl AsyncRead + Unpin,
    limit: usize,
    lines: mpsc::Sender<Input>,
    ended: watch::Sender<bool>,
) -> std::io::Result<()> {
    let mut input = Lines::new(input, limit);
    let outcome = loop {
        match input.next().await {
            Ok(Some(line)) => {
                if lines.send(line).await.is_err() {
                    break Ok(());
                }
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    ended.send_replace(true);
    outcome
}

async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut lines: mpsc::Receiver<String>,
) -> std::io::Result<()> {
    while let Some(line) = lines.recv().await {
        let mut line = line;
        line.push('\n');
        output.write_all(line.as_bytes()).await?;
        if lines.is_empty() {
            output.flush().await?;
        }
    }
    output.flush().await
}
