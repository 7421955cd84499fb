//! OpenAI's Responses, also at Azure and xAI.

use super::chat::unknown_model;
use super::chat_fields::{
    check_choice, check_effort, check_format, check_sampling, check_tools, refuse, unsupported,
};
use super::fields::{items, text, unknown_key};
use super::models::{ChatRow, Thinks, chat_row};
use super::response::Response;
use super::responses_answer;
use super::responses_input;
use super::script::{self, Ask};
use super::site::Site;
use super::state::State;
use serde_json::Value;

const FIELDS: &[&str] = &[
    "background",
    "context_management",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

pub(super) fn respond(state: &mut State, site: Site, body: &Value) -> Result<Response, Response> {
    let model = text(&body["model"]);
    let row = chat_row(site, model).ok_or_else(|| unknown_model(site, model))?;
    let ask = check(state, &row, model, body)?;
    Ok(responses_answer::send(state, body, &ask, script::answer(&ask)))
}

fn check(state: &mut State, row: &ChatRow, model: &str, body: &Value) -> Result<Ask, Response> {
    if let Some((key, _)) = unknown_key(body, FIELDS) {
        return Err(refuse(row, key, Some("unknown_parameter"), &format!("Unknown parameter: '{key}'.")));
    }
    if let Some((key, _)) = unknown_key(&body["text"], &["format", "verbosity"]) {
        return Err(refuse(
            row,
            key,
            Some("unknown_parameter"),
            &format!("Unknown parameter: 'text.{key}'."),
        ));
    }
    if body.get("max_output_tokens").is_some_and(|limit| limit.as_u64().is_none_or(|limit| limit < 16)) {
        let message = format!(
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got {} instead.",
            body["max_output_tokens"]
        );
        return Err(refuse(row, "max_output_tokens", Some("integer_below_min_value"), &message));
    }
    let never = row.thinks == Thinks::Never;
    if never && body["reasoning"]["summary"].is_string() {
        return Err(unsupported(row, "reasoning.summary"));
    }
    let thinks = check_effort(row, "reasoning.effort", &body["reasoning"]["effort"], model)?;
    check_sampling(row, body, model, thinks)?;
    for (index, wanted) in items(&body["include"]).iter().enumerate() {
        let encrypted = wanted == "reasoning.encrypted_content";
        if !encrypted {
            let param = format!("include[{index}]");
            return Err(refuse(row, &param, Some("invalid_value"), &format!("Invalid value: {wanted}.")));
        }
        if never {
            return Err(refuse(row, "include", None, "Encrypted content is not supported with this model."));
        }
    }
    let tools = check_tools(row, &body["tools"], |tool| tool, "tools[#]")?;
    let choice = check_choice(row, body, thinks, |choice| &choice["name"])?;
    let parallel = body["parallel_tool_calls"] != false;
    let stream = body["stream"] == true;
    let mut ask = Ask { tools, choice, parallel, thinks, stream, ..Ask::default() };
    ask.prompt.push_str(text(&body["instructions"]));
    ask.prompt.push('\n');
    responses_input::check(state, row, body, &mut ask)?;
    let format = &body["text"]["format"];
    ask.format = check_format(row, format, format, "text.format", &ask)?;
    Ok(ask)
}
