//! The fields of Chat Completions that a provider refuses, each with the recorded body.

use super::fields::{is_tool_name, items, text, twice, unknown_key};
use super::models::{ChatRow, Forcing, Sampling, Thinks, ToolsOnChat};
use super::response::{ErrorForm, Response};
use super::schema;
use super::script::{Ask, Choice, Format};
use super::site::Site;
use serde_json::Value;

/// OpenAI's fields.
const OPENAI: &[&str] = &[
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];
const MISTRAL: &[&str] = &[
    "frequency_penalty",
    "guardrails",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_mode",
    "random_seed",
    "reasoning_effort",
    "response_format",
    "safe_prompt",
    "stop",
    "stream",
    "temperature",
    "tool_choice",
    "tools",
    "top_p",
];
/// Google ignores some of these, and refuses all others.
const GOOGLE: &[&str] = &[
    "extra_body",
    "frequency_penalty",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "n",
    "parallel_tool_calls",
    "presence_penalty",
    "reasoning_effort",
    "response_format",
    "seed",
    "service_tier",
    "stop",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
];
/// The settings that go with sampling only.
const SAMPLING: [&str; 4] = ["temperature", "top_p", "presence_penalty", "frequency_penalty"];

pub(super) fn form(site: Site) -> ErrorForm {
    if site == Site::Gemini { ErrorForm::GoogleList } else { site.errors() }
}

/// Refuses a value, with its parameter and code.
pub(super) fn refuse(row: &ChatRow, param: &str, code: Option<&str>, message: &str) -> Response {
    Response::error(form(row.site), 400, message, Some(param), code)
}

pub(super) fn unsupported(row: &ChatRow, param: &str) -> Response {
    let message = format!("Unsupported parameter: '{param}' is not supported with this model.");
    refuse(row, param, Some("unsupported_parameter"), &message)
}

pub(super) fn check_known(row: &ChatRow, body: &Value) -> Result<(), Response> {
    let known = match row.site {
        Site::Openai | Site::Azure => OPENAI,
        Site::Mistral => MISTRAL,
        Site::Gemini => GOOGLE,
        Site::Groq => OPENAI,
        _ => return Ok(()),
    };
    let Some((key, value)) = unknown_key(body, known) else { return Ok(()) };
    Err(match row.site {
        Site::Mistral => Response::extra_forbidden(&[key], value),
        Site::Gemini => {
            let message =
                format!("Invalid JSON payload received. Unknown name \"{key}\": Cannot find field.");
            refuse(row, key, None, &message)
        }
        Site::Groq => refuse(row, key, None, &format!("property '{key}' is unsupported")),
        _ => refuse(row, key, Some("unknown_parameter"), &format!("Unknown parameter: '{key}'.")),
    })
}

/// The effort that a request asks for, if the model takes it. Gives whether the model thinks.
pub(super) fn check_effort(
    row: &ChatRow,
    param: &str,
    effort: &Value,
    model: &str,
) -> Result<bool, Response> {
    let Some(effort) = effort.as_str() else {
        return Ok(matches!(row.thinks, Thinks::Usually | Thinks::Always));
    };
    if row.efforts.is_empty() {
        return Err(match row.site {
            Site::Xai => refuse(
                row,
                param,
                None,
                &format!("Model {model} does not support parameter reasoningEffort."),
            ),
            _ => unsupported(row, param),
        });
    }
    if !row.efforts.contains(&effort) {
        let quoted: Vec<String> = row.efforts.iter().map(|effort| format!("'{effort}'")).collect();
        let (last, first) = quoted.split_last().unwrap();
        let message = match row.site {
            Site::Mistral => {
                let values = row.efforts.join(", ");
                format!("reasoning_effort='{effort}' is not supported for this model. Must be one of ({values})")
            }
            Site::Gemini => "Thinking level MINIMAL is not supported for this model. Please retry with other thinking level."
                .replace("MINIMAL", &effort.to_uppercase()),
            _ => format!(
                "Unsupported value: '{effort}' is not supported with the '{model}' model. Supported values are: {}, and {last}.",
                first.join(", ")
            ),
        };
        return Err(refuse(row, param, Some("unsupported_value"), &message));
    }
    Ok(effort != "none" && row.thinks != Thinks::Never)
}

pub(super) fn check_limits(row: &ChatRow, body: &Value) -> Result<(), Response> {
    let has = |key: &str| body.get(key).is_some_and(|value| !value.is_null());
    if row.new_limit && has("max_tokens") {
        let message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        return Err(refuse(row, "max_tokens", Some("unsupported_parameter"), message));
    }
    if has("max_tokens") && has("max_completion_tokens") && matches!(row.site, Site::Openai | Site::Azure) {
        let message = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.";
        return Err(refuse(row, "max_tokens", Some("invalid_parameter_combination"), message));
    }
    for key in ["max_tokens", "max_completion_tokens"].into_iter().filter(|key| has(key)) {
        if body[key].as_u64().is_none_or(|limit| limit == 0) {
            let message = format!("Invalid '{key}': integer below minimum value. Expected a value >= 1.");
            return Err(refuse(row, key, Some("integer_below_min_value"), &message));
        }
    }
    let wanted = ["max_tokens", "max_completion_tokens"].iter().filter_map(|key| body[key].as_u64()).max();
    let requested = wanted.unwrap_or_default() + body.to_string().len() as u64 / 4;
    if row.site == Site::Groq && requested > 8_000 {
        let message = format!(
            "Request too large for model `{}` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): \
             Limit 8000, Requested {requested}, please reduce your message size and try again.",
            row.model
        );
        return Err(Response::error(form(row.site), 413, &message, None, Some("rate_limit_exceeded")));
    }
    Ok(())
}

pub(super) fn check_sampling(row: &ChatRow, body: &Value, model: &str, thinks: bool) -> Result<(), Response> {
    let has = |key: &str| body.get(key).is_some_and(|value| !value.is_null());
    match row.sampling {
        Sampling::Accepted => {}
        Sampling::RefusedWhileThinking => {
            if has("stop") && thinks {
                return Err(unsupported(row, "stop"));
            }
            for key in SAMPLING.into_iter().filter(|key| thinks && has(key)) {
                let neutral = if key.ends_with("penalty") { 0.0 } else { 1.0 };
                if key != "temperature" {
                    return Err(unsupported(row, key));
                }
                if body[key].as_f64() != Some(neutral) {
                    let message = format!(
                        "Unsupported value: '{key}' does not support {} with this model. Only the default (1) value is supported.",
                        body[key]
                    );
                    return Err(refuse(row, key, Some("unsupported_value"), &message));
                }
            }
        }
        Sampling::OnlyDefault => {
            for (key, only) in [("temperature", 1.0), ("top_p", 0.95)] {
                if has(key) && body[key].as_f64() != Some(only) {
                    let message = format!("invalid {key}: only {only} is allowed for this model");
                    return Err(refuse(row, key, None, &message));
                }
            }
        }
        Sampling::NoStop => {
            let refused = [
                ("stop", "stop"),
                ("presence_penalty", "presencePenalty"),
                ("frequency_penalty", "frequencyPenalty"),
            ];
            if let Some((_, name)) = refused.into_iter().find(|(key, _)| has(key)) {
                return Err(refuse(
                    row,
                    name,
                    None,
                    &format!("Model {model} does not support parameter {name}."),
                ));
            }
        }
    }
    Ok(())
}

/// The tools of a request. `place` is where a tool has its name and schema.
pub(super) fn check_tools(
    row: &ChatRow,
    list: &Value,
    place: fn(&Value) -> &Value,
    at: &str,
) -> Result<Vec<(String, Value)>, Response> {
    let of_openai = matches!(row.site, Site::Openai | Site::Azure);
    let mut tools = Vec::new();
    for (index, tool) in items(list).iter().enumerate() {
        let at = at.replace('#', &index.to_string());
        if tool["type"] != "function" {
            let message =
                format!("Invalid value: '{}'. Supported values are: 'function'.", text(&tool["type"]));
            return Err(refuse(row, &format!("tools[{index}].type"), Some("invalid_value"), &message));
        }
        let function = place(tool);
        let known = ["type", "name", "description", "parameters", "strict", "defer_loading"];
        if let (true, Some((key, _))) = (of_openai, unknown_key(function, &known)) {
            let message = format!("Unknown parameter: '{at}.{key}'.");
            return Err(refuse(row, &format!("{at}.{key}"), Some("unknown_parameter"), &message));
        }
        let name = text(&function["name"]);
        if !is_tool_name(name) {
            let message = format!(
                "Invalid '{at}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            );
            return Err(refuse(row, &format!("{at}.name"), Some("invalid_value"), &message));
        }
        let schema = &function["parameters"];
        let invalid = |problem: &str| {
            let message = format!("Invalid schema for function '{name}': {problem}");
            refuse(row, &format!("{at}.parameters"), Some("invalid_function_parameters"), &message)
        };
        if of_openai && schema.is_object() {
            if schema::root_key(schema, &schema::ROOT_KEYS) || schema["type"] != "object" {
                return Err(invalid(
                    "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' at the top level",
                ));
            }
            if let (true, Some(problem)) = (function["strict"] == true, schema::openai_problem(schema)) {
                return Err(invalid(&problem));
            }
        }
        tools.push((name.to_owned(), schema.clone()));
    }
    let names: Vec<&str> = tools.iter().map(|(name, _)| name.as_str()).collect();
    match twice(&names) {
        Some(name) => {
            Err(refuse(row, "tools", None, &format!("Duplicate function definition found: {name}")))
        }
        None => Ok(tools),
    }
}

/// The choice of a tool. `name` is where a choice has the name of a tool.
pub(super) fn check_choice(
    row: &ChatRow,
    body: &Value,
    thinks: bool,
    name: fn(&Value) -> &Value,
) -> Result<Choice, Response> {
    let choice = &body["tool_choice"];
    let choice = match (choice, choice.as_str()) {
        (Value::Null, _) | (_, Some("auto")) => Choice::Auto,
        (_, Some("none")) => Choice::None,
        (_, Some("required")) => Choice::Required,
        (_, Some("any")) if row.site == Site::Mistral => Choice::Required,
        (Value::Object(_), _) if row.forcing != Forcing::OnlyTexts => {
            Choice::Named(text(name(choice)).to_owned())
        }
        (Value::Object(_), _) => {
            let message = "Invalid tool_choice type: 'object'. Supported string values: none, auto, required";
            return Err(refuse(row, "tool_choice", None, message));
        }
        _ => {
            let message =
                format!("Invalid value: {choice}. Supported values are: 'none', 'auto', and 'required'.");
            return Err(refuse(row, "tool_choice", Some("invalid_value"), &message));
        }
    };
    let forced = matches!(choice, Choice::Required | Choice::Named(_));
    let message = match row.forcing {
        Forcing::Refused if forced => {
            "tool_choice: type \"tool\" and \"any\" are not supported for this model."
        }
        Forcing::NotWhileThinking if forced && thinks => "Thinking mode does not support this tool_choice",
        Forcing::NotNamed if matches!(choice, Choice::Named(_)) => {
            "tool_choice 'specified' is incompatible with thinking enabled"
        }
        _ => "",
    };
    if !message.is_empty() {
        return Err(refuse(row, "tool_choice", None, message));
    }
    let has_tools = !items(&body["tools"]).is_empty();
    let of_openai = matches!(row.site, Site::Openai | Site::Azure);
    for key in ["tool_choice", "parallel_tool_calls"] {
        if of_openai && !has_tools && body.get(key).is_some() && body["input"].is_null() {
            let message =
                format!("Invalid value for '{key}': '{key}' is only allowed when 'tools' are specified.");
            return Err(refuse(row, key, None, &message));
        }
    }
    Ok(choice)
}

/// The format of the answer. `inner` has the schema, at a place.
pub(super) fn check_format(
    row: &ChatRow,
    format: &Value,
    inner: &Value,
    param: &str,
    ask: &Ask,
) -> Result<Format, Response> {
    let Some(kind) = format["type"].as_str() else { return Ok(Format::Text) };
    let of_openai = matches!(row.site, Site::Openai | Site::Azure);
    if !row.formats.contains(&kind) {
        let message = match row.site {
            Site::Deepseek => "This response_format type is unavailable now",
            Site::LmStudio => "'response_format.type' must be 'json_schema' or 'text'",
            _ => "Invalid parameter: 'response_format' of this type is not supported with this model.",
        };
        return Err(refuse(row, param, None, message));
    }
    if kind != "text" && !row.format_with_tools && !ask.tools.is_empty() {
        let message = match row.site {
            Site::Groq => "json mode cannot be combined with tool/function calling",
            _ => "Function calling with a response mime type: 'application/json' is unsupported",
        };
        return Err(refuse(row, param, None, message));
    }
    match kind {
        "json_object" => {
            let names_json = ask.prompt.to_lowercase().contains("json");
            if !names_json && (of_openai || row.site == Site::Deepseek) {
                let message = "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.";
                return Err(refuse(row, param, None, message));
            }
            Ok(Format::Json)
        }
        "json_schema" => {
            let schema = &inner["schema"];
            let name = text(&inner["name"]);
            if of_openai && !is_tool_name(name) {
                let message = format!("Missing required parameter: '{param}.name'.");
                return Err(refuse(row, param, Some("missing_required_parameter"), &message));
            }
            if let (true, true, Some(problem)) =
                (of_openai, inner["strict"] == true, schema::openai_problem(schema))
            {
                let message = format!("Invalid schema for response_format '{name}': {problem}");
                return Err(refuse(row, param, Some("invalid_json_schema"), &message));
            }
            Ok(Format::Schema(schema.clone()))
        }
        _ => Ok(Format::Text),
    }
}

/// Refuses function tools on Chat Completions where the model needs Responses.
pub(super) fn check_tools_on_chat(
    row: &ChatRow,
    body: &Value,
    model: &str,
    thinks: bool,
) -> Result<(), Response> {
    let effort = body["reasoning_effort"].as_str().is_some_and(|effort| effort != "none");
    let refused = match row.tools {
        ToolsOnChat::Yes => false,
        ToolsOnChat::WithoutEffort => effort,
        ToolsOnChat::WithoutThinking => thinks,
    };
    if !refused || items(&body["tools"]).is_empty() {
        return Ok(());
    }
    let advice = match row.tools {
        ToolsOnChat::WithoutEffort => "Please use /v1/responses instead.",
        _ => "To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
    };
    let message = format!(
        "Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. {advice}"
    );
    Err(refuse(row, "reasoning_effort", None, &message))
}
