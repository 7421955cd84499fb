//! The payloads that frames show for calls between agents, models and tools.
//!
//! Owns the formats that the UI knows from messages on wires. Here no such message exists, because an agent
//! calls its services directly.

use super::preview::{LONG, SHORT, Secrets, preview_object, preview_text, preview_value};
use redflow_contract::Message;
use redflow_contract::fact::{ModelAnswer, ToolResult};
use redflow_contract::id::RunId;
use redflow_contract::observability::PayloadPreview;
use redflow_contract::transcript::{ChatRole, Transcript};
use redflow_ports::ServiceCall;
use serde_json::{Map, Value, json};

/// An error as frames show it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorInfo<'a> {
    pub(crate) code: &'a str,
    pub(crate) message: &'a str,
    /// The name of the node that failed; empty if it has none.
    pub(crate) node: &'a str,
}

impl ErrorInfo<'_> {
    /// The error as a payload, with the id of its run if there is one.
    pub(crate) fn payload(self, run: Option<&RunId>) -> Value {
        let Self { code, message, node } = self;
        let mut error = json!({"code": code, "message": message});
        if !node.is_empty() {
            error["node"] = json!(node);
        }
        if let Some(run) = run {
            error["traceId"] = json!(run);
        }
        json!({"error": error})
    }
}

/// The request to a model: the system prompt, and the last message or the results of the last tool calls.
pub(crate) fn model_request(call: &ServiceCall<'_>, transcript: &Transcript) -> Value {
    let newest = || transcript.segments().iter().rev();
    let last = |roles: &[ChatRole]| newest().find(|segment| roles.contains(&segment.role));
    let results = newest().take_while(|segment| segment.role == ChatRole::Tool);
    let mut prompts: Vec<&str> = results.map(|segment| segment.content.as_str()).collect();
    prompts.reverse();
    if prompts.is_empty() {
        prompts.extend(last(&[ChatRole::User, ChatRole::Tool]).map(|segment| segment.content.as_str()));
    }
    let tools: Vec<Value> = call.tools.iter().map(|name| json!({"name": name})).collect();
    json!({
        "systemPrompt": last(&[ChatRole::System]).map_or("", |segment| segment.content.as_str()),
        "userPrompt": prompts.join("\n"),
        "tools": tools,
        "traceId": call.run,
        "envelope": {"iteration": call.iteration},
    })
}

/// The answer of a model: the action, if its text is one, or else the text.
pub(crate) fn model_answer(answer: &ModelAnswer) -> Value {
    if !answer.tool_calls.is_empty() {
        let to_call = |name: &String, arguments: &String| {
            let input = serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments));
            json!({"tool": name, "input": input})
        };
        let calls: Vec<Value> =
            answer.tool_calls.iter().map(|call| to_call(&call.name, &call.arguments)).collect();
        return json!({"action": "tool", "calls": calls, "message": answer.text});
    }
    let action = serde_json::from_str::<Map<String, Value>>(&answer.text);
    action.map_or_else(|_| json!(answer.text), Value::Object)
}

/// The message that would carry the answer of a model on a wire.
pub(crate) fn model_message(
    call: &ServiceCall<'_>,
    payload: &Value,
    answer: Option<&ModelAnswer>,
    duration_ms: Option<u64>,
    secrets: &Secrets,
) -> PayloadPreview {
    let core = json!({"type": "model_response", "traceId": call.run, "iteration": call.iteration});
    let mut metadata = Map::new();
    if let Some(model) = answer.and_then(|answer| answer.model.as_ref()) {
        metadata.insert("model".to_owned(), json!(model));
    }
    if let Some(deployment) = call.deployment {
        metadata.insert("deployment".to_owned(), json!(deployment));
    }
    if let Some(usage) = answer.and_then(|answer| answer.usage) {
        let total = usage.input_tokens.saturating_add(usage.output_tokens);
        metadata.insert("promptTokens".to_owned(), json!(usage.input_tokens));
        metadata.insert("completionTokens".to_owned(), json!(usage.output_tokens));
        metadata.insert("totalTokens".to_owned(), json!(total));
    }
    if let Some(duration_ms) = duration_ms {
        metadata.insert("durationMs".to_owned(), json!(duration_ms));
    }
    metadata.insert("traceId".to_owned(), json!(call.run));
    let metadata = Value::Object(metadata);
    let parts = [("payload", payload), ("_agentCore", &core), ("metadata", &metadata)];
    let complete = payload.is_object().then(|| preview_value(payload, &LONG, secrets).preview);
    PayloadPreview { complete_payload: complete, ..preview_object(&parts, &LONG, secrets) }
}

/// The result of a tool, and its error if it failed.
pub(crate) fn tool_result(result: &ToolResult) -> (Value, Option<&str>) {
    if result.success {
        return (result.output.clone().unwrap_or_default(), None);
    }
    let text = result.error.as_deref().unwrap_or_default();
    (json!({"success": false, "error": text}), Some(text))
}

/// The preview of an agent's message with `agentResult`, with the whole text if it is for the chat of the UI;
/// none for any other message.
pub(crate) fn agent_message(
    message: &Message,
    is_for_chat: bool,
    error: Option<ErrorInfo<'_>>,
    secrets: &Secrets,
) -> Option<PayloadPreview> {
    let result = message.get("agentResult")?;
    let keys = ["agentResult", "payload", "_agentCore", "envelope"];
    let parts: Vec<(&str, &Value)> =
        keys.into_iter().filter_map(|key| message.get(key).map(|value| (key, value))).collect();
    let full_text = || {
        let payload = message.get("payload");
        let texts = [result.get("message"), payload.and_then(|payload| payload.get("message")), payload];
        let text = texts.into_iter().flatten().filter_map(Value::as_str).find(|text| !text.is_empty());
        text.or(error.map(|error| error.message))
    };
    let full_text = if is_for_chat { full_text() } else { None };
    Some(PayloadPreview {
        agent_result: Some(preview_value(result, &LONG, secrets).preview),
        full_message: full_text.map(|text| preview_text(text, &LONG, secrets)),
        ..preview_object(&parts, &LONG, secrets)
    })
}

/// The preview of any other payload.
pub(crate) fn payload(value: &Value, secrets: &Secrets) -> PayloadPreview {
    preview_value(value, &SHORT, secrets)
}
