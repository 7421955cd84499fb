//! `redflow runs`: what is kept, and what can be done about it.

mod act;
mod calls;
mod list;
mod prune;
mod resolve;
mod show;

pub(crate) use prune::backup;

use crate::Exit;
use crate::args::Arguments;
use crate::args_runs::{RunsCommand, RunsOptions};
use clap::CommandFactory as _;
use clap::error::ErrorKind;

pub(crate) fn runs(options: &RunsOptions) -> Exit {
    if let Some(text) = options.misplaced() {
        let mut command = Arguments::command();
        command.build();
        let runs =
            command.find_subcommand_mut("runs").map(|runs| runs.error(ErrorKind::ArgumentConflict, text));
        let _ = runs.map(|error| error.print());
        return Exit::Unusable;
    }
    let data = &options.data();
    match &options.command {
        None => list::list(&options.list, data),
        Some(RunsCommand::List(options)) => list::list(options, data),
        Some(RunsCommand::Show(options)) => show::show(options, data),
        Some(RunsCommand::Events(options)) => show::events(options, data),
        Some(RunsCommand::Export(options)) => show::export(options, data),
        Some(RunsCommand::Cancel(options)) => act::cancel(options, data),
        Some(RunsCommand::Resolve(options)) => resolve::resolve(options, data),
        Some(RunsCommand::Prune(options)) => prune::prune(options, data),
    }
}
