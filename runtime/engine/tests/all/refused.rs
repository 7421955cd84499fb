//! An agent that may not run answers all the same; its neighbours run.

use crate::kit::{
    World, agent, calculator, catch, check, debug, ends, inject, model, node, only_message, says, with,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// A broken agent `a` beside a good one `b`.
fn flow(broken: Value) -> Value {
    json!([
        inject(&["a", "b"]),
        broken,
        agent("b", "m", &["e"]),
        model("m", json!([says("well")])),
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
        (with(node("a", "ai-agent", json!([["d"]])), json!({"model": "m"})), "NEEDS_NODE_RED"),
    ];
    for (broken, code) in rows {
        let shown = [format!("d: \"{code}\""), "f: \"a\"".to_owned(), "e: \"well\"".to_owned()];
        let refused = [format!("run-1 a refused {code}"), "run-2 b completed".to_owned()];
        check(flow(broken), &refused.each_ref().map(String::as_str), &shown.each_ref().map(String::as_str))
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_answer_is_whole() {
    let mut flow = flow(with(agent("a", "m", &["d"]), json!({"maxIterations": 50})));
    flow[0]["wires"] = json!([["a"]]);
    let world = World::new(&flow);
    let reports = world.fire().await;
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
    assert_eq!(world.watch.run_events(), [], "no run began");
}
