//! The tables and their versions. The version of a file is its `user_version`; each step up is one SQL file.
//!
//! A file from a newer version is refused and left as it is.

use std::path::Path;

use rusqlite::{Connection, Transaction};

use crate::error::StoreError;

/// Step `n` (from 1) brings a file from version `n - 1` to `n`. Steps that were released never change.
const STEPS: [&str; 1] = [include_str!("migrations/0001.sql")];

pub const KNOWN: i64 = STEPS.len() as i64;

pub fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Brings the file up to date within `transaction`, so that of two processes starting at once only one does it.
pub fn bring_up(transaction: &Transaction<'_>, path: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::Sqlite { path: path.to_owned(), source };
    let found = version(transaction).map_err(failed)?;
    if found > KNOWN {
        return Err(StoreError::Newer { path: path.to_owned(), found, known: KNOWN });
    }
    let done = usize::try_from(found).unwrap_or_default();
    for step in STEPS.iter().skip(done) {
        transaction.execute_batch(step).map_err(failed)?;
    }
    if found < KNOWN {
        transaction.pragma_update(None, "user_version", KNOWN).map_err(failed)?;
    }
    Ok(())
}

/// For one who only reads: the file must be of this very version.
pub fn expect_current(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let found = version(connection).map_err(|source| StoreError::Sqlite { path: path.to_owned(), source })?;
    match found {
        KNOWN => Ok(()),
        0 => Err(StoreError::Missing(path.parent().unwrap_or(path).to_owned())),
        found if found > KNOWN => Err(StoreError::Newer { path: path.to_owned(), found, known: KNOWN }),
        found => Err(StoreError::Older { path: path.to_owned(), found, known: KNOWN }),
    }
}
