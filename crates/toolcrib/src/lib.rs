//! The parts of the `toolcrib` binary that can be tested without starting it.
//!
//! [`config`] is the one file a person writes; [`clients`] reads and writes the config files of MCP clients.
//! Nothing here opens a socket. The command line over it is `main.rs`.

pub mod config;

pub mod clients;
