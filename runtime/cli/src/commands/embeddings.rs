//! `redflow embeddings install`: copies the weights of MiniLM into the data directory.

use crate::args::{EmbeddingsCommand, EmbeddingsOptions};
use crate::context::{AppContext, MODELS_DIR};
use crate::errors::{print_archive_error, print_store_error};
use crate::exit::CommandResult;
use crate::terminal::print_text;
use redflow_models::embed::{MINILM_DIR, install_minilm};

pub(crate) fn embeddings(options: &EmbeddingsOptions, context: &AppContext) -> CommandResult {
    let EmbeddingsCommand::Install { from } = &options.command;
    let data = context.settings.data_dir().map_err(print_store_error)?;
    let to = data.join(MODELS_DIR).join(MINILM_DIR);
    install_minilm(from, &to).map_err(print_archive_error)?;
    Ok(print_text(&format!("installed minilm in {}\n", to.display())))
}
