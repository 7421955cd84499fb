//! A scripted MCP server over HTTP.

use redflow_testkit::{HttpRequest, HttpServer, json_response};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the server does with a request.
pub(crate) enum Reply {
    Send(Vec<u8>),
    /// It takes the request, and never answers.
    Never,
    /// It answers after a while.
    Late(Duration, Vec<u8>),
}

/// A server at a free port of this machine.
pub(crate) struct Peer {
    pub(crate) server: HttpServer,
    requests: Arc<Mutex<Vec<HttpRequest>>>,
}

impl Peer {
    pub(crate) async fn start(respond: impl Fn(&HttpRequest) -> Reply + Send + Sync + 'static) -> Self {
        let requests: Arc<Mutex<Vec<HttpRequest>>> = Arc::default();
        let (seen, respond) = (Arc::clone(&requests), Arc::new(respond));
        let server = HttpServer::start(move |request| {
            seen.lock().unwrap().push(request.clone());
            let reply = respond(&request);
            async move {
                match reply {
                    Reply::Send(bytes) => bytes,
                    Reply::Never => std::future::pending().await,
                    Reply::Late(time, bytes) => {
                        tokio::time::sleep(time).await;
                        bytes
                    }
                }
            }
        });
        Self { server: server.await.unwrap(), requests }
    }

    pub(crate) fn url(&self) -> String {
        self.server.url("/mcp")
    }

    /// The requests with a method of MCP.
    pub(crate) fn messages(&self, method: &str) -> Vec<HttpRequest> {
        let all = self.requests.lock().unwrap();
        all.iter().filter(|request| method_of(request) == method).cloned().collect()
    }
}

pub(crate) fn method_of(request: &HttpRequest) -> String {
    let body = request.json().unwrap_or_default();
    body["method"].as_str().unwrap_or_default().to_owned()
}

pub(crate) fn status(status: u16) -> Reply {
    Reply::Send(json_response(status, &[], &json!({})))
}

/// The result of a request.
pub(crate) fn result(request: &HttpRequest, headers: &[(&str, &str)], result: &Value) -> Reply {
    let id = request.json().unwrap_or_default()["id"].clone();
    Reply::Send(json_response(200, headers, &json!({"jsonrpc": "2.0", "id": id, "result": result})))
}

/// The same as one event of a stream.
pub(crate) fn event(request: &HttpRequest, result: &Value) -> Reply {
    let id = request.json().unwrap_or_default()["id"].clone();
    let data = json!({"jsonrpc": "2.0", "id": id, "result": result});
    let text = format!("HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\ndata: {data}\n\n");
    Reply::Send(text.into_bytes())
}

pub(crate) fn tools() -> Value {
    json!([{"name": "echo", "description": "Echoes.", "inputSchema": {"type": "object"}},
        {"name": "count", "description": "Counts.", "inputSchema": {"type": "object"}}])
}

fn text_of(request: &HttpRequest) -> Value {
    let body = request.json().unwrap_or_default();
    json!({"content": [{"type": "text", "text": body["params"]["arguments"]["text"]}]})
}

/// A server of the era of `initialize`, with this session.
pub(crate) fn legacy(request: &HttpRequest, session: &str) -> Reply {
    match (request.method.as_str(), method_of(request).as_str()) {
        ("POST", "server/discover") => status(400),
        ("POST", "initialize") => {
            let info = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "peer", "version": "1"}});
            result(request, &[("mcp-session-id", session)], &info)
        }
        ("POST", "tools/list") => result(request, &[], &json!({"tools": tools()})),
        ("POST", "tools/call") => result(request, &[], &text_of(request)),
        ("POST", _) => status(202),
        ("DELETE", _) => status(200),
        _ => status(405),
    }
}

/// A server of the era of `server/discover`.
pub(crate) fn modern(request: &HttpRequest) -> Reply {
    match method_of(request).as_str() {
        "server/discover" => result(
            request,
            &[],
            &json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0,
                "cacheScope": "private", "capabilities": {"tools": {}}}),
        ),
        "tools/list" => {
            let list =
                json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": tools()});
            result(request, &[], &list)
        }
        "tools/call" => result(request, &[], &text_of(request)),
        _ => status(405),
    }
}
