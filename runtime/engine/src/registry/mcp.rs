//! The tools of MCP servers in the registry.
//!
//! The ids of these tools begin with `mcp.`, and no other id does. So they replace no tool of the manifest.

use super::{Registry, RegistrySnapshot};
use redflow_contract::manifest::Manifest;
use redflow_contract::mcp::mcp_server_of;
use redflow_contract::tool::ToolOrigin;
use redflow_ports::{McpServers, ProvidedTool};
use std::sync::Arc;

impl Registry {
    /// Reads the tools of the MCP servers into a new snapshot.
    pub(super) fn read_mcp_tools(&self, mcp: &dyn McpServers) -> Arc<RegistrySnapshot> {
        // Read before the tools: what changes meanwhile is read again by the next call.
        let generation = mcp.generation();
        let (tools, mcp_secrets) = (mcp.tools(), mcp.secrets());
        self.replace(|before| {
            let own = before.tools.iter().filter(|tool| !is_mcp_tool(tool)).cloned().collect();
            let mut secrets = before.own_secrets.clone();
            secrets.add_all(&mcp_secrets);
            RegistrySnapshot {
                generation: 0,
                mcp_generation: Some(generation),
                tools: join_tools(own, tools.into_iter().filter(is_mcp_tool)),
                nodes: before.nodes.clone(),
                packages: before.packages.clone(),
                policy: Arc::clone(&before.policy),
                own_secrets: before.own_secrets.clone(),
                secrets: Arc::new(secrets),
            }
        });
        self.current()
    }
}

/// Whether a tool is one of an MCP server. Others must not have such an id, and these no other one.
pub(super) fn is_mcp_tool(tool: &ProvidedTool) -> bool {
    tool.entry.origin == ToolOrigin::Mcp && mcp_server_of(&tool.entry.id).is_some()
}

/// All tools, sorted by id. Of two with the same id the first one stays.
pub(super) fn join_tools(
    own: Vec<ProvidedTool>,
    of_servers: impl Iterator<Item = ProvidedTool>,
) -> Vec<ProvidedTool> {
    let mut tools = own;
    tools.extend(of_servers);
    tools.sort_by(|one, other| one.entry.id.cmp(&other.entry.id));
    tools.dedup_by(|other, first| other.entry.id == first.entry.id);
    tools
}

/// Gives the servers of the manifest and the added ones to the MCP servers.
pub(super) fn define_servers(
    mcp: &dyn McpServers,
    manifest: &Manifest,
    added: &redflow_contract::mcp::McpServers,
    env: &dyn Fn(&str) -> Option<String>,
) {
    let mut servers = added.clone();
    servers.extend(manifest.mcp.clone());
    let added: Vec<String> = added.keys().filter(|name| !manifest.mcp.contains_key(*name)).cloned().collect();
    mcp.define(&servers, &added, env);
}
