//! Fallback models: the next model answers when a provider fails, and not when it refuses the request.

use crate::aimock::{Aimock, Options};
use crate::native_tools::model;
use crate::provider_api::{KEY, ProviderApi};
use crate::world::{World, adapters, with};
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::fact::ModelAnswer;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ChatMessage, ChatRole, Transcript};
use redflow_ports::ModelRequest;
use serde_json::{Value, json};
use std::sync::Arc;

/// The model that the provider cannot serve.
const BROKEN: &str = "broken-model";

fn fixtures() -> Vec<Value> {
    let fails = |question: &str, response: Value| json!({"match": {"userMessage": question, "model": BROKEN}, "response": response});
    let error = |status: u16, kind: &str| json!({"error": {"message": "No.", "type": kind, "code": kind}, "status": status});
    let mut cut =
        fails("CUT", json!({"content": "a text that is long enough for several pieces of a stream"}));
    cut["truncateAfterChunks"] = json!(2);
    vec![
        fails("RATE", error(429, "rate_limit_error")),
        fails("DOWN", error(503, "overloaded_error")),
        fails("UNKNOWN", error(404, "not_found_error")),
        fails("BAD", error(400, "invalid_request_error")),
        cut,
        json!({"match": {"userMessage": "?"}, "response": {"content": "The second model."}}),
    ]
}

/// Asks a model of this API that fails, with a model of another API behind it.
async fn ask(mock: &Aimock, api: ProviderApi, question: &str) -> Result<ModelAnswer, Failure> {
    let name = if api.model("").get("deployment").is_some() { "deployment" } else { "model" };
    let first = with(api.model(&mock.address()), json!({name: BROKEN, "stream": true}));
    let second = match api {
        ProviderApi::Ollama => ProviderApi::Anthropic,
        _ => ProviderApi::Ollama,
    };
    let models = vec![model(&first), model(&second.model(&mock.address()))];
    let chain = adapters().model_chain.unwrap()(models);
    let mut transcript = Transcript::default();
    transcript.push(Arc::new(ChatMessage::new(ChatRole::User, question)));
    chain.call(ModelRequest::for_text(&transcript)).await
}

/// An AI Agent whose own model fails calls a tool and answers with the fallback model. The own model is called once.
#[tokio::test]
async fn an_agent_stays_with_the_model_that_answered() {
    let call = json!({"id": "call_sum", "name": "calculator", "arguments": {"expression": "2+2"}});
    let mut fixtures = fixtures();
    let at = fixtures.len() - 1;
    fixtures.insert(
        at,
        json!({"match": {"userMessage": "sum?", "hasToolResult": true}, "response": {"content": "4"}}),
    );
    fixtures.insert(at + 1, json!({"match": {"userMessage": "sum?"}, "response": {"toolCalls": [call]}}));
    let mock = Aimock::start(&fixtures);
    let node = |id: &str, props: Value| with(json!({"id": id, "z": "t", "x": 1, "y": 1, "wires": []}), props);
    let own = with(ProviderApi::OpenaiChat.model(&mock.address()), json!({"model": BROKEN}));
    let agent = json!({"type": "ai-agent", "model": "m", "fallbackModels": ["f"], "tools": ["c"], "wires": [["d"], []]});
    let world = World::with_flow(&json!([
        node("a", agent),
        node("m", own),
        node("f", ProviderApi::Anthropic.model(&mock.address())),
        node("c", json!({"type": "calculator-tool"})),
        node("d", json!({"type": "debug"})),
    ]));
    let message = world.ask("RATE of the sum?").await;
    assert_eq!(message["payload"], "4", "{message:#}");
    let paths: Vec<String> = mock.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/v1/chat/completions", "/v1/messages", "/v1/messages"]);
}

#[tokio::test]
async fn every_provider_has_a_fallback() {
    let mock = Aimock::start_with(&fixtures(), Options { latency: 20, ..Options::default() });
    for api in ProviderApi::ALL {
        for (question, code) in [
            ("RATE?", RunErrorCode::RateLimit),
            ("DOWN?", RunErrorCode::ProviderUnavailable),
            ("UNKNOWN?", RunErrorCode::ModelNotFound),
            ("CUT?", RunErrorCode::ProviderUnavailable),
        ] {
            let answer = ask(&mock, api, question).await.unwrap();
            assert_eq!(answer.text, "The second model.", "{} {question}", api.name());
            let failed: Vec<_> =
                answer.fell_over.iter().map(|failed| (failed.model.as_str(), failed.code)).collect();
            assert_eq!(failed, [(BROKEN, code)], "{} {question}", api.name());
            // Each was called once.
            assert_eq!(mock.requests().len(), 2, "{} {question}", api.name());
        }
        let failure = ask(&mock, api, "BAD?").await.unwrap_err();
        assert_eq!(
            (failure.code, mock.requests().len()),
            (RunErrorCode::ModelError, 1),
            "{}",
            failure.message
        );
        assert!(!failure.message.contains(KEY), "the key is in the message");
    }
}
