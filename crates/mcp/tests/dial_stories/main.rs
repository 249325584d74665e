//! Stories of the dial side: scripted sources, good and bad, over every transport.

mod stage;
mod web;

mod greeting;
mod process;
mod talk;

mod http_legacy;
mod http_modern;
