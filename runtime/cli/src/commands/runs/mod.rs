//! `redflow runs`: lists, shows, cancels, answers, removes and counts runs of a data directory or a sidecar.

mod calls;
mod cancel;
mod iteration;
mod list;
mod outcome;
mod prune;
mod recount;
mod resolve;
mod show;

use crate::args::{Arguments, RunsCommand, RunsOptions};
use crate::context::AppContext;
use crate::exit::{CommandResult, Exit};
use crate::run_source::{LocalRuns, RemoteRuns, RunSource};
use crate::sidecar::{LocalTarget, select_sidecar};
use crate::terminal::fail;
use clap::CommandFactory as _;
use clap::error::ErrorKind;

pub(crate) fn runs(options: &RunsOptions, context: &AppContext) -> CommandResult {
    if let Some(text) = options.misplaced_option() {
        let mut command = Arguments::command();
        command.build();
        let runs =
            command.find_subcommand_mut("runs").map(|runs| runs.error(ErrorKind::ArgumentConflict, text));
        let _ = runs.map(|error| error.print());
        return Err(Exit::Unusable);
    }
    let target = LocalTarget::named_if(options.data.is_some());
    let sidecar = select_sidecar(&options.sidecar(), &context.settings, target)?;
    let remote = sidecar.map(RemoteRuns::new).transpose()?;
    let local;
    let source: &dyn RunSource = match &remote {
        Some(remote) => remote,
        None => {
            local = LocalRuns::new(context, options.data.as_deref())?;
            &local
        }
    };
    match &options.command {
        None => list::list(&options.list, source),
        Some(RunsCommand::List(options)) => list::list(options, source),
        Some(RunsCommand::Show(options)) => match options.iteration {
            Some(number) => iteration::show(&options.show, number, source),
            None => show::show(&options.show, source),
        },
        Some(RunsCommand::Events(options)) if options.follow => match &remote {
            Some(remote) => show::follow(&options.show, remote),
            None => Err(fail("only the runs of a sidecar can be followed: name it with --url URL")),
        },
        Some(RunsCommand::Events(options)) => show::events(&options.show, source),
        Some(RunsCommand::Export(options)) => show::export(options, source),
        Some(RunsCommand::Cancel(options)) => cancel::cancel(options, source),
        Some(RunsCommand::Resolve(options)) => resolve::resolve(options, source),
        Some(RunsCommand::Prune(options)) => match &remote {
            Some(_) => Err(fail(
                "a sidecar cannot remove runs: name its data directory with --data DIR, without --url",
            )),
            None => prune::prune(options, &context.settings),
        },
        Some(RunsCommand::Recount(options)) => match &remote {
            Some(_) => Err(fail(
                "a sidecar cannot count its runs again: stop it, and name its data directory with --data DIR, without \
                 --url",
            )),
            None => recount::recount(options, &context.settings),
        },
    }
}
