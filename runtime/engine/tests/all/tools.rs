//! Tools that fail, are late, or leave nobody the wiser.

use crate::kit::{
    World, actions, agent, agent_with_tool, asks, calculator, debug, ends, inject, model, model_double, node,
    only_message, says, tool_double, with,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// One call of the tool `t`, then an answer.
fn flow(tool: Value) -> Value {
    json!([
        inject(&["a"]),
        agent_with_tool("a", "m", &["d"]),
        model("m", json!([asks("t", json!({"x": 1})), says("done")])),
        tool_double(tool),
        debug("d", "payload"),
    ])
}

/// Runs to the end and gives the one call as history tells it.
async fn history(tool: Value) -> Value {
    let world = World::new(&flow(tool));
    let message = only_message(&world.fire().await);
    message["envelope"]["tools"]["history"][0].clone()
}

#[tokio::test(start_paused = true)]
async fn a_failed_tool_is_an_observation() {
    let flow = json!([
        inject(&["a"]),
        with(agent("a", "m", &[]), json!({"debug": true})),
        model("m", json!([asks("calculator", json!({"expression": "1/0"})), says("It cannot be done.")])),
        calculator(),
    ]);
    let world = World::new(&flow);
    let message = only_message(&world.fire().await);
    let call = &message["envelope"]["tools"]["history"][0];
    assert_eq!((&call["success"], &call["output"]), (&json!(false), &Value::Null));
    let observed = json!({"success": false, "error": call["error"]}).to_string();
    let prompt = message["envelope"]["model"]["lastPrompt"].as_str().unwrap();
    assert!(prompt.ends_with(&format!("\n\nuser: {observed}")), "{prompt}");
    assert_eq!(message["payload"], "It cannot be done.");
}

#[tokio::test(start_paused = true)]
async fn a_late_tool_that_may_be_called_again_has_failed() {
    // What the node declares wins over what the tool says of itself.
    let rows = [
        json!({"ownEffect": "read"}),
        json!({"ownEffect": "idempotent"}),
        json!({"ownEffect": "at_most_once", "effect": "read"}),
        json!({"ownEffect": "at_most_once", "effect": "idempotent"}),
    ];
    for row in rows {
        let world = World::new(&flow(with(row.clone(), json!({"hangs": "tool", "timeout": 1500}))));
        let message = only_message(&world.fire().await);
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
        assert_eq!(world.watch.done(), ["built t", "tool t {\"x\":1}", "dropped tool t"], "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_call_that_may_be_made_again_has_failed() {
    for row in [json!({"ownEffect": "idempotent"}), json!({"ownEffect": "at_most_once", "effect": "read"})] {
        let call = history(with(row, json!({"unknown": "the connection broke"}))).await;
        assert_eq!((&call["success"], &call["error"]), (&json!(false), &json!("the connection broke")));
        assert_eq!(call["outcome"], Value::Null);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_not_be_made_twice_waits_for_a_person() {
    let rows = [
        json!({"ownEffect": "at_most_once", "hangs": "tool", "timeout": 1500}),
        json!({"ownEffect": "read", "effect": "at_most_once", "hangs": "tool", "timeout": 1500}),
        json!({"ownEffect": "at_most_once", "unknown": "the connection broke"}),
    ];
    for row in rows {
        let world = World::new(&flow(row.clone()));
        assert_eq!(ends(&world.fire().await), ["run-1 a waiting run-1:1 t 1"], "{row}");
        assert_eq!(world.watch.shown(), [] as [&str; 0], "nothing leaves port 3: {row}");
        let last = world.watch.run_events().pop().unwrap();
        assert_eq!(serde_json::to_value(&last.event).unwrap()["type"], "waiting_for_outcome");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_may_ask_to_fail_instead_of_waiting() {
    let world = World::new(&flow(json!({
        "ownEffect": "at_most_once", "hangs": "tool", "timeout": 1500, "onUnknown": "fail",
    })));
    let reports = world.fire().await;
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
async fn a_tool_that_answers_in_time_is_never_in_doubt() {
    let call = history(json!({"ownEffect": "at_most_once", "result": {"sent": true}})).await;
    assert_eq!((&call["success"], &call["output"]), (&json!(true), &json!({"sent": true})));
    let call = history(json!({"ownEffect": "at_most_once", "error": "no such address"})).await;
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
        let world = World::new(&flow(json!({"effect": class, "panics": "tool"})));
        assert_eq!(ends(&world.fire().await), [end]);
        assert_eq!(ends(&world.fire().await), [end.replace("run-1", "run-2")], "the engine goes on");
    }
    let flow = |model: Value, memory: Value| {
        json!([
            inject(&["a"]),
            with(agent("a", "m", &["d"]), json!({"memory": "mem"})),
            model_double("m", json!([says("hi")]), model),
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
        assert_eq!(ends(&World::new(&flow(model, memory)).fire().await), [end]);
    }
}
