//! A real sidecar: the bodies of its HTTP API, and the frames of its sockets. After each input the sidecar must
//! still answer.

use super::worker::Jobs;
use super::{Outcome, Target};
use redflow_contract::bridge::BRIDGE_PROTOCOL;
use redflow_contract::route::{Method, ROUTES, Route};
use redflow_contract::stream::{COMMS_PROTOCOL, EVENTS_PROTOCOL};
use redflow_testkit::{LoggedProcess, hostile, remove_settings};
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use tungstenite::client::IntoClientRequest as _;
use tungstenite::http::HeaderValue;
use tungstenite::{Message, WebSocket};
use ureq::Agent;

const TOKEN: &str = "a-token-for-the-fuzzers-of-the-sidecar";

/// How long a sidecar may take to start.
const START_LIMIT: Duration = Duration::from_secs(60);

/// How long a request may take. Health has less.
const REQUEST_LIMIT: Duration = Duration::from_secs(15);
const HEALTH_LIMIT: Duration = Duration::from_secs(1);

/// How long a socket waits for an answer.
const RECEIVE_LIMIT: Duration = Duration::from_millis(20);

/// No limits that would refuse the inputs before they are read.
const CONFIG: &str = "[server]\nrate_per_second = 1000000\nrate_burst = 1000000\n";

/// Stops the sidecar of the targets when it is dropped. A target that hangs keeps its sidecar for ever.
pub struct RunningSidecar(SharedProcess);

impl Drop for RunningSidecar {
    fn drop(&mut self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// The process; none after it was stopped.
type SharedProcess = Arc<Mutex<Option<LoggedProcess>>>;

pub(super) fn targets(binary: &Path) -> Result<(Vec<Arc<dyn Target>>, RunningSidecar), String> {
    let sidecar = Arc::new(Sidecar::start(binary)?);
    let running = RunningSidecar(Arc::clone(&sidecar.process));
    let socket = |name, path, protocol, greeting| -> Arc<dyn Target> {
        Arc::new(Frames { sidecar: Arc::clone(&sidecar), name, path, protocol, greeting })
    };
    let hello = json!({"type": "hello", "protocol": BRIDGE_PROTOCOL, "instance": "fuzzer", "boot": "1",
        "nodeRed": "4.1.0", "bridge": "0.1.0", "received": 0});
    let targets: Vec<Arc<dyn Target>> = vec![
        Arc::new(Bodies { sidecar: Arc::clone(&sidecar) }),
        socket("bridge", "/bridge", BRIDGE_PROTOCOL, Some(hello)),
        socket("events", "/events", EVENTS_PROTOCOL, None),
        socket("comms", "/comms", COMMS_PROTOCOL, None),
        Arc::new(McpRequests { sidecar: Arc::clone(&sidecar) }),
        Arc::new(Jobs::new(binary)),
    ];
    Ok((targets, running))
}

/// A sidecar that runs as long as its targets.
struct Sidecar {
    address: SocketAddr,
    agent: Agent,
    process: SharedProcess,
    _folder: TempDir,
}

impl Sidecar {
    fn start(binary: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| error.to_string();
        let folder = tempfile::tempdir().map_err(failed)?;
        let file = |name: &str| folder.path().join(name);
        std::fs::write(file("flow.json"), "[]").map_err(failed)?;
        std::fs::write(file("redflow.toml"), CONFIG).map_err(failed)?;
        let mut command = Command::new(binary);
        remove_settings(&mut command);
        command.arg("serve").arg("--flows").arg(file("flow.json")).arg("--config").arg(file("redflow.toml"));
        command.arg("--data").arg(file("data")).args(["--listen", "127.0.0.1:0"]);
        command.env("REDFLOW_TOKEN", TOKEN).env("REDFLOW_LOG", "error");
        let mut process = LoggedProcess::start(command)?;
        let address = process.wait_for_address(START_LIMIT)?;
        // The sidecar closes a connection after some errors, so none is kept.
        let config = Agent::config_builder().http_status_as_error(false).max_idle_connections(0).proxy(None);
        let agent = config.timeout_global(Some(REQUEST_LIMIT)).build().into();
        Ok(Self { address, agent, process: Arc::new(Mutex::new(Some(process))), _folder: folder })
    }

    fn send(&self, route: &Route, body: &[u8]) -> Outcome {
        let path = route.path.replace("{id}", "x").replace("{key}", "x");
        let request = ureq::http::Request::builder()
            .method(match route.method {
                Method::Put => "PUT",
                Method::Delete => "DELETE",
                _ => "POST",
            })
            .uri(format!("http://{}{path}", self.address))
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("content-type", "application/json")
            .body(body)
            .map_err(|error| error.to_string())?;
        let mut response = self.agent.run(request).map_err(|error| format!("{path}: {error}"))?;
        let status = response.status().as_u16();
        let text = response.body_mut().read_to_string().unwrap_or_default();
        let code = serde_json::from_str::<Value>(&text).ok();
        let code = code.as_ref().and_then(|body| body.pointer("/error/code").or(body.get("code")));
        let code = code.and_then(Value::as_str).unwrap_or_default().to_owned();
        if status >= 500 && code != "STOPPING" || status >= 400 && code.is_empty() {
            return Err(format!("{path} answers {status}: {}", text.chars().take(300).collect::<String>()));
        }
        Ok(format!("{path} {status} {code}"))
    }

    /// The sidecar must answer at once.
    fn check_health(&self) -> Result<(), String> {
        let url = format!("http://{}/health", self.address);
        let response = self.agent.get(url).config().timeout_global(Some(HEALTH_LIMIT)).build().call();
        match response {
            Ok(response) if response.status() == 200 => Ok(()),
            other => {
                let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
                let log = process.as_ref().map(LoggedProcess::stderr).unwrap_or_default();
                Err(format!("not healthy: {other:?}; log: {}", last_lines(&log)))
            }
        }
    }

    fn open(&self, path: &str, protocol: &'static str) -> Result<WebSocket<TcpStream>, String> {
        let stream = TcpStream::connect(self.address).map_err(|error| error.to_string())?;
        let timeout = stream.set_read_timeout(Some(REQUEST_LIMIT));
        timeout.and(stream.set_write_timeout(Some(REQUEST_LIMIT))).map_err(|error| error.to_string())?;
        let request = format!("ws://{}{path}", self.address).into_client_request();
        let mut request = request.map_err(|error| error.to_string())?;
        let bearer = HeaderValue::try_from(format!("Bearer {TOKEN}")).map_err(|error| error.to_string())?;
        request.headers_mut().insert("authorization", bearer);
        request.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static(protocol));
        let (socket, _) = tungstenite::client(request, stream).map_err(|error| format!("{path}: {error}"))?;
        socket.get_ref().set_read_timeout(Some(RECEIVE_LIMIT)).map_err(|error| error.to_string())?;
        Ok(socket)
    }
}

fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().rev().take(5).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// A number that depends on the whole input.
fn hash(input: &[u8]) -> usize {
    input.iter().fold(7, |hash: usize, byte| hash.wrapping_mul(31).wrapping_add(usize::from(*byte)))
}

/// The bodies of all routes that read one. An input names the route in `to`. Any other text goes to a route that
/// it decides by its bytes.
struct Bodies {
    sidecar: Arc<Sidecar>,
}

impl Target for Bodies {
    fn name(&self) -> &'static str {
        "bodies"
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        let to = |to: &str, body: Value| json!({"to": to, "body": body});
        let flows = hostile::flows().into_iter().flat_map(|case| {
            let (flows, deploy) = (json!({"flows": case.value}), json!({"flows": case.value, "force": true}));
            [to("/flows", case.value), to("/api/flows/check", flows), to("/api/deployment", deploy)]
        });
        let result = json!({"success": true, "output": 1});
        let others = [
            to("/api/runs", json!({"node": "hostile-agent", "payload": {"a": 1}, "wait": true})),
            to("/api/runs/{id}/cancel", json!({"reason": "r"})),
            to("/api/runs/{id}/resolve", json!({"callId": "c", "result": result})),
            to(
                "/flow",
                json!({"id": "t", "label": "x", "nodes": [{"id": "n", "type": "debug", "wires": []}]}),
            ),
        ];
        let values = flows.chain(others).map(|value| value.to_string());
        let texts = hostile::texts(20_000).into_iter().map(|(_, text)| text);
        values.chain(texts).filter(|text| text.len() < 64 * 1024).map(String::into_bytes).collect()
    }

    fn run(&self, input: &[u8]) -> Outcome {
        let routes: Vec<&Route> = ROUTES.iter().filter(|route| route.body.is_some()).collect();
        let named = serde_json::from_slice::<Value>(input).ok();
        let route = named.as_ref().and_then(|named| routes.iter().find(|route| named["to"] == route.path));
        let outcome = match (route, &named) {
            (Some(route), Some(named)) => self.sidecar.send(route, named["body"].to_string().as_bytes())?,
            _ => self.sidecar.send(routes[hash(input) % routes.len()], input)?,
        };
        self.sidecar.check_health()?;
        Ok(outcome)
    }
}

/// The frames of a socket: as its first message, or after the greeting.
struct Frames {
    sidecar: Arc<Sidecar>,
    name: &'static str,
    path: &'static str,
    protocol: &'static str,
    greeting: Option<Value>,
}

impl Target for Frames {
    fn name(&self) -> &'static str {
        self.name
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        let frames = [
            json!({"type": "ack", "seq": 1}),
            json!({"type": "watch", "events": true}),
            json!({"type": "flows", "seq": 1, "revision": "r", "flows": hostile::agent_flow(&json!({}), &json!([{"action": "final"}]))}),
            json!({"type": "start", "seq": 1, "start": "s", "node": "hostile-agent", "message": {"payload": 1}}),
            json!({"type": "cancel", "seq": 2, "start": "s", "reason": "r"}),
            json!({"type": "tool_result", "seq": 3, "run": "r", "call": "c",
                   "reply": {"type": "returned", "output": {"a": 1}}}),
            json!({"type": "subscribe", "after": "0", "runs": ["r"], "deltas": true}),
            json!({"type": "ping", "id": "i"}),
            json!({"auth": TOKEN}),
            json!({"subscribe": "debug"}),
        ];
        let frames = frames.into_iter().chain(self.greeting.clone()).map(|frame| frame.to_string());
        let texts = hostile::texts(20_000).into_iter().map(|(_, text)| text);
        frames.chain(texts).map(String::into_bytes).collect()
    }

    fn run(&self, input: &[u8]) -> Outcome {
        let mut socket = self.sidecar.open(self.path, self.protocol)?;
        if let Some(greeting) = self.greeting.as_ref().filter(|_| !hash(input).is_multiple_of(4)) {
            // A closed socket shows when it is read.
            let _ = socket.send(Message::text(greeting.to_string()));
        }
        let _ = match std::str::from_utf8(input) {
            Ok(text) => socket.send(Message::text(text)),
            Err(_) => socket.send(Message::binary(input.to_vec())),
        };
        let mut outcome = String::new();
        while let Ok(message) = socket.read() {
            match message {
                Message::Text(text) => outcome = kind_of(&text),
                Message::Close(frame) => {
                    outcome += &frame.map(|frame| frame.reason.to_string()).unwrap_or_default();
                }
                _ => {}
            }
        }
        self.sidecar.check_health()?;
        Ok(outcome)
    }
}

/// Messages of MCP clients, in a session or in a version of the protocol that has none.
struct McpRequests {
    sidecar: Arc<Sidecar>,
}

impl McpRequests {
    fn send(
        &self,
        body: &[u8],
        headers: &[(&str, &str)],
    ) -> Result<ureq::http::Response<ureq::Body>, String> {
        let url = format!("http://{}/mcp", self.sidecar.address);
        let mut request = self.sidecar.agent.post(url).header("authorization", format!("Bearer {TOKEN}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        request.send(body).map_err(|error| format!("/mcp: {error}"))
    }

    /// The id of a new session.
    fn open_session(&self) -> Result<String, String> {
        let hello = message(
            "initialize",
            &json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "fuzzer", "version": "1"}}),
        );
        let response = self.send(hello.to_string().as_bytes(), &[])?;
        let session = response.headers().get(SESSION).and_then(|id| id.to_str().ok());
        session.map(str::to_owned).ok_or_else(|| format!("no session: {}", response.status()))
    }

    fn close_session(&self, session: &str) -> Result<(), String> {
        let url = format!("http://{}/mcp", self.sidecar.address);
        let request = self.sidecar.agent.delete(url).header("authorization", format!("Bearer {TOKEN}"));
        request.header(SESSION, session).call().map(drop).map_err(|error| error.to_string())
    }
}

const SESSION: &str = "mcp-session-id";

fn message(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

impl Target for McpRequests {
    fn name(&self) -> &'static str {
        "requests"
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}, "progressToken": 1});
        let messages = [
            message("ping", &json!({})),
            message("server/discover", &json!({"_meta": meta})),
            message("tools/list", &json!({"cursor": "1", "_meta": meta})),
            message(
                "tools/call",
                &json!({"name": "builtin__calculator", "arguments": {"expression": "1+1"}, "_meta": meta}),
            ),
            message("resources/list", &json!({})),
            message("resources/read", &json!({"uri": "redflow://runs/x"})),
            message("resources/templates/list", &json!({})),
            message("prompts/get", &json!({"name": "x", "arguments": {"a": "b"}})),
            message(
                "completion/complete",
                &json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "b"}}),
            ),
            message("logging/setLevel", &json!({"level": "debug"})),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": "r"}}),
            json!({"jsonrpc": "2.0", "id": "a", "result": {"roots": []}}),
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32600, "message": "m", "data": [1]}}),
            json!([message("ping", &json!({}))]),
        ];
        let texts = hostile::texts(20_000).into_iter().map(|(_, text)| text);
        messages.into_iter().map(|value| value.to_string()).chain(texts).map(String::into_bytes).collect()
    }

    fn run(&self, input: &[u8]) -> Outcome {
        let method = serde_json::from_slice::<Value>(input).ok();
        let method = method.as_ref().and_then(|message| message["method"].as_str()).unwrap_or_default();
        let session = if hash(input).is_multiple_of(2) { Some(self.open_session()?) } else { None };
        let is_header = method.bytes().all(|byte| matches!(byte, b'!'..=b'~'));
        let headers = match &session {
            Some(session) => [(SESSION, session.as_str()), ("mcp-protocol-version", "2025-11-25")],
            None => [
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", if is_header { method } else { "ping" }),
            ],
        };
        let response = self.send(input, &headers)?;
        let status = response.status().as_u16();
        // A stream may stay open, so its messages are not waited for.
        drop(response);
        if let Some(session) = session {
            self.close_session(&session)?;
        }
        self.sidecar.check_health()?;
        match status {
            500.. => Err(format!("/mcp answers {status}")),
            200 => Ok(format!("{status} {method}")),
            _ => Ok(status.to_string()),
        }
    }
}

/// The type and code of a message.
fn kind_of(text: &str) -> String {
    let message: Value = serde_json::from_str(text).unwrap_or_default();
    let part = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    format!("{} {} ", part("type"), part("code"))
}
