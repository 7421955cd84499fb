//! What can be typed after `import` and `export`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

const AFTER_IMPORT_HELP: &str = "\
Examples:
  redflow import redflow-export.json               the array, on stdout
  redflow import redflow-export.json -o flows.json
  redflow import tabs/*.json -o flows.json         what `redflow export` wrote, one flow again

It takes Node-RED's array, {flows, rev}, {id, label, nodes, configs} and Redflow's {flow: {…}, exportedAt}.

What survives: every node with every property; every property of `flow`, as one of the tab. A tab \
without an id gets the one its nodes name, else a new one; nodes that name no tab are on it. A node that stands in \
several files, the same in all, stands in the array once. Credentials in the files stay in the nodes.
What does not: `exportedAt`, `rev`, and whatever else stands beside the nodes, which is named on stderr. The order is \
that of the files: each tab, its nodes, its `configs`, its `subflows`.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_IMPORT_HELP)]
pub(crate) struct ImportOptions {
    /// Flow files of any shape; `-` for standard input
    #[arg(required = true, value_name = "FLOW")]
    pub(crate) flows: Vec<PathBuf>,
    /// Where the array goes; `-` for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Write over a file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

const AFTER_EXPORT_HELP: &str = "\
Examples:
  redflow export flows.json -o tabs                one file for each tab, in a folder
  redflow export flows.json --tab Home             one tab, on stdout
  redflow export flows.json --to node-red          the array, whatever shape it had

Redflow has one file for each tab: {flow: {id, label, nodes, …}, exportedAt}. Files are named after the tabs.

What survives: every node with every property. Beside the nodes of a tab go the config nodes it uses, in `configs`, and the subflows it \
uses with what is in them, in `subflows`; what no tab uses goes along with the first tab, unless --tab names one. \
Nodes whose tab is not in the flow get a file with `isTab: false`. Redflow itself reads `label`, `disabled`, `info` and \
`nodes`; `redflow import` takes all of it back.
What does not: credentials, which are counted on stderr; `rev` and whatever else stands beside the nodes, which is \
named there; the order of nodes of different tabs.";

/// The shape a flow is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// Redflow's export: one file for each tab
    Redflow,
    /// Node-RED's array
    NodeRed,
}

#[derive(Debug, Args)]
#[command(after_help = AFTER_EXPORT_HELP)]
pub(crate) struct ExportOptions {
    /// The flow file, of any shape; `-` for standard input
    #[arg(value_name = "FLOW")]
    pub(crate) flow: PathBuf,
    /// The shape to write
    #[arg(long, value_enum, default_value = "redflow")]
    pub(crate) to: Shape,
    /// Only this tab: its id, or its label
    #[arg(long, value_name = "TAB")]
    pub(crate) tab: Option<String>,
    /// A file, `-` for standard output, or a folder, which is made if there are several tabs
    #[arg(long, short, value_name = "FILE|DIR", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Write over files that are there
    #[arg(long)]
    pub(crate) force: bool,
}
