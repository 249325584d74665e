//! Which processes that wrote the ledger still live: each holds a lock on `boots/<id>.lock`, and the system lets go of
//! it when the process ends, however it ends. No clock, no process id that may be used again.
//!
//! Locks are taken and stale files removed only inside a write transaction of the ledger, so that nobody removes the
//! file of a process that is just starting.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
};

use rusqlite::{Transaction, params};
use toolcrib_core::ledger;

use crate::error::StoreError;

/// This process, as the ledger knows it. Lives as long as its lock.
pub struct Boot {
    pub id: i64,
    _lock: File,
}

pub fn folder(dir: &Path) -> PathBuf {
    dir.join("boots")
}

fn lock_file(dir: &Path, id: i64) -> PathBuf {
    folder(dir).join(format!("{id}.lock"))
}

/// Enters this process, locks its file, and removes the files of processes that are gone.
pub fn enter(transaction: &Transaction<'_>, dir: &Path, path: &Path) -> Result<Boot, StoreError> {
    let failed = |source| StoreError::Sqlite { path: path.to_owned(), source };
    let insert = "INSERT INTO boots (pid, began) VALUES (?1, ?2)";
    transaction.execute(insert, params![std::process::id(), ledger::now().cast_signed()]).map_err(failed)?;
    let id = transaction.last_insert_rowid();
    sweep(&folder(dir));
    let file = lock_file(dir, id);
    let lock = take(&file).map_err(|source| StoreError::Io { path: file, source })?;
    Ok(Boot { id, _lock: lock })
}

fn take(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    file.try_lock().map_err(|error| match error {
        TryLockError::Error(error) => error,
        TryLockError::WouldBlock => io::Error::other("another process holds its lock"),
    })?;
    Ok(file)
}

/// Removes lock files nobody holds. What cannot be removed is left for the next start.
fn sweep(folder: &Path) {
    let Ok(files) = fs::read_dir(folder) else { return };
    for path in files.flatten().map(|file| file.path()) {
        let stale = path.extension().is_some_and(|end| end == "lock") && !held(&path);
        if stale && let Err(error) = fs::remove_file(&path) {
            tracing::debug!(%error, "a stale lock file stays");
        }
    }
}

/// Whether the process that entered as `id` still lives.
pub fn lives(dir: &Path, id: i64) -> bool {
    held(&lock_file(dir, id))
}

/// A shared lock, so that two who look at the same time do not take each other for the owner. Doubt counts as held:
/// a call is called unfinished only when that is sure.
fn held(path: &Path) -> bool {
    match File::open(path) {
        Ok(file) => file.try_lock_shared().is_err(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}
