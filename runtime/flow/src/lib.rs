//! Node-RED flow JSON: import, resolve, check, export.
//!
//! Each stage is its own type: [`RawFlow`] (as written) → [`ResolvedFlow`] (subflows expanded, links joined,
//! disabled nodes gone) → [`CheckedFlow`] (agents with everything they bind, and every problem at once).
//! Never does I/O: bytes and environment values come in as arguments.

mod check;
mod connect;
mod credentials;
mod diff;
mod env;
mod graph;
mod raw;
mod redflow_format;
mod resolve;

pub use check::{
    CheckOptions, CheckedAgent, CheckedFlow, ReadyAgent, ReadyTool, Verdict, check_bytes, check_flow,
};
pub use diff::differences;
pub use env::resolve_process_env;
pub use raw::{RawFlow, RawNode};
pub use redflow_format::{TabFile, by_tab, join, tab_names};
pub use resolve::{NodeIx, ResolvedFlow, ResolvedNode, Wire, resolve_flow};
