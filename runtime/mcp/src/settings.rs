//! What the servers need of the process.

use crate::times::ServerTimes;
use redflow_contract::mcp::McpConfinement;
use redflow_egress::Egress;
use redflow_ports::{Clock, McpStore, Meter};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

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
    /// How programs are confined.
    pub confine: Confiner,
    /// How long servers may take.
    pub times: ServerTimes,
}

/// The command that confines a program, and what the system has for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfineCommand {
    /// The words before the paths and the program.
    pub words: Vec<OsString>,
    /// The version of Landlock.
    pub landlock: u32,
    /// Whether programs get namespaces.
    pub namespaces: bool,
}

/// Knows how programs are confined. It finds it out when it is needed first, because that starts a process.
pub struct Confiner(LazyLock<Option<ConfineCommand>, Box<dyn FnOnce() -> Option<ConfineCommand> + Send>>);

impl Confiner {
    /// `find` gives none if this system cannot confine programs.
    #[must_use]
    pub fn new(find: impl FnOnce() -> Option<ConfineCommand> + Send + 'static) -> Self {
        Self(LazyLock::new(Box::new(find)))
    }

    /// Confines nothing.
    #[must_use]
    pub fn none() -> Self {
        Self::new(|| None)
    }

    pub(crate) fn command(&self) -> Option<&ConfineCommand> {
        self.0.as_ref()
    }

    /// How far programs are confined.
    #[must_use]
    pub fn confinement(&self) -> McpConfinement {
        let command = self.command();
        McpConfinement::of(
            command.map(|command| command.landlock),
            command.is_some_and(|command| command.namespaces),
        )
    }
}
