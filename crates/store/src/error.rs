//! Why a store cannot be opened. What goes wrong later is a `LedgerDown`, as the port says.

use std::{io, path::PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot use `{}`, check that this user may write there", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("there is no ledger in `{}` yet, the first `toolcrib serve` or `toolcrib stdio` makes one", .0.display())]
    Missing(PathBuf),
    #[error(
        "`{}` was written by a newer toolcrib (version {found} of its tables, this one knows {known}), install that one or choose another data folder",
        path.display()
    )]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error(
        "`{}` was written by an older toolcrib (version {found} of its tables, this one reads {known}), start `toolcrib serve` once to bring it up to date",
        path.display()
    )]
    Older { path: PathBuf, found: i64, known: i64 },
    #[error("the ledger `{}` cannot be opened", path.display())]
    Sqlite {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("the thread that writes the ledger cannot be started")]
    Thread(#[source] io::Error),
}

/// An error and all its causes on one line, for a `LedgerDown`.
pub(crate) fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(": ");
        text.push_str(&next.to_string());
        cause = next.source();
    }
    text
}
