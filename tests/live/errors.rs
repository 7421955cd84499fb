//! What providers answer when they do not answer: the code of the run's error, how often they were asked, and
//! that no key is in it.

use crate::aimock::{Aimock, Options};
use crate::conversations::{after, says};
use crate::wires::{KEY, Way};
use crate::world::{World, with};
use futures::future::join_all;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// How a run fails for an error.
struct Row {
    /// What the user says for it.
    says: &'static str,
    response: Value,
    code: &'static str,
    /// How often the provider is asked, when it may be asked once more.
    asked: usize,
}

fn rows() -> Vec<Row> {
    let row = |says, status: u16, kind: &str, code: &str, expected, asked| {
        let error = json!({"message": "No.", "type": kind, "code": code});
        Row { says, response: json!({"error": error, "status": status}), code: expected, asked }
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
    let mut fixtures: Vec<Value> = rows().into_iter().map(|row| after(row.says, row.response)).collect();
    let once = json!({"error": {"message": "Wait.", "type": "overloaded_error"}, "status": 529});
    fixtures.push(json!({"match": {"userMessage": "MOMENT", "sequenceIndex": 0}, "response": once}));
    fixtures.push(json!({"match": {"userMessage": "MOMENT", "sequenceIndex": 1}, "response": says("well")}));
    fixtures
}

/// How a run failed, and what it says of that.
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

/// Every error by one way to a model, each from a run of its own, all at the same time.
async fn every_error(way: Way, stream: bool) {
    let mock = Aimock::start(&fixtures());
    let model = with(way.model(&mock.address()), json!({"maxRetries": 1, "stream": stream}));
    let world = World::new(&model, None);
    let rows = rows();
    let messages = join_all(rows.iter().map(|row| world.say(row.says))).await;
    let requests = mock.requests();
    for (row, message) in rows.iter().zip(&messages) {
        let name = format!("{} {}", way.name(), row.says);
        assert_eq!(failure(message).0, row.code, "{name}: {message:#}");
        let asked = requests.iter().filter(|request| request.body().to_string().contains(row.says)).count();
        assert_eq!(asked, row.asked, "{name}");
    }
    // What passes by itself is no error.
    let message = world.say("MOMENT").await;
    assert_eq!((&message["payload"], mock.requests().len()), (&json!("well"), 2), "{message:#}");
    // Nothing is known for this one: the mock says 503.
    let message = world.say("NOBODY").await;
    let (code, text) = failure(&message);
    assert_eq!((code, mock.requests().len()), ("PROVIDER_UNAVAILABLE", 2), "{text}");
}

#[tokio::test]
async fn openai_chat() {
    every_error(Way::OpenaiChat, false).await;
}

#[tokio::test]
async fn openai_responses() {
    every_error(Way::OpenaiResponses, true).await;
}

#[tokio::test]
async fn anthropic() {
    every_error(Way::Anthropic, true).await;
}

#[tokio::test]
async fn azure() {
    every_error(Way::AzureDated, false).await;
}

#[tokio::test]
async fn ollama() {
    every_error(Way::Ollama, true).await;
}

#[tokio::test]
async fn a_wrong_key_is_refused_at_once() {
    let options = Options { key: Some("the-only-right-key"), ..Options::default() };
    let mock = Aimock::start_with(&[after("hi", says("hello"))], options);
    for way in Way::ALL {
        let model = way.model(&mock.address());
        let message = World::new(&model, None).say("hi").await;
        assert_eq!(failure(&message).0, "INVALID_CREDENTIALS", "{message:#}");
        assert_eq!(mock.requests().len(), 1, "{}", way.name());
        let right = with(model, json!({"apiKey": "the-only-right-key"}));
        assert_eq!(World::new(&right, None).say("hi").await["payload"], "hello", "{}", way.name());
        mock.requests();
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_is_no_answer() {
    let mut cut = after("CUT", says("a text that is long enough for more than two pieces of a stream"));
    cut["truncateAfterChunks"] = json!(2);
    let mock = Aimock::start_with(&[cut], Options { latency: 20, ..Options::default() });
    let runs = Way::ALL.map(|way| {
        let model = with(way.model(&mock.address()), json!({"stream": true, "maxRetries": 1}));
        let world = World::new(&model, None);
        async move { (way, world.say("CUT").await) }
    });
    for (way, message) in join_all(runs).await {
        let (code, text) = failure(&message);
        assert_eq!(code, "PROVIDER_UNAVAILABLE", "{}: {text}", way.name());
    }
    assert_eq!(mock.requests().len(), 2 * Way::ALL.len(), "a cut stream is asked for once more");
}

#[tokio::test]
async fn nobody_is_there() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for way in Way::ALL {
        let model = with(way.model(&format!("http://127.0.0.1:{port}")), json!({"maxRetries": 0}));
        let message = World::new(&model, None).say("hi").await;
        assert_eq!(failure(&message).0, "PROVIDER_UNAVAILABLE", "{message:#}");
    }
}
