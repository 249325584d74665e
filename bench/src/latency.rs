//! Latencies of one measurement: every one is kept, so a percentile is a fact and not an estimate.

use std::time::Duration;

/// Durations in nanoseconds, sorted once.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    sorted: Vec<u64>,
}

impl Latencies {
    pub fn new(mut nanoseconds: Vec<u64>) -> Latencies {
        nanoseconds.sort_unstable();
        Latencies { sorted: nanoseconds }
    }

    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// The smallest value that at least `share` (0 to 1) of all values do not exceed; zero when there are none.
    pub fn percentile(&self, share: f64) -> Duration {
        let rank = (share * self.sorted.len() as f64).ceil() as usize;
        let index = rank.saturating_sub(1).min(self.sorted.len().saturating_sub(1));
        Duration::from_nanos(self.sorted.get(index).copied().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::Latencies;

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let latencies = Latencies::new((1..=100).rev().collect());
        assert_eq!(latencies.percentile(0.5).as_nanos(), 50);
        assert_eq!(latencies.percentile(0.99).as_nanos(), 99);
        assert_eq!(latencies.percentile(1.0).as_nanos(), 100);
        assert_eq!(latencies.percentile(0.0).as_nanos(), 1);
        assert_eq!(Latencies::default().percentile(0.5).as_nanos(), 0);
    }
}
