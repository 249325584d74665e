//! `cargo run -p e2e --bin peers`: installs every peer that is not there yet, and says where each group is.

use e2e::peers::Group;

fn main() -> anyhow::Result<()> {
    for group in Group::ALL {
        println!("{group:?}: {}", group.installed()?.display());
    }
    Ok(())
}
