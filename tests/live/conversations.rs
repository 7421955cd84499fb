//! A conversation of three turns by every way to a model, in one piece and in pieces, with every memory.

use crate::aimock::Aimock;
use crate::golden;
use crate::recorder::Seen;
use crate::redis_server::RedisServer;
use crate::wires::Way;
use crate::world::{World, actions, with};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

pub(crate) const FIRST: &str = "What is 2+2?";
pub(crate) const SECOND: &str = "And what is 3+4?";
pub(crate) const THIRD: &str = "Which sums did I ask for?";

/// The model asks for the calculator.
pub(crate) fn asks(expression: &str) -> Value {
    let action = json!({"action": "tool", "tool": "calculator", "input": {"expression": expression}, "confidence": 0.9});
    json!({"content": action.to_string(), "usage": {"prompt_tokens": 50, "completion_tokens": 7, "total_tokens": 57}})
}

/// The model answers for good.
pub(crate) fn says(message: &str) -> Value {
    json!({"content": json!({"action": "final", "message": message, "confidence": 0.95}).to_string()})
}

pub(crate) fn after(user: &str, response: Value) -> Value {
    json!({"match": {"userMessage": user}, "response": response})
}

/// What the model is told of a sum that was calculated.
fn observation(result: u32, expression: &str) -> String {
    json!({"success": true, "output": {"result": result, "expression": expression}}).to_string()
}

/// What the model says in the conversation of these tests.
pub(crate) fn fixtures() -> Vec<Value> {
    vec![
        after(FIRST, asks("2+2")),
        after(&observation(4, "2+2"), says("4")),
        after(SECOND, asks("3+4")),
        after(&observation(7, "3+4"), says("7")),
        after(THIRD, says("2+2 and 3+4")),
    ]
}

/// Whether a body tells the model of these words.
fn tells(request: &Seen, words: &str) -> bool {
    request.body().to_string().contains(words)
}

/// One conversation; what was sent for it.
async fn talk(mock: &Aimock, way: Way, stream: bool, memory: Option<&Value>) -> Vec<Seen> {
    let model = with(way.model(&mock.address()), json!({"stream": stream}));
    let world = World::new(&model, memory);
    for (question, answer, iterations) in [(FIRST, "4", 2), (SECOND, "7", 2), (THIRD, "2+2 and 3+4", 1)] {
        let message = world.say(question).await;
        assert_eq!(message["payload"], answer, "{message:#}");
        let result = &message["agentResult"];
        assert_eq!((&result["completed"], &result["iterations"]), (&json!(true), &json!(iterations)));
        assert!(!actions(&message).contains(&"memory_error"), "{message:#}");
    }
    let requests = mock.requests();
    assert_eq!(requests.len(), 5);
    let (header, key) = way.key_header();
    for request in &requests {
        assert_eq!((request.path.as_str(), request.header(header)), (way.path(), Some(key.as_str())));
        let streams = request.body().get("stream").cloned().unwrap_or(json!(false));
        assert_eq!(streams, json!(stream));
    }
    requests
}

async fn every_conversation(way: Way) {
    let mock = Aimock::start(&fixtures());
    let redis = RedisServer::start();
    for stream in [false, true] {
        let alone = talk(&mock, way, stream, None).await;
        assert!(!tells(&alone[2], FIRST) && !tells(&alone[4], FIRST), "no memory, and still it remembers");
        for memory in [json!({"type": "buffer-memory"}), redis.props(&json!({"type": "redis-memory"}))] {
            // The server is the same for both: another conversation for each.
            let memory = with(memory, json!({"sessionId": format!("talk-{stream}")}));
            let requests = talk(&mock, way, stream, Some(&memory)).await;
            for (place, words) in [(2, [FIRST, SECOND, "4"]), (4, [FIRST, SECOND, THIRD])] {
                assert!(words.iter().all(|words| tells(&requests[place], words)), "{memory}");
            }
            let name = if stream { format!("{}-stream", way.name()) } else { way.name().to_owned() };
            golden::check(&name, &requests);
        }
        let window = json!({"type": "window-memory", "maxMessages": 2});
        let requests = talk(&mock, way, stream, Some(&window)).await;
        assert!(tells(&requests[2], FIRST) && tells(&requests[4], SECOND));
        assert!(!tells(&requests[4], FIRST), "two messages are one turn, not two");
    }
    assert!(mock.statuses().iter().all(|status| *status == 200));
}

#[tokio::test]
async fn openai_chat() {
    every_conversation(Way::OpenaiChat).await;
}

#[tokio::test]
async fn openai_responses() {
    every_conversation(Way::OpenaiResponses).await;
}

#[tokio::test]
async fn anthropic() {
    every_conversation(Way::Anthropic).await;
}

#[tokio::test]
async fn anthropic_sampling() {
    every_conversation(Way::AnthropicSampling).await;
}

#[tokio::test]
async fn azure_dated() {
    every_conversation(Way::AzureDated).await;
}

#[tokio::test]
async fn azure_v1() {
    every_conversation(Way::AzureV1).await;
}

#[tokio::test]
async fn ollama() {
    every_conversation(Way::Ollama).await;
}
