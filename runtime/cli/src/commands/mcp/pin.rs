//! `redflow mcp pin`: shows what is different in the tools of a server, and approves it.

use super::print::{format_diff, format_tools};
use super::source::McpSource;
use crate::args::PinOptions;
use crate::errors::print_api_error;
use crate::exit::{CommandResult, Exit};
use crate::terminal::{fail, print_json, print_note, print_part};
use crate::text::{count, printable, printable_line};
use redflow_contract::mcp::{McpPinRequest, McpServerDetail, McpToolInfo};
use redflow_contract::tool::ToolState;
use std::io::IsTerminal as _;

pub(super) async fn pin(options: &PinOptions, source: &McpSource<'_>) -> CommandResult {
    let server = source.show(&options.name).await.map_err(print_api_error)?;
    let waiting = choose(&server, &options.tools).map_err(|text| fail(&text))?;
    if waiting.is_empty() {
        if let Some(reason) = server.summary.reason.as_ref().filter(|_| server.tools.is_empty()) {
            return Err(fail(&printable_line(reason, 800)));
        }
        print_note("nothing waits for an approval");
        return Ok(if options.json { print_json(&server) } else { Exit::Success });
    }
    for tool in &waiting {
        print_note(&describe(tool));
    }
    let number = count(waiting.len(), "definition");
    confirm(&format!("Approve {number} of {}?", printable_line(&options.name, 60)), options.yes).await?;
    let tools = waiting.iter().filter_map(|tool| Some((tool.name.clone(), tool.digest?))).collect();
    let server = source.pin(&options.name, McpPinRequest { tools }).await.map_err(print_api_error)?;
    print_note(&format!("approved: {number}"));
    Ok(if options.json { print_json(&server) } else { Exit::Success })
}

/// The tools that wait for an approval, or the named ones.
fn choose<'s>(server: &'s McpServerDetail, names: &[String]) -> Result<Vec<&'s McpToolInfo>, String> {
    let waits = |tool: &&McpToolInfo| tool.digest.is_some() && tool.digest != tool.pinned;
    if names.is_empty() {
        // The sidecar refuses to approve the others, because nobody sees their whole definitions.
        let can_be_approved = |tool: &&McpToolInfo| tool.included && tool.state != ToolState::Blocked;
        return Ok(server.tools.iter().filter(waits).filter(can_be_approved).collect());
    }
    let mut chosen = Vec::new();
    for name in names {
        let found = server.tools.iter().find(|tool| tool.name == *name || tool.id == *name);
        let Some(tool) = found.filter(|tool| tool.digest.is_some()) else {
            let (name, server) = (printable_line(name, 100), &server.summary.key);
            return Err(format!(
                "the server has no tool `{name}`; list its tools: redflow mcp tools {server}"
            ));
        };
        chosen.extend(Some(tool).filter(waits));
    }
    Ok(chosen)
}

/// A new tool with its description and schema, or what is different in a known one.
fn describe(tool: &McpToolInfo) -> String {
    if tool.diff.is_some() {
        return format_diff(tool).trim_end().to_owned();
    }
    let schema = serde_json::to_string(&tool.input_schema).unwrap_or_default();
    let row = format_tools(std::slice::from_ref(tool));
    let about = printable(&tool.description);
    format!("{}\n  {}\n  {}", row.trim_end(), about.replace('\n', "\n  "), printable_line(&schema, 2_000))
}

/// Asks on a terminal. A program that calls the command has decided already.
async fn confirm(question: &str, yes: bool) -> Result<(), Exit> {
    if yes || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(());
    }
    print_part(&format!("{question} [y/N] "));
    // Reading blocks, and cannot be stopped. The connections go on meanwhile, and Ctrl-C works.
    let (send, receive) = tokio::sync::oneshot::channel();
    let read = move || {
        let mut answer = String::new();
        let _ = std::io::stdin().read_line(&mut answer);
        let _ = send.send(answer);
    };
    let answer = match std::thread::Builder::new().spawn(read) {
        Ok(_) => receive.await.unwrap_or_default(),
        Err(_) => String::new(),
    };
    if matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    print_note("nothing was approved");
    Err(Exit::Failure)
}
