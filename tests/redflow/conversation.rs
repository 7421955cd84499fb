//! The events of one start. `Frame::new` checks the rules that the UI relies on.

use crate::azure::USAGE;
use crate::flows::short;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};

/// The events of one frame, in order.
#[derive(Debug)]
pub(crate) struct Frame {
    events: Vec<Value>,
}

impl Frame {
    /// Checks a frame. It has one start with its trigger and one end. No node stays active in it, its statistics are
    /// right, each error belongs to a failed node, and each answer of a model has its tokens.
    #[track_caller]
    pub(crate) fn new(events: Vec<Value>, types: &HashMap<String, String>) -> Self {
        let id = text(&events[0], "/frameId").to_owned();
        let count = |name: &str| events.iter().filter(|event| event["event"] == name).count();
        assert_eq!((count("frame:start"), count("frame:end")), (1, 1), "{events:#?}");
        let (first, last) = (&events[0], events.last().unwrap());
        assert_eq!((text(first, "/event"), text(last, "/event")), ("frame:start", "frame:end"));
        assert_eq!((text(first, "/data/id"), text(last, "/data/id")), (id.as_str(), id.as_str()));
        let trigger = text(first, "/data/triggerNodeId");
        let (mut running, mut seen, mut failed) =
            (BTreeSet::from([trigger]), BTreeSet::from([trigger]), BTreeSet::new());
        let mut sent = 0;
        for (place, event) in events.iter().enumerate() {
            assert_eq!(event["frameId"], json!(id), "{event:#}");
            let Some(node) = event["nodeId"].as_str() else { continue };
            seen.insert(node);
            assert_eq!(event["data"]["nodeId"], node);
            assert_eq!(event["data"]["nodeType"].as_str(), types.get(node).map(String::as_str), "{event:#}");
            match text(event, "/event") {
                "node:input" => {
                    running.insert(node);
                    assert_eq!(
                        (&event["data"]["sampled"], text(event, "/data/input/direction")),
                        (&json!(true), "input")
                    );
                }
                "node:output" => {
                    running.remove(node);
                    let outputs = event["data"]["outputs"].as_array().unwrap();
                    // The UI uses the index in the list, not the port.
                    let is_answer = port(event) == Some(4);
                    assert!(
                        outputs.len() <= 1 && (event["data"]["sampled"] == true || is_answer),
                        "{event:#}"
                    );
                    sent += usize::from(port(event).is_some());
                    if behavior(event) == "terminated" {
                        failed.insert(node);
                    }
                    check_tokens(event);
                }
                "node:error" => {
                    let before = &events[place - 1];
                    assert_eq!((&before["nodeId"], behavior(before)), (&event["nodeId"], "terminated"));
                }
                other => panic!("{other}"),
            }
        }
        assert!(running.is_empty(), "{running:?} are still active: {events:#?}");
        let stats = &last["data"]["stats"];
        let counts = [&stats["nodeCount"], &stats["outputsEmitted"], &stats["erroredNodes"]];
        assert_eq!(counts, [&json!(seen.len()), &json!(sent), &json!(failed.len())], "{events:#?}");
        Self { events }
    }

    /// One line per event: the event, the node, its output and its behaviour.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.events.iter().map(line).collect()
    }

    /// The messages that a node received, in order.
    pub(crate) fn inputs(&self, node: &str) -> Vec<&Value> {
        let own = |event: &&Value| event["event"] == "node:input" && event["nodeId"] == node;
        self.events.iter().filter(own).map(|event| &event["data"]["input"]["payload"]).collect()
    }

    /// The messages that a node sent from an output, in order.
    pub(crate) fn outputs(&self, node: &str, by: u64) -> Vec<&Value> {
        let own = |event: &&Value| {
            event["event"] == "node:output" && event["nodeId"] == node && port(event) == Some(by)
        };
        self.events.iter().filter(own).map(|event| &event["data"]["outputs"][0]["payload"]).collect()
    }

    /// For each answer of an agent, whether a chat shows it.
    pub(crate) fn shown_answers(&self, agent: &str) -> Vec<&Value> {
        let own = |event: &&Value| event["nodeId"] == agent && port(event) == Some(4);
        self.events.iter().filter(own).map(|event| &event["data"]["sampled"]).collect()
    }

    /// What a debug node shows.
    #[track_caller]
    pub(crate) fn debug_value(&self, debug: &str) -> &Value {
        let own = |event: &&Value| event["nodeId"] == debug && event["event"] == "node:output";
        let [one] = self.events.iter().filter(own).collect::<Vec<_>>()[..] else { panic!("not one") };
        &one["data"]["outputs"][0]["payload"]["preview"]
    }

    /// The only message that a node sent from an output.
    #[track_caller]
    pub(crate) fn output(&self, node: &str, by: u64) -> &Value {
        let [one] = self.outputs(node, by)[..] else { panic!("not one: {:#?}", self.events) };
        one
    }

    /// The errors: node, code and text.
    pub(crate) fn errors(&self) -> Vec<(&str, &str, &str)> {
        let errors = self.events.iter().filter(|event| event["event"] == "node:error");
        let error = |event| {
            (text(event, "/nodeId"), text(event, "/data/error/code"), text(event, "/data/error/message"))
        };
        errors.map(error).collect()
    }

    /// The only run that the events name.
    #[track_caller]
    pub(crate) fn run(&self) -> String {
        let mut found = BTreeSet::new();
        for event in &self.events {
            runs_in(event, &mut found);
        }
        assert_eq!(found.len(), 1, "not one run: {found:?}");
        found.pop_first().unwrap()
    }

    pub(crate) fn events(&self) -> &[Value] {
        &self.events
    }
}

fn runs_in(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("traceId").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|value| runs_in(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| runs_in(item, found)),
        _ => {}
    }
}

/// An answer of a model has its token counts.
#[track_caller]
fn check_tokens(event: &Value) {
    let preview = &event["data"]["outputs"][0]["payload"]["preview"];
    let answered = port(event).is_some() && behavior(event) != "terminated";
    if event["data"]["nodeType"] == "model.azure.openai" && answered {
        let metadata = &preview["metadata"];
        let counts = ["promptTokens", "completionTokens", "totalTokens"].map(|name| metadata[name].as_u64());
        let (prompt, completion, total) = USAGE;
        assert_eq!(counts, [Some(prompt), Some(completion), Some(total)], "{event:#}");
    }
}

pub(crate) fn line(event: &Value) -> String {
    let node = event["nodeId"].as_str().map(short).unwrap_or_default();
    match text(event, "/event") {
        "frame:start" => format!("start {}", short(text(event, "/data/triggerNodeId"))),
        "frame:end" => "end".to_owned(),
        "node:input" => format!("in {node}"),
        "node:output" => {
            let port = port(event).map_or("-".to_owned(), |port| port.to_string());
            format!("out {node} {port} {}", behavior(event))
        }
        "node:error" => format!("error {node} {}", text(event, "/data/error/code")),
        other => other.to_owned(),
    }
}

fn port(event: &Value) -> Option<u64> {
    event.pointer("/data/outputs/0/port").and_then(Value::as_u64)
}

fn behavior(event: &Value) -> &str {
    event.pointer("/data/semantics/behavior").and_then(Value::as_str).unwrap_or_default()
}

#[track_caller]
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no text at {pointer}: {value:#}"))
}
