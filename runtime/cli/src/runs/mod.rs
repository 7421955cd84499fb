//! `redflow runs`: what is kept, and what can be done about it.

mod act;
mod list;
mod prune;
mod resolve;
mod show;

pub(crate) use prune::backup;

use crate::Exit;
use crate::args_runs::{RunsCommand, RunsOptions};

pub(crate) fn runs(options: &RunsOptions) -> Exit {
    match &options.command {
        None => list::list(&options.list),
        Some(RunsCommand::List(options)) => list::list(options),
        Some(RunsCommand::Show(options)) => show::show(options),
        Some(RunsCommand::Events(options)) => show::events(options),
        Some(RunsCommand::Export(options)) => show::export(options),
        Some(RunsCommand::Cancel(options)) => act::cancel(options),
        Some(RunsCommand::Resolve(options)) => resolve::resolve(options),
        Some(RunsCommand::Prune(options)) => prune::prune(options),
    }
}
