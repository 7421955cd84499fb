use super::OpenaiChat;
use crate::openai_samples::{
    check_errors, check_goldens, check_tool_choices, first, provider_error, system_message, tool_turn,
    with_tools,
};
use crate::samples::{
    Sample, assistant, assistant_calls, call, conversation, opaque, tool, tool_result, user,
};
use crate::wire::Reasoning::{Discard, Keep};
use crate::wire::{Wire, WireError};
use pretty_assertions::assert_eq;
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_contract::transcript::ChatMessage;
use redflow_ports::ToolChoice;
use serde_json::{Value, json};

pub(super) fn wire() -> OpenaiChat {
    OpenaiChat { model: Some("gpt-5".to_owned()), ..OpenaiChat::default() }
}

pub(super) fn decode(body: &Value) -> Result<ModelAnswer, WireError> {
    wire().decode(body.to_string().as_bytes(), Keep)
}

pub(super) fn completion(message: &Value, finish_reason: &Value) -> Value {
    json!({"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]})
}

#[test]
fn request_bodies_equal_their_golden_files() {
    check_goldens(&wire());
    let all_settings = OpenaiChat {
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
    first().check_golden(&all_settings, "openai-chat-sampling");
    let legacy = OpenaiChat { max_tokens: Some(500), legacy_max_tokens: true, ..OpenaiChat::default() };
    first().check_golden(&legacy, "openai-chat-azure-dated");
    let streamed = OpenaiChat { stream_usage: true, ..wire() };
    Sample { stream: true, ..first() }.check_golden(&streamed, "openai-chat-stream");
    let mut turn = tool_turn();
    turn[2].reasoning = opaque("openai-chat", &[json!({"reasoning_content": "Both at once."})]);
    Sample { reasoning: Keep, ..with_tools(turn) }.check_golden(&wire(), "openai-chat-reasoning");
}

#[test]
fn sends_only_the_settings_that_are_set() {
    let body = first().body(&OpenaiChat::default());
    assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["messages"]);
    let body = Sample { stream: true, ..first() }.body(&OpenaiChat::default());
    assert_eq!((&body["stream"], body.get("stream_options")), (&json!(true), None));
    let body = first().body(&OpenaiChat { stream_usage: true, ..OpenaiChat::default() });
    assert_eq!((body.get("stream"), body.get("stream_options")), (None, None));
    let body = Sample { tool_choice: ToolChoice::Required, ..first() }.body(&wire());
    assert_eq!((body.get("tools"), body.get("tool_choice")), (None, None));
}

#[test]
fn sends_the_tool_choice() {
    check_tool_choices(&wire());
}

#[test]
fn schemas_always_have_the_required_keys() {
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
        let body = Sample { tools: vec![tool("t", "", schema)], ..first() }.body(&wire());
        assert_eq!(
            body["tools"],
            json!([{"type": "function", "function": {"name": "t", "parameters": sent}}])
        );
    }
}

#[test]
fn content_is_null_only_with_tool_calls() {
    let calls = [call("a", "t", "{}")];
    let sample = conversation([
        user(""),
        assistant(""),
        assistant_calls("", &calls),
        assistant_calls("So:", &calls),
        tool_result("a", ""),
    ]);
    let body = sample.body(&wire());
    let contents: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|message| &message["content"]).collect();
    assert_eq!(contents, [&json!(""), &json!(""), &Value::Null, &json!("So:"), &json!("")]);
}

/// `Unexpected role 'user' after role 'tool'`
#[test]
fn a_model_of_mistral_answers_the_results_before_the_user_goes_on() {
    let calls = [call("a", "t", "{}")];
    let sample =
        conversation([user("Hi"), assistant_calls("", &calls), tool_result("a", "1"), user("Finish now.")]);
    let roles = |mark: &str, model: &str| {
        let wire =
            OpenaiChat { mark: mark.to_owned(), model: Some(model.to_owned()), ..OpenaiChat::default() };
        let body = sample.body(&wire);
        let messages = body["messages"].as_array().unwrap().iter();
        messages.map(|message| message["role"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    for (mark, model) in [
        ("openai-chat@api.mistral.ai", "ft:abc"),
        ("openai-chat@openrouter.ai", "mistralai/mistral-large-4"),
        ("openai-chat@127.0.0.1:8000", "mistralai/Devstral-Small-2-24B"),
    ] {
        assert_eq!(roles(mark, model), "user assistant tool assistant user", "{mark} {model}");
    }
    assert_eq!(roles("openai-chat@api.openai.com", "gpt-6-luna"), "user assistant tool user");
}

#[test]
fn sends_reasoning_back_only_to_its_own_wire_and_only_if_kept() {
    let ours = [json!({"reasoning_content": "Hm."})];
    for (wire_name, reasoning, sent) in
        [("openai-chat", Keep, Some("Hm.")), ("openai-chat", Discard, None), ("anthropic", Keep, None)]
    {
        let mut message = assistant("Yes.");
        message.reasoning = opaque(wire_name, &ours);
        let body = Sample { reasoning, ..conversation([user("Hi"), message]) }.body(&wire());
        assert_eq!(body["messages"][1].get("reasoning_content").and_then(Value::as_str), sent);
    }
}

/// An answer with fields that this wire does not know, and one of another type.
fn answered(wire: &OpenaiChat) -> ChatMessage {
    let body = completion(
        &json!({
            "role": "assistant", "content": "Yes.", "refusal": null, "annotations": [], "function_call": null, "audio": null,
            "reasoning": "Hm.", "reasoning_details": [{"type": "reasoning.encrypted", "data": "AA==", "index": 0}],
            "reasoning_content": "Hm.", "verdict": {"b": 1, "a": null}, "nothing": null,
            "tool_calls": [
                {"id": "a", "type": "function", "index": 0, "function": {"name": "x", "arguments": "{}", "thought": "t"}},
                {"id": "b", "type": "function", "function": {"name": "y", "arguments": "{}"}, "extra_content": {"google": {"thought_signature": "c2ln"}}},
            ],
        }),
        &json!("tool_calls"),
    );
    let answer = wire.decode(body.to_string().as_bytes(), Keep).unwrap();
    ChatMessage { reasoning: answer.reasoning, ..assistant_calls(&answer.text, &answer.tool_calls) }
}

fn sent(wire: &OpenaiChat, message: ChatMessage) -> Value {
    Sample { reasoning: Keep, ..conversation([user("Hi"), message]) }.body(wire)["messages"][1].clone()
}

fn at(base: &str) -> OpenaiChat {
    OpenaiChat { mark: OpenaiChat::mark(&base.parse().unwrap()), ..wire() }
}

#[test]
fn unknown_fields_go_back_to_the_same_server_only() {
    let router = at("https://openrouter.ai/api/v1");
    let message = answered(&router);
    let plain_calls = json!([
        {"id": "a", "type": "function", "function": {"name": "x", "arguments": "{}"}},
        {"id": "b", "type": "function", "function": {"name": "y", "arguments": "{}"}},
    ]);
    let plain = json!({"role": "assistant", "content": "Yes.", "tool_calls": plain_calls});
    let expected = json!({
        "role": "assistant", "content": "Yes.",
        "reasoning": "Hm.", "reasoning_details": [{"type": "reasoning.encrypted", "data": "AA==", "index": 0}],
        "reasoning_content": "Hm.", "verdict": {"b": 1, "a": null},
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "x", "arguments": "{}", "thought": "t"}},
            {"id": "b", "type": "function", "function": {"name": "y", "arguments": "{}"}, "extra_content": {"google": {"thought_signature": "c2ln"}}},
        ],
    });
    assert_eq!(sent(&router, message.clone()), expected);
    assert_eq!(sent(&at("https://openrouter.ai/other"), message.clone()), expected);
    for other in [at("https://api.groq.com/openai/v1"), at("https://openrouter.ai:8443/api/v1"), wire()] {
        assert_eq!(sent(&other, message.clone()), plain);
    }
    let openai = OpenaiChat { refuses_reasoning: true, ..router.clone() };
    assert_eq!(sent(&openai, message.clone()), plain);
    assert_eq!(answered(&openai).reasoning, None);
    // The fields of calls go back with the same calls only.
    let mut fewer = message;
    fewer.tool_calls.pop();
    assert_eq!(sent(&router, fewer)["tool_calls"], json!([plain_calls[0]]));
}

#[test]
fn reasoning_of_an_earlier_version_goes_to_every_server() {
    let part = json!({"reasoning_content": "Hm.", "reasoning": "no such field then"});
    let message = ChatMessage { reasoning: opaque("openai-chat", &[part]), ..assistant("Yes.") };
    let expected = json!({"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."});
    assert_eq!(sent(&at("https://api.deepseek.com"), message), expected);
}

#[test]
fn lists_of_content_go_back_if_the_text_is_the_same() {
    let content = json!([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "Yes."}]);
    let tagged = json!("<think>Hm.</think>\n\nYes.");
    for content in [content, tagged] {
        let wire = OpenaiChat { may_think_in_text: true, ..wire() };
        let body = completion(&json!({ "content": content.clone() }), &json!("stop")).to_string();
        let answer = wire.decode(body.as_bytes(), Keep).unwrap();
        assert_eq!(answer.text, "Yes.");
        let message = ChatMessage { reasoning: answer.reasoning, ..assistant("Yes.") };
        assert_eq!(sent(&wire, message.clone()), json!({"role": "assistant", "content": content}));
        let changed = ChatMessage { content: "No.".to_owned(), ..message };
        assert_eq!(sent(&wire, changed), json!({"role": "assistant", "content": "No."}));
    }
}

#[test]
fn servers_that_require_reasoning_get_an_empty_one() {
    let deepseek = OpenaiChat { fills_reasoning: true, ..wire() };
    let messages = [user("Hi"), assistant("Yes."), user("And?")];
    let reasoning = |sample: &Sample| {
        let body = sample.body(&deepseek);
        let messages = body["messages"].as_array().unwrap().iter();
        messages.map(|message| message.get("reasoning_content").cloned()).collect::<Vec<_>>()
    };
    let with = Sample { reasoning: Keep, ..with_tools(messages.clone()) };
    assert_eq!(reasoning(&with), [None, Some(json!("")), None]);
    assert_eq!(reasoning(&Sample { reasoning: Keep, ..conversation(messages) }), [None, None, None]);
    let kept = ChatMessage {
        reasoning: opaque("openai-chat", &[json!({"reasoning_content": "Hm."})]),
        ..assistant("Yes.")
    };
    assert_eq!(reasoning(&Sample { reasoning: Keep, ..with_tools([kept]) }), [Some(json!("Hm."))]);
}

#[test]
fn the_cost_that_a_server_reports_is_taken() {
    for (cost, expected) in [
        (json!(0.0125), Some(0.0125)),
        (json!("0.5"), Some(0.5)),
        (json!(0), Some(0.0)),
        (json!(-1), None),
        (json!("1e999"), None),
        // The sum of a run would be no number.
        (json!(1e308), None),
        (json!("NaN"), None),
        (json!({"total": 1}), None),
        (Value::Null, None),
    ] {
        let mut body = completion(&json!({"content": "Yes."}), &json!("stop"));
        body["usage"] = json!({"prompt_tokens": 1, "completion_tokens": 2, "cost": cost});
        assert_eq!(decode(&body).unwrap().usage.unwrap().cost, expected, "{cost}");
    }
}

#[test]
fn input_from_the_cache_is_counted_wherever_it_stands() {
    for (usage, expected) in [
        (json!({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}), Some(4)),
        (json!({"prompt_tokens": 9, "prompt_cache_hit_tokens": 5, "prompt_cache_miss_tokens": 4}), Some(5)),
        (json!({"prompt_tokens": 9, "cached_tokens": 6}), Some(6)),
        (
            json!({"prompt_tokens": 9, "cached_tokens": 6, "prompt_tokens_details": {"cached_tokens": 0}}),
            Some(0),
        ),
        (json!({"prompt_tokens": 9, "cached_tokens": null}), None),
    ] {
        let mut body = completion(&json!({"content": "Yes."}), &json!("stop"));
        body["usage"] = usage;
        assert_eq!(decode(&body).unwrap().usage.unwrap().cached_tokens, expected, "{}", body["usage"]);
    }
}

#[test]
fn decodes_a_whole_answer() {
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
        ..Usage::default()
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
fn finish_reasons() {
    let calls = json!([{"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"}}]);
    let table = [
        (json!({"content": "x"}), json!("stop"), ModelFinish::Stop),
        (json!({"content": "x"}), json!("length"), ModelFinish::Truncated),
        (json!({"content": "x"}), json!("content_filter"), ModelFinish::Refused),
        (json!({"content": "x"}), json!("eos"), ModelFinish::Stop),
        (json!({"content": "x"}), json!(7), ModelFinish::Stop),
        (json!({"content": "x"}), Value::Null, ModelFinish::Stop),
        (json!({"content": "x"}), json!("tool_calls"), ModelFinish::Stop),
        (json!({"tool_calls": calls}), json!("tool_calls"), ModelFinish::ToolCalls),
        (json!({"tool_calls": calls}), json!("function_call"), ModelFinish::ToolCalls),
        (json!({"tool_calls": calls}), json!("stop"), ModelFinish::ToolCalls),
        (json!({"tool_calls": calls}), Value::Null, ModelFinish::ToolCalls),
        (json!({"tool_calls": calls}), json!("length"), ModelFinish::Truncated),
        (json!({"tool_calls": calls}), json!("content_filter"), ModelFinish::Refused),
        (json!({"content": null, "refusal": "I will not."}), json!("stop"), ModelFinish::Refused),
        (json!({"content": "x", "refusal": ""}), json!("stop"), ModelFinish::Stop),
    ];
    for (message, reason, finish) in table {
        assert_eq!(decode(&completion(&message, &reason)).unwrap().finish, finish, "{message} {reason}");
    }
}

#[test]
fn texts_in_the_forms_of_many_servers() {
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
        assert_eq!(decode(&completion(&message, &json!("stop"))).unwrap().text, text, "{message}");
    }
}

#[test]
fn tool_calls_in_the_forms_of_many_servers() {
    let function = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let message = json!({"content": null, "tool_calls": [
        {"id": "call_1", "type": "function", "function": function("a", json!("{\"x\": 1}"))},
        {"id": null, "function": function("b", json!({"x": 1}))},
        {"id": "", "function": function("c", json!(""))},
        {"id": "call_1", "index": 0, "function": function("d", Value::Null)},
        {"function": {"name": "e"}},
        {"id": 7, "function": function("f", json!("no JSON"))},
    ]});
    let expected = vec![
        call("call_1", "a", "{\"x\": 1}"),
        call("", "b", "{\"x\":1}"),
        call("", "c", "{}"),
        call("call_1", "d", "{}"),
        call("", "e", "{}"),
        call("", "f", "no JSON"),
    ];
    assert_eq!(decode(&completion(&message, &json!("tool_calls"))).unwrap().tool_calls, expected);
    for none in [json!({"tool_calls": null}), json!({"tool_calls": []})] {
        assert_eq!(decode(&completion(&none, &json!("stop"))).unwrap().tool_calls, []);
    }
}

#[test]
fn invalid_usage_never_fails_an_answer() {
    let usage = |input_tokens, output_tokens, cached_tokens| {
        Some(Usage { input_tokens, output_tokens, cached_tokens, ..Usage::default() })
    };
    let table = [
        (r#"null"#, None),
        (r#"{}"#, None),
        (r#"[]"#, None),
        (r#""many""#, None),
        (r#"{"total_tokens":5}"#, None),
        (r#"{"prompt_tokens":-5,"completion_tokens":"x"}"#, None),
        (r#"{"prompt_tokens":3}"#, usage(3, 0, None)),
        (r#"{"prompt_tokens":3.0,"completion_tokens":1e2}"#, usage(3, 100, None)),
        (r#"{"prompt_tokens":-1,"completion_tokens":4}"#, usage(0, 4, None)),
        (r#"{"prompt_tokens":1e999,"completion_tokens":4}"#, usage(0, 4, None)),
        (r#"{"prompt_tokens":99999999999999999999999,"completion_tokens":4}"#, usage(0, 4, None)),
        (r#"{"prompt_tokens":9007199254740993,"completion_tokens":4}"#, usage(0, 4, None)),
        (r#"{"prompt_tokens":3,"completion_tokens":4,"prompt_tokens_details":null}"#, usage(3, 4, None)),
        (r#"{"prompt_tokens":3,"completion_tokens":4,"prompt_tokens_details":7}"#, usage(3, 4, None)),
        (
            r#"{"prompt_tokens":3,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":-1}}"#,
            usage(3, 4, None),
        ),
        (
            r#"{"prompt_tokens":3,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":2}}"#,
            usage(3, 4, Some(2)),
        ),
        (r#"{"input_tokens":3,"output_tokens":4,"prompt_tokens":3}"#, usage(3, 4, None)),
    ];
    for (usage, expected) in table {
        let body = format!(r#"{{"choices":[{{"message":{{"content":"x"}}}}],"usage":{usage}}}"#);
        let answer = wire().decode(body.as_bytes(), Discard).unwrap();
        assert_eq!((answer.text.as_str(), answer.usage), ("x", expected), "{usage}");
    }
    assert_eq!(decode(&completion(&json!({"content": "x"}), &json!("stop"))).unwrap().usage, None);
}

#[test]
fn the_model_name_is_shortened() {
    for (name, kept) in [
        (json!("m"), Some("m".to_owned())),
        (json!("é".repeat(300)), Some("é".repeat(200))),
        (json!(""), None),
        (json!(7), None),
        (Value::Null, None),
    ] {
        let mut body = completion(&json!({"content": "x"}), &json!("stop"));
        body["model"] = name;
        assert_eq!(decode(&body).unwrap().model, kept);
    }
}

#[test]
fn responses_without_an_answer() {
    let error = json!({"message": "Slow.", "type": "x", "code": "rate_limit_exceeded"});
    let table = [
        (json!({"error": error}), provider_error(429, "x", "rate_limit_exceeded", "Slow.")),
        (json!({"choices": [], "error": error}), provider_error(429, "x", "rate_limit_exceeded", "Slow.")),
        (json!({"choices": null, "error": "Down."}), provider_error(500, "", "", "Down.")),
        (
            json!({"choices": [{"finish_reason": "error", "error": {"code": 502, "message": "Up."}}]}),
            provider_error(502, "", "502", "Up."),
        ),
        (
            json!({"choices": [{"finish_reason": "error"}], "error": error}),
            provider_error(429, "x", "rate_limit_exceeded", "Slow."),
        ),
        (json!({"choices": [{"finish_reason": "error"}]}), provider_error(500, "", "", "")),
        (json!({}), WireError::Malformed("it has no choices")),
        (json!({"choices": [], "error": null}), WireError::Malformed("it has no choices")),
        (json!({"choices": [], "error": {}}), WireError::Malformed("it has no choices")),
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
        assert!(matches!(wire().decode(body, Keep), Err(WireError::Malformed(_))), "{body:?}");
    }
    // An error next to an answer does not count: some servers always send the field.
    let both =
        json!({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "error": {"code": 0}});
    assert_eq!(decode(&both).unwrap().text, "x");
}

#[test]
fn error_bodies() {
    check_errors(&wire());
}

#[test]
fn the_system_message_is_the_first_message() {
    let body = conversation([system_message(), user("Hi")]).body(&wire());
    assert_eq!(body["messages"][0], json!({"role": "system", "content": "Answer with one JSON object."}));
}
