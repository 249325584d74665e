//! Where the binaries under test are: beside the test that runs.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

/// The path of one of our own binaries, built with the same profile as the running test. `TOOLCRIB_BIN_DIR` names
/// another folder to look in first.
pub fn path(name: &str) -> Result<PathBuf> {
    let wanted = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let own = std::env::current_exe().context("this test does not know where it is")?;
    let named = std::env::var_os("TOOLCRIB_BIN_DIR").map(PathBuf::from);
    // A test is in `<profile>/deps`, a binary in `<profile>`.
    let around = own.ancestors().skip(1).take(2).map(PathBuf::from);
    for folder in named.into_iter().chain(around) {
        let path = folder.join(&wanted);
        if path.is_file() {
            return Ok(path);
        }
    }
    let package = match name {
        "fixture" => "e2e",
        other => other,
    };
    bail!("`{name}` is not built: run `cargo build -p {package}` first")
}
