//! What the end-to-end tests are made of: the fixture server, and the means to start real processes and real peers.
//!
//! Nothing here is part of the product. Start with `fixture`.

pub mod fixture;
