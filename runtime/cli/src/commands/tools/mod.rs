//! `redflow tools`: lists, shows and calls tools of a data directory or a sidecar, shows their calls, and checks
//! manifests.

mod check;
mod local;
mod print;
mod remote;
mod source;

pub(crate) use check::check_manifest;
pub(crate) use local::call_tool;
pub(crate) use print::{effect_name, format_call, state_name};

use crate::args::{CallToolOptions, ShowToolOptions, ToolCallsOptions, ToolsCommand, ToolsOptions};
use crate::context::AppContext;
use crate::errors::print_api_error;
use crate::exit::{CommandResult, Exit};
use crate::input::read_json;
use crate::sidecar::{LocalTarget, select_sidecar};
use crate::terminal::{fail, print_json, print_note, print_text};
use local::LocalTools;
use print::{format_table, format_tool};
use redflow_contract::tool::ToolInvocation;
use remote::RemoteTools;
use serde_json::Value;
use source::ToolSource;

pub(crate) fn tools(options: &ToolsOptions, context: &AppContext) -> CommandResult {
    let target = LocalTarget::named_if(options.data.is_some());
    let sidecar = select_sidecar(&options.sidecar(), &context.settings, target)?;
    let remote = sidecar.map(RemoteTools::new).transpose()?;
    let local;
    let source: &dyn ToolSource = match &remote {
        Some(remote) => remote,
        None => {
            local = LocalTools::new(context)?;
            &local
        }
    };
    match &options.command {
        ToolsCommand::Check(options) => Ok(check_manifest(options)),
        ToolsCommand::List { json } => list(*json, source),
        ToolsCommand::Show(options) => show(options, source),
        ToolsCommand::Call(options) => call(options, source),
        ToolsCommand::Calls(options) if options.follow => match &remote {
            Some(remote) => follow(options, remote),
            None => Err(fail("only the calls of a sidecar can be followed: name it with --url URL")),
        },
        ToolsCommand::Calls(options) => calls(options, source),
    }
}

fn list(json: bool, source: &dyn ToolSource) -> CommandResult {
    let tools = source.list().map_err(print_api_error)?;
    if tools.is_empty() {
        print_note(&format!("no tools in {}", source.place()));
        return Ok(Exit::Success);
    }
    Ok(if json {
        tools.iter().map(print_json).max().unwrap_or(Exit::Success)
    } else {
        print_text(&format_table(&tools))
    })
}

fn show(options: &ShowToolOptions, source: &dyn ToolSource) -> CommandResult {
    let tool = source.find(&options.id).map_err(print_api_error)?;
    Ok(if options.json { print_json(&tool) } else { print_text(&format_tool(&tool)) })
}

fn call(options: &CallToolOptions, source: &dyn ToolSource) -> CommandResult {
    let input = match read_json(&options.input, "input") {
        Ok(Value::Object(input)) => input,
        Ok(_) => return Err(fail("the input must be a JSON object, such as --input '{\"city\": \"Bern\"}'")),
        Err(text) => return Err(fail(&text)),
    };
    let call = source.call(&options.id, input).map_err(print_api_error)?;
    let exit = if call.success { Exit::Success } else { Exit::Failure };
    Ok(print_call(&call, options.json).max(exit))
}

fn calls(options: &ToolCallsOptions, source: &dyn ToolSource) -> CommandResult {
    let limit = usize::try_from(options.limit).unwrap_or(usize::MAX);
    let calls = source.calls(&options.id, limit).map_err(print_api_error)?;
    if calls.is_empty() {
        print_note(&format!("no calls of this tool in {}", source.place()));
    }
    Ok(calls.iter().map(|call| print_call(call, options.json)).max().unwrap_or(Exit::Success))
}

/// Prints the calls of a tool as they end.
fn follow(options: &ToolCallsOptions, source: &RemoteTools) -> CommandResult {
    let mut printed = Exit::Success;
    let followed =
        source.follow(&options.id, &mut |call| printed = printed.max(print_call(call, options.json)));
    followed.map_err(|error| print_api_error(error).max(printed))?;
    Ok(printed)
}

fn print_call(call: &ToolInvocation, json: bool) -> Exit {
    if json { print_json(call) } else { print_text(&format_call(call)) }
}
