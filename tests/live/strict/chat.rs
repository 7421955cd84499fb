//! Chat Completions at every provider that has it.

use super::chat_answer;
use super::chat_fields::{
    check_choice, check_effort, check_format, check_known, check_limits, check_sampling, check_tools,
    check_tools_on_chat, form, refuse,
};
use super::chat_messages;
use super::fields::text;
use super::models::{ChatRow, Thinks, chat_row};
use super::response::Response;
use super::script::{self, Ask};
use super::site::Site;
use super::state::State;
use serde_json::Value;

pub(super) fn respond(
    state: &mut State,
    site: Site,
    deployment: Option<&str>,
    body: &Value,
) -> Result<Response, Response> {
    let model = deployment.unwrap_or_else(|| text(&body["model"]));
    let row = chat_row(site, model).ok_or_else(|| unknown_model(site, model))?;
    let ask = check(state, &row, model, body)?;
    Ok(chat_answer::send(state, &row, body, &ask, script::answer(&ask)))
}

/// The answer to a model that a site does not have.
pub(super) fn unknown_model(site: Site, model: &str) -> Response {
    let (status, message, code) = match site {
        Site::Azure => (
            404,
            "The API deployment for this resource does not exist.".to_owned(),
            Some("DeploymentNotFound"),
        ),
        Site::Openrouter => (400, format!("{model} is not a valid model ID"), None),
        _ => (
            404,
            format!("The model `{model}` does not exist or you do not have access to it."),
            Some("model_not_found"),
        ),
    };
    Response::error(form(site), status, &message, None, code)
}

fn check(state: &mut State, row: &ChatRow, model: &str, body: &Value) -> Result<Ask, Response> {
    check_known(row, body)?;
    check_limits(row, body)?;
    let thinking = match (row.site, body["thinking"]["type"].as_str()) {
        (Site::Deepseek, Some("disabled")) => Some(false),
        (Site::Deepseek, Some("enabled")) => Some(true),
        _ => None,
    };
    // OpenRouter also has an object for it.
    let effort = match row.site {
        Site::Openrouter if body["reasoning"].is_object() => &body["reasoning"]["effort"],
        _ => &body["reasoning_effort"],
    };
    let thinks = check_effort(row, "reasoning_effort", effort, model)? || row.thinks == Thinks::Always;
    let thinks = thinking.unwrap_or(thinks);
    check_sampling(row, body, model, thinks)?;
    let streams = body["stream"] == true;
    if !body["stream_options"].is_null()
        && !streams
        && matches!(row.site, Site::Openai | Site::Azure | Site::Deepseek)
    {
        let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        return Err(refuse(row, "stream_options", None, message));
    }
    let tools = check_tools(row, &body["tools"], |tool| &tool["function"], "tools[#].function")?;
    let choice = check_choice(row, body, thinks, |choice| &choice["function"]["name"])?;
    check_tools_on_chat(row, body, model, thinks)?;
    let parallel = row.parallel && body["parallel_tool_calls"] != false;
    let mut ask = Ask { tools, choice, parallel, thinks, stream: streams, ..Ask::default() };
    chat_messages::check(state, row, body, thinks, &mut ask)?;
    let format = &body["response_format"];
    ask.format = check_format(row, format, &format["json_schema"], "response_format", &ask)?;
    Ok(ask)
}
