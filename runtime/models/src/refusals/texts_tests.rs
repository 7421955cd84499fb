//! The sentences are those that users of the providers have recorded.

use super::{RefusedRequest, find_change, is_lasting};
use crate::refusals::{Change, Interface};
use crate::samples::tool;
use crate::wire::{AnswerFormat, ChatRequest, ProviderError, Reasoning};
use redflow_contract::plan::ToolSpec;
use redflow_ports::ToolChoice;
use std::sync::LazyLock;

static TOOLS: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| vec![tool("light", "", None)]);

const CHAT: Option<(Interface, bool)> = Some((Interface::Chat, true));
const ONLY_CHAT: Option<(Interface, bool)> = Some((Interface::Chat, false));
const RESPONSES: Option<(Interface, bool)> = Some((Interface::Responses, true));
const ONLY_RESPONSES: Option<(Interface, bool)> = Some((Interface::Responses, false));

fn chat() -> ChatRequest<'static> {
    ChatRequest {
        messages: &[],
        tools: &TOOLS,
        tool_choice: ToolChoice::Required,
        format: AnswerFormat::JsonObject,
        stream: true,
        reasoning: Reasoning::Keep,
        cache: None,
    }
}

fn omit(path: &[&str]) -> Option<Change> {
    Some(super::omit(path))
}

fn find(
    status: u16,
    message: &str,
    param: &str,
    body: &str,
    interface: Option<(Interface, bool)>,
) -> Option<Change> {
    let chat = chat();
    let request = RefusedRequest {
        body,
        chat: &chat,
        interface,
        has_own_limit: false,
        requires_stream: false,
        has_weaker_format: true,
        has_thoughts: true,
    };
    let error = ProviderError {
        status,
        message: message.to_owned(),
        param: param.into(),
        ..ProviderError::default()
    };
    find_change(&error, &request)
}

#[test]
fn recorded_refusals_lead_to_a_change() {
    let sampling = r#"{"model":"m","temperature":0.7,"top_p":0.5,"max_tokens":100}"#;
    let effort = r#"{"model":"m","reasoning_effort":"minimal"}"#;
    for (status, message, param, body, interface, expected) in [
        // The interface.
        (
            400,
            "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead.",
            "reasoning_effort",
            effort,
            CHAT,
            Some(Change::Interface(Interface::Responses)),
        ),
        (
            400,
            "Function tools with reasoning are not supported for this model in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
            "tools",
            "{}",
            ONLY_CHAT,
            Some(Change::Effort("none")),
        ),
        (404, "Not Found", "", "{}", RESPONSES, Some(Change::Interface(Interface::Chat))),
        (
            404,
            "This is only supported in v1/responses and not in v1/chat/completions: /v1/responses",
            "model",
            "{}",
            CHAT,
            Some(Change::Interface(Interface::Responses)),
        ),
        (
            404,
            "This model is only supported in v1/responses and not in v1/chat/completions.",
            "model",
            "{}",
            CHAT,
            Some(Change::Interface(Interface::Responses)),
        ),
        (
            404,
            "This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean to use v1/completions?",
            "model",
            "{}",
            CHAT,
            Some(Change::Interface(Interface::Responses)),
        ),
        (
            400,
            "The chatCompletion operation does not work with the specified model, gpt-5-codex. Please choose different model and try again.",
            "",
            "{}",
            CHAT,
            Some(Change::Interface(Interface::Responses)),
        ),
        (
            400,
            "The requested model 'gpt-4o-search-preview' is not supported with the Responses API.",
            "model",
            "{}",
            RESPONSES,
            Some(Change::Interface(Interface::Chat)),
        ),
        (
            400,
            "This model is only supported in v1/responses and not in v1/chat/completions.",
            "model",
            "{}",
            CHAT,
            Some(Change::Interface(Interface::Responses)),
        ),
        (
            400,
            "This model is not available here. Use /v1/chat/completions instead.",
            "",
            "{}",
            RESPONSES,
            Some(Change::Interface(Interface::Chat)),
        ),
        // The name of the limit.
        (
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "max_tokens",
            sampling,
            CHAT,
            Some(Change::LimitName("max_completion_tokens")),
        ),
        (
            422,
            "max_completion_tokens: Extra inputs are not permitted",
            "",
            r#"{"max_completion_tokens":9}"#,
            CHAT,
            Some(Change::LimitName("max_tokens")),
        ),
        // The limit itself.
        (
            400,
            "max_tokens: 65536 > 8192, which is the maximum allowed number of output tokens for claude-x",
            "",
            r#"{"max_tokens":65536}"#,
            None,
            Some(Change::Limit(8_192)),
        ),
        (
            400,
            "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 4096 tokens and your request has 20 input tokens",
            "max_tokens",
            r#"{"max_tokens":4096}"#,
            CHAT,
            omit(&["max_tokens"]),
        ),
        (
            400,
            "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens (23616 of text input, 16384 in the output). Please reduce the length of either one.",
            "",
            r#"{"max_tokens":16384}"#,
            CHAT,
            omit(&["max_tokens"]),
        ),
        (
            400,
            "input length and `max_tokens` exceed context limit: 190000 + 16384 > 200000, decrease input length or `max_tokens` and try again",
            "",
            r#"{"max_tokens":16384}"#,
            None,
            Some(Change::Limit(10_000)),
        ),
        (
            413,
            "Request too large for model `m` on tokens per minute (TPM): Limit 8000, Requested 9000, please reduce your message size and try again.",
            "",
            r#"{"max_tokens":4096}"#,
            CHAT,
            Some(Change::Limit(3_096)),
        ),
        // Sampling.
        (
            400,
            "Unsupported parameter: 'temperature' is not supported with this model.",
            "temperature",
            sampling,
            CHAT,
            omit(&["temperature"]),
        ),
        (
            400,
            "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value is supported.",
            "temperature",
            sampling,
            CHAT,
            omit(&["temperature"]),
        ),
        (400, "`temperature` is deprecated for this model.", "", sampling, None, omit(&["temperature"])),
        (400, "top_p: Extra inputs are not permitted", "", sampling, None, omit(&["top_p"])),
        (
            400,
            "invalid temperature: only 1 is allowed for this model",
            "",
            sampling,
            CHAT,
            omit(&["temperature"]),
        ),
        (400, "Sorry, we cannot take a temperature here.", "", sampling, CHAT, omit(&["temperature"])),
        (400, "Argument not supported on this model: stop", "", r#"{"stop":["END"]}"#, CHAT, omit(&["stop"])),
        (
            400,
            "Unknown name \"topK\" at 'generation_config': Cannot find field.",
            "",
            r#"{"generationConfig":{"topK":1,"maxOutputTokens":5}}"#,
            None,
            omit(&["generationConfig", "topK"]),
        ),
        // The effort.
        (
            400,
            "Unsupported value: 'minimal' is not supported with the 'gpt-5.1' model. Supported values are: 'none', 'low', 'medium', and 'high'.",
            "reasoning.effort",
            r#"{"reasoning":{"effort":"minimal"}}"#,
            RESPONSES,
            Some(Change::Effort("low")),
        ),
        (
            422,
            "reasoning_effort='low' is not supported for this model. Must be one of (none, high)",
            "",
            r#"{"reasoning_effort":"low"}"#,
            CHAT,
            Some(Change::Effort("high")),
        ),
        (
            400,
            "Model X does not support parameter reasoningEffort.",
            "",
            effort,
            CHAT,
            omit(&["reasoning_effort"]),
        ),
        (
            400,
            "Thinking level MINIMAL is not supported for this model. Please retry with other thinking level.",
            "",
            r#"{"generationConfig":{"thinkingConfig":{"thinkingLevel":"MINIMAL"}}}"#,
            None,
            Some(Change::Effort("low")),
        ),
        (
            400,
            "output_config.effort: Input should be 'low', 'medium' or 'high'",
            "",
            r#"{"output_config":{"effort":"xhigh"}}"#,
            None,
            Some(Change::Effort("high")),
        ),
        (
            400,
            "Unknown parameter: 'reasoning'.",
            "reasoning",
            r#"{"reasoning":{"effort":"low"}}"#,
            RESPONSES,
            omit(&["reasoning", "effort"]),
        ),
        // Forced tools.
        (
            400,
            "tool_choice: type \"tool\" and \"any\" are not supported for this model.",
            "",
            "{}",
            None,
            Some(Change::FreeChoice),
        ),
        (400, "Thinking mode does not support this tool_choice", "", "{}", CHAT, Some(Change::FreeChoice)),
        (
            400,
            "tool_choice 'required' is incompatible with thinking enabled",
            "",
            "{}",
            CHAT,
            Some(Change::FreeChoice),
        ),
        (
            400,
            "Invalid tool_choice type: 'object'. Supported string values: none, auto, required",
            "",
            "{}",
            CHAT,
            Some(Change::FreeChoice),
        ),
        // Reasoning that goes back, and the request for it.
        (
            400,
            "Encrypted content is not supported with this model.",
            "include",
            r#"{"include":["reasoning.encrypted_content"]}"#,
            RESPONSES,
            omit(&["include"]),
        ),
        (
            400,
            "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.",
            "",
            "{}",
            None,
            Some(Change::NoThoughts),
        ),
        (
            400,
            "messages.3.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified",
            "",
            "{}",
            None,
            Some(Change::NoThoughts),
        ),
        (
            400,
            "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
            "input",
            "{}",
            RESPONSES,
            Some(Change::NoThoughts),
        ),
        (
            404,
            "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.",
            "input",
            r#"{"store":false}"#,
            RESPONSES,
            Some(Change::NoThoughts),
        ),
        (
            400,
            "Function call is missing a thought_signature in functionCall parts.",
            "",
            "{}",
            None,
            Some(Change::NoThoughts),
        ),
        (400, "Thought signature is not valid", "", "{}", None, Some(Change::NoThoughts)),
        // Thinking of Claude and of Ollama.
        (
            400,
            "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and output_config.effort to control it.",
            "",
            r#"{"thinking":{"type":"enabled","budget_tokens":2048}}"#,
            None,
            Some(Change::AdaptiveThinking),
        ),
        (
            400,
            "adaptive thinking is not supported on this model",
            "",
            r#"{"thinking":{"type":"adaptive"}}"#,
            None,
            omit(&["thinking"]),
        ),
        (400, "\"m\" does not support thinking", "", r#"{"think":true}"#, None, omit(&["think"])),
        // Streams.
        (
            422,
            "stream_options: Extra inputs are not permitted",
            "",
            r#"{"stream_options":{},"stream":true}"#,
            CHAT,
            omit(&["stream_options"]),
        ),
        (
            400,
            "Your organization must be verified to stream this model.",
            "stream",
            "{}",
            CHAT,
            Some(Change::NoStream),
        ),
        (403, "streaming is not enabled", "", "{}", None, Some(Change::NoStream)),
        // Formats.
        (400, "This response_format type is unavailable now", "", "{}", CHAT, Some(Change::WeakerFormat)),
        (
            400,
            "Function calling with a response mime type: 'application/json' is unsupported",
            "",
            "{}",
            None,
            Some(Change::WeakerFormat),
        ),
        (
            500,
            "failed to initialize samplers: failed to parse grammar",
            "",
            "{}",
            CHAT,
            Some(Change::WeakerFormat),
        ),
        // Strict tools, and what a person has added.
        (
            400,
            "tools.0.custom.strict: Extra inputs are not permitted",
            "",
            r#"{"tools":[{"name":"a","strict":true}]}"#,
            None,
            omit(&["tools", "*", "strict"]),
        ),
        (
            400,
            "provider: Extra inputs are not permitted",
            "",
            r#"{"provider":{}}"#,
            CHAT,
            omit(&["provider"]),
        ),
        (400, "Unknown parameter: 'metadata'.", "", r#"{"metadata":{}}"#, CHAT, omit(&["metadata"])),
        (400, "Not supported.", "metadata", r#"{"metadata":{}}"#, CHAT, omit(&["metadata"])),
        (400, "seed is not supported", "", r#"{"seed":1}"#, CHAT, omit(&["seed"])),
        (400, "Model X does not support parameter seed.", "", r#"{"seed":1}"#, CHAT, omit(&["seed"])),
        (
            400,
            "Unrecognized request argument supplied: min_p",
            "",
            r#"{"min_p":0.1}"#,
            CHAT,
            omit(&["min_p"]),
        ),
        (
            400,
            "Unknown parameter: 'prompt_cache_retention'.",
            "prompt_cache_retention",
            r#"{"prompt_cache_retention":"24h"}"#,
            RESPONSES,
            omit(&["prompt_cache_retention"]),
        ),
    ] {
        assert_eq!(find(status, message, param, body, interface), expected, "{message}");
    }
}

#[test]
fn other_errors_lead_to_none() {
    for (status, message, body, interface) in [
        (401, "temperature: Invalid key", r#"{"temperature":1}"#, CHAT),
        (429, "temperature", r#"{"temperature":1}"#, CHAT),
        (404, "The model `m` does not exist or you do not have access to it.", "{}", RESPONSES),
        (404, "Not Found", "{}", ONLY_RESPONSES),
        (404, "Not Found", "{}", CHAT),
        (400, "Unknown parameter: 'model'", r#"{"model":"m","max_tokens":1}"#, CHAT),
        // The field is not there, or the value is the one that is refused.
        (400, "Unsupported parameter: 'temperature'", "{}", CHAT),
        (400, "Please stop it.", r#"{"stop":["x"]}"#, CHAT),
        // The words are there, but not as names of fields.
        (400, "Provider returned error: invalid image", r#"{"provider":{"zdr":true}}"#, CHAT),
        (400, "Invalid provider: acme", r#"{"provider":{"only":["acme"]}}"#, CHAT),
        (400, "This provider is not supported for pictures", r#"{"provider":{"zdr":true}}"#, CHAT),
        (400, "The last message must be of the user; this role is not supported", r#"{"user":"a"}"#, CHAT),
        // Only Chat Completions has two names for the limit.
        (400, "max_tokens: Extra inputs are not permitted", r#"{"max_tokens":9}"#, None),
        (
            400,
            "input length and `max_tokens` exceed context limit: 199900 + 16384 > 200000, decrease input length",
            r#"{"max_tokens":16384}"#,
            None,
        ),
        (400, "", "{}", CHAT),
        (400, "The signature of the request is invalid.", "{}", None),
        (500, "Corrupted thought signature.", "{}", None),
        (400, "Unsupported MIME type: image/gif", "{}", None),
        (413, "The body is too large", r#"{"max_tokens":4096}"#, CHAT),
    ] {
        assert_eq!(find(status, message, "", body, interface), None, "{message}");
    }
}

#[test]
fn a_request_has_what_it_can_do_without() {
    let mut chat = ChatRequest { tool_choice: ToolChoice::Auto, format: AnswerFormat::Text, ..chat() };
    chat.stream = false;
    let request = |has_own_limit| RefusedRequest {
        body: r#"{"max_tokens":4096}"#,
        chat: &chat,
        interface: CHAT,
        has_own_limit,
        requires_stream: true,
        has_weaker_format: false,
        has_thoughts: false,
    };
    let error =
        |message: &str| ProviderError { status: 400, message: message.to_owned(), ..Default::default() };
    for message in [
        "tool_choice is not supported",
        "response_format is not supported",
        "stream is not supported",
        "Invalid `signature` in `thinking` block",
    ] {
        assert_eq!(find_change(&error(message), &request(false)), None, "{message}");
    }
    // A limit that a person has set stays.
    let too_large = error("max_tokens is too large: 4096. It must be at most 2048.");
    assert_eq!(find_change(&too_large, &request(false)), Some(Change::Limit(2_048)));
    assert_eq!(find_change(&too_large, &request(true)), None);
    let too_large =
        error("max_tokens: 4096 > 2048, which is the maximum allowed number of output tokens for m");
    assert_eq!(find_change(&too_large, &request(false)), Some(Change::Limit(2_048)));
    assert_eq!(find_change(&too_large, &request(true)), None);
}

#[test]
fn a_group_that_is_refused_loses_its_fields() {
    let chat = ChatRequest { format: AnswerFormat::Text, ..chat() };
    let change = |body| {
        let request = RefusedRequest {
            body,
            chat: &chat,
            interface: None,
            has_own_limit: false,
            requires_stream: true,
            has_weaker_format: false,
            has_thoughts: false,
        };
        let message = "output_config: Extra inputs are not permitted".to_owned();
        find_change(&ProviderError { status: 400, message, ..ProviderError::default() }, &request)
    };
    assert_eq!(change(r#"{"output_config":{"effort":"low"}}"#), omit(&["output_config", "effort"]));
    assert_eq!(change(r#"{"output_config":{"format":{}}}"#), None);
}

#[test]
fn reasoning_that_cannot_be_read_is_not_a_refusal_to_send_it() {
    let chat = chat();
    let request = |has_thoughts| RefusedRequest {
        body: r#"{"include":["reasoning.encrypted_content"]}"#,
        chat: &chat,
        interface: RESPONSES,
        has_own_limit: false,
        requires_stream: true,
        has_weaker_format: false,
        has_thoughts,
    };
    let error = ProviderError {
        status: 400,
        code: "invalid_encrypted_content".to_owned(),
        message: "The encrypted content gAAA could not be verified. Reason: Encrypted content could not be decrypted or parsed.".to_owned(),
        ..ProviderError::default()
    };
    assert_eq!(find_change(&error, &request(true)), Some(Change::NoThoughts));
    assert_eq!(find_change(&error, &request(false)), None);
}

#[test]
fn a_limit_that_was_too_high_for_one_conversation_is_no_lasting_one() {
    const WINDOW: &str = "'max_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and your request has 5000 input tokens";
    let limit = || omit(&["max_tokens"]).unwrap();
    for (change, message, sent, expected) in [
        (Change::Limit(8_192), "max_tokens: 65536 > 8192, which is the maximum allowed number", 65_536, true),
        (Change::Limit(300), "on tokens per minute (TPM): Limit 8000, Requested 11796", 4_096, false),
        (Change::Limit(900), "`max_tokens` exceed context limit: 199100 + 4096 > 200000", 4_096, false),
        (limit(), WINDOW, 4_096, false),
        // It fits no conversation.
        (limit(), WINDOW, 8_192, true),
        (limit(), WINDOW, 16_384, true),
        (limit(), "max_tokens is too large", 4_096, true),
        (omit(&["temperature"]).unwrap(), WINDOW, 4_096, true),
        (Change::FreeChoice, "tokens per minute", 4_096, true),
    ] {
        let error = ProviderError { status: 400, message: message.to_owned(), ..ProviderError::default() };
        let body = format!(r#"{{"max_tokens":{sent}}}"#);
        assert_eq!(is_lasting(&change, &error, &body), expected, "{message} {sent}");
    }
}
