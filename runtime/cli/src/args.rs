//! What can be typed.

use clap::{Args, Parser, Subcommand, ValueEnum};
use redflow_contract::flow::Profile;
use std::path::PathBuf;

/// Checks and runs the agents in Node-RED flows.
#[derive(Debug, Parser)]
#[command(name = "redflow", version, after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "Exit codes: 0 well, 1 the flow or the run is at fault, 2 the input cannot be used, \
3 a run waits for a person.\nEvery code in a message has a page: redflow explain CODE";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check flows: every wire, every binding, every property, all problems at once
    Check(CheckOptions),
    /// Run an agent, or fire an inject node, and watch the iterations
    Run(RunOptions),
    /// Prove that a journal is what the machine does with those facts
    Replay(ReplayOptions),
    /// Explain a code, or list them all
    Explain(ExplainOptions),
    /// Print a JSON Schema, or list them all
    Schema(SchemaOptions),
    /// Write the TypeScript types into a folder
    Types(TypesOptions),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ProfileName {
    /// Agent Core's schema to the letter
    Strict,
    /// What a fresh Redflow node lacks takes its default, each with a warning
    Redflow,
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Self {
        match name {
            ProfileName::Strict => Self::Strict,
            ProfileName::Redflow => Self::Redflow,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// Flow files: Node-RED or Redflow exports; `-` for standard input
    #[arg(required = true, value_name = "FLOW")]
    pub(crate) flows: Vec<PathBuf>,
    /// How strictly agents are read
    #[arg(long, value_enum, default_value = "strict")]
    pub(crate) profile: ProfileName,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Let warnings fail the check too
    #[arg(long)]
    pub(crate) deny_warnings: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// The flow file; `-` for standard input
    #[arg(value_name = "FLOW")]
    pub(crate) flow: PathBuf,
    /// The agent to run or the inject node to fire; may be left out if there is one agent
    #[arg(long, value_name = "ID")]
    pub(crate) node: Option<String>,
    /// The payload, as JSON: a value, @FILE, or - for standard input
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) input: Option<String>,
    /// How strictly agents are read
    #[arg(long, value_enum, default_value = "strict")]
    pub(crate) profile: ProfileName,
    /// Print the message that left port 3, as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the run's journal to a new file
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// Do not show the timeline
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayOptions {
    /// The journal file
    #[arg(value_name = "JOURNAL")]
    pub(crate) journal: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainOptions {
    /// The code, such as EDGE_KIND_MISMATCH
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaOptions {
    /// The schema, such as agent-core.react
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TypesOptions {
    /// The folder; it is made if it is not there
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}
