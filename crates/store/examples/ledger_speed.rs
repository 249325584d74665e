//! How many writes a second the ledger takes: `cargo run --release -p toolcrib-store --example ledger_speed [folder]`.
//!
//! Each producer opens an entry, waits, closes it, waits, like a call does. One event is one such write. The folder
//! says which disk is measured; without it, the system's folder for temporary files.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use toolcrib_core::{
    call::{Call, Outcome, Surface, Target},
    caller::Caller,
    id::SourceId,
    ledger::{self, Closing, Ending, Ledger, LedgerDown, Opening},
    policy::Access,
};
use toolcrib_store::{Durability, SqliteLedger};

const LASTS: Duration = Duration::from_secs(3);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!(
        "{:<8} {:>9} {:>10} {:>10} {:>9} {:>9}",
        "sync", "producers", "events/s", "commits/s", "p50 µs", "p99 µs"
    );
    for durability in [Durability::Full, Durability::Normal] {
        for producers in [1, 16, 64] {
            let dir = place.join(format!("ledger-speed-{}-{durability:?}-{producers}", std::process::id()));
            let ledger = Arc::new(SqliteLedger::open_with(&dir, durability)?);
            let began = Instant::now();
            let mut waits = runtime.block_on(produce(&ledger, producers))?;
            let seconds = began.elapsed().as_secs_f64();
            waits.sort_unstable();
            let at = |part: usize| waits.get(waits.len() * part / 100).copied().unwrap_or_default();
            println!(
                "{:<8} {producers:>9} {:>10.0} {:>10.0} {:>9} {:>9}",
                format!("{durability:?}"),
                waits.len() as f64 / seconds,
                ledger.commits() as f64 / seconds,
                at(50).as_micros(),
                at(99).as_micros(),
            );
            drop(ledger);
            std::fs::remove_dir_all(&dir)?;
        }
    }
    Ok(())
}

/// How long each write took.
async fn produce(ledger: &Arc<SqliteLedger>, producers: usize) -> Result<Vec<Duration>, LedgerDown> {
    let until = Instant::now() + LASTS;
    let tasks: Vec<_> = (0..producers).map(|_| tokio::spawn(one(ledger.clone(), until))).collect();
    let mut waits = Vec::new();
    for task in tasks {
        waits.extend(task.await.map_err(|error| LedgerDown(error.to_string()))??);
    }
    Ok(waits)
}

async fn one(ledger: Arc<SqliteLedger>, until: Instant) -> Result<Vec<Duration>, LedgerDown> {
    let caller = Arc::new(Caller::local(Access::everything()));
    let mut waits = Vec::new();
    while Instant::now() < until {
        let call = Call::new(caller.clone(), Surface::McpHttp, Target::Tool("git__status".into()), None);
        let began = Instant::now();
        let entry = ledger.open(Opening::new(&call)).await?;
        waits.push(began.elapsed());
        let began = Instant::now();
        ledger.close(entry, closing()).await?;
        waits.push(began.elapsed());
    }
    Ok(waits)
}

fn closing() -> Closing {
    Closing {
        at: ledger::now(),
        ending: Ending::Ran(Outcome::Done),
        item: Some("git:status".into()),
        source: SourceId::new("git").ok(),
        duration_us: 1_000,
        bytes_out: 100,
        layer: None,
        detail: None,
    }
}
