//! Values that are too large or too deep for a journal are refused.

use crate::kit::{
    EngineTest, Setup, agent, agent_with_tool, calculator, catch, debug, ends, final_answer, inject, model,
    nested, node, only_message, tool_call, tool_double, with,
};
use pretty_assertions::assert_eq;
use redflow_contract::limits::RunLimits;
use serde_json::{Value, json};

fn flow(result: Value) -> Value {
    json!([
        inject(&["a"]),
        agent_with_tool("a", "m", &["d"]),
        model("m", json!([tool_call("t", json!({})), final_answer("done")])),
        tool_double(json!({"result": result})),
        debug("d", "agentResult.stopReason"),
        catch("c", Value::Null, &["e"]),
        debug("e", "error.code"),
    ])
}

fn small_limits() -> Setup {
    let run_limits =
        RunLimits { max_result_bytes: 60, max_message_bytes: 80, max_value_depth: 4, ..RunLimits::default() };
    Setup { run_limits, ..Setup::default() }
}

// SECURITY: answer-limits
#[tokio::test(start_paused = true)]
async fn limits_tool_results() {
    let rows = [
        (json!("x".repeat(32)), None),
        (json!("x".repeat(33)), Some("the tool's result has 61 bytes; the limit is 60")),
        (nested(4), None),
        (nested(5), Some("the tool's result nests deeper than 4 levels")),
        (json!({"a": [{"b": [1]}]}), None),
        (json!({"a": [{"b": [[]]}]}), Some("the tool's result nests deeper than 4 levels")),
    ];
    for (result, error) in rows {
        let test = small_limits().start_engine(&flow(result.clone()));
        let message = only_message(&test.fire().await);
        let call = &message["envelope"]["tools"]["history"][0];
        assert_eq!(call["error"].as_str(), error, "{result}");
        assert_eq!(call["output"], if error.is_none() { result } else { Value::Null });
        assert_eq!(message["payload"], "done", "the model decides");
    }
}

// SECURITY: answer-limits
#[tokio::test(start_paused = true)]
async fn limits_incoming_messages() {
    // {"_msgid":"msg-1","payload":"…"} has 31 bytes around the text.
    let rows = [
        (json!("x".repeat(49)), None),
        (json!("x".repeat(50)), Some(("maxMessageBytes", "the message has 81 bytes; the limit is 80"))),
        (nested(4), None),
        (nested(5), Some(("maxValueDepth", "the message nests deeper than 4 levels"))),
    ];
    for (payload, refused) in rows {
        let test = small_limits().start_engine(&flow(json!(1)));
        let reports = test.send(payload.clone()).await;
        let Some((rule, text)) = refused else {
            assert_eq!(ends(&reports), ["run-1 a completed"], "{payload}");
            continue;
        };
        assert_eq!(ends(&reports), ["run-1 a refused CONTEXT_LENGTH"]);
        let message = only_message(&reports);
        let error = json!({"code": "CONTEXT_LENGTH", "message": text, "rule": rule, "iteration": 0});
        assert_eq!((&message["payload"], &message["agentResult"]["error"]), (&error, &error));
        assert_eq!(message["envelope"]["input"], payload);
        assert_eq!(message["envelope"]["tools"]["available"], json!(["t"]));
        assert_eq!(test.recorder.flow_lines(), ["d: \"error\"", "e: \"CONTEXT_LENGTH\""]);
        assert_eq!(test.recorder.calls(), ["built t"], "neither model nor tool is called");
    }
}

/// The test kit replays every journal; this one holds the deepest values that are accepted.
// SECURITY: answer-limits
#[tokio::test(start_paused = true)]
async fn the_default_depth_can_be_journalled_and_read_back() {
    let deepest = nested(100);
    // A flow file may not nest as deep, so the tool makes its result itself.
    let mut flow = flow(Value::Null);
    flow[3]["nests"] = json!(100);
    let test = Setup::default().start_engine(&flow);
    let reports = test.send(deepest.clone()).await;
    assert_eq!(ends(&reports), ["run-1 a completed"]);
    assert_eq!(only_message(&reports)["envelope"]["tools"]["history"][0]["output"], deepest);
    assert_eq!(ends(&test.send(nested(101)).await), ["run-2 a refused CONTEXT_LENGTH"]);
}

// SECURITY: answer-limits
#[tokio::test(start_paused = true)]
async fn cuts_an_answer_that_is_too_large() {
    let run_limits = RunLimits { max_answer_bytes: 100, ..RunLimits::default() };
    let mut flow = flow(json!(1));
    flow[2] = model("m", json!(["ä".repeat(1000)]));
    let test = Setup { run_limits, ..Setup::default() }.start_engine(&flow);
    assert_eq!(ends(&test.fire().await), ["run-1 a failed INVALID_JSON"]);
    // The plan has the whole script; the fact has only enough of it to be refused.
    let journal = test.store.journal(&"run-1".into());
    let fact = journal.lines().find(|line| line.contains("model_answered")).unwrap();
    assert_eq!(fact.matches('ä').count(), 51);
}

// SECURITY: answer-limits
#[tokio::test(start_paused = true)]
async fn refuses_a_reply_that_is_too_large() {
    let run_limits = RunLimits { max_answer_bytes: 100, ..RunLimits::default() };
    let long = "long".repeat(30);
    let call = json!({"toolCalls": [{"name": "t", "arguments": {"x": &long}}]});
    for reply in [json!(&long), call] {
        let agent = with(node("a", "ai-agent", json!([["d"], []])), json!({"model": "m"}));
        let flow = json!([inject(&["a"]), agent, model("m", json!([reply])), debug("d", "payload.message")]);
        let test = Setup { run_limits, ..Setup::default() }.start_engine(&flow);
        assert_eq!(ends(&test.fire().await), ["run-1 a failed MODEL_ERROR"]);
        let journal = test.store.journal(&"run-1".into());
        assert!(journal.lines().all(|line| !line.contains("model_answered")), "{journal}");
        let lines = test.recorder.flow_lines();
        assert!(lines.iter().any(|line| line.contains("bytes; 100 are allowed")), "{lines:?}");
    }
}

// SECURITY: answer-limits
#[tokio::test(start_paused = true)]
async fn a_recalled_turn_that_is_too_large_fails_the_recall() {
    let turns = json!([{"role": "user", "content": "x".repeat(81)}]);
    let flow = json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &["d"]), json!({"memory": "mem"})),
        model("m", json!([final_answer("done")])),
        tool_double(json!({})),
        with(node("mem", "buffer-memory", json!([])), json!({"turns": turns})),
        debug("d", "envelope.observability.events"),
    ]);
    let test = small_limits().start_engine(&flow);
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    let line = &test.recorder.flow_lines()[0];
    assert!(line.contains("the memory gave 81 bytes in one turn; the limit is 80"), "{line}");
}

// SECURITY: answer-limits
#[tokio::test(start_paused = true)]
async fn recalls_the_last_turns_of_a_long_conversation() {
    let turn = |text: &str| {
        [json!({"role": "user", "content": text}), json!({"role": "assistant", "content": "ok"})]
    };
    let turns = [turn(&"x".repeat(40)), turn(&"y".repeat(40)), turn("last")].concat();
    let flow = json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &["d"]), json!({"memory": "mem"})),
        model("m", json!([final_answer("done")])),
        tool_double(json!({})),
        with(node("mem", "buffer-memory", json!([])), json!({"turns": turns})),
        debug("d", "envelope.memory.messages"),
    ]);
    let test = small_limits().start_engine(&flow);
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    let line = &test.recorder.flow_lines()[0];
    assert!(line.contains("yyyy") && line.contains("last") && !line.contains("xxxx"), "{line}");
}

/// Whether the engine's thread was free at a moment while a run computed.
async fn computes_elsewhere(payload: Value) -> bool {
    let flow =
        json!([inject(&["a"]), agent("a", "m", &[]), model("m", json!([final_answer("hi")])), calculator()]);
    let test = EngineTest::new(&flow);
    let mut run = std::pin::pin!(test.send(payload));
    let mut was_seen = false;
    loop {
        tokio::select! {
            biased;
            reports = &mut run => {
                assert_eq!(ends(&reports), ["run-1 a completed"]);
                return was_seen;
            }
            () = tokio::task::yield_now() => was_seen |= !test.engine.computations().is_empty(),
        }
    }
}

// SECURITY: answer-limits
#[tokio::test]
async fn a_run_with_a_large_message_begins_on_another_thread() {
    assert!(computes_elsewhere(json!(vec![0; 200_000])).await);
    assert!(!computes_elsewhere(json!("small")).await);
}
