//! Errors that a provider reports: their codes, and which are retried.

use crate::scripted_server::{ScriptedServer, Step, json, response};
use crate::wires::{ANTHROPIC, CHAT, GEMINI, KEY, OLLAMA, RESPONSES, WIRES, call_error, call_text};
use redflow_contract::code::RunErrorCode as Code;
use serde_json::json as value;

const SOON: (&str, &str) = ("retry-after-ms", "1");

fn error(status: u16, headers: &[(&str, &str)], kind: &str, code: &str) -> Vec<Step> {
    let error = value!({"type": kind, "code": code, "message": "That was it."});
    response(status, headers, value!({"error": error}).to_string())
}

#[tokio::test]
async fn permanent_errors_are_not_retried() {
    let should = [SOON, ("x-should-retry", "true")];
    for wire in WIRES {
        for (reply, code, sentence) in [
            (error(401, &[SOON], "authentication_error", ""), Code::InvalidCredentials, "refused the key"),
            (error(403, &[SOON], "permission_error", ""), Code::InvalidCredentials, "refused the key"),
            (
                error(404, &[SOON], "not_found_error", "model_not_found"),
                Code::ModelNotFound,
                "does not know the model `m`",
            ),
            (
                error(400, &[SOON], "", "context_length_exceeded"),
                Code::ContextLength,
                "is longer than `m` can read",
            ),
            (
                error(413, &[SOON], "request_too_large", ""),
                Code::ContextLength,
                "is longer than `m` can read",
            ),
            (error(400, &[SOON], "", "content_filter"), Code::ModelRefused, "refused to answer"),
            (
                error(400, &[SOON], "invalid_request_error", ""),
                Code::ModelError,
                "refused the request (HTTP 400",
            ),
            (error(422, &[SOON], "", ""), Code::ModelError, "refused the request (HTTP 422"),
            // Neither waiting nor a header helps when the budget is exhausted.
            (error(402, &should, "billing_error", ""), Code::QuotaExceeded, "is used up"),
            (
                error(429, &should, "insufficient_quota", "insufficient_quota"),
                Code::QuotaExceeded,
                "is used up",
            ),
            (error(429, &should, "", "credit_balance_exhausted"), Code::QuotaExceeded, "is used up"),
            // After a request to wait an hour there is no retry.
            (error(429, &[("retry-after", "3600")], "", ""), Code::RateLimit, "it asks to wait 3600 s"),
            (
                error(500, &[SOON, ("x-should-retry", "false")], "", ""),
                Code::ProviderUnavailable,
                "out of order",
            ),
        ] {
            let server = ScriptedServer::start([reply]).await;
            let (found, message) =
                call_error(&*wire.at(&server, value!({"model": "m", "maxRetries": 2}))).await;
            assert_eq!((found, server.request_count()), (code, 1), "{message}");
            assert!(message.contains(sentence), "{message}");
            if !wire.type_name.contains("ollama") {
                assert!(message.contains("That was it."), "{message}");
            }
            assert!(!message.contains("attempts"), "{message}");
        }
    }
    // Anthropic has its code in another field.
    let details =
        r#"{"error":{"type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}}"#;
    let server = ScriptedServer::start([response(429, &should, details)]).await;
    let (code, _) = call_error(&*ANTHROPIC.at(&server, value!({"maxRetries": 2}))).await;
    assert_eq!((code, server.request_count()), (Code::QuotaExceeded, 1));
}

/// Google's own form of errors, over HTTP.
#[tokio::test]
async fn errors_of_google() {
    let google = |code: u16, status: &str, details: serde_json::Value| {
        let error = value!({"code": code, "message": "That was it.", "status": status, "details": details});
        response(code, &[], value!({ "error": error }).to_string())
    };
    let retry =
        |delay: &str| value!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay});
    let quota = |id: &str| value!({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": id}]});
    let reason = value!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"});
    for (reply, code, sentence) in [
        (google(400, "INVALID_ARGUMENT", value!([reason])), Code::InvalidCredentials, "refused the key"),
        (google(403, "PERMISSION_DENIED", value!([])), Code::InvalidCredentials, "refused the key"),
        (google(404, "NOT_FOUND", value!([])), Code::ModelNotFound, "/v1beta/models/m:generateContent"),
        (
            google(
                429,
                "RESOURCE_EXHAUSTED",
                value!([quota("GenerateRequestsPerDayPerProject"), retry("1s")]),
            ),
            Code::QuotaExceeded,
            "is used up",
        ),
        (
            google(429, "RESOURCE_EXHAUSTED", value!([retry("3600.5s")])),
            Code::RateLimit,
            "it asks to wait 3601 s",
        ),
        (google(400, "FAILED_PRECONDITION", value!([])), Code::ModelError, "refused the request (HTTP 400"),
    ] {
        let server = ScriptedServer::start([reply]).await;
        let (found, message) = call_error(&*GEMINI.at(&server, value!({"maxRetries": 2}))).await;
        assert_eq!((found, server.request_count()), (code, 1), "{message}");
        assert!(message.contains(sentence) && message.contains("That was it."), "{message}");
    }
    for failure in [
        google(429, "RESOURCE_EXHAUSTED", value!([quota("GenerateRequestsPerMinute"), retry("0.001s")])),
        google(503, "UNAVAILABLE", value!([retry("0s")])),
        json(r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}"#),
    ] {
        let server = ScriptedServer::start([failure, json(GEMINI.answer)]).await;
        assert_eq!(call_text(&*GEMINI.at(&server, value!({"maxRetries": 1}))).await, "hi");
        assert_eq!(server.request_count(), 2);
    }
}

#[tokio::test]
async fn passing_errors_are_retried() {
    for wire in WIRES {
        for (failures, requests) in [
            (vec![error(429, &[SOON], "rate_limit_error", "rate_limit_exceeded")], 2),
            (vec![error(500, &[SOON], "", ""), error(500, &[SOON], "", "")], 3),
            (vec![error(408, &[SOON], "", ""), error(409, &[SOON], "", "")], 3),
            (vec![error(502, &[SOON], "", ""), error(503, &[SOON], "", "")], 3),
            (vec![error(504, &[SOON], "", ""), error(529, &[SOON], "", "")], 3),
            (vec![error(400, &[SOON, ("x-should-retry", "true")], "", "")], 2),
            (vec![error(429, &[("retry-after", "0")], "", "")], 2),
        ] {
            let server = ScriptedServer::start(failures.into_iter().chain([json(wire.answer)])).await;
            assert_eq!(call_text(&*wire.at(&server, value!({"maxRetries": 2}))).await, "hi");
            assert_eq!(server.request_count(), requests);
        }
    }
}

#[tokio::test]
async fn the_last_error_is_reported_with_the_number_of_attempts() {
    for (wire, provider) in [
        (CHAT, "OpenAI's interface"),
        (RESPONSES, "OpenAI's interface"),
        (ANTHROPIC, "Anthropic"),
        (OLLAMA, "Ollama"),
        (GEMINI, "Google"),
    ] {
        let script = (0..3).map(|_| response(529, &[SOON], "")).collect::<Vec<_>>();
        let server = ScriptedServer::start(script).await;
        // Two retries are the default.
        let (code, message) = call_error(&*wire.at(&server, value!({"maxRetries": null}))).await;
        assert_eq!((code, server.request_count()), (Code::ProviderUnavailable, 3));
        let address = server.address;
        assert_eq!(
            message,
            format!("{provider} ({address}) is overloaded or out of order (HTTP 529) (after 3 attempts)")
        );
    }
}

// SECURITY: model-transport
#[tokio::test]
async fn a_redirect_is_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let other = ScriptedServer::start([]).await;
        let target = format!("{}/v1/chat/completions", other.url());
        let server = ScriptedServer::start([response(status, &[("location", &target)], "")]).await;
        let (code, message) = call_error(&*CHAT.at(&server, value!({"maxRetries": 2}))).await;
        assert_eq!((code, server.request_count()), (Code::ModelError, 1));
        assert!(
            message.contains("redirects to another address; correct the address of the node (HTTP 30"),
            "{message}"
        );
        assert_eq!(other.seen().connections, 0);
    }
}

// SECURITY: secret-echo
#[tokio::test]
async fn a_key_in_an_error_is_redacted() {
    for wire in WIRES {
        let body = value!({"error": {"message": format!("Incorrect API key provided: {KEY}.")}}).to_string();
        let server = ScriptedServer::start([response(401, &[], body)]).await;
        let (code, message) = call_error(&*wire.at(&server, value!({}))).await;
        assert_eq!(code, Code::InvalidCredentials);
        assert!(message.ends_with("Incorrect API key provided: [redacted]."), "{message}");
        assert!(!message.contains(KEY));
    }
}

#[tokio::test]
async fn an_unreadable_error_body_is_still_an_error() {
    for body in
        [&b"\xFF\xFE"[..], b"<html>", b"[]", b"null", b"{\"error\":5}", b"{\"error\":{\"message\":[]}}"]
    {
        for wire in WIRES {
            let server = ScriptedServer::start([response(401, &[], body)]).await;
            let (code, message) = call_error(&*wire.at(&server, value!({}))).await;
            assert_eq!(code, Code::InvalidCredentials);
            assert!(message.contains("(HTTP 401)"), "{message}");
        }
    }
}
