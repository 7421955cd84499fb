use super::give_unique_ids;
use crate::ModelSettings;
use crate::recording::{DeltaLog, Node, RecordedRequest, Recording, Reply, reply};
use crate::samples::{self, assistant_calls, call, two_tools};
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::fact::Usage;
use redflow_ports::{ActionSchemas, AnswerKind, ReplyFormat, ToolChoice};
use serde_json::{Value, json};
use std::sync::Arc;

/// A node of every wire.
fn nodes(more: &Value) -> Vec<Node> {
    let azure = json!({"endpoint": "http://localhost", "deployment": "gpt-4o"});
    let rows = [
        ("openai-model", json!({})),
        ("openai-model", json!({"api": "responses"})),
        ("anthropic-model", json!({})),
        ("model.azure.openai", azure),
        ("ollama-model", json!({"model": "llama3.2"})),
        ("google-model", json!({})),
    ];
    let node = |(type_name, mut props): (&'static str, Value)| {
        props.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Node::new(type_name, props)
    };
    rows.into_iter().map(node).collect()
}

#[test]
fn a_model_without_tools_is_not_called_for_a_reply_with_tools() {
    for mut node in nodes(&json!({"capabilities": {"tools": false}})) {
        let recording = Recording::new([]);
        // It answers without tools.
        let answer = node.call(&reply(ToolChoice::Auto), &recording, ModelSettings::default());
        assert_eq!((answer.unwrap().text.as_str(), recording.requests().len()), ("hi", 1));
        node.tools = two_tools();
        for choice in [ToolChoice::Auto, ToolChoice::Required, ToolChoice::None] {
            let failure = node.call(&reply(choice), &recording, ModelSettings::default()).unwrap_err();
            assert_eq!((failure.code, recording.requests().len()), (RunErrorCode::ConfigInvalid, 1));
            let end = "takes no tools; choose another one, or set `capabilities` of its node to \
                       {\"tools\": true} if it does";
            assert!(failure.message.ends_with(end), "{}", failure.message);
        }
        // Agent Core needs no native tools.
        let action = AnswerKind::Action(ActionSchemas::default());
        assert!(node.call(&action, &recording, ModelSettings::default()).is_ok());
    }
}

#[test]
fn answers_are_streamed_while_somebody_reads_along() {
    let streams = |node: &Node, is_read: bool| {
        let (recording, log) = (Recording::new([]), DeltaLog::default());
        let observer = is_read.then_some(&log as &dyn redflow_ports::DeltaObserver);
        node.call_observed(&reply(ToolChoice::Auto), &recording, ModelSettings::default(), observer).unwrap();
        recording.requests()[0].is_stream()
    };
    for (props, alone, read) in [
        (json!({}), false, true),
        (json!({"stream": false}), false, false),
        (json!({"stream": true}), true, true),
        (json!({"capabilities": {"streaming": false}}), false, false),
    ] {
        for node in nodes(&props) {
            assert_eq!((streams(&node, false), streams(&node, true)), (alone, read), "{props}");
        }
    }
    let long = |stream: Value| Node::new("anthropic-model", json!({"maxTokens": 30_000, "stream": stream}));
    assert!(streams(&long(Value::Null), false) && !streams(&long(json!(false)), true));
}

#[test]
fn a_provider_that_refuses_to_stream_is_called_without_a_stream() {
    let refusal =
        |status: u16, error: &Value| Reply::new(status, &[], &json!({ "error": error }).to_string());
    let verify = json!({"message": "Your organization must be verified to stream this model."});
    let twice = Some([true, false].as_slice());
    for (props, status, error, expected) in [
        (json!({}), 400, verify.clone(), twice),
        (json!({}), 403, verify.clone(), twice),
        (json!({}), 422, json!({"message": "Streaming is not supported."}), twice),
        (json!({}), 400, json!({"message": "Unsupported value.", "param": "stream"}), twice),
        (json!({}), 400, json!({"message": "No.", "code": "stream_not_allowed"}), twice),
        (json!({}), 400, json!({"message": "Temperature must be 1."}), None),
        (json!({}), 400, json!({"message": "The upstream server refused."}), None),
        (json!({}), 404, verify.clone(), None),
        // The node wants a stream.
        (json!({"stream": true}), 400, verify, None),
    ] {
        let message = error.to_string();
        for node in nodes(&props) {
            let (recording, log) = (Recording::new([refusal(status, &error)]), DeltaLog::default());
            let answer = node.call_observed(
                &reply(ToolChoice::Auto),
                &recording,
                ModelSettings::default(),
                Some(&log),
            );
            let streams: Vec<bool> = recording.requests().iter().map(RecordedRequest::is_stream).collect();
            assert_eq!(streams, expected.unwrap_or(&[true]), "{props} {message}");
            assert_eq!(answer.is_ok(), expected.is_some(), "{props} {message}");
            let text: Vec<(u32, String)> = expected.iter().map(|_| (2, "hi".to_owned())).collect();
            assert_eq!(log.0.into_inner().unwrap(), text);
        }
    }
}

#[test]
fn a_streamed_answer_that_fails_is_not_repeated_without_a_stream() {
    let call = |node: &Node, script: Vec<Reply>| {
        let (recording, log) = (Recording::new(script), DeltaLog::default());
        let settings = ModelSettings::default();
        let failure =
            node.call_observed(&reply(ToolChoice::Auto), &recording, settings, Some(&log)).unwrap_err();
        (failure.code, recording.requests().len())
    };
    let events = [
        json!({"choices": [{"delta": {"content": "So"}}]}),
        json!({"error": {"message": "The stream is invalid.", "code": "invalid_stream"}}),
    ];
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let answer = Reply::new(200, &[("content-type", "text/event-stream")], &body);
    let node = Node::new("openai-model", json!({"maxRetries": 1}));
    assert_eq!(call(&node, vec![answer]), (RunErrorCode::ModelError, 1));
    // The host of the server is not what it says.
    let node = Node::new("openai-model", json!({"baseUrl": "http://stream.example/v1"}));
    assert_eq!(call(&node, vec![Reply::new(400, &[], "{}")]), (RunErrorCode::ModelError, 1));
    // The request without a stream takes no retry away, and its attempts count on.
    let refusal = Reply::new(400, &[], r#"{"error":{"message":"no","param":"stream"}}"#);
    let node = Node::new("openai-model", json!({"maxRetries": 1}));
    let script = vec![refusal, Reply::new(503, &[], ""), Reply::new(503, &[], "")];
    assert_eq!(call(&node, script), (RunErrorCode::ProviderUnavailable, 3));
}

/// A body with these calls, for each of `nodes`.
fn bodies_with_calls(names: &[Option<&str>]) -> Vec<Value> {
    let list = |item: &dyn Fn(Value) -> Value| -> Vec<Value> {
        let call = |name: &Option<&str>| name.map_or(json!({}), |name| json!({ "name": name }));
        names.iter().map(|name| item(call(name))).collect()
    };
    let typed = |kind: &'static str| {
        list(&move |mut call| {
            call["type"] = json!(kind);
            call
        })
    };
    let functions = list(&|function| json!({ "function": function }));
    let chat = json!({"choices": [{"message": {"tool_calls": functions}, "finish_reason": "tool_calls"}]});
    vec![
        chat.clone(),
        json!({"status": "completed", "output": typed("function_call")}),
        json!({"content": typed("tool_use"), "stop_reason": "tool_use"}),
        chat,
        json!({"message": {"content": "", "tool_calls": functions}, "done": true}),
        json!({"candidates": [{"content": {"parts": list(&|call| json!({ "functionCall": call }))}}]}),
    ]
}

#[test]
fn every_wire_leaves_bad_calls_to_the_agent() {
    // An agent accepts 128 calls, so it refuses 129.
    for (names, expected) in [
        (vec![Some("")], 1),
        (vec![None, Some("clock")], 2),
        (vec![Some("clock"); 128], 128),
        (vec![Some("clock"); 129], 129),
        (vec![Some("clock"); 200], 129),
    ] {
        for (node, body) in nodes(&json!({})).iter().zip(bodies_with_calls(&names)) {
            let recording = Recording::new([Reply::new(200, &[], &body.to_string())]);
            let answer = node.call(&reply(ToolChoice::Auto), &recording, ModelSettings::default()).unwrap();
            let found: Vec<(&str, &str)> =
                answer.tool_calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
            let calls = names.iter().take(expected).map(|name| (name.unwrap_or_default(), "{}"));
            assert_eq!(found, calls.collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_request_says_whether_it_is_retried() {
    for mut node in nodes(&json!({"maxRetries": 2})) {
        for (retry, requests) in [(true, 3), (false, 1)] {
            let recording = Recording::new(vec![Reply::new(503, &[], ""); 3]);
            node.retry = retry;
            let failure =
                node.call(&reply(ToolChoice::Auto), &recording, ModelSettings::default()).unwrap_err();
            assert_eq!(recording.requests().len(), requests, "{}", failure.message);
            assert_eq!(failure.code, RunErrorCode::ProviderUnavailable);
        }
    }
}

/// How a request asks for JSON.
fn json_kind(body: &Value) -> &'static str {
    let places = [
        "/response_format/type",
        "/text/format/type",
        "/output_config/format/type",
        "/format/type",
        "/format",
        "/generationConfig/responseJsonSchema/type",
        "/generationConfig/responseMimeType",
    ];
    match places.iter().find_map(|place| body.pointer(place)).and_then(Value::as_str) {
        Some("json_schema" | "object") => "schema",
        Some("json_object" | "json" | "application/json") => "mode",
        None => "",
        Some(other) => panic!("{other}"),
    }
}

#[test]
fn replies_use_the_strictest_available_json_output() {
    let schema = samples::first_request_with_schema().schema.unwrap();
    let kinds = |node: &Node| {
        let formats = [ReplyFormat::Text, ReplyFormat::Json, ReplyFormat::Schema(schema.clone().into())];
        formats.map(|format| {
            let reply = redflow_ports::Reply { format, ..Default::default() };
            json_kind(&node.request_for(&AnswerKind::Reply(reply)).body)
        })
    };
    for (can_schema, can_mode, configured, expected) in [
        (true, true, "auto", ["", "mode", "schema"]),
        (true, false, "auto", ["", "", "schema"]),
        (false, true, "auto", ["", "mode", "mode"]),
        (false, false, "auto", ["", "", ""]),
        (false, false, "json_schema", ["", "", "schema"]),
        (true, true, "json_object", ["", "mode", "mode"]),
        (true, true, "none", ["", "", ""]),
    ] {
        let capabilities = json!({"jsonSchema": can_schema, "jsonObject": can_mode});
        let props = json!({"capabilities": capabilities, "structuredOutput": configured});
        for node in nodes(&props) {
            let found = kinds(&node);
            let is_anthropic = node.request().url.ends_with("/messages");
            // Anthropic has no JSON mode.
            let expected = expected.map(|kind| if is_anthropic && kind == "mode" { "" } else { kind });
            assert_eq!(found, expected, "{props}");
        }
    }
}

#[test]
fn every_call_of_a_conversation_gets_its_own_id() {
    let earlier = |ids: &[&str]| {
        let calls: Vec<_> = ids.iter().map(|id| call(id, "clock", "{}")).collect();
        vec![Arc::new(samples::user("Hi")), Arc::new(assistant_calls("", &calls))]
    };
    let rows: [(&[&str], &[&str], &[&str]); 7] = [
        (&[], &["a", "b"], &["a", "b"]),
        (&[], &["", ""], &["call_0", "call_1"]),
        (&[], &["a", "a", "call_0"], &["a", "call_1", "call_0"]),
        (&["call_0", "call_1"], &["", ""], &["call_2", "call_3"]),
        (&["call_0"], &["call_0", "call_1"], &["call_2", "call_1"]),
        (&["call_5", "x"], &["", "x", "", "", ""], &["call_2", "call_3", "call_4", "call_6", "call_7"]),
        (&["a"], &[], &[]),
    ];
    for (taken, received, expected) in rows {
        let mut calls: Vec<_> = received.iter().map(|id| call(id, "clock", "{}")).collect();
        give_unique_ids(&mut calls, &earlier(taken));
        let ids: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, expected, "{taken:?} {received:?}");
    }
    // Ollama sends none.
    let calls = json!([{"function": {"name": "clock", "arguments": {}}}, {"function": {"name": "clock"}}]);
    let body = json!({"message": {"content": "", "tool_calls": calls}, "done": true}).to_string();
    let recording = Recording::new([Reply::new(200, &[], &body)]);
    let node = Node::new("ollama-model", json!({}));
    let answer = node.call(&reply(ToolChoice::Auto), &recording, ModelSettings::default()).unwrap();
    assert_eq!(answer.tool_calls, [call("call_0", "clock", "{}"), call("call_1", "clock", "{}")]);
}

#[test]
fn the_cost_is_estimated_if_the_provider_reports_no_tokens() {
    let price = crate::price::Price { input: 1e6, output: 1e6, ..crate::price::Price::default() };
    let priced = || {
        let prices = crate::price::Prices::from([("*".to_owned(), price)]);
        ModelSettings { prices, ..ModelSettings::default() }
    };
    for (mut node, body) in
        nodes(&json!({"model": "gpt-4o"})).into_iter().zip(bodies_with_calls(&[Some("clock")]))
    {
        let script = || Recording::new([Reply::new(200, &[], &body.to_string())]);
        let answer = node.call(&reply(ToolChoice::Auto), &script(), priced()).unwrap();
        // 15 and 12 bytes are sent, 5 and 2 are received.
        let usage = answer.usage.unwrap();
        let expected = Usage { input_tokens: 9, output_tokens: 3, estimated: true, ..Usage::default() };
        assert_eq!(usage, Usage { cost: Some(12.0), ..expected });
        node.tools = two_tools();
        let answer = node.call(&reply(ToolChoice::Auto), &script(), priced()).unwrap();
        assert!(answer.usage.unwrap().input_tokens > 9, "tools count too");
        // Without a price, the run itself estimates the tokens.
        let answer = node.call(&reply(ToolChoice::Auto), &script(), ModelSettings::default()).unwrap();
        assert_eq!(answer.usage, None);
    }
}

#[test]
fn the_info_says_whether_the_cost_is_known() {
    let price = crate::price::Price { input: 1.0, output: 1.0, ..crate::price::Price::default() };
    for (props, priced) in [
        (json!({"model": "gpt-4o"}), true),
        (json!({"model": "other"}), false),
        (json!({}), true),
        (json!({"baseURL": "http://127.0.0.1:8080/v1"}), false),
    ] {
        let prices = crate::price::Prices::from([("gpt-*".to_owned(), price)]);
        let settings = ModelSettings { prices, ..ModelSettings::default() };
        let model = Node::new("openai-model", props.clone()).build(settings).unwrap();
        assert_eq!(model.info().priced, priced, "{props}");
    }
}
