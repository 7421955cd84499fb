use super::OpenaiChat;
use super::tests::{completion, decode, wire};
use crate::event_stream::StreamFormat;
use crate::openai_samples::{add_events, assemble, check_any_bytes, provider_error, split};
use crate::own_parts::MAX_KEPT_BYTES;
use crate::samples::{call, opaque};
use crate::wire::Reasoning::{Discard, Keep};
use crate::wire::{Wire, WireError};
use pretty_assertions::assert_eq;
use proptest::prelude::{ProptestConfig, any, prop, proptest};
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use serde_json::{Value, json};

fn delta(delta: &Value) -> Value {
    json!({"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finished(reason: &str) -> Value {
    json!({"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

#[test]
fn the_number_of_tool_calls_is_limited() {
    let call = |index: usize| json!({"index": index, "id": format!("c{index}"), "function": {"name": "t"}});
    let calls = |count: usize| (0..count).map(call).collect::<Vec<_>>();
    let whole = |count: usize| decode(&completion(&json!({"tool_calls": calls(count)}), &json!("stop")));
    let streamed = |count: usize| {
        let events = calls(count).into_iter().map(|call| delta(&json!({"tool_calls": [call]})));
        assemble(&wire(), &events.chain([finished("stop")]).collect::<Vec<_>>(), Discard)
    };
    let unnumbered = |count: usize| {
        let call = |index| json!({"id": format!("c{index}"), "function": {"name": "t"}});
        let events = (0..count).map(|index| delta(&json!({"tool_calls": [call(index)]})));
        assemble(&wire(), &events.chain([finished("stop")]).collect::<Vec<_>>(), Discard)
    };
    for (count, expected) in [(128, 128), (129, 129), (200, 129)] {
        for answer in [whole(count), streamed(count), unnumbered(count)] {
            assert_eq!(answer.unwrap().tool_calls.len(), expected);
        }
    }
    // A large index is valid.
    let far = json!({"tool_calls": [{"index": 4_000_000_000_u32, "id": "a", "function": {"name": "t"}}]});
    let answer = assemble(&wire(), &[delta(&far), finished("stop")], Discard).unwrap();
    assert_eq!(answer.tool_calls, [crate::samples::call("a", "t", "{}")]);
}

#[test]
fn reasoning_is_kept_only_on_request() {
    let body =
        completion(&json!({"content": "Yes.", "reasoning_content": "Hm."}), &json!("stop")).to_string();
    let decoded = |reasoning| wire().decode(body.as_bytes(), reasoning).unwrap().reasoning;
    assert_eq!(decoded(Keep), opaque("openai-chat", &[json!({"reasoning_content": "Hm."})]));
    assert_eq!(decoded(Discard), None);
    let events = ["H", "m."].map(|part| delta(&json!({"content": null, "reasoning_content": part})));
    let streamed = |reasoning| {
        let events = [events.as_slice(), &[finished("stop")]].concat();
        assemble(&wire(), &events, reasoning).unwrap().reasoning
    };
    assert_eq!(streamed(Keep), decoded(Keep));
    assert_eq!(streamed(Discard), None);
    let none = completion(&json!({"content": "Yes.", "reasoning_content": null}), &json!("stop"));
    assert_eq!(decode(&none).unwrap().reasoning, None);
}

fn streamed(events: &[Value]) -> ModelAnswer {
    let events = [events, &[finished("stop")]].concat();
    assemble(&wire(), &events, Keep).unwrap()
}

fn kept_part(answer: &ModelAnswer) -> Value {
    answer.reasoning.as_ref().map(|opaque| opaque.parts[0].clone()).unwrap_or_default()
}

#[test]
fn pieces_of_reasoning_details_are_merged_by_their_index() {
    let details = |items: Value| delta(&json!({"content": "", "reasoning": "H", "reasoning_details": items}));
    let events = [
        details(
            json!([{"type": "reasoning.summary", "summary": "Fi", "id": "rs_1", "format": "f", "index": 0}]),
        ),
        details(json!([{"type": "reasoning.summary", "summary": "rst", "format": "f", "index": 0}])),
        details(json!([
            {"type": "reasoning.encrypted", "data": "AA==", "id": "rs_1", "format": "f", "index": 0},
            {"type": "reasoning.text", "text": "Sec", "signature": null, "index": 1},
        ])),
        details(json!([{"type": "reasoning.text", "text": "ond", "signature": "sig", "index": 1}])),
        details(json!([{"type": "reasoning.encrypted", "data": "BB==", "id": "call_a", "index": 1}])),
        details(json!([{"type": "reasoning.encrypted", "data": "CC==", "id": "call_b", "index": 1}])),
    ];
    let whole = json!([
        {"type": "reasoning.summary", "summary": "First", "id": "rs_1", "format": "f", "index": 0},
        {"type": "reasoning.encrypted", "data": "AA==", "id": "rs_1", "format": "f", "index": 0},
        {"type": "reasoning.text", "text": "Second", "signature": "sig", "index": 1},
        {"type": "reasoning.encrypted", "data": "BB==", "id": "call_a", "index": 1},
        {"type": "reasoning.encrypted", "data": "CC==", "id": "call_b", "index": 1},
    ]);
    assert_eq!(kept_part(&streamed(&events)), json!({"reasoning": "HHHHHH", "reasoning_details": whole}));
    // Without an index, only texts that follow each other are pieces.
    let events = [
        details(json!([{"type": "reasoning.text", "text": "a"}])),
        details(json!([{"type": "reasoning.text", "text": "b"}])),
        details(json!([{"type": "reasoning.encrypted", "data": "A"}])),
        details(json!([{"type": "reasoning.encrypted", "data": "B"}])),
    ];
    let whole = json!([
        {"type": "reasoning.text", "text": "ab"},
        {"type": "reasoning.encrypted", "data": "A"},
        {"type": "reasoning.encrypted", "data": "B"},
    ]);
    assert_eq!(kept_part(&streamed(&events))["reasoning_details"], whole);
}

#[test]
fn lists_of_content_are_merged_and_their_thoughts_are_no_text() {
    let thought = |text: &str| json!({"type": "thinking", "thinking": [{"type": "text", "text": text}]});
    let content = |content: Value| delta(&json!({ "content": content }));
    let events = [
        content(json!([thought("H")])),
        content(json!([thought("m.")])),
        content(json!("Y")),
        content(json!([{"type": "text", "text": "es."}])),
    ];
    let answer = streamed(&events);
    let whole = json!([thought("Hm."), {"type": "text", "text": "Yes."}]);
    let message = json!({ "content": whole });
    assert_eq!((answer.text.as_str(), kept_part(&answer)), ("Yes.", message.clone()));
    let decoded = decode(&completion(&message, &json!("stop"))).unwrap();
    assert_eq!((decoded.text.as_str(), kept_part(&decoded)), ("Yes.", message));
    // A list without thoughts is only text.
    let plain = streamed(&[content(json!([{"type": "text", "text": "a"}])), content(json!("b"))]);
    assert_eq!((plain.text.as_str(), plain.reasoning), ("ab", None));
}

#[test]
fn thoughts_between_tags_are_not_shown() {
    let thinking = OpenaiChat { may_think_in_text: true, ..wire() };
    let parts = ["<th", "ink>Hm", ".</thi", "nk>\n", "\nYes", "."];
    let mut assembler = thinking.assembler(Keep);
    let mut seen = Vec::new();
    for part in parts {
        let event = delta(&json!({ "content": part }));
        assembler.add_event(None, event.to_string().as_bytes()).unwrap();
        assembler.visit_text(&mut |text| seen.push(text.to_owned()));
    }
    assert_eq!(seen, ["", "", "", "", "Yes", "Yes."]);
    assembler.add_event(None, finished("stop").to_string().as_bytes()).unwrap();
    let answer = assembler.finish().unwrap();
    assert_eq!((answer.text.as_str(), kept_part(&answer)), ("Yes.", json!({"content": parts.concat()})));
    let body = completion(&json!({"content": parts.concat()}), &json!("stop")).to_string();
    assert_eq!(thinking.decode(body.as_bytes(), Keep), Ok(answer.clone()));
    assert_eq!(thinking.decode(body.as_bytes(), Discard), Ok(ModelAnswer { reasoning: None, ..answer }));
    // Not for the models of OpenAI.
    assert_eq!(wire().decode(body.as_bytes(), Keep).unwrap().text, parts.concat());
}

#[test]
fn streams_in_the_forms_of_many_servers() {
    // Azure begins with the results of its filters.
    let filters = json!({"choices": [], "prompt_filter_results": [{"prompt_index": 0}], "model": ""});
    assert_eq!(streamed(&[filters, delta(&json!({"content": "a"}))]).text, "a");
    // Google's server leaves out the index, and has a signature at the call.
    let signed = |name: &str, extra: Value| json!({"id": "", "type": "function", "function": {"name": name, "arguments": "{}"}, "extra_content": extra});
    let signature = json!({"google": {"thought_signature": "c2ln"}});
    let calls = json!({"tool_calls": [signed("a", signature.clone()), signed("b", Value::Null)]});
    let answer = streamed(&[delta(&calls)]);
    assert_eq!(answer.tool_calls, [call("", "a", "{}"), call("", "b", "{}")]);
    let kept = json!({"tool_calls": [
        {"extra_content": signature, "function": {"name": "a"}}, {"function": {"name": "b"}},
    ]});
    assert_eq!(kept_part(&answer), kept);
    // Groq has the usage in a field of its own.
    let end = json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "x_groq": {"usage": {"prompt_tokens": 3, "completion_tokens": 4}}});
    let answer = assemble(&wire(), &[delta(&json!({"content": "a"})), end], Keep).unwrap();
    assert_eq!(answer.usage.map(|usage| (usage.input_tokens, usage.output_tokens)), Some((3, 4)));
    // Kimi has it in the choice.
    let end = json!({"choices": [{"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 3, "completion_tokens": 4, "cached_tokens": 2}}]});
    let answer = assemble(&wire(), &[delta(&json!({"content": "a"})), end], Keep).unwrap();
    assert_eq!(answer.usage.map(|usage| (usage.input_tokens, usage.cached_tokens)), Some((3, Some(2))));
}

#[test]
fn a_stream_is_measured_by_what_it_holds() {
    let mut assembler = wire().assembler(Keep);
    let part = |part: Value| json!({"id": "x".repeat(900), "choices": [{"delta": part}]}).to_string();
    for event in [
        part(json!({"content": "abc", "reasoning": "de"})),
        part(json!({"tool_calls": [{"index": 0, "id": "i", "function": {"name": "fg", "arguments": "{}"}}]})),
    ] {
        assembler.add_event(None, event.as_bytes()).unwrap();
    }
    // The reasoning with its quotes.
    assert_eq!(assembler.held_bytes(), 3 + 4 + 4);
}

#[test]
fn pieces_of_reasoning_are_kept_by_what_they_add() {
    let detail =
        json!([{"type": "reasoning.text", "text": "tok ", "format": "anthropic-claude-v1", "index": 0}]);
    let piece = delta(&json!({"content": "", "reasoning": "tok ", "reasoning_details": detail}));
    let mut assembler = wire().assembler(Keep);
    let (count, event) = (10_000, piece.to_string());
    for _ in 0..count {
        assembler.add_event(None, event.as_bytes()).unwrap();
    }
    assert!(count * event.len() > MAX_KEPT_BYTES && assembler.held_bytes() < 100_000);
    assembler.add_event(None, finished("stop").to_string().as_bytes()).unwrap();
    let answer = assembler.finish().unwrap();
    let text = "tok ".repeat(count);
    assert_eq!(kept_part(&answer)["reasoning_details"][0]["text"], text);
    assert_eq!(kept_part(&answer)["reasoning"], text);
}

#[test]
fn fields_that_are_not_kept_are_not_held() {
    let mut assembler = wire().assembler(Keep);
    let piece = delta(&json!({"content": "a", "reasoning": "r".repeat(100_000)})).to_string();
    for _ in 0..100 {
        assembler.add_event(None, piece.as_bytes()).unwrap();
    }
    assert!(assembler.held_bytes() < 2 * MAX_KEPT_BYTES);
    assembler.add_event(None, finished("stop").to_string().as_bytes()).unwrap();
    assert_eq!(assembler.finish().unwrap().reasoning, None);
}

#[test]
fn an_error_in_a_list_is_an_error() {
    let error = json!([{"error": {"code": 503, "status": "UNAVAILABLE", "message": "Try later."}}]);
    let expect = |error: WireError| match error {
        WireError::Provider(error) => assert_eq!((error.status, error.message.as_str()), (503, "Try later.")),
        other => panic!("{other:?}"),
    };
    expect(assemble(&wire(), &[delta(&json!({"content": "a"})), error.clone()], Keep).unwrap_err());
    expect(decode(&error).unwrap_err());
    for no_error in [json!([]), json!([1]), json!([{"error": null}])] {
        assert!(matches!(decode(&no_error), Err(WireError::Malformed(_))), "{no_error}");
    }
}

#[test]
fn too_many_fields_are_not_kept() {
    let long = |count: usize| {
        let message = json!({"content": "Yes.", "reasoning": "r".repeat(count), "reasoning_details": []});
        decode(&completion(&message, &json!("stop"))).unwrap()
    };
    assert!(long(MAX_KEPT_BYTES / 2).reasoning.is_some());
    let answer = long(MAX_KEPT_BYTES + 1);
    assert_eq!((answer.text.as_str(), answer.reasoning), ("Yes.", None));
}

#[test]
fn assembles_a_stream_of_text() {
    let usage = json!({"id": "x", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}});
    let azure = json!({"id": "", "model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]});
    let mut first = delta(&json!({"role": "assistant", "content": "", "refusal": null}));
    first["model"] = json!("gpt-5-2025");
    let mut filtered = delta(&json!({"content": "Hel"}));
    filtered["choices"][0]["content_filter_results"] = json!({"hate": {"filtered": false}});
    filtered["usage"] = Value::Null;
    let events = [
        azure,
        first,
        filtered,
        json!(""),
        delta(&json!({"content": "lo"})),
        finished("stop"),
        usage,
        json!("[DONE]"),
    ];
    let expected = ModelAnswer {
        text: "Hello".to_owned(),
        usage: Some(Usage { input_tokens: 5, output_tokens: 2, ..Usage::default() }),
        model: Some("gpt-5-2025".to_owned()),
        ..ModelAnswer::default()
    };
    let mut assembler = wire().assembler(Discard);
    assert_eq!(add_events(&mut *assembler, &events), Ok(true));
    assert_eq!(assembler.finish(), Ok(expected));
    assert_eq!(wire().stream_format(), StreamFormat::Sse);
}

#[test]
fn deltas_find_their_tool_call() {
    let first = |arguments: &str| call("a", "one", arguments);
    let second = |arguments: &str| call("b", "two", arguments);
    let table = [
        // As documented.
        (
            json!([
                [{"index": 0, "id": "a", "type": "function", "function": {"name": "one", "arguments": ""}}],
                [{"index": 0, "function": {"arguments": "{\"x\""}}],
                [{"index": 1, "id": "b", "function": {"name": "two", "arguments": "{"}}],
                [{"index": 0, "function": {"arguments": ":1}"}}, {"index": 1, "function": {"arguments": "}"}}],
            ]),
            vec![first("{\"x\":1}"), second("{}")],
        ),
        // No index: the id changes, a name arrives, or neither.
        (
            json!([
                [{"id": "a", "function": {"name": "one", "arguments": "[1"}}],
                [{"function": {"arguments": "]"}}],
                [{"id": "b", "function": {"name": "two", "arguments": "[2"}}],
                [{"id": "b", "function": {"name": "two", "arguments": "]"}}],
                [{"id": "a", "function": {"arguments": " "}}],
            ]),
            vec![first("[1] "), second("[2]")],
        ),
        (
            json!([[{"function": {"name": "one", "arguments": {"x": 1}}}, {"function": {"name": "two"}}]]),
            vec![call("", "one", "{\"x\":1}"), call("", "two", "{}")],
        ),
        (
            json!([[{"id": "a"}], [{"function": {"name": "one"}}], [{"function": {"arguments": "[]"}}]]),
            vec![first("[]")],
        ),
        // Every call has the same index.
        (
            json!([
                [{"index": 0, "id": "a", "function": {"name": "one", "arguments": "{}"}}],
                [{"index": 0, "id": "b", "function": {"name": "two", "arguments": "{"}}],
                [{"index": 0, "function": {"arguments": "}"}}],
            ]),
            vec![first("{}"), second("{}")],
        ),
        // Every delta has a new id.
        (
            json!([
                [{"index": 0, "id": "a", "function": {"name": "one", "arguments": "{"}}],
                [{"index": 0, "id": "z", "function": {"arguments": "}"}}],
            ]),
            vec![first("{}")],
        ),
        // Every delta has the same name and id, or nulls.
        (
            json!([
                [{"index": 0, "id": "a", "function": {"name": "one", "arguments": null}}],
                [{"index": 0, "id": "a", "function": {"name": "one", "arguments": "{}"}}],
                [{"index": 0, "id": "", "function": {"name": "", "arguments": ""}}],
                [{"index": 0, "id": null, "function": null}],
            ]),
            vec![first("{}")],
        ),
    ];
    for (deltas, expected) in table {
        let deltas_of_calls =
            deltas.as_array().unwrap().iter().map(|calls| delta(&json!({"tool_calls": calls})));
        let events: Vec<_> = deltas_of_calls.chain([finished("tool_calls"), json!("[DONE]")]).collect();
        let answer = assemble(&wire(), &events, Discard).unwrap();
        assert_eq!((answer.finish, answer.tool_calls), (ModelFinish::ToolCalls, expected), "{deltas}");
    }
    let nameless = delta(&json!({"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": "{}"}}]}));
    let answer = assemble(&wire(), &[nameless, finished("tool_calls")], Discard).unwrap();
    assert_eq!(answer.tool_calls, [call("a", "", "{}")]);
}

#[test]
fn ends_of_streams() {
    let (text, done) = (delta(&json!({"content": "x"})), json!("[DONE]"));
    let end_of = |events: &[&Value]| {
        let events: Vec<_> = events.iter().map(|event| (*event).clone()).collect();
        assemble(&wire(), &events, Discard).map(|answer| (answer.text, answer.finish))
    };
    let x = |finish| Ok(("x".to_owned(), finish));
    assert_eq!(end_of(&[&text, &finished("stop"), &done]), x(ModelFinish::Stop));
    assert_eq!(end_of(&[&text, &finished("stop")]), x(ModelFinish::Stop));
    assert_eq!(end_of(&[&text, &finished("length"), &text]), Ok(("xx".to_owned(), ModelFinish::Truncated)));
    assert_eq!(end_of(&[&text, &finished("content_filter"), &done]), x(ModelFinish::Refused));
    assert_eq!(end_of(&[&text, &done]), x(ModelFinish::Stop));
    assert_eq!(end_of(&[&text]), Err(WireError::Interrupted));
    assert_eq!(end_of(&[]), Err(WireError::Interrupted));
    assert_eq!(end_of(&[&done]), Err(WireError::Malformed("it has no choices")));
    let refusal = delta(&json!({"refusal": "I "}));
    assert_eq!(
        end_of(&[&text, &refusal, &finished("stop"), &done]),
        Ok((String::new(), ModelFinish::Refused))
    );
}

#[test]
fn errors_within_a_stream_get_their_usual_status() {
    let table = [
        (json!({"type": "server_error", "message": "M"}), 500),
        (json!({"type": "rate_limit_error"}), 429),
        (json!({"type": "tokens", "code": "rate_limit_exceeded"}), 429),
        (json!({"type": "insufficient_quota", "code": "credit_balance_exhausted"}), 429),
        (json!({"type": "invalid_request_error", "code": "context_length_exceeded"}), 400),
        (json!({"type": "invalid_request_error", "code": "model_not_found"}), 404),
        (json!({"type": "invalid_request_error", "code": "invalid_api_key"}), 401),
        (json!({"type": "invalid_request_error", "code": null}), 400),
        (json!({"type": "permission_error"}), 403),
        (json!({"code": "server_is_overloaded"}), 503),
        (json!({"type": "overloaded_error"}), 503),
        (json!({"type": "timeout_error"}), 504),
        (json!({"code": "content_filter"}), 400),
        (json!({"code": 402, "message": "M"}), 402),
        (json!({"code": "503"}), 503),
        (json!({"code": 200}), 500),
        (json!({"type": "never_heard_of"}), 500),
        (json!("Down."), 500),
    ];
    for (error, status) in table {
        for event in
            [json!({"error": error}), json!({"error": error, "choices": [{"finish_reason": "error"}]})]
        {
            let events = [delta(&json!({"content": "x"})), event];
            let Err(WireError::Provider(found)) = assemble(&wire(), &events, Discard) else {
                panic!("{error}")
            };
            assert_eq!(found.status, status, "{error}");
        }
    }
    let mut assembler = wire().assembler(Discard);
    let bare = assembler.add_event(Some("error"), br#"{"message":"Slow.","code":"slow_down"}"#);
    assert_eq!(bare, Err(provider_error(429, "", "slow_down", "Slow.")));
    assert_eq!(assembler.add_event(Some("error"), b"{}"), Err(provider_error(500, "", "", "")));
    // Some servers always send the field.
    for none in [Value::Null, json!({}), json!(""), json!(false)] {
        let mut event = finished("stop");
        event["error"] = none;
        assert!(assemble(&wire(), &[event], Discard).is_ok());
    }
}

#[test]
fn malformed_events() {
    for data in [
        &b"x"[..],
        b"[1]",
        b"{\"choices\":7}",
        b"{\"a\":\"\xff\"}",
        b"\xff",
        b"{\"choices\":[{\"delta\":{\"content\":5}}]}",
    ] {
        let result = wire().assembler(Discard).add_event(None, data);
        assert!(matches!(result, Err(WireError::Malformed(_))), "{data:?}");
    }
    // Unknown events are not errors.
    assert_eq!(wire().assembler(Discard).add_event(Some("ping"), b"{\"type\":\"ping\"}"), Ok(false));
    assert_eq!(wire().assembler(Discard).add_event(None, b" "), Ok(false));
    assert_eq!(wire().assembler(Discard).add_event(None, b" [DONE] "), Ok(true));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_answer_does_not_depend_on_how_it_is_split(
        text in any::<String>(),
        reasoning in any::<String>(),
        arguments in prop::collection::vec(any::<String>(), 0..4),
        sizes in prop::collection::vec(0_u8..9, 0..9),
    ) {
        let calls: Vec<_> = arguments.iter().enumerate()
            .map(|(index, arguments)| json!({"id": format!("c{index}"), "function": {"name": "t", "arguments": arguments}}))
            .collect();
        let whole = json!({"content": text, "reasoning_content": reasoning, "tool_calls": calls});
        let whole = decode(&completion(&whole, &json!("stop"))).unwrap();

        let mut events = Vec::new();
        events.extend(split(&reasoning, &sizes).iter().map(|part| delta(&json!({"reasoning_content": part}))));
        events.extend(split(&text, &sizes).iter().map(|part| delta(&json!({"content": part}))));
        let started = |index: usize| json!([{"index": index, "id": format!("c{index}"), "function": {"name": "t"}}]);
        events.extend((0..arguments.len()).map(|index| delta(&json!({"tool_calls": started(index)}))));
        // All calls at once, a delta of each in turn.
        let splits: Vec<_> = arguments.iter().map(|arguments| split(arguments, &sizes)).collect();
        for turn in 0..=sizes.len() {
            for (index, parts) in splits.iter().enumerate() {
                let call = json!([{"index": index, "function": {"arguments": parts[turn]}}]);
                events.push(delta(&json!({"tool_calls": call})));
            }
        }
        events.extend([finished("stop"), json!("[DONE]")]);
        assert_eq!(assemble(&wire(), &events, Keep), Ok(whole));
    }

    #[test]
    fn no_bytes_make_it_panic(body in prop::collection::vec(any::<u8>(), 0..200), status in any::<u16>()) {
        check_any_bytes(&wire(), &body, status);
    }
}
