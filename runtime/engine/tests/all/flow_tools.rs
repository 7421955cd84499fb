//! Flow tools: calls leave by port 1 as messages, and replies come back to the agent.

use crate::kit::{
    EngineTest, Setup, agent_with_tool, catch, debug, ends, final_answer, inject, model, node, only_message,
    tool_call, with,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

const ENDED: &str = "the flow that is the tool ended without an answer";

/// An agent whose tool `t` is an ordinary node with a wire back; the node behaves as `props` say.
fn flow(props: Value) -> Value {
    json!([
        inject(&["a"]),
        agent_with_tool("a", "m", &["d"]),
        model("m", json!([tool_call("t", json!({"x": 1})), final_answer("done")])),
        with(with(node("t", "node.double", json!([["a"]])), json!({"effect": "read"})), props),
        debug("d", "payload"),
    ])
}

async fn first_call(props: Value) -> (Value, Vec<String>) {
    let test = EngineTest::new(&flow(props));
    let message = only_message(&test.fire().await);
    assert_eq!(message["payload"], "done");
    (message["envelope"]["tools"]["history"][0].clone(), test.recorder.flow_lines())
}

#[tokio::test(start_paused = true)]
async fn sends_a_call_as_a_message_and_takes_the_reply_as_result() {
    let test = EngineTest::new(&flow(json!({"payload": {"output": 4}})));
    test.recorder.watch_flow_steps();
    let message = only_message(&test.fire().await);
    let call = &message["envelope"]["tools"]["history"][0];
    assert_eq!((&call["output"], &call["success"]), (&json!({"output": 4}), &json!(true)));
    let sent: Value = serde_json::from_str(test.recorder.calls()[0].strip_prefix("node ").unwrap()).unwrap();
    let key = sent["_agentCore"]["idempotencyKey"].clone();
    assert!(key.as_str().unwrap().len() > 20);
    let expected = json!({
        "_msgid": "msg-2",
        "payload": {"x": 1},
        "_agentCore": {
            "type": "tool_request", "traceId": "run-1", "iteration": 1, "tool": "t", "callId": "run-1:1",
            "idempotencyKey": key,
        },
    });
    assert_eq!(sent, expected);
    let steps = test.recorder.flow_steps();
    let from = steps.iter().position(|line| line.contains("a.1 ->")).unwrap();
    let expected = [
        "1 a.1 -> {\"x\":1}",
        "1 t <- {\"x\":1}",
        "1 t.0 -> {\"output\":4}",
        "1 a <- {\"output\":4}",
        "1 a calls m #2 (4)",
    ];
    assert_eq!(steps[from..from + 5], expected, "{steps:#?}");
}

#[tokio::test(start_paused = true)]
async fn finds_a_reply_by_call_id_or_message_id() {
    for drops in [json!([]), json!(["_agentCore"]), json!(["_msgid"])] {
        let (call, lines) = first_call(json!({"payload": 4, "drops": drops})).await;
        assert_eq!((&call["output"], lines), (&json!(4), vec!["d: \"done\"".to_owned()]), "{drops}");
    }
}

#[tokio::test(start_paused = true)]
async fn drops_a_reply_that_names_no_call() {
    let (call, lines) = first_call(json!({"drops": ["_agentCore", "_msgid"], "timeout": 1000})).await;
    assert_eq!(call["error"], ENDED);
    let dropped = "a dropped a reply: it comes from a tool's flow and does not say which call it answers";
    assert_eq!(lines, [dropped, "d: \"done\""]);
}

#[tokio::test(start_paused = true)]
async fn drops_a_second_reply() {
    let (call, lines) = first_call(json!({"payload": 4, "times": 2})).await;
    assert_eq!(call["output"], 4);
    assert_eq!(lines, ["a dropped a reply: the call it answers is over", "d: \"done\""]);
}

#[tokio::test(start_paused = true)]
async fn a_flow_tool_without_a_reply_fails_and_a_catch_node_can_reply_with_an_error() {
    let (call, _) = first_call(json!({"times": 0, "timeout": 1500})).await;
    assert_eq!((&call["error"], &call["durationMs"]), (&json!(ENDED), &json!(0)));
    let mut flow = flow(json!({"fails": "no such room"}));
    flow.as_array_mut().unwrap().push(catch("c", json!(["t"]), &["a"]));
    let test = EngineTest::new(&flow);
    let message = only_message(&test.fire().await);
    let call = &message["envelope"]["tools"]["history"][0];
    assert_eq!((&call["success"], &call["error"]), (&json!(false), &json!("no such room")));
}

#[tokio::test(start_paused = true)]
async fn an_at_most_once_call_without_a_reply_waits_for_a_person() {
    let flow = flow(json!({"times": 0, "effect": "at_most_once", "timeout": 1500}));
    let test = EngineTest::new(&flow);
    assert_eq!(ends(&test.fire().await), ["run-1 a waiting run-1:1 t 1"]);
}

#[tokio::test(start_paused = true)]
async fn routes_calls_and_replies_of_two_tools_and_two_agents() {
    let tools = json!({"allowedTools": ["t", "u"]});
    let flow = json!([
        inject(&["a", "b"]),
        with(
            with(agent_with_tool("a", "m", &["d"]), tools.clone()),
            json!({"wires": [["m"], ["t", "u"], [], ["d"]]})
        ),
        with(
            with(agent_with_tool("b", "n", &["e"]), tools),
            json!({"wires": [["n"], ["t", "u"], [], ["e"]]})
        ),
        model("m", json!([tool_call("t", json!({})), final_answer("a done")])),
        model("n", json!([tool_call("u", json!({})), final_answer("b done")])),
        with(node("t", "node.double", json!([["a", "b"]])), json!({"payload": "t", "effect": "read"})),
        with(node("u", "node.double", json!([["a", "b"]])), json!({"payload": "u", "effect": "read"})),
        debug("d", "envelope.tools.history.0.output"),
        debug("e", "envelope.tools.history.0.output"),
    ]);
    let test = EngineTest::new(&flow);
    assert_eq!(ends(&test.fire().await), ["run-1 a completed", "run-2 b completed"]);
    let lines = test.recorder.flow_lines();
    // The wires of `t` bring its reply to `b` too, which made no call.
    assert_eq!(lines.iter().filter(|line| line.contains("dropped a reply")).count(), 2, "{lines:#?}");
    assert!(lines.contains(&"d: \"t\"".to_owned()) && lines.contains(&"e: \"u\"".to_owned()), "{lines:#?}");
    assert_eq!(test.recorder.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_flow_tool_that_needs_node_red_refuses_its_agent() {
    let mut flow = flow(json!({"wires": [["f"]]}));
    flow.as_array_mut().unwrap().push(node("f", "function", json!([["a"]])));
    let test = EngineTest::new(&flow);
    let reports = test.fire().await;
    assert_eq!(ends(&reports), ["run-1 a refused NEEDS_NODE_RED"]);
    let message = only_message(&reports);
    assert_eq!(message["payload"]["message"], "`f` is of type `function`, which this build cannot run");
}

/// If the tool's own node fails, nothing has happened. If a node behind it fails, the outcome is unknown.
#[tokio::test(start_paused = true)]
async fn an_uncaught_error_ends_the_call_at_once() {
    let dangerous = json!({"effect": "at_most_once", "timeout": 60_000});
    let test = EngineTest::new(&flow(with(dangerous.clone(), json!({"fails": "no such room"}))));
    let message = only_message(&test.fire().await);
    let call = &message["envelope"]["tools"]["history"][0];
    assert_eq!((&call["success"], &call["error"]), (&json!(false), &json!("no such room")));
    assert_eq!(call["durationMs"], 0, "{call}");
    let mut later = flow(with(dangerous, json!({"wires": [["u"]]})));
    later
        .as_array_mut()
        .unwrap()
        .push(with(node("u", "node.double", json!([["a"]])), json!({"fails": "late"})));
    let test = EngineTest::new(&later);
    assert_eq!(ends(&test.fire().await), ["run-1 a waiting run-1:1 t 1"]);
    // For a repeatable call this is an ordinary failure.
    later[3]["effect"] = json!("read");
    let message = only_message(&EngineTest::new(&later).fire().await);
    assert_eq!(message["envelope"]["tools"]["history"][0]["error"], "late");
}

/// Only the wire back decides the outcome of the call.
#[tokio::test(start_paused = true)]
async fn a_side_branch_that_fails_does_not_fail_the_call() {
    for order in [json!([["u", "a"]]), json!([["a", "u"]])] {
        let mut flow = flow(json!({"payload": 4, "effect": "at_most_once", "wires": order}));
        flow.as_array_mut()
            .unwrap()
            .push(with(node("u", "node.double", json!([[]])), json!({"fails": "side"})));
        let test = EngineTest::new(&flow);
        let message = only_message(&test.fire().await);
        let call = &message["envelope"]["tools"]["history"][0];
        assert_eq!((&call["success"], &call["output"]), (&json!(true), &json!(4)), "{order}");
        assert!(!test.recorder.flow_lines().iter().any(|line| line.contains("dropped")), "{order}");
    }
}

#[tokio::test(start_paused = true)]
async fn does_not_make_a_call_beyond_the_limit() {
    let mut setup = Setup::default();
    // The inject node and its message to the agent use up the limit.
    setup.limits.max_deliveries = 2;
    let test = setup.start_engine(&flow(json!({"effect": "at_most_once"})));
    let message = only_message(&test.fire().await);
    let call = &message["envelope"]["tools"]["history"][0];
    assert_eq!(call["error"], "the call was not made: too many messages were sent by this start");
    assert_eq!(test.recorder.calls(), [] as [&str; 0]);
}

/// A wire from a tool of `a` to agent `b` is refused, and so is `b`: the tool's message is no input of `b`.
/// Other messages to `b` get the refusal.
#[tokio::test(start_paused = true)]
async fn a_message_on_a_refused_wire_begins_no_run() {
    let flow = |targets: &[&str]| {
        json!([
            inject(targets),
            agent_with_tool("a", "m", &["d"]),
            with(
                agent_with_tool("b", "n", &["e"]),
                json!({"wires": [["n"], [], [], ["e"]], "allowedTools": []})
            ),
            model("m", json!([tool_call("t", json!({})), final_answer("done")])),
            model("n", json!([final_answer("never")])),
            with(node("t", "node.double", json!([["a", "b"]])), json!({"payload": "t", "effect": "read"})),
            debug("d", "payload"),
            debug("e", "payload.code"),
        ])
    };
    let test = EngineTest::new(&flow(&["a"]));
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    let lines = test.recorder.flow_lines();
    assert!(lines.iter().any(|line| line.contains("dropped a reply")), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.starts_with("e:")), "{lines:#?}");

    let test = EngineTest::new(&flow(&["a", "b"]));
    assert_eq!(ends(&test.fire().await), ["run-1 a completed", "run-2 b refused EDGE_REJECTED"]);
    let lines = test.recorder.flow_lines();
    assert_eq!(lines.iter().filter(|line| line.starts_with("e:")).count(), 1, "{lines:#?}");
}
