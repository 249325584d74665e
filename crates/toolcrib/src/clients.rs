//! Config files of MCP clients: read to fill `toolcrib.yaml`, written to point a client at the crib.
//!
//! [`import`] shows what it would add and writes only when told to; [`connect`] puts one entry into a client's file and
//! takes it out again. Both keep comments, order and everything they do not own, and make a backup before they write.
//! Secrets found on the way are replaced by `${VAR}` and never printed. Folders come in as [`Places`], so nothing here
//! looks at the real home folder by itself.

mod place;

pub mod import;

pub mod connect;

mod credential;
mod draft;
mod entry;
mod keep;
mod reference;
mod settings;
mod yaml;

use std::path::PathBuf;

pub use place::{Client, Places, Scope, System};

use crate::config::Mistakes;

/// Why a client's file, or our own, was left as it is.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("cannot read `{}`", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("cannot write `{}`; nothing was changed", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("`{}` cannot be understood: {what}; mend it and try again", path.display())]
    Malformed { path: PathBuf, what: String },
    #[error("`{}` changed while it was being worked on; try again", path.display())]
    Changed { path: PathBuf },
    #[error("`{}` has an entry `{name}` that is not the crib's; choose another name", path.display())]
    Taken { path: PathBuf, name: String },
    #[error("{client} has no such file for a project; leave the scope at `user`")]
    NoScope { client: Client },
    #[error("no servers could be added to `{}` without disturbing it; add them by hand", path.display())]
    Unplaceable { path: PathBuf },
    #[error("the config has mistakes; mend them first\n{0}")]
    Config(Mistakes),
}
