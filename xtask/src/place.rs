//! Where things are: the checkout, and the caches outside it.
//!
//! It never writes into the checkout. Who uses the folders: cargo (target), `licences.rs` (tools), the end-to-end
//! tests (peers).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// Free space below which a build is likely to fail half-way.
const LOW_DISK_KIB: u64 = 5 * 1024 * 1024;

/// The folders one run works with.
#[derive(Clone, Debug)]
pub struct Place {
    /// The root of the checkout.
    pub root: PathBuf,
    /// `CARGO_TARGET_DIR` as the user set it, else the cache's `target`.
    pub target: PathBuf,
    /// Programs installed by xtask (`bin/` inside).
    pub tools: PathBuf,
    /// Servers and clients from npm and PyPI, for the end-to-end tests.
    pub peers: PathBuf,
}

impl Place {
    /// Finds the checkout from where this crate was built, and the caches from the environment.
    pub fn find() -> Result<Place> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .map(PathBuf::from)
            .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
        let root = manifest.parent().context("xtask has no parent folder")?.to_path_buf();
        let cache = cache_folder()?;
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .filter(|value| !value.is_empty())
            .map(|value| root.join(value))
            .unwrap_or_else(|| cache.join("target"));
        Ok(Place { root, target, tools: cache.join("tools"), peers: cache.join("peers") })
    }

    /// A command that runs in the checkout and knows where the caches are.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("TOOLCRIB_PEERS", &self.peers);
        command
    }

    /// `cargo` with these arguments, in the checkout.
    pub fn cargo(&self, words: &[&str]) -> Command {
        let mut command = self.command("cargo");
        command.args(words);
        command
    }

    /// Says aloud when the disk that holds the build is nearly full; says nothing when it cannot tell.
    pub fn warn_if_disk_is_low(&self) {
        if let Some(free) = free_kib(&self.target).filter(|free| *free < LOW_DISK_KIB) {
            println!(
                "warning: {:.1} GiB free below {}, less than 5 GiB: the build may run out of disk",
                free as f64 / 1024.0 / 1024.0,
                self.target.display()
            );
        }
    }
}

fn cache_folder() -> Result<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => {
            let home =
                std::env::var_os("HOME").context("neither `XDG_CACHE_HOME` nor `HOME` is set: set one")?;
            PathBuf::from(home).join(".cache")
        }
    };
    Ok(base.join("toolcrib"))
}

/// Free KiB on the disk of `folder` (or of its nearest existing parent), asked of `df`.
fn free_kib(folder: &Path) -> Option<u64> {
    let existing = folder.ancestors().find(|path| path.exists())?;
    let output = Command::new("df").arg("-Pk").arg(existing).output().ok()?;
    available_column(&String::from_utf8_lossy(&output.stdout))
}

/// The fourth column of the last line of `df -Pk`.
fn available_column(text: &str) -> Option<u64> {
    text.lines().last()?.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::available_column;

    #[test]
    fn free_space_is_read_from_the_fourth_column() {
        let text = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/vda 100 20 80 20% /\n";
        assert_eq!(available_column(text), Some(80));
        assert_eq!(available_column("nonsense"), None);
    }
}
