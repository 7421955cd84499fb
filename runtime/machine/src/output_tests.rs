use super::{build_message, new_envelope, preview_value, refused_output, render_prompt, to_text};
use pretty_assertions::assert_eq;
use redflow_contract::Message;
use redflow_contract::code::RunErrorCode;
use redflow_contract::envelope::{AgentResult, StopReason};
use redflow_contract::flow_message::{FlowMessage, MessageResult};
use redflow_contract::id::NodeSummary;
use redflow_contract::run_error::RunError;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use serde_json::{Value, json};
use std::sync::Arc;

fn message(value: Value) -> Message {
    let Value::Object(message) = value else { panic!("not an object") };
    message
}

fn error() -> RunError {
    let message = "The agent binds no model.".to_owned();
    RunError { code: RunErrorCode::ConfigInvalid, message, pointer: None, rule: None, iteration: 0 }
}

fn result() -> MessageResult {
    MessageResult::Run(AgentResult {
        completed: true,
        iterations: 1,
        trace_id: "run".into(),
        message: None,
        final_action: None,
        stop_reason: StopReason::FinalAnswer,
        error: None,
    })
}

fn node() -> NodeSummary {
    NodeSummary { id: "a1".into(), type_name: "agent-core".to_owned(), name: "Sums".to_owned() }
}

/// The keys of a message built from this one, in order.
fn keys(incoming: Value, error: Option<&RunError>) -> Vec<String> {
    let node = node();
    let failed = error.map(|error| (&node, error));
    let envelope = new_envelope("run".into(), 0, json!("in"), Vec::new());
    let built = build_message(message(incoming), json!("out"), envelope, result(), failed).into_message();
    assert_eq!(built["payload"], "out");
    assert_eq!(built["envelope"]["input"], "in");
    built.keys().cloned().collect()
}

#[test]
fn keys_have_a_fixed_order() {
    let incoming = json!({"topic": 1, "payload": 2, "_msgid": 3});
    assert_eq!(keys(incoming, None), ["topic", "payload", "_msgid", "envelope", "agentResult"]);
    assert_eq!(keys(json!({"topic": 1}), None), ["topic", "payload", "envelope", "agentResult"]);
    assert_eq!(keys(json!({}), Some(&error())), ["payload", "envelope", "agentResult", "error"]);
    let chained = json!({"envelope": 1, "payload": 2, "agentResult": 3, "error": 4, "_error": 5});
    assert_eq!(keys(chained.clone(), None), ["payload", "_error", "envelope", "agentResult"]);
    assert_eq!(
        keys(chained, Some(&error())),
        ["payload", "_error", "envelope", "agentResult", "error"],
        "an older error moves, the oldest one is lost"
    );
}

#[test]
fn an_older_error_moves_to_underscore_error() {
    let envelope = new_envelope("run".into(), 0, Value::Null, Vec::new());
    let incoming = message(json!({"error": "old", "_error": "oldest"}));
    let failed =
        build_message(incoming.clone(), Value::Null, envelope.clone(), result(), Some((&node(), &error())))
            .into_message();
    assert_eq!((&failed["_error"], &failed["error"]["code"]), (&json!("old"), &json!("CONFIG_INVALID")));
    let fine = build_message(incoming, Value::Null, envelope.clone(), result(), None).into_message();
    assert_eq!((&fine["_error"], fine.get("error")), (&json!("old"), None));
    let kept = build_message(
        message(json!({"_error": 1})),
        Value::Null,
        envelope,
        result(),
        Some((&node(), &error())),
    )
    .into_message();
    assert_eq!(kept["_error"], 1);
}

#[test]
fn a_refused_agent_answers_with_an_error() {
    let incoming = message(json!({"payload": {"q": 1}, "topic": "t"}));
    let tools = vec!["calculator".to_owned()];
    let answer =
        refused_output(&node(), "run-1".into(), 1_766_000_000_123, &incoming, tools, &error()).into_message();
    let error = json!({"code": "CONFIG_INVALID", "message": "The agent binds no model.", "iteration": 0});
    let expected = json!({
        "payload": error,
        "topic": "t",
        "envelope": {
            "input": {"q": 1},
            "state": {"iteration": 0, "completed": false},
            "tools": {"available": ["calculator"], "history": []},
            "observability": {
                "traceId": "run-1",
                "startedAt": "2025-12-17T19:33:20.123Z",
                "events": [{
                    "iteration": 0,
                    "action": "error",
                    "error": {"code": "CONFIG_INVALID", "message": "The agent binds no model."},
                    "at": "2025-12-17T19:33:20.123Z",
                }],
            },
        },
        "agentResult": {
            "completed": false,
            "iterations": 0,
            "traceId": "run-1",
            "message": null,
            "finalAction": null,
            "stopReason": "error",
            "error": error,
        },
        "error": {
            "code": "CONFIG_INVALID",
            "message": "The agent binds no model.",
            "iteration": 0,
            "source": {"id": "a1", "type": "agent-core", "name": "Sums", "count": 1},
        },
    });
    assert_eq!(Value::Object(answer).to_string(), expected.to_string(), "keys in this order");
}

#[test]
fn counts_failures_on_the_same_message() {
    let cases = [
        (json!({}), 1),
        (json!({"error": "text"}), 1),
        (json!({"error": {"source": {"id": "other", "count": 5}}}), 1),
        (json!({"error": {"source": {"id": "a1"}}}), 1),
        (json!({"error": {"source": {"id": "a1", "count": 1}}}), 2),
        (json!({"error": {"source": {"id": "a1", "count": u64::MAX}}}), u32::MAX),
    ];
    let envelope = new_envelope("run".into(), 0, Value::Null, Vec::new());
    for (incoming, count) in cases {
        let text = incoming.to_string();
        let failed = build_message(
            message(incoming),
            Value::Null,
            envelope.clone(),
            result(),
            Some((&node(), &error())),
        )
        .into_message();
        assert_eq!(failed["error"]["source"]["count"], count, "{text}");
    }
}

#[test]
fn formats_values_as_text() {
    assert_eq!(to_text(&json!("a \"b\"")), "a \"b\"");
    assert_eq!(to_text(&json!({"b": 1, "a": [null]})), r#"{"b":1,"a":[null]}"#);
    assert_eq!(to_text(&Value::Null), "null");
    assert_eq!(preview_value(&json!("é".repeat(999))), "é".repeat(200));
    let long = json!(vec!["😀"; 5_000]);
    assert_eq!(preview_value(&long), long.to_string().chars().take(200).collect::<String>());
    assert_eq!(preview_value(&json!({"a": 1})), r#"{"a":1}"#);
}

#[test]
fn formats_a_prompt_for_people() {
    let segment = |role, text: &str| Arc::new(ChatMessage::new(role, text));
    let segments = [segment(ChatRole::System, "Rules.\nMore."), segment(ChatRole::User, "2+2")];
    assert_eq!(render_prompt(&segments), "system: Rules.\nMore.\n\nuser: 2+2");
}

#[test]
fn a_message_in_parts_is_written_as_the_whole_one() {
    let envelope = new_envelope("run".into(), 0, json!("in"), vec!["sum".to_owned()]);
    for (incoming, failed) in
        [(json!({"topic": 1, "payload": 2, "_msgid": 3}), false), (json!({"error": 4}), true)]
    {
        let (node, error) = (node(), error());
        let failed = failed.then_some((&node, &error));
        let parts = build_message(message(incoming), json!("out"), envelope.clone(), result(), failed);
        let in_parts = FlowMessage::from(parts.clone());
        let text = serde_json::to_string(&in_parts).unwrap();
        assert_eq!(in_parts.get("payload"), Some(&json!("out")));
        assert_eq!(text, serde_json::to_string(&*in_parts).unwrap());
        assert_eq!(in_parts.get("payload"), Some(&json!("out")));
        let whole = FlowMessage::from(parts.into_message());
        assert_eq!(text, serde_json::to_string(&whole).unwrap());
        assert_eq!(in_parts, whole);
        assert_eq!(in_parts.into_message(), whole.into_message());
    }
}
