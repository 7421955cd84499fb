use super::{MAX_ERROR_BYTES, MAX_RESPONSE_BYTES};
use crate::ModelSettings;
use crate::recording::{Node, Recording, Reply, Retries};
use crate::transport::TransportError;
use bytes::Bytes;
use redflow_contract::code::RunErrorCode;
use redflow_contract::fact::ModelAnswer;
use redflow_contract::run_error::Failure;
use redflow_ports::{AnswerKind, DeltaObserver, Meter, ToolChoice};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

fn ask(props: Value, recording: &Arc<Recording>) -> Result<ModelAnswer, Failure> {
    let node = Node::new("openai-model", props);
    node.ask(AnswerKind::Reply(ToolChoice::None), recording, ModelSettings::default())
}

fn overloaded(headers: &[(&'static str, &str)]) -> Reply {
    Reply::of(529, headers, "")
}

#[test]
fn the_waits_grow_and_are_never_the_same_for_all() {
    let recording = Recording::with(vec![overloaded(&[]); 11]);
    let failure = ask(json!({"maxRetries": 10}), &recording).unwrap_err();
    assert_eq!(failure.code, RunErrorCode::ProviderUnavailable);
    assert!(failure.message.ends_with("(HTTP 529) (asked 11 times)"), "{}", failure.message);
    let waits = recording.waits();
    for (wait, full) in waits.iter().zip([500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000, 8_000, 8_000, 8_000])
    {
        // The clock of the test counts whole milliseconds.
        assert!((full * 3 / 4..=full + 1).contains(wait), "{waits:?}");
    }
    assert_eq!(waits.len(), 10);
    let last = &waits[4..];
    assert!(last.iter().any(|wait| *wait != last[0]), "{waits:?}");
}

#[test]
fn a_provider_that_names_a_time_is_obeyed() {
    let script = [
        overloaded(&[("retry-after", "7")]),
        overloaded(&[("retry-after-ms", "1234"), ("retry-after", "9")]),
        overloaded(&[("retry-after", "60")]),
    ];
    let recording = Recording::with(script);
    assert_eq!(ask(json!({"maxRetries": 3}), &recording).unwrap().text, "hi");
    assert_eq!(recording.waits(), [7_000, 1_234, 60_000]);
    // One second more is too much to ask.
    let recording = Recording::with([overloaded(&[("retry-after", "61")])]);
    let failure = ask(json!({}), &recording).unwrap_err();
    assert_eq!((failure.code, recording.sent().len()), (RunErrorCode::ProviderUnavailable, 1));
}

#[test]
fn what_is_asked_again_is_the_same_question() {
    let recording = Recording::with([overloaded(&[]), Reply::Fails(TransportError::Lost)]);
    ask(json!({}), &recording).unwrap();
    let sent = recording.sent();
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|one| one.body == sent[0].body && one.headers == sent[0].headers));
}

#[test]
fn each_repetition_is_counted() {
    let meter = Arc::new(Retries::default());
    let counting: Arc<dyn Meter> = Arc::<Retries>::clone(&meter);
    let settings = ModelSettings { meter: counting, ..ModelSettings::default() };
    let recording =
        Recording::with([overloaded(&[]), Reply::of(429, &[], ""), Reply::Fails(TransportError::Refused)]);
    let node = Node::new("openai-model", json!({"maxRetries": 3}));
    node.ask(AnswerKind::Reply(ToolChoice::None), &recording, settings).unwrap();
    let counted = meter.0.lock().unwrap().clone();
    assert_eq!(counted, ["openai PROVIDER_UNAVAILABLE", "openai RATE_LIMIT", "openai PROVIDER_UNAVAILABLE"]);
}

#[test]
fn the_time_of_a_call_holds_for_all_its_tries() {
    // The first try fails at once, the second never ends.
    let recording = Recording::with([overloaded(&[("retry-after-ms", "600")]), Reply::Never]);
    let failure = ask(json!({"timeout": 1_000}), &recording).unwrap_err();
    assert_eq!((failure.code, recording.sent().len()), (RunErrorCode::Timeout, 2));
    let text = "OpenAI's interface (api.openai.com) did not answer within 1000 ms (asked 2 times)";
    assert_eq!(failure.message, text);
    // A wait that would outlast it is not waited: what the provider said is worth more.
    let recording = Recording::with([overloaded(&[("retry-after-ms", "1000")])]);
    let failure = ask(json!({"timeout": 1_000}), &recording).unwrap_err();
    assert_eq!((failure.code, recording.sent().len()), (RunErrorCode::ProviderUnavailable, 1));
    // The longest time there is breaks nothing.
    let recording = Recording::with([overloaded(&[])]);
    assert_eq!(ask(json!({"timeout": u64::MAX}), &recording).unwrap().text, "hi");
}

#[test]
fn what_cannot_pass_is_said_at_once() {
    for (fault, code) in [
        (Reply::Fails(TransportError::NotHttp), RunErrorCode::ProviderUnavailable),
        (Reply::of(200, &[], "{}"), RunErrorCode::ModelError),
        (Reply::of(200, &[("content-type", "text/html; charset=utf-8")], "{}"), RunErrorCode::ModelError),
        (Reply::of(200, &[("content-encoding", "br")], "{}"), RunErrorCode::ModelError),
        (Reply::of(400, &[], "{}"), RunErrorCode::ModelError),
    ] {
        let recording = Recording::with([fault]);
        let failure = ask(json!({}), &recording).unwrap_err();
        assert_eq!((failure.code, recording.sent().len()), (code, 1), "{}", failure.message);
        assert!(!failure.message.contains("(asked"), "{}", failure.message);
    }
}

fn pieces(each: &[u8], count: usize) -> Reply {
    let pieces = vec![Ok(Bytes::copy_from_slice(each)); count];
    Reply::Answer { status: 200, headers: Vec::new(), pieces }
}

#[test]
fn an_answer_has_an_end() {
    let answer = json!({"choices": [{"message": {"content": "hi"}}]}).to_string();
    let padded = |size: usize| format!("{answer}{}", " ".repeat(size - answer.len()));
    let whole = Reply::of(200, &[], &padded(MAX_RESPONSE_BYTES));
    assert_eq!(ask(json!({}), &Recording::with([whole])).unwrap().text, "hi");
    let too_much = "the answer of OpenAI's interface (api.openai.com) has more than 8388608 bytes";
    for (props, reply) in [
        // In one piece, in two, in many.
        (json!({}), Reply::of(200, &[], &padded(MAX_RESPONSE_BYTES + 1))),
        (json!({}), pieces(&vec![b' '; MAX_RESPONSE_BYTES / 2 + 1], 2)),
        (json!({}), pieces(&vec![b' '; 1 << 20], 9)),
        (json!({"stream": true}), pieces(&[b": ", vec![b'x'; 1 << 20].as_slice(), b"\n"].concat(), 9)),
        // One event that does not end.
        (json!({"stream": true}), pieces(&vec![b'x'; 1 << 20], 5)),
    ] {
        let failure = ask(props, &Recording::with([reply])).unwrap_err();
        assert_eq!((failure.code, failure.message.as_str()), (RunErrorCode::ModelError, too_much));
    }
}

#[test]
fn an_error_is_read_as_far_as_it_makes_sense() {
    let said = json!({"error": {"message": "m".repeat(400), "code": "c"}}).to_string();
    let reply = Reply::of(400, &[], &said);
    let failure = ask(json!({}), &Recording::with([reply])).unwrap_err();
    let cut = format!("refused the request (HTTP 400, c): {}…", "m".repeat(300));
    assert!(failure.message.ends_with(&cut), "{}", failure.message);
    // More than that is not even read; the status still tells enough.
    let said = format!("{}{said}", " ".repeat(MAX_ERROR_BYTES));
    let failure = ask(json!({}), &Recording::with([Reply::of(401, &[], &said)])).unwrap_err();
    assert_eq!(failure.code, RunErrorCode::InvalidCredentials);
    // So it does when the connection is lost while it is told.
    let lost = vec![Ok(Bytes::from_static(b"{\"error\"")), Err(TransportError::Lost)];
    let reply = Reply::Answer { status: 404, headers: Vec::new(), pieces: lost };
    let failure = ask(json!({}), &Recording::with([reply])).unwrap_err();
    assert_eq!(failure.code, RunErrorCode::ModelNotFound);
}

#[test]
fn a_key_the_provider_repeats_is_not_passed_on() {
    let key = "sk-hidden-0123456789";
    let said = format!("Incorrect API key {key}; use another than {key}.");
    // Also where the text is cut in the middle of it.
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
        for message in [&said, &at_the_cut] {
            let error = json!({"error": {"message": message, "type": key, "code": key}}).to_string();
            let within = format!("event: error\ndata: {error}\n\n");
            let stream = [("content-type", "text/event-stream")];
            let plain = Recording::with([Reply::of(401, &[], &error)]);
            let streamed = Recording::with(vec![Reply::of(200, &stream, &within); 3]);
            let want = || AnswerKind::Reply(ToolChoice::None);
            let node = Node::new(type_name, props.clone());
            let first = node.ask(want(), &plain, ModelSettings::default()).unwrap_err();
            assert!(first.message.contains("[redacted]"), "{}", first.message);
            let mut props = props.clone();
            props["stream"] = json!(true);
            let node = Node::new(type_name, props);
            let second = node.ask(want(), &streamed, ModelSettings::default()).unwrap_err();
            for failure in [first, second] {
                assert!(!failure.message.contains("sk-hid"), "{}", failure.message);
            }
        }
    }
}

#[test]
fn the_name_of_a_request_is_kept_for_the_provider() {
    let body = json!({"choices": [{"message": {"content": "hi"}}]}).to_string();
    for (headers, id) in [
        (vec![("x-request-id", "req_1"), ("request-id", "req_2")], Some("req_1".to_owned())),
        (vec![("request-id", "req_2")], Some("req_2".to_owned())),
        (vec![("apim-request-id", "req_3")], Some("req_3".to_owned())),
        (vec![], None),
    ] {
        let answer = ask(json!({}), &Recording::with([Reply::of(200, &headers, &body)])).unwrap();
        assert_eq!(answer.request_id, id);
    }
    let long = "x".repeat(5_000);
    let reply = Reply::of(200, &[("x-request-id", &long)], &body);
    let answer = ask(json!({}), &Recording::with([reply])).unwrap();
    assert_eq!(answer.request_id.unwrap().len(), 100);
}

/// Hears an answer as it comes in.
#[derive(Default)]
struct Heard(Mutex<Vec<(u32, String)>>);

impl DeltaObserver for Heard {
    fn text(&self, attempt: u32, text: &str) {
        self.0.lock().unwrap().push((attempt, text.to_owned()));
    }
}

/// A stream whose pieces are cut where they should not be.
fn streamed(text: &str, size: usize) -> Reply {
    let pieces = text.as_bytes().chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    Reply::Answer { status: 200, headers: vec![("content-type", "text/event-stream".to_owned())], pieces }
}

fn sse(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// What a wire streams that says "So: ä", thinks and asks for a tool.
fn streams() -> Vec<(&'static str, Value, String)> {
    let chat = |delta: Value| json!({"choices": [{"delta": delta}]});
    let tool = json!([{"index": 0, "id": "a", "function": {"name": "t", "arguments": "{\"x\":1}"}}]);
    let block =
        |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let begin = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let text = |delta: &str| json!({"type": "response.output_text.delta", "output_index": 1, "delta": delta});
    let line = |message: Value| format!("{}\n", json!({ "message": message }));
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
                begin(0, json!({"type": "thinking", "thinking": ""})),
                block(0, json!({"type": "thinking_delta", "thinking": "Hm."})),
                begin(1, json!({"type": "text", "text": "So"})),
                block(1, json!({"type": "text_delta", "text": ": "})),
                begin(2, json!({"type": "tool_use", "id": "a", "name": "t", "input": {}})),
                block(2, json!({"type": "input_json_delta", "partial_json": "{\"x\":1}"})),
                begin(3, json!({"type": "text", "text": "ä"})),
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
    ]
}

#[test]
fn the_text_of_an_answer_is_heard_as_it_comes_in() {
    for (type_name, mut props, stream) in streams() {
        props["stream"] = json!(true);
        for size in [1, 7, stream.len()] {
            let node = Node::new(type_name, props.clone());
            let (heard, recording) = (Heard::default(), Recording::with([streamed(&stream, size)]));
            let want = AnswerKind::Reply(ToolChoice::Auto);
            let answer = node.ask_heard(want, &recording, ModelSettings::default(), Some(&heard)).unwrap();
            let heard = heard.0.into_inner().unwrap();
            let whole: String = heard.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!((whole.as_str(), answer.text.as_str()), ("So: ä", "So: ä"), "{type_name} {size}");
            assert!(heard.iter().all(|(attempt, text)| *attempt == 1 && !text.is_empty()), "{heard:?}");
            assert!(heard.len() > 1 || size == stream.len(), "{type_name} {size}: {heard:?}");
        }
    }
}

#[test]
fn each_try_begins_its_text_anew() {
    let said = |text: &str| sse(&[json!({"choices": [{"delta": {"content": text}}]})]);
    // The first breaks off, the second never says a word, the third ends.
    let script = [
        streamed(&said("So"), 1_000),
        overloaded(&[]),
        streamed(&(said("Well") + "data: [DONE]\n\n"), 1_000),
    ];
    let (heard, recording) = (Heard::default(), Recording::with(script));
    let node = Node::new("openai-model", json!({"stream": true, "maxRetries": 3}));
    let want = AnswerKind::Reply(ToolChoice::None);
    let answer = node.ask_heard(want, &recording, ModelSettings::default(), Some(&heard)).unwrap();
    assert_eq!(answer.text, "Well");
    let expected = [(1, "So".to_owned()), (3, "Well".to_owned())];
    assert_eq!(heard.0.into_inner().unwrap(), expected);
}

#[test]
fn what_does_not_come_in_pieces_is_not_heard() {
    for stream in [false, true] {
        // Also where pieces were asked for and the whole came at once.
        let (heard, recording) = (Heard::default(), Recording::with([]));
        let node = Node::new("openai-model", json!({"stream": stream}));
        let want = AnswerKind::Reply(ToolChoice::None);
        node.ask_heard(want, &recording, ModelSettings::default(), Some(&heard)).unwrap();
        assert_eq!(heard.0.into_inner().unwrap(), []);
    }
}
