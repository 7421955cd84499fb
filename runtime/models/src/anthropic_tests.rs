use super::AnthropicMessages;
use crate::samples::call;
use crate::wire::{Framing, ProviderError, Wire, WireError};
use pretty_assertions::assert_eq;
use proptest::prelude::{Strategy, prop, proptest};
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_contract::transcript::OpaqueParts;
use serde_json::{Value, json};

fn wire() -> AnthropicMessages {
    AnthropicMessages {
        model: "claude-sonnet-5".to_owned(),
        max_tokens: 1000,
        ..AnthropicMessages::default()
    }
}

fn thought() -> [Value; 2] {
    [
        json!({"type": "thinking", "thinking": "Two calls.", "signature": "c2ln"}),
        json!({"type": "redacted_thinking", "data": "b3BhcXVl"}),
    ]
}

fn decode(body: &Value) -> Result<ModelAnswer, WireError> {
    wire().decode(body.to_string().as_bytes(), true)
}

fn answer(content: &Value, stop_reason: &Value) -> ModelAnswer {
    decode(&json!({"type": "message", "content": content, "stop_reason": stop_reason})).unwrap()
}

#[test]
fn an_answer_is_read_whole() {
    let [thinks, redacted] = thought();
    let body = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5-20260901",
        "content": [
            thinks,
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
    let expected = ModelAnswer {
        text: "One, two.".to_owned(),
        finish: ModelFinish::ToolCalls,
        usage: Some(Usage {
            input_tokens: 60,
            output_tokens: 40,
            cached_tokens: Some(30),
            cache_write_tokens: Some(20),
            reasoning_tokens: Some(5),
            cost: None,
        }),
        tool_calls: vec![
            call("toolu_1", "calculator", r#"{"b":1.0,"a":"x"}"#),
            call("call_1", "clock", "{}"),
        ],
        reasoning: Some(OpaqueParts { wire: "anthropic-messages".to_owned(), parts: thought().to_vec() }),
        model: Some("claude-sonnet-5-20260901".to_owned()),
        request_id: None,
    };
    assert_eq!(decode(&body).unwrap(), expected);
    let forgetful = wire().decode(body.to_string().as_bytes(), false).unwrap();
    assert_eq!(forgetful, ModelAnswer { reasoning: None, ..expected });
}

#[test]
fn endings() {
    use ModelFinish::{Refused, Stop, ToolCalls, Truncated};
    let cases = [
        (json!("end_turn"), Stop, ToolCalls),
        (json!("stop_sequence"), Stop, ToolCalls),
        (json!("tool_use"), ToolCalls, ToolCalls),
        (json!("max_tokens"), Truncated, Truncated),
        (json!("model_context_window_exceeded"), Truncated, Truncated),
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

#[test]
fn odd_counts_lose_no_answer() {
    let counted =
        |input_tokens, output_tokens| Some(Usage { input_tokens, output_tokens, ..Usage::default() });
    let cases = [
        ("null", None),
        ("[]", None),
        ("7", None),
        ("{}", None),
        (r#"{"input_tokens":null,"output_tokens":"3"}"#, None),
        (r#"{"input_tokens":1e999,"output_tokens":3}"#, None),
        (r#"{"input_tokens":-4,"output_tokens":3}"#, counted(0, 3)),
        (r#"{"input_tokens":2.0,"output_tokens":1e300}"#, counted(2, 0)),
        (r#"{"input_tokens":18446744073709551615,"output_tokens":3}"#, counted(0, 3)),
        (r#"{"input_tokens":2,"output_tokens":3,"output_tokens_details":[]}"#, counted(2, 3)),
    ];
    for (usage, expected) in cases {
        let body = format!(r#"{{"content":[{{"type":"text","text":"a"}}],"usage":{usage}}}"#);
        let answer = wire().decode(body.as_bytes(), false).unwrap();
        assert_eq!((answer.text.as_str(), answer.usage), ("a", expected), "{usage}");
    }
}

#[test]
fn what_is_no_answer_is_garbled() {
    let cases: [&[u8]; 12] = [
        b"",
        b"null",
        b"[]",
        b"[\"message\",\"m\",[]]",
        b"{}",
        b"{\"content\":null}",
        b"{\"content\":\"text\"}",
        b"{\"content\":[5]}",
        b"{\"content\":[{\"type\":\"text\",\"text\":5}]}",
        b"{\"content\":[{\"type\":\"tool_use\",\"id\":\"a\"}]}",
        b"{\"content\":[]} trailing",
        b"{\"content\":[],\"other\":\"\xff\"}",
    ];
    for body in cases {
        let error = wire().decode(body, true).unwrap_err();
        assert!(matches!(error, WireError::Garbled(_)), "{} {error:?}", String::from_utf8_lossy(body));
    }
    let block = json!({"type": "text", "text": "a"});
    assert!(decode(&json!({"content": vec![&block; 256]})).is_ok());
    assert_eq!(
        decode(&json!({"content": vec![&block; 257]})),
        Err(WireError::Garbled("the answer has too many blocks"))
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
    ProviderError { status, kind: kind.to_owned(), code: code.to_owned(), message: message.to_owned() }
}

#[test]
fn errors_under_a_status_of_success_get_their_own() {
    for (kind, status) in STATUSES {
        let body = json!({"type": "error", "error": {"type": kind, "message": "Sorry."}, "request_id": "r"});
        let expected = Err(WireError::Provider(error(status, kind, "", "Sorry.")));
        assert_eq!(decode(&body), expected);
        let data = body.to_string();
        for name in [Some("error"), Some("message"), None] {
            assert_eq!(
                wire().assemble(false).event(name, data.as_bytes()).map(|_| ()),
                expected.clone().map(|_| ())
            );
        }
    }
    let bare = json!({"error": {"type": "overloaded_error", "message": "Sorry."}});
    let expected = WireError::Provider(error(529, "overloaded_error", "", "Sorry."));
    assert_eq!(decode(&bare), Err(expected.clone()));
    assert_eq!(wire().assemble(false).event(None, bare.to_string().as_bytes()), Err(expected));
    assert_eq!(decode(&json!({"type": "error"})), Err(WireError::Provider(error(500, "", "", ""))));
}

#[test]
fn errors_of_every_shape() {
    let long = "é".repeat(600);
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
            error(429, &"é".repeat(100), "", &"é".repeat(500)),
        ),
        (json!({"error": null}), error(429, "", "", "")),
        (json!([]), error(429, "", "", "")),
    ];
    for (body, expected) in cases {
        assert_eq!(wire().error(429, body.to_string().as_bytes()), expected, "{body}");
    }
    for body in [b"".as_slice(), b"<html>", b"{\"error\":\"\xff\"}"] {
        assert_eq!(wire().error(502, body), error(502, "", "", ""));
    }
}

fn play(events: &[Value], reasoning: bool) -> Result<ModelAnswer, WireError> {
    let mut assembly = wire().assemble(reasoning);
    for (place, event) in events.iter().enumerate() {
        let last = assembly.event(event["type"].as_str(), event.to_string().as_bytes())?;
        assert_eq!(last, place + 1 == events.len() && event["type"] == "message_stop", "{event}");
    }
    assembly.finish()
}

fn start(index: u64, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn piece(index: u64, kind: &str, key: &str, text: &str) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, key: text}})
}

fn stop() -> Value {
    json!({"type": "message_stop"})
}

/// A whole stream in which every text comes in the pieces given.
fn stream(thoughts: &[&str], texts: &[&str], arguments: &[&str]) -> Vec<Value> {
    let mut events = vec![
        json!({"type": "message_start", "message": {
            "id": "msg_1", "model": "claude-sonnet-5", "content": [], "stop_reason": null,
            "usage": {"input_tokens": 10, "cache_read_input_tokens": 4, "output_tokens": 1},
        }}),
        json!({"type": "ping"}),
        start(0, &json!({"type": "thinking", "thinking": "", "signature": ""})),
    ];
    events.extend(thoughts.iter().map(|text| piece(0, "thinking_delta", "thinking", text)));
    events.push(piece(0, "signature_delta", "signature", "c2ln"));
    events.push(json!({"type": "content_block_stop", "index": 0}));
    events.push(start(1, &json!({"type": "text", "text": ""})));
    events.extend(texts.iter().map(|text| piece(1, "text_delta", "text", text)));
    events.push(piece(1, "citations_delta", "citation", "c"));
    events.push(json!({"type": "content_block_stop", "index": 1}));
    events.push(start(2, &json!({"type": "tool_use", "id": "toolu_1", "name": "calculator", "input": {}})));
    events.extend(arguments.iter().map(|json| piece(2, "input_json_delta", "partial_json", json)));
    events.push(json!({"type": "content_block_stop", "index": 2}));
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": null},
        "usage": {"output_tokens": 25, "cache_read_input_tokens": null},
    }));
    events.push(stop());
    events
}

fn streamed(thought: &str, text: &str, arguments: &str) -> ModelAnswer {
    let part = json!({"type": "thinking", "thinking": thought, "signature": "c2ln"});
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
        reasoning: Some(OpaqueParts { wire: "anthropic-messages".to_owned(), parts: vec![part] }),
        model: Some("claude-sonnet-5".to_owned()),
        request_id: None,
    }
}

#[test]
fn a_stream_is_put_together() {
    let events = stream(&["Let ", "me."], &["He", "llo"], &["", "{\"a\"", ": 1}"]);
    let expected = streamed("Let me.", "Hello", "{\"a\": 1}");
    assert_eq!(wire().framing(), Framing::Sse);
    assert_eq!(play(&events, true), Ok(expected.clone()));
    assert_eq!(play(&events, false), Ok(ModelAnswer { reasoning: None, ..expected }));
}

#[test]
fn arguments_that_never_come_are_empty() {
    for pieces in [[].as_slice(), &[""]] {
        assert_eq!(play(&stream(&["T"], &["A"], pieces), true), Ok(streamed("T", "A", "{}")));
    }
    let whole = start(0, &json!({"type": "tool_use", "id": "a", "name": "x", "input": {"b": 1}}));
    assert_eq!(play(&[whole, stop()], true).unwrap().tool_calls, [call("a", "x", r#"{"b":1}"#)]);
}

#[test]
fn a_stream_without_names_is_read_by_its_data() {
    let mut assembly = wire().assemble(true);
    for event in stream(&["T"], &["A"], &["{}"]) {
        let last = assembly.event(None, event.to_string().as_bytes()).unwrap();
        assert_eq!(last, event["type"] == "message_stop");
    }
    assert_eq!(assembly.finish(), Ok(streamed("T", "A", "{}")));
}

#[test]
fn what_nobody_knows_is_passed_over() {
    let mut events = stream(&["T"], &["A"], &["{}"]);
    let odd = [
        start(3, &json!({"type": "of_tomorrow", "text": 7})),
        piece(3, "text_delta", "text", "not ours"),
        piece(1, "of_tomorrow", "text", "not ours"),
        piece(1, "input_json_delta", "partial_json", "not ours"),
        start(4, &json!({"type": "redacted_thinking", "data": "b3BhcXVl"})),
        json!({"type": "of_tomorrow", "index": "x"}),
    ];
    let last = events.pop().unwrap();
    events.extend(odd);
    events.push(last);
    let mut expected = streamed("T", "A", "{}");
    let redacted = json!({"type": "redacted_thinking", "data": "b3BhcXVl"});
    expected.reasoning.as_mut().unwrap().parts.push(redacted);
    assert_eq!(play(&events, true), Ok(expected));
    let mut assembly = wire().assemble(false);
    assert_eq!(assembly.event(Some("of_tomorrow"), b"not JSON"), Ok(false));
    assert_eq!(assembly.event(None, b"{\"a\":1,\"error\":null}"), Ok(false));
}

#[test]
fn a_thinking_block_without_text_gets_one() {
    let events = [
        start(0, &json!({"type": "thinking"})),
        piece(0, "thinking_delta", "thinking", "a"),
        piece(0, "thinking_delta", "thinking", "b"),
        stop(),
    ];
    let parts = play(&events, true).unwrap().reasoning.unwrap().parts;
    assert_eq!(parts, [json!({"type": "thinking", "thinking": "ab"})]);
}

#[test]
fn a_stream_that_ends_too_early_is_cut() {
    let events = stream(&["T"], &["A"], &["{}"]);
    for end in 0..events.len() {
        assert_eq!(play(&events[..end], true), Err(WireError::Cut), "{end}");
    }
}

#[test]
fn an_error_in_a_stream_ends_it() {
    let mut events = stream(&["T"], &["A"], &["{}"]);
    let details = json!({"error_code": "enforced_spend_limit_reached"});
    let told = json!({"type": "rate_limit_error", "message": "Stop.", "details": details});
    events.insert(4, json!({"type": "error", "error": told}));
    let expected = error(429, "rate_limit_error", "enforced_spend_limit_reached", "Stop.");
    assert_eq!(play(&events, true), Err(WireError::Provider(expected)));
}

#[test]
fn events_that_are_not_what_they_say_are_garbled() {
    let text = json!({"type": "text", "text": ""});
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("message_start", b"{}".to_vec()),
        ("message_start", b"not JSON".to_vec()),
        ("content_block_start", b"{\"index\":0}".to_vec()),
        ("content_block_start", b"{\"index\":-1,\"content_block\":{}}".to_vec()),
        ("content_block_start", start(256, &text).to_string().into_bytes()),
        ("content_block_start", start(u64::MAX, &text).to_string().into_bytes()),
        ("content_block_delta", piece(0, "text_delta", "text", "a").to_string().into_bytes()),
        ("content_block_delta", b"{\"index\":0,\"delta\":7}".to_vec()),
        ("message_delta", b"{}".to_vec()),
        ("message_delta", b"[]".to_vec()),
        ("error", b"".to_vec()),
        ("message", b"[DONE]".to_vec()),
        ("message_delta", b"{\"delta\":{},\"other\":\"\xff\"}".to_vec()),
    ];
    for (name, data) in cases {
        let error = wire().assemble(true).event(Some(name), &data).unwrap_err();
        assert!(
            matches!(error, WireError::Garbled(_)),
            "{name} {} {error:?}",
            String::from_utf8_lossy(&data)
        );
    }
    let twice = play(&[start(255, &text), start(255, &text)], true);
    assert_eq!(twice, Err(WireError::Garbled("a block of the answer began twice")));
}

/// A text in pieces.
fn pieces() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[ -~äß€😀\n\"\\\\]{0,6}", 0..6)
}

fn views(pieces: &[String]) -> Vec<&str> {
    pieces.iter().map(String::as_str).collect()
}

proptest! {
    #[test]
    fn where_a_stream_is_cut_into_pieces_does_not_matter(
        thoughts in pieces(), texts in pieces(), arguments in pieces(),
    ) {
        let (thought, text, json) = (thoughts.concat(), texts.concat(), arguments.concat());
        let expected = streamed(&thought, &text, if json.is_empty() { "{}" } else { &json });
        let whole = stream(&[&thought], &[&text], &[&json]);
        assert_eq!(play(&whole, true), Ok(expected.clone()));
        let pieces = stream(&views(&thoughts), &views(&texts), &views(&arguments));
        assert_eq!(play(&pieces, true), Ok(expected));
    }
}
