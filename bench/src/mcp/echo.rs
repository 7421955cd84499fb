//! Servers that send back what they are sent. Each is its own process.

use super::TOOL;
use crate::probe::{print_figures, wait_for_end};
use crate::world::runtime;
use crate::{Failure, open_files};
use axum::Router;
use axum::serve::ListenerExt as _;
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use std::io::{BufRead, Write, stdin, stdout};
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};

/// The first argument of a process that is such a server.
pub(crate) const PROBE: &str = "--probe-mcp-echo";

/// The second argument: a program with pipes, or plain rmcp over HTTP.
pub(super) const PIPES: &str = "pipes";
pub(super) const HTTP: &str = "http";

/// The path of a server over HTTP.
pub(super) const PATH: &str = "/mcp";

/// The work of such a process.
pub(crate) fn probe(args: &[String]) -> Result<(), Failure> {
    match args {
        [kind] if kind == PIPES => answer_lines(),
        [kind] if kind == HTTP => serve_http(),
        _ => Err("an echo speaks over pipes or over HTTP".into()),
    }
}

/// Answers each line of the standard input.
fn answer_lines() -> Result<(), Failure> {
    for line in stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let Some(answer) = answer(&message) else { continue };
        let mut out = stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

/// The answer to a request; none to a notification.
fn answer(message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let params = &message["params"];
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "echo", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": TOOL, "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": params["arguments"]["text"]}]}),
        _ => {
            let error = json!({"code": -32601, "message": "unknown"});
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// The same by rmcp.
#[derive(Debug, Clone)]
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = Arc::new([("type".to_owned(), json!("object"))].into_iter().collect());
        Ok(ListToolsResult::with_all_items(vec![Tool::new(TOOL, "Sends back.", schema)]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = serde_json::to_string(&request.arguments).unwrap_or_default();
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// Else the second part of each answer waits 40 ms for the client, as it does not at the sidecar.
fn send_at_once(stream: &mut TcpStream) {
    // A connection that is gone already needs no setting.
    let _ = stream.set_nodelay(true);
}

fn serve_http() -> Result<(), Failure> {
    open_files::raise_limit();
    runtime()?.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        print_figures(&json!({"port": listener.local_addr()?.port()}))?;
        let config = StreamableHttpServerConfig::default().with_json_response(true);
        let service =
            StreamableHttpService::new(|| Ok(Echo), Arc::new(LocalSessionManager::default()), config);
        let router = Router::new().nest_service(PATH, service);
        let end = tokio::task::spawn_blocking(wait_for_end);
        tokio::select! {
            served = axum::serve(listener.tap_io(send_at_once), router) => Ok(served?),
            _ = end => Ok(()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::answer;
    use serde_json::json;

    #[test]
    fn a_call_gets_its_text_back() {
        let call = json!({"id": 7, "method": "tools/call", "params": {"arguments": {"text": "hello"}}});
        let answered = answer(&call).unwrap();
        assert_eq!(
            (&answered["id"], &answered["result"]["content"][0]["text"]),
            (&json!(7), &json!("hello"))
        );
        assert!(answer(&json!({"method": "notifications/initialized"})).is_none());
        assert_eq!(answer(&json!({"id": 8, "method": "ping"})).unwrap()["error"]["code"], -32601);
    }
}
