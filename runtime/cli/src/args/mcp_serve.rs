//! The arguments of `redflow mcp serve`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct McpServeOptions {
    /// The flow file whose agents and flow tools the client gets. Default: REDFLOW_FLOWS or the configuration, else
    /// flows.json in the data directory
    #[arg(long, value_name = "FILE")]
    pub(crate) flows: Option<PathBuf>,
    /// Store no runs and no events: they end with the process
    #[arg(long)]
    pub(crate) ephemeral: bool,
}
