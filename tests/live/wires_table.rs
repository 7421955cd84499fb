//! One table of conversations that every wire passes, whole and streamed: plain, with calls, with parallel calls,
//! structured, with an image, with thinking, refused, truncated, and failed.
//!
//! The provider is the independent mock. Where that does not answer as the provider does, a server of our own sends
//! the documented bytes.

use crate::aimock::Aimock;
use crate::native_tools::{StreamedText, model_by};
use crate::provider_api::ProviderApi;
use crate::scripted::{Response, ScriptedProvider};
use crate::world::{adapters, with};
use futures::FutureExt as _;
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode as Code;
use redflow_contract::fact::{ModelAnswer, ModelFinish as Finish, Usage};
use redflow_contract::plan::ToolSpec;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ChatMessage, ChatRole, Image, ImageType, Transcript};
use redflow_ports::{Adapters, AnswerKind, ChatModel, ModelRequest, Reply, ReplyFormat, SchemaText};
use redflow_testkit::HttpRequest;
use serde_json::{Value, json};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// A PNG file of one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const THOUGHT: &str = "The sum is easy.";

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Plain,
    Calls,
    ParallelCalls,
    Structured,
    Image,
    Thinking,
    Refusal,
    Truncation,
    RateLimit,
    UsedUpQuota,
    WrongKey,
    UnknownModel,
    TooLong,
    Overloaded,
}

const CASES: [Case; 14] = [
    Case::Plain,
    Case::Calls,
    Case::ParallelCalls,
    Case::Structured,
    Case::Image,
    Case::Thinking,
    Case::Refusal,
    Case::Truncation,
    Case::RateLimit,
    Case::UsedUpQuota,
    Case::WrongKey,
    Case::UnknownModel,
    Case::TooLong,
    Case::Overloaded,
];

/// What a case ends with.
enum Outcome {
    Answer { text: &'static str, finish: Finish },
    Failure(Code),
}

impl Case {
    /// The message of the user, which the mock knows the case by.
    fn question(self) -> String {
        format!("[{self:?}] please.")
    }

    fn outcome(self) -> Outcome {
        let (text, finish) = match self {
            Self::Plain => ("Hello, wörld.", Finish::Stop),
            Self::Calls | Self::ParallelCalls => ("", Finish::ToolCalls),
            Self::Structured => (r#"{"sum":4}"#, Finish::Stop),
            Self::Image => ("One pixel.", Finish::Stop),
            Self::Thinking => ("It is 4.", Finish::Stop),
            Self::Refusal => ("", Finish::Refused),
            Self::Truncation => ("It is", Finish::Truncated),
            Self::RateLimit => return Outcome::Failure(Code::RateLimit),
            Self::UsedUpQuota => return Outcome::Failure(Code::QuotaExceeded),
            Self::WrongKey => return Outcome::Failure(Code::InvalidCredentials),
            Self::UnknownModel => return Outcome::Failure(Code::ModelNotFound),
            Self::TooLong => return Outcome::Failure(Code::ContextLength),
            Self::Overloaded => return Outcome::Failure(Code::ProviderUnavailable),
        };
        Outcome::Answer { text, finish }
    }

    /// The calls of the answer, as tool and expression.
    fn calls(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Calls => &[("calculator", "2+2")],
            // Two of the same tool, so that their results can be mixed up.
            Self::ParallelCalls => &[("calculator", "2+2"), ("calculator", "3*3"), ("clock", "now")],
            _ => &[],
        }
    }

    /// What the mock answers. None if only our own server answers this case.
    fn fixture(self) -> Option<Value> {
        let error = |status: u16, kind: &str, code: &str| json!({"error": {"message": "No.", "type": kind, "code": code}, "status": status});
        let usage = json!({"prompt_tokens": 50, "completion_tokens": 7, "total_tokens": 57});
        Some(match self {
            Self::Plain => json!({"content": "Hello, wörld.", "usage": usage}),
            Self::Calls | Self::ParallelCalls => {
                let calls: Vec<Value> = (0..).zip(self.calls()).map(|(nth, (name, expression))| {
                    json!({"id": format!("call_{nth}"), "name": name, "arguments": {"expression": expression}})
                }).collect();
                json!({"toolCalls": calls})
            }
            Self::Structured => json!({"content": r#"{"sum":4}"#}),
            Self::Image => json!({"content": "One pixel."}),
            Self::Thinking => json!({"content": "It is 4.", "reasoning": THOUGHT}),
            Self::Truncation => json!({"content": "It is", "finishReason": "length"}),
            Self::RateLimit => error(429, "rate_limit_error", "rate_limit_exceeded"),
            Self::WrongKey => error(401, "authentication_error", "invalid_api_key"),
            Self::UnknownModel => error(404, "not_found_error", "model_not_found"),
            Self::Overloaded => error(503, "overloaded_error", "overloaded"),
            Self::Refusal | Self::UsedUpQuota | Self::TooLong => return None,
        })
    }

    /// What the provider itself answers, where the mock does not do it in that way.
    fn documented(self, api: ProviderApi, stream: bool) -> Option<Response> {
        use ProviderApi::{
            Anthropic, AnthropicSampling, AzureDated, AzureV1, Gemini, Ollama, OpenaiChat, OpenaiResponses,
        };
        let error = |status: u16, error: Value| {
            Some((status, "application/json", json!({ "error": error }).to_string()))
        };
        let events = match (self, api) {
            (Self::Refusal, OpenaiChat | AzureDated | AzureV1) if stream => chat_events("", "content_filter"),
            (Self::Refusal, OpenaiChat | AzureDated | AzureV1) => {
                vec![
                    json!({"choices": [{"message": {"content": null, "refusal": "I cannot."}, "finish_reason": "stop"}]}),
                ]
            }
            (Self::Refusal, OpenaiResponses) => {
                let refusal =
                    json!({"type": "message", "id": "m", "content": [{"type": "refusal", "refusal": "No."}]});
                responses_events(stream, json!({"status": "completed", "output": [refusal]}))
            }
            (Self::Truncation, OpenaiResponses) => {
                let text = json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": "It is"}]});
                let details = json!({"reason": "max_output_tokens"});
                responses_events(
                    stream,
                    json!({"status": "incomplete", "incomplete_details": details, "output": [text]}),
                )
            }
            (Self::Refusal, Anthropic | AnthropicSampling) => anthropic_events(stream, "refusal"),
            // Ollama has no refusals: its models refuse in their text.
            (Self::Refusal, Ollama) => return None,
            (Self::Plain, Ollama) => ollama_lines(stream, &[json!({"content": "Hello, wörld."})], "stop"),
            (Self::Thinking, Ollama) => ollama_lines(
                stream,
                &[json!({"content": "", "thinking": THOUGHT}), json!({"content": "It is 4."})],
                "stop",
            ),
            (Self::Truncation, Ollama) => ollama_lines(stream, &[json!({"content": "It is"})], "length"),
            (Self::Refusal, Gemini) => gemini_events(stream, &[], "PROHIBITED_CONTENT"),
            // The last call has the reason STOP, and the first one the only signature.
            (Self::Calls | Self::ParallelCalls, Gemini) => {
                let parts = (0..).zip(self.calls()).map(|(nth, (name, expression))| {
                    let mut part =
                        json!({"functionCall": {"name": name, "args": {"expression": expression}}});
                    if nth == 0 {
                        part["thoughtSignature"] = json!("c2lnbmF0dXJl");
                    }
                    part
                });
                gemini_events(stream, &parts.collect::<Vec<_>>(), "STOP")
            }
            (Self::Thinking, Gemini) => {
                let parts = [
                    json!({"text": THOUGHT, "thought": true}),
                    json!({"text": "It is "}),
                    json!({"text": "4.", "thoughtSignature": "c2lnbmF0dXJl"}),
                ];
                gemini_events(stream, &parts, "STOP")
            }
            (Self::UsedUpQuota, Gemini) => {
                let quota = json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure",
                    "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]});
                let retry = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3s"});
                return error(
                    429,
                    json!({"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "No.", "details": [quota, retry]}),
                );
            }
            (Self::WrongKey, Gemini) => {
                let info =
                    json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"});
                return error(
                    400,
                    json!({"code": 400, "status": "INVALID_ARGUMENT", "message": "No.", "details": [info]}),
                );
            }
            (Self::TooLong, Gemini) => {
                let message =
                    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).";
                return error(400, json!({"code": 400, "status": "INVALID_ARGUMENT", "message": message}));
            }
            (Self::UsedUpQuota, Anthropic | AnthropicSampling) => {
                let details = json!({"error_code": "enforced_spend_limit_reached"});
                return error(429, json!({"type": "rate_limit_error", "message": "No.", "details": details}));
            }
            (Self::TooLong, Anthropic | AnthropicSampling) => {
                return error(413, json!({"type": "request_too_large", "message": "No."}));
            }
            (Self::UsedUpQuota, _) => {
                return error(
                    429,
                    json!({"type": "insufficient_quota", "code": "insufficient_quota", "message": "No."}),
                );
            }
            (Self::TooLong, _) => {
                return error(
                    400,
                    json!({"type": "invalid_request_error", "code": "context_length_exceeded", "message": "No."}),
                );
            }
            _ => return None,
        };
        Some(match (api, stream) {
            (_, false) => (200, "application/json", events[0].to_string()),
            (Ollama, true) => {
                (200, "application/x-ndjson", events.iter().map(|line| format!("{line}\n")).collect())
            }
            (_, true) => {
                let mut text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
                if matches!(api, OpenaiChat | AzureDated | AzureV1) {
                    text.push_str("data: [DONE]\n\n");
                }
                (200, "text/event-stream", text)
            }
        })
    }

    /// Further properties of the model node.
    fn properties(self, api: ProviderApi) -> Value {
        match (self, api) {
            // The mock knows reasoning models by their names.
            (Self::Thinking, ProviderApi::Anthropic | ProviderApi::AnthropicSampling) => {
                json!({"model": "claude-sonnet-4-5", "thinkingBudget": 1024, "maxTokens": 2048, "temperature": 1})
            }
            (Self::Thinking, ProviderApi::OpenaiChat | ProviderApi::OpenaiResponses) => {
                json!({"model": "gpt-5-mini"})
            }
            (Self::Thinking, ProviderApi::AzureDated | ProviderApi::AzureV1) => {
                json!({"deployment": "gpt-5-mini"})
            }
            (Self::Thinking, ProviderApi::Ollama) => json!({"model": "qwen3", "think": true}),
            _ => json!({}),
        }
    }
}

fn chat_events(text: &str, reason: &str) -> Vec<Value> {
    vec![
        json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}),
    ]
}

fn responses_events(stream: bool, response: Value) -> Vec<Value> {
    if !stream {
        return vec![response];
    }
    let kind = if response["status"] == "incomplete" { "response.incomplete" } else { "response.completed" };
    let text = response["output"][0]["content"][0]["text"].as_str().unwrap_or_default();
    let delta =
        json!({"type": "response.output_text.delta", "sequence_number": 1, "output_index": 0, "delta": text});
    let last = json!({"type": kind, "sequence_number": 2, "response": response});
    if text.is_empty() { vec![last] } else { vec![delta, last] }
}

fn anthropic_events(stream: bool, reason: &str) -> Vec<Value> {
    let usage = json!({"input_tokens": 5, "output_tokens": 1});
    if !stream {
        return vec![json!({"type": "message", "content": [], "stop_reason": reason, "usage": usage})];
    }
    vec![
        json!({"type": "message_start", "message": {"content": [], "usage": usage}}),
        json!({"type": "ping"}),
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ]
}

fn ollama_lines(stream: bool, messages: &[Value], reason: &str) -> Vec<Value> {
    let counts = json!({"done": true, "done_reason": reason, "prompt_eval_count": 50, "eval_count": 7});
    if stream {
        let lines = messages.iter().map(|message| json!({"model": "m", "message": message, "done": false}));
        return lines.chain([with(json!({"message": {"content": ""}}), counts)]).collect();
    }
    let join =
        |name: &str| -> String { messages.iter().filter_map(|message| message[name].as_str()).collect() };
    let message = json!({"role": "assistant", "content": join("content"), "thinking": join("thinking")});
    vec![with(json!({"model": "m", "message": message}), counts)]
}

/// Each part is one event of a stream, and the last event has the reason.
fn gemini_events(stream: bool, parts: &[Value], reason: &str) -> Vec<Value> {
    let usage = json!({"promptTokenCount": 50, "candidatesTokenCount": 4, "thoughtsTokenCount": 3});
    let last = |parts: Value| json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": reason}], "usageMetadata": usage});
    if !stream {
        return vec![last(json!(parts))];
    }
    let events =
        parts.iter().map(|part| json!({"candidates": [{"content": {"parts": [part], "role": "model"}}]}));
    events.chain([last(json!([{"text": ""}]))]).collect()
}

/// What answers a conversation.
enum Provider<'a> {
    Mock(&'a Aimock),
    Own(ScriptedProvider),
}

impl Provider<'_> {
    fn address(&self) -> String {
        match self {
            Self::Mock(mock) => mock.address(),
            Self::Own(server) => server.address(),
        }
    }

    #[track_caller]
    fn requests(&self) -> Vec<HttpRequest> {
        match self {
            Self::Mock(mock) => mock.requests(),
            Self::Own(server) => server.requests(),
        }
    }
}

fn tools() -> Arc<[ToolSpec]> {
    let schema = json!({"type": "object", "properties": {"expression": {"type": "string"}},
                        "required": ["expression"], "additionalProperties": false});
    let tool = |name: &str| {
        json!({"name": name, "description": format!("The {name}."), "inputSchema": schema, "node": name,
               "effect": null, "timeoutMs": 1, "onUnknown": "wait"})
    };
    serde_json::from_value::<Vec<ToolSpec>>(json!([tool("calculator"), tool("clock")])).unwrap().into()
}

fn answer_kind(case: Case) -> AnswerKind {
    let tools = if case.calls().is_empty() { Arc::default() } else { tools() };
    let format = match case {
        Case::Structured => {
            let schema = json!({"type": "object", "properties": {"sum": {"type": "integer"}},
                                "required": ["sum"], "additionalProperties": false});
            ReplyFormat::Schema(SchemaText::from_value(&schema).unwrap())
        }
        _ => ReplyFormat::Text,
    };
    AnswerKind::Reply(Reply { tools, format, ..Reply::default() })
}

async fn call(model: &dyn ChatModel, transcript: &Transcript, case: Case) -> Result<ModelAnswer, Failure> {
    let text = StreamedText::default();
    let answer_kind = &answer_kind(case);
    let request =
        ModelRequest { answer_kind, delta_observer: Some(&text), ..ModelRequest::for_text(transcript) };
    let answer = model.call(request).await;
    if let Ok(answer) = &answer {
        assert_eq!(text.0.into_inner().unwrap(), answer.text, "the observer gets the text and nothing else");
    }
    answer
}

fn first_message(case: Case) -> ChatMessage {
    let images = match case {
        Case::Image => vec![Image { mime: ImageType::Png, data: PIXEL.into() }],
        _ => Vec::new(),
    };
    ChatMessage { images, ..ChatMessage::new(ChatRole::User, case.question()) }
}

/// Holds the conversation of one case with one wire.
async fn converse(mock: &Aimock, adapters: &Adapters, api: ProviderApi, case: Case, stream: bool) {
    let name = format!("{} {case:?} {}", api.name(), if stream { "streamed" } else { "whole" });
    let provider = match case.documented(api, stream) {
        Some(response) => {
            let last = match api {
                ProviderApi::Gemini => (
                    200,
                    "application/json",
                    gemini_events(false, &[json!({"text": "Done."})], "STOP")[0].to_string(),
                ),
                ProviderApi::Ollama => (
                    200,
                    "application/json",
                    ollama_lines(false, &[json!({"content": "Done."})], "stop")[0].to_string(),
                ),
                _ => response.clone(),
            };
            Provider::Own(ScriptedProvider::start(vec![response, last]))
        }
        None if case.fixture().is_some() => Provider::Mock(mock),
        // The provider has no such answer.
        None => return,
    };
    let base =
        json!({"stream": stream, "maxRetries": 0, "capabilities": {"vision": true, "jsonSchema": true}});
    let props = with(with(api.model(&provider.address()), base), case.properties(api));
    let model = model_by(adapters, &props);
    let mut transcript = Transcript::default();
    transcript.push(Arc::new(ChatMessage::new(ChatRole::System, "Answer in JSON, if you can.")));
    transcript.push(Arc::new(first_message(case)));
    let answer = call(&*model, &transcript, case).await;
    let requests = provider.requests();
    let [request] = requests.as_slice() else { panic!("{name}: {} requests", requests.len()) };
    assert_eq!(api.is_stream(request), stream, "{name}");
    let body = request.json().unwrap().to_string();
    assert_eq!(body.contains(PIXEL), case == Case::Image, "{name}: {body}");
    assert_eq!(body.contains(r#""required":["sum"]"#), case == Case::Structured, "{name}: {body}");
    let (text, finish) = match case.outcome() {
        Outcome::Answer { text, finish } => (text, finish),
        Outcome::Failure(code) => {
            let failure = answer.unwrap_err();
            assert_eq!(failure.code, code, "{name}: {}", failure.message);
            return;
        }
    };
    let answer = answer.unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
    assert_eq!((answer.text.as_str(), answer.finish), (text, finish), "{name}");
    if case == Case::Plain {
        let Usage { input_tokens, output_tokens, .. } = answer.usage.unwrap();
        assert_eq!((input_tokens, output_tokens), (50, 7), "{name}");
    }
    check_calls(case, &answer, &name);
    if case != Case::Thinking && case.calls().is_empty() {
        return;
    }
    // The answer goes back, with the results of its calls.
    let thought = answer.reasoning.clone();
    let calls = answer.tool_calls.clone();
    transcript.push(Arc::new(ChatMessage {
        tool_calls: answer.tool_calls,
        reasoning: answer.reasoning,
        ..ChatMessage::new(ChatRole::Assistant, answer.text)
    }));
    // The results in another order than the calls.
    for (nth, call) in calls.iter().enumerate().rev() {
        let result = ChatMessage::new(
            ChatRole::Tool,
            json!({"success": true, "output": format!("result {nth}")}).to_string(),
        );
        transcript.push(Arc::new(ChatMessage { tool_call_id: Some(call.id.clone()), ..result }));
    }
    transcript.push(Arc::new(ChatMessage::new(ChatRole::User, "Go on. [Plain] please.")));
    call(&*model, &transcript, Case::Plain).await.unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
    let later = provider.requests();
    let [later] = later.as_slice() else { panic!("{name}: {} later requests", later.len()) };
    check_later(api, case, &later.json().unwrap(), &name);
    if case == Case::Thinking {
        assert!(thought.is_some(), "{name}");
        assert!(!text.contains(THOUGHT));
    }
}

#[track_caller]
fn check_calls(case: Case, answer: &ModelAnswer, name: &str) {
    let found: Vec<(&str, Value)> = answer
        .tool_calls
        .iter()
        .map(|call| (call.name.as_str(), serde_json::from_str(&call.arguments).unwrap()))
        .collect();
    let expected: Vec<(&str, Value)> =
        case.calls().iter().map(|(name, expression)| (*name, json!({"expression": expression}))).collect();
    assert_eq!(found, expected, "{name}");
    let mut ids: Vec<&str> = answer.tool_calls.iter().map(|call| call.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), expected.len(), "{name}: each call has its own id");
}

/// The next request has the thought and every result once, and Gemini's parts as they came. The validator has
/// checked that calls and results fit.
#[track_caller]
fn check_later(api: ProviderApi, case: Case, body: &Value, name: &str) {
    let text = body.to_string();
    for nth in 0..case.calls().len() {
        assert_eq!(text.matches(&format!("result {nth}")).count(), 1, "{name}: {text}");
    }
    // OpenAI's reasoning is encrypted; the others send it back as it came.
    if case == Case::Thinking && api != ProviderApi::OpenaiResponses {
        assert_eq!(text.matches(THOUGHT).count(), 1, "{name}: {text}");
    }
    if api == ProviderApi::Gemini {
        assert_eq!(text.matches("c2lnbmF0dXJl").count(), 1, "{name}: {text}");
        let results = body["contents"][2]["parts"].as_array().unwrap().iter();
        let found: Vec<&str> =
            results.filter_map(|part| part["functionResponse"]["response"]["output"].as_str()).collect();
        let expected: Vec<String> = (0..case.calls().len()).map(|nth| format!("result {nth}")).collect();
        assert_eq!(found, expected, "{name}: results in the order of their calls");
    }
}

fn fixtures() -> Vec<Value> {
    // The last message of a conversation names the case.
    let cases = CASES.iter().filter_map(|case| Some((case, case.fixture()?)));
    cases
        .map(|(case, response)| json!({"match": {"userMessage": case.question()}, "response": response}))
        .collect()
}

#[tokio::test]
async fn every_wire_passes_every_conversation() {
    let (mock, adapters) = (Aimock::start(&fixtures()), adapters());
    let mut failed = Vec::new();
    for api in ProviderApi::ALL {
        for case in CASES {
            for stream in [false, true] {
                // Each row of the table is tried, whatever became of the others.
                let row = AssertUnwindSafe(converse(&mock, &adapters, api, case, stream)).catch_unwind();
                if row.await.is_err() {
                    failed.push(format!("{} {case:?}, streamed: {stream}", api.name()));
                    mock.forget_requests();
                }
            }
        }
    }
    assert_eq!(failed, [] as [String; 0]);
}
