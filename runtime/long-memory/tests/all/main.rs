//! Long memories over a real archive.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod consolidation;
mod junk;
mod kit;
mod limits;
mod recall;
mod refusals;
mod spans;
mod storing;
mod tool_entries;
