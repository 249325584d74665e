//! Stories of clients at the counter: both eras over HTTP and on a pipe, with in-memory sources behind.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod annotated;
mod desk;
mod door;
mod errors;
mod legacy;
mod modern;
mod pipe;
mod watching;
