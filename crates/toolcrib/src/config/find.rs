//! Where the config file is, where the data folder is, and what `~` means.
//!
//! Everything is looked up through the given environment; only the file itself is read from the disk.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::mistake::{Mistake, Mistakes};
use super::reading::{Lookup, Reading};

/// Larger files are no config.
const FILE_SIZE: u64 = 1 << 20;

/// The file to read: the one asked for, `TOOLCRIB_CONFIG`, `./toolcrib.yaml`, then the user's config folder.
/// The first two are returned even if they do not exist, so that their absence is a mistake and no silent default.
pub fn locate(asked: Option<&Path>, env: Lookup<'_>) -> Option<PathBuf> {
    if let Some(path) = asked {
        return Some(path.to_owned());
    }
    if let Some(path) = env("TOOLCRIB_CONFIG").filter(|path| !path.is_empty()) {
        return Some(PathBuf::from(path));
    }
    let here = PathBuf::from("toolcrib.yaml");
    [Some(here), user_file(env)].into_iter().flatten().find(|path| path.is_file())
}

/// `$XDG_CONFIG_HOME/toolcrib/toolcrib.yaml`, whether or not it exists.
pub fn user_file(env: Lookup<'_>) -> Option<PathBuf> {
    Some(base(env, "XDG_CONFIG_HOME", ".config")?.join("toolcrib").join("toolcrib.yaml"))
}

fn base(env: Lookup<'_>, variable: &str, under_home: &str) -> Option<PathBuf> {
    let given = env(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    given.or_else(|| Some(home_folder(env)?.join(under_home)))
}

fn home_folder(env: Lookup<'_>) -> Option<PathBuf> {
    ["HOME", "USERPROFILE"]
        .into_iter()
        .find_map(|name| env(name).filter(|home| !home.is_empty()))
        .map(PathBuf::from)
}

/// The text of the file, or why there is none.
pub(crate) fn read(path: &Path) -> Result<String, Mistakes> {
    let fault = |what: String, expected: Option<&str>| {
        Mistakes::one(Mistake::outside(path.display().to_string(), what, expected.map(str::to_owned)))
    };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_SIZE + 1).read_to_end(&mut bytes))
        .map_err(|error| fault(format!("cannot be read: {error}"), None))?;
    if bytes.len() as u64 > FILE_SIZE {
        return Err(fault("is too large".into(), Some("at most 1 MiB")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes().iter().take(good).filter(|byte| **byte == b'\n').count();
        fault(format!("is not UTF-8 text (line {line})"), Some("UTF-8"))
    })
}

pub(crate) fn default_data(reading: &Reading<'_>) -> PathBuf {
    let env = |name: &str| reading.variable(name);
    base(&env, "XDG_DATA_HOME", ".local/share")
        .map_or_else(|| PathBuf::from("toolcrib-data"), |base| base.join("toolcrib"))
}

/// A path of the file: `~` is the home folder, and what is relative starts at `folder`.
pub(crate) fn path(text: &str, folder: &Path, reading: &Reading<'_>) -> PathBuf {
    folder.join(home(text, reading))
}

/// `~/x` with the home folder written out; anything else as it is.
pub(crate) fn home(text: &str, reading: &Reading<'_>) -> String {
    let rest = match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
        _ => return text.to_owned(),
    };
    match home_folder(&|name| reading.variable(name)) {
        Some(home) => format!("{}{rest}", home.display()),
        None => text.to_owned(),
    }
}
