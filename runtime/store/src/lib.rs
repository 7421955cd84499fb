//! Stores runs and their events: in a SQLite database in a data directory, or in memory. Also stores the
//! active flow as a file, with its credentials encrypted in a second file, the manifest of tools, and
//! the pins and tokens of MCP servers.
//!
//! Owns the data directory, its lock and its tables. Never reads the meaning of a journal line: the crates
//! that write and read journals do that.
//!
//! One process drives the runs of a directory ([`Store`]). Meanwhile any number of processes may read them
//! ([`Reader`]), submit requests to the driver ([`submit_request`]) or remove runs that are over ([`prune`]).
//!
//! - Run events are written in the transaction of their batch, flow events in rows of their own. The row number is
//!   the position; a cursor is the log's id and a position. An event can be read once its transaction is on the
//!   disk. The log keeps its newest events in a bounded ring. A subscriber that is further behind reads from the
//!   database.
//! - What runs have used is summed up until the transaction ends. Costs are stored in billionths, because a short
//!   call of a cheap model costs less than one millionth. The sums keep the newest 400 days with runs, so a clock
//!   that was ahead removes one day, not all.
//! - A run that hangs the process has a negative `driver` in its row. The next start leaves it alone (`RUN_HUNG`).
//! - The manifest is strict. Its YAML is read by `granit-parser`, the parser below serde-saphyr, because the types
//!   of serde-saphyr bring six more packages.

mod backup;
mod chats;
mod database;
mod directory;
mod error;
mod events;
mod files;
#[cfg(test)]
#[allow(dead_code, reason = "the integration tests use the rest of it")]
#[path = "../tests/all/kit.rs"]
mod kit;
mod lock;
mod private_file;
mod prune;
mod reader;
mod recount;
mod removed_runs;
mod requests;
mod runs;
mod store;
mod write_queue;
mod writer;

pub use backup::{BackupReport, backup_archive};
pub use chats::memory::MemoryChatStore;
pub use events::log::EventLogSettings;
pub use files::definition_folder::MAX_TOOL_BYTES;
pub use files::flow_file::FlowFile;
pub use files::key_file::{ArchiveKeyFile, parse_key};
pub use files::manifest_files::ManifestFiles;
pub use files::manifest_text::{MAX_MANIFEST_BYTES, MAX_MANIFEST_DEPTH, ManifestFormat, parse_manifest};
pub use files::mcp_files::{MAX_PIN_BYTES, MAX_PINNED_SERVERS, McpFiles, MemoryMcpStore};
pub use files::node_red_file::{
    ExistingFile, MAX_NODE_RED_BYTES, NodeRedCredentials, decode_node_red, encode_node_red, place_node_red,
};
pub use files::ui_storage::{MemoryUiStorage, UiStorageFile};
pub use lock::{Driver, DriverLock};
pub use prune::{PruneReport, PruneRequest, prune};
pub use reader::{IntactPart, Reader};
pub use recount::{CountRun, Progress, RecountReport, recount};
pub use redflow_ports::RunFilter;
pub use requests::{RequestOutcome, request_outcome, submit_request};
pub use runs::memory::MemoryStore;
pub use store::Store;
pub use writer::StoreStats;
