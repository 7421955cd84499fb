//! What agents, models and tools say to each other, as payloads.
//!
//! Owns the shapes the UI knows from messages that were sent along wires. Here no such message exists: an agent asks
//! its services itself.

use super::preview::{self, LONG, SHORT, Secrets};
use redflow_contract::Message;
use redflow_contract::fact::{ModelAnswer, ToolResult};
use redflow_contract::id::RunId;
use redflow_contract::observability::PayloadPreview;
use redflow_contract::transcript::{ChatRole, Transcript};
use redflow_ports::ServiceCall;
use serde_json::{Map, Value, json};

/// The output of an agent that carries each answer of its model.
const ANSWERS: usize = 4;

/// Something went wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wrong<'a> {
    pub(crate) code: &'a str,
    pub(crate) message: &'a str,
}

impl Wrong<'_> {
    /// As a payload; with the run it happened in, if there is one.
    pub(crate) fn payload(self, run: Option<&RunId>) -> Value {
        let Self { code, message } = self;
        let mut error = json!({"code": code, "message": message});
        if let Some(run) = run {
            error["traceId"] = json!(run);
        }
        json!({"error": error})
    }
}

/// What a model is asked: the rules, and what was said last.
pub(crate) fn request(ask: &ServiceCall<'_>, transcript: &Transcript) -> Value {
    let last = |roles: &[ChatRole]| {
        let mut said = transcript.segments().iter().rev();
        said.find(|segment| roles.contains(&segment.role)).map(|segment| segment.content.as_str())
    };
    let tools: Vec<Value> = ask.tools.iter().map(|name| json!({"name": name})).collect();
    json!({
        "systemPrompt": last(&[ChatRole::System]).unwrap_or_default(),
        "userPrompt": last(&[ChatRole::User, ChatRole::Tool]).unwrap_or_default(),
        "tools": tools,
        "traceId": ask.run,
        "envelope": {"iteration": ask.iteration},
    })
}

/// What a model answered: the action, if its text is one, else the text.
pub(crate) fn answer(answer: &ModelAnswer) -> Value {
    if !answer.tool_calls.is_empty() {
        let call = |name: &String, arguments: &String| {
            let input = serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments));
            json!({"tool": name, "input": input})
        };
        let calls: Vec<Value> =
            answer.tool_calls.iter().map(|asked| call(&asked.name, &asked.arguments)).collect();
        return json!({"action": "tool", "calls": calls, "message": answer.text});
    }
    let action = serde_json::from_str::<Map<String, Value>>(&answer.text);
    action.map_or_else(|_| json!(answer.text), Value::Object)
}

/// What a model sends back, as the message that would carry it.
pub(crate) fn reply(
    ask: &ServiceCall<'_>,
    payload: &Value,
    answer: Option<&ModelAnswer>,
    took: Option<u64>,
    secrets: &Secrets,
) -> PayloadPreview {
    let core = json!({"type": "model_response", "traceId": ask.run, "iteration": ask.iteration});
    let mut metadata = Map::new();
    if let Some(model) = answer.and_then(|answer| answer.model.as_ref()) {
        metadata.insert("model".to_owned(), json!(model));
    }
    if let Some(usage) = answer.and_then(|answer| answer.usage) {
        let total = usage.input_tokens.saturating_add(usage.output_tokens);
        metadata.insert("promptTokens".to_owned(), json!(usage.input_tokens));
        metadata.insert("completionTokens".to_owned(), json!(usage.output_tokens));
        metadata.insert("totalTokens".to_owned(), json!(total));
    }
    if let Some(took) = took {
        metadata.insert("durationMs".to_owned(), json!(took));
    }
    metadata.insert("traceId".to_owned(), json!(ask.run));
    let metadata = Value::Object(metadata);
    let parts = [("payload", payload), ("_agentCore", &core), ("metadata", &metadata)];
    let complete = payload.is_object().then(|| preview::of_value(payload, &LONG, secrets).preview);
    PayloadPreview { complete_payload: complete, ..preview::of_parts(&parts, &LONG, secrets) }
}

/// What a tool returned, and what went wrong with it.
pub(crate) fn result(result: &ToolResult) -> (Value, Option<&str>) {
    if result.success {
        return (result.output.clone().unwrap_or_default(), None);
    }
    let text = result.error.as_deref().unwrap_or_default();
    (json!({"success": false, "error": text}), Some(text))
}

/// What an agent says of its run, with the whole of it for the UI's chat; none if the message is no such thing.
pub(crate) fn outcome(
    message: &Message,
    port: usize,
    wrong: Option<Wrong<'_>>,
    secrets: &Secrets,
) -> Option<PayloadPreview> {
    let result = message.get("agentResult")?;
    let keys = ["agentResult", "payload", "_agentCore", "envelope"];
    let parts: Vec<(&str, &Value)> =
        keys.into_iter().filter_map(|key| message.get(key).map(|value| (key, value))).collect();
    let said = || {
        let payload = message.get("payload");
        let texts = [result.get("message"), payload.and_then(|payload| payload.get("message")), payload];
        let said = texts.into_iter().flatten().filter_map(Value::as_str).find(|text| !text.is_empty());
        said.or(wrong.map(|wrong| wrong.message))
    };
    let said = if port == ANSWERS { said() } else { None };
    Some(PayloadPreview {
        agent_result: Some(preview::of_value(result, &LONG, secrets).preview),
        full_message: said.map(|text| preview::of_text(text, &LONG, secrets)),
        ..preview::of_parts(&parts, &LONG, secrets)
    })
}

/// The same for everything else: its payload.
pub(crate) fn payload(value: &Value, secrets: &Secrets) -> PayloadPreview {
    preview::of_value(value, &SHORT, secrets)
}
