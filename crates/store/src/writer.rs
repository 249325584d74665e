//! The one thread of this process that writes: everything waiting goes into one transaction, one commit, and only
//! then is anybody answered. While a commit is on its way to the disk the next batch gathers by itself.
//!
//! A batch that cannot be committed fails everybody in it and nobody after it.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, params};
use tokio::sync::{mpsc, oneshot};
use toolcrib_core::{
    caller::CallerKind,
    ledger::{Closing, LedgerDown, Opening},
};

use crate::{boot::Boot, error::whole};

/// Writes in one commit, at most.
const MOST_IN_BATCH: usize = 512;
/// Longer details are cut.
const LONGEST_DETAIL: usize = 2_000;

/// One thing to write, and whom to tell the entry's number.
pub struct Slip {
    pub what: What,
    pub ack: oneshot::Sender<Result<i64, LedgerDown>>,
}

pub enum What {
    Open(Opening),
    Close(i64, Closing),
}

/// Why one write, or a whole batch, did not happen.
enum Trouble {
    /// This one only: the others of its batch are fine.
    One(String),
    Batch(String),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::ConstraintViolation) => Trouble::One(whole(&error)),
            _ => Trouble::Batch(whole(&error)),
        }
    }
}

pub struct Writer {
    pub connection: Connection,
    pub boot: Boot,
    pub file: PathBuf,
    /// What the file was when it was opened, so that a deleted one is noticed.
    pub print: Option<FilePrint>,
    pub commits: Arc<AtomicU64>,
}

impl Writer {
    /// Until every sender is gone and everything sent is written.
    pub fn run(mut self, mut queue: mpsc::Receiver<Slip>) {
        let mut batch = Vec::with_capacity(MOST_IN_BATCH);
        while queue.blocking_recv_many(&mut batch, MOST_IN_BATCH) > 0 {
            self.flush(&mut batch);
        }
    }

    fn flush(&mut self, batch: &mut Vec<Slip>) {
        match self.commit(batch) {
            Ok(results) => {
                for (slip, result) in batch.drain(..).zip(results) {
                    // Who no longer listens has its entry all the same.
                    let _ = slip.ack.send(result);
                }
            }
            Err(reason) => {
                tracing::error!(reason, writes = batch.len(), "the ledger could not be written");
                for slip in batch.drain(..) {
                    let _ = slip.ack.send(Err(LedgerDown(reason.clone())));
                }
            }
        }
    }

    fn commit(&mut self, batch: &[Slip]) -> Result<Vec<Result<i64, LedgerDown>>, String> {
        if file_print(&self.file) != self.print {
            return Err(format!(
                "`{}` was moved or deleted while in use, put it back or restart",
                self.file.display()
            ));
        }
        let failed = |error: rusqlite::Error| whole(&error);
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let mut results = Vec::with_capacity(batch.len());
        for slip in batch {
            match write(&transaction, self.boot.id, &slip.what) {
                Ok(number) => results.push(Ok(number)),
                // Where SQLite itself rolled back, the writes before this one are gone with it.
                Err(Trouble::One(reason)) if transaction.is_autocommit() => return Err(reason),
                Err(Trouble::One(reason)) => results.push(Err(LedgerDown(reason))),
                Err(Trouble::Batch(reason)) => return Err(reason),
            }
        }
        transaction.commit().map_err(failed)?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(results)
    }
}

fn write(transaction: &Transaction<'_>, boot: i64, what: &What) -> Result<i64, Trouble> {
    match what {
        What::Open(opening) => open(transaction, boot, opening),
        What::Close(number, closing) => close(transaction, boot, *number, closing),
    }
}

fn open(transaction: &Transaction<'_>, boot: i64, opening: &Opening) -> Result<i64, Trouble> {
    let mut insert = transaction.prepare_cached(
        "INSERT INTO entries (boot, call, at, caller, caller_kind, surface, kind, target, bytes_in) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    Ok(insert.insert(params![
        boot,
        opening.call.to_string(),
        signed(opening.at),
        opening.caller.as_str(),
        caller_kind(opening.caller_kind),
        opening.surface.word(),
        opening.kind,
        opening.target,
        signed(opening.bytes_in),
    ])?)
}

fn close(transaction: &Transaction<'_>, boot: i64, number: i64, closing: &Closing) -> Result<i64, Trouble> {
    let mut update = transaction.prepare_cached(
        "UPDATE entries SET closed_at = ?3, outcome = ?4, item = ?5, source = ?6, duration_us = ?7, \
         bytes_out = ?8, layer = ?9, detail = ?10 WHERE number = ?1 AND boot = ?2 AND outcome IS NULL",
    )?;
    let detail = closing.detail.as_ref().map(|text| text.chars().take(LONGEST_DETAIL).collect::<String>());
    let changed = update.execute(params![
        number,
        boot,
        signed(closing.at),
        closing.ending.word(),
        closing.item,
        closing.source.as_ref().map(|source| source.as_str()),
        signed(closing.duration_us),
        signed(closing.bytes_out),
        closing.layer,
        detail,
    ])?;
    match changed {
        1 => Ok(number),
        _ => Err(Trouble::One(format!("entry {number} is not open"))),
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn caller_kind(kind: CallerKind) -> &'static str {
    match kind {
        CallerKind::Agent => "agent",
        CallerKind::Service => "service",
        CallerKind::Person => "person",
    }
}

/// Device and number of a file. SQLite would go on writing into a deleted file, and nobody would ever read it.
pub type FilePrint = (u64, u64);

#[cfg(unix)]
pub fn file_print(file: &Path) -> Option<FilePrint> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(file).ok().map(|facts| (facts.dev(), facts.ino()))
}

#[cfg(not(unix))]
pub fn file_print(file: &Path) -> Option<FilePrint> {
    std::fs::metadata(file).ok().map(|_| (0, 0))
}
