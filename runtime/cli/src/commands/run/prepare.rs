//! Opens and reads what a run needs, before anything runs.

use crate::args::RunOptions;
use crate::context::AppContext;
use crate::diagnostics::print_diagnostics;
use crate::errors::{from_store, print_with_help};
use crate::exit::Exit;
use crate::input::read_json;
use crate::journal_files::JournalFiles;
use crate::loaded_flow::LoadedFlow;
use crate::terminal::fail;
use redflow_store::Store;
use serde_json::Value;
use std::path::Path;

pub(super) fn read_flow(context: &AppContext, flow: &Path) -> Result<LoadedFlow, Exit> {
    LoadedFlow::read(context, flow).map_err(|problems| {
        print_diagnostics(Some(flow), problems);
        Exit::Unusable
    })
}

pub(super) fn read_input(options: &RunOptions) -> Result<Option<Value>, Exit> {
    let input = options.input.as_deref().map(|text| read_json(text, "input"));
    input.transpose().map_err(|text| fail(&text))
}

pub(super) fn open_journals(options: &RunOptions) -> Result<Option<JournalFiles>, Exit> {
    options.journal.as_deref().map(JournalFiles::create).transpose().map_err(|text| fail(&text))
}

/// Opens the data directory to drive its runs.
pub(super) fn open_store(options: &RunOptions, context: &AppContext) -> Result<Store, Exit> {
    let log = context.settings.event_log();
    context.settings.data_dir().and_then(|dir| Store::open_with_log(&dir, log)).map_err(|error| {
        // A run that is to be resumed is in no other directory.
        let other = || {
            "use another --data DIR, or --ephemeral to store nothing; with --url URL the sidecar that has the directory \
             runs its flow"
                .to_owned()
        };
        print_with_help(from_store(error), options.resume.is_none().then(other).as_slice())
    })
}
