//! A process under test: started in a group of its own, listened to line by line, and never left behind.
//!
//! Standard output and standard error are read all the time, so a talkative process never blocks; what was said is in
//! the error when something expected was not.

use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

/// A process that was asked to end gets this long before it is made to.
const GRACE: Duration = Duration::from_secs(10);

/// How much of what a process said goes into an error.
const TOLD: usize = 40;

/// The signal that asks a process to end.
const SIGTERM: i32 = 15;

/// Where a line was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    Out,
    Err,
}

#[derive(Debug, Clone)]
pub struct Line {
    pub said: Said,
    pub text: String,
}

pub struct Child {
    name: String,
    process: Box<dyn ChildWrapper>,
    input: Option<ChildStdin>,
    lines: UnboundedReceiver<Line>,
    spoken: Arc<Mutex<Vec<Line>>>,
}

impl Child {
    /// Starts `command` in a process group of its own, with all three streams piped.
    pub fn start(mut command: Command) -> Result<Self> {
        let name = command.as_std().get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = CommandWrap::from(command)
            .wrap(ProcessGroup::leader())
            .wrap(KillOnDrop)
            .spawn()
            .with_context(|| format!("`{name}` cannot be started"))?;
        let (sender, lines) = unbounded_channel();
        let spoken = Arc::new(Mutex::new(Vec::new()));
        if let Some(stream) = process.stdout().take() {
            tokio::spawn(listen(stream, Said::Out, sender.clone(), Arc::clone(&spoken)));
        }
        if let Some(stream) = process.stderr().take() {
            tokio::spawn(listen(stream, Said::Err, sender, Arc::clone(&spoken)));
        }
        let input = process.stdin().take();
        Ok(Self { name, process, input, lines, spoken })
    }

    /// The process id, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Writes one line to its standard input.
    pub async fn say(&mut self, line: &str) -> Result<()> {
        let input = self.input.as_mut().ok_or_else(|| anyhow!("the input of `{}` was closed", self.name))?;
        input.write_all(line.as_bytes()).await?;
        input.write_all(b"\n").await?;
        Ok(input.flush().await?)
    }

    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// The next line, on either stream; `None` when both have ended.
    pub async fn next_line(&mut self, within: Duration) -> Result<Option<Line>> {
        match timeout(within, self.lines.recv()).await {
            Ok(line) => Ok(line),
            Err(_) => bail!("`{}` said nothing within {within:?}; before that:\n{}", self.name, self.told()),
        }
    }

    /// Passes over lines until one is `wanted`, and gives that one.
    pub async fn line(&mut self, within: Duration, wanted: impl Fn(&Line) -> bool) -> Result<String> {
        let found = timeout(within, async {
            while let Some(line) = self.lines.recv().await {
                if wanted(&line) {
                    return Some(line.text);
                }
            }
            None
        })
        .await;
        match found {
            Ok(Some(text)) => Ok(text),
            Ok(None) => {
                bail!("`{}` ended before it said what was expected; it said:\n{}", self.name, self.told())
            }
            Err(_) => bail!(
                "`{}` did not say what was expected within {within:?}; it said:\n{}",
                self.name,
                self.told()
            ),
        }
    }

    /// The last lines it said.
    pub fn told(&self) -> String {
        let spoken = self.spoken.lock().unwrap_or_else(PoisonError::into_inner);
        let skipped = spoken.len().saturating_sub(TOLD);
        let lines = spoken.iter().skip(skipped).map(|line| format!("  {}", line.text));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Waits for it to end by itself.
    pub async fn ended(&mut self, within: Duration) -> Result<ExitStatus> {
        match timeout(within, self.process.wait()).await {
            Ok(status) => Ok(status?),
            Err(_) => bail!("`{}` did not end within {within:?}; it said:\n{}", self.name, self.told()),
        }
    }

    /// Asks the group to end, and makes it after a while.
    pub async fn stop(&mut self) -> Result<ExitStatus> {
        self.close_input();
        // A group that is already gone is what was wanted.
        let _ = self.process.signal(SIGTERM);
        if let Ok(status) = timeout(GRACE, self.process.wait()).await {
            return Ok(status?);
        }
        self.process.start_kill()?;
        Ok(self.process.wait().await?)
    }

    /// Kills the group, as a crash would.
    pub async fn kill(&mut self) -> Result<ExitStatus> {
        self.process.start_kill()?;
        Ok(self.process.wait().await?)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.start_kill();
    }
}

async fn listen(
    stream: impl AsyncRead + Unpin,
    said: Said,
    sender: UnboundedSender<Line>,
    spoken: Arc<Mutex<Vec<Line>>>,
) {
    let mut stream = BufReader::new(stream);
    let mut bytes = Vec::new();
    while let Ok(1..) = stream.read_until(b'\n', &mut bytes).await {
        let text = String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned();
        bytes.clear();
        let line = Line { said, text };
        spoken.lock().unwrap_or_else(PoisonError::into_inner).push(line.clone());
        // Nobody may be waiting for lines any more; the stream is read on, so that the process is not blocked.
        let _ = sender.send(line);
    }
}
