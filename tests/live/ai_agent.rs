//! An AI Agent with every provider, streamed and not: parallel native calls, their results, and a memory of whole turns.

use crate::aimock::Aimock;
use crate::golden;
use crate::provider_api::ProviderApi;
use crate::world::{World, with};
use pretty_assertions::assert_eq;
use redflow_testkit::HttpRequest;
use serde_json::{Value, json};

const FIRST: &str = "How much are 2+2 and 1/0?";
const SECOND: &str = "Which sums did I ask for?";

fn fixtures() -> Vec<Value> {
    let calls = json!([
        {"id": "call_sum", "name": "calculator", "arguments": {"expression": "2+2"}},
        {"id": "call_ratio", "name": "calculator", "arguments": {"expression": "1/0"}},
    ]);
    vec![
        json!({"match": {"userMessage": SECOND}, "response": {"content": "2+2 and 1/0."}}),
        json!({"match": {"userMessage": FIRST, "hasToolResult": true}, "response": {"content": "4, and no value."}}),
        json!({"match": {"userMessage": FIRST}, "response": {"content": "I calculate.", "toolCalls": calls}}),
    ]
}

/// The agent `a` with a model, a calculator and a memory, all by properties.
fn flow(model: &Value) -> Value {
    let node = |id: &str, props: Value| with(json!({"id": id, "z": "t", "x": 1, "y": 1, "wires": []}), props);
    let agent = json!({"type": "ai-agent", "model": "m", "tools": ["c"], "memory": "s", "wires": [["d"], []],
                       "systemPrompt": "Calculate with the tool.", "sessionId": "talk"});
    json!([
        node("a", agent),
        node("m", model.clone()),
        node("c", json!({"type": "calculator-tool"})),
        node("s", json!({"type": "window-memory", "maxMessages": 5})),
        node("d", json!({"type": "debug"})),
    ])
}

/// Two turns with an agent. Gives their requests.
async fn talk(mock: &Aimock, api: ProviderApi, stream: bool) -> Vec<HttpRequest> {
    let mut model = with(api.model(&mock.address()), json!({"stream": stream}));
    if api == ProviderApi::OpenaiResponses {
        // Reasoning of the mock has random ids.
        model = with(model, json!({"model": "gpt-4.1-mini", "reasoningEffort": ""}));
    }
    let world = World::with_flow(&flow(&model));
    for (question, answer, iterations) in [(FIRST, "4, and no value.", 2), (SECOND, "2+2 and 1/0.", 1)] {
        let message = world.ask(question).await;
        assert_eq!(message["payload"], answer, "{message:#}");
        let result = &message["agentResult"];
        assert_eq!((&result["completed"], &result["iterations"]), (&json!(true), &json!(iterations)));
    }
    let requests = mock.requests();
    assert_eq!(requests.len(), 3);
    requests
}

/// The requests have both calls with their results, in the run and in the memory.
#[tokio::test]
async fn every_provider_gets_whole_turns() {
    let mock = Aimock::start(&fixtures());
    for api in ProviderApi::ALL {
        for stream in [false, true] {
            let requests = talk(&mock, api, stream).await;
            for request in &requests[1..] {
                let body = request.json().unwrap().to_string();
                assert!(["2+2", "1/0", "success"].iter().all(|words| body.contains(words)), "{body}");
            }
            let suffix = if stream { "-stream" } else { "" };
            golden::check(&format!("{}-ai-agent{suffix}", api.name()), &requests);
        }
    }
    assert!(mock.statuses().iter().all(|status| *status == 200));
}
