//! The `toolcrib` binary, as a library so that its parts can be tested.
//!
//! Read [`assemble`] first: the one place where ports meet implementations. [`serve`] runs the crib, [`config`] is the
//! one file a person writes, [`clients`] reads and writes the config files of MCP clients.

pub mod assemble;

pub mod serve;

pub mod listen;

pub mod telemetry;

pub mod banner;

pub mod config;

pub mod clients;

pub mod cli;

pub mod output;
pub mod reach;
