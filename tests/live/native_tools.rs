//! Native tool calls: a model calls tools, gets the results and answers. The runtime sends its reasoning back.

use crate::aimock::Aimock;
use crate::provider_api::ProviderApi;
use crate::world::{adapters, process_env, with};
use pretty_assertions::assert_eq;
use redflow_contract::fact::{ModelAnswer, ModelFinish};
use redflow_contract::id::NodeSummary;
use redflow_contract::plan::AgentSpec;
use redflow_contract::transcript::{ChatMessage, ChatRole, Transcript};
use redflow_ports::{AnswerKind, ChatModel, ModelRequest, NodeConfig, Reply};
use redflow_testkit::HttpRequest;
use serde_json::{Value, json};
use std::sync::Arc;

fn model(props: &Value) -> Arc<dyn ChatModel> {
    let type_name = props["type"].as_str().unwrap();
    let node = NodeSummary { id: "m".into(), type_name: type_name.to_owned(), name: String::new() };
    let config =
        NodeConfig { node: &node, props: props.as_object().unwrap(), env: &process_env, on_secret: &|_| () };
    adapters().models[type_name](config).unwrap()
}

/// An agent with a calculator and a clock.
fn spec() -> AgentSpec {
    let tool = |name: &str, schema: Value| {
        json!({"name": name, "description": format!("The {name}."), "inputSchema": schema, "node": name,
               "effect": null, "timeoutMs": 1, "onUnknown": "wait"})
    };
    let expression = json!({"type": "object", "properties": {"expression": {"type": "string"}},
                            "required": ["expression"], "additionalProperties": false});
    let spec = json!({
        "agent": {"instance": "local", "nodeId": "a"}, "type": "ai-agent", "name": "", "maxIterations": 5,
        "tools": [tool("calculator", expression), tool("clock", json!(null))], "stopConditions": [],
        "debug": false, "timeoutMs": 1, "memory": false, "modelResponseWired": false,
        "limits": redflow_contract::limits::RunLimits::default(),
    });
    serde_json::from_value(spec).unwrap()
}

fn fixtures() -> Vec<Value> {
    let calls = json!([
        {"id": "call_sum", "name": "calculator", "arguments": {"expression": "2+2"}},
        {"id": "call_clock", "name": "clock", "arguments": {}},
    ]);
    vec![
        // Ollama's results have no ids, so match the result of any call.
        json!({"match": {"userMessage": "sum", "hasToolResult": true}, "response": {"content": "It is 4."}}),
        json!({"match": {"userMessage": "sum"}, "response": {"toolCalls": calls, "reasoning": "Both at once."}}),
    ]
}

async fn ask(model: &dyn ChatModel, transcript: &Transcript, spec: &AgentSpec) -> ModelAnswer {
    let answer_kind = &AnswerKind::Reply(Reply { tools: spec.tools.clone().into(), ..Reply::default() });
    model.call(ModelRequest { answer_kind, ..ModelRequest::for_text(transcript) }).await.unwrap()
}

/// Two calls, their results, and the answer. Gives the first answer and the requests.
async fn round(mock: &Aimock, props: &Value) -> (ModelAnswer, Vec<HttpRequest>) {
    let (model, spec) = (model(props), spec());
    let mut transcript = Transcript::default();
    transcript.push(Arc::new(ChatMessage::new(ChatRole::System, "Use the tools.")));
    transcript.push(Arc::new(ChatMessage::new(ChatRole::User, "The sum, please.")));
    let asked = ask(&*model, &transcript, &spec).await;
    assert_eq!(asked.finish, ModelFinish::ToolCalls, "{props}");
    let calls: Vec<(&str, Value)> = asked
        .tool_calls
        .iter()
        .map(|call| (call.name.as_str(), serde_json::from_str(&call.arguments).unwrap()))
        .collect();
    assert_eq!(calls, [("calculator", json!({"expression": "2+2"})), ("clock", json!({}))], "{props}");
    transcript.push(Arc::new(ChatMessage {
        tool_calls: asked.tool_calls.clone(),
        reasoning: asked.reasoning.clone(),
        ..ChatMessage::new(ChatRole::Assistant, asked.text.clone())
    }));
    for (call, output) in asked.tool_calls.iter().zip(["4", "\"noon\""]) {
        let content = format!(r#"{{"success":true,"output":{output}}}"#);
        let result = ChatMessage::new(ChatRole::Tool, content);
        transcript.push(Arc::new(ChatMessage { tool_call_id: Some(call.id.clone()), ..result }));
    }
    let answer = ask(&*model, &transcript, &spec).await;
    assert_eq!((answer.text.as_str(), answer.finish), ("It is 4.", ModelFinish::Stop), "{props}");
    assert_eq!(answer.tool_calls, []);
    let requests = mock.requests();
    assert_eq!(requests.len(), 2);
    (asked, requests)
}

/// The second request contains the reasoning of the first answer, unchanged.
#[track_caller]
fn check_reasoning(api: ProviderApi, asked: &ModelAnswer, second: &HttpRequest) {
    let parts = asked.reasoning.as_ref().map(|opaque| opaque.parts.as_slice()).unwrap_or_default();
    let body = second.json().unwrap();
    match api {
        ProviderApi::Anthropic | ProviderApi::AnthropicSampling => {
            let thought = &body["messages"][1]["content"][0];
            assert_eq!(thought["thinking"], "Both at once.");
            assert_eq!(std::slice::from_ref(thought), parts);
        }
        ProviderApi::OpenaiResponses => {
            let thought = &body["input"][1];
            assert!(thought["encrypted_content"].is_string());
            assert_eq!(std::slice::from_ref(thought), parts);
        }
        ProviderApi::OpenaiChat | ProviderApi::AzureDated | ProviderApi::AzureV1 => {
            assert_eq!(body["messages"][2]["reasoning_content"], "Both at once.");
        }
        // The mock uses another name for it than Ollama.
        ProviderApi::Ollama => assert_eq!(parts, [] as [Value; 0]),
    }
}

#[tokio::test]
async fn tool_calls_and_reasoning_go_back_to_the_model() {
    let mock = Aimock::start(&fixtures());
    for api in ProviderApi::ALL {
        for stream in [false, true] {
            // A reasoning model: the mock knows them by their names.
            let reasoning = match api {
                ProviderApi::Anthropic | ProviderApi::AnthropicSampling => {
                    json!({"thinkingBudget": 1024, "maxTokens": 2048, "temperature": 1})
                }
                ProviderApi::OpenaiChat | ProviderApi::OpenaiResponses => json!({"model": "gpt-5-mini"}),
                ProviderApi::AzureDated | ProviderApi::AzureV1 => json!({"deployment": "gpt-5-mini"}),
                ProviderApi::Ollama => json!({"model": "qwen3", "think": true}),
            };
            let props = with(with(api.model(&mock.address()), json!({"stream": stream})), reasoning);
            let (asked, requests) = round(&mock, &props).await;
            assert!(requests[0].json().unwrap()["tools"].as_array().is_some_and(|tools| tools.len() == 2));
            check_reasoning(api, &asked, &requests[1]);
        }
    }
    assert!(mock.statuses().iter().all(|status| *status == 200));
}
