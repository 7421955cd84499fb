//! The arguments of `redflow models`.

use clap::{ArgGroup, Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ModelsOptions {
    #[command(subcommand)]
    pub(crate) command: ModelsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Call a model, and show what was sent, what came back and what its server is
    Test(ModelTestOptions),
}

const AFTER_TEST_HELP: &str = "\
Examples:
  redflow models test gpt --flow flow.json
  redflow models test --type openai-model --set model=gpt-6-luna
  redflow models test --type ollama-model --set model=gpt-oss:20b
  redflow models test --type model.azure.openai --set endpoint=https://NAME.openai.azure.com --set deployment=gpt-6-luna

  redflow models test --type openai-model --set baseURL=https://api.groq.com/openai/v1 --set model=MODEL \
--set 'apiKey=${GROQ_API_KEY}'

Keys come from the node's credentials or from OPENAI_API_KEY, ANTHROPIC_API_KEY, AZURE_OPENAI_API_KEY.

Exit code: 0 the model answered with a valid action, 1 it did not, 2 the model cannot be called.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_TEST_HELP, group = ArgGroup::new("which").required(true))]
pub(crate) struct ModelTestOptions {
    /// The id of a model node in a flow
    #[arg(value_name = "NODE", group = "which")]
    pub(crate) node: Option<String>,
    /// The flow file of the node
    #[arg(long, value_name = "FLOW", requires = "node")]
    pub(crate) flow: Option<PathBuf>,
    /// A type of model, without a flow
    #[arg(long = "type", value_name = "TYPE", group = "which")]
    pub(crate) type_name: Option<String>,
    /// Set a property of the node; can be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
