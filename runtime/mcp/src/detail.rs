//! A server with its tools, resources and prompts, as people see it.

use crate::lists::{ListTime, MAX_LISTED, read_prompts, read_resources};
use crate::pins::diff;
use crate::server::Server;
use crate::text::shown_name;
use crate::tools::{SentTool, description_of, shown_effect, tightened_classes, tool_id};
use crate::{prompts, resources};
use redflow_contract::mcp::{McpPin, McpServerDetail, McpServerState, McpToolInfo};
use redflow_contract::node::EffectClass;
use redflow_contract::tool::ToolState;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// What is known of a server. It asks for resources and prompts only if the server is connected.
pub(crate) async fn detail(server: &Arc<Server>) -> McpServerDetail {
    let summary = server.summary();
    let mut detail =
        McpServerDetail { summary, tools: tools(server), resources: Vec::new(), prompts: Vec::new() };
    if detail.summary.state != McpServerState::Ready {
        return detail;
    }
    if let Ok(connected) = server.connected(Duration::ZERO).await {
        let has = |find: fn(&rmcp::model::ServerCapabilities) -> bool| {
            connected.info.as_ref().is_none_or(|info| find(&info.capabilities))
        };
        // One time for both: a person waits.
        let time = ListTime::new(connected.times);
        if has(|all| all.resources.is_some()) {
            let read = read_resources(&connected.peer, MAX_LISTED, time).await.unwrap_or_default();
            detail.resources = read.iter().map(resources::info_of).collect();
        }
        if has(|all| all.prompts.is_some()) {
            let read = read_prompts(&connected.peer, time).await.unwrap_or_default();
            detail.prompts = read.iter().map(prompts::info_of).collect();
        }
    }
    detail
}

fn tools(server: &Server) -> Vec<McpToolInfo> {
    let (sent, pins) = server.sent();
    let mut tools: Vec<_> =
        sent.tools.iter().map(|tool| tool_info(server, tool, pins.tools.get(&tool.name))).collect();
    let is_gone = |name: &str| sent.tools.iter().all(|tool| tool.name != name);
    let gone = pins.tools.iter().filter(|(name, _)| is_gone(name));
    tools.extend(gone.map(|(name, pin)| gone_tool(server, name, pin)));
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    tools
}

fn tool_info(server: &Server, sent: &SentTool, pin: Option<&McpPin>) -> McpToolInfo {
    let entry = server.current_entry(&sent.name);
    let differs = pin.is_none_or(|pin| pin.digest != sent.digest);
    let is_changed = entry.as_ref().is_some_and(|entry| entry.state == ToolState::Changed);
    McpToolInfo {
        name: shown_name(&sent.name),
        id: tool_id(server.name(), &sent.name),
        description: description_of(&sent.definition),
        effect: shown_effect(&server.definition, &sent.definition),
        tightened: tightened_classes(&sent.definition),
        included: sent.included,
        state: entry.as_ref().map_or(ToolState::Ready, |entry| entry.state),
        reason: entry.and_then(|entry| entry.reason.clone()),
        input_schema: sent.definition.get("inputSchema").cloned().unwrap_or(Value::Null),
        digest: Some(sent.digest),
        pinned: pin.map(|pin| pin.digest),
        diff: (differs && is_changed).then(|| diff(pin, &sent.definition)),
    }
}

fn gone_tool(server: &Server, name: &str, pin: &McpPin) -> McpToolInfo {
    McpToolInfo {
        name: shown_name(name),
        id: tool_id(server.name(), name),
        description: description_of(&pin.definition),
        effect: EffectClass::AtMostOnce,
        tightened: tightened_classes(&pin.definition),
        included: server.definition.includes(name),
        state: ToolState::Offline,
        reason: Some("The server does not have this tool now.".to_owned()),
        input_schema: pin.definition.get("inputSchema").cloned().unwrap_or(Value::Null),
        digest: None,
        pinned: Some(pin.digest),
        diff: None,
    }
}
