use super::{MAX_PIECES, ScriptedModel, split_words};
use crate::recording::DeltaLog;
use pretty_assertions::assert_eq;
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_contract::id::NodeSummary;
use redflow_contract::transcript::{OpaqueParts, RequestedCall, Transcript};
use redflow_ports::{
    ActionSchemas, AnswerKind, BuildError, ChatModel, DeltaObserver, ModelRequest, NodeConfig,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

fn build(props: &Value) -> Result<Arc<dyn ChatModel>, BuildError> {
    let node = NodeSummary { id: "m".into(), type_name: "scripted-model".to_owned(), name: String::new() };
    ScriptedModel::build(NodeConfig::new(&node, props.as_object().unwrap(), &|_| None, &|_| ()))
}

/// The answer for an agent with native tool calls.
async fn reply(model: &dyn ChatModel, iteration: u32, deltas: Option<&dyn DeltaObserver>) -> ModelAnswer {
    let transcript = Transcript::default();
    let request = ModelRequest { iteration, delta_observer: deltas, ..ModelRequest::for_text(&transcript) };
    model.call(request).await.unwrap()
}

/// The answer for an Agent Core.
async fn action(model: &dyn ChatModel, iteration: u32, deltas: Option<&dyn DeltaObserver>) -> ModelAnswer {
    let (transcript, answer_kind) = (Transcript::default(), &AnswerKind::Action(ActionSchemas::default()));
    let request = ModelRequest {
        iteration,
        answer_kind,
        delta_observer: deltas,
        ..ModelRequest::for_text(&transcript)
    };
    model.call(request).await.unwrap()
}

fn call(id: &str, name: &str, arguments: &str) -> RequestedCall {
    RequestedCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

#[tokio::test]
async fn the_kth_call_gets_the_kth_reply_and_the_last_repeats() {
    let model = build(&json!({"replies": ["as it is", {"b": 1, "a": 2}, 7]})).unwrap();
    for (iteration, expected) in [(1, "as it is"), (2, r#"{"b":1,"a":2}"#), (3, "7"), (9, "7")] {
        let expected = ModelAnswer { text: expected.to_owned(), ..ModelAnswer::default() };
        assert_eq!(reply(&*model, iteration, None).await, expected);
        assert_eq!(action(&*model, iteration, None).await, expected);
    }
}

#[tokio::test]
async fn tool_calls_are_native_calls_of_a_reply() {
    let calls = json!([
        {"name": "calculator", "arguments": {"expression": "6 * 7"}},
        {"name": "clock"},
        {"name": "clock", "arguments": "no JSON", "id": "own"},
        {"name": "clock", "arguments": [1]},
    ]);
    let usage = json!({"inputTokens": 5, "outputTokens": 2, "cost": 0.5});
    let all = json!({"toolCalls": calls, "text": "I look.", "usage": usage, "reasoning": {"thought": "Hm."}});
    let end = json!({"toolCalls": [], "text": "42"});
    let cut = json!({"toolCalls": [{"name": "clock"}], "finish": "truncated"});
    let model = build(&json!({"replies": [all, end, cut]})).unwrap();
    let expected = ModelAnswer {
        text: "I look.".to_owned(),
        finish: ModelFinish::ToolCalls,
        usage: Some(Usage { input_tokens: 5, output_tokens: 2, cost: Some(0.5), ..Usage::default() }),
        tool_calls: vec![
            call("call_1_1", "calculator", r#"{"expression":"6 * 7"}"#),
            call("call_1_2", "clock", "{}"),
            call("own", "clock", "no JSON"),
            call("call_1_4", "clock", "[1]"),
        ],
        reasoning: Some(OpaqueParts::new("scripted", vec![json!({"thought": "Hm."})])),
        ..ModelAnswer::default()
    };
    assert_eq!(reply(&*model, 1, None).await, expected);
    assert_eq!(
        reply(&*model, 2, None).await,
        ModelAnswer { text: "42".to_owned(), ..ModelAnswer::default() }
    );
    // The ids of a repeated reply are new.
    for iteration in [3, 4] {
        let answer = reply(&*model, iteration, None).await;
        assert_eq!(answer.finish, ModelFinish::Truncated);
        assert_eq!(answer.tool_calls, [call(&format!("call_{iteration}_1"), "clock", "{}")]);
    }
    // For an Agent Core it is text.
    let text = json!({"toolCalls": [], "text": "42"}).to_string();
    assert_eq!(action(&*model, 2, None).await, ModelAnswer { text, ..ModelAnswer::default() });
    let info = model.info();
    assert_eq!((info.tools, info.streaming, info.priced), (true, true, true));
    assert!(!build(&json!({"replies": ["x", {"toolCalls": [], "text": "y"}]})).unwrap().info().priced);
}

#[test]
fn invalid_tool_calls_are_refused() {
    for reply in [
        json!({"toolCalls": {}}),
        json!({"toolCalls": [{}]}),
        json!({"toolCalls": [{"name": "a", "input": {}}]}),
        json!({"toolCalls": [], "message": "x"}),
        json!({"toolCalls": [], "finish": "done"}),
        json!({"toolCalls": [], "usage": {"tokens": 5}}),
    ] {
        let error = build(&json!({"replies": ["x", reply]})).err().unwrap();
        assert!(
            error.reason.starts_with("reply 2 has invalid `toolCalls`: each call has a `name`"),
            "{reply}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_reply_comes_after_the_delay() {
    let model = build(&json!({"replies": ["one two three"], "delayMs": 250})).unwrap();
    let log = DeltaLog::default();
    for deltas in [None, Some(&log as &dyn DeltaObserver)] {
        let before = Instant::now();
        reply(&*model, 1, deltas).await;
        // The clock of the test has a resolution of one millisecond for each piece.
        let waited = before.elapsed();
        assert!((Duration::from_millis(250)..Duration::from_millis(254)).contains(&waited), "{waited:?}");
    }
}

#[tokio::test]
async fn an_observer_receives_a_reply_word_by_word() {
    let model = build(&json!({"replies": ["It is  42.\nYes", {"b": "c d"}, ""]})).unwrap();
    let received = async |iteration, is_action| {
        let log = DeltaLog::default();
        let answer = if is_action {
            action(&*model, iteration, Some(&log)).await
        } else {
            reply(&*model, iteration, Some(&log)).await
        };
        let pieces = log.0.into_inner().unwrap();
        assert!(pieces.iter().all(|(attempt, _)| *attempt == 1));
        let pieces: Vec<String> = pieces.into_iter().map(|(_, piece)| piece).collect();
        assert_eq!(pieces.concat(), answer.text);
        pieces
    };
    assert_eq!(received(1, false).await, ["It ", "is ", " ", "42.\nYes"]);
    assert_eq!(received(2, false).await, [r#"{"b":"c "#, r#"d"}"#]);
    assert_eq!(received(3, false).await, [""; 0]);
    // An action is one piece.
    assert_eq!(received(2, true).await, [r#"{"b":"c d"}"#]);
}

#[test]
fn the_number_of_pieces_is_limited() {
    for words in [1, 2, MAX_PIECES, MAX_PIECES + 1, 5 * MAX_PIECES - 1, 100_000] {
        let text = vec!["wörd"; words].join(" ");
        let pieces = split_words(&text);
        assert_eq!(pieces.concat(), text);
        assert!(pieces.len() <= words.min(MAX_PIECES), "{words}: {}", pieces.len());
        assert!(pieces.len() * 2 >= words.min(MAX_PIECES), "{words}: {}", pieces.len());
    }
}

#[test]
fn a_model_without_replies_cannot_be_built() {
    for props in [json!({"replies": []}), json!({}), json!({"replies": "x"})] {
        assert!(build(&props).is_err(), "{props}");
    }
}
