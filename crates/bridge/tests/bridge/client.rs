//! The client's side of a bridge under test: lines in, lines out, and how the bridge ended.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use toolcrib_bridge::{BridgeError, Options, run_until};

pub struct Client {
    input: Option<WriteHalf<DuplexStream>>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    bridge: JoinHandle<Result<(), BridgeError>>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
}

impl Client {
    pub fn of(options: Options) -> Self {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (far_read, far_write) = tokio::io::split(far);
        let (near_read, near_write) = tokio::io::split(near);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let until = async move {
            let _ = stopped.await;
        };
        let bridge = tokio::spawn(run_until(options, far_read, far_write, until));
        let output = BufReader::new(near_read).lines();
        Self { input: Some(near_write), output, bridge, stop: Some(stop) }
    }

    pub fn to(url: &str) -> Self {
        Self::of(options(url))
    }

    pub async fn send(&mut self, line: impl ToString) {
        let line = format!("{}\n", line.to_string());
        self.input.as_mut().unwrap().write_all(line.as_bytes()).await.unwrap();
    }

    /// The next line of output, which must be one JSON value.
    pub async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(20), self.output.next_line()).await;
        let line = line.expect("a line in time").unwrap().expect("a line before the end");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"))
    }

    /// Asks and takes the next line.
    pub async fn ask(&mut self, line: Value) -> Value {
        self.send(line).await;
        self.next().await
    }

    /// Opens a legacy session.
    pub async fn initialize(&mut self) -> Value {
        let params = json!({"protocolVersion":"2025-11-25","capabilities":{},
            "clientInfo":{"name":"test","version":"0"}});
        let answer = self.ask(json!({"jsonrpc":"2.0","id":0,"method":"initialize","params":params})).await;
        self.send(json!({"jsonrpc":"2.0","method":"notifications/initialized"})).await;
        answer
    }

    /// Closes the input without waiting for what follows.
    pub fn close(&mut self) {
        // Dropping half of a duplex does not close it, so the end is said aloud.
        let mut input = self.input.take().unwrap();
        tokio::spawn(async move { input.shutdown().await });
    }

    pub fn signal(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    /// Waits for the bridge to end; gives what it still wrote.
    pub async fn rest(mut self) -> Vec<Value> {
        let mut lines = Vec::new();
        while let Ok(Some(line)) = self.output.next_line().await {
            lines.push(serde_json::from_str(&line).unwrap());
        }
        let ended = tokio::time::timeout(Duration::from_secs(20), self.bridge).await;
        ended.expect("an end in time").unwrap().unwrap();
        lines
    }

    pub async fn end(mut self) -> Vec<Value> {
        self.close();
        self.rest().await
    }
}

pub fn options(url: &str) -> Options {
    Options::new(url).unwrap()
}

pub fn call(id: impl Into<Value>, tool: &str) -> Value {
    json!({"jsonrpc":"2.0","id":id.into(),"method":"tools/call","params":{"name":tool,"arguments":{}}})
}

pub fn modern(id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{}});
    json!({"jsonrpc":"2.0","id":id.into(),"method":method,"params":params})
}
