//! Which MCP servers the agents of a flow use.

use redflow_contract::id::NodeId;
use redflow_contract::mcp::{MCP_CLIENT, MCP_PROMPT_PREFIX, McpOrigin, McpServerSummary, mcp_server_of};
use redflow_contract::tool::ToolEntry;
use redflow_flow::{CheckedAgent, CheckedFlow, RawNode, ReadyProvider, Verdict};
use std::collections::HashMap;

/// The servers that the nodes of each agent name.
#[derive(Default)]
pub(crate) struct McpUses(HashMap<NodeId, Vec<McpUse>>);

/// A server that a node names.
#[derive(Debug, PartialEq, Eq)]
enum McpUse {
    /// A server of the manifest, by its name.
    Named(String),
    /// The server at an address, by the host and port of the address.
    At(String),
}

impl McpUses {
    pub(crate) fn new(checked: &CheckedFlow) -> Self {
        let uses = |agent: &CheckedAgent| {
            let Verdict::Ready(ready) = &agent.verdict else { return None };
            let of_provider =
                |provider: &ReadyProvider| uses_of_provider(provider, checked.flow.raw(provider.ix));
            let mut uses: Vec<McpUse> = ready.providers.iter().flat_map(of_provider).collect();
            uses.extend(prompt_server(checked.flow.raw(agent.ix)));
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
            Self::At(host) => server.origin == McpOrigin::Node && host_of(&server.target) == Some(host),
        }
    }
}

fn uses_of_provider(provider: &ReadyProvider, node: &RawNode) -> Vec<McpUse> {
    if node.type_name == MCP_CLIENT {
        let text = |name: &str| node.text(name).map(str::trim).filter(|text| !text.is_empty());
        let at = text("url").and_then(|url| Some(McpUse::At(host_of(url)?.to_owned())));
        let named = || text("server").map(|name| McpUse::Named(name.to_owned()));
        return at.or_else(named).into_iter().collect();
    }
    let ids = provider.ids.iter().flatten();
    ids.filter_map(|id| Some(McpUse::Named(mcp_server_of(id)?.to_owned()))).collect()
}

/// The server whose prompt is the system prompt of an agent.
fn prompt_server(agent: &RawNode) -> Option<McpUse> {
    let name = agent.text("systemPrompt")?.trim().strip_prefix(MCP_PROMPT_PREFIX)?;
    name.split_once('/').map(|(server, _)| McpUse::Named(server.to_owned()))
}

/// The host and the port of an address.
fn host_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::host_of;

    #[test]
    fn an_address_has_a_host() {
        assert_eq!(host_of("https://a.example/mcp?x=1"), Some("a.example"));
        assert_eq!(host_of("http://u:p@127.0.0.1:81"), Some("127.0.0.1:81"));
        assert_eq!(host_of("npx -y server"), None);
    }
}
