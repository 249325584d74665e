//! What the end-to-end tests are made of: the fixture server, and the means to start real processes and real peers.
//!
//! `crib` starts the binary under test, `upstream` the fixture, `peers` brings servers and clients from the
//! registries, `child` is any process, `wire` and `session` speak plain JSON-RPC to what was started. Nothing here is part of the
//! product.

pub mod child;
pub mod conformance;
pub mod crib;
pub mod fixture;
pub mod patience;
pub mod peers;
pub mod program;
pub mod session;
pub mod upstream;
pub mod wire;
