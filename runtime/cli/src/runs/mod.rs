//! `redflow runs`: what is kept, and what can be done about it.

mod act;
mod calls;
mod list;
mod prune;
mod resolve;
mod show;

pub(crate) use act::{refuse_over, say};
pub(crate) use list::show_list;
pub(crate) use prune::backup;
pub(crate) use resolve::result_of;
pub(crate) use show::{EventLines, print_journal, show_events, show_run};

use crate::args::Arguments;
use crate::args_runs::{RunsCommand, RunsOptions};
use crate::config::Settings;
use crate::terminal::complain;
use crate::{Exit, remote};
use clap::CommandFactory as _;
use clap::error::ErrorKind;

pub(crate) fn runs(options: &RunsOptions, settings: &Settings) -> Exit {
    if let Some(text) = options.misplaced() {
        let mut command = Arguments::command();
        command.build();
        let runs =
            command.find_subcommand_mut("runs").map(|runs| runs.error(ErrorKind::ArgumentConflict, text));
        let _ = runs.map(|error| error.print());
        return Exit::Unusable;
    }
    let data = &options.data();
    match options.sidecar().sidecar(settings, data.data.is_some()) {
        Ok(Some(sidecar)) => return elsewhere(options, &sidecar),
        Ok(None) => {}
        Err(exit) => return exit,
    }
    match &options.command {
        None => list::list(&options.list, data),
        Some(RunsCommand::List(options)) => list::list(options, data),
        Some(RunsCommand::Show(options)) => show::show(options, data),
        Some(RunsCommand::Events(options)) if options.follow => {
            complain("only a sidecar's runs can be followed: name it with --url URL");
            Exit::Unusable
        }
        Some(RunsCommand::Events(options)) => show::events(&options.look, data),
        Some(RunsCommand::Export(options)) => show::export(options, data),
        Some(RunsCommand::Cancel(options)) => act::cancel(options, data),
        Some(RunsCommand::Resolve(options)) => resolve::resolve(options, data),
        Some(RunsCommand::Prune(options)) => prune::prune(options, data),
    }
}

/// The same at a sidecar.
fn elsewhere(options: &RunsOptions, sidecar: &remote::Sidecar) -> Exit {
    match &options.command {
        None => remote::list(&options.list, sidecar),
        Some(RunsCommand::List(options)) => remote::list(options, sidecar),
        Some(RunsCommand::Show(options)) => remote::show(options, sidecar),
        Some(RunsCommand::Events(options)) => remote::events(options, sidecar),
        Some(RunsCommand::Export(options)) => remote::export(options, sidecar),
        Some(RunsCommand::Cancel(options)) => remote::cancel(options, sidecar),
        Some(RunsCommand::Resolve(options)) => remote::resolve(options, sidecar),
        Some(RunsCommand::Prune(_)) => {
            complain(
                "runs are removed where they are kept: name the data directory with --data DIR, without --url",
            );
            Exit::Unusable
        }
    }
}
