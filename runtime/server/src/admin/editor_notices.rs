//! The notices for Node-RED's editor, for all sockets together: the newest ones, and the retained ones.
//!
//! Owns the topics and which notices are retained. Bounded in all it holds. `notice_writer` makes the
//! notices; a socket only reads them.

use crate::agent_status::{AgentStatus, RunPhase};
use crate::feed::Feed;
use axum::extract::ws::Utf8Bytes;
use redflow_contract::bridge::{StatusFill, StatusShape};
use redflow_contract::id::NodeId;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Notices that are held for sockets that keep up.
const MAX_NOTICES: usize = 4096;
const MAX_NOTICE_BYTES: usize = 4 * 1024 * 1024;

/// Retained topics, and the bytes of one topic. Notices beyond are sent and not retained.
const MAX_RETAINED: usize = 10_000;
const MAX_TOPIC: usize = 1024;

pub(crate) struct EditorNotices {
    pub(crate) feed: Feed,
    retained: Mutex<BTreeMap<Topic, Retained>>,
}

/// The topic of a retained notice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Topic {
    /// Of the runtime.
    Notification(&'static str),
    /// The status under a node.
    Status(NodeId),
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Notification(name) => write!(f, "notification/{name}"),
            Self::Status(node) => write!(f, "status/{node}"),
        }
    }
}

/// The newest notice of a topic.
enum Retained {
    /// About the whole runtime.
    Runtime(Utf8Bytes),
    /// About a run of this agent.
    Run(AgentStatus),
    /// About an agent that is refused.
    RefusedAgent(Utf8Bytes),
}

impl Retained {
    fn to_text(&self, topic: &Topic) -> Option<Utf8Bytes> {
        match self {
            Self::Runtime(text) | Self::RefusedAgent(text) => Some(text.clone()),
            Self::Run(status) => run_status_text(topic, status),
        }
    }
}

impl EditorNotices {
    pub(crate) fn new() -> Self {
        Self { feed: Feed::new(MAX_NOTICES, MAX_NOTICE_BYTES), retained: Mutex::default() }
    }

    /// The retained notices of the topics that match a pattern.
    pub(crate) fn retained(&self, pattern: &str) -> Vec<Utf8Bytes> {
        let retained = self.lock();
        let matching = retained.iter().filter(|(topic, _)| topic_matches(pattern, &topic.to_string()));
        matching.filter_map(|(topic, notice)| notice.to_text(topic)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Topic, Retained>> {
        self.retained.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn send<T: Serialize>(&self, topic: &str, data: T) {
        if !self.feed.has_readers() {
            return;
        }
        if let Some(text) = to_text(topic, data) {
            self.feed.push(text);
        }
    }

    /// Retains a notice.
    fn retain(&self, topic: Topic, notice: Retained) {
        let mut retained = self.lock();
        if let Some(older) = retained.get_mut(&topic) {
            *older = notice;
        } else if retained.len() < MAX_RETAINED && topic.to_string().len() <= MAX_TOPIC {
            retained.insert(topic, notice);
        }
    }

    pub(super) fn send_notification(&self, name: &'static str, data: Value) {
        let topic = Topic::Notification(name);
        let Some(text) = to_text(&topic.to_string(), data) else { return };
        // Retained before it is sent, so that an editor that subscribes after it gets nothing older.
        self.retain(topic, Retained::Runtime(text.clone()));
        self.feed.push(text);
    }

    /// Sends the status of an agent. Its text is made only if an editor reads it.
    pub(crate) fn send_run_status(&self, node: &NodeId, status: AgentStatus) {
        let topic = Topic::Status(node.clone());
        if !self.feed.has_readers() {
            return self.retain(topic, Retained::Run(status));
        }
        let text = run_status_text(&topic, &status);
        self.retain(topic, Retained::Run(status));
        if let Some(text) = text {
            self.feed.push(text);
        }
    }

    pub(super) fn send_refused_status(&self, node: &NodeId, code: &str) {
        let topic = Topic::Status(node.clone());
        let status = NodeStatus::new(RunPhase::Failed, code);
        let Some(text) = to_text(&topic.to_string(), status) else { return };
        self.retain(topic, Retained::RefusedAgent(text.clone()));
        self.feed.push(text);
    }

    /// Clears the statuses of refused agents, and of the runs of agents that are not ready.
    pub(super) fn clear_statuses(&self, is_ready: impl Fn(&NodeId) -> bool) {
        let mut cleared = Vec::new();
        self.lock().retain(|topic, notice| {
            let is_kept = match (topic, &*notice) {
                (Topic::Status(node), Retained::Run(_)) => is_ready(node),
                (Topic::Status(_), _) => false,
                (Topic::Notification(_), _) => true,
            };
            if !is_kept {
                cleared.push(topic.to_string());
            }
            is_kept
        });
        for topic in cleared {
            self.send(&topic, json!({}));
        }
    }
}

fn run_status_text(topic: &Topic, status: &AgentStatus) -> Option<Utf8Bytes> {
    to_text(&topic.to_string(), NodeStatus::new(status.phase(), &status.sentence().text))
}

#[derive(Serialize)]
struct Notice<'a, T> {
    topic: &'a str,
    data: T,
}

fn to_text<T: Serialize>(topic: &str, data: T) -> Option<Utf8Bytes> {
    serde_json::to_string(&Notice { topic, data }).ok().map(Utf8Bytes::from)
}

/// A heartbeat notice. Each socket sends its own.
pub(crate) fn heartbeat(now: u64) -> Option<Utf8Bytes> {
    to_text("hb", now)
}

/// Whether a topic matches a pattern: `+` stands for one part, `/#` at the end for all further parts.
fn topic_matches(pattern: &str, topic: &str) -> bool {
    if pattern == "#" {
        return true;
    }
    let (head, is_open) = pattern.strip_suffix("/#").map_or((pattern, false), |head| (head, true));
    let mut parts = topic.split('/');
    let part_matches = |wanted: &str, part: &str| wanted == part || (wanted == "+" && !part.is_empty());
    head.split('/').all(|wanted| parts.next().is_some_and(|part| part_matches(wanted, part)))
        && (is_open || parts.next().is_none())
}

/// The status under a node.
#[derive(Serialize)]
struct NodeStatus<'a> {
    fill: StatusFill,
    shape: StatusShape,
    text: &'a str,
}

impl<'a> NodeStatus<'a> {
    /// The Redflow UI takes a green status for a running node and grey for an idle one. So these colours
    /// differ from those in Node-RED.
    fn new(phase: RunPhase, text: &'a str) -> Self {
        let (fill, shape) = match phase {
            RunPhase::Running => (StatusFill::Green, StatusShape::Ring),
            RunPhase::Waiting => (StatusFill::Yellow, StatusShape::Ring),
            RunPhase::Completed | RunPhase::Stopped => (StatusFill::Grey, StatusShape::Dot),
            RunPhase::Failed => (StatusFill::Red, StatusShape::Ring),
        };
        Self { fill, shape, text }
    }
}

#[cfg(test)]
mod tests {
    use super::{EditorNotices, MAX_RETAINED, MAX_TOPIC, topic_matches};
    use crate::agent_status::AgentStatus;
    use redflow_contract::id::NodeId;

    #[test]
    fn matches_patterns_as_node_red_does() {
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
            assert_eq!(topic_matches(pattern, topic), expected, "{pattern} {topic}");
        }
    }

    #[test]
    fn retains_the_newest_notice_of_a_bounded_number_of_topics() {
        let notices = EditorNotices::new();
        let send_status = |id: &str, iteration: u32| {
            notices.send_run_status(&NodeId::from(id), AgentStatus::CallsModel(iteration));
        };
        for number in 0..MAX_RETAINED + 5 {
            send_status(&number.to_string(), 1);
        }
        // Nobody reads them, so none was written.
        assert_eq!(*notices.feed.newest().borrow(), 0);
        let reader = notices.feed.newest();
        send_status("0", 2);
        send_status("one more", 1);
        send_status(&"x".repeat(MAX_TOPIC), 1);
        assert_eq!(notices.retained("status/#").len(), MAX_RETAINED);
        let first = notices.retained("status/0");
        assert_eq!(
            first[0].as_str(),
            r#"{"topic":"status/0","data":{"fill":"green","shape":"ring","text":"iteration 2: model"}}"#
        );
        assert!(notices.retained("status/one more").is_empty());
        // All were sent, retained or not.
        assert_eq!(*reader.borrow(), 3);
        assert_eq!(notices.feed.after(0, 9).unwrap()[0], first[0]);
        notices.clear_statuses(|node| node.as_str() == "7");
        assert_eq!(notices.retained("#").len(), 1);
    }
}
