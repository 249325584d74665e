//! The domain of the crib: who asks, what there is, who may, and what is written down.
//!
//! Nothing here opens a socket, a file or a process, and nothing here knows a wire format: the tongues
//! (`mcp`, `rest`) turn bytes into a [`call::Call`], the keepers (`store`) stand behind the ports.
//! Read [`call`] and [`gateway`] first; the rest follows in the order of the lines below.

pub mod call;
pub mod gateway;

pub mod catalog;
pub mod policy;

pub mod ledger;

pub mod caller;

pub mod doorway;

pub mod source;

pub mod builtin;

pub mod news;
pub mod trace;

pub mod id;

pub mod error;

pub mod raw;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
