//! The arguments of `redflow flows`.

use clap::{Args, Subcommand, ValueEnum};
use redflow_node_red::DeployType;
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Examples:
  redflow flows pull flows.json --node-red http://127.0.0.1:1880
  redflow flows diff flows.json --node-red http://127.0.0.1:1880
  redflow flows push flows.json --node-red http://127.0.0.1:1880

The file is {flows, rev}; `rev` is Node-RED's revision of the pulled flow. A push succeeds only if Node-RED still has this \
revision, and writes the new `rev` into the file. If Node-RED requires users to log in, set NODE_RED_TOKEN to an access \
token; there is no flag for it. Node-RED never returns credentials, so none are pulled.

Exit codes: 0 success, or nothing differs; 1 something differs, or the flow has errors; 2 any other error.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct FlowsOptions {
    #[command(subcommand)]
    pub(crate) command: FlowsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FlowsCommand {
    /// Write the flow of Node-RED to a file or to standard output
    Pull(PullOptions),
    /// Deploy a flow file to Node-RED, if Node-RED still has the flow it is based on
    Push(PushOptions),
    /// Compare a flow file with the flow of Node-RED; prints names of properties, never values
    Diff(DiffOptions),
}

#[derive(Debug, Args)]
pub(crate) struct NodeRedOption {
    /// The address of Node-RED with its httpAdminRoot, such as http://127.0.0.1:1880. Default:
    /// REDFLOW_NODE_RED or the configuration
    #[arg(long, value_name = "URL")]
    pub(crate) node_red: Option<String>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PullOptions {
    /// The file to write; `-` for standard output
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
    /// Replace a file with other content
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) target: NodeRedOption,
}

#[derive(Debug, Args)]
pub(crate) struct PushOptions {
    /// The flow file, of any shape; `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// What Node-RED restarts
    #[arg(long = "type", value_enum, default_value = "nodes")]
    pub(crate) how: DeployTypeName,
    /// Replace any flow that Node-RED has now; the differences are printed first
    #[arg(long)]
    pub(crate) force: bool,
    /// Deploy the flow even if it has errors
    #[arg(long)]
    pub(crate) no_check: bool,
    #[command(flatten)]
    pub(crate) target: NodeRedOption,
}

#[derive(Debug, Args)]
pub(crate) struct DiffOptions {
    /// The flow file, of any shape; `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) target: NodeRedOption,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum DeployTypeName {
    /// Everything
    Full,
    /// Changed nodes
    Nodes,
    /// Tabs with changes
    Flows,
}

impl From<DeployTypeName> for DeployType {
    fn from(name: DeployTypeName) -> Self {
        match name {
            DeployTypeName::Full => Self::Full,
            DeployTypeName::Nodes => Self::Nodes,
            DeployTypeName::Flows => Self::Flows,
        }
    }
}

impl FlowsOptions {
    /// The value of --node-red, for each command.
    pub(crate) fn node_red(&self) -> Option<&String> {
        let target = match &self.command {
            FlowsCommand::Pull(options) => &options.target,
            FlowsCommand::Push(options) => &options.target,
            FlowsCommand::Diff(options) => &options.target,
        };
        target.node_red.as_ref()
    }
}
