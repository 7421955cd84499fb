//! `/api/agents/{id}/state`: one agent with its tools, its memory and what it has done.

use crate::app::App;
use crate::request::{Path, invalid, query_pairs, unknown_parameter};
use crate::response::{ApiResult, Problem, json, printable};
use axum::extract::{RawQuery, State};
use redflow_contract::api::AgentState;
use redflow_contract::code::ApiCode;
use redflow_contract::id::{InstanceId, NodeId, NodeRef};
use redflow_contract::memory::MemoryStats;
use redflow_contract::tool_api::{AgentDetail, AgentMemory};
use redflow_engine::BuiltAgent;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long a memory may take to count.
const STATS_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) async fn state(
    State(app): State<Arc<App>>,
    Path(id): Path,
    RawQuery(query): RawQuery,
) -> ApiResult {
    let mut instance = None;
    for (name, value) in query_pairs(query.as_deref()) {
        match name.as_str() {
            "instance" => instance = Some(value),
            other => return Err(unknown_parameter(other)),
        }
    }
    agent_detail(&app, id, instance).await
}

/// The same under the path of the first design, with the agent in the query.
pub(crate) async fn internal_state(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> ApiResult {
    let (mut agent, mut instance) = (None, None);
    for (name, value) in query_pairs(query.as_deref()) {
        match name.as_str() {
            "agent" => agent = Some(value),
            "instance" => instance = Some(value),
            other => return Err(unknown_parameter(other)),
        }
    }
    let agent = agent.ok_or_else(|| invalid("Name the agent: `?agent=NODE`. /api/flows lists them."))?;
    agent_detail(&app, agent, instance).await
}

async fn agent_detail(app: &App, id: String, instance: Option<String>) -> ApiResult {
    let unknown = || {
        let text = format!("There is no agent `{}`. /api/flows lists them.", printable(&id));
        Problem::new(ApiCode::NotFound, text)
    };
    let instance = instance.map_or_else(InstanceId::local, InstanceId::from);
    let node_id = NodeId::from(id.as_str());
    let is_named = |agent: &&AgentState| agent.node.id == node_id;
    let (agent, flow) = if instance == InstanceId::local() {
        let active = app.active_flow();
        let agent = active.agents().find(is_named).cloned();
        (agent, active.tools)
    } else {
        let owner = app.bridge.all().into_iter().find(|known| known.id == instance).ok_or_else(unknown)?;
        (owner.state().agents.iter().find(is_named).cloned(), owner.tools())
    };
    let registry = &app.tool_definitions.registry;
    let entries = |agent: &Arc<BuiltAgent>| agent.tool_entries(registry, redflow_strategies::strategies());
    let (tools, tools_error) = match flow.agents.get(&node_id).map(entries) {
        Some(Ok(tools)) => (tools, None),
        Some(Err(error)) => (Vec::new(), Some(error)),
        None => (Vec::new(), None),
    };
    let agent = agent.ok_or_else(unknown)?;
    let servers = registry.mcp().map(|mcp| mcp.list().servers).unwrap_or_default();
    let mcp_servers = flow.mcp_uses.select(&node_id, &tools, servers);
    let stats = stats_of(flow.agents.get(&node_id)).await;
    let count = app.agent_counts.of(&NodeRef { instance: instance.clone(), node_id });
    let (recalls, hits) = (count.recalls, count.hits);
    let detail = AgentDetail {
        memory: agent.memory.clone().map(|node| AgentMemory { node, recalls, hits, stats }),
        agent,
        instance: Some(instance).filter(|instance| *instance != InstanceId::local()),
        tools,
        tools_error,
        mcp_servers,
        runs: count.runs,
        calls: count.calls(),
    };
    Ok(json(200, &detail))
}

/// How full the memory of an agent is; none without a memory, or if it does not answer in time.
async fn stats_of(agent: Option<&Arc<BuiltAgent>>) -> Option<MemoryStats> {
    let memory = agent?.memory()?;
    timeout(STATS_TIMEOUT, memory.stats()).await.ok()?.ok()
}
