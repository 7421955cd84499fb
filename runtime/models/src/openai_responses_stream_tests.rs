use super::MAX_ITEMS;
use super::tests::{cut_off, decode, delta, failed, function, message, response, thought, wire};
use crate::openai_cases::{call, cut, feed, opaque, provider, stream};
use crate::wire::{Wire, WireError};
use pretty_assertions::assert_eq;
use proptest::prelude::{ProptestConfig, any, prop, proptest};
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use serde_json::{Value, json};

fn completed(output: &[Value]) -> Value {
    json!({"type": "response.completed", "response": response("completed", output)})
}

fn added(index: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

/// The events of an answer with everything in it.
fn events() -> Vec<Value> {
    vec![
        json!({"type": "response.created", "response": response("in_progress", &[])}),
        json!({"type": "response.in_progress", "response": response("in_progress", &[])}),
        added(0, &json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0, "delta": "Hm."}),
        done(0, &thought()),
        added(1, &json!({"type": "message", "id": "msg_1", "content": []})),
        json!({"type": "response.content_part.added", "output_index": 1, "part": {"type": "output_text", "text": ""}}),
        delta("output_text", 1, "So"),
        added(
            2,
            &json!({"type": "function_call", "id": "fc_a", "call_id": "a", "name": "t", "arguments": ""}),
        ),
        delta("function_call_arguments", 2, "{\"x\""),
        delta("output_text", 1, ": "),
        delta("function_call_arguments", 2, ":1}"),
        json!({"type": "response.output_text.done", "output_index": 1, "text": "So: "}),
        json!({"type": "response.something_new", "output_index": 9, "item": 7}),
    ]
}

fn assembled() -> ModelAnswer {
    ModelAnswer {
        text: "So: ".to_owned(),
        finish: ModelFinish::ToolCalls,
        tool_calls: vec![call("a", "t", "{\"x\":1}")],
        reasoning: opaque("openai-responses", &[thought()]),
        ..ModelAnswer::default()
    }
}

#[test]
fn a_stream_whose_end_has_no_output_is_put_together() {
    let usage = json!({"input_tokens": 3, "output_tokens": 4});
    for output in [Value::Null, json!([])] {
        let end = json!({"type": "response.completed", "response": {"status": "completed", "output": output, "usage": usage, "model": "m"}});
        let mut expected = assembled();
        expected.usage = Some(Usage { input_tokens: 3, output_tokens: 4, ..Usage::default() });
        expected.model = Some("m".to_owned());
        let mut assembly = wire().assemble(true);
        assert_eq!(feed(&mut *assembly, &[events(), vec![end]].concat()), Ok(true));
        assert_eq!(assembly.finish(), Ok(expected));
    }
    // Items that are done count for more than their pieces, and an end without an answer is an end.
    let whole = [
        json!({"type": "response.function_call_arguments.done", "output_index": 2, "arguments": "{\"x\":2}"}),
        done(1, &message("Then: ")),
        json!({"type": "response.completed"}),
    ];
    let expected = ModelAnswer {
        text: "Then: ".to_owned(),
        tool_calls: vec![call("a", "t", "{\"x\":2}")],
        ..assembled()
    };
    assert_eq!(stream(&wire(), &[events(), whole.to_vec()].concat(), true), Ok(expected));
}

#[test]
fn events_find_their_item_without_a_number() {
    let unnumbered = |named: bool| {
        let strip = |mut event: Value| {
            let id = match event.get("output_index").and_then(Value::as_u64) {
                Some(1) => "msg_1",
                Some(2) => "fc_a",
                _ => "rs_1",
            };
            event.as_object_mut().unwrap().shift_remove("output_index");
            if named {
                event["item_id"] = json!(id);
            }
            event
        };
        let mut events: Vec<_> = events().into_iter().map(strip).collect();
        if !named {
            // One after the other then.
            events.swap(8, 10);
            events.swap(9, 10);
        }
        events.push(json!({"type": "response.completed"}));
        stream(&wire(), &events, true)
    };
    assert_eq!(unnumbered(true), Ok(assembled()));
    assert_eq!(unnumbered(false), Ok(assembled()));
    // Not even an id: each that is added is a new one.
    let bare =
        |kind: &str, item: Value| json!({"type": format!("response.output_item.{kind}"), "item": item});
    let first = json!({"type": "function_call", "call_id": "a", "name": "one", "arguments": "{}"});
    let second = json!({"type": "function_call", "call_id": "b", "name": "two", "arguments": "[]"});
    let events = [
        bare("added", first.clone()),
        bare("done", first),
        bare("added", second),
        json!({"type": "response.completed"}),
    ];
    let expected = vec![call("a", "one", "{}"), call("b", "two", "[]")];
    assert_eq!(stream(&wire(), &events, true).unwrap().tool_calls, expected);
}

#[test]
fn names_are_taken_from_either_place() {
    let mut assembly = wire().assemble(false);
    assert_eq!(assembly.event(Some("response.output_text.delta"), br#"{"delta":"x"}"#), Ok(false));
    assert_eq!(assembly.event(None, br#"{"type":"response.output_text.delta","delta":"y"}"#), Ok(false));
    assert_eq!(assembly.event(Some("response.completed"), br#"{"response":{}}"#), Ok(true));
    assert_eq!(assembly.finish().unwrap().text, "xy");
}

#[test]
fn how_streams_end() {
    let text = delta("output_text", 0, "x");
    let end =
        |kind: &str, response: &Value| json!({"type": format!("response.{kind}"), "response": response});
    let bare = json!({"incomplete_details": {"reason": "content_filter"}});
    let table = [
        (vec![text.clone(), completed(&[])], Ok(("x", ModelFinish::Stop))),
        (vec![text.clone(), completed(&[message("y")])], Ok(("y", ModelFinish::Stop))),
        (
            vec![text.clone(), end("incomplete", &cut_off(&json!("max_output_tokens"), &[]))],
            Ok(("x", ModelFinish::Truncated)),
        ),
        (vec![text.clone(), end("incomplete", &bare)], Ok(("x", ModelFinish::Refused))),
        // A server that never touches the status, and one whose event is too kind.
        (vec![text.clone(), end("completed", &response("in_progress", &[]))], Ok(("x", ModelFinish::Stop))),
        (
            vec![text.clone(), end("completed", &response("incomplete", &[]))],
            Ok(("x", ModelFinish::Truncated)),
        ),
        (vec![text.clone(), delta("refusal", 0, "I "), completed(&[])], Ok(("", ModelFinish::Refused))),
        (vec![delta("refusal", 0, ""), completed(&[])], Ok(("", ModelFinish::Stop))),
        (
            vec![text.clone(), end("failed", &failed(&json!({"code": "server_error", "message": "M"})))],
            Err(provider(500, "", "server_error", "M")),
        ),
        (vec![text.clone(), end("failed", &json!({}))], Err(provider(500, "", "", ""))),
        (vec![text.clone(), json!("[DONE]")], Err(WireError::Cut)),
        (vec![text.clone(), json!({"type": "response.output_text.done", "text": "x"})], Err(WireError::Cut)),
        (vec![text], Err(WireError::Cut)),
        (vec![], Err(WireError::Cut)),
    ];
    for (events, expected) in table {
        let made = stream(&wire(), &events, false).map(|answer| (answer.text, answer.finish));
        assert_eq!(made, expected.map(|(text, finish)| (text.to_owned(), finish)), "{events:?}");
    }
}

#[test]
fn errors_in_the_midst() {
    let table = [
        (
            json!({"type": "error", "code": "rate_limit_exceeded", "message": "M", "param": null, "sequence_number": 4}),
            provider(429, "", "rate_limit_exceeded", "M"),
        ),
        (json!({"type": "error", "code": null, "message": "M"}), provider(500, "", "", "M")),
        (
            json!({"type": "error", "error": {"type": "invalid_request_error", "code": "context_length_exceeded", "message": "M"}}),
            provider(400, "invalid_request_error", "context_length_exceeded", "M"),
        ),
        (json!({"type": "error"}), provider(500, "", "", "")),
        // Without a name, as a gateway may say it.
        (json!({"error": {"message": "M", "code": 502}}), provider(502, "", "502", "M")),
    ];
    for (event, expected) in table {
        let events = [delta("output_text", 0, "x"), event];
        assert_eq!(stream(&wire(), &events, false), Err(expected), "{events:?}");
    }
}

#[test]
fn no_more_items_than_there_may_be() {
    let texts = |count: u64| {
        let events = (0..count).map(|index| delta("output_text", index, "x"));
        stream(&wire(), &events.chain([completed(&[])]).collect::<Vec<_>>(), false)
    };
    assert_eq!(texts(MAX_ITEMS as u64).unwrap().text.len(), MAX_ITEMS);
    assert_eq!(texts(MAX_ITEMS as u64 + 1), Err(WireError::Garbled("it has too many items")));
    let asked = |count: u64| {
        let events = (0..count).map(|index| done(index, &function(&index.to_string(), "t", "")));
        stream(&wire(), &events.chain([completed(&[])]).collect::<Vec<_>>(), false)
    };
    assert_eq!(asked(128).unwrap().tool_calls.len(), 128);
    assert_eq!(asked(129), Err(WireError::Garbled("it asks for too many calls")));
    // A place far away is a place like any other.
    let far = [delta("output_text", u64::MAX, "x"), completed(&[])];
    assert_eq!(stream(&wire(), &far, false).unwrap().text, "x");
}

#[test]
fn events_that_are_none() {
    for data in [
        &b"x"[..],
        b"[1]",
        b"\xff",
        b"{\"type\":\"ping\",\"a\":\"\xff\"}",
        b"{\"type\":\"response.completed\",\"response\":7}",
        b"{\"type\":\"response.completed\",\"response\":{\"output\":7}}",
    ] {
        let made = wire().assemble(false).event(None, data);
        assert!(matches!(made, Err(WireError::Garbled(_))), "{data:?}");
    }
    assert_eq!(wire().assemble(false).event(None, b" "), Ok(false));
    assert_eq!(wire().assemble(false).event(Some("ping"), b"{}"), Ok(false));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn however_it_is_cut_the_answer_is_the_same(
        text in any::<String>(),
        arguments in any::<String>(),
        sizes in prop::collection::vec(0_u8..9, 0..9),
    ) {
        let output = [thought(), message(&text), function("a", "t", &arguments)];
        let whole = decode(&response("completed", &output)).unwrap();
        let mut events = vec![
            done(0, &thought()),
            added(1, &message("")),
            added(2, &function("a", "t", "")),
        ];
        for (said, asked) in cut(&text, &sizes).iter().zip(&cut(&arguments, &sizes)) {
            events.push(delta("output_text", 1, said));
            events.push(delta("function_call_arguments", 2, asked));
        }
        events.push(completed(&[]));
        assert_eq!(stream(&wire(), &events, true), Ok(whole));
    }

    #[test]
    fn nothing_makes_it_panic(body in prop::collection::vec(any::<u8>(), 0..200), status in any::<u16>()) {
        drop(wire().decode(&body, true));
        drop(wire().assemble(true).event(None, &body));
        assert_eq!(wire().error(status, &body).status, status);
    }
}
