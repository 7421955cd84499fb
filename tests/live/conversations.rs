//! A conversation of three turns with every provider, streamed and not, with every memory.

use crate::aimock::Aimock;
use crate::golden;
use crate::provider_api::ProviderApi;
use crate::redis_server::RedisServer;
use crate::world::{World, actions, with};
use pretty_assertions::assert_eq;
use redflow_testkit::HttpRequest;
use serde_json::{Value, json};

pub(crate) const FIRST: &str = "What is 2+2?";
pub(crate) const SECOND: &str = "And what is 3+4?";
pub(crate) const THIRD: &str = "Which sums did I ask for?";

/// The model calls the calculator.
pub(crate) fn calculator_call(expression: &str) -> Value {
    let action = json!({"action": "tool", "tool": "calculator", "input": {"expression": expression}, "confidence": 0.9});
    json!({"content": action.to_string(), "usage": {"prompt_tokens": 50, "completion_tokens": 7, "total_tokens": 57}})
}

/// The model ends the run.
pub(crate) fn final_answer(message: &str) -> Value {
    json!({"content": json!({"action": "final", "message": message, "confidence": 0.95}).to_string()})
}

/// The response to a message that contains a text.
pub(crate) fn fixture(user: &str, response: Value) -> Value {
    json!({"match": {"userMessage": user}, "response": response})
}

/// The message that gives the model the result of a calculation.
fn observation(result: u32, expression: &str) -> String {
    json!({"success": true, "output": {"result": result, "expression": expression}}).to_string()
}

/// The model's side of the conversation.
pub(crate) fn fixtures() -> Vec<Value> {
    vec![
        fixture(FIRST, calculator_call("2+2")),
        fixture(&observation(4, "2+2"), final_answer("4")),
        fixture(SECOND, calculator_call("3+4")),
        fixture(&observation(7, "3+4"), final_answer("7")),
        fixture(THIRD, final_answer("2+2 and 3+4")),
    ]
}

/// Whether the body of a request contains a text.
fn contains(request: &HttpRequest, words: &str) -> bool {
    request.json().unwrap().to_string().contains(words)
}

/// Holds one conversation and gives its requests.
async fn talk(mock: &Aimock, api: ProviderApi, stream: bool, memory: Option<&Value>) -> Vec<HttpRequest> {
    let model = with(api.model(&mock.address()), json!({"stream": stream}));
    let world = World::new(&model, memory);
    for (question, answer, iterations) in [(FIRST, "4", 2), (SECOND, "7", 2), (THIRD, "2+2 and 3+4", 1)] {
        let message = world.ask(question).await;
        assert_eq!(message["payload"], answer, "{message:#}");
        let result = &message["agentResult"];
        assert_eq!((&result["completed"], &result["iterations"]), (&json!(true), &json!(iterations)));
        assert!(!actions(&message).contains(&"memory_error"), "{message:#}");
    }
    let requests = mock.requests();
    assert_eq!(requests.len(), 5);
    let (header, key) = api.key_header();
    for request in &requests {
        assert_eq!((request.path.as_str(), request.header(header)), (api.path(stream), Some(key.as_str())));
        assert_eq!(api.is_stream(request), stream);
    }
    requests
}

async fn every_conversation(api: ProviderApi) {
    let mock = Aimock::start(&fixtures());
    let redis = RedisServer::start();
    for stream in [false, true] {
        let alone = talk(&mock, api, stream, None).await;
        assert!(!contains(&alone[2], FIRST) && !contains(&alone[4], FIRST), "it remembers without a memory");
        for memory in [json!({"type": "buffer-memory"}), redis.props(&json!({"type": "redis-memory"}))] {
            // Both use the same server, so each needs its own conversation.
            let memory = with(memory, json!({"sessionId": format!("talk-{stream}")}));
            let requests = talk(&mock, api, stream, Some(&memory)).await;
            for (place, words) in [(2, [FIRST, SECOND, "4"]), (4, [FIRST, SECOND, THIRD])] {
                assert!(words.iter().all(|words| contains(&requests[place], words)), "{memory}");
            }
            let name = if stream { format!("{}-stream", api.name()) } else { api.name().to_owned() };
            golden::check(&name, &requests);
        }
        let window = json!({"type": "window-memory", "maxMessages": 2});
        let requests = talk(&mock, api, stream, Some(&window)).await;
        assert!(contains(&requests[2], FIRST) && contains(&requests[4], SECOND));
        assert!(!contains(&requests[4], FIRST), "two messages are one turn, not two");
    }
    assert!(mock.statuses().iter().all(|status| *status == 200));
}

#[tokio::test]
async fn openai_chat() {
    every_conversation(ProviderApi::OpenaiChat).await;
}

#[tokio::test]
async fn openai_responses() {
    every_conversation(ProviderApi::OpenaiResponses).await;
}

#[tokio::test]
async fn anthropic() {
    every_conversation(ProviderApi::Anthropic).await;
}

#[tokio::test]
async fn anthropic_sampling() {
    every_conversation(ProviderApi::AnthropicSampling).await;
}

#[tokio::test]
async fn azure_dated() {
    every_conversation(ProviderApi::AzureDated).await;
}

#[tokio::test]
async fn azure_v1() {
    every_conversation(ProviderApi::AzureV1).await;
}

#[tokio::test]
async fn ollama() {
    every_conversation(ProviderApi::Ollama).await;
}

#[tokio::test]
async fn gemini() {
    every_conversation(ProviderApi::Gemini).await;
}
