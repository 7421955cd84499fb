//! What the tools of a flow have to say when it is deployed, such as a knowledge base that does not exist yet.

use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::id::{InstanceId, NodeSummary};
use redflow_engine::BuiltFlow;
use redflow_ports::Tool;
use std::sync::Arc;
use std::time::Duration;

/// How long a deploy waits for the tools. What comes later is left out.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Notices that are logged one by one.
const MAX_LOGGED: usize = 100;

/// Adds the notices of a flow's tools to its report, up to the limit, and logs them. A notice refuses nothing.
pub(crate) async fn add_tool_notices(
    report: &mut CheckReport,
    tools: Vec<(NodeSummary, Arc<dyn Tool>)>,
    instance: &InstanceId,
    limit: usize,
) {
    let mut notices: Vec<Diagnostic> = Vec::new();
    let ask_all = async {
        for (node, tool) in tools {
            let found = tool.notices().await;
            notices.extend(found.into_iter().map(|notice| Diagnostic { node: Some(node.clone()), ..notice }));
        }
    };
    if tokio::time::timeout(TIMEOUT, ask_all).await.is_err() {
        tracing::warn!(
            instance = instance.as_str(),
            "the tools of the flow did not say in time what they need"
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

/// The tools of a flow that are nodes of their own, each with its node.
pub(crate) fn tools_of(built: &BuiltFlow) -> Vec<(NodeSummary, Arc<dyn Tool>)> {
    let flow = built.resolved();
    let tools = built.tools().into_iter();
    tools.filter_map(|tool| Some((flow.summary(flow.find(&tool.entry.provider)?), tool.tool?))).collect()
}
