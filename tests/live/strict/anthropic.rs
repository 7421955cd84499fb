//! Anthropic's Messages in both versions, direct and behind a gateway.

use super::anthropic_answer;
use super::anthropic_replay::{self, refuse};
use super::fields::{is_tool_name, items, text, twice, unknown_key};
use super::models::{ClaudeRow, ClaudeSampling, Thinks, claude_row};
use super::response::{ErrorForm, Response};
use super::schema;
use super::script::{self, Ask, Choice, Format};
use super::site::Site;
use super::state::State;
use redflow_testkit::HttpRequest;
use serde_json::Value;

const FIELDS: &[&str] = &[
    "cache_control",
    "container",
    "context_management",
    "inference_geo",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "output_config",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];
const VERSIONS: [&str; 2] = ["2023-06-01", "2026-10-21"];
const SAMPLING: [&str; 3] = ["temperature", "top_p", "top_k"];
/// The most tools with `strict`.
const MAX_STRICT: usize = 20;

pub(super) fn respond(
    state: &mut State,
    site: Site,
    request: &HttpRequest,
    body: &Value,
) -> Result<Response, Response> {
    let version = request.header("anthropic-version").unwrap_or_default();
    if version.is_empty() {
        return Err(refuse("anthropic-version: header is required"));
    }
    let newest = if site == Site::AnthropicGateway { VERSIONS[0] } else { VERSIONS[1] };
    if !VERSIONS.contains(&version) || version > newest {
        return Err(refuse(&format!("anthropic-version: \"{version}\" is not a valid version")));
    }
    let model = text(&body["model"]);
    let missing = || {
        let message = format!("model: {model}");
        Response::error(ErrorForm::Anthropic, 404, &message, None, None)
    };
    let row = claude_row(model).ok_or_else(missing)?;
    let ask = check(state, row, version, body)?;
    Ok(anthropic_answer::send(state, row, body, &ask, script::answer(&ask)))
}

fn extra(place: &str) -> Response {
    refuse(&format!("{place}: Extra inputs are not permitted"))
}

fn check(state: &mut State, row: &ClaudeRow, version: &str, body: &Value) -> Result<Ask, Response> {
    if let Some((key, _)) = unknown_key(body, FIELDS) {
        return Err(extra(key));
    }
    if let Some(key) = ["max_tokens", "messages"].into_iter().find(|key| body.get(key).is_none()) {
        return Err(refuse(&format!("{key}: Field required")));
    }
    if body["max_tokens"].as_u64().is_none_or(|limit| limit == 0) {
        return Err(refuse("max_tokens: Input should be greater than or equal to 1"));
    }
    if body["max_tokens"].as_u64() > Some(128_000) {
        let message = format!(
            "max_tokens: {} > 128000, which is the maximum allowed number of output tokens for {}",
            body["max_tokens"], row.model
        );
        return Err(refuse(&message));
    }
    let thinks = check_thinking(row, body)?;
    check_sampling(row, version, body, thinks)?;
    let tools = check_tools(&body["tools"])?;
    let choice = check_choice(row, body, thinks)?;
    let forced = matches!(choice, Choice::Required | Choice::Named(_));
    let parallel = body["tool_choice"]["disable_parallel_tool_use"] != true;
    let format = check_format(row, body)?;
    // Haiku 5.5 skips thinking where a tool is forced.
    let thinks = thinks && !forced;
    let stream = body["stream"] == true;
    let mut ask = Ask { tools, choice, parallel, thinks, stream, format, ..Ask::default() };
    check_system(&body["system"], &mut ask)?;
    check_messages(row, body, &mut ask)?;
    anthropic_replay::check(state, row, body)?;
    Ok(ask)
}

/// Gives whether the model thinks.
fn check_thinking(row: &ClaudeRow, body: &Value) -> Result<bool, Response> {
    let config = &body["output_config"];
    if let Some((key, _)) = unknown_key(config, &["effort", "format", "task_budget"]) {
        return Err(extra(&format!("output_config.{key}")));
    }
    let effort = config["effort"].as_str();
    if effort.is_some() && row.efforts.is_empty() {
        return Err(refuse("This model does not support the effort parameter."));
    }
    if effort.is_some_and(|effort| !row.efforts.contains(&effort)) {
        let message = format!("output_config.effort: Input should be {}", row.efforts.join(", "));
        return Err(refuse(&message));
    }
    let thinking = &body["thinking"];
    let Some(mode) = thinking["type"].as_str() else {
        if thinking.is_null() {
            return Ok(matches!(row.thinks, Thinks::Usually | Thinks::Always));
        }
        return Err(refuse("thinking.type: Field required"));
    };
    if !row.modes.contains(&mode) {
        return Err(refuse(&match mode {
            "adaptive" => "adaptive thinking is not supported on this model".to_owned(),
            "enabled" | "disabled" => format!(
                "\"thinking.type.{mode}\" is not supported for this model. Use \"thinking.type.adaptive\" and \
                 \"output_config.effort\" to control thinking behavior."
            ),
            _ => format!(
                "thinking: Input tag '{mode}' found using 'type' does not match any of the expected tags: {}",
                row.modes.join(", ")
            ),
        }));
    }
    let known: &[&str] = match mode {
        "enabled" => &["type", "budget_tokens", "display"],
        "adaptive" => &["type", "display", "block_binding"],
        _ => &["type"],
    };
    if let Some((key, _)) = unknown_key(thinking, known) {
        return Err(extra(&format!("thinking.{mode}.{key}")));
    }
    let high = matches!(effort, Some("xhigh" | "max"));
    if high && (mode == "between_tools" || (mode == "disabled" && row.model == "claude-opus-5")) {
        return Err(refuse(&format!("thinking.type \"{mode}\" is not supported with this effort.")));
    }
    if mode == "enabled" {
        let Some(budget) = thinking["budget_tokens"].as_u64() else {
            return Err(refuse("thinking.enabled.budget_tokens: Field required"));
        };
        if budget < 1024 {
            return Err(refuse(
                "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
            ));
        }
        if Some(budget) >= body["max_tokens"].as_u64() {
            return Err(refuse("`max_tokens` must be greater than `thinking.budget_tokens`."));
        }
    }
    Ok(mode != "disabled")
}

fn check_sampling(row: &ClaudeRow, version: &str, body: &Value, thinks: bool) -> Result<(), Response> {
    let has = |key: &str| body.get(key).is_some_and(|value| !value.is_null());
    let Some(first) = SAMPLING.into_iter().find(|key| has(key)) else { return Ok(()) };
    if version != VERSIONS[0] {
        return Err(extra(first));
    }
    let is = |key: &str, only: f64| body.get(key).is_none_or(|value| value.as_f64() == Some(only));
    let both = has("temperature") && has("top_p");
    let deprecated = match row.sampling {
        ClaudeSampling::Refused => true,
        ClaudeSampling::OnlyDefault => both || !is("temperature", 1.0) || !is("top_p", 0.99) || has("top_k"),
        ClaudeSampling::OneOfThem => false,
    };
    if deprecated {
        return Err(refuse(&format!("`{first}` is deprecated for this model.")));
    }
    if both {
        return Err(refuse(
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
        ));
    }
    if thinks && !is("temperature", 1.0) {
        return Err(refuse(
            "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.",
        ));
    }
    Ok(())
}

fn check_tools(list: &Value) -> Result<Vec<(String, Value)>, Response> {
    let mut tools = Vec::new();
    for (index, tool) in items(list).iter().enumerate() {
        let known = [
            "type",
            "name",
            "description",
            "input_schema",
            "strict",
            "cache_control",
            "eager_input_streaming",
        ];
        if let Some((key, _)) = unknown_key(tool, &known) {
            return Err(extra(&format!("tools.{index}.custom.{key}")));
        }
        let (name, schema) = (text(&tool["name"]), &tool["input_schema"]);
        if !is_tool_name(name) {
            let message =
                format!("tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'");
            return Err(refuse(&message));
        }
        let place = format!("tools.{index}.custom.input_schema");
        if schema["type"] != "object" {
            return Err(refuse(&format!("{place}.type: Field required")));
        }
        if schema::root_key(schema, &["oneOf", "allOf", "anyOf"]) {
            let message =
                format!("{place}: input_schema does not support oneOf, allOf, or anyOf at the top level");
            return Err(refuse(&message));
        }
        if let (true, Some(problem)) = (tool["strict"] == true, schema::claude_problem(schema)) {
            return Err(refuse(&format!("tools.{index}.custom: {problem}")));
        }
        tools.push((name.to_owned(), schema.clone()));
    }
    if items(list).iter().filter(|tool| tool["strict"] == true).count() > MAX_STRICT {
        return Err(refuse("Too many strict tools. The maximum is 20."));
    }
    let names: Vec<&str> = tools.iter().map(|(name, _)| name.as_str()).collect();
    if twice(&names).is_some() {
        return Err(refuse("tools: Tool names must be unique."));
    }
    Ok(tools)
}

fn check_choice(row: &ClaudeRow, body: &Value, thinks: bool) -> Result<Choice, Response> {
    let wanted = &body["tool_choice"];
    if wanted.is_null() {
        return Ok(Choice::Auto);
    }
    if items(&body["tools"]).is_empty() {
        return Err(refuse("tool_choice: tool_choice may only be specified while providing tools"));
    }
    if let Some((key, _)) = unknown_key(wanted, &["type", "name", "disable_parallel_tool_use"]) {
        return Err(extra(&format!("tool_choice.{key}")));
    }
    let choice = match text(&wanted["type"]) {
        "auto" => Choice::Auto,
        "none" => Choice::None,
        "any" => Choice::Required,
        "tool" => Choice::Named(text(&wanted["name"]).to_owned()),
        other => {
            return Err(refuse(&format!(
                "tool_choice: Input tag '{other}' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'"
            )));
        }
    };
    if matches!(choice, Choice::Required | Choice::Named(_)) {
        if !row.forced_tools {
            return Err(refuse("tool_choice: type \"tool\" and \"any\" are not supported for this model."));
        }
        if thinks && body["thinking"]["type"] == "enabled" {
            return Err(refuse("Thinking may not be enabled when tool_choice forces tool use."));
        }
    }
    Ok(choice)
}

fn check_format(row: &ClaudeRow, body: &Value) -> Result<Format, Response> {
    let format = &body["output_config"]["format"];
    if format.is_null() {
        return Ok(Format::Text);
    }
    if let Some((key, _)) = unknown_key(format, &["type", "schema"]) {
        return Err(extra(&format!("output_config.format.{key}")));
    }
    if format["type"] != "json_schema" || !format["schema"].is_object() {
        return Err(refuse("output_config.format.schema: Field required"));
    }
    match schema::claude_problem(&format["schema"]) {
        Some(problem) => Err(refuse(&format!("output_config.format.schema: {problem}"))),
        None if row.prefill
            && body["messages"]
                .as_array()
                .and_then(|list| list.last())
                .is_some_and(|last| last["role"] == "assistant") =>
        {
            Err(refuse("Prefilling assistant messages is not supported with structured outputs."))
        }
        None => Ok(Format::Schema(format["schema"].clone())),
    }
}

fn check_system(system: &Value, ask: &mut Ask) -> Result<(), Response> {
    ask.prompt.push_str(text(system));
    for (index, block) in items(system).iter().enumerate() {
        if block["type"] != "text" || text(&block["text"]).is_empty() {
            return Err(refuse(&format!("system.{index}: text content blocks must be non-empty")));
        }
        ask.prompt.push_str(text(&block["text"]));
    }
    ask.prompt.push('\n');
    Ok(())
}

fn check_messages(row: &ClaudeRow, body: &Value, ask: &mut Ask) -> Result<(), Response> {
    let messages = items(&body["messages"]);
    if messages.is_empty() {
        return Err(refuse("messages: at least one message is required"));
    }
    let mut open: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        if let Some((key, _)) = unknown_key(message, &["role", "content"]) {
            return Err(extra(&format!("messages.{index}.{key}")));
        }
        let role = text(&message["role"]);
        if !["user", "assistant", "system"].contains(&role) {
            return Err(refuse(&format!(
                "messages: Unexpected role \"{role}\". Allowed roles are \"user\" or \"assistant\"."
            )));
        }
        let content = &message["content"];
        ask.prompt.push_str(text(content));
        if content.as_str().is_some_and(|text| text.trim().is_empty())
            || content.as_array().is_some_and(Vec::is_empty)
        {
            return Err(refuse(&format!(
                "messages.{index}: all messages must have non-empty content except for the optional final assistant message"
            )));
        }
        let (mut calls, mut names, mut results) = (Vec::new(), Vec::new(), Vec::new());
        for (place, block) in items(content).iter().enumerate() {
            check_block(index, place, role, block)?;
            match text(&block["type"]) {
                "tool_use" => {
                    calls.push(text(&block["id"]));
                    names.push(text(&block["name"]).to_owned());
                }
                "tool_result" => results.push((place, text(&block["tool_use_id"]))),
                _ => ask.prompt.push_str(text(&block["text"])),
            }
        }
        ask.prompt.push('\n');
        for (place, result) in &results {
            let Some(found) = open.iter().position(|call| call == result) else {
                return Err(refuse(&format!(
                    "messages.{index}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks: {result}. Each \
                     `tool_result` block must have a corresponding `tool_use` block in the previous message."
                )));
            };
            open.remove(found);
        }
        if !open.is_empty() {
            return Err(unanswered(index - 1, &open));
        }
        if role == "assistant" {
            ask.answers.push(names);
            open = calls;
        }
    }
    if !open.is_empty() {
        return Err(unanswered(messages.len() - 1, &open));
    }
    if !row.prefill && messages.last().is_some_and(|last| last["role"] == "assistant") {
        return Err(refuse(
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        ));
    }
    Ok(())
}

fn unanswered(index: usize, open: &[&str]) -> Response {
    refuse(&format!(
        "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block \
         must have a corresponding `tool_result` block in the next message.",
        open.join(", ")
    ))
}

fn check_block(index: usize, place: usize, role: &str, block: &Value) -> Result<(), Response> {
    let kind = text(&block["type"]);
    let (roles, keys): (&[&str], &[&str]) = match kind {
        "text" => (&["user", "assistant", "system"], &["type", "text", "cache_control", "citations"]),
        "image" => (&["user"], &["type", "source", "cache_control"]),
        "document" => (&["user"], &["type", "source", "cache_control", "title", "context", "citations"]),
        "tool_result" => (&["user"], &["type", "tool_use_id", "content", "is_error", "cache_control"]),
        "tool_use" => (&["assistant"], &["type", "id", "name", "input", "cache_control", "caller"]),
        "thinking" => (&["assistant"], &["type", "thinking", "signature"]),
        "redacted_thinking" => (&["assistant"], &["type", "data"]),
        _ => (&[], &[]),
    };
    let at = format!("messages.{index}.content.{place}");
    if !roles.contains(&role) {
        return Err(refuse(&format!(
            "{at}: Input tag '{kind}' found using 'type' does not match any of the expected tags"
        )));
    }
    if let Some((key, _)) = unknown_key(block, keys) {
        return Err(extra(&format!("{at}.{kind}.{key}")));
    }
    let bad_id = |key: &str| {
        let id = text(&block[key]);
        id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    match kind {
        "text" if text(&block["text"]).trim().is_empty() => {
            Err(refuse("messages: text content blocks must be non-empty"))
        }
        "tool_use" if bad_id("id") => {
            Err(refuse(&format!("{at}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")))
        }
        "tool_use" if !block["input"].is_object() => {
            Err(refuse(&format!("{at}.tool_use.input: Input should be a valid dictionary")))
        }
        "thinking" if !block["signature"].is_string() => {
            Err(refuse(&format!("{at}.thinking.signature: Field required")))
        }
        _ => Ok(()),
    }
}
