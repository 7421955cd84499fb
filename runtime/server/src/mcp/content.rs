//! Results of calls as MCP clients get them.

use redflow_contract::api::StartedRun;
use redflow_contract::run::RunStatus;
use redflow_contract::run_error::RunError;
use redflow_contract::tool::ToolInvocation;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Map, Value, json};

/// The key of the run in the metadata of a result.
const RUN: &str = "redflow/run";

/// The key of our code in the metadata of a result.
const CODE: &str = "redflow/code";

/// The key of the status of the run in the metadata of a result.
const STATUS: &str = "redflow/status";

/// Content blocks of a flow tool.
const MAX_BLOCKS: usize = 64;

/// Bytes of a media type.
const MAX_MIME_BYTES: usize = 200;

/// Whether the schema of a tool promises structured content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Promise {
    Structured,
    Nothing,
}

/// A call that failed, with its code.
pub(super) fn failure(code: &str, text: &str) -> CallToolResult {
    let mut result = CallToolResult::error(vec![ContentBlock::text(format!("{code}: {text}"))]);
    result.meta = Some(meta([(CODE, json!(code))]));
    result
}

fn meta<const N: usize>(values: [(&str, Value); N]) -> MetaObject {
    let values: Map<String, Value> = values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    MetaObject::from(values)
}

/// The result of a run.
pub(super) fn run_result(run: StartedRun, promise: Promise) -> CallToolResult {
    let StartedRun { run_id, status, refused, waiting, result, .. } = run;
    let message = result.map(redflow_contract::flow_message::FlowMessage::into_message).unwrap_or_default();
    let mut result = match status {
        RunStatus::Completed | RunStatus::Stopped => {
            value_result(message.get("payload").unwrap_or(&Value::Null))
        }
        RunStatus::Waiting => {
            let tool = waiting.map(|call| call.tool).unwrap_or_default();
            let text = format!(
                "The run {run_id} waits for a person, who must decide about its call of `{tool}`. It goes on by itself \
                 then; do not call the agent again for this. The resource redflow://runs/{run_id} has its state."
            );
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            // A client would refuse a success without the structured content that the schema promises.
            result.is_error = Some(promise == Promise::Structured);
            result
        }
        RunStatus::Failed => {
            let error = refused.or_else(|| error_of(&message));
            match error {
                Some(error) => failure(error.code.as_str(), &error.message),
                None => failure("INTERNAL", "the run failed"),
            }
        }
        RunStatus::Running | RunStatus::Interrupted => {
            let text = "the sidecar stopped before the run ended; the run goes on when it has started again";
            failure("STOPPING", text)
        }
        // A person cancelled it.
        _ => failure("CANCELLED", "the run was cancelled"),
    };
    let status = serde_json::to_value(status).unwrap_or_default();
    let mut all = result.meta.take().unwrap_or_default();
    all.insert(RUN.to_owned(), json!(run_id));
    all.insert(STATUS.to_owned(), status);
    result.meta = Some(all);
    result
}

/// The error of the message of a run that failed.
fn error_of(message: &Map<String, Value>) -> Option<RunError> {
    let error = message.get("agentResult")?.get("error")?;
    serde_json::from_value(error.clone()).ok()
}

/// The result of a call of a tool.
pub(super) fn invocation_result(call: &ToolInvocation) -> CallToolResult {
    if !call.success {
        let code = call.code.map_or("TOOL_ERROR", |code| code.as_str());
        return failure(code, call.error.as_deref().unwrap_or("the tool failed"));
    }
    let output = call.output.as_ref().unwrap_or(&Value::Null);
    content_blocks(output).unwrap_or_else(|| value_result(output))
}

/// A value as text, and an object as structured content too.
fn value_result(value: &Value) -> CallToolResult {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = value.is_object().then(|| value.clone());
    result
}

/// The content of an output that consists of MCP content blocks: a list of them, or an object with such a list. None
/// if it does not, or if a block is not valid.
fn content_blocks(output: &Value) -> Option<CallToolResult> {
    let (blocks, rest) = match output {
        Value::Array(blocks) => (blocks, None),
        Value::Object(object) => (object.get("content")?.as_array()?, Some(object)),
        _ => return None,
    };
    let is_known =
        |key: &String| matches!(key.as_str(), "content" | "structuredContent" | "isError" | "_meta");
    if blocks.is_empty()
        || blocks.len() > MAX_BLOCKS
        || rest.is_some_and(|object| !object.keys().all(is_known))
    {
        return None;
    }
    let content: Option<Vec<ContentBlock>> = blocks.iter().map(content_block).collect();
    let mut result = CallToolResult::success(content?);
    result.structured_content =
        rest.and_then(|object| object.get("structuredContent")).filter(|value| value.is_object()).cloned();
    result.is_error = Some(rest.and_then(|object| object.get("isError")) == Some(&Value::Bool(true)));
    Some(result)
}

fn content_block(value: &Value) -> Option<ContentBlock> {
    let kind = value.get("type")?.as_str()?;
    let is_valid = match kind {
        "text" => value.get("text").is_some_and(Value::is_string),
        "image" | "audio" => has_bytes(value, "data"),
        "resource" => {
            let resource = value.get("resource")?;
            resource.get("text").is_some_and(Value::is_string) || has_bytes(resource, "blob")
        }
        "resource_link" => value.get("uri").is_some_and(Value::is_string),
        _ => false,
    };
    is_valid.then(|| serde_json::from_value(value.clone()).ok()).flatten()
}

/// Whether a block has base64 bytes under this key, and a media type.
fn has_bytes(value: &Value, key: &str) -> bool {
    let is_base64 = |text: &str| {
        let body = text.trim_end_matches('=');
        text.len().is_multiple_of(4)
            && text.len() - body.len() <= 2
            && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
    };
    let is_mime = |text: &str| text.contains('/') && text.len() <= MAX_MIME_BYTES && text.is_ascii();
    value.get(key).and_then(Value::as_str).is_some_and(is_base64)
        && value.get("mimeType").and_then(Value::as_str).is_some_and(is_mime)
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;
