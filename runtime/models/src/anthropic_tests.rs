use super::AnthropicMessages;
use crate::event_stream::StreamFormat;
use crate::own_parts::MAX_KEPT_BYTES;
use crate::samples::{as_strs, call, opaque, text_parts};
use crate::wire::Reasoning::{self, Discard, Keep};
use crate::wire::{ProviderError, Wire, WireError};
use pretty_assertions::assert_eq;
use proptest::prelude::proptest;
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use serde_json::{Value, json};

fn wire() -> AnthropicMessages {
    AnthropicMessages {
        model: "claude-sonnet-5".to_owned(),
        max_tokens: 1000,
        ..AnthropicMessages::default()
    }
}

fn thinking_blocks() -> [Value; 2] {
    [
        json!({"type": "thinking", "thinking": "Two calls.", "signature": "c2ln"}),
        json!({"type": "redacted_thinking", "data": "b3BhcXVl"}),
    ]
}

fn decode(body: &Value) -> Result<ModelAnswer, WireError> {
    wire().decode(body.to_string().as_bytes(), Keep)
}

fn answer(content: &Value, stop_reason: &Value) -> ModelAnswer {
    decode(&json!({"type": "message", "content": content, "stop_reason": stop_reason})).unwrap()
}

#[test]
fn decodes_a_whole_answer() {
    let [thinking, redacted] = thinking_blocks();
    let body = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5-20260901",
        "content": [
            thinking,
            redacted,
            {"type": "text", "text": "One, ", "citations": null},
            {"type": "server_tool_use", "id": "s", "name": 5, "text": 7},
            {"type": "text", "text": "two."},
            {"type": "tool_use", "id": "toolu_1", "name": "calculator", "input": {"b": 1.0, "a": "x"}, "caller": {}},
            {"type": "tool_use", "name": "clock"},
        ],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": {
            "input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 30,
            "output_tokens": 40, "output_tokens_details": {"thinking_tokens": 5}, "service_tier": "standard",
        },
    });
    // The blocks as they came, each with the values that a request needs.
    let mut parts = body["content"].as_array().unwrap().clone();
    parts[6]["input"] = json!({});
    let expected = ModelAnswer {
        text: "One, two.".to_owned(),
        finish: ModelFinish::ToolCalls,
        usage: Some(Usage {
            input_tokens: 60,
            output_tokens: 40,
            cached_tokens: Some(30),
            cache_write_tokens: Some(20),
            reasoning_tokens: Some(5),
            ..Usage::default()
        }),
        tool_calls: vec![call("toolu_1", "calculator", r#"{"b":1.0,"a":"x"}"#), call("", "clock", "{}")],
        reasoning: opaque("anthropic-messages", &parts),
        model: Some("claude-sonnet-5-20260901".to_owned()),
        request_id: None,
        fell_over: Vec::new(),
        refused: Vec::new(),
        raw: None,
    };
    assert_eq!(decode(&body).unwrap(), expected);
    let without_reasoning = wire().decode(body.to_string().as_bytes(), Discard).unwrap();
    assert_eq!(without_reasoning, ModelAnswer { reasoning: None, ..expected });
}

#[test]
fn stop_reasons() {
    use ModelFinish::{Refused, Stop, ToolCalls, Truncated};
    let cases = [
        (json!("end_turn"), Stop, ToolCalls),
        (json!("stop_sequence"), Stop, ToolCalls),
        (json!("tool_use"), ToolCalls, ToolCalls),
        (json!("max_tokens"), Truncated, Truncated),
        (json!("pause_turn"), Truncated, Truncated),
        (json!("refusal"), Refused, Refused),
        (json!("of_tomorrow"), Stop, ToolCalls),
        (Value::Null, Stop, ToolCalls),
    ];
    for (reason, without, with) in cases {
        assert_eq!(answer(&json!([]), &reason).finish, without, "{reason}");
        let call = json!([{"type": "tool_use", "id": "a", "name": "x", "input": {}}]);
        assert_eq!(answer(&call, &reason).finish, with, "{reason} with a call");
    }
}

/// A higher limit of tokens would not help, but a model with a larger window would.
#[test]
fn an_answer_that_fills_the_window_is_too_long() {
    let reason = json!("model_context_window_exceeded");
    let expected = WireError::Provider(error(400, "model_context_window_exceeded", "", ""));
    let body = json!({"content": [{"type": "text", "text": "So"}], "stop_reason": reason});
    assert_eq!(decode(&body), Err(expected.clone()));
    let mut assembler = wire().assembler(Discard);
    for event in
        [json!({"type": "message_delta", "delta": {"stop_reason": reason}}), json!({"type": "message_stop"})]
    {
        assembler.add_event(None, event.to_string().as_bytes()).unwrap();
    }
    assert_eq!(assembler.finish(), Err(expected));
}

#[test]
fn invalid_usage_never_fails_an_answer() {
    let usage = |input_tokens, output_tokens| Some(Usage { input_tokens, output_tokens, ..Usage::default() });
    let cases = [
        ("null", None),
        ("[]", None),
        ("7", None),
        ("{}", None),
        (r#"{"input_tokens":null,"output_tokens":"3"}"#, None),
        (r#"{"input_tokens":1e999,"output_tokens":3}"#, None),
        (r#"{"input_tokens":-4,"output_tokens":3}"#, usage(0, 3)),
        (r#"{"input_tokens":2.0,"output_tokens":1e300}"#, usage(2, 0)),
        (r#"{"input_tokens":18446744073709551615,"output_tokens":3}"#, usage(0, 3)),
        (r#"{"input_tokens":2,"output_tokens":3,"output_tokens_details":[]}"#, usage(2, 3)),
    ];
    for (json, expected) in cases {
        let body = format!(r#"{{"content":[{{"type":"text","text":"a"}}],"usage":{json}}}"#);
        let answer = wire().decode(body.as_bytes(), Discard).unwrap();
        assert_eq!((answer.text.as_str(), answer.usage), ("a", expected), "{json}");
    }
}

#[test]
fn malformed_answers() {
    let cases: [&[u8]; 11] = [
        b"",
        b"null",
        b"[]",
        b"[\"message\",\"m\",[]]",
        b"{}",
        b"{\"content\":null}",
        b"{\"content\":\"text\"}",
        b"{\"content\":[5]}",
        b"{\"content\":[{\"type\":\"text\",\"text\":5}]}",
        b"{\"content\":[]} trailing",
        b"{\"content\":[],\"other\":\"\xff\"}",
    ];
    for body in cases {
        let error = wire().decode(body, Keep).unwrap_err();
        assert!(matches!(error, WireError::Malformed(_)), "{} {error:?}", String::from_utf8_lossy(body));
    }
    let block = json!({"type": "text", "text": "a"});
    assert!(decode(&json!({"content": vec![&block; 256]})).is_ok());
    assert_eq!(
        decode(&json!({"content": vec![&block; 257]})),
        Err(WireError::Malformed("the answer has too many blocks"))
    );
}

const STATUSES: [(&str, u16); 13] = [
    ("invalid_request_error", 400),
    ("authentication_error", 401),
    ("billing_error", 402),
    ("permission_error", 403),
    ("not_found_error", 404),
    ("conflict_error", 409),
    ("request_too_large", 413),
    ("rate_limit_error", 429),
    ("api_error", 500),
    ("timeout_error", 504),
    ("overloaded_error", 529),
    ("of_tomorrow", 500),
    ("", 500),
];

fn error(status: u16, kind: &str, code: &str, message: &str) -> ProviderError {
    ProviderError {
        status,
        kind: kind.to_owned(),
        code: code.to_owned(),
        message: message.to_owned(),
        ..Default::default()
    }
}

#[test]
fn errors_with_a_success_status_get_their_usual_status() {
    for (kind, status) in STATUSES {
        let body = json!({"type": "error", "error": {"type": kind, "message": "Sorry."}, "request_id": "r"});
        let expected = Err(WireError::Provider(error(status, kind, "", "Sorry.")));
        assert_eq!(decode(&body), expected);
        let data = body.to_string();
        for name in [Some("error"), Some("message"), None] {
            assert_eq!(
                wire().assembler(Discard).add_event(name, data.as_bytes()).map(|_| ()),
                expected.clone().map(|_| ())
            );
        }
    }
    let bare = json!({"error": {"type": "overloaded_error", "message": "Sorry."}});
    let expected = WireError::Provider(error(529, "overloaded_error", "", "Sorry."));
    assert_eq!(decode(&bare), Err(expected.clone()));
    assert_eq!(wire().assembler(Discard).add_event(None, bare.to_string().as_bytes()), Err(expected));
    assert_eq!(decode(&json!({"type": "error"})), Err(WireError::Provider(error(500, "", "", ""))));
}

#[test]
fn errors_of_every_form() {
    let long = "é".repeat(5_000);
    let cases = [
        (
            json!({"type": "error", "error": {
                "type": "rate_limit_error", "message": "Slow.", "details": {"error_code": "ramp_limit_exceeded"},
            }}),
            error(429, "rate_limit_error", "ramp_limit_exceeded", "Slow."),
        ),
        (
            json!({"error": {"message": "No.", "type": "insufficient_quota", "code": "no_credit", "param": null}}),
            error(429, "insufficient_quota", "no_credit", "No."),
        ),
        (json!({"error": {"message": "No.", "type": null, "code": 7}}), error(429, "", "7", "No.")),
        (json!({"error": "No."}), error(429, "", "", "No.")),
        (
            json!({"error": {"message": long, "type": long}}),
            error(429, &"é".repeat(100), "", &"é".repeat(4_000)),
        ),
        (json!({"error": null}), error(429, "", "", "")),
        (json!([]), error(429, "", "", "")),
    ];
    for (body, expected) in cases {
        assert_eq!(wire().parse_error(429, body.to_string().as_bytes()), expected, "{body}");
    }
    for body in [b"".as_slice(), b"<html>", b"{\"error\":\"\xff\"}"] {
        assert_eq!(wire().parse_error(502, body), error(502, "", "", ""));
    }
}

fn assemble(events: &[Value], reasoning: Reasoning) -> Result<ModelAnswer, WireError> {
    let mut assembler = wire().assembler(reasoning);
    for (index, event) in events.iter().enumerate() {
        let last = assembler.add_event(event["type"].as_str(), event.to_string().as_bytes())?;
        assert_eq!(last, index + 1 == events.len() && event["type"] == "message_stop", "{event}");
    }
    assembler.finish()
}

fn start(index: u64, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, kind: &str, key: &str, text: &str) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, key: text}})
}

fn stop() -> Value {
    json!({"type": "message_stop"})
}

/// A whole stream, in which every text arrives in the given parts.
fn stream(thinking: &[&str], texts: &[&str], arguments: &[&str]) -> Vec<Value> {
    let mut events = vec![
        json!({"type": "message_start", "message": {
            "id": "msg_1", "model": "claude-sonnet-5", "content": [], "stop_reason": null,
            "usage": {"input_tokens": 10, "cache_read_input_tokens": 4, "output_tokens": 1},
        }}),
        json!({"type": "ping"}),
        start(0, &json!({"type": "thinking", "thinking": "", "signature": ""})),
    ];
    events.extend(thinking.iter().map(|text| delta(0, "thinking_delta", "thinking", text)));
    events.push(delta(0, "signature_delta", "signature", "c2ln"));
    events.push(json!({"type": "content_block_stop", "index": 0}));
    events.push(start(1, &json!({"type": "text", "text": ""})));
    events.extend(texts.iter().map(|text| delta(1, "text_delta", "text", text)));
    events.push(delta(1, "citations_delta", "citation", "c"));
    events.push(json!({"type": "content_block_stop", "index": 1}));
    events.push(start(2, &json!({"type": "tool_use", "id": "toolu_1", "name": "calculator", "input": {}})));
    events.extend(arguments.iter().map(|json| delta(2, "input_json_delta", "partial_json", json)));
    events.push(json!({"type": "content_block_stop", "index": 2}));
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": null},
        "usage": {"output_tokens": 25, "cache_read_input_tokens": null},
    }));
    events.push(stop());
    events
}

fn streamed_answer(thinking: &str, text: &str, arguments: &str) -> ModelAnswer {
    let input: Value = serde_json::from_str(arguments).unwrap_or_default();
    let input = if input.is_object() { input } else { json!({}) };
    let parts = [
        json!({"type": "thinking", "thinking": thinking, "signature": "c2ln"}),
        json!({"type": "text", "text": text}),
        json!({"type": "tool_use", "id": "toolu_1", "name": "calculator", "input": input}),
    ];
    ModelAnswer {
        text: text.to_owned(),
        finish: ModelFinish::ToolCalls,
        usage: Some(Usage {
            input_tokens: 14,
            output_tokens: 25,
            cached_tokens: Some(4),
            ..Usage::default()
        }),
        tool_calls: vec![call("toolu_1", "calculator", arguments)],
        reasoning: opaque("anthropic-messages", &parts),
        model: Some("claude-sonnet-5".to_owned()),
        request_id: None,
        fell_over: Vec::new(),
        refused: Vec::new(),
        raw: None,
    }
}

#[test]
fn assembles_a_stream() {
    let events = stream(&["Let ", "me."], &["He", "llo"], &["", "{\"a\"", ": 1}"]);
    let expected = streamed_answer("Let me.", "Hello", "{\"a\": 1}");
    assert_eq!(wire().stream_format(), StreamFormat::Sse);
    assert_eq!(assemble(&events, Keep), Ok(expected.clone()));
    assert_eq!(assemble(&events, Discard), Ok(ModelAnswer { reasoning: None, ..expected }));
}

#[test]
fn missing_arguments_become_an_empty_object() {
    for parts in [[].as_slice(), &[""]] {
        assert_eq!(assemble(&stream(&["T"], &["A"], parts), Keep), Ok(streamed_answer("T", "A", "{}")));
    }
    let whole = start(0, &json!({"type": "tool_use", "id": "a", "name": "x", "input": {"b": 1}}));
    assert_eq!(assemble(&[whole, stop()], Keep).unwrap().tool_calls, [call("a", "x", r#"{"b":1}"#)]);
}

#[test]
fn the_data_replaces_missing_event_names() {
    let mut assembler = wire().assembler(Keep);
    for event in stream(&["T"], &["A"], &["{}"]) {
        let last = assembler.add_event(None, event.to_string().as_bytes()).unwrap();
        assert_eq!(last, event["type"] == "message_stop");
    }
    assert_eq!(assembler.finish(), Ok(streamed_answer("T", "A", "{}")));
}

#[test]
fn unknown_events_and_blocks_are_ignored() {
    let mut events = stream(&["T"], &["A"], &["{}"]);
    let unknown = [
        start(3, &json!({"type": "of_tomorrow", "text": 7})),
        delta(3, "text_delta", "text", "ignored"),
        delta(1, "of_tomorrow", "text", "ignored"),
        delta(1, "input_json_delta", "partial_json", "ignored"),
        start(4, &json!({"type": "redacted_thinking", "data": "b3BhcXVl"})),
        json!({"type": "of_tomorrow", "index": "x"}),
    ];
    let last = events.pop().unwrap();
    events.extend(unknown);
    events.push(last);
    let mut expected = streamed_answer("T", "A", "{}");
    // A block with deltas that this wire does not know is not whole.
    let redacted = json!({"type": "redacted_thinking", "data": "b3BhcXVl"});
    expected.reasoning.as_mut().unwrap().parts.push(redacted);
    assert_eq!(assemble(&events, Keep), Ok(expected));
    let mut assembler = wire().assembler(Discard);
    assert_eq!(assembler.add_event(Some("of_tomorrow"), b"not JSON"), Ok(false));
    assert_eq!(assembler.add_event(None, b"{\"a\":1,\"error\":null}"), Ok(false));
}

#[test]
fn blocks_are_kept_only_if_text_and_calls_do_not_give_them_again() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let call = json!({"type": "tool_use", "id": "a", "name": "x", "input": {}});
    let thought = json!({"type": "redacted_thinking", "data": "b3BhcXVl"});
    for (content, is_kept) in [
        (vec![text("a"), call.clone()], false),
        (vec![text("a"), text(" \n"), call.clone(), call.clone()], false),
        (vec![text("a"), text("b")], true),
        (vec![call, text("a")], true),
        (vec![thought], true),
    ] {
        let parts = answer(&json!(content), &Value::Null).reasoning.map(|opaque| opaque.parts);
        assert_eq!(parts, is_kept.then_some(content));
    }
    // More than a run can store with the answer.
    let large = "x".repeat(MAX_KEPT_BYTES / 2);
    let long = answer(&json!([text(&large), text(&large)]), &Value::Null);
    assert_eq!((long.text.len(), long.reasoning), (large.len() * 2, None));
}

#[test]
fn a_stream_is_measured_by_what_it_holds() {
    let mut assembler = wire().assembler(Keep);
    for event in stream(&["Let ", "me."], &["He", "llo"], &["", "{\"a\"", ": 1}"]) {
        assembler.add_event(None, event.to_string().as_bytes()).unwrap();
    }
    // The text, both inputs, the thought and its signature.
    assert_eq!(assembler.held_bytes(), 5 + 2 + 8 + 7 + 4);
}

#[test]
fn a_block_of_an_unknown_type_is_held_too() {
    let mut assembler = wire().assembler(Keep);
    let large = start(0, &json!({"type": "of_tomorrow", "content": ["x".repeat(100_000)]}));
    assembler.add_event(None, large.to_string().as_bytes()).unwrap();
    assert!(assembler.held_bytes() > 90_000);
}

#[test]
fn a_thinking_block_may_start_without_text() {
    let events = [
        start(0, &json!({"type": "thinking"})),
        delta(0, "thinking_delta", "thinking", "a"),
        delta(0, "thinking_delta", "thinking", "b"),
        stop(),
    ];
    let parts = assemble(&events, Keep).unwrap().reasoning.unwrap().parts;
    assert_eq!(parts, [json!({"type": "thinking", "thinking": "ab"})]);
}

#[test]
fn a_stream_that_ends_too_early_is_interrupted() {
    let events = stream(&["T"], &["A"], &["{}"]);
    for end in 0..events.len() {
        assert_eq!(assemble(&events[..end], Keep), Err(WireError::Interrupted), "{end}");
    }
}

#[test]
fn an_error_in_a_stream_ends_it() {
    let mut events = stream(&["T"], &["A"], &["{}"]);
    let details = json!({"error_code": "enforced_spend_limit_reached"});
    let reported = json!({"type": "rate_limit_error", "message": "Stop.", "details": details});
    events.insert(4, json!({"type": "error", "error": reported}));
    let expected = error(429, "rate_limit_error", "enforced_spend_limit_reached", "Stop.");
    assert_eq!(assemble(&events, Keep), Err(WireError::Provider(expected)));
}

#[test]
fn malformed_events() {
    let text = json!({"type": "text", "text": ""});
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("message_start", b"{}".to_vec()),
        ("message_start", b"not JSON".to_vec()),
        ("content_block_start", b"{\"index\":0}".to_vec()),
        ("content_block_start", b"{\"index\":-1,\"content_block\":{}}".to_vec()),
        ("content_block_start", start(256, &text).to_string().into_bytes()),
        ("content_block_start", start(u64::MAX, &text).to_string().into_bytes()),
        ("content_block_delta", delta(0, "text_delta", "text", "a").to_string().into_bytes()),
        ("content_block_delta", b"{\"index\":0,\"delta\":7}".to_vec()),
        ("message_delta", b"{}".to_vec()),
        ("message_delta", b"[]".to_vec()),
        ("error", b"".to_vec()),
        ("message", b"[DONE]".to_vec()),
        ("message_delta", b"{\"delta\":{},\"other\":\"\xff\"}".to_vec()),
    ];
    for (name, data) in cases {
        let error = wire().assembler(Keep).add_event(Some(name), &data).unwrap_err();
        assert!(
            matches!(error, WireError::Malformed(_)),
            "{name} {} {error:?}",
            String::from_utf8_lossy(&data)
        );
    }
    let twice = assemble(&[start(255, &text), start(255, &text)], Keep);
    assert_eq!(twice, Err(WireError::Malformed("a block of the answer started twice")));
}

proptest! {
    #[test]
    fn the_answer_does_not_depend_on_how_it_is_split(
        thinking in text_parts(), texts in text_parts(), arguments in text_parts(),
    ) {
        let (thought, text, json) = (thinking.concat(), texts.concat(), arguments.concat());
        let expected = streamed_answer(&thought, &text, if json.is_empty() { "{}" } else { &json });
        let whole = stream(&[&thought], &[&text], &[&json]);
        assert_eq!(assemble(&whole, Keep), Ok(expected.clone()));
        let parts = stream(&as_strs(&thinking), &as_strs(&texts), &as_strs(&arguments));
        assert_eq!(assemble(&parts, Keep), Ok(expected));
    }
}
