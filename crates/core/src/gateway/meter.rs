//! Counts of calls, for `GET /metrics`. Numbers only; the ledger has the stories.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use crate::id::SourceId;

/// Upper bounds of the duration buckets, in microseconds.
pub const BOUNDS_US: [u64; 12] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000, 10_000_000, 60_000_000];

/// One series: a source (none: the target was not found) and an outcome.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub calls: u64,
    pub total_us: u64,
    /// Calls at or under each bound of [`BOUNDS_US`], cumulative.
    pub within: [u64; BOUNDS_US.len()],
}

type Series = (Option<SourceId>, &'static str);

#[derive(Default)]
pub struct Meter(Mutex<BTreeMap<Series, Tally>>);

impl Meter {
    pub(super) fn note(&self, source: Option<&SourceId>, outcome: &'static str, duration_us: u64) {
        let mut series = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tally = series.entry((source.cloned(), outcome)).or_default();
        tally.calls += 1;
        tally.total_us += duration_us;
        for (count, bound) in tally.within.iter_mut().zip(BOUNDS_US) {
            *count += u64::from(duration_us <= bound);
        }
    }

    pub fn read(&self) -> Vec<(Option<SourceId>, &'static str, Tally)> {
        let series = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        series.iter().map(|((source, outcome), tally)| (source.clone(), *outcome, tally.clone())).collect()
    }
}
