//! `redflow run`: starts an agent or an inject node here or at a sidecar, or resumes runs.

mod local;
mod prepare;
mod remote;
mod report;
mod resume;
mod resume_flow;
mod start;

use crate::args::{Arguments, RunOptions};
use crate::context::AppContext;
use crate::exit::{CommandResult, Exit};
use crate::sidecar::{LocalTarget, select_sidecar};
use clap::CommandFactory as _;
use clap::error::ErrorKind;

pub(crate) fn run(options: &RunOptions, context: &AppContext) -> CommandResult {
    let RunOptions { flow, resume, .. } = options;
    let is_local = flow.is_some() || resume.is_some() || options.ephemeral || options.data.data.is_some();
    let target = LocalTarget::named_if(is_local);
    let sidecar = select_sidecar(&options.sidecar, &context.settings, target)?;
    match (sidecar, resume, flow) {
        (Some(sidecar), ..) => remote::run_at_sidecar(options, &sidecar),
        (None, Some(run), flow) => resume::resume(options, context, run, flow.as_deref()),
        (None, None, Some(flow)) => local::run_flow(options, context, flow),
        (None, None, None) => Err(print_missing_flow()),
    }
}

/// Prints the error in the form of the parser, which cannot express this rule.
fn print_missing_flow() -> Exit {
    let mut command = Arguments::command();
    command.build();
    let text = "give a flow: <FLOW>, or a sidecar that has one: --url <URL>";
    let run =
        command.find_subcommand_mut("run").map(|run| run.error(ErrorKind::MissingRequiredArgument, text));
    let _ = run.map(|error| error.print());
    Exit::Unusable
}
