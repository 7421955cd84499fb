//! What can be typed after `credentials`.

use crate::data_dir::DataOption;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct CredentialsOptions {
    #[command(subcommand)]
    pub(crate) command: CredentialsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CredentialsCommand {
    /// Take over the credentials of a flow out of Node-RED's file
    Import(ImportOptions),
    /// Write the credentials of the flow as Node-RED's file
    Export(ExportOptions),
}

impl CredentialsCommand {
    pub(crate) fn place(&self) -> &PlaceOptions {
        match self {
            Self::Import(options) => &options.place,
            Self::Export(options) => &options.place,
        }
    }
}

const AFTER_IMPORT_HELP: &str = "\
Examples:
  redflow credentials import ~/.node-red/flows_cred.json --secret-file secret.txt
  REDFLOW_CREDENTIAL_SECRET=… redflow credentials import flows_cred.json --flows flows.json
  redflow credentials import flows_cred.json      of a Node-RED with credentialSecret: false

The secret is `credentialSecret` in Node-RED's settings.js; if there is none, `_credentialSecret` in .config.runtime.json \
in its user directory. Node-RED's form cannot tell a wrong secret from a damaged file.

Credentials go to the nodes of the flow that have their ids, over what those have already; others are left out. They are \
kept encrypted in the data directory. The sidecar must not run meanwhile. No value is shown. Of pipes only standard input \
is read.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_IMPORT_HELP)]
pub(crate) struct ImportOptions {
    /// Node-RED's credentials file, such as flows_cred.json; `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) place: PlaceOptions,
}

const AFTER_EXPORT_HELP: &str = "\
Examples:
  redflow credentials export flows_cred.json --secret-file secret.txt
  redflow credentials export flows_cred.json --plain      for a Node-RED with credentialSecret: false

Node-RED reads it beside the flow file, with the same `credentialSecret` in its settings.js. The file is for its owner \
alone. Keys that were entered in the Redflow UI are not in it: the sidecar keeps them apart from the flow, and says how \
many there are.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_EXPORT_HELP)]
pub(crate) struct ExportOptions {
    /// The file to write
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Write the credentials in the open
    #[arg(long, conflicts_with = "secret_file")]
    pub(crate) plain: bool,
    /// Write over a file that is there
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) place: PlaceOptions,
}

#[derive(Debug, Args)]
pub(crate) struct PlaceOptions {
    /// The file with Node-RED's secret. Without it the one in REDFLOW_CREDENTIAL_SECRET
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// The flow file. Without it REDFLOW_FLOWS or the configuration says so, else flows.json in the data directory
    #[arg(long, value_name = "FILE")]
    pub(crate) flows: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data: DataOption,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
