//! The ways a call can take: straight to the upstream, through nginx, through the crib. Each is a real process,
//! started here on ports of its own, in a folder of its own, and stopped when the run is over.
//!
//! nginx is set up as a plain reverse proxy at its best: connections kept open on both sides, no log, no disk.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::scenario::{Ask, Era, Scenario};
use crate::{family, load};

/// How long a door may take to give its first right answer.
const OPENING: Duration = Duration::from_secs(30);

/// How long a process may take to end after it was asked to.
const CLOSING: Duration = Duration::from_secs(10);

/// A way, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Direct,
    Nginx,
    Crib,
}

impl Way {
    pub const ALL: [Way; 3] = [Way::Direct, Way::Nginx, Way::Crib];

    pub fn name(self) -> &'static str {
        match self {
            Way::Direct => "direct",
            Way::Nginx => "nginx",
            Way::Crib => "crib",
        }
    }

    pub fn parse(text: &str) -> Result<Way> {
        let known = Way::ALL.into_iter().find(|way| way.name() == text);
        known.with_context(|| format!("unknown path `{text}`: expected direct, nginx or crib"))
    }
}

/// A way that is open.
#[derive(Debug)]
pub struct Door {
    pub way: Way,
    pub address: SocketAddr,
    /// From starting the process to its first right answer.
    pub start_up: Duration,
    /// Memory right after that answer.
    pub idle_kib: u64,
    running: Running,
}

impl Door {
    /// Starts the process for `way` and waits until a call goes through it.
    pub async fn open(way: Way, upstream: SocketAddr, folder: &Path) -> Result<Door> {
        let address = free_address()?;
        let mut command = match way {
            Way::Direct => bail!("the direct way has no door of its own"),
            Way::Nginx => nginx(address, upstream, folder)?,
            Way::Crib => crib(address, upstream, folder)?,
        };
        let started = Instant::now();
        let log = folder.join(format!("{}.log", way.name()));
        let running = Running::start(command.stdout(Stdio::null()).stderr(std::fs::File::create(&log)?))?;
        match first_answer(address, started).await {
            Ok(start_up) => {
                let idle_kib = family::read(running.pid()).resident_kib;
                Ok(Door { way, address, start_up, idle_kib, running })
            }
            Err(error) => {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                bail!("{} gave no answer: {error:#}\n{said}", way.name())
            }
        }
    }

    pub fn read(&self) -> family::Reading {
        family::read(self.running.pid())
    }
}

/// The upstream as a process of its own: this program with another word.
pub async fn open_upstream() -> Result<Door> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let started = Instant::now();
    let mut running =
        Running::start(Command::new(program).args(["upstream", "--port", "0"]).stdout(Stdio::piped()))?;
    let output = running.child.stdout.take().context("the upstream has no output")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    let address =
        line.trim().strip_prefix("listening ").context("the upstream did not say where it listens")?;
    let address: SocketAddr = address.parse()?;
    let start_up = first_answer(address, started).await?;
    let idle_kib = family::read(running.pid()).resident_kib;
    Ok(Door { way: Way::Direct, address, start_up, idle_kib, running })
}

/// Where a program is: a name on the path, or a file. The error says how to get it.
pub fn locate(way: Way) -> Result<PathBuf> {
    match way {
        Way::Direct => std::env::current_exe().context("cannot find this program"),
        Way::Nginx => {
            let known = ["nginx", "/usr/sbin/nginx"].into_iter().find(|program| runs(program));
            known.map(PathBuf::from).context("nginx is not installed (Debian: `apt-get install -y nginx`)")
        }
        Way::Crib => {
            let beside = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.join("toolcrib")));
            let program = std::env::var_os("TOOLCRIB_BIN").map(PathBuf::from).or(beside);
            let missing =
                "no `toolcrib` beside this program: `cargo build --release -p toolcrib`, or set TOOLCRIB_BIN";
            program.filter(|path| path.is_file()).context(missing)
        }
    }
}

fn runs(program: &str) -> bool {
    Command::new(program).arg("-v").stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// A port nobody uses now. Somebody may take it before we do; the door then does not open, and says so.
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

async fn first_answer(address: SocketAddr, started: Instant) -> Result<Duration> {
    let question = Scenario { name: "first answer", ask: Ask::Echo, era: Era::Modern, concurrency: 1 };
    loop {
        match load::once(address, question).await {
            Ok(()) => return Ok(started.elapsed()),
            Err(error) if started.elapsed() > OPENING => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
        }
    }
}

fn nginx(address: SocketAddr, upstream: SocketAddr, folder: &Path) -> Result<Command> {
    let home = folder.join("nginx");
    std::fs::create_dir_all(&home)?;
    let config = home.join("nginx.conf");
    let home = home.display();
    let text = format!(
        "daemon off;
worker_processes auto;
pid {home}/pid;
error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {home}/body;
  proxy_temp_path {home}/proxy;
  fastcgi_temp_path {home}/fastcgi;
  uwsgi_temp_path {home}/uwsgi;
  scgi_temp_path {home}/scgi;
  keepalive_requests 1000000000;
  tcp_nodelay on;
  upstream behind {{ server {upstream}; keepalive 128; keepalive_requests 1000000000; }}
  server {{
    listen {address};
    location / {{
      proxy_pass http://behind;
      proxy_http_version 1.1;
      proxy_set_header Connection \"\";
      proxy_buffers 16 16k;
      proxy_max_temp_file_size 0;
    }}
  }}
}}
"
    );
    std::fs::write(&config, text)?;
    let mut command = Command::new(locate(Way::Nginx)?);
    command.arg("-c").arg(config).arg("-p").arg(folder);
    Ok(command)
}

fn crib(address: SocketAddr, upstream: SocketAddr, folder: &Path) -> Result<Command> {
    let admin = free_address()?;
    let config = folder.join("toolcrib.yaml");
    let text = format!(
        "data: {}\nlisten:\n  mcp: {address}\n  admin: {admin}\nservers:\n  upstream:\n    type: http\n    url: http://{upstream}/mcp\n    prefix: none\n",
        folder.join("data").display()
    );
    std::fs::write(&config, text)?;
    let mut command = Command::new(locate(Way::Crib)?);
    command.arg("serve").arg("--config").arg(config).stdin(Stdio::null());
    Ok(command)
}

/// A child that is asked to end, and made to, when it goes out of scope.
#[derive(Debug)]
struct Running {
    child: Child,
}

impl Running {
    fn start(command: &mut Command) -> Result<Running> {
        let child = command.spawn().with_context(|| format!("cannot start `{:?}`", command.get_program()))?;
        Ok(Running { child })
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A polite end first: nginx and the crib take their own children with them.
        let asked = Command::new("kill").args(["-TERM", &self.pid().to_string()]).status();
        let until = Instant::now() + CLOSING;
        while asked.is_ok() && Instant::now() < until {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // Nothing more can be done for it than this.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
