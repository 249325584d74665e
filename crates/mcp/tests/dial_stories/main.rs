//! Stories of the dial side: scripted sources, good and bad, over every transport.

mod stage;

mod greeting;
mod process;
mod talk;
