//! Gemini's own interface.

use super::fields::{items, text, twice, unknown_key};
use super::gemini_answer;
use super::models::{GeminiRow, gemini_row};
use super::replay::same;
use super::response::{ErrorForm, Response};
use super::script::{self, Ask, Choice, Format};
use super::state::State;
use serde_json::Value;

const FIELDS: &[&str] = &[
    "cachedContent",
    "contents",
    "generationConfig",
    "labels",
    "safetySettings",
    "serviceTier",
    "store",
    "systemInstruction",
    "toolConfig",
    "tools",
];
const SETTINGS: &[&str] = &[
    "candidateCount",
    "enableEnhancedCivicAnswers",
    "frequencyPenalty",
    "logprobs",
    "maxOutputTokens",
    "mediaResolution",
    "presencePenalty",
    "responseFormat",
    "responseJsonSchema",
    "responseLogprobs",
    "responseMimeType",
    "responseModalities",
    "responseSchema",
    "seed",
    "speechConfig",
    "stopSequences",
    "temperature",
    "thinkingConfig",
    "topK",
    "topP",
];
const PARTS: &[&str] = &[
    "text",
    "thought",
    "thoughtSignature",
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "mediaResolution",
    "videoMetadata",
];

pub(super) fn respond(
    state: &mut State,
    model: &str,
    stream: bool,
    body: &Value,
) -> Result<Response, Response> {
    let missing = || {
        let message = format!(
            "models/{model} is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see \
             the list of available models and their supported methods."
        );
        Response::error(ErrorForm::Google, 404, &message, None, None)
    };
    let row = gemini_row(model).ok_or_else(missing)?;
    let mut ask = check(state, row, body)?;
    ask.stream = stream;
    Ok(gemini_answer::send(state, body, &ask, script::answer(&ask)))
}

fn refuse(message: &str) -> Response {
    Response::refusal(ErrorForm::Google, message)
}

fn check_keys(value: &Value, known: &[&str], at: &str) -> Result<(), Response> {
    let Some((key, _)) = unknown_key(value, known) else { return Ok(()) };
    let at = if at.is_empty() { String::new() } else { format!(" at '{at}'") };
    Err(refuse(&format!("Invalid JSON payload received. Unknown name \"{key}\"{at}: Cannot find field.")))
}

fn check(state: &mut State, row: &GeminiRow, body: &Value) -> Result<Ask, Response> {
    check_keys(body, FIELDS, "")?;
    let settings = &body["generationConfig"];
    check_keys(settings, SETTINGS, "generation_config")?;
    check_thinking(row, &settings["thinkingConfig"])?;
    let tools = check_tools(&body["tools"])?;
    let choice = check_choice(&body["toolConfig"])?;
    let format = check_format(row, settings, &tools)?;
    let mut ask = Ask { tools, choice, format, parallel: true, thinks: true, ..Ask::default() };
    for part in items(&body["systemInstruction"]["parts"]) {
        ask.prompt.push_str(text(&part["text"]));
        ask.prompt.push('\n');
    }
    check_contents(state, row, body, &mut ask)?;
    Ok(ask)
}

fn check_thinking(row: &GeminiRow, thinking: &Value) -> Result<(), Response> {
    let at = "generation_config.thinking_config";
    check_keys(thinking, &["thinkingLevel", "thinkingBudget", "includeThoughts"], at)?;
    if !row.budget && thinking.get("thinkingBudget").is_some() {
        return Err(refuse("Thinking budget is not supported for this model. Use thinking level instead."));
    }
    let Some(level) = thinking["thinkingLevel"].as_str() else { return Ok(()) };
    if row.levels.is_empty() {
        return Err(refuse("Thinking level is not supported for this model."));
    }
    let level = level.to_uppercase();
    if !row.levels.contains(&level.as_str()) {
        let message = format!(
            "Thinking level {level} is not supported for this model. Please retry with other thinking level."
        );
        return Err(refuse(&message));
    }
    Ok(())
}

fn check_tools(list: &Value) -> Result<Vec<(String, Value)>, Response> {
    let mut tools = Vec::new();
    for tool in items(list) {
        for (index, function) in items(&tool["functionDeclarations"]).iter().enumerate() {
            let at = format!("tools[0].function_declarations[{index}]");
            let known = [
                "name",
                "description",
                "parameters",
                "parametersJsonSchema",
                "response",
                "responseJsonSchema",
                "behavior",
            ];
            check_keys(function, &known, &at)?;
            let name = text(&function["name"]);
            let begins = name.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_');
            let known = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
            if !begins || name.len() > 64 || !name.bytes().all(known) {
                return Err(refuse(&format!(
                    "* GenerateContentRequest.{at}.name: Invalid function name. Must start with a letter or an underscore. Must be \
                     alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
                )));
            }
            let schema = function.get("parametersJsonSchema").unwrap_or(&function["parameters"]);
            tools.push((name.to_owned(), schema.clone()));
        }
    }
    let names: Vec<&str> = tools.iter().map(|(name, _)| name.as_str()).collect();
    match twice(&names) {
        Some(name) => Err(refuse(&format!("Duplicate function declaration found: {name}"))),
        None => Ok(tools),
    }
}

fn check_choice(config: &Value) -> Result<Choice, Response> {
    let calling = &config["functionCallingConfig"];
    check_keys(calling, &["mode", "allowedFunctionNames"], "tool_config.function_calling_config")?;
    Ok(match calling["mode"].as_str() {
        None | Some("AUTO" | "VALIDATED") => Choice::Auto,
        Some("NONE") => Choice::None,
        Some("ANY") => match items(&calling["allowedFunctionNames"]) {
            [one] => Choice::Named(text(one).to_owned()),
            _ => Choice::Required,
        },
        Some(other) => {
            let message = format!(
                "Invalid value at 'tool_config.function_calling_config.mode' (type.googleapis.com/google.ai.generativelanguage.v1beta.FunctionCallingConfig.Mode), \"{other}\""
            );
            return Err(refuse(&message));
        }
    })
}

fn check_format(row: &GeminiRow, settings: &Value, tools: &[(String, Value)]) -> Result<Format, Response> {
    let is_json = settings["responseMimeType"] == "application/json";
    let schema = settings.get("responseJsonSchema").or_else(|| settings.get("responseSchema"));
    if is_json && !row.format_with_tools && !tools.is_empty() {
        return Err(refuse("Function calling with a response mime type: 'application/json' is unsupported"));
    }
    match schema {
        Some(_) if !is_json => Err(refuse(
            "* GenerateContentRequest.generation_config.response_schema: only allowed when response_mime_type is application/json",
        )),
        Some(schema) => Ok(Format::Schema(schema.clone())),
        None if is_json => Ok(Format::Json),
        None => Ok(Format::Text),
    }
}

fn check_contents(state: &mut State, row: &GeminiRow, body: &Value, ask: &mut Ask) -> Result<(), Response> {
    let contents = items(&body["contents"]);
    if contents.is_empty() {
        return Err(refuse("* GenerateContentRequest.contents: contents is not specified"));
    }
    let speaks = |content: &Value| {
        content["role"] != "model" && items(&content["parts"]).iter().any(|part| part["text"].is_string())
    };
    let last_user = contents.iter().rposition(speaks).unwrap_or_default();
    let mut open: Vec<&Value> = Vec::new();
    for (index, content) in contents.iter().enumerate() {
        let at = format!("contents[{index}]");
        check_keys(content, &["role", "parts"], &at)?;
        let parts = items(&content["parts"]);
        if parts.is_empty() {
            return Err(refuse(&format!(
                "* GenerateContentRequest.{at}.parts: contents.parts must not be empty."
            )));
        }
        for part in parts {
            check_keys(part, PARTS, &format!("{at}.parts"))?;
            ask.prompt.push_str(text(&part["text"]));
            ask.prompt.push('\n');
        }
        let results = parts.iter().filter(|part| part.get("functionResponse").is_some()).count();
        if row.signatures && (1..parts.len()).contains(&results) {
            // What Gemini 3 says to a text or a picture beside results.
            return Err(refuse("Requests ending with a model turn are not supported."));
        }
        let of = |key: &'static str| parts.iter().filter_map(move |part| part.get(key)).collect::<Vec<_>>();
        check_responses(&open, &of("functionResponse"))?;
        open.clear();
        match content["role"].as_str() {
            Some("user") | None => {}
            Some("model") => {
                open = of("functionCall");
                if !open.is_empty() && index == 0 {
                    return Err(refuse(
                        "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
                    ));
                }
                ask.answers.push(open.iter().map(|call| text(&call["name"]).to_owned()).collect());
                check_signatures(state, row, index, parts, index > last_user)?;
            }
            Some(_) => return Err(refuse("Please use a valid role: user, model.")),
        }
    }
    check_responses(&open, &[])
}

fn check_responses(open: &[&Value], responses: &[&Value]) -> Result<(), Response> {
    let same_names = || {
        let names = |list: &[&Value]| {
            let mut names: Vec<String> = list.iter().map(|one| text(&one["name"]).to_owned()).collect();
            names.sort_unstable();
            names
        };
        names(open) == names(responses)
    };
    if open.len() == responses.len() && same_names() {
        return Ok(());
    }
    Err(refuse(
        "Please ensure that the number of function response parts is equal to the number of function call parts of the function \
         call turn.",
    ))
}

/// The first call of each answer in the current turn comes back with its signature.
fn check_signatures(
    state: &mut State,
    row: &GeminiRow,
    index: usize,
    parts: &[Value],
    is_current: bool,
) -> Result<(), Response> {
    let Some(place) = parts.iter().position(|part| part.get("functionCall").is_some()) else { return Ok(()) };
    let (first, name) = (&parts[place], text(&parts[place]["functionCall"]["name"]));
    let sent = state.sent.get(text(&first["thoughtSignature"])).cloned();
    if row.signatures && is_current {
        if first["thoughtSignature"].is_null() {
            return Err(refuse(&format!(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, \
                 and missing thought_signature may lead to degraded model performance. Additional data, function call \
                 `default_api:{name}` , position {}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for \
                 more details.",
                index + 1
            )));
        }
        if sent.is_none() {
            return Err(refuse("Corrupted thought signature."));
        }
    }
    let Some(sent) = sent else { return Ok(()) };
    // Thoughts that may be read need not come back.
    let shown =
        |parts: &[Value]| parts.iter().filter(|part| part["thought"] != true).cloned().collect::<Value>();
    if !same(&shown(items(&sent)), &shown(parts)) {
        state.note(format!("{sent} came back as {}", Value::Array(parts.to_vec())));
    }
    Ok(())
}
