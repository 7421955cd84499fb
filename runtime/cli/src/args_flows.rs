//! What can be typed after `flows`.

use clap::{Args, Subcommand, ValueEnum};
use redflow_node_red::DeployType;
use std::path::PathBuf;

const AFTER_FLOWS_HELP: &str = "\
Examples:
  redflow flows pull flows.json --node-red http://127.0.0.1:1880
  redflow flows diff flows.json --node-red http://127.0.0.1:1880
  redflow flows push flows.json --node-red http://127.0.0.1:1880

The file is {flows, rev}: `rev` is what Node-RED calls the flow that was pulled. A push takes place only if Node-RED still \
has that flow, and writes the new `rev` into the file. Where Node-RED asks for users, give an access token of it in \
NODE_RED_TOKEN; it is never typed. Node-RED never gives credentials away, so none are pulled.

Exit codes: 0 well, or nothing differs; 1 something differs, or the flow has errors; 2 anything else.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_FLOWS_HELP)]
pub(crate) struct FlowsOptions {
    #[command(subcommand)]
    pub(crate) command: FlowsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FlowsCommand {
    /// Fetch the flow that Node-RED has, into a file or to standard output
    Pull(PullOptions),
    /// Deploy a flow file in Node-RED, in the place of the flow it was made from
    Push(PushOptions),
    /// Tell what a flow file has that Node-RED has not, and the other way round. Names of properties are told, values never
    Diff(DiffOptions),
}

/// Which Node-RED, and how it is told.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The Node-RED, such as http://127.0.0.1:1880; its httpAdminRoot is part of it. Without it REDFLOW_NODE_RED or the
    /// configuration says so
    #[arg(long, value_name = "URL")]
    pub(crate) node_red: Option<String>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PullOptions {
    /// Where it goes; `-` for standard output
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
    /// Write over a file that holds something else
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct PushOptions {
    /// The flow file, of any shape; `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// What is stopped and started anew
    #[arg(long = "type", value_enum, default_value = "nodes")]
    pub(crate) how: How,
    /// Put it in the place of whatever flow Node-RED has now. What differs is told first
    #[arg(long)]
    pub(crate) force: bool,
    /// Deploy it though it has errors
    #[arg(long)]
    pub(crate) no_check: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct DiffOptions {
    /// The flow file, of any shape; `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum How {
    /// Everything
    Full,
    /// Changed nodes
    Nodes,
    /// Tabs with changes
    Flows,
}

impl From<How> for DeployType {
    fn from(how: How) -> Self {
        match how {
            How::Full => Self::Full,
            How::Nodes => Self::Nodes,
            How::Flows => Self::Flows,
        }
    }
}

impl FlowsOptions {
    /// The address, whichever command it was typed with.
    pub(crate) fn node_red(&self) -> Option<&String> {
        let place = match &self.command {
            FlowsCommand::Pull(options) => &options.place,
            FlowsCommand::Push(options) => &options.place,
            FlowsCommand::Diff(options) => &options.place,
        };
        place.node_red.as_ref()
    }
}
