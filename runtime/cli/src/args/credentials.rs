//! The arguments of `redflow credentials`.

use super::shared::DataOption;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct CredentialsOptions {
    #[command(subcommand)]
    pub(crate) command: CredentialsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CredentialsCommand {
    /// Import the credentials of the flow from Node-RED's file
    Import(CredentialsImportOptions),
    /// Export the credentials of the flow to a file for Node-RED
    Export(CredentialsExportOptions),
}

impl CredentialsCommand {
    pub(crate) fn target(&self) -> &CredentialsTarget {
        match self {
            Self::Import(options) => &options.target,
            Self::Export(options) => &options.target,
        }
    }
}

const AFTER_IMPORT_HELP: &str = "\
Examples:
  redflow credentials import ~/.node-red/flows_cred.json --secret-file secret.txt
  REDFLOW_CREDENTIAL_SECRET=… redflow credentials import flows_cred.json --flows flows.json
  redflow credentials import flows_cred.json      from a Node-RED with credentialSecret: false

The secret is `credentialSecret` in Node-RED's settings.js. If there is none, it is `_credentialSecret` in \
.config.runtime.json in Node-RED's user directory. With a wrong secret the file looks damaged: its format cannot tell \
the two apart.

Each node of the flow gets the credentials with its id, which replace those of the same name. Other credentials are left \
out. They are stored encrypted in the data directory, and no value is printed. Stop the sidecar first. Named pipes are \
not read, only standard input.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_IMPORT_HELP)]
pub(crate) struct CredentialsImportOptions {
    /// Node-RED's credentials file, such as flows_cred.json; `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) target: CredentialsTarget,
}

const AFTER_EXPORT_HELP: &str = "\
Examples:
  redflow credentials export flows_cred.json --secret-file secret.txt
  redflow credentials export flows_cred.json --plain      for a Node-RED with credentialSecret: false

Put the file next to Node-RED's flow file and set the same `credentialSecret` in settings.js. Only the owner can read the \
file. It does not contain keys that were entered in the Redflow UI, because the sidecar stores them separately; the \
command prints how many there are.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_EXPORT_HELP)]
pub(crate) struct CredentialsExportOptions {
    /// The file to write
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Write the credentials unencrypted
    #[arg(long, conflicts_with = "secret_file")]
    pub(crate) plain: bool,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) target: CredentialsTarget,
}

/// The flow whose credentials are meant, and the secret of Node-RED's file.
#[derive(Debug, Args)]
pub(crate) struct CredentialsTarget {
    /// The file with Node-RED's secret. Default: the secret in REDFLOW_CREDENTIAL_SECRET
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// The flow file. Default: REDFLOW_FLOWS or the configuration, else flows.json in the data directory
    #[arg(long, value_name = "FILE")]
    pub(crate) flows: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data: DataOption,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
