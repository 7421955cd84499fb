//! The arguments of `redflow tools`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ToolsOptions {
    #[command(subcommand)]
    pub(crate) command: ToolsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// Check a manifest of tools; report all problems at once
    Check(CheckManifestOptions),
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
