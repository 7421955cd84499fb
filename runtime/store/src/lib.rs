//! Keeps runs and their events: in a SQLite database of their own directory, or in memory. Keeps the flow that
//! runs, too: as a file, with its credentials encrypted beside.
//!
//! Owns the data directory, its lock and its tables. Never looks into a journal line: what a line means is the
//! business of the crates that write and read them.
//!
//! One process drives the runs of a directory ([`Store`]); any number may look at them ([`Reader`]), leave
//! requests for the driver ([`ask`]) or remove what is over ([`prune`]) meanwhile.

mod backup;
mod chat_lines;
mod chat_rows;
mod chats;
mod credentials;
mod database;
mod directory;
mod drawer;
mod error;
mod event_body;
mod event_ring;
mod event_rows;
mod flow_file;
mod flow_queue;
mod journal;
#[cfg(test)]
#[allow(dead_code, reason = "the integration tests use the rest of it")]
#[path = "../tests/all/kit.rs"]
mod kit;
mod ledger;
mod lock;
mod memory;
mod node_red_file;
mod prune;
mod read;
mod reader;
mod requests;
mod row;
mod sealed_file;
mod store;
mod sum;
mod whole_file;
mod writer;

pub use backup::BackupReport;
pub use chats::MemoryChatStore;
pub use drawer::{MemoryUiStorage, UiStorageFile};
pub use event_ring::EventLogSettings;
pub use flow_file::FlowFile;
pub use lock::DriverLock;
pub use memory::MemoryStore;
pub use node_red_file::{MAX_NODE_RED_BYTES, NodeRedFile, place_node_red, read_node_red, write_node_red};
pub use prune::{Prune, PruneReport, prune};
pub use reader::{Reader, SoundPart};
pub use redflow_ports::RunFilter;
pub use requests::{RequestOutcome, request_outcome, submit_request};
pub use store::Store;
pub use writer::StoreStats;
