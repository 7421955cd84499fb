//! Which MCP servers the agents of a flow use.

use redflow_contract::id::NodeId;
use redflow_contract::mcp::{MCP_CLIENT, MCP_PROMPT_PREFIX, McpOrigin, McpServerSummary, mcp_server_of};
use redflow_contract::plan::AgentSpec;
use redflow_contract::tool::ToolEntry;
use redflow_flow::{CheckedAgent, CheckedFlow, ProcessSecrets, ReadyProvider, Verdict};
use serde_json::Value;
use std::collections::HashMap;
use url::Url;

/// The servers that the nodes of each agent name.
#[derive(Default)]
pub(crate) struct McpUses(HashMap<NodeId, Vec<McpUse>>);

/// The process environment, as far as flows may see it.
type EnvLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A server that a node names.
#[derive(Debug, PartialEq, Eq)]
enum McpUse {
    /// A server of the manifest, by its name.
    Named(String),
    /// The server at an address, as [`address_of`] writes it.
    At(String),
}

impl McpUses {
    pub(crate) fn new(checked: &CheckedFlow, env: EnvLookup<'_>) -> Self {
        let uses = |agent: &CheckedAgent| {
            let Verdict::Ready(ready) = &agent.verdict else { return None };
            let of_provider = |provider: &ReadyProvider| uses_of_provider(checked, provider, env);
            let mut uses: Vec<McpUse> = ready.providers.iter().flat_map(of_provider).collect();
            uses.extend(prompt_server(&ready.spec));
            (!uses.is_empty()).then(|| (agent.node.id.clone(), uses))
        };
        Self(checked.agents.iter().filter_map(uses).collect())
    }

    /// Those of all servers that an agent uses: its nodes name them, or it has tools of them.
    pub(crate) fn select(
        &self,
        agent: &NodeId,
        tools: &[ToolEntry],
        all: Vec<McpServerSummary>,
    ) -> Vec<McpServerSummary> {
        let uses = self.0.get(agent).map_or(&[][..], Vec::as_slice);
        let has_tool = |name: &str| tools.iter().any(|tool| mcp_server_of(&tool.id) == Some(name));
        all.into_iter()
            .filter(|server| {
                uses.iter().any(|one| one.means(server))
                    || server.origin != McpOrigin::Node && has_tool(&server.name)
            })
            .collect()
    }
}

impl McpUse {
    fn means(&self, server: &McpServerSummary) -> bool {
        match self {
            Self::Named(name) => server.origin != McpOrigin::Node && server.name == *name,
            Self::At(address) => {
                server.origin == McpOrigin::Node && address_of(&server.target).as_ref() == Some(address)
            }
        }
    }
}

fn uses_of_provider(checked: &CheckedFlow, provider: &ReadyProvider, env: EnvLookup<'_>) -> Vec<McpUse> {
    if checked.flow.raw(provider.ix).type_name == MCP_CLIENT {
        // As the node itself is built. Only the address without its secrets is kept.
        let props = checked.flow.resolved_props(provider.ix, env, ProcessSecrets::InSecretProperties);
        let text = |name: &str| {
            props.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
        };
        let used = match text("url") {
            Some(url) => address_of(url).map(McpUse::At),
            None => text("server").map(|name| McpUse::Named(name.to_owned())),
        };
        return used.into_iter().collect();
    }
    let ids = provider.ids.iter().flatten();
    ids.filter_map(|id| Some(McpUse::Named(mcp_server_of(id)?.to_owned()))).collect()
}

/// The server whose prompt is the system prompt of an agent.
fn prompt_server(agent: &AgentSpec) -> Option<McpUse> {
    let prompt = &agent.converse.as_ref()?.system_prompt;
    let name = prompt.trim().strip_prefix(MCP_PROMPT_PREFIX)?;
    name.split_once('/').map(|(server, _)| McpUse::Named(server.to_owned()))
}

/// An address as the summary of a server has it: without a query and without secrets. None if it is no address.
fn address_of(text: &str) -> Option<String> {
    let mut url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    url.set_query(None);
    url.set_fragment(None);
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Some(url.to_string())
}

#[cfg(test)]
#[path = "mcp_uses_tests.rs"]
mod tests;
