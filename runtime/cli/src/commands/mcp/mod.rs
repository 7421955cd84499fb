//! `redflow mcp`: adds MCP servers to a data directory; lists, calls and approves the servers of a data directory or a
//! sidecar; signs in.

mod add;
mod bridge;
mod callback;
mod client_message;
mod definition;
mod login;
mod pin;
mod print;
mod running;
mod serve;
mod source;

use crate::args::{CallServerOptions, McpCommand, McpOptions, NamedServer};
use crate::commands::tools::format_call;
use crate::context::AppContext;
use crate::errors::print_api_error;
use crate::exit::{CommandResult, Exit};
use crate::input::read_json;
use crate::session::{BLOCKING_TASKS, new_runtime};
use crate::sidecar::{LocalTarget, SidecarClient, select_sidecar};
use crate::signals::{RunLifetime, StopSignals, listen};
use crate::terminal::{fail, print_json, print_note, print_text};
use crate::text::printable_line;
use print::{confinement_note, format_server, format_servers, format_tools};
use running::{RunningSidecar, START_TIME};
use serde_json::Value;
use source::McpSource;
use std::time::Duration;

pub(crate) fn mcp(options: &McpOptions, context: &AppContext) -> CommandResult {
    match &options.command {
        McpCommand::Serve(serve) => {
            let is_local = options.data.is_some() || serve.flows.is_some();
            let target = LocalTarget::named_if(is_local);
            let named = select_sidecar(&options.sidecar(), &context.settings, target)?;
            // A named flow, or a sidecar without storage, is one of its own.
            let is_own = serve.flows.is_some() || serve.ephemeral;
            let running = match named.map(RunningSidecar::named) {
                // This process could not be a sidecar beside one that starts.
                None if !is_own => RunningSidecar::find(context, START_TIME)?,
                named => named,
            };
            match running {
                Some(running) => wait(context, serve_client(running)),
                None => serve::serve(serve, context),
            }
        }
        McpCommand::Add(add) => {
            refuse_sidecar(options)?;
            add::add(add, context)
        }
        McpCommand::Remove { name } => {
            refuse_sidecar(options)?;
            wait(context, add::remove(name, context))
        }
        McpCommand::List { json } => with_source(options, context, async |source| list(*json, source).await),
        McpCommand::Show(named) => with_source(options, context, async |source| show(named, source).await),
        McpCommand::Tools(named) => with_source(options, context, async |source| tools(named, source).await),
        McpCommand::Call(call) => with_source(options, context, async |source| call_tool(call, source).await),
        McpCommand::Login { name } => {
            with_keeper(options, context, async |source| login::login(name, source).await)
        }
        McpCommand::Logout { name } => {
            with_keeper(options, context, async |source| logout(name, source).await)
        }
        McpCommand::Pin(tools) => with_keeper(options, context, async |source| pin::pin(tools, source).await),
    }
}

/// Serves the client on standard input and output with a sidecar that runs.
async fn serve_client(running: RunningSidecar) -> CommandResult {
    let sidecar = running.client().await;
    let address = printable_line(sidecar.url().as_str(), 200);
    print_note(&format!("serving MCP on standard input and output, for the sidecar at {address}"));
    bridge::bridge(sidecar, tokio::io::stdin(), tokio::io::stdout()).await
}

/// Runs a command that changes pins or tokens. A sidecar that runs has read both, so it makes the change: then it uses
/// them at once. If it does not answer, this process makes the change.
fn with_keeper(
    options: &McpOptions,
    context: &AppContext,
    command: impl AsyncFnOnce(&McpSource<'_>) -> CommandResult,
) -> CommandResult {
    let target = LocalTarget::named_if(options.data.is_some());
    let named = select_sidecar(&options.sidecar(), &context.settings, target)?;
    // A driver that does not listen need not begin to: this process can make the change.
    let running = if named.is_none() { RunningSidecar::find(context, Duration::ZERO)? } else { None };
    wait(context, async {
        let sidecar = match running {
            Some(running) => {
                let address = printable_line(running.url().as_str(), 200);
                let sidecar = running.answering_client().await;
                if sidecar.is_none() {
                    print_note(&format!(
                        "the sidecar at {address} does not answer; a change counts there when it starts again"
                    ));
                }
                sidecar
            }
            None => named,
        };
        with_servers(sidecar, context, command).await
    })
}

/// Runs a command with the servers of the data directory or of the sidecar.
fn with_source(
    options: &McpOptions,
    context: &AppContext,
    command: impl AsyncFnOnce(&McpSource<'_>) -> CommandResult,
) -> CommandResult {
    let target = LocalTarget::named_if(options.data.is_some());
    let sidecar = select_sidecar(&options.sidecar(), &context.settings, target)?;
    wait(context, with_servers(sidecar, context, command))
}

async fn with_servers(
    sidecar: Option<SidecarClient>,
    context: &AppContext,
    command: impl AsyncFnOnce(&McpSource<'_>) -> CommandResult,
) -> CommandResult {
    let source = match sidecar {
        Some(sidecar) => McpSource::remote(sidecar),
        None => McpSource::local(context)?,
    };
    source.load()?;
    command(&source).await
}

/// Servers stand in files of the operator. So no command adds one to a sidecar from elsewhere.
fn refuse_sidecar(options: &McpOptions) -> Result<(), Exit> {
    if options.sidecar().url.is_none() {
        return Ok(());
    }
    let text = "servers are added and removed in the data directory, on the machine of the sidecar: name it with --data \
                DIR instead of --url";
    Err(fail(text))
}

/// Runs a command until it ends or Ctrl-C is pressed. Ends the connections and programs either way.
fn wait(context: &AppContext, command: impl Future<Output = CommandResult>) -> CommandResult {
    let runtime = new_runtime()?;
    let signals = StopSignals::default();
    // Without signals the command still works; Ctrl-C then ends it at once.
    let _ = listen(signals.clone(), RunLifetime::Ephemeral);
    let result = runtime.block_on(async {
        let result = tokio::select! {
            result = command => result,
            () = signals.cancel.cancelled() => {
                print_note("stopped");
                Err(Exit::Failure)
            }
        };
        context.mcp.stop().await;
        result
    });
    // A read of standard input cannot be stopped, so it must not be waited for.
    runtime.shutdown_timeout(BLOCKING_TASKS);
    result
}

async fn list(json: bool, source: &McpSource<'_>) -> CommandResult {
    let servers = source.list().await.map_err(print_api_error)?;
    if servers.is_empty() {
        let help = "add one: redflow mcp add NAME -- PROGRAM ARGUMENTS";
        print_note(&format!("no MCP servers in {}; {help}", source.place()));
        return Ok(Exit::Success);
    }
    Ok(if json {
        servers.iter().map(print_json).max().unwrap_or(Exit::Success)
    } else {
        if let Some(note) = confinement_note(&servers) {
            print_note(&note);
        }
        print_text(&format_servers(&servers))
    })
}

async fn show(options: &NamedServer, source: &McpSource<'_>) -> CommandResult {
    let server = source.show(&options.name).await.map_err(print_api_error)?;
    let exit = print::exit_of(&server.summary);
    let printed = if options.json { print_json(&server) } else { print_text(&format_server(&server)) };
    Ok(printed.max(exit))
}

async fn tools(options: &NamedServer, source: &McpSource<'_>) -> CommandResult {
    let server = source.show(&options.name).await.map_err(print_api_error)?;
    let exit = print::exit_of(&server.summary);
    if let Some(reason) = &server.summary.reason {
        print_note(&printable_line(reason, 800));
    }
    let printed = if options.json {
        server.tools.iter().map(print_json).max().unwrap_or(Exit::Success)
    } else {
        print_text(&format_tools(&server.tools))
    };
    Ok(printed.max(exit))
}

async fn call_tool(options: &CallServerOptions, source: &McpSource<'_>) -> CommandResult {
    let input = match read_json(&options.input, "input") {
        Ok(Value::Object(input)) => input,
        Ok(_) => return Err(fail("the input must be a JSON object, such as '{\"path\": \".\"}'")),
        Err(text) => return Err(fail(&text)),
    };
    let call = source.call(&options.name, &options.tool, input).await.map_err(print_api_error)?;
    let exit = if call.success { Exit::Success } else { Exit::Failure };
    let printed = if options.json { print_json(&call) } else { print_text(&format_call(&call)) };
    Ok(printed.max(exit))
}

async fn logout(name: &str, source: &McpSource<'_>) -> CommandResult {
    source.logout(name).await.map_err(print_api_error)?;
    print_note(&format!("the tokens of {} are removed", printable_line(name, 60)));
    Ok(Exit::Success)
}
