//! The responses of a mock: an answer, a stream, or an error in the form of its provider.

use serde_json::{Value, json};

/// A response with its body.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) media_type: &'static str,
    pub(crate) body: String,
}

/// How a provider writes errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorForm {
    Openai,
    Azure,
    /// The message of the provider behind it stands in `metadata.raw`.
    Openrouter,
    Anthropic,
    Google,
    /// Google's at the interface of OpenAI: a list.
    GoogleList,
    Mistral,
    /// `error` is a text.
    Xai,
    Vllm,
    Llamacpp,
    /// `error` is a text, and nothing else is there.
    Text,
}

impl Response {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self { status, media_type: "application/json", body: body.to_string() }
    }

    pub(super) fn events(body: String) -> Self {
        Self { status: 200, media_type: "text/event-stream", body }
    }

    pub(super) fn not_found(form: ErrorForm, path: &str) -> Self {
        Self::error(form, 404, &format!("Invalid URL (POST {path})"), None, None)
    }

    /// A refused request: 400.
    pub(super) fn refusal(form: ErrorForm, message: &str) -> Self {
        Self::error(form, 400, message, None, None)
    }

    /// An error with the parameter and the code where the form has them.
    pub(super) fn error(
        form: ErrorForm,
        status: u16,
        message: &str,
        param: Option<&str>,
        code: Option<&str>,
    ) -> Self {
        let kind = match status {
            401 => "authentication_error",
            404 => "not_found_error",
            413 => "tokens",
            429 => "rate_limit_error",
            _ => "invalid_request_error",
        };
        let google = || {
            let name = match status {
                401 | 403 => "PERMISSION_DENIED",
                404 => "NOT_FOUND",
                _ => "INVALID_ARGUMENT",
            };
            json!({"error": {"code": status, "message": message, "status": name}})
        };
        let body = match form {
            ErrorForm::Openai => {
                let kind = if matches!(status, 413 | 429) { kind } else { "invalid_request_error" };
                json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
            }
            ErrorForm::Azure if status == 401 => json!({"error": {"code": "401", "message": message}}),
            ErrorForm::Azure => {
                json!({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}})
            }
            ErrorForm::Openrouter if status != 400 => json!({"error": {"message": message, "code": status}}),
            ErrorForm::Openrouter => {
                let raw = json!({"error": {"message": message, "type": kind, "param": param, "code": code}});
                let metadata = json!({"raw": raw.to_string(), "provider_name": "Upstream"});
                json!({"error": {"message": "Provider returned error", "code": status, "metadata": metadata}, "user_id": "user_1"})
            }
            ErrorForm::Anthropic => {
                json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"})
            }
            ErrorForm::Google => google(),
            ErrorForm::GoogleList => json!([google()]),
            ErrorForm::Mistral => {
                json!({"object": "error", "message": message, "type": kind, "param": null, "code": "1000"})
            }
            ErrorForm::Xai => json!({"code": "Client specified an invalid argument", "error": message}),
            ErrorForm::Vllm => {
                json!({"error": {"message": message, "type": "BadRequestError", "param": null, "code": status}})
            }
            ErrorForm::Llamacpp => json!({"error": {"code": status, "message": message, "type": kind}}),
            ErrorForm::Text => json!({ "error": message }),
        };
        Self::json(status, &body)
    }

    /// An unknown field, as Mistral refuses it.
    pub(super) fn extra_forbidden(place: &[&str], input: &Value) -> Self {
        let place: Vec<&str> = ["body"].iter().chain(place).copied().collect();
        let problem = json!({"type": "extra_forbidden", "loc": place, "msg": "Extra inputs are not permitted", "input": input});
        let body = json!({"object": "error", "message": {"detail": [problem]}, "type": "invalid_request_error",
                          "param": null, "code": null});
        Self::json(422, &body)
    }
}

/// One event of a stream without a name.
pub(super) fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// One event of a stream with its name, which is its type.
pub(super) fn named_event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}

/// A text in two pieces.
pub(super) fn halves(text: &str) -> [&str; 2] {
    let middle = (text.len() / 2..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let (first, last) = text.split_at(middle);
    [first, last]
}
