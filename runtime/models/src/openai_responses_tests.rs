use super::OpenaiResponses;
use crate::event_stream::StreamFormat;
use crate::openai_samples::{
    assemble, check_errors, check_goldens, check_tool_choices, first, provider_error, system_message,
    tool_turn, with_tools,
};
use crate::samples::{
    Sample, assistant, assistant_calls, call, conversation, opaque, tool, tool_result, user,
};
use crate::wire::Reasoning::{self, Discard, Keep};
use crate::wire::{Wire, WireError};
use pretty_assertions::assert_eq;
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_contract::transcript::{ChatMessage, OpaqueParts};
use redflow_ports::ToolChoice;
use serde_json::{Value, json};

pub(super) fn wire() -> OpenaiResponses {
    OpenaiResponses { model: Some("gpt-5".to_owned()), ..OpenaiResponses::default() }
}

pub(super) fn decode(body: &Value) -> Result<ModelAnswer, WireError> {
    wire().decode(body.to_string().as_bytes(), Keep)
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

pub(super) fn reasoning_item() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "gAAA", "status": null})
}

pub(super) fn response(status: &str, output: &[Value]) -> Value {
    json!({"id": "resp_1", "object": "response", "status": status, "error": null, "incomplete_details": null, "output": output})
}

pub(super) fn incomplete(reason: &Value, output: &[Value]) -> Value {
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
fn request_bodies_equal_their_golden_files() {
    check_goldens(&wire());
    let all_settings = OpenaiResponses {
        max_output_tokens: Some(500),
        temperature: Some(0.7),
        top_p: Some(1.0),
        reasoning_effort: Some("low"),
        ..wire()
    };
    first().check_golden(&all_settings, "openai-responses-sampling");
    Sample { stream: true, ..first() }.check_golden(&wire(), "openai-responses-stream");
    let mut turn = tool_turn();
    let mut item = reasoning_item();
    item.as_object_mut().unwrap().shift_remove("status");
    turn[2].reasoning = opaque("openai-responses", &[item]);
    turn[2].content = "Both at once.".to_owned();
    Sample { reasoning: Keep, ..with_tools(turn) }.check_golden(&wire(), "openai-responses-reasoning");
}

#[test]
fn sends_only_the_settings_that_are_set() {
    let keys = |sample: Sample| {
        let body = sample.body(&OpenaiResponses::default());
        body.as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(keys(conversation([user("Hi")])), ["input", "store"]);
    assert_eq!(keys(Sample { stream: true, ..conversation([user("Hi")]) }), ["input", "store", "stream"]);
    assert_eq!(keys(Sample { reasoning: Keep, ..conversation([user("Hi")]) }), ["input", "include", "store"]);
    assert_eq!(
        keys(Sample { tool_choice: ToolChoice::Required, ..conversation([user("Hi")]) }),
        ["input", "store"]
    );
}

#[test]
fn sends_the_tool_choice() {
    check_tool_choices(&wire());
}

#[test]
fn tools_are_flat_and_not_strict() {
    let body = Sample { tools: vec![tool("t", "", None)], ..first() }.body(&wire());
    let parameters = json!({"type": "object", "properties": {}});
    assert_eq!(
        body["tools"],
        json!([{"type": "function", "name": "t", "parameters": parameters, "strict": false}])
    );
}

#[test]
fn json_mode_keeps_the_system_message_in_the_input() {
    let message = json!({"role": "system", "content": "Answer with one JSON object."});
    let body = Sample { json: true, ..first() }.body(&wire());
    assert_eq!((body.get("instructions"), &body["input"][0]), (None, &message));
    let body = first().body(&wire());
    assert_eq!((&body["instructions"], &body["input"][0]["role"]), (&message["content"], &json!("user")));
    // Only the first message becomes the instructions.
    let body = conversation([user("Hi"), system_message()]).body(&wire());
    assert_eq!((body.get("instructions"), &body["input"][1]), (None, &message));
}

#[test]
fn a_turn_is_sent_as_reasoning_then_text_then_calls() {
    let calls = [call("a", "t", "{}")];
    let items = |text: &str, wire_name: &str, reasoning| {
        let mut message = assistant_calls(text, &calls);
        message.reasoning =
            opaque(wire_name, &[reasoning_item(), json!({"type": "reasoning", "id": "rs_2"})]);
        let body =
            Sample { reasoning, ..conversation([user("Hi"), message, tool_result("a", "")]) }.body(&wire());
        body["input"].as_array().unwrap()[1..].to_vec()
    };
    let text = json!({"role": "assistant", "content": "So:"});
    let function = json!({"type": "function_call", "call_id": "a", "name": "t", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "a", "output": ""});
    let second = json!({"type": "reasoning", "id": "rs_2"});
    assert_eq!(
        items("So:", "openai-responses", Keep),
        [&reasoning_item(), &second, &text, &function, &output].map(Value::clone)
    );
    assert_eq!(
        items("", "openai-responses", Keep),
        [&reasoning_item(), &second, &function, &output].map(Value::clone)
    );
    assert_eq!(items("", "openai-responses", Discard), [&function, &output].map(Value::clone));
    assert_eq!(items("", "openai-chat", Keep), [&function, &output].map(Value::clone));
    // The API requires an item after reasoning.
    let mut empty = assistant("");
    empty.reasoning = opaque("openai-responses", &[reasoning_item()]);
    let body = Sample { reasoning: Keep, ..conversation([empty]) }.body(&wire());
    assert_eq!(body["input"], json!([reasoning_item(), {"role": "assistant", "content": ""}]));
}

#[test]
fn reasoning_goes_back_to_the_same_server_only() {
    let at = |host: &str| OpenaiResponses {
        mark: OpenaiResponses::mark(&format!("https://{host}/v1").parse().unwrap()),
        ..wire()
    };
    let message = json!({"type": "message", "content": [{"type": "output_text", "text": "So."}]});
    let body = json!({"status": "completed", "output": [reasoning_item(), message]}).to_string();
    let answer = at("one.example").decode(body.as_bytes(), Keep).unwrap();
    let thoughts = |wire: &OpenaiResponses, reasoning: &Option<OpaqueParts>| {
        let mut own = assistant("So.");
        own.reasoning.clone_from(reasoning);
        let body = Sample { reasoning: Keep, ..conversation([user("Hi"), own]) }.body(wire);
        body["input"].as_array().unwrap().iter().filter(|item| item["type"] == "reasoning").count()
    };
    assert_eq!(thoughts(&at("one.example"), &answer.reasoning), 1);
    assert_eq!(thoughts(&at("two.example"), &answer.reasoning), 0);
    // A journal of an earlier version does not name the server.
    assert_eq!(thoughts(&at("two.example"), &opaque("openai-responses", &[reasoning_item()])), 1);
    assert!(at("one.example").takes_parts_of("openai-responses"));
    assert!(!at("one.example").takes_parts_of(at("two.example").name()));
}

/// The items of an answer with a phase, reasoning between two calls, and an item of tomorrow.
fn items() -> Vec<Value> {
    let phase = |phase: &str, text: &str| json!({"type": "message", "id": "msg_1", "status": "completed", "phase": phase, "content": [{"type": "output_text", "text": text, "annotations": []}]});
    vec![
        reasoning_item(),
        phase("commentary", "Let me see."),
        json!({"type": "function_call", "id": "fc_1", "call_id": "a", "name": "t", "arguments": "{\"x\": 1.0}", "status": "completed"}),
        json!({"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "gBBB"}),
        json!({"type": "of_tomorrow", "id": "x"}),
        phase("final_answer", "Both "),
        json!({"type": "message", "content": [{"type": "output_text", "text": "at once."}]}),
        json!({"type": "function_call", "id": "fc_2", "call_id": "b", "name": "t", "arguments": "{}"}),
    ]
}

/// The items that a message of the model becomes.
fn sent_items(message: ChatMessage, reasoning: Reasoning) -> Vec<Value> {
    let sample = Sample { reasoning, ..conversation([user("Hi"), message, tool_result("a", "")]) };
    let body = sample.body(&wire());
    let items = body["input"].as_array().unwrap();
    items[1..items.len() - 1].to_vec()
}

fn answered(output: &[Value]) -> ChatMessage {
    let answer = decode(&response("completed", output)).unwrap();
    ChatMessage { reasoning: answer.reasoning, ..assistant_calls(&answer.text, &answer.tool_calls) }
}

#[test]
fn items_go_back_as_they_came() {
    let message = answered(&items());
    assert_eq!(message.content, "Both at once.");
    assert_eq!(sent_items(message, Keep), items());
    // Without other text, commentary is the answer.
    let commentary = &items()[..3];
    assert_eq!(answered(commentary).content, "Let me see.");
    assert_eq!(sent_items(answered(commentary), Keep), commentary);
    // A lone call has an id of its own as an item.
    let call = [function("a", "t", "{}")];
    assert_eq!(sent_items(answered(&call), Keep), call);
    // Text and calls alone give the same items again.
    let without_id = |mut item: Value| {
        item.as_object_mut().unwrap().remove("id");
        item
    };
    let call = without_id(call[0].clone());
    for plain in [vec![self::message("a"), call.clone()], vec![call]] {
        assert_eq!(answered(&plain).reasoning, None);
    }
    assert!(answered(&[function("a", "t", "{}"), self::message("a")]).reasoning.is_some());
}

#[test]
fn a_message_that_was_changed_is_sent_without_its_items() {
    let message = answered(&items());
    let without =
        |message: &ChatMessage| sent_items(ChatMessage { reasoning: None, ..message.clone() }, Keep);
    assert_eq!(sent_items(message.clone(), Discard), without(&message));
    let changes: [fn(&mut ChatMessage); 6] = [
        |message| message.content.push('!'),
        |message| drop(message.tool_calls.pop()),
        |message| message.tool_calls.swap(0, 1),
        |message| message.tool_calls[0].arguments = "{\"x\": 2}".to_owned(),
        |message| message.tool_calls[0].name = "u".to_owned(),
        |message| message.tool_calls[1].id = "c".to_owned(),
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut changed = message.clone();
        change(&mut changed);
        assert_eq!(sent_items(changed.clone(), Keep), without(&changed), "{number}");
    }
}

#[test]
fn asks_for_encrypted_reasoning_unless_the_setting_says_no() {
    let sample = Sample { reasoning: Keep, ..conversation([user("Hi")]) };
    assert_eq!(sample.body(&wire())["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(sample.body(&OpenaiResponses { omits_include: true, ..wire() }).get("include"), None);
}

#[test]
fn decodes_a_whole_answer() {
    let mut body =
        response("completed", &[reasoning_item(), message("So: "), function("a", "t", "{\"x\":1}")]);
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
        ..Usage::default()
    };
    let mut expected = ModelAnswer {
        text: "So: ".to_owned(),
        finish: ModelFinish::ToolCalls,
        usage: Some(usage),
        tool_calls: vec![call("a", "t", "{\"x\":1}")],
        reasoning: opaque(
            "openai-responses",
            &[reasoning_item(), message("So: "), function("a", "t", "{\"x\":1}")],
        ),
        model: Some("gpt-5-2025".to_owned()),
        request_id: None,
        fell_over: Vec::new(),
        refused: Vec::new(),
        raw: None,
    };
    assert_eq!(decode(&body).as_ref(), Ok(&expected));
    // The last event of a stream holds the whole answer and overrides the earlier ones.
    let events = [
        json!({"type": "response.created", "sequence_number": 0, "response": response("in_progress", &[])}),
        delta("output_text", 0, "something else"),
        json!({"type": "response.completed", "response": body}),
    ];
    assert_eq!(assemble(&wire(), &events, Keep).as_ref(), Ok(&expected));
    expected.reasoning = None;
    assert_eq!(assemble(&wire(), &events, Discard).as_ref(), Ok(&expected));
    assert_eq!(wire().decode(body.to_string().as_bytes(), Discard), Ok(expected));
    assert_eq!(wire().stream_format(), StreamFormat::Sse);
}

#[test]
fn statuses_and_finish_reasons() {
    let call = function("a", "t", "{}");
    let tokens = json!("max_output_tokens");
    let table = [
        (response("completed", &[message("x")]), "x", ModelFinish::Stop),
        (response("completed", &[]), "", ModelFinish::Stop),
        (response("completed", &[message("x"), call.clone()]), "x", ModelFinish::ToolCalls),
        (response("completed", &[message("x"), refusal()]), "", ModelFinish::Refused),
        (incomplete(&tokens, &[message("x")]), "x", ModelFinish::Truncated),
        (incomplete(&tokens, &[call]), "", ModelFinish::Truncated),
        (incomplete(&json!("content_filter"), &[message("x")]), "x", ModelFinish::Refused),
        (incomplete(&json!("else"), &[]), "", ModelFinish::Truncated),
        (incomplete(&Value::Null, &[refusal()]), "", ModelFinish::Refused),
        (response("incomplete", &[]), "", ModelFinish::Truncated),
        (json!({"output": [message("x")]}), "x", ModelFinish::Stop),
    ];
    for (body, text, finish) in table {
        let answer = decode(&body).unwrap();
        assert_eq!((answer.text.as_str(), answer.finish), (text, finish), "{body}");
    }
}

#[test]
fn output_items_in_the_forms_of_many_servers() {
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
    let calls = [
        function("call_1", "a", ""),
        json!({"type": "function_call", "id": "fc", "name": "b", "arguments": {"x": 1}}),
        json!({"type": "function_call", "call_id": "", "name": "c"}),
        function("call_1", "d", "no JSON"),
    ];
    let expected = vec![
        call("call_1", "a", "{}"),
        call("", "b", "{\"x\":1}"),
        call("", "c", "{}"),
        call("call_1", "d", "no JSON"),
    ];
    assert_eq!(decode(&response("completed", &calls)).unwrap().tool_calls, expected);
}

#[test]
fn responses_without_an_answer() {
    let error = |code: &str| json!({"code": code, "message": "M"});
    let table = [
        (failed(&error("rate_limit_exceeded")), provider_error(429, "", "rate_limit_exceeded", "M")),
        (failed(&error("server_error")), provider_error(500, "", "server_error", "M")),
        (failed(&error("invalid_prompt")), provider_error(400, "", "invalid_prompt", "M")),
        (failed(&error("image_too_large")), provider_error(400, "", "image_too_large", "M")),
        (failed(&error("vector_store_timeout")), provider_error(504, "", "vector_store_timeout", "M")),
        (failed(&Value::Null), provider_error(500, "", "", "")),
        (
            json!({"error": error("server_is_overloaded")}),
            provider_error(503, "", "server_is_overloaded", "M"),
        ),
        (response("cancelled", &[message("x")]), WireError::Malformed("it is not a finished answer")),
        (response("queued", &[]), WireError::Malformed("it is not a finished answer")),
        (response("in_progress", &[message("x")]), WireError::Malformed("it is not a finished answer")),
        (json!({}), WireError::Malformed("it has no output")),
        (json!({"error": null}), WireError::Malformed("it has no output")),
    ];
    for (body, expected) in table {
        assert_eq!(decode(&body), Err(expected), "{body}");
    }
    for body in [&b""[..], b"[]", b"{", b"<html>", b"{\"output\":7}", b"{\"skipped\":\"\xff\",\"output\":[]}"]
    {
        assert!(matches!(wire().decode(body, Keep), Err(WireError::Malformed(_))), "{body:?}");
    }
}

#[test]
fn invalid_usage_never_fails_an_answer() {
    let usage = |input_tokens, output_tokens| Some(Usage { input_tokens, output_tokens, ..Usage::default() });
    let table = [
        ("null", None),
        ("{}", None),
        ("7", None),
        (r#"{"input_tokens":3,"output_tokens":4.0,"output_tokens_details":[]}"#, usage(3, 4)),
        (r#"{"input_tokens":-3,"output_tokens":1e999}"#, None),
        (r#"{"input_tokens":-3,"output_tokens":4}"#, usage(0, 4)),
    ];
    for (usage, expected) in table {
        let body = format!(r#"{{"status":"completed","output":[],"usage":{usage}}}"#);
        assert_eq!(wire().decode(body.as_bytes(), Discard).unwrap().usage, expected, "{usage}");
    }
}

#[test]
fn error_bodies() {
    check_errors(&wire());
}
