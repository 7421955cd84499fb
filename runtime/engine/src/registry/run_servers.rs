//! What MCP servers give a run as it begins: the prompt that is its system prompt, and the servers that its message
//! names.

use super::Registry;
use super::bindings::{config_invalid, unavailable};
use crate::flow::agent::{BuiltAgent, McpPromptName, ProviderBindings};
use crate::report::error_outside_run;
use redflow_contract::Message;
use redflow_contract::code::RunErrorCode;
use redflow_contract::mcp::{MCP_CLIENT, MCP_PROPERTY, is_mcp_name, mcp_server_of};
use redflow_contract::plan::{AgentSpec, ToolSpec};
use redflow_contract::run_error::RunError;
use redflow_machine::Strategies;
use serde_json::Value;
use std::sync::Arc;

/// The most servers that a message may name.
const MAX_NAMED_SERVERS: usize = 32;

/// The longest prompt that can be a system prompt, in bytes.
const MAX_PROMPT_BYTES: usize = 65_536;

/// What the names of tools of MCP servers begin with.
pub(super) const MCP_NAME_PREFIX: &str = "mcp__";

impl McpPromptName {
    /// The text of the prompt.
    pub(super) fn read(&self, registry: &Registry) -> Result<Arc<str>, RunError> {
        let Self { server, prompt } = self;
        let refuse = |reason: &str| {
            let text = format!(
                "The system prompt is the prompt `{prompt}` of the MCP server `{server}`, but {reason}. See `redflow mcp \
                 show {server}`."
            );
            Err(error_outside_run(RunErrorCode::McpUnavailable, text))
        };
        match registry.mcp().and_then(|mcp| mcp.prompt(server, prompt)) {
            Some(text) if text.len() > MAX_PROMPT_BYTES => {
                refuse(&format!("it has {} bytes; at most {MAX_PROMPT_BYTES} are allowed", text.len()))
            }
            Some(text) => Ok(text),
            None => refuse("the server is not connected or has no such prompt"),
        }
    }
}

impl BuiltAgent {
    /// The agent with the tools that a run for this message may call.
    pub(crate) fn resolve_for(
        self: &Arc<Self>,
        message: &Message,
        registry: &Registry,
        strategies: &Strategies,
    ) -> Result<Arc<Self>, RunError> {
        let agent = self.resolve(registry, strategies)?;
        let named = message.get(MCP_PROPERTY).filter(|named| !named.is_null());
        match (&self.providers, named) {
            (Some(bindings), Some(named)) => agent.select_servers(bindings, named, strategies),
            _ => Ok(agent),
        }
    }

    /// The agent with only those tools of MCP servers whose server is named. An agent that uses no MCP server ignores
    /// the names, because a message may come from another agent that does.
    fn select_servers(
        self: &Arc<Self>,
        bindings: &ProviderBindings,
        named: &Value,
        strategies: &Strategies,
    ) -> Result<Arc<Self>, RunError> {
        let spec = self.compiled.spec();
        let server = |tool: &ToolSpec| tool.id.as_deref().and_then(mcp_server_of).map(str::to_owned);
        if !bindings.names_mcp() && spec.tools.iter().all(|tool| server(tool).is_none()) {
            return Ok(Arc::clone(self));
        }
        let names = server_names(named)?;
        let is_of = |tool: &ToolSpec, name: &str| server(tool).as_deref() == Some(name);
        if let Some(name) = names.iter().find(|name| !spec.tools.iter().any(|tool| is_of(tool, name))) {
            let text = format!("`msg.mcp` names the MCP server `{name}`, but the agent has no tool of it.");
            return Err(unavailable(&text));
        }
        let is_kept = |tool: &ToolSpec| server(tool).is_none_or(|server| names.contains(&server.as_str()));
        if spec.tools.iter().all(is_kept) {
            return Ok(Arc::clone(self));
        }
        let parts = spec.tools.iter().zip(&self.tools).zip(&self.tool_nodes);
        let (mut specs, mut tools, mut nodes) = (Vec::new(), Vec::new(), Vec::new());
        for ((tool_spec, tool), node) in parts.filter(|((tool_spec, _), _)| is_kept(tool_spec)) {
            specs.push(tool_spec.clone());
            tools.push(tool.clone());
            nodes.push(node.clone());
        }
        let spec = AgentSpec { tools: specs, ..AgentSpec::clone(spec) };
        self.with_spec(spec, (tools, nodes), Arc::clone(&self.scrubber), strategies)
    }
}

impl ProviderBindings {
    /// Whether a node of the agent says that it uses an MCP server.
    fn names_mcp(&self) -> bool {
        self.providers.iter().any(|provider| provider.node.type_name == MCP_CLIENT)
            || self
                .registry_ids()
                .any(|(.., id)| mcp_server_of(id).is_some() || id.starts_with(MCP_NAME_PREFIX))
    }
}

/// The servers that a message names: one text, or a list of texts.
fn server_names(named: &Value) -> Result<Vec<&str>, RunError> {
    let names: Option<Vec<&str>> = match named {
        Value::String(name) => Some(vec![name.as_str()]),
        Value::Array(names) if names.len() <= MAX_NAMED_SERVERS => names.iter().map(Value::as_str).collect(),
        _ => None,
    };
    names.filter(|names| names.iter().all(|name| is_mcp_name(name))).ok_or_else(|| {
        config_invalid(format!(
            "`msg.mcp` must be the name of an MCP server, or a list of at most {MAX_NAMED_SERVERS} names."
        ))
    })
}
