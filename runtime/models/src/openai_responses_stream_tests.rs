use super::MAX_ITEMS;
use super::tests::{decode, delta, failed, function, incomplete, message, reasoning_item, response, wire};
use crate::openai_samples::{add_events, assemble, check_any_bytes, provider_error, split};
use crate::samples::{call, opaque};
use crate::wire::Reasoning::{Discard, Keep};
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

/// The events of an answer with reasoning, text and a call.
fn events() -> Vec<Value> {
    vec![
        json!({"type": "response.created", "response": response("in_progress", &[])}),
        json!({"type": "response.in_progress", "response": response("in_progress", &[])}),
        added(0, &json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0, "delta": "Hm."}),
        done(0, &reasoning_item()),
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
        reasoning: opaque("openai-responses", &[reasoning_item()]),
        ..ModelAnswer::default()
    }
}

#[test]
fn assembles_a_stream_whose_last_event_has_no_output() {
    let usage = json!({"input_tokens": 3, "output_tokens": 4});
    for output in [Value::Null, json!([])] {
        let end = json!({"type": "response.completed", "response": {"status": "completed", "output": output, "usage": usage, "model": "m"}});
        let mut expected = assembled();
        expected.usage = Some(Usage { input_tokens: 3, output_tokens: 4, ..Usage::default() });
        expected.model = Some("m".to_owned());
        let mut assembler = wire().assembler(Keep);
        assert_eq!(add_events(&mut *assembler, &[events(), vec![end]].concat()), Ok(true));
        assert_eq!(assembler.finish(), Ok(expected));
    }
    // Finished items override their deltas, and the last event need not hold a response.
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
    assert_eq!(assemble(&wire(), &[events(), whole.to_vec()].concat(), Keep), Ok(expected));
}

#[test]
fn whole_items_of_a_stream_are_kept_in_their_order() {
    let text = message("So: ");
    let call = function("a", "t", "{\"x\":1}");
    let kept = |events: &[Value]| {
        let answer = assemble(&wire(), events, Keep).unwrap();
        (answer.text, answer.reasoning.map(|opaque| opaque.parts))
    };
    let items = [reasoning_item(), text.clone(), call.clone()];
    let finished = [done(2, &call), done(0, &reasoning_item()), done(1, &text)];
    for end in [completed(&[]), completed(&items)] {
        let events = [events(), finished.to_vec(), vec![end]].concat();
        assert_eq!(kept(&events), ("So: ".to_owned(), Some(items.to_vec())));
    }
    // Without an item's end, only the reasoning is whole.
    let events = [events(), finished[..2].to_vec(), vec![completed(&[])]].concat();
    assert_eq!(kept(&events), ("So: ".to_owned(), Some(vec![reasoning_item()])));
    // Some servers send this to keep the connection.
    let alive = [json!({"type": "keepalive", "sequence_number": 3}), done(0, &text), completed(&[])];
    assert_eq!(kept(&alive), ("So: ".to_owned(), None));
}

#[test]
fn a_stream_is_measured_by_what_it_holds() {
    let mut assembler = wire().assembler(Discard);
    add_events(&mut *assembler, &events()).unwrap();
    assert_eq!(assembler.held_bytes(), "So: ".len() + "{\"x\":1}".len());
    add_events(&mut *assembler, &[json!({"type": "keepalive", "padding": "x".repeat(9_000)})]).unwrap();
    assert_eq!(assembler.held_bytes(), "So: ".len() + "{\"x\":1}".len());
}

/// Whether events name their item.
#[derive(Clone, Copy, PartialEq)]
enum ItemIds {
    Given,
    Missing,
}

#[test]
fn events_find_their_item_without_an_index() {
    let without_index = |ids: ItemIds| {
        let strip = |mut event: Value| {
            let id = match event.get("output_index").and_then(Value::as_u64) {
                Some(1) => "msg_1",
                Some(2) => "fc_a",
                _ => "rs_1",
            };
            event.as_object_mut().unwrap().shift_remove("output_index");
            if ids == ItemIds::Given {
                event["item_id"] = json!(id);
            }
            event
        };
        let mut events: Vec<_> = events().into_iter().map(strip).collect();
        if ids == ItemIds::Missing {
            // Then the items must come one after the other.
            events.swap(8, 10);
            events.swap(9, 10);
        }
        events.push(json!({"type": "response.completed"}));
        assemble(&wire(), &events, Keep)
    };
    assert_eq!(without_index(ItemIds::Given), Ok(assembled()));
    assert_eq!(without_index(ItemIds::Missing), Ok(assembled()));
    // Without an id, each `added` event starts a new item.
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
    assert_eq!(assemble(&wire(), &events, Keep).unwrap().tool_calls, expected);
}

#[test]
fn the_event_type_is_in_the_name_or_in_the_data() {
    let mut assembler = wire().assembler(Discard);
    assert_eq!(assembler.add_event(Some("response.output_text.delta"), br#"{"delta":"x"}"#), Ok(false));
    assert_eq!(assembler.add_event(None, br#"{"type":"response.output_text.delta","delta":"y"}"#), Ok(false));
    assert_eq!(assembler.add_event(Some("response.completed"), br#"{"response":{}}"#), Ok(true));
    assert_eq!(assembler.finish().unwrap().text, "xy");
}

#[test]
fn ends_of_streams() {
    let text = delta("output_text", 0, "x");
    let end =
        |kind: &str, response: &Value| json!({"type": format!("response.{kind}"), "response": response});
    let bare = json!({"incomplete_details": {"reason": "content_filter"}});
    let table = [
        (vec![text.clone(), completed(&[])], Ok(("x", ModelFinish::Stop))),
        (vec![text.clone(), completed(&[message("y")])], Ok(("y", ModelFinish::Stop))),
        (
            vec![text.clone(), end("incomplete", &incomplete(&json!("max_output_tokens"), &[]))],
            Ok(("x", ModelFinish::Truncated)),
        ),
        (vec![text.clone(), end("incomplete", &bare)], Ok(("x", ModelFinish::Refused))),
        // A server that never updates the status, and one whose event hides a worse status.
        (vec![text.clone(), end("completed", &response("in_progress", &[]))], Ok(("x", ModelFinish::Stop))),
        (
            vec![text.clone(), end("completed", &response("incomplete", &[]))],
            Ok(("x", ModelFinish::Truncated)),
        ),
        (vec![text.clone(), delta("refusal", 0, "I "), completed(&[])], Ok(("", ModelFinish::Refused))),
        (vec![delta("refusal", 0, ""), completed(&[])], Ok(("", ModelFinish::Stop))),
        (
            vec![text.clone(), end("failed", &failed(&json!({"code": "server_error", "message": "M"})))],
            Err(provider_error(500, "", "server_error", "M")),
        ),
        (vec![text.clone(), end("failed", &json!({}))], Err(provider_error(500, "", "", ""))),
        (vec![text.clone(), json!("[DONE]")], Err(WireError::Interrupted)),
        (
            vec![text.clone(), json!({"type": "response.output_text.done", "text": "x"})],
            Err(WireError::Interrupted),
        ),
        (vec![text], Err(WireError::Interrupted)),
        (vec![], Err(WireError::Interrupted)),
    ];
    for (events, expected) in table {
        let result = assemble(&wire(), &events, Discard).map(|answer| (answer.text, answer.finish));
        assert_eq!(result, expected.map(|(text, finish)| (text.to_owned(), finish)), "{events:?}");
    }
}

#[test]
fn errors_within_a_stream() {
    let table = [
        (
            json!({"type": "error", "code": "rate_limit_exceeded", "message": "M", "param": null, "sequence_number": 4}),
            provider_error(429, "", "rate_limit_exceeded", "M"),
        ),
        (json!({"type": "error", "code": null, "message": "M"}), provider_error(500, "", "", "M")),
        (
            json!({"type": "error", "error": {"type": "invalid_request_error", "code": "context_length_exceeded", "message": "M"}}),
            provider_error(400, "invalid_request_error", "context_length_exceeded", "M"),
        ),
        (json!({"type": "error"}), provider_error(500, "", "", "")),
        // Without a type, as some gateways send it.
        (json!({"error": {"message": "M", "code": 502}}), provider_error(502, "", "502", "M")),
    ];
    for (event, expected) in table {
        let events = [delta("output_text", 0, "x"), event];
        assert_eq!(assemble(&wire(), &events, Discard), Err(expected), "{events:?}");
    }
}

#[test]
fn the_number_of_items_is_limited() {
    let texts = |count: u64| {
        let events = (0..count).map(|index| delta("output_text", index, "x"));
        assemble(&wire(), &events.chain([completed(&[])]).collect::<Vec<_>>(), Discard)
    };
    assert_eq!(texts(MAX_ITEMS as u64).unwrap().text.len(), MAX_ITEMS);
    assert_eq!(texts(MAX_ITEMS as u64 + 1), Err(WireError::Malformed("it has too many items")));
    let calls = |count: u64| {
        let events = (0..count).map(|index| done(index, &function(&index.to_string(), "t", "")));
        assemble(&wire(), &events.chain([completed(&[])]).collect::<Vec<_>>(), Discard)
    };
    for (count, expected) in [(128, 128), (129, 129), (200, 129)] {
        assert_eq!(calls(count).unwrap().tool_calls.len(), expected);
    }
    // A large index is valid.
    let far = [delta("output_text", u64::MAX, "x"), completed(&[])];
    assert_eq!(assemble(&wire(), &far, Discard).unwrap().text, "x");
}

#[test]
fn malformed_events() {
    for data in [
        &b"x"[..],
        b"[1]",
        b"\xff",
        b"{\"type\":\"ping\",\"a\":\"\xff\"}",
        b"{\"type\":\"response.completed\",\"response\":7}",
        b"{\"type\":\"response.completed\",\"response\":{\"output\":7}}",
    ] {
        let result = wire().assembler(Discard).add_event(None, data);
        assert!(matches!(result, Err(WireError::Malformed(_))), "{data:?}");
    }
    assert_eq!(wire().assembler(Discard).add_event(None, b" "), Ok(false));
    assert_eq!(wire().assembler(Discard).add_event(Some("ping"), b"{}"), Ok(false));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_answer_does_not_depend_on_how_it_is_split(
        text in any::<String>(),
        arguments in any::<String>(),
        sizes in prop::collection::vec(0_u8..9, 0..9),
    ) {
        let output = [reasoning_item(), message(&text), function("a", "t", &arguments)];
        let mut whole = decode(&response("completed", &output)).unwrap();
        // Items that arrive in deltas do not come whole.
        whole.reasoning = opaque("openai-responses", &[reasoning_item()]);
        let mut events = vec![
            done(0, &reasoning_item()),
            added(1, &message("")),
            added(2, &function("a", "t", "")),
        ];
        for (text, arguments) in split(&text, &sizes).iter().zip(&split(&arguments, &sizes)) {
            events.push(delta("output_text", 1, text));
            events.push(delta("function_call_arguments", 2, arguments));
        }
        events.push(completed(&[]));
        assert_eq!(assemble(&wire(), &events, Keep), Ok(whole));
    }

    #[test]
    fn no_bytes_make_it_panic(body in prop::collection::vec(any::<u8>(), 0..200), status in any::<u16>()) {
        check_any_bytes(&wire(), &body, status);
    }
}
