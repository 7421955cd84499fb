//! A refused agent answers every message with an error, and other agents run.

use crate::kit::{
    EngineTest, agent, calculator, catch, check, debug, ends, final_answer, inject, model, node,
    only_message, with,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// A refused agent `a` and a good agent `b`.
fn flow(refused_agent: Value) -> Value {
    json!([
        inject(&["a", "b"]),
        refused_agent,
        agent("b", "m", &["e"]),
        model("m", json!([final_answer("well")])),
        node("far", "model.other", json!([])),
        calculator(),
        debug("d", "payload.code"),
        debug("e", "payload"),
        catch("c", Value::Null, &["f"]),
        debug("f", "error.source.id"),
    ])
}

#[tokio::test(start_paused = true)]
async fn each_reason_has_its_code() {
    let memory_port = json!([["m"], ["calc"], ["e"], ["d"]]);
    let rows = [
        (with(agent("a", "m", &["d"]), json!({"wires": memory_port})), "EDGE_REJECTED"),
        (agent("a", "gone", &["d"]), "EDGE_REJECTED"),
        (with(agent("a", "m", &["d"]), json!({"maxIterations": 50})), "CONFIG_INVALID"),
        (agent("a", "far", &["d"]), "NEEDS_NODE_RED"),
        // The result of an ai-agent leaves port 0.
        (with(node("a", "ai-agent", json!([["d"]])), json!({"model": "m", "timeout": -1})), "CONFIG_INVALID"),
    ];
    for (refused_agent, code) in rows {
        let lines = [format!("d: \"{code}\""), "f: \"a\"".to_owned(), "e: \"well\"".to_owned()];
        let refused = [format!("run-1 a refused {code}"), "run-2 b completed".to_owned()];
        check(
            flow(refused_agent),
            &refused.each_ref().map(String::as_str),
            &lines.each_ref().map(String::as_str),
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_sends_a_complete_message() {
    let mut flow = flow(with(agent("a", "m", &["d"]), json!({"maxIterations": 50})));
    flow[0]["wires"] = json!([["a"]]);
    let test = EngineTest::new(&flow);
    let reports = test.fire().await;
    assert_eq!(ends(&reports), ["run-1 a refused CONFIG_INVALID"]);
    let message = only_message(&reports);
    let text = message["payload"]["message"].as_str().unwrap();
    assert!(text.starts_with("the agent is refused: CONFIG_INVALID: `maxIterations`"), "{text}");
    let error = json!({"code": "CONFIG_INVALID", "message": text, "iteration": 0});
    let at = "2025-12-17T19:33:20.000Z";
    let failure = json!({"code": "CONFIG_INVALID", "message": text});
    let event = json!({"iteration": 0, "action": "error", "error": failure, "at": at});
    let source = json!({"id": "a", "type": "agent-core", "name": "a", "count": 1});
    let expected = json!({
        "_msgid": "msg-1",
        "topic": "sums",
        "payload": error,
        "envelope": {
            "input": "go",
            "state": {"iteration": 0, "completed": false},
            "tools": {"available": ["calculator"], "history": []},
            "observability": {"traceId": "run-1", "startedAt": at, "events": [event]},
        },
        "agentResult": {
            "completed": false,
            "iterations": 0,
            "traceId": "run-1",
            "message": null,
            "finalAction": null,
            "stopReason": "error",
            "error": error,
        },
        "error": with(error, json!({"source": source})),
    });
    assert_eq!(message, expected);
    assert_eq!(test.recorder.run_events(), [], "no run began");
}
