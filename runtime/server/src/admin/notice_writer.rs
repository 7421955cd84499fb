//! Makes the notices for Node-RED's editor from the flow events of the log, in one task for all sockets.

use super::encode::{DebugValue, encode, encode_text};
use crate::app::App;
use crate::deploy::{sentence, worst_problem};
use redflow_contract::api::AgentState;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::{NodeId, NodeSummary};
use redflow_contract::stream::StreamEvent;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// Refused agents that are shown in the sidebar one by one.
const MAX_REFUSED: usize = 100;

/// Events that are read from the log at once.
const PAGE: usize = 256;

/// Bytes of an event after which others get their turn.
const MAX_IN_A_ROW: usize = 16 * 1024;

/// How long to wait after a failed read of the log.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// The type of the event of a deploy. Its notices are made for editors that come later, too.
const DEPLOYED: &str = "deployed";

/// The log levels of Node-RED.
const ERROR: u32 = 20;
const WARN: u32 = 30;

/// A message in the debug sidebar.
#[derive(Serialize)]
struct SidebarMessage<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    z: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    type_name: Option<&'a str>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    property: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<u32>,
    msg: String,
    format: String,
    timestamp: u64,
}

/// The part of a node that names its tab.
#[derive(Deserialize)]
struct NodeTab {
    id: String,
    #[serde(default)]
    z: Option<String>,
}

/// Makes notices from all events after a position, until the task is aborted.
pub(crate) async fn write_notices(app: Arc<App>, after: u64) {
    let mut writer = NoticeWriter { app, tabs: HashMap::new() };
    let log = Arc::clone(&writer.app.hub.log);
    let mut last = after;
    loop {
        last = log.wait_for_flow_event(last).await;
        let Ok(events) = log.read_after(last, PAGE).await else {
            tokio::time::sleep(RETRY_DELAY).await;
            continue;
        };
        for event in events {
            last = event.position;
            // The statuses of agents come from the engines, and calls of tools make no notices.
            if event.run.is_some() || event.tool.is_some() {
                continue;
            }
            let is_deploy = || StreamEvent::type_in(&event.json).is_some_and(|name| name == DEPLOYED);
            if !writer.app.editor_notices.feed.has_readers() && !is_deploy() {
                continue;
            }
            if event.json.len() > MAX_IN_A_ROW {
                tokio::task::yield_now().await;
            }
            // Another event was written by a later release.
            if let Ok(StreamEvent::Flow { at, event }) = serde_json::from_str(&event.json) {
                writer.flow_event(at, &event).await;
            }
        }
    }
}

struct NoticeWriter {
    app: Arc<App>,
    /// The tab of every node of the active flow.
    tabs: HashMap<String, String>,
}

impl NoticeWriter {
    async fn flow_event(&mut self, at: u64, event: &FlowEvent) {
        match event {
            FlowEvent::Debug { node, property, value } => self.debug(at, node, property, value),
            FlowEvent::Deployed { revision, instance: None, .. } => self.deployed(at, revision).await,
            FlowEvent::Uncaught { node, error } => {
                let text = format!("{}: {}", error.code.as_str(), error.message);
                self.log(at, node, ERROR, &text);
            }
            FlowEvent::CascadeCut { node, limit } => {
                let text = format!("the cascade of runs was cut at its limit of {limit}");
                self.log(at, node, ERROR, &text);
            }
            FlowEvent::NeedsNodeRed { node } => {
                let text =
                    format!("a `{}` node runs in Node-RED only; the message ended here", node.type_name);
                self.log(at, node, WARN, &text);
            }
            FlowEvent::ReplyDropped { node, reason } => {
                self.log(at, node, WARN, &format!("a reply was dropped: {reason}"));
            }
            FlowEvent::MemoryConsolidated { node, error: Some(error), .. } => {
                self.log(at, node, WARN, &format!("the memory could not consolidate: {}", error.message));
            }
            FlowEvent::Chat { .. }
            | FlowEvent::MemoryConsolidated { .. }
            | FlowEvent::MemoryForgotten { .. }
            | FlowEvent::Erased {}
            | FlowEvent::ToolInvoked { .. }
            | FlowEvent::MemoryCleared { .. }
            | FlowEvent::Checked { .. }
            | FlowEvent::Deployed { .. } => {}
        }
    }

    fn debug(&self, timestamp: u64, node: &NodeSummary, property: &str, value: &Value) {
        let is_whole = property == "msg";
        let property = (!is_whole).then(|| property.strip_prefix("msg.").unwrap_or(property));
        let topic = value.get("topic").filter(|_| is_whole);
        self.send(SidebarMessage { topic, property, ..self.message(node, encode(value), timestamp) });
    }

    fn log(&self, timestamp: u64, node: &NodeSummary, level: u32, text: &str) {
        let message = self.message(node, encode_text(text), timestamp);
        self.send(SidebarMessage { type_name: Some(&node.type_name), level: Some(level), ..message });
    }

    fn send(&self, message: SidebarMessage<'_>) {
        self.app.editor_notices.send("debug", message);
    }

    fn message<'a>(&'a self, node: &'a NodeSummary, value: DebugValue, timestamp: u64) -> SidebarMessage<'a> {
        let tab = self.tabs.get(node.id.as_str()).map(String::as_str);
        let DebugValue { msg, format } = value;
        SidebarMessage {
            id: node.id.as_str(),
            z: tab,
            path: tab,
            type_name: None,
            name: &node.name,
            topic: None,
            property: None,
            level: None,
            msg,
            format,
            timestamp,
        }
    }

    /// After a deploy: clears the statuses of removed nodes, and sets those of refused agents.
    async fn deployed(&mut self, at: u64, revision: &str) {
        let active = self.app.active_flow();
        let nodes = Arc::clone(&active.nodes);
        let read = move || serde_json::from_str::<Vec<NodeTab>>(&nodes).unwrap_or_default();
        if let Ok(nodes) = self.app.run_blocking(read).await {
            self.tabs = nodes.into_iter().filter_map(|node| Some((node.id, node.z?))).collect();
        }
        let (ready, refused): (Vec<&AgentState>, Vec<&AgentState>) =
            active.agents().partition(|agent| agent.ready);
        let ready: HashSet<&NodeId> = ready.into_iter().map(|agent| &agent.node.id).collect();
        let notices = &self.app.editor_notices;
        notices.clear_statuses(|node| ready.contains(node));
        for (index, agent) in refused.into_iter().enumerate() {
            let Some(problem) = worst_problem(agent) else { continue };
            notices.send_refused_status(&agent.node.id, problem.code.as_str());
            if index < MAX_REFUSED {
                let text = format!("{}: {}", problem.code.as_str(), sentence(problem));
                self.log(at, &agent.node, ERROR, &text);
            }
        }
        notices.send_notification("runtime-state", json!({"state": "start", "deploy": true}));
        notices.send_notification("runtime-deploy", json!({"revision": revision}));
    }
}
