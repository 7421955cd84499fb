//! What the tools and memories of a flow have to say when it is deployed, such as a knowledge base that does not exist yet.

use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::id::{InstanceId, NodeSummary};
use redflow_engine::BuiltFlow;
use redflow_ports::{Memory, Tool};
use std::sync::Arc;
use std::time::Duration;

/// How long a deploy waits for the tools and memories. What comes later is left out.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Notices that are logged one by one.
const MAX_LOGGED: usize = 100;

/// Adds the notices of a flow's tools and memories to its report, up to the limit, and logs them. A notice refuses nothing.
pub(crate) async fn add_service_notices(
    report: &mut CheckReport,
    (tools, memories): (Vec<NodeTool>, Vec<NodeMemory>),
    instance: &InstanceId,
    limit: usize,
) {
    let mut notices: Vec<Diagnostic> = Vec::new();
    let ask_all = async {
        for (node, tool) in tools {
            notices.extend(tool.notices().await.into_iter().map(|notice| notice_of(&node, notice)));
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

/// A tool with its node.
type NodeTool = (NodeSummary, Arc<dyn Tool>);
/// A memory with its node.
type NodeMemory = (NodeSummary, Arc<dyn Memory>);

/// The tools of a flow that are nodes of their own, and its memories.
pub(crate) fn services_of(built: &BuiltFlow) -> (Vec<NodeTool>, Vec<NodeMemory>) {
    let flow = built.resolved();
    let tools = built.tools().into_iter();
    let tools = tools.filter_map(|tool| Some((flow.summary(flow.find(&tool.entry.provider)?), tool.tool?)));
    (tools.collect(), built.memories().to_vec())
}
