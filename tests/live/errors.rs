//! Errors of providers: the code of the run's error, the number of requests, and that it contains no key.

use crate::aimock::{Aimock, Options};
use crate::conversations::{final_answer, fixture};
use crate::provider_api::{KEY, ProviderApi};
use crate::world::{World, with};
use futures::future::join_all;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// An error of a provider and how the run fails.
struct Row {
    /// The message that causes it.
    question: &'static str,
    response: Value,
    code: &'static str,
    /// The number of requests, with one retry allowed.
    requests: usize,
}

fn rows() -> Vec<Row> {
    let row = |question, status: u16, kind: &str, code: &str, expected, requests| {
        let error = json!({"message": "No.", "type": kind, "code": code});
        Row { question, response: json!({"error": error, "status": status}), code: expected, requests }
    };
    vec![
        row("RATE", 429, "rate_limit_error", "rate_limit_exceeded", "RATE_LIMIT", 2),
        row("QUOTA", 429, "insufficient_quota", "insufficient_quota", "QUOTA_EXCEEDED", 1),
        row("BILL", 402, "billing_error", "billing_error", "QUOTA_EXCEEDED", 1),
        row("FORBIDDEN", 403, "permission_error", "forbidden", "INVALID_CREDENTIALS", 1),
        row("MODEL", 404, "not_found_error", "model_not_found", "MODEL_NOT_FOUND", 1),
        row("LARGE", 413, "request_too_large", "request_too_large", "CONTEXT_LENGTH", 1),
        row("BAD", 400, "invalid_request_error", "bad", "MODEL_ERROR", 1),
        row("BROKEN", 500, "api_error", "server_error", "PROVIDER_UNAVAILABLE", 2),
        row("OVERLOAD", 529, "overloaded_error", "overloaded", "PROVIDER_UNAVAILABLE", 2),
        row("LATE", 504, "timeout_error", "timeout", "TIMEOUT", 2),
    ]
}

fn fixtures() -> Vec<Value> {
    let mut fixtures: Vec<Value> =
        rows().into_iter().map(|row| fixture(row.question, row.response)).collect();
    let once = json!({"error": {"message": "Wait.", "type": "overloaded_error"}, "status": 529});
    fixtures.push(json!({"match": {"userMessage": "MOMENT", "sequenceIndex": 0}, "response": once}));
    fixtures.push(
        json!({"match": {"userMessage": "MOMENT", "sequenceIndex": 1}, "response": final_answer("well")}),
    );
    fixtures
}

/// The code and the message of a failed run.
#[track_caller]
fn failure(message: &Value) -> (&str, &str) {
    let result = &message["agentResult"];
    assert_eq!(
        (&result["completed"], &result["stopReason"]),
        (&json!(false), &json!("error")),
        "{message:#}"
    );
    assert_eq!(
        (&message["payload"], &message["error"]["code"]),
        (&result["error"], &result["error"]["code"])
    );
    assert!(!message.to_string().contains(KEY), "the key is in the message");
    (result["error"]["code"].as_str().unwrap(), result["error"]["message"].as_str().unwrap())
}

/// Causes every error of one provider, each in its own run, all at the same time.
async fn every_error(api: ProviderApi, stream: bool) {
    let mock = Aimock::start(&fixtures());
    let model = with(api.model(&mock.address()), json!({"maxRetries": 1, "stream": stream}));
    let world = World::new(&model, None);
    let rows = rows();
    let messages = join_all(rows.iter().map(|row| world.ask(row.question))).await;
    let requests = mock.requests();
    for (row, message) in rows.iter().zip(&messages) {
        let name = format!("{} {}", api.name(), row.question);
        assert_eq!(failure(message).0, row.code, "{name}: {message:#}");
        let count = requests
            .iter()
            .filter(|request| request.json().unwrap().to_string().contains(row.question))
            .count();
        assert_eq!(count, row.requests, "{name}");
    }
    // A retry that succeeds is no error.
    let message = world.ask("MOMENT").await;
    assert_eq!((&message["payload"], mock.requests().len()), (&json!("well"), 2), "{message:#}");
    // The mock has no fixture for this message and responds with 503.
    let message = world.ask("NOBODY").await;
    let (code, text) = failure(&message);
    assert_eq!((code, mock.requests().len()), ("PROVIDER_UNAVAILABLE", 2), "{text}");
}

#[tokio::test]
async fn openai_chat() {
    every_error(ProviderApi::OpenaiChat, false).await;
}

#[tokio::test]
async fn openai_responses() {
    every_error(ProviderApi::OpenaiResponses, true).await;
}

#[tokio::test]
async fn anthropic() {
    every_error(ProviderApi::Anthropic, true).await;
}

#[tokio::test]
async fn azure() {
    every_error(ProviderApi::AzureDated, false).await;
}

#[tokio::test]
async fn ollama() {
    every_error(ProviderApi::Ollama, true).await;
}

#[tokio::test]
async fn gemini() {
    every_error(ProviderApi::Gemini, true).await;
}

#[tokio::test]
async fn a_wrong_key_is_refused_at_once() {
    let options = Options { key: Some("the-only-right-key"), ..Options::default() };
    let mock = Aimock::start_with(&[fixture("hi", final_answer("hello"))], options);
    for api in ProviderApi::ALL {
        let model = api.model(&mock.address());
        let message = World::new(&model, None).ask("hi").await;
        assert_eq!(failure(&message).0, "INVALID_CREDENTIALS", "{message:#}");
        assert_eq!(mock.requests().len(), 1, "{}", api.name());
        let right = with(model, json!({"apiKey": "the-only-right-key"}));
        assert_eq!(World::new(&right, None).ask("hi").await["payload"], "hello", "{}", api.name());
        mock.requests();
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_is_no_answer() {
    let mut cut =
        fixture("CUT", final_answer("a text that is long enough for more than two pieces of a stream"));
    cut["truncateAfterChunks"] = json!(2);
    let mock = Aimock::start_with(&[cut], Options { latency: 20, ..Options::default() });
    let runs = ProviderApi::ALL.map(|api| {
        let model = with(api.model(&mock.address()), json!({"stream": true, "maxRetries": 1}));
        let world = World::new(&model, None);
        async move { (api, world.ask("CUT").await) }
    });
    for (api, message) in join_all(runs).await {
        let (code, text) = failure(&message);
        assert_eq!(code, "PROVIDER_UNAVAILABLE", "{}: {text}", api.name());
    }
    assert_eq!(mock.requests().len(), 2 * ProviderApi::ALL.len(), "a cut stream is retried once");
}

#[tokio::test]
async fn a_provider_that_does_not_listen() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for api in ProviderApi::ALL {
        let model = with(api.model(&format!("http://127.0.0.1:{port}")), json!({"maxRetries": 0}));
        let message = World::new(&model, None).ask("hi").await;
        assert_eq!(failure(&message).0, "PROVIDER_UNAVAILABLE", "{message:#}");
    }
}
