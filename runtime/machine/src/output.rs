//! Builds the messages for ports 3 and 4, and turns values into text.
//!
//! Owns the order of the keys: first those of the incoming message in their order, with the payload replaced
//! in place, then `envelope`, `agentResult` and `error`. An incoming `error` becomes `_error`. No other
//! property changes.

use crate::text::preview;
use redflow_contract::envelope::{
    AgentEnvelope, AgentResult, EnvelopeAction, EnvelopeEvent, EnvelopeObservability, EnvelopeState,
    EnvelopeTools, StopReason,
};
use redflow_contract::fact::Usage;
pub use redflow_contract::flow_message::to_value;
use redflow_contract::flow_message::{MessageParts, MessageResult};
use redflow_contract::id::{NodeSummary, RunId};
use redflow_contract::run_error::{Failure, RunError};
use redflow_contract::transcript::{ChatMessage, RequestedCall};
use redflow_contract::{Message, Millis, iso_time};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// Reasoning that has this part of the tokens of an answer, in percent, has used up its limit.
const USED_UP_PERCENT: u64 = 90;

/// Makes the envelope of a new run.
#[must_use]
pub fn new_envelope(run_id: RunId, at: Millis, input: Value, tools: Vec<String>) -> AgentEnvelope {
    AgentEnvelope {
        input,
        state: EnvelopeState { iteration: 0, last_action: None, last_tool: None, completed: false },
        model: None,
        tools: EnvelopeTools { available: tools, history: Vec::new() },
        memory: None,
        observability: EnvelopeObservability {
            trace_id: run_id,
            started_at: iso_time(at),
            events: Vec::new(),
        },
        provenance: Vec::new(),
    }
}

/// Makes an envelope event without its optional fields.
#[must_use]
pub fn new_event(iteration: u32, action: EnvelopeAction, at: Millis) -> EnvelopeEvent {
    EnvelopeEvent {
        iteration,
        action,
        tool: None,
        duration_ms: None,
        confidence: None,
        error: None,
        at: Some(iso_time(at)),
        preview: None,
    }
}

/// Says that the output limit cut off an answer, and whether reasoning used it up.
#[must_use]
pub fn truncated_message(usage: Option<Usage>) -> String {
    let usage = usage.unwrap_or_default();
    let (output, reasoning) = (usage.output_tokens, usage.reasoning_tokens.unwrap_or_default());
    let cause = if reasoning == 0 {
        String::new()
    } else if reasoning.saturating_mul(100) >= output.saturating_mul(USED_UP_PERCENT) {
        format!(" Reasoning used the limit up: {reasoning} of {output} tokens.")
    } else {
        format!(" Reasoning used {reasoning} of {output} tokens.")
    };
    format!(
        "The model's answer was cut off by a length limit before it ended.{cause} Raise `maxTokens` of the model's \
         node."
    )
}

/// Makes the last event of a failed run.
#[must_use]
pub fn failure_event(action: EnvelopeAction, at: Millis, error: &RunError) -> EnvelopeEvent {
    let failure = Failure { code: error.code, message: error.message.clone() };
    EnvelopeEvent { error: Some(failure), ..new_event(error.iteration, action, at) }
}

/// Builds a message for port 3 or 4.
#[must_use]
pub fn build_message(
    incoming: Message,
    payload: Value,
    envelope: AgentEnvelope,
    result: MessageResult,
    failed: Option<(&NodeSummary, &RunError)>,
) -> MessageParts {
    let mut payload = Some(payload);
    let error = failed.map(|(node, error)| error.on_message(node, failure_count(node, &incoming)));
    let has_error = incoming.contains_key("error");
    // With room for what the whole message has more.
    let mut rest = Message::with_capacity(incoming.len() + 4);
    for (key, value) in incoming {
        match key.as_str() {
            "payload" => rest.insert(key, payload.take().unwrap_or_default()),
            "envelope" | "agentResult" => continue,
            // As in Node-RED, the older error stays readable. This also holds for a successful run: with an
            // `error`, its message would look like a failure.
            "error" if has_error => rest.insert("_error".to_owned(), value),
            "_error" if has_error => continue,
            _ => rest.insert(key, value),
        };
    }
    if let Some(payload) = payload {
        rest.insert("payload".to_owned(), payload);
    }
    MessageParts { rest, envelope, result, error }
}

/// How often the node has failed on this message, including this time. Node-RED counts it to detect loops.
fn failure_count(node: &NodeSummary, incoming: &Message) -> u32 {
    let source = incoming.get("error").and_then(|error| error.get("source"));
    let before = source
        .filter(|source| source.get("id").and_then(Value::as_str) == Some(node.id.as_str()))
        .and_then(|source| source.get("count").and_then(Value::as_u64))
        .unwrap_or(0);
    u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1)
}

/// Builds the message for port 3 if the agent is refused, so that no run starts.
#[must_use]
pub fn refused_output(
    agent: &NodeSummary,
    run_id: RunId,
    at: Millis,
    message: &Message,
    tools: Vec<String>,
    error: &RunError,
) -> MessageParts {
    let input = message.get("payload").cloned().unwrap_or_default();
    let mut envelope = new_envelope(run_id.clone(), at, input, tools);
    envelope.observability.events.push(failure_event(EnvelopeAction::Error, at, error));
    let result = AgentResult {
        completed: false,
        iterations: 0,
        trace_id: run_id,
        message: None,
        final_action: None,
        stop_reason: StopReason::Error,
        error: Some(error.clone()),
    };
    let result = MessageResult::Run(result);
    build_message(message.clone(), to_value(error), envelope, result, Some((agent, error)))
}

/// Whether a message asks to delete the conversation: `msg.memory` is `"clear"`.
#[must_use]
pub fn requests_memory_clear(message: &Message) -> bool {
    message.get("memory").is_some_and(|value| value == "clear")
}

/// Whether a message asks the memory to consolidate.
#[must_use]
pub fn requests_consolidation(message: &Message) -> bool {
    message.get("memory").is_some_and(|value| value == "consolidate")
}

/// Formats a value for a model: a string as it is, any other value as compact JSON.
#[must_use]
pub fn to_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Formats the start of a value, without writing the rest.
#[must_use]
pub fn preview_value(value: &Value) -> String {
    if let Value::String(text) = value {
        return preview(text);
    }
    let mut prefix = PrefixWriter(Vec::new());
    // An error only means that the value is longer than the prefix.
    let _ = serde_json::to_writer(&mut prefix, value);
    preview(&String::from_utf8_lossy(&prefix.0))
}

/// Enough bytes for the characters of a preview, and for one that is cut in half.
const PREVIEW_BYTES: usize = 1_024;

/// Keeps the first bytes that are written to it.
struct PrefixWriter(Vec<u8>);

impl std::io::Write for PrefixWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = PREVIEW_BYTES - self.0.len();
        if room == 0 {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        let count = bytes.len().min(room);
        self.0.extend_from_slice(&bytes[..count]);
        Ok(count)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Formats an answer with native calls for people: the text, then each call on its line.
#[must_use]
pub fn render_calls(text: &str, calls: &[RequestedCall]) -> String {
    let lines = calls.iter().map(|call| format!("{}({})", call.name, call.arguments));
    let text = (!text.is_empty()).then(|| text.to_owned());
    text.into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

/// Formats a prompt for people.
#[must_use]
pub fn render_prompt(segments: &[Arc<ChatMessage>]) -> String {
    let mut text = String::new();
    for segment in segments {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(segment.role.as_str());
        text.push_str(": ");
        text.push_str(&render_content(segment));
    }
    text
}

/// The text of a message for people, with the number of its images.
pub(crate) fn render_content(message: &ChatMessage) -> Cow<'_, str> {
    match message.images.len() {
        0 => Cow::Borrowed(&message.content),
        count => Cow::Owned(format!("{}\n[images: {count}]", message.content)),
    }
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
