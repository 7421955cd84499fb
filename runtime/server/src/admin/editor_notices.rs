//! The notices for Node-RED's editor, for all sockets together: the newest ones, and the retained ones.
//!
//! Owns the topics and which notices are retained. Bounded in all it holds. `notice_writer` makes the
//! notices; a socket only reads them.

use crate::agent_status::RunPhase;
use crate::feed::Feed;
use axum::extract::ws::Utf8Bytes;
use redflow_contract::bridge::{StatusFill, StatusShape};
use redflow_contract::id::NodeId;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Notices that are held for sockets that keep up.
const MAX_NOTICES: usize = 4096;
const MAX_NOTICE_BYTES: usize = 4 * 1024 * 1024;

/// Retained topics, and the bytes of one topic. Notices beyond are sent and not retained.
const MAX_RETAINED: usize = 10_000;
const MAX_TOPIC: usize = 1024;

pub(crate) struct EditorNotices {
    pub(crate) feed: Feed,
    retained: Mutex<BTreeMap<String, Retained>>,
}

/// The newest notice of a topic.
struct Retained {
    text: Utf8Bytes,
    subject: Subject,
}

/// What a retained notice is about, which decides how long it is retained.
#[derive(Clone, PartialEq)]
pub(super) enum Subject {
    /// The whole runtime.
    Runtime,
    /// A run of this agent.
    Run(NodeId),
    /// This agent, because it is refused.
    RefusedAgent(NodeId),
}

impl EditorNotices {
    pub(crate) fn new() -> Self {
        Self { feed: Feed::new(MAX_NOTICES, MAX_NOTICE_BYTES), retained: Mutex::default() }
    }

    /// The retained notices of the topics that match a pattern.
    pub(crate) fn retained(&self, pattern: &str) -> Vec<Utf8Bytes> {
        let retained = self.lock();
        let matching = retained.iter().filter(|(topic, _)| topic_matches(pattern, topic));
        matching.map(|(_, notice)| notice.text.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Retained>> {
        self.retained.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn send<T: Serialize>(&self, topic: &str, data: T) {
        if let Some(text) = to_text(topic, data) {
            self.feed.push(text);
        }
    }

    pub(super) fn send_retained<T: Serialize>(&self, topic: String, data: T, subject: Subject) {
        let Some(text) = to_text(&topic, data) else { return };
        // Retained before it is sent, so that an editor that subscribes after it gets nothing older.
        let mut retained = self.lock();
        let has_room = retained.len() < MAX_RETAINED && topic.len() <= MAX_TOPIC;
        if has_room || retained.contains_key(&topic) {
            retained.insert(topic, Retained { text: text.clone(), subject });
        }
        drop(retained);
        self.feed.push(text);
    }

    pub(crate) fn send_run_status(&self, node: &NodeId, status: &NodeStatus<'_>) {
        self.send_retained(status_topic(node), status, Subject::Run(node.clone()));
    }

    pub(super) fn send_refused_status(&self, node: &NodeId, code: &str) {
        let status = NodeStatus::new(RunPhase::Failed, code);
        self.send_retained(status_topic(node), status, Subject::RefusedAgent(node.clone()));
    }

    /// Clears all retained statuses whose subject is obsolete.
    pub(super) fn clear(&self, is_obsolete: impl Fn(&Subject) -> bool) {
        let mut cleared = Vec::new();
        self.lock().retain(|topic, notice| {
            let obsolete = is_obsolete(&notice.subject);
            if obsolete {
                cleared.push(topic.clone());
            }
            !obsolete
        });
        for topic in cleared {
            self.send(&topic, json!({}));
        }
    }
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

fn status_topic(node: &NodeId) -> String {
    format!("status/{node}")
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
pub(crate) struct NodeStatus<'a> {
    fill: StatusFill,
    shape: StatusShape,
    text: &'a str,
}

impl<'a> NodeStatus<'a> {
    /// The Redflow UI takes a green status for a running node and grey for an idle one. So these colours
    /// differ from those in Node-RED.
    pub(crate) fn new(phase: RunPhase, text: &'a str) -> Self {
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
    use super::{EditorNotices, MAX_RETAINED, MAX_TOPIC, NodeStatus, Subject, topic_matches};
    use crate::agent_status::RunPhase;
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
        let send_status = |id: &str, text: &str| {
            notices.send_run_status(&NodeId::from(id), &NodeStatus::new(RunPhase::Running, text));
        };
        for number in 0..MAX_RETAINED + 5 {
            send_status(&number.to_string(), "1");
        }
        send_status("0", "2");
        send_status("one more", "1");
        send_status(&"x".repeat(MAX_TOPIC), "1");
        assert_eq!(notices.retained("status/#").len(), MAX_RETAINED);
        let first = notices.retained("status/0");
        assert_eq!(
            first[0].as_str(),
            r#"{"topic":"status/0","data":{"fill":"green","shape":"ring","text":"2"}}"#
        );
        assert!(notices.retained("status/one more").is_empty());
        notices.clear(|subject| *subject != Subject::Run(NodeId::from("7")));
        assert_eq!(notices.retained("#").len(), 1);
        // All were sent, retained or not, which is more than the feed holds.
        assert_eq!(notices.feed.after(0, 1), None);
    }
}
