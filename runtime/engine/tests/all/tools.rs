//! Tools that fail, are late, or have an unknown outcome.

use crate::kit::{
    EngineTest, actions, agent, agent_with_tool, calculator, debug, ends, final_answer, inject, model,
    model_double, node, only_message, tool_call, tool_double, with,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// One call of the tool `t`, then an answer.
fn flow(tool: Value) -> Value {
    json!([
        inject(&["a"]),
        agent_with_tool("a", "m", &["d"]),
        model("m", json!([tool_call("t", json!({"x": 1})), final_answer("done")])),
        tool_double(tool),
        debug("d", "payload"),
    ])
}

/// Fires `i` and returns the first call of the first_call.
async fn first_call(tool: Value) -> Value {
    let test = EngineTest::new(&flow(tool));
    let message = only_message(&test.fire().await);
    message["envelope"]["tools"]["history"][0].clone()
}

#[tokio::test(start_paused = true)]
async fn a_failed_tool_is_an_observation() {
    let flow = json!([
        inject(&["a"]),
        with(agent("a", "m", &[]), json!({"debug": true})),
        model(
            "m",
            json!([
                tool_call("calculator", json!({"expression": "1/0"})),
                final_answer("It cannot be done.")
            ])
        ),
        calculator(),
    ]);
    let test = EngineTest::new(&flow);
    let message = only_message(&test.fire().await);
    let call = &message["envelope"]["tools"]["history"][0];
    assert_eq!((&call["success"], &call["output"]), (&json!(false), &Value::Null));
    let observed = json!({"success": false, "error": call["error"]}).to_string();
    let prompt = message["envelope"]["model"]["lastPrompt"].as_str().unwrap();
    assert!(prompt.ends_with(&format!("\n\nuser: {observed}")), "{prompt}");
    assert_eq!(message["payload"], "It cannot be done.");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_of_a_repeatable_call_is_a_failure() {
    // The class that the node declares wins over the tool's own.
    let rows = [
        json!({"ownEffect": "read"}),
        json!({"ownEffect": "idempotent"}),
        json!({"ownEffect": "at_most_once", "effect": "read"}),
        json!({"ownEffect": "at_most_once", "effect": "idempotent"}),
    ];
    for row in rows {
        let test = EngineTest::new(&flow(with(row.clone(), json!({"hangs": "tool", "timeout": 1500}))));
        let message = only_message(&test.fire().await);
        let call = json!({
            "iteration": 1,
            "tool": "t",
            "input": {"x": 1},
            "output": null,
            "success": false,
            "error": "the tool did not answer within 1500 ms",
            "durationMs": 1500,
            "callId": "run-1:1",
        });
        assert_eq!(message["envelope"]["tools"]["history"], json!([call]), "{row}");
        assert_eq!(message["payload"], "done", "{row}");
        assert_eq!(test.recorder.calls(), ["built t", "tool t {\"x\":1}", "dropped tool t"], "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_of_a_repeatable_call_is_a_failure() {
    for row in [json!({"ownEffect": "idempotent"}), json!({"ownEffect": "at_most_once", "effect": "read"})] {
        let call = first_call(with(row, json!({"unknown": "the connection broke"}))).await;
        assert_eq!((&call["success"], &call["error"]), (&json!(false), &json!("the connection broke")));
        assert_eq!(call["outcome"], Value::Null);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_at_most_once_call_waits_for_a_person() {
    let rows = [
        json!({"ownEffect": "at_most_once", "hangs": "tool", "timeout": 1500}),
        json!({"ownEffect": "read", "effect": "at_most_once", "hangs": "tool", "timeout": 1500}),
        json!({"ownEffect": "at_most_once", "unknown": "the connection broke"}),
    ];
    for row in rows {
        let test = EngineTest::new(&flow(row.clone()));
        assert_eq!(ends(&test.fire().await), ["run-1 a waiting run-1:1 t 1"], "{row}");
        assert_eq!(test.recorder.flow_lines(), [] as [&str; 0], "nothing leaves port 3: {row}");
        let last = test.recorder.run_events().pop().unwrap();
        assert_eq!(serde_json::to_value(&last.event).unwrap()["type"], "waiting_for_outcome");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_can_fail_instead_of_waiting() {
    let test = EngineTest::new(&flow(json!({
        "ownEffect": "at_most_once", "hangs": "tool", "timeout": 1500, "onUnknown": "fail",
    })));
    let reports = test.fire().await;
    assert_eq!(ends(&reports), ["run-1 a failed TOOL_OUTCOME_UNKNOWN"]);
    let message = only_message(&reports);
    let call = &message["envelope"]["tools"]["history"][0];
    assert_eq!((&call["outcome"], &call["success"]), (&json!("unknown"), &json!(false)));
    assert_eq!(actions(&message), ["model_response", "tool_request", "error"]);
    assert_eq!(
        message["payload"],
        json!({
            "code": "TOOL_OUTCOME_UNKNOWN",
            "message": "Nobody knows whether the call of tool `t` happened: the tool did not answer within 1500 ms",
            "iteration": 1,
        })
    );
}

#[tokio::test(start_paused = true)]
async fn a_timely_answer_is_never_unknown() {
    let call = first_call(json!({"ownEffect": "at_most_once", "result": {"sent": true}})).await;
    assert_eq!((&call["success"], &call["output"]), (&json!(true), &json!({"sent": true})));
    let call = first_call(json!({"ownEffect": "at_most_once", "error": "no such address"})).await;
    assert_eq!((&call["success"], &call["error"]), (&json!(false), &json!("no such address")));
}

#[tokio::test(start_paused = true)]
async fn an_adapter_that_panics_fails_its_own_call_and_nothing_else() {
    let rows = [
        ("read", "run-1 a completed"),
        ("idempotent", "run-1 a completed"),
        ("at_most_once", "run-1 a waiting run-1:1 t 1"),
    ];
    for (class, end) in rows {
        let test = EngineTest::new(&flow(json!({"effect": class, "panics": "tool"})));
        assert_eq!(ends(&test.fire().await), [end]);
        assert_eq!(ends(&test.fire().await), [end.replace("run-1", "run-2")], "the engine continues");
    }
    let flow = |model: Value, memory: Value| {
        json!([
            inject(&["a"]),
            with(agent("a", "m", &["d"]), json!({"memory": "mem"})),
            model_double("m", json!([final_answer("hi")]), model),
            calculator(),
            with(node("mem", "buffer-memory", json!([])), memory),
            debug("d", "payload"),
        ])
    };
    let nothing = || json!({});
    let rows = [
        (json!({"panics": "model"}), nothing(), "run-1 a failed INTERNAL"),
        (nothing(), json!({"panics": "recall"}), "run-1 a completed"),
        (nothing(), json!({"panics": "append"}), "run-1 a completed"),
    ];
    for (model, memory, end) in rows {
        assert_eq!(ends(&EngineTest::new(&flow(model, memory)).fire().await), [end]);
    }
}
