//! [`SqliteLedger`]: the file, its settings, and the port in front of the writer and the readers.
//!
//! The file is `ledger.db` in the data folder, readable by its owner only, in WAL mode: readers and the writer do not
//! wait for each other, and several processes may write (they take turns).

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use async_trait::async_trait;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};
use toolcrib_core::ledger::{Closing, Entry, Filter, Ledger, LedgerDown, Line, Opening};

use crate::{
    boot::{self, Boot},
    error::{StoreError, whole},
    reader::{self, Reader},
    schema,
    writer::{self, Slip, What, Writer},
};

const FILE: &str = "ledger.db";
/// Writes that may wait; more wait outside, which slows their callers down and grows nothing.
const QUEUE: usize = 2_048;
/// Times to try while other processes are starting on the same file.
const OPENING_TRIES: u32 = 200;

/// What a commit survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The loss of power: every commit waits for the disk.
    #[default]
    Full,
    /// The death of the process, but not surely of the machine: the disk is waited for now and then.
    Normal,
}

pub struct SqliteLedger {
    reader: Arc<Reader>,
    writing: Option<Writing>,
    commits: Arc<AtomicU64>,
}

/// The way to the thread that writes.
struct Writing {
    queue: Option<mpsc::Sender<Slip>>,
    thread: Option<JoinHandle<()>>,
}

impl SqliteLedger {
    /// Opens the ledger in `dir`, making both where they are missing.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_with(dir, Durability::Full)
    }

    pub fn open_with(dir: &Path, durability: Durability) -> Result<Self, StoreError> {
        make_folder(dir)?;
        make_folder(&boot::folder(dir))?;
        let file = dir.join(FILE);
        make_file(&file)?;
        let (connection, boot) = patiently(|| prepare(dir, &file, durability))?;
        let commits = Arc::new(AtomicU64::new(0));
        let print = writer::file_print(&file);
        let (queue, slips) = mpsc::channel(QUEUE);
        let writer = Writer { connection, boot, file: file.clone(), print, commits: commits.clone() };
        let thread = thread::Builder::new()
            .name("ledger".into())
            .spawn(move || writer.run(slips))
            .map_err(StoreError::Thread)?;
        Ok(Self {
            reader: Arc::new(Reader::new(dir, &file)),
            writing: Some(Writing { queue: Some(queue), thread: Some(thread) }),
            commits,
        })
    }

    /// Opens an existing ledger for reading; nothing in `dir` is changed, and nothing can be written through it.
    pub fn read_only(dir: &Path) -> Result<Self, StoreError> {
        let file = dir.join(FILE);
        if !file.exists() {
            return Err(StoreError::Missing(dir.to_owned()));
        }
        patiently(|| {
            let connection = reader::connect(&file).map_err(|source| failed(&file, source))?;
            schema::expect_current(&connection, &file)
        })?;
        Ok(Self {
            reader: Arc::new(Reader::new(dir, &file)),
            writing: None,
            commits: Arc::new(AtomicU64::new(0)),
        })
    }

    /// Commits of this process so far.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    async fn send(&self, what: What) -> Result<i64, LedgerDown> {
        let Some(queue) = self.writing.as_ref().and_then(|writing| writing.queue.as_ref()) else {
            return Err(LedgerDown("it was opened for reading only".into()));
        };
        let gone = || LedgerDown("the thread that writes it has ended, restart".into());
        let (ack, answer) = oneshot::channel();
        queue.send(Slip { what, ack }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

impl Drop for Writing {
    /// Waits until what was sent is written and the lock of this process is let go.
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that writes the ledger had died");
        }
    }
}

#[async_trait]
impl Ledger for SqliteLedger {
    async fn open(&self, opening: Opening) -> Result<Entry, LedgerDown> {
        self.send(What::Open(opening)).await.map(|number| Entry { number })
    }

    async fn close(&self, entry: Entry, closing: Closing) -> Result<(), LedgerDown> {
        self.send(What::Close(entry.number, closing)).await.map(drop)
    }

    async fn read(&self, filter: Filter) -> Result<Vec<Line>, LedgerDown> {
        let reader = self.reader.clone();
        let read = tokio::task::spawn_blocking(move || reader.read(&filter));
        let lines = read.await.map_err(|error| LedgerDown(whole(&error)))?;
        lines.map_err(|error| LedgerDown(whole(&error)))
    }
}

fn failed(file: &Path, source: rusqlite::Error) -> StoreError {
    StoreError::Sqlite { path: file.to_owned(), source }
}

/// The writing connection, with the file up to date and this process entered.
fn prepare(dir: &Path, file: &Path, durability: Durability) -> Result<(Connection, Boot), StoreError> {
    let mut connection = connect(file, durability).map_err(|source| failed(file, source))?;
    // Before the first write: a file of a newer version is left exactly as it is.
    let found = schema::version(&connection).map_err(|source| failed(file, source))?;
    if found > schema::KNOWN {
        return Err(StoreError::Newer { path: file.to_owned(), found, known: schema::KNOWN });
    }
    let mode: String = connection
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .map_err(|source| failed(file, source))?;
    if mode != "wal" {
        tracing::warn!(mode, "the ledger is not in WAL mode here; readers and writers wait for each other");
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|source| failed(file, source))?;
    schema::bring_up(&transaction, file)?;
    let boot = boot::enter(&transaction, dir, file)?;
    transaction.commit().map_err(|source| failed(file, source))?;
    Ok((connection, boot))
}

fn connect(file: &Path, durability: Durability) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(file, flags)?;
    connection.busy_handler(Some(wait_turn))?;
    let synchronous = match durability {
        Durability::Full => "FULL",
        Durability::Normal => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

/// Waits for another process's commit: shorter steps than SQLite's own busy timeout, whose first step already is as
/// long as a commit. Gives up after about ten seconds.
fn wait_turn(tries: i32) -> bool {
    let pause = if tries < 20 { Duration::from_micros(200) } else { Duration::from_millis(2) };
    thread::sleep(pause);
    tries < 5_000
}

/// Tries again while another process is changing the file to WAL, where SQLite does not wait by itself.
fn patiently<T>(mut attempt: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    for _ in 1..OPENING_TRIES {
        match attempt() {
            Err(StoreError::Sqlite { source, .. })
                if matches!(
                    source.sqlite_error_code(),
                    Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
                ) =>
            {
                thread::sleep(Duration::from_millis(10));
            }
            settled => return settled,
        }
    }
    attempt()
}

fn make_folder(dir: &Path) -> Result<(), StoreError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(dir).map_err(|source| StoreError::Io { path: dir.to_owned(), source })
}

/// Makes the file before SQLite does, so that it is never readable by others, not even for a moment.
fn make_file(file: &Path) -> Result<(), StoreError> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(file).map(drop).map_err(|source| StoreError::Io { path: file.to_owned(), source })
}
