//! The MCP tongue, whole, in both eras: `serve` listens, `dial` connects.
//!
//! An own thin layer on raw JSON: envelopes, ids, `_meta` and headers are read and written here; everything else
//! passes as the bytes it came in. Start at [`wire`], then `serve::http` and `dial::stdio`.

pub mod wire;

pub mod version;

pub mod meta;
pub mod param_headers;

pub mod codes;

pub mod serve;

pub mod dial;
