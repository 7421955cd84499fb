use crate::recorded_errors::too_long as recorded_too_long;
use crate::recording::{DeltaLog, Node, Recording, Reply, block_on};
use crate::samples::{assistant_calls, call, opaque, tool_result, two_tools, user};
use crate::transport::TransportError;
use crate::{ModelSettings, register};
use bytes::Bytes;
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::fact::ModelAnswer;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ChatMessage, ImageType, Transcript};
use redflow_ports::{Adapters, AnswerKind, ChatModel, ModelRequest};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// An Anthropic model and the fallback models gpt-4o and qwen3.
fn three_models() -> Vec<Node> {
    vec![
        Node::new("anthropic-model", json!({"model": "claude-sonnet-4-5", "timeout": 1_000})),
        Node::new("openai-model", json!({"model": "gpt-4o"})),
        Node::new("ollama-model", json!({"model": "qwen3"})),
    ]
}

fn build(nodes: &[Node], recording: &Arc<Recording>) -> Arc<dyn ChatModel> {
    let settings =
        || ModelSettings { transport: Some(Arc::clone(recording) as _), ..ModelSettings::default() };
    let mut adapters = Adapters::default();
    register(&mut adapters, settings());
    let models = nodes.iter().map(|node| node.build(settings()).unwrap()).collect();
    adapters.model_chain.unwrap()(models)
}

fn transcript(conversation: impl IntoIterator<Item = ChatMessage>) -> Transcript {
    let mut transcript = Transcript::default();
    conversation.into_iter().for_each(|message| transcript.push(Arc::new(message)));
    transcript
}

fn ask(
    nodes: &[Node],
    script: impl IntoIterator<Item = Reply>,
) -> (Result<ModelAnswer, Failure>, Vec<String>) {
    let recording = Recording::new(script);
    let result = block_on(build(nodes, &recording).call(ModelRequest::for_text(&transcript([user("Hi")]))));
    (result, models_of(&recording))
}

/// The models of all requests.
fn models_of(recording: &Recording) -> Vec<String> {
    recording.requests().iter().map(|request| request.body["model"].as_str().unwrap().to_owned()).collect()
}

fn failures(answer: &ModelAnswer) -> Vec<(&str, &str)> {
    answer.fell_over.iter().map(|failed| (failed.model.as_str(), failed.code.as_str())).collect()
}

fn status(status: u16) -> Reply {
    Reply::new(status, &[], "{}")
}

fn too_long() -> Reply {
    Reply::new(400, &[], &json!({"error": {"code": "context_length_exceeded"}}).to_string())
}

#[test]
fn the_next_model_answers_after_a_failure_that_is_not_about_the_request() {
    let billing = json!({"error": {"type": "billing_error", "message": "No money."}}).to_string();
    for (reply, code) in [
        (status(429), "RATE_LIMIT"),
        (Reply::new(429, &[], &billing), "QUOTA_EXCEEDED"),
        (status(503), "PROVIDER_UNAVAILABLE"),
        (status(529), "PROVIDER_UNAVAILABLE"),
        (Reply::Error(TransportError::Lost), "PROVIDER_UNAVAILABLE"),
        (Reply::Error(TransportError::Refused), "PROVIDER_UNAVAILABLE"),
        (status(401), "INVALID_CREDENTIALS"),
        (status(404), "MODEL_NOT_FOUND"),
        (status(504), "TIMEOUT"),
        (Reply::Hang, "TIMEOUT"),
    ] {
        // Each model but the last is called once.
        let (answer, called) = ask(&three_models(), [reply]);
        let answer = answer.unwrap();
        assert_eq!((answer.text.as_str(), failures(&answer)), ("hi", vec![("claude-sonnet-4-5", code)]));
        assert_eq!(called, ["claude-sonnet-4-5", "gpt-4o"], "{code}");
    }
    let (answer, called) = ask(&three_models(), [status(503), status(429), status(500)]);
    let answer = answer.unwrap();
    let expected = [("claude-sonnet-4-5", "PROVIDER_UNAVAILABLE"), ("gpt-4o", "RATE_LIMIT")];
    assert_eq!(failures(&answer), expected);
    assert_eq!(called, ["claude-sonnet-4-5", "gpt-4o", "qwen3", "qwen3"], "only the last one is retried");
    // Without a failure nothing changes.
    let (answer, called) = ask(&three_models(), []);
    assert_eq!((answer.unwrap().fell_over, called.len()), (vec![], 1));
}

#[test]
fn a_model_that_refuses_has_the_last_word() {
    let filtered = json!({"error": {"code": "content_filter"}}).to_string();
    for (reply, code) in [
        (status(400), RunErrorCode::ModelError),
        (status(422), RunErrorCode::ModelError),
        (Reply::new(400, &[], &filtered), RunErrorCode::ModelRefused),
        (Reply::new(200, &[], "no JSON"), RunErrorCode::ModelError),
    ] {
        let (failure, called) = ask(&three_models(), [reply]);
        let failure = failure.unwrap_err();
        assert_eq!((failure.code, called.len()), (code, 1), "{}", failure.message);
        assert!(!failure.message.contains("no model"), "{}", failure.message);
    }
    // A refusal or a cut in an answer is an answer.
    for reason in ["refusal", "max_tokens"] {
        let body = json!({"content": [{"type": "text", "text": "No"}], "stop_reason": reason}).to_string();
        let (answer, called) = ask(&three_models(), [Reply::new(200, &[], &body)]);
        assert_eq!((answer.unwrap().fell_over, called.len()), (vec![], 1), "{reason}");
    }
}

#[test]
fn the_failure_names_every_model_and_its_code() {
    let script = [status(429), status(401), status(503), status(503), status(404)];
    let (failure, called) = ask(&three_models(), script);
    let failure = failure.unwrap_err();
    assert_eq!((failure.code, called.len()), (RunErrorCode::ModelNotFound, 5));
    let start = "no model answered (`claude-sonnet-4-5` RATE_LIMIT, `gpt-4o` INVALID_CREDENTIALS, `qwen3` \
                 MODEL_NOT_FOUND): Ollama (127.0.0.1:11434) does not know the model `qwen3`";
    assert!(failure.message.starts_with(start), "{}", failure.message);
    // Also if a model has the last word in the middle.
    let (failure, _) = ask(&three_models(), [status(429), status(400)]);
    let failure = failure.unwrap_err();
    let start = "no model answered (`claude-sonnet-4-5` RATE_LIMIT, `gpt-4o` MODEL_ERROR): ";
    assert_eq!(failure.code, RunErrorCode::ModelError);
    assert!(failure.message.starts_with(start), "{}", failure.message);
    let (failure, called) = ask(&[], []);
    assert_eq!((failure.unwrap_err().code, called.len()), (RunErrorCode::ConfigInvalid, 0));
}

#[test]
fn a_conversation_that_is_too_long_goes_to_a_larger_window_only() {
    let at = |name: &str, base: &str| {
        Node::new("openai-model", json!({"model": name, "baseURL": base, "apiKey": "k"}))
    };
    let model = |name: &str| match name {
        "unknown" => at(name, "https://gateway.example"),
        name => at(name, ""),
    };
    // 128 000, unknown, 8 192, 1 047 576 tokens.
    let nodes = [model("gpt-4o"), model("unknown"), model("gpt-4"), model("gpt-4.1")];
    let (answer, called) = ask(&nodes, [too_long()]);
    let answer = answer.unwrap();
    let skipped: Vec<bool> = answer.fell_over.iter().map(|failed| failed.skipped).collect();
    assert_eq!(skipped, [false, true, true]);
    let failed = ["gpt-4o", "unknown", "gpt-4"].map(|name| (name, "CONTEXT_LENGTH"));
    assert_eq!(
        (failures(&answer), called),
        (failed.to_vec(), vec!["gpt-4o".to_owned(), "gpt-4.1".to_owned()])
    );
    // The need for a large window stays after another failure.
    let nodes = [model("gpt-4o"), model("gpt-5"), model("gpt-4o"), model("gpt-4.1")];
    let (answer, called) = ask(&nodes, [too_long(), status(429)]);
    let answer = answer.unwrap();
    let codes: Vec<&str> = failures(&answer).iter().map(|(_, code)| *code).collect();
    assert_eq!((codes, called.len()), (vec!["CONTEXT_LENGTH", "RATE_LIMIT", "CONTEXT_LENGTH"], 3));
    // No window is larger.
    let (failure, called) = ask(&[model("gpt-4o"), model("gpt-4")], [too_long()]);
    let failure = failure.unwrap_err();
    assert_eq!((failure.code, called.len()), (RunErrorCode::ContextLength, 1));
    let start = "no model answered (`gpt-4o` CONTEXT_LENGTH, `gpt-4` CONTEXT_LENGTH): ";
    assert!(failure.message.starts_with(start), "{}", failure.message);
}

#[test]
fn the_words_of_every_server_lead_to_a_larger_window() {
    for error in recorded_too_long() {
        let recording = Recording::new([error.reply.clone()]);
        let larger = json!({"model": "larger", "capabilities": {"contextWindow": 2_000}});
        let equal = json!({"model": "equal", "capabilities": {"contextWindow": 1_000}});
        let nodes = [error.node(), Node::new("openai-model", equal), Node::new("openai-model", larger)];
        let (log, transcript) = (DeltaLog::default(), transcript([user("Hi")]));
        let request = ModelRequest { delta_observer: Some(&log), ..ModelRequest::for_text(&transcript) };
        let answer = block_on(build(&nodes, &recording).call(request)).unwrap();
        let failed = [("m", "CONTEXT_LENGTH"), ("equal", "CONTEXT_LENGTH")];
        assert_eq!((failures(&answer), recording.requests().len()), (failed.to_vec(), 2), "{}", error.server);
        assert_eq!(recording.requests()[1].body["model"], "larger", "{}", error.server);
    }
}

#[test]
fn a_hanging_model_leaves_time_for_the_next_one() {
    let nodes = ["a", "b", "c"].map(|name| Node::new("openai-model", json!({ "model": name })));
    let call = |hanging: usize, time_left: Duration| {
        let recording = Recording::new(vec![Reply::Hang; hanging]);
        let (model, transcript) = (build(&nodes, &recording), transcript([user("Hi")]));
        let request = ModelRequest { time_left: Some(time_left), ..ModelRequest::for_text(&transcript) };
        block_on(async {
            let started = tokio::time::Instant::now();
            let answer = model.call(request).await;
            (answer, started.elapsed().as_secs())
        })
    };
    // A third of the time, then half of the rest; a model has at least a second.
    for (hanging, seconds, expected) in [(1, 300, 100), (2, 300, 200), (2, 0, 2), (0, 0, 0)] {
        let (answer, took) = call(hanging, Duration::from_secs(seconds));
        assert_eq!((answer.unwrap().fell_over.len(), took), (hanging, expected));
    }
    let (answer, _) = call(1, Duration::from_secs(300));
    assert_eq!(failures(&answer.unwrap()), [("a", "TIMEOUT")]);
    // The last one has its own limit only.
    let (failure, took) = call(3, Duration::from_secs(300));
    assert_eq!((failure.unwrap_err().code, took), (RunErrorCode::Timeout, 800));
}

#[test]
fn a_later_call_starts_at_the_model_that_worked() {
    for (first_model, expected) in [
        (0, vec!["claude-sonnet-4-5", "gpt-4o"]),
        (1, vec!["gpt-4o", "qwen3"]),
        (2, vec!["qwen3", "qwen3"]),
        (9, vec!["qwen3", "qwen3"]),
    ] {
        let recording = Recording::new([status(503)]);
        let transcript = transcript([user("Hi")]);
        let request = ModelRequest { first_model, ..ModelRequest::for_text(&transcript) };
        let answer = block_on(build(&three_models(), &recording).call(request)).unwrap();
        assert_eq!(models_of(&recording), expected, "{first_model}");
        // The start and the failures give the model that answered.
        let answered = usize::min(first_model as usize, 2) + answer.fell_over.len();
        let name = ["claude-sonnet-4-5", "gpt-4o", "qwen3"][answered];
        assert_eq!(expected.last(), Some(&name));
    }
    // A caller that wants no retry gets none from the last one either.
    let recording = Recording::new([status(503)]);
    let transcript = transcript([user("Hi")]);
    let request = ModelRequest { first_model: 2, retry: false, ..ModelRequest::for_text(&transcript) };
    assert!(block_on(build(&three_models(), &recording).call(request)).is_err());
    assert_eq!(models_of(&recording), ["qwen3"]);
}

#[test]
fn foreign_reasoning_is_dropped_when_another_wire_answers() {
    let thought = json!({"type": "thinking", "thinking": "Secret thought.", "signature": "sig"});
    let reasoning = opaque("anthropic-messages", &[thought]);
    let turn = ChatMessage { reasoning, ..assistant_calls("", &[call("toolu_1", "clock", "{}")]) };
    let transcript = transcript([user("Hi"), turn, tool_result("toolu_1", "12:00")]);
    let recording = Recording::new([status(503), status(503)]);
    block_on(build(&three_models(), &recording).call(ModelRequest::for_text(&transcript))).unwrap();
    let bodies: Vec<Value> = recording.requests().into_iter().map(|request| request.body).collect();
    let has_thought = |body: &Value| body.to_string().contains("Secret thought.");
    assert_eq!(bodies.iter().map(has_thought).collect::<Vec<_>>(), [true, false, false]);
    // The calls and results stay.
    assert!(bodies.iter().all(|body| body.to_string().contains("12:00")));
    assert_eq!(bodies[1]["messages"][1]["tool_calls"][0]["id"], "toolu_1");
}

fn stream_of(text: &str) -> Reply {
    let event = format!("data: {}\n\n", json!({"choices": [{"delta": {"content": text}}]}));
    let headers = vec![("content-type", "text/event-stream".to_owned())];
    Reply::Response { status: 200, headers, parts: vec![Ok(Bytes::from(event))] }
}

#[test]
fn a_streamed_text_begins_again_with_a_higher_attempt() {
    let model = |name: &str| Node::new("openai-model", json!({ "model": name, "api": "chat" }));
    let nodes = ["a", "b", "c", "d"].map(model);
    // The streams of the first and of the third break off; the second sends no text; the last one is retried.
    let script = [stream_of("So"), status(503), stream_of("Well"), stream_of("Hm")];
    let (log, recording) = (DeltaLog::default(), Recording::new(script));
    let transcript = transcript([user("Hi")]);
    let request = ModelRequest { delta_observer: Some(&log), ..ModelRequest::for_text(&transcript) };
    let answer = block_on(build(&nodes, &recording).call(request)).unwrap();
    assert_eq!((answer.text.as_str(), models_of(&recording).concat()), ("hi", "abcdd".to_owned()));
    let expected = [(1, "So"), (2, "Well"), (3, "Hm"), (4, "hi")];
    assert_eq!(log.0.into_inner().unwrap(), expected.map(|(attempt, text)| (attempt, text.to_owned())));
}

#[test]
fn the_info_is_of_the_first_model_and_of_what_all_can_do() {
    let mut nodes = three_models();
    let recording = Recording::new([]);
    let info = build(&nodes, &recording).info().clone();
    assert_eq!((info.provider, info.model.as_str(), info.tools), ("anthropic", "claude-sonnet-4-5", true));
    assert_eq!((info.context_window, info.priced), (Some(200_000), false));
    assert_eq!(info.refused_images, []);
    nodes.push(Node::new("google-model", json!({})));
    assert_eq!(build(&nodes, &recording).info().refused_images, [ImageType::Gif]);
    nodes.pop();
    nodes.push(Node::new("openai-model", json!({"model": "o1-mini"})));
    assert!(!build(&nodes, &recording).info().tools);
    // A fallback model without tools says so.
    let reply = redflow_ports::Reply { tools: two_tools().into(), ..Default::default() };
    let answer_kind = &AnswerKind::Reply(reply);
    let recording = Recording::new([status(503)]);
    let transcript = transcript([user("Hi")]);
    let request = ModelRequest { answer_kind, ..ModelRequest::for_text(&transcript) };
    let model = build(&[nodes.remove(1), nodes.remove(2)], &recording);
    let failure = block_on(model.call(request)).unwrap_err();
    assert_eq!((failure.code, recording.requests().len()), (RunErrorCode::ConfigInvalid, 1));
    assert!(failure.message.contains("`o1-mini` takes no tools"), "{}", failure.message);
}
