//! Keeps runs: in a SQLite database of their own directory, or in memory.
//!
//! Owns the data directory, its lock and its tables. Never looks into a journal line: what a line means is the
//! business of the crates that write and read them.
//!
//! One process drives the runs of a directory ([`Store`]); any number may look at them ([`Reader`]), leave
//! requests for the driver ([`ask`]) or remove what is over ([`prune`]) meanwhile.

mod backup;
mod database;
mod directory;
mod error;
mod journal;
#[cfg(test)]
#[allow(dead_code, reason = "the integration tests use the rest of it")]
#[path = "../tests/all/kit.rs"]
mod kit;
mod ledger;
mod lock;
mod memory;
mod prune;
mod read;
mod reader;
mod requests;
mod row;
mod store;
mod sum;
mod writer;

pub use backup::BackupReport;
pub use memory::MemoryStore;
pub use prune::{Prune, PruneReport, prune};
pub use reader::{ListFilter, Reader, SoundPart};
pub use requests::{Answer, answer_of, ask};
pub use store::Store;
pub use writer::StoreStats;
