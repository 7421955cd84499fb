//! The arguments of `redflow tools`.

use super::shared::{DATA_HELP, PrivateOption, SidecarOption, TOKEN_FILE_HELP, URL_HELP};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// The calls that `redflow tools calls` lists, unless `--limit` says otherwise.
pub(crate) const DEFAULT_CALLS_LIMIT: u32 = 50;

const AFTER_HELP: &str = "\
Examples:
  redflow tools list                               the tools of the manifest
  redflow tools list --url http://127.0.0.1:1881   the tools of a sidecar and its flows
  redflow tools call weather.current --input '{\"city\": \"Bern\"}'
  redflow tools calls weather.current --follow --url http://127.0.0.1:1881
  redflow tools check tools.yaml

With REDFLOW_URL set, the commands use that sidecar, unless --data is given.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ToolsOptions {
    #[command(subcommand)]
    pub(crate) command: ToolsCommand,
    #[arg(long, value_name = "DIR", global = true, help = DATA_HELP)]
    pub(crate) data: Option<PathBuf>,
    #[arg(long, value_name = "URL", global = true, help = URL_HELP)]
    url: Option<String>,
    #[arg(long, value_name = "FILE", global = true, help = TOKEN_FILE_HELP)]
    token_file: Option<PathBuf>,
}

impl ToolsOptions {
    /// The private hosts that a call may reach.
    pub(crate) fn allow_private(&self) -> Vec<String> {
        match &self.command {
            ToolsCommand::Call(options) => options.private.allow_private.clone(),
            _ => Vec::new(),
        }
    }

    /// The sidecar options, which can be anywhere on the command line.
    pub(crate) fn sidecar(&self) -> SidecarOption {
        SidecarOption { url: self.url.clone(), token_file: self.token_file.clone() }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the tools
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show a tool: what it does, what it needs, and its schemas
    Show(ShowToolOptions),
    /// Call a tool once, outside a run
    Call(CallToolOptions),
    /// List the calls of a tool, the newest first
    Calls(ToolCallsOptions),
    /// Check a manifest of tools; report all problems at once
    Check(CheckManifestOptions),
}

#[derive(Debug, Args)]
pub(crate) struct ShowToolOptions {
    /// The id or the name of the tool
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CallToolOptions {
    /// The id or the name of the tool
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The input as a JSON object, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) input: String,
    #[command(flatten)]
    pub(crate) private: PrivateOption,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ToolCallsOptions {
    /// The id or the name of the tool
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The most calls to list
    #[arg(long, value_name = "N", default_value_t = DEFAULT_CALLS_LIMIT, conflicts_with = "follow", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
    /// Print calls as they end, until interrupted; only of a sidecar
    #[arg(long)]
    pub(crate) follow: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

const AFTER_CHECK_HELP: &str = "\
The manifest of a sidecar is tools.yaml or tools.json in its data directory.
Its JSON Schema: redflow schema tool-manifest

Exit code: 0 the manifest is valid, 1 it has problems, 2 it cannot be read.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_CHECK_HELP)]
pub(crate) struct CheckManifestOptions {
    /// The manifest: JSON if its name ends with `.json`, else YAML; `-` for standard input
    #[arg(value_name = "MANIFEST")]
    pub(crate) manifest: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
