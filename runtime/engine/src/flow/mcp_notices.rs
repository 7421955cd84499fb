//! Finds the nodes of a flow that name an MCP server without a definition.

use super::BuiltFlow;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::id::NodeSummary;
use redflow_contract::mcp::{is_mcp_name, mcp_server_of};
use redflow_contract::node::ContextSpanConfig;
use redflow_contract::phrases;
use redflow_ports::McpServers;
use serde_json::Value;
use std::collections::HashSet;

impl BuiltFlow {
    /// A notice for each node that names an unknown MCP server: in the ids of a `registry-tool`, in a system prompt, or
    /// in the context of a long memory. Nodes with an address of their own are not among them.
    #[must_use]
    pub fn unknown_servers(&self, mcp: &dyn McpServers) -> Vec<Diagnostic> {
        let mut notices = Vec::new();
        let mut known = HashSet::new();
        let mut add = |node: &NodeSummary, server: &str, pointer: String| {
            if !mcp.is_known(server) && known.insert((node.id.clone(), server.to_owned())) {
                let help = phrases::mcp_server_unknown_help(server);
                let message = phrases::mcp_server_unknown(server);
                let notice = Diagnostic::new(DiagnosticCode::McpServerUnknown, message, help);
                notices.push(Diagnostic { node: Some(node.clone()), pointer: Some(pointer), ..notice });
            }
        };
        for (_, agent) in self.agents() {
            let Some(bindings) = &agent.providers else { continue };
            for (node, place, id) in bindings.registry_ids() {
                if let Some(server) = mcp_server_of(id) {
                    add(node, server, format!("/ids/{place}"));
                }
            }
            if let Some(prompt) = &bindings.prompt {
                add(&agent.summary(), &prompt.server, "/systemPrompt".to_owned());
            }
        }
        for (node, _) in &self.memories {
            let Some(ix) = self.flow.find(node.id.as_str()) else { continue };
            for (place, span) in context_spans(self.flow.raw(ix).props.get("context")).into_iter().enumerate()
            {
                // A name with a reference such as `${NAME}` is known only as a run begins.
                if is_mcp_name(&span.server) {
                    add(node, &span.server, format!("/context/{place}/server"));
                }
            }
        }
        notices
    }
}

/// The spans of a long memory.
fn context_spans(value: Option<&Value>) -> Vec<ContextSpanConfig> {
    value.and_then(|list| serde_json::from_value(list.clone()).ok()).unwrap_or_default()
}
