//! Runs: their journals and rows, in the database or in memory.

pub(crate) mod batch;
mod checksum;
pub(crate) mod journal;
pub(crate) mod memory;
pub(crate) mod queries;
pub(crate) mod removal;
mod row;
pub(crate) mod run_tables;
mod search;
mod stats;
mod tree;
pub(crate) mod usage;
