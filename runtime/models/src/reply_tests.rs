//! Replies with native tool calls, on every wire.

use crate::ModelSettings;
use crate::anthropic::{AnthropicMessages, Thinking};
use crate::gemini::Gemini;
use crate::ollama::OllamaChat;
use crate::openai_chat::OpenaiChat;
use crate::openai_responses::OpenaiResponses;
use crate::recording::{Node, Recording, Reply, action_by, reply};
use crate::samples::{
    assistant, assistant_calls, call, conversation, opaque, tool_result, two_tools, two_turns, user,
    with_reasoning,
};
use crate::wire::Wire;
use bytes::Bytes;
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::fact::{ModelAnswer, ModelFinish};
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::ChatMessage;
use redflow_ports::{AnswerKind, ReplyFormat, ToolChoice};
use serde_json::{Value, json};

const THOUGHT: &str = "Both at once.";

/// Every wire, the name of its golden body, and reasoning of its provider.
fn wires() -> [(Box<dyn Wire>, &'static str, Vec<Value>); 5] {
    let chat = OpenaiChat { model: Some("deepseek-reasoner".to_owned()), ..OpenaiChat::default() };
    let responses = OpenaiResponses { model: Some("gpt-5-mini".to_owned()), ..OpenaiResponses::default() };
    let anthropic = AnthropicMessages {
        model: "claude-sonnet-5-5".to_owned(),
        max_tokens: 4_096,
        thinking: Thinking::Enabled { budget: 1_024 },
        ..AnthropicMessages::default()
    };
    let ollama = OllamaChat { model: "qwen3".to_owned(), think: Some(true), ..OllamaChat::default() };
    let gemini = Gemini { model: "gemini-3.5-flash".to_owned(), needs_signatures: true, ..Gemini::default() };
    // Its reasoning is the whole answer.
    let gemini_parts = vec![
        json!({"text": THOUGHT, "thought": true}),
        json!({"text": "I will look."}),
        json!({"functionCall": {"name": "calculator", "args": {"expression": "1/0"}}, "thoughtSignature": "sig"}),
        json!({"functionCall": {"name": "clock", "args": {}}}),
    ];
    let summary = json!([{"type": "summary_text", "text": THOUGHT}]);
    [
        (Box::new(chat), "openai-chat-reasoning-two-turns", vec![json!({"reasoning_content": THOUGHT})]),
        (
            Box::new(responses),
            "openai-responses-two-turns",
            vec![json!({"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "gAAA"})],
        ),
        (
            Box::new(anthropic),
            "anthropic-two-turns",
            vec![json!({"type": "thinking", "thinking": THOUGHT, "signature": "sig"})],
        ),
        (Box::new(ollama), "ollama-two-turns", vec![json!({"thinking": THOUGHT})]),
        (Box::new(gemini), "gemini-two-turns", gemini_parts),
    ]
}

#[test]
fn golden_bodies_of_two_turns_with_calls() {
    for (wire, name, parts) in wires() {
        two_turns(opaque(wire.name(), &parts).as_ref()).check_golden(&*wire, name);
    }
    let azure = OpenaiChat { max_tokens: Some(800), legacy_max_tokens: true, ..OpenaiChat::default() };
    two_turns(None).check_golden(&azure, "openai-chat-azure-dated-two-turns");
}

#[test]
fn reasoning_goes_back_to_its_own_wire_and_to_no_other() {
    for (from, _, parts) in wires() {
        let with_reasoning = two_turns(opaque(from.name(), &parts).as_ref());
        for (to, ..) in wires() {
            let (body, without) = (with_reasoning.body(&*to), two_turns(None).body(&*to));
            assert_eq!(body.to_string().contains(THOUGHT), from.name() == to.name(), "{body}");
            assert_eq!(body == without, from.name() != to.name(), "{} {}", from.name(), to.name());
        }
    }
    // OpenAI's own server refuses the reasoning of other servers with its API.
    let (chat, _, parts) = &wires()[0];
    let sample = two_turns(opaque(chat.name(), parts).as_ref());
    let openai = OpenaiChat { refuses_reasoning: true, ..OpenaiChat::default() };
    assert!(!sample.body(&openai).to_string().contains(THOUGHT));
}

#[test]
fn only_the_server_of_openai_refuses_reasoning() {
    for (base, refuses) in [("https://api.openai.com/v1", true), ("https://api.deepseek.com", false)] {
        let mut node = Node::new("openai-model", json!({"baseURL": base, "apiKey": "k"}));
        let part = json!({"reasoning_content": THOUGHT});
        node.messages = vec![with_reasoning("openai-chat", &[part], assistant("Hi"))];
        assert_eq!(!node.request().body.to_string().contains(THOUGHT), refuses, "{base}");
    }
}

#[test]
fn compatible_servers_get_back_what_they_sent_and_no_other_server_does() {
    let chat =
        |base: &str| Node::new("openai-model", json!({"baseURL": base, "apiKey": "k", "model": "gpt-4o"}));
    let body = json!({"choices": [{"message": {
        "content": "<think>Hm.</think>Yes.", "reasoning": THOUGHT, "reasoning_details": [{"type": "reasoning.text", "text": THOUGHT}],
    }, "finish_reason": "stop"}]});
    let answer = |node: &Node| {
        let recording = Recording::new([Reply::new(200, &[], &body.to_string())]);
        node.call(&reply(ToolChoice::None), &recording, ModelSettings::default()).unwrap()
    };
    let router = answer(&chat("https://openrouter.ai/api/v1"));
    assert_eq!(router.text, "Yes.");
    let azure = json!({"endpoint": "https://x.openai.azure.com", "deployment": "gpt-4o"});
    let azure = Node::new("model.azure.openai", azure);
    for (mut node, gets_it, text) in [
        (chat("https://openrouter.ai/api/v1"), true, "Yes."),
        (chat("https://api.groq.com/openai/v1"), false, "Yes."),
        // The models of OpenAI do not think in their text.
        (chat("https://api.openai.com/v1"), false, "<think>Hm.</think>Yes."),
        (azure, false, "<think>Hm.</think>Yes."),
    ] {
        let reasoning = router.reasoning.clone();
        node.messages.push(ChatMessage { reasoning, ..assistant("Yes.") });
        let sent = node.request().body;
        assert_eq!(sent.to_string().contains(THOUGHT), gets_it, "{sent}");
        assert_eq!(answer(&node).text, text);
    }
    // DeepSeek requires reasoning of every message, also of those that have none.
    for (base, required) in [("https://api.deepseek.com", true), ("https://api.groq.com/openai/v1", false)] {
        let mut node = chat(base);
        node.tools = crate::samples::two_tools();
        node.messages.push(assistant("Yes."));
        let message = &node.request_for(&reply(ToolChoice::Auto)).body["messages"][2];
        assert_eq!(message.get("reasoning_content"), required.then_some(&json!("")), "{base}");
    }
}

fn sse(events: &[Value]) -> Vec<String> {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// A node of each wire, and the events of a stream with text and two calls.
fn streams() -> Vec<(Node, Vec<String>)> {
    let chat = |delta: Value| json!({"choices": [{"delta": delta}]});
    let part = |index: u32, part: Value| chat(json!({"tool_calls": [{"index": index, "function": part}]}));
    let open = |index: u32, id: &str, name: &str| {
        let function = json!({"name": name, "arguments": ""});
        chat(json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}))
    };
    let chat_events = || {
        let events = [
            chat(json!({"role": "assistant", "content": "I look."})),
            open(0, "a", "calculator"),
            part(0, json!({"arguments": "{\"expression\":"})),
            part(0, json!({"arguments": "\"2+2\"}"})),
            open(1, "b", "clock"),
            part(1, json!({"arguments": "{\"zone\""})),
            part(1, json!({"arguments": ":\"UTC\"}"})),
            json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
            json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 6}}),
        ];
        let mut events = sse(&events);
        events.push("data: [DONE]\n\n".to_owned());
        events
    };
    let item = |kind: &str, index: u32, item: Value| json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item});
    let function = |id: &str, name: &str, arguments: &str| json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments});
    let arguments = |index: u32, delta: &str| json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": delta});
    let start = |index: u32, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let input = |index: u32, json: &str| json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": json}});
    let text = |text: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    let stop = |index: u32| json!({"type": "content_block_stop", "index": index});
    let tool_use = |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let line = |message: Value| format!("{}\n", json!({"message": message, "done": false}));
    let azure = json!({"endpoint": "http://localhost", "deployment": "gpt-4o", "stream": true});
    let parts = |parts: Value| json!({"candidates": [{"content": {"parts": parts}}]});
    vec![
        (Node::new("openai-model", json!({"stream": true})), chat_events()),
        (Node::new("model.azure.openai", azure), chat_events()),
        (
            Node::new("openai-model", json!({"stream": true, "api": "responses"})),
            sse(&[
                item("added", 0, json!({"type": "message", "id": "m", "content": []})),
                json!({"type": "response.output_text.delta", "output_index": 0, "delta": "I look."}),
                item("added", 1, function("a", "calculator", "")),
                arguments(1, "{\"expression\":"),
                arguments(1, "\"2+2\"}"),
                item("done", 1, function("a", "calculator", "{\"expression\":\"2+2\"}")),
                item("added", 2, function("b", "clock", "")),
                arguments(2, "{\"zone\""),
                arguments(2, ":\"UTC\"}"),
                json!({"type": "response.completed", "response": {"status": "completed", "output": []}}),
            ]),
        ),
        (
            Node::new("anthropic-model", json!({"stream": true})),
            sse(&[
                json!({"type": "message_start", "message": {}}),
                start(0, json!({"type": "text", "text": ""})),
                text("I look."),
                stop(0),
                start(1, tool_use("a", "calculator")),
                input(1, "{\"expression\":"),
                input(1, "\"2+2\"}"),
                stop(1),
                start(2, tool_use("b", "clock")),
                input(2, "{\"zone\""),
                input(2, ":\"UTC\"}"),
                stop(2),
                json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}}),
                json!({"type": "message_stop"}),
            ]),
        ),
        (
            Node::new("ollama-model", json!({"stream": true})),
            vec![
                line(json!({"content": "I look."})),
                line(
                    json!({"tool_calls": [{"id": "a", "function": {"name": "calculator", "arguments": {"expression": "2+2"}}}]}),
                ),
                line(
                    json!({"tool_calls": [{"id": "b", "function": {"name": "clock", "arguments": {"zone": "UTC"}}}]}),
                ),
                format!("{}\n", json!({"done": true, "done_reason": "stop"})),
            ],
        ),
        (
            Node::new("google-model", json!({"stream": true})),
            sse(&[
                parts(json!([{"text": "I "}])),
                parts(json!([{"text": "look."}])),
                parts(
                    json!([{"functionCall": {"id": "a", "name": "calculator", "args": {"expression": "2+2"}}, "thoughtSignature": "s"}]),
                ),
                parts(json!([{"functionCall": {"id": "b", "name": "clock", "args": {"zone": "UTC"}}}])),
                json!({"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}]}),
            ]),
        ),
    ]
}

fn receive(node: &Node, stream: &[u8]) -> Result<ModelAnswer, Failure> {
    let headers = vec![("content-type", "text/event-stream".to_owned())];
    let parts = vec![Ok(Bytes::copy_from_slice(stream))];
    let recording = Recording::new([Reply::Response { status: 200, headers, parts }]);
    node.call(&reply(ToolChoice::Auto), &recording, ModelSettings::default())
}

#[test]
fn a_stream_that_stops_within_a_call_is_no_answer() {
    let calls = [call("a", "calculator", r#"{"expression":"2+2"}"#), call("b", "clock", r#"{"zone":"UTC"}"#)];
    for (mut node, events) in streams() {
        node.retry = false;
        let stream = events.concat();
        let whole = receive(&node, stream.as_bytes()).unwrap();
        assert_eq!((whole.text.as_str(), whole.finish), ("I look.", ModelFinish::ToolCalls));
        assert_eq!(whole.tool_calls, calls);
        let mut interrupted = 0;
        for end in 0..stream.len() {
            match receive(&node, &stream.as_bytes()[..end]) {
                Ok(answer) => assert_eq!((answer.finish, answer.tool_calls), (whole.finish, calls.to_vec())),
                Err(failure) => {
                    assert_eq!(failure.code, RunErrorCode::ProviderUnavailable, "{}", failure.message);
                    interrupted = end;
                }
            }
        }
        // Until the event that ends the answer.
        assert!(stream[..interrupted].contains("UTC"), "{}", &stream[..interrupted]);
        // Also if the server ends the broken stream as if it were whole.
        if stream.ends_with("[DONE]\n\n") {
            for count in 2..events.len() - 3 {
                let cut = events[..count].concat() + "data: [DONE]\n\n";
                match receive(&node, cut.as_bytes()) {
                    Ok(answer) => {
                        let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
                        assert!(answer.tool_calls.iter().all(|call| is_json(&call.arguments)), "{cut}");
                    }
                    Err(failure) => assert_eq!(failure.code, RunErrorCode::ProviderUnavailable, "{cut}"),
                }
            }
        }
    }
}

#[test]
fn a_stream_that_stops_is_retried() {
    for (node, events) in streams() {
        let headers = vec![("content-type", "text/event-stream".to_owned())];
        let response = |text: String| Reply::Response {
            status: 200,
            headers: headers.clone(),
            parts: vec![Ok(Bytes::from(text))],
        };
        let recording = Recording::new([response(events[..2].concat()), response(events.concat())]);
        let answer = node.call(&reply(ToolChoice::Auto), &recording, ModelSettings::default()).unwrap();
        assert_eq!((answer.tool_calls.len(), recording.requests().len()), (2, 2));
    }
}

#[test]
fn an_answer_with_calls_waits_for_their_results_whatever_its_reason() {
    let function = json!({"name": "clock", "arguments": {"zone": "UTC"}});
    let chat =
        json!({"choices": [{"message": {"tool_calls": [{"function": function}]}, "finish_reason": "stop"}]});
    let item = json!({"type": "function_call", "name": "clock", "arguments": {"zone": "UTC"}});
    let block = json!({"type": "tool_use", "name": "clock", "input": {"zone": "UTC"}});
    let part = json!({"functionCall": {"name": "clock", "args": {"zone": "UTC"}}});
    for (type_name, props, body) in [
        ("openai-model", json!({}), chat),
        ("openai-model", json!({"api": "responses"}), json!({"status": "completed", "output": [item]})),
        ("anthropic-model", json!({}), json!({"content": [block], "stop_reason": "end_turn"})),
        (
            "ollama-model",
            json!({}),
            json!({"message": {"content": "", "tool_calls": [{"function": function}]}, "done": true, "done_reason": "stop"}),
        ),
        (
            "google-model",
            json!({}),
            json!({"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}),
        ),
    ] {
        let recording = Recording::new([Reply::new(200, &[], &body.to_string())]);
        let node = Node::new(type_name, props);
        let answer = node.call(&reply(ToolChoice::Auto), &recording, ModelSettings::default()).unwrap();
        assert_eq!(answer.finish, ModelFinish::ToolCalls, "{type_name}");
        assert_eq!(answer.tool_calls, [call("call_0", "clock", r#"{"zone":"UTC"}"#)]);
    }
}

/// The calls of a request as id, name and arguments, and the ids of the results.
fn calls_in(body: &Value) -> (Vec<(String, String, Value)>, Vec<String>) {
    let text = |value: &Value, names: &[&str]| {
        let found = names.iter().find_map(|name| value.pointer(name)?.as_str());
        found.unwrap_or_default().to_owned()
    };
    let messages = ["messages", "input", "contents"]
        .iter()
        .find_map(|name| body.get(*name))
        .unwrap()
        .as_array()
        .unwrap();
    let parts = messages.iter().flat_map(|message| {
        let names = ["tool_calls", "content", "parts"];
        let inner = names.iter().find_map(|name| message.get(*name)).and_then(Value::as_array);
        inner.cloned().unwrap_or_default().into_iter().chain([message.clone()])
    });
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for part in parts {
        let places = ["/function/arguments", "/arguments", "/input", "/functionCall/args"];
        let Some(arguments) = places.iter().find_map(|place| part.pointer(place)) else {
            let id = text(&part, &["/tool_call_id", "/call_id", "/tool_use_id", "/functionResponse/id"]);
            results.extend((!id.is_empty()).then_some(id));
            continue;
        };
        let arguments = match arguments {
            Value::String(json) => serde_json::from_str(json).unwrap(),
            object => object.clone(),
        };
        let id = text(&part, &["/call_id", "/id", "/functionCall/id"]);
        calls.push((id, text(&part, &["/function/name", "/name", "/functionCall/name"]), arguments));
    }
    (calls, results)
}

#[test]
fn a_call_that_the_provider_would_refuse_is_sent_in_a_form_that_it_accepts() {
    let long = format!("chatcmpl-tool-{}", "0123456789abcdef".repeat(6));
    let calls = [
        call(&long, "functions.calculator", "not JSON"),
        call("b", &"ä".repeat(100), "[1]"),
        call("c", "", r#"{"zone": "UTC"}"#),
    ];
    for (wire, ..) in wires() {
        let messages = [
            user("Hi"),
            assistant_calls("", &calls),
            tool_result(&long, "1"),
            tool_result("b", "2"),
            tool_result("c", "3"),
        ];
        let (sent, results) = calls_in(&conversation(messages).body(&*wire));
        let arguments: Vec<Value> = sent.iter().map(|(_, _, arguments)| arguments.clone()).collect();
        assert_eq!(arguments, [json!({}), json!({}), json!({"zone": "UTC"})], "{}", wire.name());
        // Ollama has no ids and takes any name.
        if wire.name() == "ollama-chat" {
            continue;
        }
        let ids: Vec<String> = sent.iter().map(|(id, ..)| id.clone()).collect();
        assert_eq!(ids, results, "{}", wire.name());
        let limit = match wire.name() {
            "openai-chat" => 40,
            "openai-responses" => 64,
            _ => usize::MAX,
        };
        assert!(ids.iter().all(|id| !id.is_empty() && id.len() <= limit), "{ids:?}");
        let names: Vec<&str> = sent.iter().map(|(_, name, _)| name.as_str()).collect();
        assert_eq!(names, ["functions_calculator", &"_".repeat(64), "_"], "{}", wire.name());
    }
}

#[test]
fn the_schema_of_an_answer_is_not_called_an_action() {
    let schema = crate::samples::first_request_with_schema().schema.unwrap();
    for (api, place) in [("chat", "/response_format/json_schema/name"), ("responses", "/text/format/name")] {
        let node = Node::new("openai-model", json!({"model": "gpt-4o", "api": api}));
        let name = |answer_kind: &AnswerKind| node.request_for(answer_kind).body.pointer(place).cloned();
        let format = ReplyFormat::Schema(schema.clone().into());
        let reply = AnswerKind::Reply(redflow_ports::Reply { format, ..Default::default() });
        assert_eq!(name(&reply), Some(json!("answer")));
        assert_eq!(name(&action_by(&schema)), Some(json!("action")));
    }
}

#[test]
fn only_the_tool_that_may_be_called_is_sent() {
    let mut node = Node::new("openai-model", json!({"model": "gpt-4o", "api": "chat"}));
    node.tools = two_tools();
    for (only, expected) in [
        (None, &["calculator", "clock"][..]),
        (Some("clock"), &["clock"]),
        (Some("gone"), &["calculator", "clock"]),
    ] {
        let only = only.map(str::to_owned);
        let choice = ToolChoice::Required;
        let kind = AnswerKind::Reply(redflow_ports::Reply { only, choice, ..Default::default() });
        let body = node.request_for(&kind).body;
        let names: Vec<_> =
            body["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
        assert_eq!(names, expected);
    }
}
