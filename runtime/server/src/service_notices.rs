//! What the tools, their providers and the memories of a flow have to say when it is deployed, such as a knowledge base
//! that does not exist yet, or an MCP server without a definition.

use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::id::{InstanceId, NodeSummary};
use redflow_engine::BuiltFlow;
use redflow_ports::{McpServers, Memory, Tool, ToolProvider};
use std::sync::Arc;
use std::time::Duration;

/// How long a deploy waits for the tools, their providers and the memories. What comes later is left out.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Notices that are logged one by one.
const MAX_LOGGED: usize = 100;

/// Adds the notices of a flow's services to its report, up to the limit, and logs them. A notice refuses nothing.
pub(crate) async fn add_service_notices(
    report: &mut CheckReport,
    services: NoticingServices,
    instance: &InstanceId,
    limit: usize,
) {
    let NoticingServices { tools, providers, memories, unknown_servers } = services;
    let mut notices: Vec<Diagnostic> = unknown_servers;
    let ask_all = async {
        for (node, tool) in tools {
            notices.extend(tool.notices().await.into_iter().map(|notice| notice_of(&node, notice)));
        }
        for (node, provider) in providers {
            notices.extend(provider.notices().await.into_iter().map(|notice| notice_of(&node, notice)));
        }
        for (node, memory) in memories {
            notices.extend(memory.notices().await.into_iter().map(|notice| notice_of(&node, notice)));
        }
    };
    if tokio::time::timeout(TIMEOUT, ask_all).await.is_err() {
        tracing::warn!(
            instance = instance.as_str(),
            "the tools and memories of the flow did not say in time what they need"
        );
    }
    for notice in notices.iter().take(MAX_LOGGED) {
        let node = notice.node.as_ref().map_or("", |node| node.id.as_str());
        let (instance, code) = (instance.as_str(), notice.code.as_str());
        tracing::warn!(instance, node, code, "{}", notice.message);
    }
    for notice in notices {
        if report.diagnostics.len() < limit {
            report.diagnostics.push(notice);
        } else {
            *report.omitted.entry(notice.code.to_string()).or_default() += 1;
        }
    }
}

fn notice_of(node: &NodeSummary, notice: Diagnostic) -> Diagnostic {
    Diagnostic { node: Some(node.clone()), ..notice }
}

/// The services of a flow that may have something to say.
pub(crate) struct NoticingServices {
    /// The tools that are nodes of their own.
    tools: Vec<(NodeSummary, Arc<dyn Tool>)>,
    providers: Vec<(NodeSummary, Arc<dyn ToolProvider>)>,
    memories: Vec<(NodeSummary, Arc<dyn Memory>)>,
    /// A notice for each node that names an unknown MCP server.
    unknown_servers: Vec<Diagnostic>,
}

impl NoticingServices {
    /// The services of a flow. Without MCP servers no node is told that its server is unknown.
    pub(crate) fn new(built: &BuiltFlow, mcp: Option<&Arc<dyn McpServers>>) -> Self {
        let flow = built.resolved();
        let tools = built.tools().into_iter();
        let tools =
            tools.filter_map(|tool| Some((flow.summary(flow.find(&tool.entry.provider)?), tool.tool?)));
        Self {
            tools: tools.collect(),
            providers: built.providers().to_vec(),
            memories: built.memories().to_vec(),
            unknown_servers: mcp.map(|mcp| built.unknown_servers(&**mcp)).unwrap_or_default(),
        }
    }
}
