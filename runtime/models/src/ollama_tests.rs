use super::{NAME, OllamaChat};
use crate::event_stream::StreamFormat;
use crate::samples::{
    Sample, as_strs, assistant, assistant_calls, call, conversation, first_request,
    first_request_with_schema, opaque, request_with_memory, request_with_tools, second_request, text_parts,
    tool, tool_result, tool_turn, tool_turn_with_reasoning, user, with_reasoning,
};
use crate::wire::Reasoning::{self, Discard, Keep};
use crate::wire::{ProviderError, Wire, WireError};
use pretty_assertions::assert_eq;
use proptest::prelude::proptest;
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_contract::transcript::ChatMessage;
use redflow_ports::ToolChoice;
use serde_json::{Value, json};

fn wire() -> OllamaChat {
    OllamaChat { model: "qwen3".to_owned(), ..OllamaChat::default() }
}

fn thinking_part() -> [Value; 1] {
    [json!({"thinking": "Two calls."})]
}

fn all_settings() -> OllamaChat {
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
fn request_bodies_equal_their_golden_files() {
    let thinking = OllamaChat { think: Some(true), ..wire() };
    let cases = [
        ("first", wire(), first_request()),
        ("first-schema", wire(), first_request_with_schema()),
        ("later", wire(), second_request()),
        ("recalled", wire(), request_with_memory()),
        ("tools", wire(), request_with_tools()),
        ("tool-turn", wire(), tool_turn()),
        ("sampling", all_settings(), first_request_with_schema()),
        ("stream", wire(), Sample { stream: true, ..first_request() }),
        ("thinking", thinking, tool_turn_with_reasoning(wire().name(), &thinking_part())),
    ];
    for (name, wire, sample) in cases {
        sample.check_golden(&wire, &format!("ollama-{name}"));
    }
}

#[test]
fn sends_only_the_settings_that_are_set() {
    let body = conversation([user("a")]).body(&wire());
    assert_eq!(
        body,
        json!({"model": "qwen3", "messages": [{"role": "user", "content": "a"}], "stream": false})
    );
    let seeded = conversation([user("a")]).body(&OllamaChat { seed: Some(0), ..wire() });
    assert_eq!(seeded["options"], json!({"seed": 0}));
}

#[test]
fn a_keep_alive_without_a_unit_is_a_number() {
    let cases = [("5m", json!("5m")), ("-1", json!(-1)), ("300", json!(300)), ("", json!(""))];
    for (text, sent) in cases {
        let wire = OllamaChat { keep_alive: Some(text.to_owned()), ..wire() };
        assert_eq!(conversation([user("a")]).body(&wire)["keep_alive"], sent);
    }
}

#[test]
fn sends_no_tools_if_none_may_be_called() {
    for (tool_choice, has_tools) in
        [(ToolChoice::Auto, true), (ToolChoice::Required, true), (ToolChoice::None, false)]
    {
        let body = Sample { tool_choice, ..request_with_tools() }.body(&wire());
        assert_eq!((body.get("tools").is_some(), body.get("tool_choice")), (has_tools, None));
    }
    let bare = Sample { tools: vec![tool("x", "", Some(json!({"required": []})))], ..request_with_tools() }
        .body(&wire());
    let function = json!({"name": "x", "description": "", "parameters": {"type": "object", "required": []}});
    assert_eq!(bare["tools"], json!([{"type": "function", "function": function}]));
}

#[test]
fn a_result_names_the_tool_of_its_own_call() {
    let turn = |name: &str| [assistant_calls("", &[call("call_0", name, "{}")]), tool_result("call_0", "1")];
    let sample = conversation(turn("x").into_iter().chain(turn("y")).chain([
        tool_result("other", "2"),
        assistant("z"),
        tool_result("call_0", "3"),
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
fn arguments_are_always_an_object() {
    for (arguments, sent) in [(r#"{"a":1}"#, json!({"a": 1})), ("", json!({})), ("[1]", json!({}))] {
        let body = conversation([assistant_calls("", &[call("a", "x", arguments)])]).body(&wire());
        let function = json!({"name": "x", "arguments": sent});
        assert_eq!(body["messages"][0]["tool_calls"], json!([{"function": function}]));
    }
}

#[test]
fn sends_reasoning_back_only_to_its_own_wire_and_only_if_kept() {
    let message = |wire: &str, part| with_reasoning(wire, &[part], assistant("Hm."));
    let cases = [
        (message("ollama-chat", json!({"thinking": "a"})), Keep, Some(json!("a"))),
        (message("ollama-chat", json!({"thinking": "a"})), Discard, None),
        (message("ollama-chat", json!({"thinking": 7})), Keep, None),
        (message("anthropic-messages", json!({"thinking": "a"})), Keep, None),
    ];
    for (message, reasoning, sent) in cases {
        let body = Sample { reasoning, ..conversation([message]) }.body(&wire());
        assert_eq!(body["messages"][0].get("thinking"), sent.as_ref());
    }
}

fn decode(body: &Value) -> Result<ModelAnswer, WireError> {
    wire().decode(body.to_string().as_bytes(), Keep)
}

#[test]
fn decodes_a_whole_answer() {
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
            call("", "calculator", r#"{"b":1.0,"a":"x"}"#),
            call("own", "clock", "{}"),
            call("", "clock", "{}"),
            call("", "text", "{\"a\": 1}"),
            call("", "blank", "{}"),
        ],
        reasoning: opaque("ollama-chat", &[json!({"thinking": "Hm."})]),
        model: Some("qwen3".to_owned()),
        request_id: None,
        fell_over: Vec::new(),
        refused: Vec::new(),
        raw: None,
    };
    assert_eq!(decode(&body), Ok(expected.clone()));
    let without_reasoning = wire().decode(body.to_string().as_bytes(), Discard);
    assert_eq!(without_reasoning, Ok(ModelAnswer { reasoning: None, ..expected }));
}

#[test]
fn done_reasons() {
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
fn invalid_usage_never_fails_an_answer() {
    let usage = |input_tokens, output_tokens| Some(Usage { input_tokens, output_tokens, ..Usage::default() });
    let cases = [
        ("null", "null", None),
        ("1e999", "\"7\"", None),
        ("-1", "[]", None),
        ("3.0", "-1", usage(3, 0)),
        ("null", "4", usage(0, 4)),
    ];
    for (input, output, expected) in cases {
        let body =
            format!(r#"{{"message":{{"content":"a"}},"prompt_eval_count":{input},"eval_count":{output}}}"#);
        let answer = wire().decode(body.as_bytes(), Discard).unwrap();
        assert_eq!((answer.text.as_str(), answer.usage), ("a", expected), "{body}");
    }
}

#[test]
fn malformed_answers() {
    let cases: [&[u8]; 8] = [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"{\"message\":null}",
        b"{\"message\":{\"content\":5}}",
        b"{\"message\":{\"content\":\"a\"}}\n{\"done\":true}",
        b"{\"message\":{\"content\":\"a\"},\"other\":\"\xff\"}",
    ];
    for body in cases {
        let error = wire().decode(body, Keep).unwrap_err();
        assert!(matches!(error, WireError::Malformed(_)), "{} {error:?}", String::from_utf8_lossy(body));
    }
}

fn error(status: u16, message: &str) -> ProviderError {
    ProviderError { status, message: message.to_owned(), ..ProviderError::default() }
}

#[test]
fn errors_of_every_form() {
    let cases = [
        (404, json!({"error": "model \"x\" not found"}), error(404, "model \"x\" not found")),
        (400, json!({"error": {"message": "No."}}), error(400, "No.")),
        (500, json!({"error": "a".repeat(5_000)}), error(500, &"a".repeat(4_000))),
        (503, json!({}), error(503, "")),
        (503, json!("text"), error(503, "text")),
    ];
    for (status, body, expected) in cases {
        assert_eq!(wire().parse_error(status, body.to_string().as_bytes()), expected, "{body}");
    }
    assert_eq!(wire().parse_error(502, b"<html>"), error(502, ""));
}

#[test]
fn an_error_with_a_success_status_gets_status_500() {
    for body in [json!({"error": "model not found"}), json!({"error": {"message": "model not found"}})] {
        let expected = WireError::Provider(error(500, "model not found"));
        assert_eq!(decode(&body), Err(expected.clone()));
        let mut assembler = wire().assembler(Discard);
        assert_eq!(assembler.add_event(None, &line("a")), Ok(false));
        assert_eq!(assembler.add_event(None, body.to_string().as_bytes()), Err(expected));
    }
}

fn line(content: &str) -> Vec<u8> {
    json!({"model": "qwen3", "message": {"role": "assistant", "content": content}, "done": false})
        .to_string()
        .into_bytes()
}

fn assemble(lines: &[Value], reasoning: Reasoning) -> Result<ModelAnswer, WireError> {
    let mut assembler = wire().assembler(reasoning);
    for line in lines {
        assert_eq!(assembler.add_event(None, line.to_string().as_bytes())?, line["done"] == true);
    }
    assembler.finish()
}

/// A whole stream, in which every text arrives in the given parts.
fn stream(thinking: &[&str], texts: &[&str]) -> Vec<Value> {
    let part = |message: &Value| json!({"model": "qwen3", "message": message, "done": false});
    let calls = |name: &str| json!([{"function": {"name": name, "arguments": {"a": 1}}}]);
    let mut lines: Vec<Value> =
        thinking.iter().map(|text| part(&json!({"content": "", "thinking": text}))).collect();
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

fn streamed_answer(thinking: &str, text: &str) -> ModelAnswer {
    let parts = [json!({"thinking": thinking})];
    ModelAnswer {
        text: text.to_owned(),
        finish: ModelFinish::ToolCalls,
        usage: Some(Usage { input_tokens: 12, output_tokens: 7, ..Usage::default() }),
        tool_calls: vec![call("", "x", r#"{"a":1}"#), call("", "y", r#"{"a":1}"#)],
        reasoning: opaque("ollama-chat", &parts).filter(|_| !thinking.is_empty()),
        model: Some("qwen3".to_owned()),
        request_id: None,
        fell_over: Vec::new(),
        refused: Vec::new(),
        raw: None,
    }
}

#[test]
fn assembles_a_stream() {
    let lines = stream(&["Let ", "me."], &["He", "llo"]);
    assert_eq!(wire().stream_format(), StreamFormat::JsonLines);
    assert_eq!(assemble(&lines, Keep), Ok(streamed_answer("Let me.", "Hello")));
    let without_reasoning = ModelAnswer { reasoning: None, ..streamed_answer("Let me.", "Hello") };
    assert_eq!(assemble(&lines, Discard), Ok(without_reasoning));
    assert_eq!(wire().assembler(Keep).add_event(None, b" \r"), Ok(false));
}

#[test]
fn a_stream_that_ends_too_early_is_interrupted() {
    let lines = stream(&["T"], &["A"]);
    for end in 0..lines.len() {
        assert_eq!(assemble(&lines[..end], Keep), Err(WireError::Interrupted), "{end}");
    }
}

#[test]
fn malformed_lines() {
    for data in [b"data: {}".as_slice(), b"[]", b"{", b"{\"done\":false,\"other\":\"\xff\"}"] {
        let error = wire().assembler(Keep).add_event(None, data).unwrap_err();
        assert!(matches!(error, WireError::Malformed(_)), "{error:?}");
    }
}

#[test]
fn the_number_of_tool_calls_is_limited() {
    let calls = |count| {
        let call = json!({"function": {"name": "x", "arguments": {}}});
        json!({"message": {"content": "", "tool_calls": vec![call; count]}, "done": false})
    };
    let end = json!({"message": {"content": ""}, "done": true});
    for (first, second, expected) in [(64, 64, 128), (64, 65, 129), (129, 1, 129)] {
        let answer = assemble(&[calls(first), calls(second), end.clone()], Keep).unwrap();
        assert_eq!(answer.tool_calls.len(), expected);
    }
}

proptest! {
    #[test]
    fn the_answer_does_not_depend_on_how_it_is_split(thinking in text_parts(), texts in text_parts()) {
        let expected = streamed_answer(&thinking.concat(), &texts.concat());
        assert_eq!(assemble(&stream(&[&thinking.concat()], &[&texts.concat()]), Keep), Ok(expected.clone()));
        assert_eq!(assemble(&stream(&as_strs(&thinking), &as_strs(&texts)), Keep), Ok(expected));
    }
}

#[test]
fn thoughts_between_tags_are_not_text_and_go_back() {
    let lines = ["<think>H", "m.</th", "ink>\nYes", "."]
        .map(|part| json!({"message": {"role": "assistant", "content": part}, "done": false}));
    let mut assembler = wire().assembler(Keep);
    let mut seen = Vec::new();
    for line in &lines {
        assembler.add_event(None, line.to_string().as_bytes()).unwrap();
        assembler.visit_text(&mut |text| seen.push(text.to_owned()));
    }
    assert_eq!(seen, ["", "", "Yes", "Yes."]);
    assembler.add_event(None, br#"{"done": true}"#).unwrap();
    let answer = assembler.finish().unwrap();
    let all = "<think>Hm.</think>\nYes.";
    assert_eq!(
        (answer.text.as_str(), answer.reasoning.clone()),
        ("Yes.", opaque(NAME, &[json!({"content": all})]))
    );
    let message = ChatMessage { reasoning: answer.reasoning, ..assistant("Yes.") };
    let content = |message: &ChatMessage, reasoning| {
        let sample = Sample { reasoning, ..conversation([user("?"), message.clone()]) };
        sample.body(&wire())["messages"][1]["content"].clone()
    };
    assert_eq!((content(&message, Keep), content(&message, Discard)), (json!(all), json!("Yes.")));
    let changed = ChatMessage { content: "No.".to_owned(), ..message };
    assert_eq!(content(&changed, Keep), "No.");
}
