//! What an MCP server sends: the answers to all messages of a connection, and the result of a call.

use super::{Outcome, Target};
use redflow_contract::digest::Digest;
use redflow_contract::effect::ToolCall;
use redflow_contract::id::RunId;
use redflow_contract::mcp::{
    MAX_MCP_DESCRIPTION_CHARS, MAX_MCP_RESULT_BYTES, MAX_MCP_TOOLS, McpPins, McpServers as Definitions,
};
use redflow_contract::tool::{MAX_TOOL_ID_BYTES, ToolState};
use redflow_contract::{Message, Millis};
use redflow_egress::{Egress, EgressPolicy, EgressSettings};
use redflow_mcp::{Confiner, HubSettings, McpHub, ServerTimes};
use redflow_ports::{
    Clock, FileStoreError, McpServers as _, McpStore, NoMeter, ProvidedTool, ToolOutcome, ToolProvider as _,
};
use redflow_testkit::{HttpRequest, HttpServer, json_response};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Builder;

/// What the ids of the tools of the server begin with.
const PREFIX: &str = "mcp.fuzz.";

/// In a text of an input, the id of the message that it answers.
const ID: &str = "$id";

/// A server that leaves a message unanswered must not hold the fuzzer.
const TIMES: ServerTimes = ServerTimes {
    connect: Duration::from_secs(1),
    first_delay: Duration::from_secs(60),
    longest_delay: Duration::from_secs(60),
    stable: Duration::from_secs(30),
    shortest_refresh: Duration::from_secs(60),
    shortest_validity: Duration::from_secs(60),
    longest_validity: Duration::from_secs(60),
    subscribe_delay: Duration::from_secs(60),
    page: Duration::from_millis(500),
    list: Duration::from_secs(1),
};

/// The time of a call.
const CALL_MS: u64 = 500;

/// An input is an object with the result of each method. A text is the whole body of the answer. Any other input is the
/// body of every answer.
pub(super) struct ServerMessages;

impl Target for ServerMessages {
    fn name(&self) -> &'static str {
        "mcp"
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        let tools = json!([
            {"name": "echo", "title": "Echo", "description": "Echoes.", "inputSchema": {"type": "object",
                "properties": {"text": {"type": "string"}}}, "outputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": true, "destructiveHint": false}},
            {"name": "a.b/c", "inputSchema": {"type": "object", "$ref": "#/$defs/x", "$defs": {"x": {}}}},
        ]);
        let initialize = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true},
            "resources": {}, "prompts": {}, "logging": {}}, "serverInfo": {"name": "s", "version": "1"},
            "instructions": "Use it."});
        let discover = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0,
            "cacheScope": "private", "capabilities": {"tools": {}}});
        let contents = json!([{"type": "text", "text": "hello"}, {"type": "image", "data": "R0lGODlh", "mimeType": "image/gif"},
            {"type": "resource_link", "uri": "file:///etc/passwd", "name": "p"},
            {"type": "resource", "resource": {"uri": "x:y", "text": "t", "mimeType": "text/plain"}}]);
        let list = json!({"tools": tools, "nextCursor": "2", "_meta": {"a": 1}});
        let event = |method: &str, params: &Value| {
            let message = json!({"jsonrpc": "2.0", "id": 900, "method": method, "params": params});
            let result = json!({"jsonrpc": "2.0", "id": 0, "result": {"content": []}});
            let result = result.to_string().replace("\"id\":0", &format!("\"id\":{ID}"));
            format!(": ping\n\nid: 7\nretry: 1\ndata: {message}\n\nevent: message\ndata: {result}\n\n")
        };
        let sampling = event("sampling/createMessage", &json!({"messages": [], "maxTokens": 1}));
        let elicits =
            event("elicitation/create", &json!({"message": "key?", "requestedSchema": {"type": "object"}}));
        let answers = [
            json!({"initialize": initialize, "tools/list": list, "tools/call": {"content": contents}}),
            json!({"server/discover": discover, "tools/list": {"resultType": "complete", "ttlMs": 0,
                "cacheScope": "private", "tools": tools}, "tools/call": {"structuredContent": {"n": 1}, "isError": true}}),
            json!({"initialize": initialize, "tools/list": {"tools": tools}, "tools/call": sampling}),
            json!({"initialize": initialize, "tools/list": {"tools": tools}, "tools/call": elicits}),
            json!({"initialize": initialize, "tools/list": {"tools": tools},
                "tools/call": format!("{{\"jsonrpc\":\"2.0\",\"id\":{ID},\"error\":{{\"code\":-32602,\"message\":\"no\"}}}}"),
                "resources/list": {"resources": [{"uri": "file:///a", "name": "a"}]},
                "prompts/list": {"prompts": [{"name": "p", "arguments": [{"name": "x"}]}]}}),
        ];
        let all = format!("{{\"jsonrpc\":\"2.0\",\"id\":{ID},\"result\":{{\"tools\":{tools}}}}}");
        answers.into_iter().map(|value| value.to_string()).chain([all]).map(String::into_bytes).collect()
    }

    fn run(&self, input: &[u8]) -> Outcome {
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        runtime.block_on(connect_and_call(input))
    }
}

async fn connect_and_call(input: &[u8]) -> Outcome {
    let answers = Answers::read(input);
    let server = HttpServer::start(move |request| ready(answers.of(&request)));
    let server = server.await.map_err(|error| error.to_string())?;
    let settings = EgressSettings { private: vec![server.addr.to_string()], ..EgressSettings::default() };
    let policy = EgressPolicy::new(&settings).map_err(|_| "the settings are wrong")?;
    let hub = McpHub::new(HubSettings {
        egress: Egress::new(policy),
        store: Arc::new(MemoryStore::default()),
        clock: Arc::new(FixedClock),
        meter: Arc::new(NoMeter),
        folder: None,
        confine: Confiner::none(),
        times: TIMES,
    });
    let servers = json!({"fuzz": {"url": server.url("/mcp")}});
    let servers: Definitions = serde_json::from_value(servers).map_err(|error| error.to_string())?;
    hub.define(&servers, &[], &|_| None);
    hub.wait(&["fuzz".to_owned()], &[]).await;
    let outcome = look_at(&hub).await;
    hub.stop().await;
    outcome
}

/// The tools of the server follow the rules, and the first one that can be called gives a bounded result.
async fn look_at(hub: &McpHub) -> Outcome {
    let tools = hub.tools();
    if tools.len() > MAX_MCP_TOOLS {
        return Err(format!("{} tools", tools.len()));
    }
    for tool in &tools {
        check_entry(tool)?;
    }
    hub.show("fuzz").await.map_err(|error| error.message)?;
    let is_ready = |tool: &&ProvidedTool| tool.entry.state == ToolState::Ready;
    let called = match tools.iter().find(is_ready) {
        Some(tool) => check_outcome(&tool.tool.call(&call()).await)?,
        None => "none",
    };
    let ready = tools.iter().filter(is_ready).count();
    Ok(format!("{ready} of {} tools are ready, {called}", tools.len()))
}

fn check_entry(tool: &ProvidedTool) -> Result<(), String> {
    let entry = &tool.entry;
    let name = entry.id.strip_prefix(PREFIX).unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || !name.chars().all(is_plain) || entry.id.len() > MAX_TOOL_ID_BYTES {
        return Err(format!("a tool has the id {:?}", entry.id));
    }
    let is_hidden = |c: char| c.is_control() && c != '\n' && c != '\t';
    if entry.description.chars().count() > MAX_MCP_DESCRIPTION_CHARS || entry.description.contains(is_hidden)
    {
        return Err(format!("the description of {} is not cleaned or cut", entry.id));
    }
    if entry.state == ToolState::Ready && !entry.input_schema.as_ref().is_some_and(Value::is_object) {
        return Err(format!("{} is ready without a schema", entry.id));
    }
    Ok(())
}

fn check_outcome(outcome: &ToolOutcome) -> Result<&'static str, String> {
    let ToolOutcome::Returned(result) = outcome else { return Ok("unknown") };
    let bytes = result.output.as_ref().map_or(0, text_bytes);
    if u64::try_from(bytes).unwrap_or(u64::MAX) > MAX_MCP_RESULT_BYTES {
        return Err(format!("a result has {bytes} bytes of text"));
    }
    if !result.success && result.error.as_deref().is_none_or(str::is_empty) {
        return Err("a failed call has no error".to_owned());
    }
    Ok(if result.success { "success" } else { "failure" })
}

/// The bytes of all texts in a value.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + text_bytes(value)).sum(),
        _ => 0,
    }
}

fn call() -> ToolCall {
    ToolCall {
        run_id: "run".into(),
        iteration: 1,
        call_id: "run:1".into(),
        tool: "tool".to_owned(),
        node: "n1".into(),
        agent: "n2".into(),
        input: Message::new(),
        idempotency_key: Digest::of(b"key"),
        timeout_ms: CALL_MS,
        declared: None,
        operation: None,
        conversation: Default::default(),
    }
}

/// What the server answers.
enum Answers {
    ByMethod(Message),
    Always(Vec<u8>),
}

impl Answers {
    fn read(input: &[u8]) -> Self {
        serde_json::from_slice(input).map_or_else(|_| Self::Always(input.to_vec()), Self::ByMethod)
    }

    fn of(&self, request: &HttpRequest) -> Vec<u8> {
        let message = request.json().unwrap_or_default();
        let (id, method) = (&message["id"], message["method"].as_str().unwrap_or_default());
        match (self, request.method.as_str()) {
            (_, "POST") if id.is_null() => json_response(202, &[], &Value::Null),
            (Self::Always(body), "POST") => body_response(&String::from_utf8_lossy(body), id),
            (Self::ByMethod(results), "POST") => match results.get(method) {
                Some(Value::String(body)) => body_response(body, id),
                Some(result) => {
                    json_response(200, &[], &json!({"jsonrpc": "2.0", "id": id, "result": result}))
                }
                None => json_response(400, &[], &Value::Null),
            },
            (_, "DELETE") => json_response(200, &[], &Value::Null),
            _ => json_response(405, &[], &Value::Null),
        }
    }
}

/// A body as it is. One that begins as a stream of events is one.
fn body_response(body: &str, id: &Value) -> Vec<u8> {
    let body = body.replace(ID, &id.to_string());
    let is_stream = [":", "data:", "event:", "id:"].iter().any(|start| body.starts_with(start));
    let content = if is_stream { "text/event-stream" } else { "application/json" };
    let length = body.len();
    format!("HTTP/1.1 200 X\r\ncontent-type: {content}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// Pins and tokens in memory.
#[derive(Default)]
pub(super) struct MemoryStore {
    pins: Mutex<HashMap<String, McpPins>>,
    tokens: Mutex<HashMap<String, String>>,
}

impl MemoryStore {
    /// The number of tokens that are kept.
    pub(super) fn token_count(&self) -> usize {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl McpStore for MemoryStore {
    fn pins(&self, server: &str) -> Result<McpPins, FileStoreError> {
        Ok(self.pins.lock().unwrap_or_else(PoisonError::into_inner).get(server).cloned().unwrap_or_default())
    }

    fn set_pins(&self, server: &str, pins: &McpPins) -> Result<(), FileStoreError> {
        self.pins.lock().unwrap_or_else(PoisonError::into_inner).insert(server.to_owned(), pins.clone());
        Ok(())
    }

    fn tokens(&self, key: &str) -> Result<Option<String>, FileStoreError> {
        Ok(self.tokens.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned())
    }

    fn set_tokens(&self, key: &str, tokens: Option<&str>) -> Result<(), FileStoreError> {
        let mut all = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        match tokens {
            Some(tokens) => drop(all.insert(key.to_owned(), tokens.to_owned())),
            None => drop(all.remove(key)),
        }
        Ok(())
    }
}

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Millis {
        1_767_225_600_000
    }

    fn run_id(&self) -> RunId {
        "run".into()
    }

    fn message_id(&self) -> String {
        "0123456789abcdef".to_owned()
    }
}
