use super::tests::{decode, saying, wire};
use crate::openai_cases::{call, cut, feed, opaque, provider, stream};
use crate::wire::{Framing, Wire, WireError};
use pretty_assertions::assert_eq;
use proptest::prelude::{ProptestConfig, any, prop, proptest};
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use serde_json::{Value, json};

fn delta(delta: &Value) -> Value {
    json!({"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn ended(reason: &str) -> Value {
    json!({"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

#[test]
fn no_more_calls_than_there_may_be() {
    let piece = |index: usize| json!({"index": index, "id": format!("c{index}"), "function": {"name": "t"}});
    let pieces = |count: usize| (0..count).map(piece).collect::<Vec<_>>();
    let whole = |count: usize| decode(&saying(&json!({"tool_calls": pieces(count)}), &json!("stop")));
    let streamed = |count: usize| {
        let events = pieces(count).into_iter().map(|piece| delta(&json!({"tool_calls": [piece]})));
        stream(&wire(), &events.chain([ended("stop")]).collect::<Vec<_>>(), false)
    };
    let unnumbered = |count: usize| {
        let piece = |index| json!({"id": format!("c{index}"), "function": {"name": "t"}});
        let events = (0..count).map(|index| delta(&json!({"tool_calls": [piece(index)]})));
        stream(&wire(), &events.chain([ended("stop")]).collect::<Vec<_>>(), false)
    };
    for made in [whole(128), streamed(128), unnumbered(128)] {
        assert_eq!(made.unwrap().tool_calls.len(), 128);
    }
    let too_many = Err(WireError::Garbled("it asks for too many calls"));
    for made in [whole(129), streamed(129), unnumbered(129)] {
        assert_eq!(made, too_many);
    }
    let far = json!({"tool_calls": [{"index": 4_000_000_000_u32, "id": "a", "function": {"name": "t"}}]});
    assert_eq!(stream(&wire(), &[delta(&far), ended("stop")], false), too_many);
}

#[test]
fn reasoning_is_kept_only_if_wanted() {
    let body = saying(&json!({"content": "Yes.", "reasoning_content": "Hm."}), &json!("stop")).to_string();
    let kept = |wanted| wire().decode(body.as_bytes(), wanted).unwrap().reasoning;
    assert_eq!(kept(true), opaque("openai-chat", &[json!({"reasoning_content": "Hm."})]));
    assert_eq!(kept(false), None);
    let events = ["H", "m."].map(|part| delta(&json!({"content": null, "reasoning_content": part})));
    let streamed = |wanted| {
        let events = [events.as_slice(), &[ended("stop")]].concat();
        stream(&wire(), &events, wanted).unwrap().reasoning
    };
    assert_eq!(streamed(true), kept(true));
    assert_eq!(streamed(false), None);
    let none = saying(&json!({"content": "Yes.", "reasoning_content": null}), &json!("stop"));
    assert_eq!(decode(&none).unwrap().reasoning, None);
}

#[test]
fn a_stream_of_text() {
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
        ended("stop"),
        usage,
        json!("[DONE]"),
    ];
    let expected = ModelAnswer {
        text: "Hello".to_owned(),
        usage: Some(Usage { input_tokens: 5, output_tokens: 2, ..Usage::default() }),
        model: Some("gpt-5-2025".to_owned()),
        ..ModelAnswer::default()
    };
    let mut assembly = wire().assemble(false);
    assert_eq!(feed(&mut *assembly, &events), Ok(true));
    assert_eq!(assembly.finish(), Ok(expected));
    assert_eq!(wire().framing(), Framing::Sse);
}

#[test]
fn pieces_of_calls_find_their_call() {
    let first = |arguments: &str| call("a", "one", arguments);
    let second = |arguments: &str| call("b", "two", arguments);
    let table = [
        // As it is written down.
        (
            json!([
                [{"index": 0, "id": "a", "type": "function", "function": {"name": "one", "arguments": ""}}],
                [{"index": 0, "function": {"arguments": "{\"x\""}}],
                [{"index": 1, "id": "b", "function": {"name": "two", "arguments": "{"}}],
                [{"index": 0, "function": {"arguments": ":1}"}}, {"index": 1, "function": {"arguments": "}"}}],
            ]),
            vec![first("{\"x\":1}"), second("{}")],
        ),
        // No index: an id that changes, a name that comes, or neither.
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
            vec![call("call_0", "one", "{\"x\":1}"), call("call_1", "two", "{}")],
        ),
        (
            json!([[{"id": "a"}], [{"function": {"name": "one"}}], [{"function": {"arguments": "[]"}}]]),
            vec![first("[]")],
        ),
        // Every call the same index.
        (
            json!([
                [{"index": 0, "id": "a", "function": {"name": "one", "arguments": "{}"}}],
                [{"index": 0, "id": "b", "function": {"name": "two", "arguments": "{"}}],
                [{"index": 0, "function": {"arguments": "}"}}],
            ]),
            vec![first("{}"), second("{}")],
        ),
        // Every piece a new id.
        (
            json!([
                [{"index": 0, "id": "a", "function": {"name": "one", "arguments": "{"}}],
                [{"index": 0, "id": "z", "function": {"arguments": "}"}}],
            ]),
            vec![first("{}")],
        ),
        // The same name and id in every piece; nulls.
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
        let pieces = deltas.as_array().unwrap().iter().map(|calls| delta(&json!({"tool_calls": calls})));
        let events: Vec<_> = pieces.chain([ended("tool_calls"), json!("[DONE]")]).collect();
        let answer = stream(&wire(), &events, false).unwrap();
        assert_eq!((answer.finish, answer.tool_calls), (ModelFinish::ToolCalls, expected), "{deltas}");
    }
    let nameless = delta(&json!({"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": "{}"}}]}));
    let garbled = Err(WireError::Garbled("it asks for a call of no tool"));
    assert_eq!(stream(&wire(), &[nameless, ended("tool_calls")], false), garbled);
}

#[test]
fn how_streams_end() {
    let (text, done) = (delta(&json!({"content": "x"})), json!("[DONE]"));
    let ends = |events: &[&Value]| {
        let events: Vec<_> = events.iter().map(|event| (*event).clone()).collect();
        stream(&wire(), &events, false).map(|answer| (answer.text, answer.finish))
    };
    let x = |finish| Ok(("x".to_owned(), finish));
    assert_eq!(ends(&[&text, &ended("stop"), &done]), x(ModelFinish::Stop));
    assert_eq!(ends(&[&text, &ended("stop")]), x(ModelFinish::Stop));
    assert_eq!(ends(&[&text, &ended("length"), &text]), Ok(("xx".to_owned(), ModelFinish::Truncated)));
    assert_eq!(ends(&[&text, &ended("content_filter"), &done]), x(ModelFinish::Refused));
    assert_eq!(ends(&[&text, &done]), x(ModelFinish::Stop));
    assert_eq!(ends(&[&text]), Err(WireError::Cut));
    assert_eq!(ends(&[]), Err(WireError::Cut));
    assert_eq!(ends(&[&done]), Err(WireError::Garbled("it has no choices")));
    let refusal = delta(&json!({"refusal": "I "}));
    assert_eq!(ends(&[&text, &refusal, &ended("stop"), &done]), Ok((String::new(), ModelFinish::Refused)));
}

#[test]
fn errors_in_the_midst_have_the_status_they_would_have_had() {
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
            let Err(WireError::Provider(told)) = stream(&wire(), &events, false) else { panic!("{error}") };
            assert_eq!(told.status, status, "{error}");
        }
    }
    let mut assembly = wire().assemble(false);
    let bare = assembly.event(Some("error"), br#"{"message":"Slow.","code":"slow_down"}"#);
    assert_eq!(bare, Err(provider(429, "", "slow_down", "Slow.")));
    assert_eq!(assembly.event(Some("error"), b"{}"), Err(provider(500, "", "", "")));
    // A field that is always there says nothing.
    for none in [Value::Null, json!({}), json!(""), json!(false)] {
        let mut event = ended("stop");
        event["error"] = none;
        assert!(stream(&wire(), &[event], false).is_ok());
    }
}

#[test]
fn events_that_are_none() {
    for data in [
        &b"x"[..],
        b"[1]",
        b"{\"choices\":7}",
        b"{\"a\":\"\xff\"}",
        b"\xff",
        b"{\"choices\":[{\"delta\":{\"content\":5}}]}",
    ] {
        let made = wire().assemble(false).event(None, data);
        assert!(matches!(made, Err(WireError::Garbled(_))), "{data:?}");
    }
    // What is not known is not a fault.
    assert_eq!(wire().assemble(false).event(Some("ping"), b"{\"type\":\"ping\"}"), Ok(false));
    assert_eq!(wire().assemble(false).event(None, b" "), Ok(false));
    assert_eq!(wire().assemble(false).event(None, b" [DONE] "), Ok(true));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn however_it_is_cut_the_answer_is_the_same(
        text in any::<String>(),
        thoughts in any::<String>(),
        arguments in prop::collection::vec(any::<String>(), 0..4),
        sizes in prop::collection::vec(0_u8..9, 0..9),
    ) {
        let asked: Vec<_> = arguments.iter().enumerate()
            .map(|(index, arguments)| json!({"id": format!("c{index}"), "function": {"name": "t", "arguments": arguments}}))
            .collect();
        let whole = json!({"content": text, "reasoning_content": thoughts, "tool_calls": asked});
        let whole = decode(&saying(&whole, &json!("stop"))).unwrap();

        let mut events = Vec::new();
        events.extend(cut(&thoughts, &sizes).iter().map(|part| delta(&json!({"reasoning_content": part}))));
        events.extend(cut(&text, &sizes).iter().map(|part| delta(&json!({"content": part}))));
        let begun = |index: usize| json!([{"index": index, "id": format!("c{index}"), "function": {"name": "t"}}]);
        events.extend((0..arguments.len()).map(|index| delta(&json!({"tool_calls": begun(index)}))));
        // All calls at once, a piece of each in turn.
        let cuts: Vec<_> = arguments.iter().map(|arguments| cut(arguments, &sizes)).collect();
        for turn in 0..=sizes.len() {
            for (index, pieces) in cuts.iter().enumerate() {
                let piece = json!([{"index": index, "function": {"arguments": pieces[turn]}}]);
                events.push(delta(&json!({"tool_calls": piece})));
            }
        }
        events.extend([ended("stop"), json!("[DONE]")]);
        assert_eq!(stream(&wire(), &events, true), Ok(whole));
    }

    #[test]
    fn nothing_makes_it_panic(body in prop::collection::vec(any::<u8>(), 0..200), status in any::<u16>()) {
        drop(wire().decode(&body, true));
        drop(wire().assemble(true).event(None, &body));
        assert_eq!(wire().error(status, &body).status, status);
    }
}
