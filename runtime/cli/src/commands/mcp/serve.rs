//! `redflow mcp serve`: a sidecar without a listener, whose one client speaks MCP on standard input and output.

use crate::args::McpServeOptions;
use crate::commands::serve::{EXPIRY_INTERVAL, Stores, server_settings, start_sidecar};
use crate::context::AppContext;
use crate::data_dir::create_data_dir;
use crate::errors::{print_api_error, print_store_error};
use crate::exit::{CommandResult, Exit};
use crate::knowledge::remove_expired_entries;
use crate::session::Session;
use crate::signals::RunLifetime;
use crate::terminal::{print_error, print_note};
use redflow_access::Tokens;
use redflow_server::ClientEnd;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

pub(super) fn serve(options: &McpServeOptions, context: &AppContext) -> CommandResult {
    let settings = &context.settings;
    let data = settings.data_dir().map_err(print_store_error)?;
    let flows = settings.flows_file().map_err(print_store_error)?;
    let session = Session::start(RunLifetime::Served)?;
    create_data_dir(&data)?;
    let stores = Stores::open(options.ephemeral, settings, &data, &flows)?;
    let tokens = Tokens::open(&data, settings.token.clone()).map_err(print_api_error)?;
    // Nothing listens there: the settings need an address.
    let server = server_settings(settings, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let served = session.wait(async {
        let sidecar = start_sidecar(context, stores, tokens, &flows, server).await?;
        print_note("serving MCP on standard input and output");
        let stop = session.signals().suspend.clone();
        let archive = Arc::clone(context.knowledge()?.archive());
        let ended = stop.child_token();
        let serve = async {
            let end = sidecar.serve_mcp(tokio::io::stdin(), tokio::io::stdout(), stop).await;
            ended.cancel();
            end
        };
        let expired = remove_expired_entries(&*archive, &*context.metrics, EXPIRY_INTERVAL, &ended);
        let (end, ()) = tokio::join!(serve, expired);
        Ok(match end {
            ClientEnd::Closed => Exit::Success,
            ClientEnd::MessageTooLong(most) => {
                print_error(&format!("the MCP client sent a message of more than {most} bytes"));
                Exit::Failure
            }
        })
    });
    session.end();
    served
}
