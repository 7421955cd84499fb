//! The arguments of `redflow egress`.

use super::shared::PrivateOption;
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct EgressOptions {
    #[command(subcommand)]
    pub(crate) command: EgressCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EgressCommand {
    /// Say whether tools may reach an address, and which rule refuses it
    Test(EgressTestOptions),
}

const AFTER_TEST_HELP: &str = "\
Examples:
  redflow egress test https://api.example.org/v1
  redflow egress test http://nas.lan:8123 --allow-private nas.lan:8123

The name is looked up, but nothing is connected and nothing is sent. A running sidecar has its own settings.

Exit code: 0 allowed, 1 refused.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_TEST_HELP)]
pub(crate) struct EgressTestOptions {
    /// The address, as a model would write it
    #[arg(value_name = "URL", allow_hyphen_values = true)]
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) private: PrivateOption,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
