//! What is remembered. For now that is the ledger, on SQLite: one file, nothing to install.
//!
//! [`SqliteLedger`] stands behind the port `toolcrib_core::ledger::Ledger`. All writes of a process go through one
//! thread ([`writer`]), reads through connections of their own ([`reader`]); several processes may share one file.
//! Arguments and results of calls are never stored. Read `sqlite` first, then `writer`.

pub mod sqlite;

mod writer;

mod reader;

mod boot;

mod schema;

mod error;

pub use error::StoreError;
pub use sqlite::{Durability, SqliteLedger};
