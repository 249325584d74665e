//! Reads the closing lines of `cargo test` and `cargo nextest`, and adds them up.
//!
//! It never decides whether a step passed: the exit status does (`step.rs`).

use std::ops::AddAssign;

/// How many tests passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl Tally {
    /// The numbers of one closing line, or `None` for any other line.
    pub fn of_line(line: &str) -> Option<Tally> {
        let line = line.trim();
        let is_closing =
            line.starts_with("test result: ") || (line.starts_with("Summary [") && line.contains(" run: "));
        if !is_closing {
            return None;
        }
        // nextest tells tests over their time apart from failed ones; both are red.
        let failed =
            number_before(line, "failed").unwrap_or(0) + number_before(line, "timed out").unwrap_or(0);
        Some(Tally { passed: number_before(line, "passed").unwrap_or(0), failed })
    }

    pub fn is_empty(&self) -> bool {
        self.passed == 0 && self.failed == 0
    }
}

/// The number that stands right before `word`, such as 5 in `5 passed`.
fn number_before(line: &str, word: &str) -> Option<u64> {
    let (before, _) = line.split_once(&format!(" {word}"))?;
    before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn cargo_test_lines_are_counted() {
        let line = "test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.0s";
        assert_eq!(Tally::of_line(line), Some(Tally { passed: 5, failed: 2 }));
    }

    #[test]
    fn nextest_lines_are_counted() {
        let clean = "     Summary [   0.010s] 12 tests run: 12 passed, 1 skipped";
        let mixed = "     Summary [   3.2s] 9 tests run: 6 passed (1 slow), 2 failed, 1 timed out, 0 skipped";
        assert_eq!(Tally::of_line(clean), Some(Tally { passed: 12, failed: 0 }));
        assert_eq!(Tally::of_line(mixed), Some(Tally { passed: 6, failed: 3 }));
    }

    #[test]
    fn other_lines_are_not_counted() {
        assert_eq!(Tally::of_line("test a::b ... ok"), None);
        assert_eq!(Tally::of_line("Summary of 3 failed"), None);
        assert_eq!(Tally::of_line("test result of yesterday"), None);
    }
}
