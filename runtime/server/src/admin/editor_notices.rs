//! What Node-RED's editor is told: what debug nodes show, how agents stand, that something was deployed.
//!
//! Owns the topics and what is retained of them, for all sockets in one place. One task makes notices out of the events
//! of the log as they become durable; a socket only reads. Bounded in all it holds.

use crate::admin::encode::{Encoded, encode, encode_text};
use crate::deploy::sentence;
use crate::ring::Feed;
use crate::sidecar::{App, blocking};
use axum::extract::ws::Utf8Bytes;
use redflow_contract::api::AgentState;
use redflow_contract::code::Severity;
use redflow_contract::envelope::StopReason;
use redflow_contract::event::{FlowEvent, RunEvent, RunEventKind};
use redflow_contract::id::{InstanceId, NodeId, NodeSummary};
use redflow_contract::stream::StreamEvent;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Notices that are held for sockets that keep up.
const MAX_NOTICES: usize = 4096;
const MAX_NOTICE_BYTES: usize = 4 * 1024 * 1024;

/// Topics that are retained, and bytes of one. What is beyond is told and not retained.
const MAX_RETAINED: usize = 10_000;
const MAX_TOPIC: usize = 1024;

/// Characters of a text under a node.
const MAX_STATUS: usize = 64;

/// Refused agents that are told of one by one.
const MAX_REFUSED: usize = 100;

/// Events that are taken at once.
const PAGE: usize = 256;

/// How long to wait after the log could not be read.
const PAUSE: Duration = Duration::from_millis(200);

/// How loud Node-RED logs.
const ERROR: u32 = 20;
const WARN: u32 = 30;

/// What all editors are told.
pub(crate) struct EditorNotices {
    pub(crate) feed: Feed,
    retained: Mutex<BTreeMap<String, Retained>>,
}

/// The last word on a topic.
struct Retained {
    text: Utf8Bytes,
    of: About,
}

/// What a retained notice is about.
#[derive(Clone, PartialEq)]
enum About {
    /// Everything.
    Runtime,
    /// A run of an agent.
    Run(NodeId),
    /// An agent that cannot run.
    Refused(NodeId),
}

impl EditorNotices {
    pub(crate) fn new() -> Self {
        Self { feed: Feed::new(MAX_NOTICES, MAX_NOTICE_BYTES), retained: Mutex::default() }
    }

    /// The notices that are retained on the topics a pattern means.
    pub(crate) fn retained(&self, pattern: &str) -> Vec<Utf8Bytes> {
        let held = self.held();
        held.iter().filter(|(topic, _)| matches(pattern, topic)).map(|(_, kept)| kept.text.clone()).collect()
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<String, Retained>> {
        self.retained.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell<T: Serialize>(&self, topic: &str, data: T) {
        if let Some(text) = notice(topic, data) {
            self.feed.tell(text);
        }
    }

    fn tell_and_retain<T: Serialize>(&self, topic: String, data: T, of: About) {
        let Some(text) = notice(&topic, data) else { return };
        // Retained first: whoever reads the notice and asks again is not told something older.
        let mut held = self.held();
        let has_room = held.len() < MAX_RETAINED && topic.len() <= MAX_TOPIC;
        if has_room || held.contains_key(&topic) {
            held.insert(topic, Retained { text: text.clone(), of });
        }
        drop(held);
        self.feed.tell(text);
    }

    fn status(&self, node: &NodeId, status: &Status<'_>, refused: bool) {
        let of = if refused { About::Refused(node.clone()) } else { About::Run(node.clone()) };
        self.tell_and_retain(status_topic(node), status, of);
    }

    /// Takes the status away from nodes for which it means nothing any more.
    fn clear(&self, is_over: impl Fn(&About) -> bool) {
        let mut over = Vec::new();
        self.held().retain(|topic, kept| {
            let goes = is_over(&kept.of);
            if goes {
                over.push(topic.clone());
            }
            !goes
        });
        for topic in over {
            self.tell(&topic, json!({}));
        }
    }
}

#[derive(Serialize)]
struct Notice<'a, T> {
    topic: &'a str,
    data: T,
}

fn notice<T: Serialize>(topic: &str, data: T) -> Option<Utf8Bytes> {
    serde_json::to_string(&Notice { topic, data }).ok().map(Utf8Bytes::from)
}

/// One notice that is for one socket only.
pub(crate) fn heartbeat(now: u64) -> Option<Utf8Bytes> {
    notice("hb", now)
}

fn status_topic(node: &NodeId) -> String {
    format!("status/{node}")
}

/// Whether a pattern means a topic: `+` stands for one part of it, `/#` at the end for all the rest.
fn matches(pattern: &str, topic: &str) -> bool {
    if pattern == "#" {
        return true;
    }
    let (head, is_open) = pattern.strip_suffix("/#").map_or((pattern, false), |head| (head, true));
    let mut parts = topic.split('/');
    let fits = |wanted: &str, part: &str| wanted == part || (wanted == "+" && !part.is_empty());
    head.split('/').all(|wanted| parts.next().is_some_and(|part| fits(wanted, part)))
        && (is_open || parts.next().is_none())
}

/// What stands under a node.
#[derive(Serialize)]
struct Status<'a> {
    fill: &'static str,
    shape: &'static str,
    text: &'a str,
}

impl<'a> Status<'a> {
    fn running(text: &'a str) -> Self {
        Self { fill: "green", shape: "ring", text }
    }

    fn waiting(text: &'a str) -> Self {
        Self { fill: "yellow", shape: "ring", text }
    }

    fn over(text: &'a str) -> Self {
        Self { fill: "grey", shape: "dot", text }
    }

    fn failed(text: &'a str) -> Self {
        Self { fill: "red", shape: "ring", text }
    }
}

/// What an editor shows in its sidebar.
#[derive(Serialize)]
struct Shown<'a> {
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

/// Where a node is.
#[derive(Deserialize)]
struct Placed {
    id: String,
    #[serde(default)]
    z: Option<String>,
}

/// Makes notices out of events, from a position on. Ends with the runtime.
pub(crate) async fn keep(app: Arc<App>, after: u64) {
    let mut keeper = Keeper { app, tabs: HashMap::new() };
    let log = Arc::clone(&keeper.app.hub.log);
    let mut last = after;
    loop {
        log.wait_past(last).await;
        let Ok(events) = log.after(last, PAGE).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        for event in events {
            last = event.position;
            match serde_json::from_str(&event.json) {
                Ok(StreamEvent::Run { event }) => keeper.run_event(&event),
                Ok(StreamEvent::Flow { at, event }) => keeper.flow_event(at, &event).await,
                // Of a later release, on whose disk this one was started.
                Err(_) => {}
            }
        }
    }
}

struct Keeper {
    app: Arc<App>,
    /// The tab of every node of the flow in force.
    tabs: HashMap<String, String>,
}

impl Keeper {
    fn run_event(&self, event: &RunEvent) {
        // Agents of a Node-RED are shown there.
        if event.agent.instance != InstanceId::local() {
            return;
        }
        let (board, node) = (&self.app.board, &event.agent.node_id);
        match &event.event {
            RunEventKind::RunStarted { .. } => board.status(node, &Status::running("started"), false),
            RunEventKind::ModelCalled { iteration, .. } => {
                board.status(node, &Status::running(&format!("iteration {iteration}")), false);
            }
            RunEventKind::ToolCalled { tool, .. } => {
                board.status(node, &Status::running(&short(&format!("tool {tool}"))), false);
            }
            RunEventKind::WaitingForOutcome { .. } => {
                board.status(node, &Status::waiting("waiting for an outcome"), false);
            }
            RunEventKind::RunFinished { error: Some(error), .. } => {
                board.status(node, &Status::failed(error.code.as_str()), false);
            }
            RunEventKind::RunFinished { stop_reason, .. } => {
                board.status(node, &Status::over(ended(*stop_reason)), false);
            }
            RunEventKind::MemoryRecalled { .. }
            | RunEventKind::MemoryCleared {}
            | RunEventKind::MemoryFailed { .. }
            | RunEventKind::ModelAnswered { .. }
            | RunEventKind::ToolReturned { .. } => {}
        }
    }

    async fn flow_event(&mut self, at: u64, event: &FlowEvent) {
        match event {
            FlowEvent::Debug { node, property, value } => self.debug(at, node, property, value),
            FlowEvent::Deployed { revision, instance: None, .. } => self.deployed(at, revision).await,
            FlowEvent::Uncaught { node, error } => {
                let text = format!("{}: {}", error.code.as_str(), error.message);
                self.log(at, node, ERROR, &text);
            }
            FlowEvent::ChainCut { node, limit } => {
                let text = format!("the chain of agents that feed each other was cut after {limit}");
                self.log(at, node, ERROR, &text);
            }
            FlowEvent::NeedsNodeRed { node } => {
                let text =
                    format!("a `{}` node runs in Node-RED only: the message stopped here", node.type_name);
                self.log(at, node, WARN, &text);
            }
            FlowEvent::ReplyDropped { node, reason } => {
                self.log(at, node, WARN, &format!("a reply was dropped: {reason}"));
            }
            FlowEvent::Chat { .. }
            | FlowEvent::MemoryCleared { .. }
            | FlowEvent::Checked { .. }
            | FlowEvent::Deployed { .. } => {}
        }
    }

    fn debug(&self, timestamp: u64, node: &NodeSummary, property: &str, value: &Value) {
        let Encoded { msg, format } = encode(value);
        let whole = property == "msg";
        let property = (!whole).then(|| property.strip_prefix("msg.").unwrap_or(property));
        let topic = value.get("topic").filter(|_| whole);
        self.show(Shown { topic, property, ..self.shown(node, Encoded { msg, format }, timestamp) });
    }

    fn log(&self, timestamp: u64, node: &NodeSummary, level: u32, text: &str) {
        let shown = self.shown(node, encode_text(text), timestamp);
        self.show(Shown { type_name: Some(&node.type_name), level: Some(level), ..shown });
    }

    fn show(&self, shown: Shown<'_>) {
        self.app.board.tell("debug", shown);
    }

    fn shown<'a>(&'a self, node: &'a NodeSummary, encoded: Encoded, timestamp: u64) -> Shown<'a> {
        let tab = self.tabs.get(node.id.as_str()).map(String::as_str);
        let Encoded { msg, format } = encoded;
        Shown {
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

    /// Another flow is in force: nodes that are gone have no status, agents that are refused have that one.
    async fn deployed(&mut self, at: u64, revision: &str) {
        let told = self.app.active_flow();
        let nodes = Arc::clone(&told.nodes);
        let read = move || serde_json::from_str::<Vec<Placed>>(&nodes).unwrap_or_default();
        if let Ok(placed) = blocking(read).await {
            self.tabs = placed.into_iter().filter_map(|node| Some((node.id, node.z?))).collect();
        }
        let agents: Vec<&AgentState> = told.list.flows.iter().flat_map(|flow| &flow.agents).collect();
        let ready: HashSet<&NodeId> =
            agents.iter().filter(|agent| agent.ready).map(|agent| &agent.node.id).collect();
        let board = &self.app.board;
        board.clear(|of| match of {
            About::Runtime => false,
            About::Run(node) => !ready.contains(node),
            About::Refused(_) => true,
        });
        let refused = || agents.iter().filter(|agent| !agent.ready);
        for (place, agent) in refused().enumerate() {
            let worst = agent.problems.iter().find(|problem| problem.severity == Severity::Error);
            let Some(problem) = worst.or(agent.problems.first()) else { continue };
            board.status(&agent.node.id, &Status::failed(problem.code.as_str()), true);
            if place < MAX_REFUSED {
                let text = format!("{}: {}", problem.code.as_str(), sentence(problem));
                self.log(at, &agent.node, ERROR, &text);
            }
        }
        let topic = |name: &str| format!("notification/{name}");
        board.tell_and_retain(
            topic("runtime-state"),
            json!({"state": "start", "deploy": true}),
            About::Runtime,
        );
        board.tell_and_retain(topic("runtime-deploy"), json!({"revision": revision}), About::Runtime);
    }
}

fn ended(reason: StopReason) -> &'static str {
    match reason {
        StopReason::FinalAnswer => "completed",
        StopReason::ConfidenceThreshold => "stopped: sure enough",
        StopReason::IterationLimit => "stopped: enough iterations",
        StopReason::Error => "stopped",
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_STATUS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{About, EditorNotices, MAX_RETAINED, MAX_STATUS, MAX_TOPIC, Status, matches, short};
    use redflow_contract::id::NodeId;

    #[test]
    fn patterns_mean_what_they_mean_to_node_red() {
        let rows = [
            ("debug", "debug", true),
            ("debug", "debug/x", false),
            ("status/#", "status/a", true),
            ("status/#", "status/a/b", true),
            ("status/#", "status", true),
            ("status/#", "statuses", false),
            ("status/+", "status/a.b c", true),
            ("status/+", "status/a/b", false),
            ("status/+", "status/", false),
            ("status/+", "status", false),
            ("+/a", "status/a", true),
            ("+", "status/a", false),
            ("#", "status/a", true),
            ("", "status/a", false),
            ("status/(.*)+", "status/a", false),
            ("status/a", "status/a", true),
        ];
        for (pattern, topic, expected) in rows {
            assert_eq!(matches(pattern, topic), expected, "{pattern} {topic}");
        }
    }

    #[test]
    fn what_is_retained_is_bounded_and_the_last_word_replaces_the_one_before() {
        let board = EditorNotices::new();
        let status = |id: &str, text: &str| board.status(&NodeId::from(id), &Status::running(text), false);
        for number in 0..MAX_RETAINED + 5 {
            status(&number.to_string(), "1");
        }
        status("0", "2");
        status("one more", "1");
        status(&"x".repeat(MAX_TOPIC), "1");
        assert_eq!(board.retained("status/#").len(), MAX_RETAINED);
        let first = board.retained("status/0");
        assert_eq!(
            first[0].as_str(),
            r#"{"topic":"status/0","data":{"fill":"green","shape":"ring","text":"2"}}"#
        );
        assert!(board.retained("status/one more").is_empty());
        board.clear(|of| *of != About::Run(NodeId::from("7")));
        assert_eq!(board.retained("#").len(), 1);
        // All were told of, retained or not: too many to be held.
        assert_eq!(board.feed.after(0, 1), None);
    }

    #[test]
    fn what_stands_under_a_node_is_short() {
        assert_eq!(short("tool x"), "tool x");
        assert_eq!(short(&"é".repeat(MAX_STATUS + 1)), "é".repeat(MAX_STATUS) + "…");
    }
}
