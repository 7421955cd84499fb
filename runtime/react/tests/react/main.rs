//! Whole runs of the machine, driven by scripts, through the public interface.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod classes;
mod errors;
mod feeding;
mod golden;
mod iterations;
mod journals;
mod properties;
mod resuming;
mod runs;
mod script;
mod sources;
mod traces;
