//! Native tool calls: a model calls tools, gets the results and answers. The runtime sends its reasoning back.

use crate::aimock::Aimock;
use crate::provider_api::ProviderApi;
use crate::world::{adapters, process_env, with};
use pretty_assertions::assert_eq;
use redflow_contract::fact::{ModelAnswer, ModelFinish};
use redflow_contract::id::NodeSummary;
use redflow_contract::plan::ToolSpec;
use redflow_contract::transcript::{ChatMessage, ChatRole, Transcript};
use redflow_ports::{
    Adapters, AnswerKind, ChatModel, DeltaObserver, ModelRequest, NodeConfig, Reply, ToolChoice,
};
use redflow_testkit::HttpRequest;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

pub(crate) fn model(props: &Value) -> Arc<dyn ChatModel> {
    model_by(&adapters(), props)
}

/// A model of adapters whose models share their HTTP client.
pub(crate) fn model_by(adapters: &Adapters, props: &Value) -> Arc<dyn ChatModel> {
    let type_name = props["type"].as_str().unwrap();
    let node = NodeSummary { id: "m".into(), type_name: type_name.to_owned(), name: String::new() };
    let config = NodeConfig::new(&node, props.as_object().unwrap(), &process_env, &|_| ());
    adapters.models[type_name](config).unwrap()
}

/// A calculator and a clock.
fn tools() -> Arc<[ToolSpec]> {
    let tool = |name: &str, schema: Value| {
        json!({"name": name, "description": format!("The {name}."), "inputSchema": schema, "node": name,
               "effect": null, "timeoutMs": 1, "onUnknown": "wait"})
    };
    let expression = json!({"type": "object", "properties": {"expression": {"type": "string"}},
                            "required": ["expression"], "additionalProperties": false});
    let tools = json!([tool("calculator", expression), tool("clock", json!(null))]);
    serde_json::from_value::<Vec<ToolSpec>>(tools).unwrap().into()
}

fn fixtures() -> Vec<Value> {
    let calls = json!([
        {"id": "call_sum", "name": "calculator", "arguments": {"expression": "2+2"}},
        {"id": "call_clock", "name": "clock", "arguments": {}},
    ]);
    vec![
        json!({"match": {"userMessage": "again"}, "response": {"content": "Still 4."}}),
        // Ollama's results have no ids, so match the result of any call.
        json!({"match": {"userMessage": "sum", "hasToolResult": true}, "response": {"content": "It is 4."}}),
        json!({"match": {"userMessage": "sum"}, "response": {"toolCalls": calls, "reasoning": "Both at once."}}),
    ]
}

/// Calls the model with all tools. The observer receives what the answer says.
async fn ask(model: &dyn ChatModel, transcript: &Transcript, choice: ToolChoice) -> ModelAnswer {
    let answer_kind = &AnswerKind::Reply(Reply { tools: tools(), choice, ..Reply::default() });
    let text = StreamedText::default();
    let request =
        ModelRequest { answer_kind, delta_observer: Some(&text), ..ModelRequest::for_text(transcript) };
    let answer = model.call(request).await.unwrap();
    assert_eq!(text.0.into_inner().unwrap(), answer.text);
    answer
}

/// The text of the first attempt.
#[derive(Default)]
pub(crate) struct StreamedText(pub(crate) Mutex<String>);

impl DeltaObserver for StreamedText {
    fn text(&self, attempt: u32, text: &str) {
        assert_eq!(attempt, 1);
        self.0.lock().unwrap().push_str(text);
    }
}

/// Two calls, their results of which one is a failure, the answer, and another question. Gives the first answer and the
/// requests.
async fn talk(mock: &Aimock, props: &Value) -> (ModelAnswer, Vec<HttpRequest>) {
    let model = model(props);
    let mut transcript = Transcript::default();
    transcript.push(Arc::new(ChatMessage::new(ChatRole::System, "Use the tools.")));
    transcript.push(Arc::new(ChatMessage::new(ChatRole::User, "The sum, please.")));
    let asked = ask(&*model, &transcript, ToolChoice::Required).await;
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
    let results = [r#"{"success":true,"output":4}"#, r#"{"success":false,"error":"The clock is broken."}"#];
    for (call, content) in asked.tool_calls.iter().zip(results) {
        let result = ChatMessage::new(ChatRole::Tool, content);
        transcript.push(Arc::new(ChatMessage { tool_call_id: Some(call.id.clone()), ..result }));
    }
    for (choice, text) in [(ToolChoice::Auto, "It is 4."), (ToolChoice::None, "Still 4.")] {
        let answer = ask(&*model, &transcript, choice).await;
        assert_eq!((answer.text.as_str(), answer.finish), (text, ModelFinish::Stop), "{props}");
        assert_eq!(answer.tool_calls, []);
        transcript.push(Arc::new(ChatMessage {
            reasoning: answer.reasoning,
            ..ChatMessage::new(ChatRole::Assistant, answer.text)
        }));
        transcript.push(Arc::new(ChatMessage::new(ChatRole::User, "And again?")));
    }
    let requests = mock.requests();
    assert_eq!(requests.len(), 3);
    (asked, requests)
}

/// A later request contains the reasoning of the first answer, unchanged.
#[track_caller]
fn check_reasoning(api: ProviderApi, asked: &ModelAnswer, later: &HttpRequest) {
    let parts = asked.reasoning.as_ref().map(|opaque| opaque.parts.as_slice()).unwrap_or_default();
    let body = later.json().unwrap();
    match api {
        ProviderApi::Anthropic | ProviderApi::AnthropicSampling => {
            assert_eq!(parts[0]["thinking"], "Both at once.");
            assert_eq!(body["messages"][1]["content"], json!(parts));
        }
        ProviderApi::OpenaiResponses => {
            assert!(parts[0]["encrypted_content"].is_string());
            assert_eq!(&body["input"].as_array().unwrap()[1..=parts.len()], parts);
        }
        ProviderApi::OpenaiChat | ProviderApi::AzureDated | ProviderApi::AzureV1 => {
            assert_eq!(body["messages"][2]["reasoning_content"], "Both at once.");
        }
        ProviderApi::Gemini => {
            assert_eq!(parts[0], json!({"text": "Both at once.", "thought": true}));
            assert_eq!(body["contents"][1]["parts"], json!(parts));
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
                    json!({"model": "claude-sonnet-4-5", "thinkingBudget": 1024, "maxTokens": 2048, "temperature": 1})
                }
                ProviderApi::OpenaiChat | ProviderApi::OpenaiResponses => json!({"model": "gpt-5-mini"}),
                ProviderApi::AzureDated | ProviderApi::AzureV1 => json!({"deployment": "gpt-5-mini"}),
                ProviderApi::Ollama => json!({"model": "qwen3", "think": true}),
                ProviderApi::Gemini => json!({"model": "gemini-2.5-flash", "thinkingLevel": ""}),
            };
            let props = with(with(api.model(&mock.address()), json!({"stream": stream})), reasoning);
            let (asked, requests) = talk(&mock, &props).await;
            for (index, request) in requests.iter().enumerate() {
                let body = request.json().unwrap();
                assert_eq!(api.is_stream(request), stream);
                let tools = body.pointer("/tools/0/functionDeclarations").unwrap_or(&body["tools"]);
                let count = tools.as_array().map_or(0, Vec::len);
                // Ollama has no choice: without tools, none can be called.
                let is_without = api == ProviderApi::Ollama && index == 2;
                assert_eq!(count, if is_without { 0 } else { 2 }, "{body}");
            }
            check_reasoning(api, &asked, &requests[1]);
            check_reasoning(api, &asked, &requests[2]);
        }
    }
    assert!(mock.statuses().iter().all(|status| *status == 200));
}
