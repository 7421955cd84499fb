//! The arguments of `redflow import` and `redflow export`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

const AFTER_IMPORT_HELP: &str = "\
Examples:
  redflow import redflow-export.json               the array on stdout
  redflow import redflow-export.json -o flows.json
  redflow import tabs/*.json -o flows.json         join the files of `redflow export`

It reads Node-RED's array, {flows, rev}, {id, label, nodes, configs} and Redflow's {flow: {…}, exportedAt}.

Kept: every node with every property. Every property of `flow` becomes a property of the tab. A tab without an id gets \
the id that its nodes name, else a new one. Nodes without a tab are put on it. A node that several files contain \
unchanged appears once. Credentials stay in their nodes.
Lost: `exportedAt`, `rev` and other keys next to the nodes; stderr names them. The order follows the files: each tab, its \
nodes, its `configs`, its `subflows`.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_IMPORT_HELP)]
pub(crate) struct ImportOptions {
    /// Flow files of any shape; `-` for standard input
    #[arg(required = true, value_name = "FLOW")]
    pub(crate) flows: Vec<PathBuf>,
    /// The file for the array; `-` for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

const AFTER_EXPORT_HELP: &str = "\
Examples:
  redflow export flows.json -o tabs                one file per tab, in a folder
  redflow export flows.json --tab Home             one tab on stdout
  redflow export flows.json --to node-red          the array, from any shape

Redflow has one file per tab: {flow: {id, label, nodes, …}, exportedAt}. The files are named after the tabs.

Kept: every node with every property. Each file contains the nodes of its tab, the config nodes they use in `configs`, and \
the subflows they use in `subflows`. What no tab uses goes into the first file, unless --tab is given. Nodes whose tab is \
missing get a file with `isTab: false`. Redflow reads only `label`, `disabled`, `info` and `nodes`; `redflow import` \
reads all of it.
Lost: credentials, which stderr counts; `rev` and other keys next to the nodes, which stderr names; the order of nodes of \
different tabs.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// Exports of Redflow: one file per tab
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
    /// Export only this tab: its id or its label
    #[arg(long, value_name = "TAB")]
    pub(crate) tab: Option<String>,
    /// A file, `-` for standard output, or a folder, which is created for several tabs
    #[arg(long, short, value_name = "FILE|DIR", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Replace existing files
    #[arg(long)]
    pub(crate) force: bool,
}
