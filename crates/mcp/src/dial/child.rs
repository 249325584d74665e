//! A child process in a process group of its own: started with a small environment, watched, and ended as a group.
//!
//! It never outlives its connection: closing ends it politely, dropping the connection does the same, and should
//! the crib's runtime vanish the whole group is killed.

use std::{
    collections::VecDeque,
    io,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use tokio::{
    process::{ChildStderr, ChildStdin, ChildStdout, Command},
    sync::watch,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use toolcrib_core::error::{Failure, Kind};

use crate::dial::{
    lines::{Lines, Overlong},
    link::Ended,
};

/// How long a child may take to leave by itself once its input is closed, and again once it is asked to.
const GRACE: Duration = Duration::from_secs(2);
/// What is kept of standard error for the case that the child dies.
const LAST_WORDS: usize = 20;
const LONGEST_WORD: usize = 1000;
const LONGEST_QUOTE: usize = 2000;
/// A command line is shown up to here.
const LONGEST_ADDRESS: usize = 300;
const SIGTERM: i32 = 15;
/// Variables of the crib's own environment a child sees beside those configured for it.
const INHERITED: [&str; 8] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "TMPDIR"];
const INHERITED_PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// What is started, and where.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub command: String,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub cwd: Option<PathBuf>,
}

/// A running child, seen from outside its keeper.
pub(crate) struct Child {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    pub pid: Option<u32>,
    pub epitaph: Arc<Epitaph>,
}

impl Launch {
    /// Starts the child; it is ended when `stop` is cancelled.
    pub fn start(&self, stop: CancellationToken) -> Result<Child, Failure> {
        let mut wrapped = CommandWrap::from(self.command());
        wrapped.wrap(ProcessGroup::leader()).wrap(KillOnDrop);
        let mut child = wrapped.spawn().map_err(|error| self.not_started(&error))?;
        let pid = child.id();
        let (stdin, stdout, stderr) = (child.stdin().take(), child.stdout().take(), child.stderr().take());
        let group = Group { child, ended: false };
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(Failure::new(Kind::Internal, "the child process has no pipes"));
        };
        let epitaph = Arc::new(Epitaph::default());
        tokio::spawn(epitaph.clone().listen(stderr, self.command.clone()));
        tokio::spawn(group.keep(stop, epitaph.clone()));
        Ok(Child { stdin, stdout, pid, epitaph })
    }

    /// The command line for people. What looks like the value of a secret is left out.
    pub fn shown(&self) -> String {
        let mut words = vec![self.command.clone()];
        let mut secret_follows = false;
        for arg in &self.args {
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (arg.as_str(), None),
            };
            let secret = is_secret(name);
            words.push(match value {
                _ if secret_follows && !arg.starts_with('-') => "***".to_owned(),
                Some(_) if secret => format!("{name}=***"),
                _ => arg.clone(),
            });
            secret_follows = secret && value.is_none() && arg.starts_with('-');
        }
        let line = words.join(" ").replace(char::is_control, " ");
        match line.char_indices().nth(LONGEST_ADDRESS) {
            Some(_) => line.chars().take(LONGEST_ADDRESS).chain(['…']).collect(),
            None => line,
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.command);
        command.args(&self.args).env_clear();
        command.envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(inherited)));
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn not_started(&self, error: &io::Error) -> Failure {
        let command = &self.command;
        let told = match (error.kind(), &self.cwd) {
            (io::ErrorKind::NotFound, Some(cwd)) if !cwd.is_dir() => {
                format!("cannot start `{command}`: its working directory `{}` does not exist", cwd.display())
            }
            (io::ErrorKind::NotFound, _) => {
                let path = self.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
                let path = path.or_else(|| std::env::var("PATH").ok()).unwrap_or_default();
                format!(
                    "cannot start `{command}`: there is no such command; install it, write its full path, or add its \
                     directory to PATH (now `{path}`)"
                )
            }
            _ => format!("cannot start `{command}`: {error}"),
        };
        Failure::new(Kind::Unavailable, told)
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["key", "token", "secret", "password", "passwd", "auth", "credential"]
        .iter()
        .any(|word| name.contains(word))
}

fn inherited(name: &str) -> bool {
    INHERITED.contains(&name) || INHERITED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// What is known of a child's end: its status and what it said last.
pub(crate) struct Epitaph {
    status: watch::Sender<Option<String>>,
    said: Mutex<VecDeque<String>>,
    silent: CancellationToken,
    gone: CancellationToken,
}

impl Default for Epitaph {
    fn default() -> Self {
        Self {
            status: watch::Sender::new(None),
            said: Mutex::default(),
            silent: CancellationToken::new(),
            gone: CancellationToken::new(),
        }
    }
}

impl Epitaph {
    /// Ends when the child and its group are no more.
    pub async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// Why the child's output ended, as far as can be learnt in a moment. Only operators read what it said: a server
    /// that logs its requests says what callers sent.
    pub async fn ended(&self) -> Ended {
        let mut status = self.status.subscribe();
        let ended = match timeout(Duration::from_millis(500), status.wait_for(Option::is_some)).await {
            Ok(Ok(status)) => status.clone(),
            _ => None,
        };
        let told = match ended {
            Some(status) => {
                let _ = timeout(Duration::from_millis(200), self.silent.cancelled()).await;
                format!("the process ended ({status})")
            }
            None => "the process closed its output".to_owned(),
        };
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let mut why = told.clone();
        if !said.is_empty() {
            let all = said.iter().map(String::as_str).collect::<Vec<_>>().join(" / ");
            let surplus = all.chars().count().saturating_sub(LONGEST_QUOTE);
            why.push_str("; it said: ");
            why.extend(all.chars().skip(surplus));
        }
        Ended { failure: Failure::new(Kind::Unavailable, told), why }
    }

    async fn listen(self: Arc<Self>, stderr: ChildStderr, command: String) {
        let mut lines = Lines::new(stderr, LONGEST_WORD, Overlong::Cut);
        while let Ok(Some(line)) = lines.next().await {
            let line = String::from_utf8_lossy(&line);
            let line: String = line.trim_end().chars().take(LONGEST_WORD).collect();
            tracing::debug!(command, line, "stderr");
            if line.is_empty() {
                continue;
            }
            let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
            said.push_back(line);
            if said.len() > LAST_WORDS {
                said.pop_front();
            }
        }
        self.silent.cancel();
    }
}

/// The process group, killed when dropped before it ended.
struct Group {
    child: Box<dyn ChildWrapper>,
    ended: bool,
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.child.start_kill();
        }
    }
}

impl Group {
    async fn keep(mut self, stop: CancellationToken, epitaph: Arc<Epitaph>) {
        let early = tokio::select! {
            status = self.child.wait() => Some(status),
            () = stop.cancelled() => None,
        };
        let status = match early {
            Some(status) => status,
            None => self.end().await,
        };
        // Whatever the child started and left behind goes with it.
        let _ = self.child.start_kill();
        self.ended = true;
        epitaph.status.send_replace(Some(match status {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }));
        epitaph.gone.cancel();
    }

    async fn end(&mut self) -> io::Result<ExitStatus> {
        if let Ok(status) = timeout(GRACE, self.child.wait()).await {
            return status;
        }
        let _ = self.child.signal(SIGTERM);
        if let Ok(status) = timeout(GRACE, self.child.wait()).await {
            return status;
        }
        let _ = self.child.start_kill();
        self.child.wait().await
    }
}
