use super::OpenaiResponses;
use crate::openai_cases::{
    Case, assistant, call, calls, errors, goldens, opaque, provider, result, stream, system, tool, tool_turn,
    user,
};
use crate::wire::{Framing, Wire, WireError};
use pretty_assertions::assert_eq;
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_ports::ToolChoice;
use serde_json::{Value, json};

pub(super) fn wire() -> OpenaiResponses {
    OpenaiResponses { model: Some("gpt-5".to_owned()), ..OpenaiResponses::default() }
}

pub(super) fn decode(body: &Value) -> Result<ModelAnswer, WireError> {
    wire().decode(body.to_string().as_bytes(), true)
}

pub(super) fn message(text: &str) -> Value {
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": content})
}

fn refusal() -> Value {
    json!({"type": "message", "id": "msg_1", "content": [{"type": "refusal", "refusal": "I will not."}]})
}

pub(super) fn function(call_id: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{call_id}"), "call_id": call_id, "name": name, "arguments": arguments})
}

pub(super) fn thought() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "gAAA", "status": null})
}

pub(super) fn response(status: &str, output: &[Value]) -> Value {
    json!({"id": "resp_1", "object": "response", "status": status, "error": null, "incomplete_details": null, "output": output})
}

pub(super) fn cut_off(reason: &Value, output: &[Value]) -> Value {
    let mut body = response("incomplete", output);
    body["incomplete_details"] = json!({ "reason": reason });
    body
}

pub(super) fn failed(error: &Value) -> Value {
    let mut body = response("failed", &[]);
    body["error"] = error.clone();
    body
}

pub(super) fn delta(kind: &str, index: u64, delta: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": index, "delta": delta})
}

#[test]
fn bodies_are_as_they_are_kept() {
    goldens(&wire());
    let every = OpenaiResponses {
        max_output_tokens: Some(500),
        temperature: Some(0.7),
        top_p: Some(1.0),
        reasoning_effort: Some("low"),
        ..wire()
    };
    Case::first().golden(&every, "sampling");
    Case { stream: true, ..Case::first() }.golden(&wire(), "stream");
    let mut turn = tool_turn();
    let mut thought = thought();
    thought.as_object_mut().unwrap().shift_remove("status");
    turn[2].reasoning = opaque("openai-responses", &[thought]);
    turn[2].content = "Both at once.".to_owned();
    Case { reasoning: true, ..Case::with_tools(turn) }.golden(&wire(), "reasoning");
}

#[test]
fn only_what_is_set_is_sent() {
    let keys = |case: Case| {
        let body = case.body(&OpenaiResponses::default());
        body.as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(keys(Case::new([user("Hi")])), ["input", "store"]);
    assert_eq!(keys(Case { stream: true, ..Case::new([user("Hi")]) }), ["input", "store", "stream"]);
    assert_eq!(keys(Case { reasoning: true, ..Case::new([user("Hi")]) }), ["input", "include", "store"]);
    assert_eq!(
        keys(Case { tool_choice: ToolChoice::Required, ..Case::new([user("Hi")]) }),
        ["input", "store"]
    );
}

#[test]
fn whether_it_may_call() {
    for (tool_choice, word) in
        [(ToolChoice::Auto, "auto"), (ToolChoice::Required, "required"), (ToolChoice::None, "none")]
    {
        let body = Case { tool_choice, ..Case::with_tools([user("Hi")]) }.body(&wire());
        assert_eq!(body["tool_choice"], word);
    }
}

#[test]
fn tools_are_flat_and_never_strict_by_default() {
    let body = Case { tools: vec![tool("t", "", None)], ..Case::first() }.body(&wire());
    let parameters = json!({"type": "object", "properties": {}});
    assert_eq!(
        body["tools"],
        json!([{"type": "function", "name": "t", "parameters": parameters, "strict": false}])
    );
}

#[test]
fn json_mode_keeps_the_system_message_in_the_input() {
    let said = json!({"role": "system", "content": "Answer with one JSON object."});
    let body = Case { json: true, ..Case::first() }.body(&wire());
    assert_eq!((body.get("instructions"), &body["input"][0]), (None, &said));
    let body = Case::first().body(&wire());
    assert_eq!((&body["instructions"], &body["input"][0]["role"]), (&said["content"], &json!("user")));
    // Only the first one is instructions.
    let body = Case::new([user("Hi"), system()]).body(&wire());
    assert_eq!((body.get("instructions"), &body["input"][1]), (None, &said));
}

#[test]
fn a_turn_is_its_reasoning_its_text_its_calls() {
    let asked = [call("a", "t", "{}")];
    let sent = |said: &str, wire_name: &str, reasoning: bool| {
        let mut said = calls(said, &asked);
        said.reasoning = opaque(wire_name, &[thought(), json!({"type": "reasoning", "id": "rs_2"})]);
        let body = Case { reasoning, ..Case::new([user("Hi"), said, result("a", "")]) }.body(&wire());
        body["input"].as_array().unwrap()[1..].to_vec()
    };
    let text = json!({"role": "assistant", "content": "So:"});
    let function = json!({"type": "function_call", "call_id": "a", "name": "t", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "a", "output": ""});
    let second = json!({"type": "reasoning", "id": "rs_2"});
    assert_eq!(
        sent("So:", "openai-responses", true),
        [&thought(), &second, &text, &function, &output].map(Value::clone)
    );
    assert_eq!(
        sent("", "openai-responses", true),
        [&thought(), &second, &function, &output].map(Value::clone)
    );
    assert_eq!(sent("", "openai-responses", false), [&function, &output].map(Value::clone));
    assert_eq!(sent("", "openai-chat", true), [&function, &output].map(Value::clone));
    // Reasoning must be followed by something.
    let mut nothing = assistant("");
    nothing.reasoning = opaque("openai-responses", &[thought()]);
    let body = Case { reasoning: true, ..Case::new([nothing]) }.body(&wire());
    assert_eq!(body["input"], json!([thought(), {"role": "assistant", "content": ""}]));
}

#[test]
fn a_whole_answer() {
    let mut body = response("completed", &[thought(), message("So: "), function("a", "t", "{\"x\":1}")]);
    body["model"] = json!("gpt-5-2025");
    body["usage"] = json!({
        "input_tokens": 20, "input_tokens_details": {"cached_tokens": 16, "cache_write_tokens": 4},
        "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 27,
    });
    let usage = Usage {
        input_tokens: 20,
        output_tokens: 7,
        cached_tokens: Some(16),
        cache_write_tokens: Some(4),
        reasoning_tokens: Some(5),
        cost: None,
    };
    let mut expected = ModelAnswer {
        text: "So: ".to_owned(),
        finish: ModelFinish::ToolCalls,
        usage: Some(usage),
        tool_calls: vec![call("a", "t", "{\"x\":1}")],
        reasoning: opaque("openai-responses", &[thought()]),
        model: Some("gpt-5-2025".to_owned()),
        request_id: None,
    };
    assert_eq!(decode(&body).as_ref(), Ok(&expected));
    // In a stream the last event says it all, whatever came before.
    let events = [
        json!({"type": "response.created", "sequence_number": 0, "response": response("in_progress", &[])}),
        delta("output_text", 0, "something else"),
        json!({"type": "response.completed", "response": body}),
    ];
    assert_eq!(stream(&wire(), &events, true).as_ref(), Ok(&expected));
    expected.reasoning = None;
    assert_eq!(stream(&wire(), &events, false).as_ref(), Ok(&expected));
    assert_eq!(wire().decode(body.to_string().as_bytes(), false), Ok(expected));
    assert_eq!(wire().framing(), Framing::Sse);
}

#[test]
fn how_it_ended() {
    let asked = function("a", "t", "{}");
    let tokens = json!("max_output_tokens");
    let table = [
        (response("completed", &[message("x")]), "x", ModelFinish::Stop),
        (response("completed", &[]), "", ModelFinish::Stop),
        (response("completed", &[message("x"), asked.clone()]), "x", ModelFinish::ToolCalls),
        (response("completed", &[message("x"), refusal()]), "", ModelFinish::Refused),
        (cut_off(&tokens, &[message("x")]), "x", ModelFinish::Truncated),
        (cut_off(&tokens, &[asked]), "", ModelFinish::Truncated),
        (cut_off(&json!("content_filter"), &[message("x")]), "x", ModelFinish::Refused),
        (cut_off(&json!("else"), &[]), "", ModelFinish::Truncated),
        (cut_off(&Value::Null, &[refusal()]), "", ModelFinish::Refused),
        (response("incomplete", &[]), "", ModelFinish::Truncated),
        (json!({"output": [message("x")]}), "x", ModelFinish::Stop),
    ];
    for (body, text, finish) in table {
        let answer = decode(&body).unwrap();
        assert_eq!((answer.text.as_str(), answer.finish), (text, finish), "{body}");
    }
}

#[test]
fn items_as_servers_write_them() {
    let phase = |phase: &str, text: &str| {
        let mut message = message(text);
        message["phase"] = json!(phase);
        message
    };
    let texts = [
        (vec![message("a"), message("b")], "ab"),
        (vec![json!({"type": "message", "content": "plain"})], "plain"),
        (vec![json!({"type": "message", "content": null})], ""),
        (
            vec![
                json!({"type": "message", "content": [{"type": "output_text", "text": "a"}, {"type": "else"}]}),
            ],
            "a",
        ),
        (vec![json!({"type": "message", "content": 7}), message("a")], "a"),
        (
            vec![
                json!({"type": "web_search_call", "content": 7}),
                json!("x"),
                Value::Null,
                json!([1]),
                message("a"),
            ],
            "a",
        ),
        (vec![phase("commentary", "Let me see. "), phase("final_answer", "a")], "a"),
        (vec![phase("commentary", "Let me see.")], "Let me see."),
    ];
    for (output, text) in texts {
        assert_eq!(decode(&response("completed", &output)).unwrap().text, text, "{output:?}");
    }
    let asked = [
        function("call_1", "a", ""),
        json!({"type": "function_call", "id": "fc", "name": "b", "arguments": {"x": 1}}),
        json!({"type": "function_call", "call_id": "", "name": "c"}),
        function("call_1", "d", "no JSON"),
    ];
    let expected = vec![
        call("call_1", "a", "{}"),
        call("call_0", "b", "{\"x\":1}"),
        call("call_2", "c", "{}"),
        call("call_3", "d", "no JSON"),
    ];
    assert_eq!(decode(&response("completed", &asked)).unwrap().tool_calls, expected);
}

#[test]
fn what_is_no_answer() {
    let error = |code: &str| json!({"code": code, "message": "M"});
    let table = [
        (failed(&error("rate_limit_exceeded")), provider(429, "", "rate_limit_exceeded", "M")),
        (failed(&error("server_error")), provider(500, "", "server_error", "M")),
        (failed(&error("invalid_prompt")), provider(400, "", "invalid_prompt", "M")),
        (failed(&error("image_too_large")), provider(400, "", "image_too_large", "M")),
        (failed(&error("vector_store_timeout")), provider(504, "", "vector_store_timeout", "M")),
        (failed(&Value::Null), provider(500, "", "", "")),
        (json!({"error": error("server_is_overloaded")}), provider(503, "", "server_is_overloaded", "M")),
        (response("cancelled", &[message("x")]), WireError::Garbled("it is no finished answer")),
        (response("queued", &[]), WireError::Garbled("it is no finished answer")),
        (response("in_progress", &[message("x")]), WireError::Garbled("it is no finished answer")),
        (json!({}), WireError::Garbled("it has no output")),
        (json!({"error": null}), WireError::Garbled("it has no output")),
        (
            response("completed", &[function("a", "", "{}")]),
            WireError::Garbled("it asks for a call of no tool"),
        ),
        (
            response("completed", &vec![function("", "t", "{}"); 129]),
            WireError::Garbled("it asks for too many calls"),
        ),
    ];
    for (body, expected) in table {
        assert_eq!(decode(&body), Err(expected), "{body}");
    }
    assert_eq!(
        decode(&response("completed", &vec![function("", "t", "{}"); 128])).unwrap().tool_calls.len(),
        128
    );
    for body in [&b""[..], b"[]", b"{", b"<html>", b"{\"output\":7}", b"{\"skipped\":\"\xff\",\"output\":[]}"]
    {
        assert!(matches!(wire().decode(body, true), Err(WireError::Garbled(_))), "{body:?}");
    }
}

#[test]
fn usage_never_fails_an_answer() {
    let used = |input_tokens, output_tokens| Some(Usage { input_tokens, output_tokens, ..Usage::default() });
    let table = [
        ("null", None),
        ("{}", None),
        ("7", None),
        (r#"{"input_tokens":3,"output_tokens":4.0,"output_tokens_details":[]}"#, used(3, 4)),
        (r#"{"input_tokens":-3,"output_tokens":1e999}"#, None),
        (r#"{"input_tokens":-3,"output_tokens":4}"#, used(0, 4)),
    ];
    for (usage, expected) in table {
        let body = format!(r#"{{"status":"completed","output":[],"usage":{usage}}}"#);
        assert_eq!(wire().decode(body.as_bytes(), false).unwrap().usage, expected, "{usage}");
    }
}

#[test]
fn bodies_of_failure() {
    errors(&wire());
}
