//! Errors as servers send them, with the code that a run gets, and whether the call is made again.

use crate::recording::{Node, Reply};
use serde_json::{Value, json};

/// An error of a server.
pub(crate) struct RecordedError {
    pub(crate) server: &'static str,
    /// The type of the node that calls the server.
    pub(crate) node: &'static str,
    pub(crate) reply: Reply,
    pub(crate) code: &'static str,
    pub(crate) is_retried: bool,
}

impl RecordedError {
    /// A node that calls the server, with a small window.
    pub(crate) fn node(&self) -> Node {
        let mut props = json!({"model": "m", "maxTokens": 100, "maxRetries": 1, "capabilities": {"contextWindow": 1_000}});
        match self.node {
            "openai-responses" => props["api"] = json!("responses"),
            "openai-model" => props["api"] = json!("chat"),
            _ => {}
        }
        let type_name = if self.node == "openai-responses" { "openai-model" } else { self.node };
        Node::new(type_name, props)
    }
}

const CHAT: &str = "openai-model";
const RESPONSES: &str = "openai-responses";
const CLAUDE: &str = "anthropic-model";
const GEMINI: &str = "google-model";
const OLLAMA: &str = "ollama-model";

fn error(
    server: &'static str,
    node: &'static str,
    status: u16,
    body: &Value,
    code: &'static str,
) -> RecordedError {
    let reply = Reply::new(status, &[("content-type", "application/json")], &body.to_string());
    RecordedError { server, node, reply, code, is_retried: false }
}

/// An error after the status 200.
fn streamed(
    server: &'static str,
    node: &'static str,
    name: &str,
    data: &Value,
    code: &'static str,
) -> RecordedError {
    let name = if name.is_empty() { String::new() } else { format!("event: {name}\n") };
    let reply = Reply::new(200, &[("content-type", "text/event-stream")], &format!("{name}data: {data}\n\n"));
    RecordedError { server, node, reply, code, is_retried: false }
}

fn retried(error: RecordedError) -> RecordedError {
    RecordedError { is_retried: true, ..error }
}

/// A body as OpenAI and most servers send it.
fn body(message: &str, kind: Option<&str>, code: Option<&str>) -> Value {
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

fn claude(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"})
}

fn google(code: u16, status: &str, message: &str, details: &Value) -> Value {
    json!({"error": {"code": code, "message": message, "status": status, "details": details}})
}

/// Conversations that are longer than the model can read.
pub(crate) fn too_long() -> Vec<RecordedError> {
    const CODE: &str = "CONTEXT_LENGTH";
    const INVALID: Option<&str> = Some("invalid_request_error");
    const OPENAI: &str =
        "Your input exceeds the context window of this model. Please adjust your input and try again.";
    const LLAMA: &str = "the request exceeds the available context size, try increasing it";
    const GOOGLE: &str =
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).";
    let vllm = "The decoder prompt (length 9000) is longer than the maximum model length of 8192.";
    let openrouter =
        "This endpoint's maximum context length is 8192 tokens. However, you requested about 9000 tokens.";
    let failed = json!({"type": "response.failed", "response": {
        "status": "failed", "error": {"code": "context_length_exceeded", "message": OPENAI}}});
    let raw = json!({"message": "Input is too long for requested model."}).to_string();
    let behind = json!({"error": {"message": "Provider returned error", "code": 400,
        "metadata": {"raw": raw, "provider_name": "Amazon Bedrock"}}});
    vec![
        error("OpenAI", CHAT, 400, &body(OPENAI, INVALID, Some("context_length_exceeded")), CODE),
        error("OpenAI, Responses", RESPONSES, 400, &body(OPENAI, INVALID, None), CODE),
        streamed("OpenAI, within a stream", RESPONSES, "response.failed", &failed, CODE),
        streamed(
            "OpenAI, as an event",
            RESPONSES,
            "error",
            &json!({"type": "error", "code": null, "message": OPENAI, "param": null}),
            CODE,
        ),
        error(
            "OpenAI, an older model",
            CHAT,
            400,
            &body(
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 8545 tokens. \
                 Please reduce the length of the messages.",
                INVALID,
                None,
            ),
            CODE,
        ),
        error(
            "DeepSeek",
            CHAT,
            400,
            &body(
                "This model's maximum context length is 131072 tokens. You requested 140000.",
                INVALID,
                INVALID,
            ),
            CODE,
        ),
        error(
            "vLLM",
            CHAT,
            400,
            &json!({"object": "error", "message": vllm, "type": "BadRequestError", "param": null, "code": 400}),
            CODE,
        ),
        error("vLLM, as its own failure", CHAT, 500, &body(vllm, Some("InternalServerError"), None), CODE),
        error(
            "Anthropic",
            CLAUDE,
            400,
            &claude("invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum"),
            CODE,
        ),
        error(
            "Anthropic, with the tokens of the answer",
            CLAUDE,
            400,
            &claude(
                "invalid_request_error",
                "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or \
                 `max_tokens` and try again",
            ),
            CODE,
        ),
        error(
            "Anthropic, by bytes",
            CLAUDE,
            413,
            &claude("request_too_large", "Request exceeds the maximum size"),
            CODE,
        ),
        streamed(
            "Anthropic, within a stream",
            CLAUDE,
            "error",
            &claude("invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum"),
            CODE,
        ),
        error(
            "Anthropic, within the answer",
            CLAUDE,
            200,
            &json!({"type": "message", "content": [], "stop_reason": "model_context_window_exceeded"}),
            CODE,
        ),
        error("Bedrock", CLAUDE, 400, &json!({"message": "Input is too long for requested model."}), CODE),
        error("Gemini", GEMINI, 400, &google(400, "INVALID_ARGUMENT", GOOGLE, &json!([])), CODE),
        error(
            "Gemini, interface of OpenAI",
            CHAT,
            400,
            &json!([google(400, "INVALID_ARGUMENT", GOOGLE, &json!([]))]),
            CODE,
        ),
        error(
            "llama.cpp",
            CHAT,
            400,
            &json!({"error": {"code": 400, "message": LLAMA, "type": "exceed_context_size_error", "n_ctx": 4096}}),
            CODE,
        ),
        error(
            "llama.cpp, while it answers",
            CHAT,
            500,
            &json!({"error": {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}}),
            CODE,
        ),
        streamed(
            "llama.cpp, within a stream",
            CHAT,
            "",
            &json!({"error": {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}}),
            CODE,
        ),
        error(
            "Ollama",
            OLLAMA,
            400,
            &json!({"error": "the prompt is longer than the context length of the model"}),
            CODE,
        ),
        error(
            "Ollama, a newer one",
            OLLAMA,
            400,
            &json!({"error": "prompt too long; exceeded max context length by 120 tokens"}),
            CODE,
        ),
        error(
            "LM Studio",
            CHAT,
            400,
            &json!({"error": "Trying to keep the first 9000 tokens when context the overflows. However, the number of \
                tokens to keep from the initial prompt is greater than the context length."}),
            CODE,
        ),
        error("OpenRouter", CHAT, 400, &json!({"error": {"message": openrouter, "code": 400}}), CODE),
        error("OpenRouter, the provider behind it", CHAT, 400, &behind, CODE),
        streamed(
            "OpenRouter, within a stream",
            CHAT,
            "",
            &json!({"choices": [{"delta": {"content": ""}, "finish_reason": "error"}],
                "error": {"code": 502, "message": openrouter}}),
            CODE,
        ),
        error(
            "xAI",
            CHAT,
            400,
            &json!({"code": "Client specified an invalid argument",
                "error": "This model's maximum prompt length is 131072 but the request contains 537812 tokens."}),
            CODE,
        ),
        error(
            "Groq",
            CHAT,
            400,
            &body(
                "Please reduce the length of the messages or completion.",
                INVALID,
                Some("context_length_exceeded"),
            ),
            CODE,
        ),
        error(
            "Groq, without a code",
            CHAT,
            413,
            &body("Please reduce the length of the messages or completion.", INVALID, None),
            CODE,
        ),
        error(
            "Mistral",
            CHAT,
            400,
            &json!({"object": "error", "message": "Prompt contains 40000 tokens and 0 draft tokens, too large for model \
                with 32768 maximum context length", "type": "invalid_request_prompt", "param": null, "code": "3051"}),
            CODE,
        ),
        error(
            "Mistral, as a list",
            CHAT,
            422,
            &json!({"object": "error", "message": {"detail": [{"type": "value_error", "loc": ["body", "messages"],
                "msg": "too large for model with 32768 maximum context length"}]}, "type": "invalid_request_error"}),
            CODE,
        ),
        error(
            "Kimi",
            CHAT,
            400,
            &body("Invalid request: Your request exceeded model token limit: 262144", INVALID, None),
            CODE,
        ),
        error(
            "SGLang",
            CHAT,
            400,
            &body(
                "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
                None,
                None,
            ),
            CODE,
        ),
    ]
}

/// What can be mistaken for it, and for each other.
pub(crate) fn other_errors() -> Vec<RecordedError> {
    const QUOTA: &str = "QUOTA_EXCEEDED";
    const RATE: &str = "RATE_LIMIT";
    const OVERLOAD: &str = "PROVIDER_UNAVAILABLE";
    const FILTER: &str = "MODEL_REFUSED";
    const CURRENT: &str = "You exceeded your current quota, please check your plan and billing details.";
    const CREDITS: &str =
        "Your team 1 has either used all available credits or reached its monthly spending limit.";
    const MANAGED: &str = "The response was filtered due to the prompt triggering Azure OpenAI's content management \
                           policy. Please modify your prompt and retry.";
    const BUSY: &str = "This model is currently experiencing high demand. Please try again later.";
    let violation = |id: &str| {
        json!([{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": id}]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}])
    };
    let day = violation("GenerateRequestsPerDayPerProjectPerModel-FreeTier");
    let minute = violation("GenerateContentInputTokensPerModelPerMinute-FreeTier");
    let tier = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "Limit reached.",
        "details": {"error_code": "enforced_spend_limit_reached"}}});
    let too_large = "Request too large for model `m` in organization `o` service tier `on_demand` on tokens per minute \
                     (TPM): Limit 8000, Requested 12000, please reduce your message size and try again.";
    let claude_rate = "This request would exceed your organization's rate limit of 30000 input tokens per minute. Please \
                       reduce the prompt length or the maximum tokens requested.";
    let filters = json!({"error": {"message": "The prompt was blocked.", "type": "invalid_request_error", "param": "prompt",
        "content_filters": [{"blocked": true, "source_type": "prompt",
            "content_filter_results": {"jailbreak": {"detected": true, "filtered": true}}}]}});
    let inner = json!({"error": {"message": MANAGED, "type": null, "param": "prompt", "code": "content_filter", "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation",
            "content_filter_result": {"violence": {"filtered": true, "severity": "medium"}}}}});
    let moderated = json!({"error": {"code": 403, "message": "m requires moderation on P. Your input was flagged for \
        \"violence\". No credits were charged.", "metadata": {"reasons": ["violence"], "flagged_input": "…"}}});
    let raw = json!({"error": {"message": "Rate limit exceeded", "code": "rate_limit_exceeded"}}).to_string();
    let behind =
        json!({"error": {"message": "Provider returned error", "code": 502, "metadata": {"raw": raw}}});
    vec![
        error(
            "OpenAI, quota",
            CHAT,
            429,
            &body(CURRENT, Some("insufficient_quota"), Some("insufficient_quota")),
            QUOTA,
        ),
        error("OpenAI, balance", RESPONSES, 429, &body("No.", None, Some("credit_balance_exhausted")), QUOTA),
        error(
            "OpenAI, limit",
            RESPONSES,
            429,
            &body("No.", None, Some("project_spend_limit_exceeded")),
            QUOTA,
        ),
        error("OpenAI, hard limit", CHAT, 400, &body("No.", None, Some("billing_hard_limit_reached")), QUOTA),
        streamed(
            "OpenAI, quota within a stream",
            RESPONSES,
            "error",
            &json!({"type": "error", "code": "insufficient_quota", "message": CURRENT, "param": null}),
            QUOTA,
        ),
        error(
            "Anthropic, balance",
            CLAUDE,
            400,
            &claude("invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
            QUOTA,
        ),
        error("Anthropic, limit", CLAUDE, 429, &tier, QUOTA),
        error(
            "Anthropic, own limit",
            CLAUDE,
            400,
            &claude(
                "invalid_request_error",
                "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
            ),
            QUOTA,
        ),
        error("OpenAI, no billing", CHAT, 429, &body("Inactive.", None, Some("billing_not_active")), QUOTA),
        error(
            "OpenRouter, balance",
            CHAT,
            402,
            &json!({"error": {"code": 402, "message": "Insufficient credits."}}),
            QUOTA,
        ),
        error(
            "DeepSeek, balance",
            CHAT,
            402,
            &body("Insufficient Balance", Some("unknown_error"), None),
            QUOTA,
        ),
        error(
            "Kimi, quota",
            CHAT,
            429,
            &body("Suspended.", Some("exceeded_current_quota_error"), None),
            QUOTA,
        ),
        error("xAI, balance", CHAT, 403, &json!({"code": "permission-denied", "error": CREDITS}), QUOTA),
        error("Gemini, a day", GEMINI, 429, &google(429, "RESOURCE_EXHAUSTED", CURRENT, &day), QUOTA),
        error(
            "Gemini, a day, interface of OpenAI",
            CHAT,
            429,
            &json!([google(429, "RESOURCE_EXHAUSTED", CURRENT, &day)]),
            QUOTA,
        ),
        retried(error(
            "Gemini, a minute",
            GEMINI,
            429,
            &google(429, "RESOURCE_EXHAUSTED", CURRENT, &minute),
            RATE,
        )),
        retried(error(
            "Gemini, a minute, interface of OpenAI",
            CHAT,
            429,
            &json!([google(429, "RESOURCE_EXHAUSTED", CURRENT, &minute)]),
            RATE,
        )),
        retried(error(
            "OpenAI, rate",
            CHAT,
            429,
            &body("Slow.", Some("tokens"), Some("rate_limit_exceeded")),
            RATE,
        )),
        retried(error("OpenAI, growth", CHAT, 429, &body("Slow.", None, Some("slow_down")), RATE)),
        retried(error("Anthropic, rate", CLAUDE, 429, &claude("rate_limit_error", claude_rate), RATE)),
        retried(error("Mistral, rate", CHAT, 429, &json!({"message": "Requests rate limit exceeded"}), RATE)),
        retried(error("OpenRouter, rate behind it", CHAT, 502, &behind, RATE)),
        retried(error(
            "A gateway",
            CHAT,
            413,
            &json!({"error": "Too many requests, reduce the length of the messages"}),
            RATE,
        )),
        error(
            "Groq, too large",
            CHAT,
            413,
            &body(too_large, Some("tokens"), Some("rate_limit_exceeded")),
            RATE,
        ),
        error(
            "OpenAI, too large",
            CHAT,
            429,
            &body(too_large, Some("tokens"), Some("rate_limit_exceeded")),
            RATE,
        ),
        retried(error(
            "OpenAI, overload",
            RESPONSES,
            503,
            &body("Busy.", Some("service_unavailable_error"), Some("server_is_overloaded")),
            OVERLOAD,
        )),
        retried(streamed(
            "OpenAI, overload within a stream",
            RESPONSES,
            "response.failed",
            &json!({"type": "response.failed", "response": {
                "status": "failed", "error": {"code": "server_is_overloaded", "message": "Busy."}}}),
            OVERLOAD,
        )),
        retried(error(
            "Anthropic, overload",
            CLAUDE,
            529,
            &claude("overloaded_error", "Overloaded"),
            OVERLOAD,
        )),
        retried(streamed(
            "Anthropic, overload within a stream",
            CLAUDE,
            "error",
            &claude("overloaded_error", "Overloaded"),
            OVERLOAD,
        )),
        retried(error(
            "Gemini, overload",
            GEMINI,
            503,
            &google(503, "UNAVAILABLE", BUSY, &json!([])),
            OVERLOAD,
        )),
        retried(error(
            "Kimi, overload",
            CHAT,
            429,
            &body("Busy.", Some("engine_overloaded_error"), None),
            OVERLOAD,
        )),
        error("Azure, filter", CHAT, 400, &inner, FILTER),
        error("Azure, filter of Responses", RESPONSES, 400, &filters, FILTER),
        error("LiteLLM, filter", CHAT, 400, &body(MANAGED, None, Some("400")), FILTER),
        error("OpenAI, filter", CHAT, 400, &body("No.", None, Some("content_policy_violation")), FILTER),
        error(
            "OpenAI, a prompt",
            RESPONSES,
            400,
            &body(
                "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
                None,
                Some("invalid_prompt"),
            ),
            FILTER,
        ),
        error(
            "Anthropic, filter",
            CLAUDE,
            400,
            &claude("invalid_request_error", "Output blocked by content filtering policy"),
            FILTER,
        ),
        error(
            "xAI, filter",
            CHAT,
            403,
            &json!({"code": "The caller does not have permission to execute the specified operation",
                "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"}),
            FILTER,
        ),
        error(
            "xAI, key",
            CHAT,
            400,
            &json!({"code": "Client specified an invalid argument",
                "error": "Incorrect API key provided: xa***. You can obtain an API key from the console."}),
            "INVALID_CREDENTIALS",
        ),
        error("OpenRouter, filter", CHAT, 403, &moderated, FILTER),
        error("DeepSeek, filter", CHAT, 400, &body("Content Exists Risk", None, None), FILTER),
        // The status says more than a text elsewhere.
        error(
            "A key",
            CHAT,
            401,
            &body("Keys have a maximum context length of 9 characters.", None, None),
            "INVALID_CREDENTIALS",
        ),
        error(
            "A field",
            CHAT,
            400,
            &body("`max_tokens` is larger than the model allows.", None, None),
            "MODEL_ERROR",
        ),
        error(
            "Azure, an annotation",
            RESPONSES,
            400,
            &json!({"error": {"message": "No.", "content_filters": [{"blocked": false}]}}),
            "MODEL_ERROR",
        ),
    ]
}
