use super::{parse_provider_error, provider_error};
use crate::wire::ProviderError;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

fn error(status: u16, kind: &str, code: &str, param: &str, message: &str) -> ProviderError {
    let [kind, code, message] = [kind, code, message].map(str::to_owned);
    ProviderError { status, kind, code, param: param.into(), message }
}

/// Bodies as each server sends them.
#[test]
fn reads_the_errors_of_every_server_by_one_rule() {
    let invalid = "invalid_request_error";
    let table: Vec<(&str, u16, Value, ProviderError)> = vec![
        (
            "OpenAI",
            404,
            json!({"error": {"message": "No model.", "type": invalid, "param": "model", "code": "model_not_found"}}),
            error(404, invalid, "model_not_found", "model", "No model."),
        ),
        (
            "vLLM",
            400,
            json!({"error": {"message": "Too long.", "type": "BadRequestError", "param": null, "code": 400}}),
            error(400, "BadRequestError", "400", "", "Too long."),
        ),
        (
            "vLLM before 0.10",
            400,
            json!({"object": "error", "message": "Too long.", "type": "BadRequestError", "param": null, "code": 400}),
            error(400, "BadRequestError", "400", "", "Too long."),
        ),
        (
            "vLLM, a body that breaks its schema",
            422,
            json!({"detail": [
                {"loc": ["body", "messages", 0, "role"], "msg": "Field required", "type": "missing"},
                {"loc": ["body"], "msg": "Extra inputs are not permitted", "type": "extra_forbidden"},
            ]}),
            error(422, "", "", "", "messages.0.role: Field required; Extra inputs are not permitted"),
        ),
        (
            "LM Studio",
            404,
            json!({"error": "Unexpected endpoint or method. (GET /v1/x)"}),
            error(404, "", "", "", "Unexpected endpoint or method. (GET /v1/x)"),
        ),
        (
            "Groq",
            400,
            json!({"error": {"message": "No JSON.", "type": invalid, "code": "json_validate_failed", "failed_generation": "{"}}),
            error(400, invalid, "json_validate_failed", "", "No JSON."),
        ),
        (
            "OpenRouter",
            429,
            json!({"error": {"message": "Provider returned error", "code": 429, "metadata": {
                "raw": "{\"error\":{\"message\":\"Slow down.\"}}", "provider_name": "X"}}, "user_id": "u"}),
            error(429, "", "429", "", "Provider returned error: Slow down."),
        ),
        (
            "OpenRouter, text of the provider",
            502,
            json!({"error": {"message": "Provider returned error", "code": 502, "metadata": {"raw": "overloaded"}}}),
            error(502, "", "502", "", "Provider returned error: overloaded"),
        ),
        (
            "DeepSeek",
            402,
            json!({"error": {"message": "Insufficient Balance", "type": "unknown_error", "param": null, "code": invalid}}),
            error(402, "unknown_error", invalid, "", "Insufficient Balance"),
        ),
        (
            "llama.cpp",
            503,
            json!({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}),
            error(503, "unavailable_error", "503", "", "Loading model"),
        ),
        (
            "LiteLLM",
            401,
            json!({"error": {"message": "Invalid proxy server token", "type": "token_not_found_in_db", "param": "key", "code": "401"}}),
            error(401, "token_not_found_in_db", "401", "key", "Invalid proxy server token"),
        ),
        (
            "LiteLLM, wrapped",
            400,
            json!({"detail": {"error": "Set a model."}}),
            error(400, "", "", "", "Set a model."),
        ),
        (
            "Azure",
            400,
            json!({"error": {"message": "Filtered.", "type": null, "param": "prompt", "code": "content_filter", "status": 400,
                "innererror": {"code": "ResponsibleAIPolicyViolation"}}}),
            error(400, "", "content_filter", "prompt", "Filtered."),
        ),
        (
            "Azure, in front of the model",
            401,
            json!({"statusCode": 401, "message": "Unauthorized. Access token is missing."}),
            error(401, "", "", "", "Unauthorized. Access token is missing."),
        ),
        (
            "Anthropic",
            429,
            json!({"type": "error", "error": {"type": "rate_limit_error", "message": "Slow.", "details": {"error_code": "enforced_spend_limit_reached"}}}),
            error(429, "rate_limit_error", "enforced_spend_limit_reached", "", "Slow."),
        ),
        (
            "Ollama",
            404,
            json!({"error": "model 'x' not found"}),
            error(404, "", "", "", "model 'x' not found"),
        ),
        (
            "OpenRouter, with the code of the provider",
            400,
            json!({"error": {"message": "Provider returned error", "code": 400, "metadata": {
                "raw": "{\"error\":{\"message\":\"No.\",\"type\":\"t\",\"code\":\"c\",\"param\":\"p\"}}"}}}),
            error(400, "t", "c", "p", "Provider returned error: No."),
        ),
        (
            "OpenRouter, JSON of the provider",
            400,
            json!({"error": {"message": "M", "code": 400, "metadata": {"raw": {"error": "No."}}}}),
            error(400, "", "400", "", "M: No."),
        ),
        (
            "xAI",
            400,
            json!({"code": "Client specified an invalid argument", "error": "No such parameter."}),
            error(400, "", "Client specified an invalid argument", "", "No such parameter."),
        ),
        (
            "Mistral, a body that breaks its schema",
            422,
            json!({"object": "error", "message": {"detail": [
                {"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]},
                "type": "invalid_request_error", "param": null, "code": null}),
            error(422, invalid, "", "", "stream_options: Extra inputs are not permitted"),
        ),
        (
            "Mistral, a list as the message",
            422,
            json!({"object": "Error", "message": [{"loc": ["body", "tools"], "msg": "Extra inputs are not permitted"}],
                "type": invalid, "code": 3001}),
            error(422, invalid, "3001", "", "tools: Extra inputs are not permitted"),
        ),
        (
            "Azure, Responses",
            400,
            json!({"error": {"message": "Blocked.", "param": "prompt", "content_filters": [{"blocked": true}]}}),
            error(400, "", "content_filter", "prompt", "Blocked."),
        ),
        (
            "Gemini's interface of OpenAI, a quota",
            429,
            json!([{"error": {"code": 429, "message": "No.", "status": "RESOURCE_EXHAUSTED", "details": [
                {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "RequestsPerDay"}]}]}}]),
            error(429, "RESOURCE_EXHAUSTED", "daily_quota_exceeded", "", "No."),
        ),
        (
            "Gemini's interface of OpenAI",
            400,
            json!([{"error": {"code": 400, "message": "Bad.", "status": "INVALID_ARGUMENT"}}]),
            error(400, "INVALID_ARGUMENT", "400", "", "Bad."),
        ),
    ];
    for (server, status, body, expected) in table {
        assert_eq!(parse_provider_error(status, body.to_string().as_bytes()), expected, "{server}");
        assert_eq!(provider_error(status, &body), expected, "{server}");
    }
}

#[test]
fn reads_text_and_the_titles_of_web_pages() {
    let nginx = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body><h1>Else</h1></body></html>";
    for (body, message) in [
        (&b"upstream connect error\n"[..], "upstream connect error"),
        (nginx.as_bytes(), "502 Bad Gateway"),
        (b"<!DOCTYPE html><HTML><H1> Not\xc3\xa4 Found </H1>", "Not\u{e4} Found"),
        (b"<html><title>open", ""),
        (b"<html>Bad Gateway</html>", ""),
        (b"", ""),
        (b"\xff\xfe", ""),
        (b"a\0b", ""),
        (b"{\"error\": {\"message\": \"x", ""),
        (b"7", ""),
        (b"\"Down.\"", "Down."),
    ] {
        assert_eq!(parse_provider_error(502, body), error(502, "", "", "", message), "{body:?}");
    }
}

#[test]
fn keeps_a_part_of_long_texts_and_lists() {
    let long = "é".repeat(9_000);
    let body = json!({"error": {"message": long, "type": long, "code": long, "param": long}});
    let found = provider_error(400, &body);
    let sizes = [&*found.message, &found.kind, &found.code, &found.param].map(|text| text.chars().count());
    assert_eq!(sizes, [4_000, 100, 100, 100]);
    assert_eq!(parse_provider_error(400, long.as_bytes()).message.chars().count(), 4_000);
    let problems: Vec<Value> = (0..9).map(|n| json!({"loc": ["body", n], "msg": "No."})).collect();
    assert_eq!(provider_error(422, &json!({"detail": problems})).message, "0: No.; 1: No.; 2: No.");
    let raw = json!({"error": {"message": "M", "metadata": {"raw": long}}});
    assert_eq!(provider_error(502, &raw).message.chars().count(), 4_000);
}
