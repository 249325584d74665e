//! What the crib stands on: its data folder, its ledger, its ports, the clock.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use toolcrib_core::ledger::{Filter, Ledger as _, now};
use toolcrib_store::{SqliteLedger, StoreError};

use super::Finding;
use crate::cli::moment;
use crate::cli::trouble::whole;
use crate::config::Config;
use crate::reach::Running;

/// Whether something can be written there, or where it would be made.
pub fn data_folder(data: &Path) -> Finding {
    let shown = data.display();
    let Some(existing) = data.ancestors().find(|folder| folder.exists()) else {
        return Finding::problem(
            "data",
            format!("{shown} cannot be made"),
            "choose another folder as `data`",
        );
    };
    let trial = tempfile::Builder::new().prefix(".toolcrib-trial-").tempfile_in(existing);
    match trial {
        Ok(_) if existing == data => Finding::good("data", format!("{shown} can be written")),
        Ok(_) => Finding::good("data", format!("{shown} will be made at the first start")),
        Err(error) => Finding::problem(
            "data",
            format!("{} cannot be written: {error}", existing.display()),
            "give this user write permission there, or choose another folder as `data`",
        ),
    }
}

pub async fn ledger(data: &Path) -> Finding {
    let ledger = match SqliteLedger::read_only(data) {
        Ok(ledger) => ledger,
        Err(StoreError::Missing(_)) => return Finding::good("ledger", "none yet, the first start makes it"),
        Err(error) => {
            let remedy = "move the file away (it is the record of past calls) or restore it from a backup";
            return Finding::problem("ledger", whole(&error), remedy);
        }
    };
    match ledger.read(Filter { limit: 1, ..Filter::default() }).await {
        Err(down) => Finding::problem("ledger", down.to_string(), "check the disk, then restore a backup"),
        Ok(lines) => match lines.first() {
            None => Finding::good("ledger", "opens, no calls yet"),
            Some(line) if line.at > now() + 60_000 => Finding::warning(
                "ledger",
                format!("its newest call is in the future: {}", moment::exact(line.at)),
                "set the clock of this machine; ages and filters by time are wrong until then",
            ),
            Some(line) => {
                Finding::good("ledger", format!("opens, last call {}", moment::relative(line.at, now())))
            }
        },
    }
}

/// No crib was made before this day: 2026-01-01.
const EARLIEST: u64 = 1_767_225_600_000;

pub fn clock() -> Finding {
    let now = now();
    let shown = moment::exact(now);
    if now < EARLIEST {
        return Finding::problem("clock", shown, "set the clock; certificates and the ledger depend on it");
    }
    Finding::good("clock", shown)
}

/// Both ports: a crib answers there, they are free, or somebody else has them.
pub fn ports(config: &Config, running: Option<&Running>) -> Vec<Finding> {
    if let Some(running) = running {
        return vec![Finding::good("crib", format!("one is running at {}", running.url()))];
    }
    let port = |key: &str, address: SocketAddr| match TcpListener::bind(address) {
        Ok(_) => Finding::good(key, format!("{address} is free")),
        Err(error) => Finding::problem(
            key,
            format!("{address} cannot be listened on: {error}"),
            format!("stop what listens there, or set another address as `{key}`"),
        ),
    };
    vec![port("listen.mcp", config.listen.mcp), port("listen.admin", config.listen.admin)]
}
