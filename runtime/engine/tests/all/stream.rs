//! The stream port of an agent: its joined text is the answer, and all of it leaves before the result.

use crate::kit::{EngineTest, ends, inject, model, node, only_message, tool_double, with};
use pretty_assertions::assert_eq;
use redflow_contract::event::FlowEvent;
use redflow_contract::stream::{StreamPart, StreamPartKind};
use serde_json::{Value, json};

/// An AI Agent `a` with the model `m` and the tool `t`. Its result goes to `d`, its stream to `s`.
fn flow(model: Value) -> Value {
    let bound = json!({"model": "m", "tools": ["t"]});
    let debug = |id| with(node(id, "debug", json!([])), json!({"complete": "true"}));
    json!([
        inject(&["a"]),
        with(node("a", "ai-agent", json!([["d"], ["s"]])), bound),
        model,
        tool_double(json!({})),
        debug("d"),
        debug("s"),
    ])
}

/// A model that streams these pieces, a list for each attempt, and answers with this text.
fn streaming(pieces: Value, answer: &str, props: Value) -> Value {
    let model = with(model("m", json!([answer])), json!({"type": "model.streaming", "pieces": pieces}));
    with(model, props)
}

/// What the debug nodes got, in order: the node and the message.
fn messages(test: &EngineTest) -> Vec<(String, Value)> {
    let shown = |event: FlowEvent| match event {
        FlowEvent::Debug { node, value, .. } => Some((node.id.to_string(), value)),
        _ => None,
    };
    test.recorder.flow_events().into_iter().filter_map(shown).collect()
}

/// The stream: each part with its payload. Checks that it left before the result, and that nothing is missing.
fn parts(test: &EngineTest) -> Vec<(StreamPart, String)> {
    let messages = messages(test);
    let results: Vec<usize> = (0..messages.len()).filter(|at| messages[*at].0 == "d").collect();
    assert_eq!(results, [messages.len() - 1], "the result is the last message");
    let part = |(_, message): &(String, Value)| {
        assert_eq!(message["_msgid"], json!("msg-1"));
        let part: StreamPart = serde_json::from_value(message["stream"].clone()).unwrap();
        (part, message["payload"].as_str().unwrap().to_owned())
    };
    let parts: Vec<_> = messages[..messages.len() - 1].iter().map(part).collect();
    assert!((1..).zip(&parts).all(|(seq, (part, _))| part.seq == seq), "{parts:?}");
    assert_eq!(parts.last().unwrap().0.kind, StreamPartKind::End);
    parts
}

/// The joined text of the last iteration's highest attempt.
fn joined(parts: &[(StreamPart, String)]) -> String {
    let text = || parts.iter().filter(|(part, _)| part.kind == StreamPartKind::Text);
    let last = text().map(|(part, _)| (part.iteration, part.attempt)).max();
    let of_last = text().filter(|(part, _)| Some((part.iteration, part.attempt)) == last);
    of_last.map(|(_, text)| text.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn gathers_the_text_that_arrives() {
    let words: Vec<String> = (0..40).map(|number| format!("w{number} ")).collect();
    let test = EngineTest::new(&flow(streaming(json!([words]), &words.concat(), json!({"pieceMs": 10}))));
    let reports = test.fire().await;
    assert_eq!(only_message(&reports)["payload"], json!(words.concat()));
    let parts = parts(&test);
    assert_eq!(joined(&parts), words.concat());
    // Five or six words in 50 ms, and the end.
    assert!((7..=10).contains(&parts.len()), "{parts:?}");
    assert!(parts.iter().all(|(part, _)| part.run_id.as_str() == "run-1" && part.iteration == 1));
    // A pause does not hold the gathered text back.
    let pieces = json!([["Let me think.", " Yes."]]);
    let test = EngineTest::new(&flow(streaming(pieces, "Let me think. Yes.", json!({"pieceMs": 1000}))));
    test.fire().await;
    let texts: Vec<String> = self::parts(&test).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["Let me think.", " Yes.", ""]);
}

/// More text at once than the engine takes is neither lost nor changed.
#[tokio::test(start_paused = true)]
async fn sends_all_of_a_long_answer() {
    let pieces: Vec<String> = (0..2_000).map(|number| format!("{number} längere Wörter, ")).collect();
    let text = pieces.concat();
    let test = EngineTest::new(&flow(streaming(json!([pieces]), &text, json!({}))));
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    let parts = parts(&test);
    assert_eq!(joined(&parts), text);
    assert!(parts.iter().all(|(_, text)| text.len() <= 4096));
}

#[tokio::test(start_paused = true)]
async fn a_new_attempt_begins_again_and_secrets_stay_out() {
    let pieces = json!([["Half of"], ["It is sk-", "hidden-0123", "456789, so", "rry sk-hid"]]);
    let answer = "It is sk-hidden-0123456789, sorry sk-hid";
    let key = json!({"apiKey": "sk-hidden-0123456789", "pieceMs": 60});
    let test = EngineTest::new(&flow(streaming(pieces, answer, key)));
    let reports = test.fire().await;
    let parts = parts(&test);
    let shown = "It is [redacted], sorry sk-hid";
    assert_eq!(only_message(&reports)["payload"], json!(shown));
    assert_eq!(joined(&parts), shown);
    assert_eq!((parts[0].0.attempt, parts[0].1.as_str()), (1, "Half of"));
    assert!(parts[1..].iter().all(|(part, _)| part.attempt == 2), "{parts:?}");
    // An answer that is not what was streamed begins again as a whole.
    let test =
        EngineTest::new(&flow(streaming(json!([["Hello, wrold"]]), "Hello, world", json!({"pieceMs": 60}))));
    test.fire().await;
    let parts = self::parts(&test);
    assert_eq!(joined(&parts), "Hello, world");
    assert_eq!(parts[1].0.attempt, 2);
}

#[tokio::test(start_paused = true)]
async fn names_the_tools_that_are_called() {
    let calls =
        json!({"text": "I look.", "toolCalls": [{"name": "t"}, {"name": "t", "arguments": {"x": 1}}]});
    let test = EngineTest::new(&flow(model("m", json!([calls, "Both done."]))));
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    let parts = parts(&test);
    let lines: Vec<String> = parts
        .iter()
        .filter(|(part, _)| part.kind != StreamPartKind::Text)
        .map(|(part, text)| format!("{:?} {} {text}", part.kind, part.iteration))
        .collect();
    assert_eq!(lines, ["Tool 1 t", "Tool 1 t", "End 2 "]);
    assert_eq!(joined(&parts), "Both done.");
    let first: String = parts
        .iter()
        .take_while(|(part, _)| part.kind == StreamPartKind::Text)
        .map(|(_, text)| text.as_str())
        .collect();
    assert_eq!(first, "I look.");
}

/// The answer is the input of the finishing tool, which is not in the model's text.
#[tokio::test(start_paused = true)]
async fn streams_an_answer_that_a_tool_gives() {
    let answer =
        json!({"text": "Here it is:", "toolCalls": [{"name": "final_answer", "arguments": {"n": 1}}]});
    let mut flow = flow(model("m", json!([{"toolCalls": [{"name": "t"}]}, answer])));
    flow[1]["outputSchema"] =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let test = EngineTest::new(&flow);
    let reports = test.fire().await;
    assert_eq!(only_message(&reports)["payload"], json!(r#"{"n":1}"#));
    assert_eq!(joined(&parts(&test)), r#"{"n":1}"#);
}

/// Without a wire nothing is made, and a run that fails has an end too.
#[tokio::test(start_paused = true)]
async fn streams_only_what_is_wired() {
    let mut unwired = flow(model("m", json!(["Hello, Ada"])));
    unwired[1]["wires"] = json!([["d"], []]);
    let test = EngineTest::new(&unwired);
    test.fire().await;
    assert_eq!(messages(&test).len(), 1);
    let fails = json!({"type": "model.double", "fails": {"code": "MODEL_REFUSED", "message": "no"}});
    let test = EngineTest::new(&flow(with(model("m", json!(["x"])), fails)));
    assert_eq!(ends(&test.fire().await), ["run-1 a failed MODEL_REFUSED"]);
    assert_eq!(parts(&test).len(), 1);
}

/// A chat behind the stream port shows the answer once it is whole, and sends no piece back to the agent.
#[tokio::test(start_paused = true)]
async fn a_chat_behind_the_stream_port_shows_the_whole_answer() {
    let mut flow = flow(model("m", json!(["Hello, dear Ada"])));
    flow[1]["wires"] = json!([[], ["c"]]);
    flow.as_array_mut().unwrap().push(node("c", "chat-node", json!([["a"]])));
    let test = EngineTest::new(&flow);
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    assert_eq!(test.recorder.flow_lines(), ["c Agent (100): Hello, dear Ada"]);
}
