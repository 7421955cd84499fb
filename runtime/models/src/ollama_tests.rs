use super::OllamaChat;
use crate::samples::{
    Sample, call, calling, check_golden, first, first_by_schema, later, model, of, offered, recalled, result,
    thinking, thoughtful_turn, tool, tool_turn, user,
};
use crate::wire::{Framing, ProviderError, Wire, WireError};
use pretty_assertions::assert_eq;
use proptest::prelude::{Strategy, prop, proptest};
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_contract::transcript::OpaqueParts;
use redflow_ports::ToolChoice;
use serde_json::{Value, json};

fn wire() -> OllamaChat {
    OllamaChat { model: "qwen3".to_owned(), ..OllamaChat::default() }
}

fn thought() -> [Value; 1] {
    [json!({"thinking": "Two calls."})]
}

fn everything() -> OllamaChat {
    OllamaChat {
        temperature: Some(0.7),
        top_p: Some(0.9),
        top_k: Some(40),
        seed: Some(-7),
        num_predict: Some(1000),
        num_ctx: Some(8192),
        stop: vec!["END".to_owned()],
        keep_alive: Some("5m".to_owned()),
        think: Some(false),
        ..wire()
    }
}

#[test]
fn requests_are_as_they_were() {
    let thinks = OllamaChat { think: Some(true), ..wire() };
    let cases = [
        ("first", wire(), first()),
        ("first-schema", wire(), first_by_schema()),
        ("later", wire(), later()),
        ("recalled", wire(), recalled()),
        ("tools", wire(), offered()),
        ("tool-turn", wire(), tool_turn()),
        ("sampling", everything(), first_by_schema()),
        ("stream", wire(), Sample { stream: true, ..first() }),
        ("thinking", thinks, thoughtful_turn(wire().name(), &thought())),
    ];
    for (name, wire, sample) in cases {
        check_golden(&format!("ollama-{name}"), &wire, &sample);
    }
}

#[test]
fn what_is_not_set_is_not_sent() {
    let body = of([user("a")]).body(&wire());
    assert_eq!(
        body,
        json!({"model": "qwen3", "messages": [{"role": "user", "content": "a"}], "stream": false})
    );
    let seeded = of([user("a")]).body(&OllamaChat { seed: Some(0), ..wire() });
    assert_eq!(seeded["options"], json!({"seed": 0}));
}

#[test]
fn a_time_without_a_unit_is_a_number() {
    let cases = [("5m", json!("5m")), ("-1", json!(-1)), ("300", json!(300)), ("", json!(""))];
    for (text, sent) in cases {
        let wire = OllamaChat { keep_alive: Some(text.to_owned()), ..wire() };
        assert_eq!(of([user("a")]).body(&wire)["keep_alive"], sent);
    }
}

#[test]
fn where_no_tool_may_be_called_none_is_offered() {
    for (choice, offers) in
        [(ToolChoice::Auto, true), (ToolChoice::Required, true), (ToolChoice::None, false)]
    {
        let body = Sample { choice, ..offered() }.body(&wire());
        assert_eq!((body.get("tools").is_some(), body.get("tool_choice")), (offers, None));
    }
    let bare =
        Sample { tools: vec![tool("x", "", Some(json!({"required": []})))], ..offered() }.body(&wire());
    let function = json!({"name": "x", "description": "", "parameters": {"type": "object", "required": []}});
    assert_eq!(bare["tools"], json!([{"type": "function", "function": function}]));
}

#[test]
fn a_result_names_the_tool_of_its_own_call() {
    let turn = |name: &str| [calling("", &[call("call_0", name, "{}")]), result("call_0", "1")];
    let sample = of(turn("x").into_iter().chain(turn("y")).chain([
        result("other", "2"),
        model("z"),
        result("call_0", "3"),
    ]));
    let body = sample.body(&wire());
    let names: Vec<&Value> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| &message["tool_name"])
        .collect();
    assert_eq!(names, [&json!("x"), &json!("y"), &Value::Null, &Value::Null]);
}

#[test]
fn arguments_are_an_object() {
    for (arguments, sent) in [(r#"{"a":1}"#, json!({"a": 1})), ("", json!({})), ("[1]", json!({}))] {
        let body = of([calling("", &[call("a", "x", arguments)])]).body(&wire());
        let function = json!({"name": "x", "arguments": sent});
        assert_eq!(body["messages"][0]["tool_calls"], json!([{"function": function}]));
    }
}

#[test]
fn thoughts_go_back_to_their_own_wire_if_they_are_wanted() {
    let thinks = |wire: &str, part| thinking(wire, &[part], model("Hm."));
    let cases = [
        (thinks("ollama-chat", json!({"thinking": "a"})), true, Some(json!("a"))),
        (thinks("ollama-chat", json!({"thinking": "a"})), false, None),
        (thinks("ollama-chat", json!({"thinking": 7})), true, None),
        (thinks("anthropic-messages", json!({"thinking": "a"})), true, None),
    ];
    for (message, reasoning, sent) in cases {
        let body = Sample { reasoning, ..of([message]) }.body(&wire());
        assert_eq!(body["messages"][0].get("thinking"), sent.as_ref());
    }
}

fn decode(body: &Value) -> Result<ModelAnswer, WireError> {
    wire().decode(body.to_string().as_bytes(), true)
}

#[test]
fn an_answer_is_read_whole() {
    let body = json!({
        "model": "qwen3", "created_at": "2026-01-01T00:00:00Z",
        "message": {
            "role": "assistant", "content": "Hello", "thinking": "Hm.", "images": null,
            "tool_calls": [
                {"function": {"index": 0, "name": "calculator", "arguments": {"b": 1.0, "a": "x"}}},
                {"id": "own", "function": {"name": "clock", "arguments": {}}},
                {"id": "", "function": {"name": "clock"}},
                {"function": {"name": "text", "arguments": "{\"a\": 1}"}},
                {"function": {"name": "blank", "arguments": ""}},
            ],
        },
        "done": true, "done_reason": "stop", "total_duration": 5, "prompt_eval_count": 12, "eval_count": 7,
    });
    let expected = ModelAnswer {
        text: "Hello".to_owned(),
        finish: ModelFinish::ToolCalls,
        usage: Some(Usage { input_tokens: 12, output_tokens: 7, ..Usage::default() }),
        tool_calls: vec![
            call("call_0", "calculator", r#"{"b":1.0,"a":"x"}"#),
            call("own", "clock", "{}"),
            call("call_2", "clock", "{}"),
            call("call_3", "text", "{\"a\": 1}"),
            call("call_4", "blank", "{}"),
        ],
        reasoning: Some(OpaqueParts {
            wire: "ollama-chat".to_owned(),
            parts: vec![json!({"thinking": "Hm."})],
        }),
        model: Some("qwen3".to_owned()),
        request_id: None,
    };
    assert_eq!(decode(&body), Ok(expected.clone()));
    let forgetful = wire().decode(body.to_string().as_bytes(), false);
    assert_eq!(forgetful, Ok(ModelAnswer { reasoning: None, ..expected }));
}

#[test]
fn endings() {
    use ModelFinish::{Stop, ToolCalls, Truncated};
    let cases = [
        (json!("stop"), Stop, ToolCalls),
        (json!("length"), Truncated, Truncated),
        (json!("load"), Stop, ToolCalls),
        (json!("unload"), Stop, ToolCalls),
        (Value::Null, Stop, ToolCalls),
    ];
    for (reason, without, with) in cases {
        let plain = json!({"message": {"content": ""}, "done": true, "done_reason": reason});
        assert_eq!(decode(&plain).unwrap().finish, without, "{reason}");
        let calls = json!([{"function": {"name": "x", "arguments": {}}}]);
        let calling = json!({"message": {"tool_calls": calls}, "done": true, "done_reason": reason});
        assert_eq!(decode(&calling).unwrap().finish, with, "{reason} with a call");
    }
}

#[test]
fn odd_counts_lose_no_answer() {
    let counted =
        |input_tokens, output_tokens| Some(Usage { input_tokens, output_tokens, ..Usage::default() });
    let cases = [
        ("null", "null", None),
        ("1e999", "\"7\"", None),
        ("-1", "[]", None),
        ("3.0", "-1", counted(3, 0)),
        ("null", "4", counted(0, 4)),
    ];
    for (read, written, usage) in cases {
        let body =
            format!(r#"{{"message":{{"content":"a"}},"prompt_eval_count":{read},"eval_count":{written}}}"#);
        let answer = wire().decode(body.as_bytes(), false).unwrap();
        assert_eq!((answer.text.as_str(), answer.usage), ("a", usage), "{body}");
    }
}

#[test]
fn what_is_no_answer_is_garbled() {
    let cases: [&[u8]; 9] = [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"{\"message\":null}",
        b"{\"message\":{\"content\":5}}",
        b"{\"message\":{\"tool_calls\":[{\"function\":{}}]}}",
        b"{\"message\":{\"content\":\"a\"}}\n{\"done\":true}",
        b"{\"message\":{\"content\":\"a\"},\"other\":\"\xff\"}",
    ];
    for body in cases {
        let error = wire().decode(body, true).unwrap_err();
        assert!(matches!(error, WireError::Garbled(_)), "{} {error:?}", String::from_utf8_lossy(body));
    }
}

fn error(status: u16, message: &str) -> ProviderError {
    ProviderError { status, message: message.to_owned(), ..ProviderError::default() }
}

#[test]
fn errors_of_every_shape() {
    let cases = [
        (404, json!({"error": "model \"x\" not found"}), error(404, "model \"x\" not found")),
        (400, json!({"error": {"message": "No."}}), error(400, "No.")),
        (500, json!({"error": "a".repeat(600)}), error(500, &"a".repeat(500))),
        (503, json!({}), error(503, "")),
        (503, json!("text"), error(503, "")),
    ];
    for (status, body, expected) in cases {
        assert_eq!(wire().error(status, body.to_string().as_bytes()), expected, "{body}");
    }
    assert_eq!(wire().error(502, b"<html>"), error(502, ""));
}

#[test]
fn an_error_under_a_status_of_success_is_one_of_the_server() {
    for body in [json!({"error": "model not found"}), json!({"error": {"message": "model not found"}})] {
        let expected = WireError::Provider(error(500, "model not found"));
        assert_eq!(decode(&body), Err(expected.clone()));
        let mut assembly = wire().assemble(false);
        assert_eq!(assembly.event(None, &line("a")), Ok(false));
        assert_eq!(assembly.event(None, body.to_string().as_bytes()), Err(expected));
    }
}

fn line(content: &str) -> Vec<u8> {
    json!({"model": "qwen3", "message": {"role": "assistant", "content": content}, "done": false})
        .to_string()
        .into_bytes()
}

fn play(lines: &[Value], reasoning: bool) -> Result<ModelAnswer, WireError> {
    let mut assembly = wire().assemble(reasoning);
    for line in lines {
        assert_eq!(assembly.event(None, line.to_string().as_bytes())?, line["done"] == true);
    }
    assembly.finish()
}

/// A whole stream in which every text comes in the pieces given.
fn stream(thoughts: &[&str], texts: &[&str]) -> Vec<Value> {
    let part = |message: &Value| json!({"model": "qwen3", "message": message, "done": false});
    let calls = |name: &str| json!([{"function": {"name": name, "arguments": {"a": 1}}}]);
    let mut lines: Vec<Value> =
        thoughts.iter().map(|text| part(&json!({"content": "", "thinking": text}))).collect();
    lines.extend(texts.iter().map(|text| part(&json!({"content": text}))));
    lines.push(part(&json!({"content": "", "tool_calls": calls("x")})));
    lines.push(part(&json!({"content": "", "tool_calls": calls("y")})));
    lines.push(json!({"of": "tomorrow", "done": false}));
    lines.push(json!({
        "model": "qwen3", "message": {"role": "assistant", "content": ""},
        "done": true, "done_reason": "stop", "prompt_eval_count": 12, "eval_count": 7,
    }));
    lines
}

fn streamed(thought: &str, text: &str) -> ModelAnswer {
    let parts = vec![json!({"thinking": thought})];
    ModelAnswer {
        text: text.to_owned(),
        finish: ModelFinish::ToolCalls,
        usage: Some(Usage { input_tokens: 12, output_tokens: 7, ..Usage::default() }),
        tool_calls: vec![call("call_0", "x", r#"{"a":1}"#), call("call_1", "y", r#"{"a":1}"#)],
        reasoning: (!thought.is_empty()).then(|| OpaqueParts { wire: "ollama-chat".to_owned(), parts }),
        model: Some("qwen3".to_owned()),
        request_id: None,
    }
}

#[test]
fn a_stream_is_put_together() {
    let lines = stream(&["Let ", "me."], &["He", "llo"]);
    assert_eq!(wire().framing(), Framing::Lines);
    assert_eq!(play(&lines, true), Ok(streamed("Let me.", "Hello")));
    let forgetful = ModelAnswer { reasoning: None, ..streamed("Let me.", "Hello") };
    assert_eq!(play(&lines, false), Ok(forgetful));
    assert_eq!(wire().assemble(true).event(None, b" \r"), Ok(false));
}

#[test]
fn a_stream_that_ends_too_early_is_cut() {
    let lines = stream(&["T"], &["A"]);
    for end in 0..lines.len() {
        assert_eq!(play(&lines[..end], true), Err(WireError::Cut), "{end}");
    }
}

#[test]
fn lines_that_are_none_are_garbled() {
    for data in [b"data: {}".as_slice(), b"[]", b"{", b"{\"done\":false,\"other\":\"\xff\"}"] {
        let error = wire().assemble(true).event(None, data).unwrap_err();
        assert!(matches!(error, WireError::Garbled(_)), "{error:?}");
    }
}

#[test]
fn calls_are_bounded() {
    let calls = |count| {
        let call = json!({"function": {"name": "x", "arguments": {}}});
        json!({"message": {"content": "", "tool_calls": vec![call; count]}, "done": false})
    };
    let end = json!({"message": {"content": ""}, "done": true});
    let full = play(&[calls(64), calls(64), end], true).unwrap();
    assert_eq!(full.tool_calls.len(), 128);
    let expected = Err(WireError::Garbled("the answer asks for too many calls"));
    assert_eq!(play(&[calls(64), calls(65)], true), expected);
    assert_eq!(decode(&calls(129)), expected);
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
    fn where_a_stream_is_cut_into_pieces_does_not_matter(thoughts in pieces(), texts in pieces()) {
        let expected = streamed(&thoughts.concat(), &texts.concat());
        assert_eq!(play(&stream(&[&thoughts.concat()], &[&texts.concat()]), true), Ok(expected.clone()));
        assert_eq!(play(&stream(&views(&thoughts), &views(&texts)), true), Ok(expected));
    }
}
