//! The real binary in a folder of its own: what it prints, where, and the code it ends with. It never sees the config or
//! the home of whoever runs the tests.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

mod program;

mod words;

mod settings;

mod clients;

mod tools;

mod crib;
