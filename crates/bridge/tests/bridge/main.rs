//! The bridge whole, between a client's pipes and a crib over real HTTP.
//!
//! `crib.rs` is the far side, `client.rs` the near one; the stories are told per era and for the ends.

// The exceptions of `clippy.toml` reach only functions marked `#[test]`, and most of this is beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod client;
mod crib;
mod ends;
mod legacy;
mod modern;
