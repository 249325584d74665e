//! `cargo xtask bench`: builds the release binaries, sees to it that nginx is there, runs the bench program.
//!
//! The measuring itself is the `bench` crate's. nginx is only wanted here, never by `cargo xtask test`.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::place::Place;
use crate::step;

/// Builds, prepares and runs; `words` go to the bench program as they are.
pub fn run(place: &Place, words: &[String]) -> Result<ExitCode> {
    if !has_nginx(place)
        && !words.iter().any(|word| word == "--help")
        && let Err(error) = install_nginx(place)
    {
        eprintln!("nginx is not here and could not be installed ({error:#}): its rows will be missing.");
        eprintln!("On Debian: `apt-get install -y nginx`.");
    }
    step::must(place.cargo(&["build", "--release", "-p", "toolcrib", "-p", "bench"]))?;
    let release = place.target.join("release");
    let status = place
        .command(release.join("bench"))
        .env("TOOLCRIB_BIN", release.join("toolcrib"))
        .args(words)
        .status()
        .context("cannot start the bench program")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn has_nginx(place: &Place) -> bool {
    let places = ["nginx", "/usr/sbin/nginx"];
    places.iter().any(|program| place.command(program).arg("-v").output().is_ok())
}

fn install_nginx(place: &Place) -> Result<()> {
    let mut install = place.command("apt-get");
    // `nginx-light` would do; `nginx` is what people run.
    install
        .args(["install", "-y", "--no-install-recommends", "nginx"])
        .env("DEBIAN_FRONTEND", "noninteractive");
    step::must(install)
}
