use super::OpenaiChat;
use crate::openai_cases::{
    Case, assistant, call, calls, errors, goldens, opaque, provider, result, system, tool, tool_turn, user,
};
use crate::wire::{Wire, WireError};
use pretty_assertions::assert_eq;
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_ports::ToolChoice;
use serde_json::{Value, json};

pub(super) fn wire() -> OpenaiChat {
    OpenaiChat { model: Some("gpt-5".to_owned()), ..OpenaiChat::default() }
}

pub(super) fn decode(body: &Value) -> Result<ModelAnswer, WireError> {
    wire().decode(body.to_string().as_bytes(), true)
}

pub(super) fn saying(message: &Value, finish_reason: &Value) -> Value {
    json!({"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]})
}

#[test]
fn bodies_are_as_they_are_kept() {
    goldens(&wire());
    let every = OpenaiChat {
        max_tokens: Some(500),
        temperature: Some(0.7),
        top_p: Some(1.0),
        frequency_penalty: Some(-0.5),
        presence_penalty: Some(0.25),
        seed: Some(-7),
        stop: vec!["END".to_owned(), "\n\n".to_owned()],
        reasoning_effort: Some("low"),
        ..wire()
    };
    Case::first().golden(&every, "sampling");
    let old = OpenaiChat { max_tokens: Some(500), legacy_max_tokens: true, ..OpenaiChat::default() };
    Case::first().golden(&old, "azure-dated");
    let streamed = OpenaiChat { stream_usage: true, ..wire() };
    Case { stream: true, ..Case::first() }.golden(&streamed, "stream");
    let mut turn = tool_turn();
    turn[2].reasoning = opaque("openai-chat", &[json!({"reasoning_content": "Both at once."})]);
    Case { reasoning: true, ..Case::with_tools(turn) }.golden(&wire(), "reasoning");
}

#[test]
fn only_what_is_set_is_sent() {
    let body = Case::first().body(&OpenaiChat::default());
    assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["messages"]);
    let body = Case { stream: true, ..Case::first() }.body(&OpenaiChat::default());
    assert_eq!((&body["stream"], body.get("stream_options")), (&json!(true), None));
    let body = Case::first().body(&OpenaiChat { stream_usage: true, ..OpenaiChat::default() });
    assert_eq!((body.get("stream"), body.get("stream_options")), (None, None));
    let body = Case { tool_choice: ToolChoice::Required, ..Case::first() }.body(&wire());
    assert_eq!((body.get("tools"), body.get("tool_choice")), (None, None));
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
fn schemas_always_say_what_the_provider_insists_on() {
    let table = [
        (None, json!({"type": "object", "properties": {}})),
        (Some(json!({})), json!({"type": "object", "properties": {}})),
        (Some(json!(true)), json!({"type": "object", "properties": {}})),
        (Some(json!({"type": "object"})), json!({"type": "object", "properties": {}})),
        (
            Some(json!({"properties": {"a": {}}, "required": ["a"]})),
            json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}),
        ),
    ];
    for (schema, sent) in table {
        let body = Case { tools: vec![tool("t", "", schema)], ..Case::first() }.body(&wire());
        assert_eq!(
            body["tools"],
            json!([{"type": "function", "function": {"name": "t", "parameters": sent}}])
        );
    }
}

#[test]
fn content_is_null_only_beside_calls() {
    let asked = [call("a", "t", "{}")];
    let case = Case::new([user(""), assistant(""), calls("", &asked), calls("So:", &asked), result("a", "")]);
    let body = case.body(&wire());
    let contents: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|message| &message["content"]).collect();
    assert_eq!(contents, [&json!(""), &json!(""), &Value::Null, &json!("So:"), &json!("")]);
}

#[test]
fn reasoning_goes_back_only_where_it_came_from_and_only_if_wanted() {
    let ours = [json!({"reasoning_content": "Hm."})];
    for (wire_name, reasoning, sent) in
        [("openai-chat", true, Some("Hm.")), ("openai-chat", false, None), ("anthropic", true, None)]
    {
        let mut said = assistant("Yes.");
        said.reasoning = opaque(wire_name, &ours);
        let body = Case { reasoning, ..Case::new([user("Hi"), said]) }.body(&wire());
        assert_eq!(body["messages"][1].get("reasoning_content").and_then(Value::as_str), sent);
    }
}

#[test]
fn a_whole_answer() {
    let answer = decode(&json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-5-2025",
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": "Hello.", "refusal": null, "annotations": []},
            "logprobs": null, "finish_reason": "stop", "content_filter_results": {"hate": {"filtered": false}},
        }],
        "prompt_filter_results": [],
        "usage": {
            "prompt_tokens": 20, "completion_tokens": 7, "total_tokens": 27,
            "prompt_tokens_details": {"cached_tokens": 16, "cache_write_tokens": 4, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
        "service_tier": "default",
    }));
    let usage = Usage {
        input_tokens: 20,
        output_tokens: 7,
        cached_tokens: Some(16),
        cache_write_tokens: Some(4),
        reasoning_tokens: Some(5),
        cost: None,
    };
    let expected = ModelAnswer {
        text: "Hello.".to_owned(),
        usage: Some(usage),
        model: Some("gpt-5-2025".to_owned()),
        ..ModelAnswer::default()
    };
    assert_eq!(answer, Ok(expected));
}

#[test]
fn how_it_ended() {
    let asked = json!([{"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"}}]);
    let table = [
        (json!({"content": "x"}), json!("stop"), ModelFinish::Stop),
        (json!({"content": "x"}), json!("length"), ModelFinish::Truncated),
        (json!({"content": "x"}), json!("content_filter"), ModelFinish::Refused),
        (json!({"content": "x"}), json!("eos"), ModelFinish::Stop),
        (json!({"content": "x"}), json!(7), ModelFinish::Stop),
        (json!({"content": "x"}), Value::Null, ModelFinish::Stop),
        (json!({"content": "x"}), json!("tool_calls"), ModelFinish::Stop),
        (json!({"tool_calls": asked}), json!("tool_calls"), ModelFinish::ToolCalls),
        (json!({"tool_calls": asked}), json!("function_call"), ModelFinish::ToolCalls),
        (json!({"tool_calls": asked}), json!("stop"), ModelFinish::ToolCalls),
        (json!({"tool_calls": asked}), Value::Null, ModelFinish::ToolCalls),
        (json!({"tool_calls": asked}), json!("length"), ModelFinish::Truncated),
        (json!({"tool_calls": asked}), json!("content_filter"), ModelFinish::Refused),
        (json!({"content": null, "refusal": "I will not."}), json!("stop"), ModelFinish::Refused),
        (json!({"content": "x", "refusal": ""}), json!("stop"), ModelFinish::Stop),
    ];
    for (message, reason, finish) in table {
        assert_eq!(decode(&saying(&message, &reason)).unwrap().finish, finish, "{message} {reason}");
    }
}

#[test]
fn text_as_servers_write_it() {
    let table = [
        (json!({"content": "a\n\"b\" é"}), "a\n\"b\" é"),
        (json!({"content": ""}), ""),
        (json!({"content": null}), ""),
        (json!({}), ""),
        (json!({"content": []}), ""),
        (json!({"content": [{"type": "text", "text": "a"}, {"text": "b"}, "c", null]}), "abc"),
        (
            json!({"content": [{"thinking": "no", "text": "no", "type": "thinking"}, {"type": "output_text", "text": "a"}]}),
            "a",
        ),
        (json!({"content": "half", "refusal": "I will not."}), ""),
    ];
    for (message, text) in table {
        assert_eq!(decode(&saying(&message, &json!("stop"))).unwrap().text, text, "{message}");
    }
}

#[test]
fn calls_as_servers_write_them() {
    let function = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let asked = json!({"content": null, "tool_calls": [
        {"id": "call_1", "type": "function", "function": function("a", json!("{\"x\": 1}"))},
        {"id": null, "function": function("b", json!({"x": 1}))},
        {"id": "", "function": function("c", json!(""))},
        {"id": "call_1", "index": 0, "function": function("d", Value::Null)},
        {"function": {"name": "e"}},
        {"id": 7, "function": function("f", json!("no JSON"))},
    ]});
    let expected = vec![
        call("call_1", "a", "{\"x\": 1}"),
        call("call_0", "b", "{\"x\":1}"),
        call("call_2", "c", "{}"),
        call("call_3", "d", "{}"),
        call("call_4", "e", "{}"),
        call("call_5", "f", "no JSON"),
    ];
    assert_eq!(decode(&saying(&asked, &json!("tool_calls"))).unwrap().tool_calls, expected);
    for none in [json!({"tool_calls": null}), json!({"tool_calls": []})] {
        assert_eq!(decode(&saying(&none, &json!("stop"))).unwrap().tool_calls, []);
    }
}

#[test]
fn usage_never_fails_an_answer() {
    let used = |input_tokens, output_tokens, cached_tokens| {
        Some(Usage { input_tokens, output_tokens, cached_tokens, ..Usage::default() })
    };
    let table = [
        (r#"null"#, None),
        (r#"{}"#, None),
        (r#"[]"#, None),
        (r#""many""#, None),
        (r#"{"total_tokens":5}"#, None),
        (r#"{"prompt_tokens":-5,"completion_tokens":"x"}"#, None),
        (r#"{"prompt_tokens":3}"#, used(3, 0, None)),
        (r#"{"prompt_tokens":3.0,"completion_tokens":1e2}"#, used(3, 100, None)),
        (r#"{"prompt_tokens":-1,"completion_tokens":4}"#, used(0, 4, None)),
        (r#"{"prompt_tokens":1e999,"completion_tokens":4}"#, used(0, 4, None)),
        (r#"{"prompt_tokens":99999999999999999999999,"completion_tokens":4}"#, used(0, 4, None)),
        (r#"{"prompt_tokens":9007199254740993,"completion_tokens":4}"#, used(0, 4, None)),
        (r#"{"prompt_tokens":3,"completion_tokens":4,"prompt_tokens_details":null}"#, used(3, 4, None)),
        (r#"{"prompt_tokens":3,"completion_tokens":4,"prompt_tokens_details":7}"#, used(3, 4, None)),
        (
            r#"{"prompt_tokens":3,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":-1}}"#,
            used(3, 4, None),
        ),
        (
            r#"{"prompt_tokens":3,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":2}}"#,
            used(3, 4, Some(2)),
        ),
        (r#"{"input_tokens":3,"output_tokens":4,"prompt_tokens":3}"#, used(3, 4, None)),
    ];
    for (usage, expected) in table {
        let body = format!(r#"{{"choices":[{{"message":{{"content":"x"}}}}],"usage":{usage}}}"#);
        let answer = wire().decode(body.as_bytes(), false).unwrap();
        assert_eq!((answer.text.as_str(), answer.usage), ("x", expected), "{usage}");
    }
    assert_eq!(decode(&saying(&json!({"content": "x"}), &json!("stop"))).unwrap().usage, None);
}

#[test]
fn the_model_is_named_in_short() {
    for (name, kept) in [
        (json!("m"), Some("m".to_owned())),
        (json!("é".repeat(300)), Some("é".repeat(200))),
        (json!(""), None),
        (json!(7), None),
        (Value::Null, None),
    ] {
        let mut body = saying(&json!({"content": "x"}), &json!("stop"));
        body["model"] = name;
        assert_eq!(decode(&body).unwrap().model, kept);
    }
}

#[test]
fn what_is_no_answer() {
    let told = json!({"message": "Slow.", "type": "x", "code": "rate_limit_exceeded"});
    let table = [
        (json!({"error": told}), provider(429, "x", "rate_limit_exceeded", "Slow.")),
        (json!({"choices": [], "error": told}), provider(429, "x", "rate_limit_exceeded", "Slow.")),
        (json!({"choices": null, "error": "Down."}), provider(500, "", "", "Down.")),
        (
            json!({"choices": [{"finish_reason": "error", "error": {"code": 502, "message": "Up."}}]}),
            provider(502, "", "502", "Up."),
        ),
        (
            json!({"choices": [{"finish_reason": "error"}], "error": told}),
            provider(429, "x", "rate_limit_exceeded", "Slow."),
        ),
        (json!({"choices": [{"finish_reason": "error"}]}), provider(500, "", "", "")),
        (json!({}), WireError::Garbled("it has no choices")),
        (json!({"choices": [], "error": null}), WireError::Garbled("it has no choices")),
        (json!({"choices": [], "error": {}}), WireError::Garbled("it has no choices")),
        (
            saying(&json!({"tool_calls": [{"id": "a", "function": {"arguments": "{}"}}]}), &json!("stop")),
            WireError::Garbled("it asks for a call of no tool"),
        ),
        (
            saying(&json!({"tool_calls": [{"id": "a"}]}), &json!("stop")),
            WireError::Garbled("it asks for a call of no tool"),
        ),
    ];
    for (body, expected) in table {
        assert_eq!(decode(&body), Err(expected), "{body}");
    }
    for body in [
        &b""[..],
        b"[]",
        b"null",
        b"{",
        b"<html>",
        b"{\"choices\":7}",
        b"{\"choices\":[{\"message\":{\"content\":5}}]}",
        b"{\"choices\":[{\"message\":{\"content\":\"\xff\"}}]}",
        b"{\"skipped\":\"\xff\",\"choices\":[{\"message\":{\"content\":\"x\"}}]}",
    ] {
        assert!(matches!(wire().decode(body, true), Err(WireError::Garbled(_))), "{body:?}");
    }
    // An error beside an answer is none: some servers always have the field.
    let both =
        json!({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "error": {"code": 0}});
    assert_eq!(decode(&both).unwrap().text, "x");
}

#[test]
fn bodies_of_failure() {
    errors(&wire());
}

#[test]
fn the_system_message_stays_where_it_is() {
    let body = Case::new([system(), user("Hi")]).body(&wire());
    assert_eq!(body["messages"][0], json!({"role": "system", "content": "Answer with one JSON object."}));
}
