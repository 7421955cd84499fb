use super::{MAX_ERROR_BYTES, MAX_LOADING_TIME, MAX_RESPONSE_BYTES, MAX_STREAM_BYTES};
use crate::ModelSettings;
use crate::recording::{DeltaLog, Node, Recording, Reply, RetryLog, reply};
use crate::transport::TransportError;
use bytes::Bytes;
use redflow_contract::code::RunErrorCode;
use redflow_contract::fact::{MAX_RAW_BYTES, ModelAnswer};
use redflow_contract::run_error::Failure;
use redflow_ports::{Meter, ToolChoice};
use serde_json::{Value, json};
use std::sync::Arc;

fn call(props: Value, recording: &Arc<Recording>) -> Result<ModelAnswer, Failure> {
    let node = Node::new("openai-model", props);
    node.call(&reply(ToolChoice::None), recording, ModelSettings::default())
}

fn overloaded(headers: &[(&'static str, &str)]) -> Reply {
    Reply::new(529, headers, "")
}

#[test]
fn retry_delays_grow_and_have_jitter() {
    let recording = Recording::new(vec![overloaded(&[]); 11]);
    let failure = call(json!({"maxRetries": 10}), &recording).unwrap_err();
    assert_eq!(failure.code, RunErrorCode::ProviderUnavailable);
    assert!(failure.message.ends_with("(HTTP 529) (after 11 attempts)"), "{}", failure.message);
    let waits = recording.waits();
    for (wait, full) in waits.iter().zip([500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000, 8_000, 8_000, 8_000])
    {
        // The clock of the test has a resolution of one millisecond.
        assert!((full * 3 / 4..=full + 1).contains(wait), "{waits:?}");
    }
    assert_eq!(waits.len(), 10);
    let last = &waits[4..];
    assert!(last.iter().any(|wait| *wait != last[0]), "{waits:?}");
}

#[test]
fn waits_as_long_as_the_provider_requests() {
    let script = [
        overloaded(&[("retry-after", "7")]),
        overloaded(&[("retry-after-ms", "1234"), ("retry-after", "9")]),
        overloaded(&[("retry-after", "60")]),
    ];
    let recording = Recording::new(script);
    assert_eq!(call(json!({"maxRetries": 3}), &recording).unwrap().text, "hi");
    assert_eq!(recording.waits(), [7_000, 1_234, 60_000]);
    // A longer wait is not accepted.
    let recording = Recording::new([overloaded(&[("retry-after", "61")])]);
    let failure = call(json!({}), &recording).unwrap_err();
    assert_eq!((failure.code, recording.requests().len()), (RunErrorCode::ProviderUnavailable, 1));
}

#[test]
fn a_retry_sends_the_same_request() {
    let recording = Recording::new([overloaded(&[]), Reply::Error(TransportError::Lost)]);
    call(json!({}), &recording).unwrap();
    let requests = recording.requests();
    assert_eq!(requests.len(), 3);
    let first = &requests[0];
    assert!(requests.iter().all(|one| one.body == first.body && one.headers == first.headers));
}

#[test]
fn each_retry_is_counted() {
    let meter = Arc::new(RetryLog::default());
    let counting: Arc<dyn Meter> = Arc::<RetryLog>::clone(&meter);
    let settings = ModelSettings { meter: counting, ..ModelSettings::default() };
    let recording =
        Recording::new([overloaded(&[]), Reply::new(429, &[], ""), Reply::Error(TransportError::Refused)]);
    let node = Node::new("openai-model", json!({"maxRetries": 3}));
    node.call(&reply(ToolChoice::None), &recording, settings).unwrap();
    let counted = meter.0.lock().unwrap().clone();
    assert_eq!(counted, ["openai PROVIDER_UNAVAILABLE", "openai RATE_LIMIT", "openai PROVIDER_UNAVAILABLE"]);
}

#[test]
fn the_timeout_includes_all_attempts() {
    // The first attempt fails at once, the second never ends.
    let recording = Recording::new([overloaded(&[("retry-after-ms", "600")]), Reply::Hang]);
    let failure = call(json!({"timeout": 1_000}), &recording).unwrap_err();
    assert_eq!((failure.code, recording.requests().len()), (RunErrorCode::Timeout, 2));
    let text = "OpenAI's interface (api.openai.com) did not answer within 1000 ms (after 2 attempts)";
    assert_eq!(failure.message, text);
    // A wait beyond the timeout does not start, so the error is the one of the provider.
    let recording = Recording::new([overloaded(&[("retry-after-ms", "1000")])]);
    let failure = call(json!({"timeout": 1_000}), &recording).unwrap_err();
    assert_eq!((failure.code, recording.requests().len()), (RunErrorCode::ProviderUnavailable, 1));
    // The largest timeout does not overflow.
    let recording = Recording::new([overloaded(&[])]);
    assert_eq!(call(json!({"timeout": u64::MAX}), &recording).unwrap().text, "hi");
}

#[test]
fn permanent_errors_are_not_retried() {
    for (reply, code) in [
        (Reply::Error(TransportError::NotHttp), RunErrorCode::ProviderUnavailable),
        (Reply::new(200, &[], "{}"), RunErrorCode::ModelError),
        (Reply::new(200, &[("content-type", "text/html; charset=utf-8")], "{}"), RunErrorCode::ModelError),
        (Reply::new(200, &[("content-encoding", "br")], "{}"), RunErrorCode::ModelError),
        (Reply::new(400, &[], "{}"), RunErrorCode::ModelError),
    ] {
        let recording = Recording::new([reply]);
        let failure = call(json!({}), &recording).unwrap_err();
        assert_eq!((failure.code, recording.requests().len()), (code, 1), "{}", failure.message);
        assert!(!failure.message.contains("attempts"), "{}", failure.message);
    }
}

fn repeated(part: &[u8], count: usize) -> Reply {
    let parts = vec![Ok(Bytes::copy_from_slice(part)); count];
    Reply::Response { status: 200, headers: Vec::new(), parts }
}

#[test]
fn the_size_of_an_answer_is_limited() {
    let answer = json!({"choices": [{"message": {"content": "hi"}}]}).to_string();
    let padded = |size: usize| format!("{answer}{}", " ".repeat(size - answer.len()));
    let whole = Reply::new(200, &[], &padded(MAX_RESPONSE_BYTES));
    assert_eq!(call(json!({}), &Recording::new([whole])).unwrap().text, "hi");
    let too_much = "the answer of OpenAI's interface (api.openai.com) has more than 8388608 bytes";
    for (props, reply) in [
        // In one part, in two, in many.
        (json!({}), Reply::new(200, &[], &padded(MAX_RESPONSE_BYTES + 1))),
        (json!({}), repeated(&vec![b' '; MAX_RESPONSE_BYTES / 2 + 1], 2)),
        (json!({}), repeated(&vec![b' '; 1 << 20], 9)),
        (json!({"stream": true}), repeated(text_event(&"x".repeat(1 << 20)).as_bytes(), 9)),
        // One event without an end.
        (json!({"stream": true}), repeated(&vec![b'x'; 1 << 20], 5)),
    ] {
        let failure = call(props, &Recording::new([reply])).unwrap_err();
        assert_eq!((failure.code, failure.message.as_str()), (RunErrorCode::ModelError, too_much));
    }
}

/// The event of a stream for a piece of text.
fn text_event(text: &str) -> String {
    format!(
        "data: {}\n\n",
        json!({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {"content": text}}]})
    )
}

#[test]
fn a_long_answer_may_have_a_far_larger_stream() {
    // As a provider sends one token: some hundred bytes.
    let event = format!("{}: {}\n\n", text_event("x "), "p".repeat(300));
    let events = [event.as_bytes().repeat(30_000), b"data: [DONE]\n\n".to_vec()].concat();
    assert!(events.len() > MAX_RESPONSE_BYTES);
    let parts = events.chunks(1 << 16).map(|part| Ok(Bytes::copy_from_slice(part))).collect();
    let reply = Reply::Response { status: 200, headers: Vec::new(), parts };
    let answer = call(json!({"stream": true}), &Recording::new([reply])).unwrap();
    assert_eq!(answer.text, "x ".repeat(30_000));
}

#[test]
fn a_stream_without_content_ends() {
    let comment = [b": ", vec![b'x'; 1 << 20].as_slice(), b"\n"].concat();
    let reply = repeated(&comment, MAX_STREAM_BYTES / comment.len() + 1);
    let failure = call(json!({"stream": true}), &Recording::new([reply])).unwrap_err();
    let message = "the answer of OpenAI's interface (api.openai.com) has more than 268435456 bytes";
    assert_eq!((failure.code, failure.message.as_str()), (RunErrorCode::ModelError, message));
}

#[test]
fn the_size_of_an_error_is_limited() {
    let body = json!({"error": {"message": "m".repeat(2_100), "code": "c"}}).to_string();
    let reply = Reply::new(400, &[], &body);
    let failure = call(json!({}), &Recording::new([reply])).unwrap_err();
    let cut = format!("refused the request (HTTP 400, c): {}…", "m".repeat(2_000));
    assert!(failure.message.ends_with(&cut), "{}", failure.message);
    // The rest is not read, but the status is enough for the code.
    let body = format!("{}{body}", " ".repeat(MAX_ERROR_BYTES));
    let failure = call(json!({}), &Recording::new([Reply::new(401, &[], &body)])).unwrap_err();
    assert_eq!(failure.code, RunErrorCode::InvalidCredentials);
    // The status is also enough when the connection breaks within the body.
    let lost = vec![Ok(Bytes::from_static(b"{\"error\"")), Err(TransportError::Lost)];
    let reply = Reply::Response { status: 404, headers: Vec::new(), parts: lost };
    let failure = call(json!({}), &Recording::new([reply])).unwrap_err();
    assert_eq!(failure.code, RunErrorCode::ModelNotFound);
}

#[test]
fn a_key_in_an_error_of_the_provider_is_redacted() {
    let key = "sk-hidden-0123456789";
    let message = format!("Incorrect API key {key}; use another than {key}.");
    // Also where the text is cut within the key.
    let at_the_cut = format!("{}{key}", "x".repeat(290));
    for (type_name, mut props) in [
        ("openai-model", json!({})),
        ("openai-model", json!({"api": "responses"})),
        ("anthropic-model", json!({})),
        ("anthropic-model", json!({"anthropicVersion": "2023-06-01"})),
        ("ollama-model", json!({})),
        ("model.azure.openai", json!({"endpoint": "http://localhost", "deployment": "d"})),
    ] {
        props["apiKey"] = json!(key);
        for message in [&message, &at_the_cut] {
            let error = json!({"error": {"message": message, "type": key, "code": key}}).to_string();
            let event = format!("event: error\ndata: {error}\n\n");
            let stream = [("content-type", "text/event-stream")];
            let plain = Recording::new([Reply::new(401, &[], &error)]);
            let streamed = Recording::new(vec![Reply::new(200, &stream, &event); 3]);
            let answer_kind = || reply(ToolChoice::None);
            let node = Node::new(type_name, props.clone());
            let first = node.call(&answer_kind(), &plain, ModelSettings::default()).unwrap_err();
            assert!(first.message.contains("[redacted]"), "{}", first.message);
            let mut props = props.clone();
            props["stream"] = json!(true);
            let node = Node::new(type_name, props);
            let second = node.call(&answer_kind(), &streamed, ModelSettings::default()).unwrap_err();
            for failure in [first, second] {
                assert!(!failure.message.contains("sk-hid"), "{}", failure.message);
            }
        }
    }
}

#[test]
fn keeps_the_request_id_of_the_provider() {
    let body = json!({"choices": [{"message": {"content": "hi"}}]}).to_string();
    for (headers, id) in [
        (vec![("x-request-id", "req_1"), ("request-id", "req_2")], Some("req_1".to_owned())),
        (vec![("request-id", "req_2")], Some("req_2".to_owned())),
        (vec![("apim-request-id", "req_3")], Some("req_3".to_owned())),
        (vec![], None),
    ] {
        let answer = call(json!({}), &Recording::new([Reply::new(200, &headers, &body)])).unwrap();
        assert_eq!(answer.request_id, id);
    }
    let long = "x".repeat(5_000);
    let reply = Reply::new(200, &[("x-request-id", &long)], &body);
    let answer = call(json!({}), &Recording::new([reply])).unwrap();
    assert_eq!(answer.request_id.unwrap().len(), 100);
}

/// A stream in parts of this size, which may split a character.
fn streamed(text: &str, size: usize) -> Reply {
    let parts = text.as_bytes().chunks(size).map(|part| Ok(Bytes::copy_from_slice(part))).collect();
    Reply::Response { status: 200, headers: vec![("content-type", "text/event-stream".to_owned())], parts }
}

fn sse(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// A stream of each wire with reasoning, the text "So: ä" and a tool call.
fn streams() -> Vec<(&'static str, Value, String)> {
    let chat = |delta: Value| json!({"choices": [{"delta": delta}]});
    let tool = json!([{"index": 0, "id": "a", "function": {"name": "t", "arguments": "{\"x\":1}"}}]);
    let block_delta =
        |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let block_start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let text = |delta: &str| json!({"type": "response.output_text.delta", "output_index": 1, "delta": delta});
    let line = |message: Value| format!("{}\n", json!({ "message": message }));
    let parts = |parts: Value| json!({"candidates": [{"content": {"parts": parts}}]});
    vec![
        (
            "openai-model",
            json!({}),
            sse(&[
                chat(json!({"reasoning_content": "Hm."})),
                chat(json!({"content": "So: "})),
                chat(json!({"tool_calls": tool})),
                chat(json!({"content": "ä"})),
            ]) + "data: [DONE]\n\n",
        ),
        (
            "openai-model",
            json!({"api": "responses"}),
            sse(&[
                json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "c", "phase": "commentary", "content": "On the way."}}),
                text("So: "),
                json!({"type": "response.output_item.added", "output_index": 2, "item": {"type": "function_call", "id": "f", "call_id": "a", "name": "t", "arguments": ""}}),
                json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{}"}),
                text("ä"),
                json!({"type": "response.completed", "response": {"status": "completed", "output": []}}),
            ]),
        ),
        (
            "anthropic-model",
            json!({}),
            sse(&[
                json!({"type": "message_start", "message": {}}),
                block_start(0, json!({"type": "thinking", "thinking": ""})),
                block_delta(0, json!({"type": "thinking_delta", "thinking": "Hm."})),
                block_start(1, json!({"type": "text", "text": "So"})),
                block_delta(1, json!({"type": "text_delta", "text": ": "})),
                block_start(2, json!({"type": "tool_use", "id": "a", "name": "t", "input": {}})),
                block_delta(2, json!({"type": "input_json_delta", "partial_json": "{\"x\":1}"})),
                block_start(3, json!({"type": "text", "text": "ä"})),
                json!({"type": "message_stop"}),
            ]),
        ),
        (
            "ollama-model",
            json!({}),
            line(json!({"thinking": "Hm.", "content": "So: "}))
                + &line(json!({"tool_calls": [{"function": {"name": "t", "arguments": {"x": 1}}}]}))
                + &line(json!({"content": "ä"}))
                + "{\"done\":true}\n",
        ),
        (
            "google-model",
            json!({}),
            sse(&[
                parts(json!([{"text": "Hm.", "thought": true}])),
                parts(json!([{"text": "So: "}])),
                parts(json!([{"functionCall": {"name": "t", "args": {"x": 1}}, "thoughtSignature": "s"}])),
                parts(json!([{"text": "ä"}])),
                json!({"candidates": [{"finishReason": "STOP"}]}),
            ]),
        ),
    ]
}

// SECURITY: deltas
#[test]
fn the_observer_receives_text_as_it_arrives_and_no_reasoning() {
    for (type_name, mut props, stream) in streams() {
        props["stream"] = json!(true);
        for size in [1, 7, stream.len()] {
            let node = Node::new(type_name, props.clone());
            let (deltas, recording) = (DeltaLog::default(), Recording::new([streamed(&stream, size)]));
            let answer_kind = reply(ToolChoice::Auto);
            let answer = node
                .call_observed(&answer_kind, &recording, ModelSettings::default(), Some(&deltas))
                .unwrap();
            let deltas = deltas.0.into_inner().unwrap();
            let whole: String = deltas.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!((whole.as_str(), answer.text.as_str()), ("So: ä", "So: ä"), "{type_name} {size}");
            assert!(deltas.iter().all(|(attempt, text)| *attempt == 1 && !text.is_empty()), "{deltas:?}");
            assert!(deltas.len() > 1 || size == stream.len(), "{type_name} {size}: {deltas:?}");
        }
    }
}

#[test]
fn each_attempt_starts_its_text_again() {
    let delta = |text: &str| sse(&[json!({"choices": [{"delta": {"content": text}}]})]);
    // The first attempt breaks off, the second sends no text, the third succeeds.
    let script = [
        streamed(&delta("So"), 1_000),
        overloaded(&[]),
        streamed(&(delta("Well") + "data: [DONE]\n\n"), 1_000),
    ];
    let (deltas, recording) = (DeltaLog::default(), Recording::new(script));
    let node = Node::new("openai-model", json!({"stream": true, "maxRetries": 3}));
    let answer_kind = reply(ToolChoice::None);
    let answer =
        node.call_observed(&answer_kind, &recording, ModelSettings::default(), Some(&deltas)).unwrap();
    assert_eq!(answer.text, "Well");
    let expected = [(1, "So".to_owned()), (3, "Well".to_owned())];
    assert_eq!(deltas.0.into_inner().unwrap(), expected);
}

#[test]
fn the_observer_receives_an_answer_without_a_stream_at_once() {
    for stream in [false, true] {
        // Also if the server ignores the request for a stream.
        let (deltas, recording) = (DeltaLog::default(), Recording::new([]));
        let node = Node::new("openai-model", json!({"stream": stream}));
        let answer_kind = reply(ToolChoice::None);
        node.call_observed(&answer_kind, &recording, ModelSettings::default(), Some(&deltas)).unwrap();
        assert_eq!(deltas.0.into_inner().unwrap(), [(1, "hi".to_owned())]);
    }
}

fn loading() -> Reply {
    let error = json!({"code": 503, "message": "Loading model", "type": "unavailable_error"});
    Reply::new(503, &[], &json!({ "error": error }).to_string())
}

#[test]
fn a_model_that_is_being_loaded_is_waited_for() {
    // More often than the node retries.
    let recording = Recording::new(vec![loading(); 30]);
    assert_eq!(call(json!({"maxRetries": 0}), &recording).unwrap().text, "hi");
    assert_eq!(recording.waits(), [2_000; 30]);
    // But not for ever, and not beyond the time limit of the call.
    for (props, limit) in [(json!({}), MAX_LOADING_TIME.as_millis()), (json!({"timeout": 9_000}), 9_000)] {
        let recording = Recording::new(vec![loading(); 1_000]);
        let failure = call(props, &recording).unwrap_err();
        assert_eq!(failure.code, RunErrorCode::ProviderUnavailable);
        assert!(failure.message.contains("Loading model"), "{}", failure.message);
        let total: u128 = recording.waits().iter().sum();
        assert!(total <= limit + 2_000, "{total}");
    }
    // A fallback model answers sooner.
    let recording = Recording::new(vec![loading(); 3]);
    let mut node = Node::new("openai-model", json!({}));
    node.retry = false;
    node.call(&reply(ToolChoice::None), &recording, ModelSettings::default()).unwrap_err();
    assert_eq!(recording.requests().len(), 1);
}

#[test]
fn keeps_the_start_of_the_response_only_if_it_is_asked_to() {
    let text = "ü".repeat(MAX_RAW_BYTES);
    let body = json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).to_string();
    let events = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let streamed = || Reply::Response {
        status: 200,
        headers: vec![("content-type", "text/event-stream".to_owned())],
        parts: events.as_bytes().chunks(7).map(|part| Ok(Bytes::copy_from_slice(part))).collect(),
    };
    let raw_of = |keeps_raw, props: Value, response: Reply| {
        let mut node = Node::new("openai-model", props);
        node.keeps_raw = keeps_raw;
        let recording = Recording::new([overloaded(&[]), response]);
        node.call(&reply(ToolChoice::None), &recording, ModelSettings::default()).unwrap().raw
    };
    let whole = || Reply::new(200, &[("content-type", "application/json")], &body);
    let raw = raw_of(true, json!({}), whole()).unwrap();
    assert!(body.starts_with(&raw));
    assert!((MAX_RAW_BYTES - 1..=MAX_RAW_BYTES).contains(&raw.len()), "{}", raw.len());
    assert_eq!(raw_of(true, json!({"stream": true}), streamed()).as_deref(), Some(events));
    assert_eq!(raw_of(false, json!({}), whole()), None);
    assert_eq!(raw_of(false, json!({"stream": true}), streamed()), None);
}
