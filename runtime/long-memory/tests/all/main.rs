//! Long memories over a real archive.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bounds;
mod consolidation;
mod junk;
mod kit;
mod limits;
mod recall;
mod refusals;
mod repetitions;
mod spans;
mod storing;
mod times;
mod tool_entries;
