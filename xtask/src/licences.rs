//! The licence gate: finds or installs `cargo-deny` and runs it on `deny.toml`.
//!
//! Advisories are never checked here: they need a database from the network. Bans, licences and sources do not.

use std::path::PathBuf;

use anyhow::Result;

use crate::place::Place;
use crate::step::{self, Ended, Output};

const VERSION: &str = "0.20.2";

/// Runs `cargo-deny check bans licenses sources`.
pub fn check(place: &Place) -> Result<Ended> {
    let program = program(place)?;
    println!("   advisories are not checked: they need a database from the network");
    let mut command = place.command(program);
    command.args(["--all-features", "check", "bans", "licenses", "sources"]);
    step::run(command, Output::Kept)
}

/// The right version from the cache or the path, else installed into the cache.
fn program(place: &Place) -> Result<PathBuf> {
    let cached = place.tools.join("bin/cargo-deny");
    for candidate in [cached.clone(), PathBuf::from("cargo-deny")] {
        let asked = place.command(&candidate).arg("--version").output();
        if asked.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(VERSION)) {
            return Ok(candidate);
        }
    }
    let scratch = place.tools.join("build");
    let mut install = place.command("cargo");
    install
        .args(["install", "--locked", "--no-default-features", "--version", VERSION, "--root"])
        .arg(&place.tools)
        .arg("cargo-deny")
        // A build directory of its own: its hundreds of crates are of no use to ours.
        .env("CARGO_TARGET_DIR", &scratch);
    step::must(install)?;
    // Only space is lost if this fails.
    let _ = std::fs::remove_dir_all(scratch);
    Ok(cached)
}
