//! The MCP server over a pair of byte streams, for a client that starts the sidecar as a program.

use super::handler::McpHandler;
use crate::app::App;
use redflow_access::Caller;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, serve_server};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

/// Bytes around a message in a line.
const BYTES_AROUND_MESSAGE: usize = 64 * 1024;

/// Serves one client until it closes its stream, or until `stop` is cancelled. The client has the rights of `caller`.
pub(crate) async fn serve_client<R, W>(
    app: &Arc<App>,
    caller: Caller,
    reader: R,
    writer: W,
    stop: &CancellationToken,
) where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let message = usize::try_from(app.settings.run_limits.max_message_bytes).unwrap_or(usize::MAX);
    let transport = AsyncRwTransport::<RoleServer, R, W>::new_server(reader, writer)
        .with_max_line_length(message.saturating_add(BYTES_AROUND_MESSAGE));
    let handler = McpHandler::of_caller(Arc::clone(app), caller);
    let serve = async {
        match serve_server(handler, transport).await {
            Ok(service) => drop(service.waiting().await),
            // The client went away, or did not speak MCP.
            Err(error) => tracing::warn!("the MCP client could not be served: {error}"),
        }
    };
    tokio::select! {
        () = serve => {}
        () = stop.cancelled() => {}
    }
}
