//! House keeping for the workspace: what `cargo xtask` runs, and the tidy rules.
//!
//! Never part of the product: no crate of the house depends on it. Start at `suite.rs` for what CI runs,
//! at `tidy.rs` for the rules.

pub mod licences;
pub mod place;
pub mod speed;
pub mod step;
pub mod suite;
pub mod tally;
pub mod tidy;
