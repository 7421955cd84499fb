//! A double of the MCP servers: has the tools and prompts that a test says, when the test says so.

use redflow_contract::Message;
use redflow_contract::api::ApiError;
use redflow_contract::digest::Digest;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::mcp::{McpLogin, McpPinRequest, McpServerDetail, McpServerList};
use redflow_contract::node::EffectClass;
use redflow_contract::scrub::Scrubber;
use redflow_contract::tool::{ToolEntry, ToolOrigin, provider_name};
use redflow_ports::{
    BoxFuture, ContextSource, ContextSpan, McpAnswer, McpServers, ProvidedTool, Tool, ToolOutcome,
    ToolProvider,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

pub(crate) struct McpDouble {
    state: Mutex<McpState>,
    generation: AtomicU64,
    /// Whether all servers are connected.
    ready: watch::Sender<bool>,
}

/// A server and a prompt of it.
type PromptName = (String, String);

#[derive(Default)]
pub(crate) struct McpState {
    tools: Vec<ProvidedTool>,
    prompts: HashMap<(String, String), Arc<str>>,
    /// The servers of each definition, with the added ones.
    pub(crate) defined: Vec<(Vec<String>, Vec<String>)>,
    /// The servers and prompts of each wait.
    pub(crate) waits: Vec<(Vec<String>, Vec<PromptName>)>,
    pub(crate) secret: Option<String>,
    /// How often the tools were read.
    pub(crate) reads: usize,
}

impl McpDouble {
    pub(crate) fn new(ready: bool) -> Arc<Self> {
        let (state, generation) = (Mutex::default(), AtomicU64::new(0));
        Arc::new(Self { state, generation, ready: watch::Sender::new(ready) })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, McpState> {
        self.state.lock().unwrap()
    }

    /// Replaces the tools.
    pub(crate) fn set_tools(&self, tools: Vec<ProvidedTool>) {
        self.state().tools = tools;
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn set_prompt(&self, server: &str, prompt: &str, text: &str) {
        self.state().prompts.insert((server.to_owned(), prompt.to_owned()), text.into());
    }

    pub(crate) fn set_ready(&self, ready: bool) {
        self.ready.send_replace(ready);
    }
}

/// A tool of an MCP server whose calls return this, or never return if it is `"hangs"`.
pub(crate) fn mcp_tool(id: &str, result: Value) -> ProvidedTool {
    let entry = json!({
        "id": id, "name": provider_name(id), "origin": "mcp", "provider": id.split('.').nth(1).unwrap_or_default(),
        "description": format!("Does {id}."), "inputSchema": {"type": "object"}, "effect": "read",
        "timeoutMs": 1000, "retry": {"max": 0, "backoffMs": 1}, "permissions": {"network": "none", "files": "none",
        "process": true, "secrets": []}, "digest": Digest::of(id.as_bytes()), "state": "ready",
    });
    let entry: ToolEntry = serde_json::from_value(entry).unwrap();
    ProvidedTool { entry: Arc::new(entry), tool: Arc::new(FixedTool(result)) }
}

/// The same tool with another definition.
pub(crate) fn changed(tool: &ProvidedTool, change: impl FnOnce(&mut ToolEntry)) -> ProvidedTool {
    let mut entry = ToolEntry::clone(&tool.entry);
    change(&mut entry);
    ProvidedTool { entry: Arc::new(entry), tool: Arc::clone(&tool.tool) }
}

/// A tool that says that it is one of an MCP server and is none.
pub(crate) fn foreign_tools() -> Vec<ProvidedTool> {
    let shadow = changed(&mcp_tool("mcp.a.one", json!(1)), |entry| entry.id = "weather.current".to_owned());
    let other = changed(&mcp_tool("mcp.a.two", json!(1)), |entry| entry.origin = ToolOrigin::Manifest);
    vec![shadow, other]
}

struct FixedTool(Value);

impl Tool for FixedTool {
    fn effect(&self, _: &Message) -> EffectClass {
        EffectClass::AtMostOnce
    }

    fn call<'a>(&'a self, _: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            if self.0 == "hangs" {
                std::future::pending::<()>().await;
            }
            ToolOutcome::Returned(ToolResult::ok(self.0.clone()))
        })
    }
}

impl ToolProvider for McpDouble {
    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    fn tools(&self) -> Vec<ProvidedTool> {
        let mut state = self.state();
        state.reads += 1;
        state.tools.clone()
    }

    fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        let mut ready = self.ready.subscribe();
        Box::pin(async move { drop(ready.wait_for(|ready| *ready).await) })
    }
}

impl ContextSource for McpDouble {
    fn read<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<ContextSpan, String>> {
        Box::pin(std::future::ready(Err("no resource".to_owned())))
    }
}

fn refused<'a, T: Send + 'a>() -> McpAnswer<'a, T> {
    let error = json!({"code": "MCP_FAILED", "message": "the double has no servers"});
    let error: ApiError = serde_json::from_value(error).unwrap();
    Box::pin(std::future::ready(Err(error)))
}

impl McpServers for McpDouble {
    fn define(
        &self,
        servers: &redflow_contract::mcp::McpServers,
        added: &[String],
        _: &dyn Fn(&str) -> Option<String>,
    ) {
        self.state().defined.push((servers.keys().cloned().collect(), added.to_vec()));
    }

    fn connect_all(&self) {}

    fn is_known(&self, server: &str) -> bool {
        self.state().defined.last().is_some_and(|(servers, _)| servers.iter().any(|known| known == server))
    }

    fn list(&self) -> McpServerList {
        McpServerList::default()
    }

    fn show<'a>(&'a self, _: &'a str) -> McpAnswer<'a, McpServerDetail> {
        refused()
    }

    fn connect<'a>(&'a self, _: &'a str) -> McpAnswer<'a, McpServerDetail> {
        refused()
    }

    fn pin<'a>(&'a self, _: &'a str, _: McpPinRequest) -> McpAnswer<'a, McpServerDetail> {
        refused()
    }

    fn login<'a>(&'a self, _: &'a str, _: &'a str) -> McpAnswer<'a, McpLogin> {
        refused()
    }

    fn finish_login<'a>(&'a self, _: &'a str) -> McpAnswer<'a, String> {
        refused()
    }

    fn logout<'a>(&'a self, _: &'a str) -> McpAnswer<'a, ()> {
        refused()
    }

    fn prompt(&self, server: &str, prompt: &str) -> Option<Arc<str>> {
        self.state().prompts.get(&(server.to_owned(), prompt.to_owned())).cloned()
    }

    fn wait<'a>(&'a self, servers: &'a [String], prompts: &'a [(String, String)]) -> BoxFuture<'a, ()> {
        self.state().waits.push((servers.to_vec(), prompts.to_vec()));
        self.ready()
    }

    fn secrets(&self) -> Scrubber {
        let mut secrets = Scrubber::default();
        self.state().secret.iter().for_each(|secret| secrets.add(secret));
        secrets
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
