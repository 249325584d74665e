//! Stories of the dial side: scripted sources, good and bad, over every transport.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod stage;
mod web;

mod greeting;
mod process;
mod standing;
mod talk;

mod http_legacy;
mod http_modern;
