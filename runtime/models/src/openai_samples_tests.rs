//! Conversations and tables for the tests of both OpenAI wires.

use crate::samples::{
    Sample, assistant, assistant_calls, call, conversation, system, tool, tool_result, user, with_strict,
};
use crate::wire::{AnswerAssembler, CacheLifetime, ProviderError, Reasoning, Wire, WireError};
use pretty_assertions::assert_eq;
use redflow_contract::fact::ModelAnswer;
use redflow_contract::transcript::ChatMessage;
use redflow_ports::ToolChoice;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

pub(crate) fn system_message() -> ChatMessage {
    system("Answer with one JSON object.")
}

/// The first request of Agent Core.
pub(crate) fn first() -> Sample {
    conversation([system_message(), user("What is 12 * 7?")])
}

/// A request of an AI Agent, with native tools.
pub(crate) fn with_tools(messages: impl IntoIterator<Item = ChatMessage>) -> Sample {
    let tools = vec![
        tool("calculator", "Calculates.", Some(expression())),
        tool("lookup", "Looks something up.", None),
    ];
    Sample { tools, ..conversation(messages) }
}

fn expression() -> Value {
    json!({"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"], "additionalProperties": false})
}

fn action_schema() -> Option<Box<RawValue>> {
    let schema = json!({
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["tool", "final"]},
            "tool": {"anyOf": [{"type": "string", "enum": ["calculator"]}, {"type": "null"}]},
            "input": {"anyOf": [expression(), {"type": "null"}]},
            "confidence": {"type": "number"},
            "message": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["action", "tool", "input", "confidence", "message"],
        "additionalProperties": false,
    });
    Some(to_raw_value(&schema).unwrap())
}

/// A whole turn: two calls at once, and their results.
pub(crate) fn tool_turn() -> Vec<ChatMessage> {
    let calls = [
        call("call_a", "calculator", r#"{"expression":"12 * 7"}"#),
        call("call_b", "lookup", r#"{"word":"seven"}"#),
    ];
    vec![
        system_message(),
        user("What is 12 * 7, and what is seven?"),
        assistant_calls("", &calls),
        tool_result("call_a", r#"{"success":true,"output":84}"#),
        tool_result("call_b", r#"{"success":false,"error":"\"seven\" is not there"}"#),
    ]
}

/// Checks the golden bodies that both wires have.
pub(crate) fn check_goldens(wire: &dyn Wire) {
    let action = r#"{"action":"tool","tool":"calculator","input":{"expression":"12 * 7"},"confidence":0.9}"#;
    let observation = r#"{"success":true,"output":84}"#;
    let later = [system_message(), user("What is 12 * 7?"), assistant(action), user(observation)];
    let recalled = [
        system_message(),
        user("Hi"),
        assistant("Hello."),
        user("Who am I?"),
        assistant("Nobody said."),
        user("And now?"),
    ];
    let cases = [
        ("first-strict", Sample { schema: action_schema(), ..first() }),
        ("first-json", Sample { json: true, ..first() }),
        ("first-text", first()),
        ("later", Sample { schema: action_schema(), ..conversation(later) }),
        ("recalled", conversation(recalled)),
        ("tools", with_tools([system_message(), user("What is 12 * 7?")])),
        ("tool-turn", with_tools(tool_turn())),
        ("cache-5m", Sample { cache: Some(CacheLifetime::FiveMinutes), ..with_tools(tool_turn()) }),
        ("cache-1h", Sample { cache: Some(CacheLifetime::OneHour), ..first() }),
        ("strict-tools", with_strict(with_tools([system_message(), user("What is 12 * 7?")]))),
    ];
    for (name, sample) in cases {
        sample.check_golden(wire, &format!("{}-{name}", wire.name()));
    }
}

/// Checks that every choice has its name on both wires.
pub(crate) fn check_tool_choices(wire: &dyn Wire) {
    for (tool_choice, name) in
        [(ToolChoice::Auto, "auto"), (ToolChoice::Required, "required"), (ToolChoice::None, "none")]
    {
        let body = Sample { tool_choice, ..with_tools([user("Hi")]) }.body(wire);
        assert_eq!(body["tool_choice"], name);
    }
}

/// Checks that no bytes make the wire panic.
pub(crate) fn check_any_bytes(wire: &dyn Wire, body: &[u8], status: u16) {
    drop(wire.decode(body, Reasoning::Keep));
    drop(wire.assembler(Reasoning::Keep).add_event(None, body));
    assert_eq!(wire.parse_error(status, body).status, status);
}

/// Assembles a stream of these events.
pub(crate) fn assemble(
    wire: &dyn Wire,
    events: &[Value],
    reasoning: Reasoning,
) -> Result<ModelAnswer, WireError> {
    let mut assembler = wire.assembler(reasoning);
    add_events(&mut *assembler, events)?;
    assembler.finish()
}

/// Adds events, with their types as names. True if the last one ended the stream.
pub(crate) fn add_events(assembler: &mut dyn AnswerAssembler, events: &[Value]) -> Result<bool, WireError> {
    let mut is_last = false;
    for event in events {
        assert!(!is_last, "an event after the last one: {event}");
        let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
        is_last = assembler.add_event(event.get("type").and_then(Value::as_str), data.as_bytes())?;
    }
    Ok(is_last)
}

/// Checks how error bodies are parsed, which is the same on both wires.
pub(crate) fn check_errors(wire: &dyn Wire) {
    let table = [
        (
            json!({"error": {"message": "No.", "type": "invalid_request_error", "param": "model", "code": "model_not_found"}}),
            ("invalid_request_error", "model_not_found", "No."),
        ),
        (json!({"error": {"message": "No.", "type": null, "code": null}}), ("", "", "No.")),
        (json!({"error": {"message": "No.", "code": 400}}), ("", "400", "No.")),
        (json!({"error": "No."}), ("", "", "No.")),
        (json!({"message": "No."}), ("", "", "No.")),
        (
            json!({"object": "error", "message": "No.", "type": "BadRequestError", "code": 400}),
            ("BadRequestError", "400", "No."),
        ),
        (json!({"detail": "No."}), ("", "", "No.")),
        (json!({"detail": [{"loc": ["body"], "msg": "No.", "type": "missing"}]}), ("", "", "No.")),
        (json!([{"error": {"message": "No.", "code": 429}}]), ("", "429", "No.")),
        (
            json!({"error": {"code": "content_filter", "message": "No.", "status": 400, "innererror": {"code": "ResponsibleAIPolicyViolation"}}}),
            ("", "content_filter", "No."),
        ),
        (json!({"error": {"message": "No.", "innererror": {"code": "Inner"}}}), ("", "Inner", "No.")),
        (json!({"error": {}}), ("", "", "")),
        (json!({"error": null}), ("", "", "")),
        (json!({"error": {"message": {"a": 1}, "code": [], "type": true}}), ("", "", "")),
        (json!([]), ("", "", "")),
        (json!(7), ("", "", "")),
    ];
    for (body, expected) in table {
        let error = wire.parse_error(418, body.to_string().as_bytes());
        let texts = (error.kind.as_str(), error.code.as_str(), error.message.as_str());
        assert_eq!((error.status, texts), (418, expected), "{body}");
    }
    for body in [&b"<html>Bad Gateway</html>"[..], b"", b"\xff\xfe", b"{\"error\": {\"message\": \"x"] {
        assert_eq!(wire.parse_error(502, body), ProviderError { status: 502, ..Default::default() });
    }
    let long =
        json!({"error": {"message": "é".repeat(9000), "type": "t".repeat(9000), "code": "c".repeat(9000)}});
    let error = wire.parse_error(400, long.to_string().as_bytes());
    let sizes = [&error.message, &error.kind, &error.code].map(|text| text.chars().count());
    assert_eq!(sizes, [4_000, 100, 100]);
}

/// Splits a text into parts of these sizes, in characters, and the rest.
pub(crate) fn split(text: &str, sizes: &[u8]) -> Vec<String> {
    let mut rest: Vec<char> = text.chars().collect();
    let mut parts = Vec::new();
    for size in sizes {
        let size = usize::from(*size).min(rest.len());
        parts.push(rest.drain(..size).collect());
    }
    parts.push(rest.into_iter().collect());
    parts
}

pub(crate) fn provider_error(status: u16, kind: &str, code: &str, message: &str) -> WireError {
    let [kind, code, message] = [kind, code, message].map(str::to_owned);
    WireError::Provider(ProviderError { status, kind, code, message, ..Default::default() })
}
