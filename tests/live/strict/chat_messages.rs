//! The messages of Chat Completions: their fields, calls with their results, and what must come back as it was.

use super::chat_fields::{form, refuse};
use super::fields::{is_object_text, items, text, unknown_key};
use super::models::{ChatRow, Replay};
use super::replay::same;
use super::response::Response;
use super::script::Ask;
use super::site::Site;
use super::state::State;
use serde_json::Value;

const OPENAI_ASSISTANT: &[&str] =
    &["role", "content", "refusal", "name", "audio", "function_call", "tool_calls"];

/// Checks all messages. Adds the earlier answers and the prompt to what is asked.
pub(super) fn check(
    state: &mut State,
    row: &ChatRow,
    body: &Value,
    thinks: bool,
    ask: &mut Ask,
) -> Result<(), Response> {
    let messages = items(&body["messages"]);
    if messages.is_empty() {
        let message = "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.";
        return Err(refuse(row, "messages", Some("empty_array"), message));
    }
    let mut open: Vec<&str> = Vec::new();
    let last_user = messages.iter().rposition(|message| message["role"] == "user");
    for (index, message) in messages.iter().enumerate() {
        ask.prompt.push_str(&content_text(&message["content"]));
        ask.prompt.push('\n');
        let role = text(&message["role"]);
        if role != "tool" && !open.is_empty() {
            return Err(unanswered(row, index, &open));
        }
        let before = index.checked_sub(1).map(|before| text(&messages[before]["role"]));
        if row.site == Site::Mistral && role == "user" && before == Some("tool") {
            let message = "Unexpected role 'user' after role 'tool'";
            return Err(refuse(row, &format!("messages.[{index}].role"), None, message));
        }
        match role {
            "system" | "developer" | "user" => check_content(row, index, message)?,
            "assistant" => {
                open = check_assistant(state, row, index, message, ask)?;
                let tools = !ask.tools.is_empty();
                let is_current = last_user.is_none_or(|last| index > last);
                check_replay(state, row, index, message, thinks, tools, is_current)?;
            }
            "tool" => {
                let id = text(&message["tool_call_id"]);
                let Some(place) = open.iter().position(|call| *call == id) else {
                    let message = match row.site {
                        Site::Mistral => "Not the same number of function calls and responses",
                        _ => {
                            "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
                        }
                    };
                    return Err(refuse(row, &format!("messages.[{index}].role"), None, message));
                };
                open.remove(place);
                check_content(row, index, message)?;
            }
            _ => {
                let message = format!(
                    "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
                );
                return Err(refuse(row, &format!("messages[{index}].role"), Some("invalid_value"), &message));
            }
        }
    }
    if !open.is_empty() {
        return Err(unanswered(row, messages.len(), &open));
    }
    let ends = messages.last().is_some_and(|last| last["role"] == "assistant");
    if ends && row.site == Site::Mistral {
        let message =
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant";
        return Err(refuse(row, "messages", None, message));
    }
    Ok(())
}

fn unanswered(row: &ChatRow, index: usize, open: &[&str]) -> Response {
    let message = match row.site {
        Site::Mistral => "Not the same number of function calls and responses".to_owned(),
        Site::Gemini => {
            "Please ensure that the number of function response parts is equal to the number of function call parts of the \
             function call turn."
                .to_owned()
        }
        _ => format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The \
             following tool_call_ids did not have response messages: {}",
            open.join(", ")
        ),
    };
    refuse(row, &format!("messages.[{index}].role"), None, &message)
}

/// The text of a content, of whatever form.
fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(|part| text(&part["text"])).collect(),
        _ => String::new(),
    }
}

fn check_content(row: &ChatRow, index: usize, message: &Value) -> Result<(), Response> {
    let content = &message["content"];
    let fits = content.is_string() || content.as_array().is_some_and(|parts| !parts.is_empty());
    if fits {
        return Ok(());
    }
    let problem = format!("Invalid value for 'content': expected a string, got {content}.");
    Err(refuse(row, &format!("messages.[{index}].content"), None, &problem))
}

/// Gives the ids of the calls.
fn check_assistant<'a>(
    state: &mut State,
    row: &ChatRow,
    index: usize,
    message: &'a Value,
    ask: &mut Ask,
) -> Result<Vec<&'a str>, Response> {
    check_fields(row, index, message)?;
    let calls = items(&message["tool_calls"]);
    if calls.is_empty() && content_text(&message["content"]).is_empty() {
        let problem = "Invalid value for 'content': expected a string, got null.";
        return Err(refuse(row, &format!("messages.[{index}].content"), None, problem));
    }
    let (mut ids, mut names) = (Vec::new(), Vec::new());
    for call in calls {
        let (id, function) = (text(&call["id"]), &call["function"]);
        if row.site == Site::Mistral
            && !(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        {
            let problem = format!("Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9.");
            return Err(refuse(row, "messages", None, &problem));
        }
        let name = text(&function["name"]);
        if id.is_empty() || name.is_empty() || !is_object_text(text(&function["arguments"])) {
            let problem = format!(
                "Invalid 'messages[{index}].tool_calls': a call without id, name or arguments of JSON."
            );
            return Err(refuse(row, &format!("messages[{index}].tool_calls"), None, &problem));
        }
        let sent = state.sent.get(id).map(|sent| sent_call(sent, id));
        if let Some(sent) = sent.filter(|sent| !same(&sent["function"], function)) {
            state.note(format!("the call {sent} came back as {call}"));
        }
        ids.push(id);
        names.push(name.to_owned());
    }
    ask.answers.push(names);
    Ok(ids)
}

fn sent_call(message: &Value, id: &str) -> Value {
    items(&message["tool_calls"]).iter().find(|call| call["id"] == id).cloned().unwrap_or_default()
}

/// Fields that an assistant's message may not have.
fn check_fields(row: &ChatRow, index: usize, message: &Value) -> Result<(), Response> {
    let known: &[&str] = match row.site {
        Site::Openai | Site::Azure => OPENAI_ASSISTANT,
        Site::Mistral => &["role", "content", "tool_calls", "prefix"],
        Site::Groq => &["role", "content", "name", "tool_calls", "reasoning", "function_call"],
        _ => return Ok(()),
    };
    if let (Site::Groq, Some(_)) = (row.site, message.get("name")) {
        return Err(refuse(
            row,
            "messages",
            None,
            &format!("'messages.{index}' : property 'name' is unsupported"),
        ));
    }
    let Some((key, value)) = unknown_key(message, known) else { return Ok(()) };
    Err(match row.site {
        Site::Mistral => {
            Response::extra_forbidden(&["messages", &index.to_string(), "assistant", key], value)
        }
        Site::Groq => {
            let problem = format!(
                "'messages.{index}' : for 'role:assistant' the following must be satisfied[('messages.{index}' : property '{key}' is unsupported)]"
            );
            Response::refusal(form(row.site), &problem)
        }
        _ => {
            let param = format!("messages[{index}].{key}");
            refuse(row, &param, Some("unknown_parameter"), &format!("Unknown parameter: '{param}'."))
        }
    })
}

/// Refuses an answer that lacks what it was sent with.
#[allow(
    clippy::too_many_arguments,
    clippy::fn_params_excessive_bools,
    reason = "three facts about one request"
)]
fn check_replay(
    state: &mut State,
    row: &ChatRow,
    index: usize,
    message: &Value,
    thinks: bool,
    has_tools: bool,
    is_current: bool,
) -> Result<(), Response> {
    let calls = items(&message["tool_calls"]);
    let sent = calls.first().and_then(|call| state.sent.get(text(&call["id"]))).cloned();
    let has = |key: &str| message.get(key).is_some_and(|value| !value.is_null());
    match row.replay {
        Replay::ReasoningContent if thinks && has_tools && !has("reasoning_content") => {
            let problem = "The `reasoning_content` in the thinking mode must be passed back to the API.";
            return Err(refuse(row, "messages", Some("invalid_request_error"), problem));
        }
        Replay::ReasoningContentOfCalls if !calls.is_empty() && !has("reasoning_content") => {
            let problem = format!(
                "thinking is enabled but reasoning_content is missing in assistant tool call message at index {index}"
            );
            return Err(refuse(row, "messages", None, &problem));
        }
        Replay::Signature if is_current && !calls.is_empty() => {
            check_signature(row, index, calls, sent.as_ref())?
        }
        Replay::Details | Replay::DetailsRequired => {
            let details = &message["reasoning_details"];
            if row.replay == Replay::DetailsRequired && !calls.is_empty() && items(details).is_empty() {
                let problem =
                    "Gemini models require OpenRouter reasoning details to be preserved in each request.";
                return Err(refuse(row, "messages", None, problem));
            }
            let changed = sent.as_ref().is_some_and(|sent| !same(&sent["reasoning_details"], details));
            if changed && !items(details).is_empty() {
                let problem = format!(
                    "messages.{index}.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be \
                     modified. These blocks must remain as they were in the original response."
                );
                return Err(refuse(row, "messages", None, &problem));
            }
        }
        _ => {}
    }
    let Some(sent) = sent else { return Ok(()) };
    // What a server does not check matters all the same: it goes back as it came.
    for key in ["content", "reasoning_content", "reasoning", "reasoning_details"] {
        // OpenRouter has the same in its details.
        if key == "reasoning" && row.site == Site::Openrouter {
            continue;
        }
        let (before, now) = (&sent[key], &message[key]);
        let both_empty = text(before).is_empty() && text(now).is_empty() && !before.is_array();
        if !both_empty && !same(before, now) {
            state.note(format!("{key}: {before} came back as {now}"));
        }
    }
    Ok(())
}

fn check_signature(
    row: &ChatRow,
    index: usize,
    calls: &[Value],
    sent: Option<&Value>,
) -> Result<(), Response> {
    let place = "/extra_content/google/thought_signature";
    let found = calls[0].pointer(place);
    let Some(found) = found.and_then(Value::as_str) else {
        let problem = format!(
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, \
             and missing thought_signature may lead to degraded model performance. Additional data, function call \
             `default_api:{}` , position {}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more \
             details.",
            text(&calls[0]["function"]["name"]),
            index + 1
        );
        return Err(refuse(row, "messages", None, &problem));
    };
    match sent.and_then(|sent| sent["tool_calls"][0].pointer(place)) {
        Some(sent) if sent != found => Err(refuse(row, "messages", None, "Corrupted thought signature.")),
        _ => Ok(()),
    }
}
