//! `redflow flows`: pulls, pushes or compares the flow of a Node-RED without the bridge.

mod diff;
mod pull;
mod push;
mod target;

use crate::args::{FlowsCommand, FlowsOptions};
use crate::context::AppContext;
use crate::exit::CommandResult;

pub(crate) fn flows(options: &FlowsOptions, context: &AppContext) -> CommandResult {
    match &options.command {
        FlowsCommand::Pull(options) => pull::pull(options, &context.settings),
        FlowsCommand::Push(options) => push::push(options, context),
        FlowsCommand::Diff(options) => diff::diff(options, &context.settings),
    }
}
