//! What the servers need of the process.

use crate::times::ServerTimes;
use redflow_egress::Egress;
use redflow_ports::{Clock, McpStore, Meter};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// What the servers need of the process.
pub struct HubSettings {
    /// The way to addresses.
    pub egress: Egress,
    /// Keeps pins and tokens.
    pub store: Arc<dyn McpStore>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Counts the calls.
    pub meter: Arc<dyn Meter>,
    /// The folder with a folder per program; none if programs cannot be started.
    pub folder: Option<PathBuf>,
    /// The command that confines a program; none if this system cannot.
    pub confine: Option<Vec<OsString>>,
    /// How long servers may take.
    pub times: ServerTimes,
}
