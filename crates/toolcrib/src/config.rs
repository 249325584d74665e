//! `toolcrib.yaml`: found, read, checked, watched.
//!
//! [`load`] gives a [`Config`] in which everything is valid and every default is filled in, or all [`Mistakes`] at once,
//! each with its line. Start-up, `config check` and hot reload go through it alike. This module knows no other crate of
//! the house and starts nothing.
//!
//! In reading order: `model` (what a config is), `shape` (its keys, as a table), `read` (from the file to the model).

mod model;
mod secret;
mod server;
mod shape;

mod read;
mod read_server;

mod watch;

mod reference;
mod schema;

mod beside;
mod fields;
mod find;
mod mistake;
pub(crate) mod node;
mod reading;
mod scalar;
mod spelling;
mod variables;

use std::path::{Path, PathBuf};

pub use find::{locate, user_file};
pub use mistake::{Mistake, Mistakes};
pub use model::{
    Caller, CallerKind, Config, Id, Limits, Listen, Local, Log, LogFormat, Names, Telemetry, Tools,
};
pub use reading::Lookup;
pub use reference::reference;
pub use schema::schema;
pub use secret::{Secret, names_a_credential};
pub use server::{ApiKey, Auth, Connect, Era, Prefix, Process, Remote, Server, Transport};
pub(crate) use variables::is_name as is_variable_name;
pub use watch::{Environment, watch};

use reading::Reading;

/// A config in force, and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    pub config: Config,
    /// `None` for the embedded default.
    pub path: Option<PathBuf>,
    /// What is allowed but probably not meant.
    pub warnings: Vec<Mistake>,
}

/// Finds and reads the config (see [`locate`] for the order); the embedded default when there is no file.
pub fn load(path: Option<&Path>, env: Lookup<'_>) -> Result<Loaded, Mistakes> {
    match find::locate(path, env) {
        Some(path) => parse(&find::read(&path)?, Some(&path), env),
        None => parse("", None, env),
    }
}

/// As [`load`], but by [`outline`].
pub fn look(path: Option<&Path>, env: Lookup<'_>) -> Result<Loaded, Mistakes> {
    match find::locate(path, env) {
        Some(path) => outline(&find::read(&path)?, Some(&path), env),
        None => outline("", None, env),
    }
}

/// Reads `text` as if it stood in the file `path`. Variables come from `env`, else from `toolcrib.env` beside the file.
pub fn parse(text: &str, path: Option<&Path>, env: Lookup<'_>) -> Result<Loaded, Mistakes> {
    match path {
        Some(file) => parse_with(text, path, &beside::Beside::of(file).behind(env), read::config),
        None => parse_with(text, path, env, read::config),
    }
}

/// As [`parse`], but variables may be missing and then stand as they are written: for looking at a config, not running it.
pub fn outline(text: &str, path: Option<&Path>, env: Lookup<'_>) -> Result<Loaded, Mistakes> {
    parse_with(text, path, env, |reading, tree, folder| {
        reading.forgive(|| read::config(reading, tree, folder))
    })
}

fn parse_with(
    text: &str,
    path: Option<&Path>,
    env: Lookup<'_>,
    read: fn(&Reading<'_>, &node::Node, &Path) -> Config,
) -> Result<Loaded, Mistakes> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let file = path.map_or_else(|| "(no file)".to_owned(), |path| path.display().to_string());
    let reading = Reading::new(file, text, env);
    let tree = match node::parse(text) {
        Ok(tree) => tree,
        Err(broken) => return Err(reading.broken(broken)),
    };
    let config = read(&reading, &tree, &folder(path));
    let warnings = reading.finish()?;
    Ok(Loaded { config, path: path.map(Path::to_owned), warnings })
}

/// Where relative paths of the file start; absolute, so that a later change of the working folder changes nothing.
fn folder(path: Option<&Path>) -> PathBuf {
    let parent = path.and_then(Path::parent).filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    std::path::absolute(parent).unwrap_or_else(|_| parent.to_owned())
}
