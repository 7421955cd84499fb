//! Tools that are flows of ordinary nodes: calls go out by port 1, replies come back in.

use crate::kit::{
    Setup, World, agent_with_tool, asks, catch, debug, ends, inject, model, node, only_message, says, with,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

const ENDED: &str = "the flow that is the tool ended without an answer";

/// An agent whose tool `t` is an ordinary node that behaves as `props` say, and is wired back.
fn flow(props: Value) -> Value {
    json!([
        inject(&["a"]),
        agent_with_tool("a", "m", &["d"]),
        model("m", json!([asks("t", json!({"x": 1})), says("done")])),
        with(with(node("t", "node.double", json!([["a"]])), json!({"effect": "read"})), props),
        debug("d", "payload"),
    ])
}

async fn history(props: Value) -> (Value, Vec<String>) {
    let world = World::new(&flow(props));
    let message = only_message(&world.fire().await);
    assert_eq!(message["payload"], "done");
    (message["envelope"]["tools"]["history"][0].clone(), world.watch.shown())
}

#[tokio::test(start_paused = true)]
async fn a_call_leaves_as_a_message_and_what_comes_back_is_its_result() {
    let world = World::new(&flow(json!({"payload": {"output": 4}})));
    world.watch.watch_moves();
    let message = only_message(&world.fire().await);
    let call = &message["envelope"]["tools"]["history"][0];
    assert_eq!((&call["output"], &call["success"]), (&json!({"output": 4}), &json!(true)));
    let sent: Value = serde_json::from_str(world.watch.done()[0].strip_prefix("node ").unwrap()).unwrap();
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
    let moves = world.watch.moves();
    let from = moves.iter().position(|line| line.contains("a.1 ->")).unwrap();
    let expected = [
        "1 a.1 -> {\"x\":1}",
        "1 t <- {\"x\":1}",
        "1 t.0 -> {\"output\":4}",
        "1 a <- {\"output\":4}",
        "1 a asks m #2 (4)",
    ];
    assert_eq!(moves[from..from + 5], expected, "{moves:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_reply_is_known_by_its_call_or_by_its_message() {
    for drops in [json!([]), json!(["_agentCore"]), json!(["_msgid"])] {
        let (call, shown) = history(json!({"payload": 4, "drops": drops})).await;
        assert_eq!((&call["output"], shown), (&json!(4), vec!["d: \"done\"".to_owned()]), "{drops}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_says_nothing_of_its_call_is_dropped_and_never_a_new_run() {
    let (call, shown) = history(json!({"drops": ["_agentCore", "_msgid"], "timeout": 1000})).await;
    assert_eq!(call["error"], ENDED);
    let dropped = "a dropped a reply: it comes from a tool's flow and does not say which call it answers";
    assert_eq!(shown, [dropped, "d: \"done\""]);
}

#[tokio::test(start_paused = true)]
async fn a_second_reply_is_dropped() {
    let (call, shown) = history(json!({"payload": 4, "times": 2})).await;
    assert_eq!(call["output"], 4);
    assert_eq!(shown, ["a dropped a reply: the call it answers is over", "d: \"done\""]);
}

#[tokio::test(start_paused = true)]
async fn a_flow_that_ends_without_an_answer_has_failed_at_once_and_one_that_fails_says_so_through_a_catch_node()
 {
    let (call, _) = history(json!({"times": 0, "timeout": 1500})).await;
    assert_eq!((&call["error"], &call["durationMs"]), (&json!(ENDED), &json!(0)));
    let mut flow = flow(json!({"fails": "no such room"}));
    flow.as_array_mut().unwrap().push(catch("c", json!(["t"]), &["a"]));
    let world = World::new(&flow);
    let message = only_message(&world.fire().await);
    let call = &message["envelope"]["tools"]["history"][0];
    assert_eq!((&call["success"], &call["error"]), (&json!(false), &json!("no such room")));
}

#[tokio::test(start_paused = true)]
async fn a_dangerous_call_without_an_answer_waits_for_a_person() {
    let flow = flow(json!({"times": 0, "effect": "at_most_once", "timeout": 1500}));
    let world = World::new(&flow);
    assert_eq!(ends(&world.fire().await), ["run-1 a waiting run-1:1 t 1"]);
}

#[tokio::test(start_paused = true)]
async fn two_tools_get_their_own_calls_and_two_agents_their_own_replies() {
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
        model("m", json!([asks("t", json!({})), says("a done")])),
        model("n", json!([asks("u", json!({})), says("b done")])),
        with(node("t", "node.double", json!([["a", "b"]])), json!({"payload": "t", "effect": "read"})),
        with(node("u", "node.double", json!([["a", "b"]])), json!({"payload": "u", "effect": "read"})),
        debug("d", "envelope.tools.history.0.output"),
        debug("e", "envelope.tools.history.0.output"),
    ]);
    let world = World::new(&flow);
    assert_eq!(ends(&world.fire().await), ["run-1 a completed", "run-2 b completed"]);
    let shown = world.watch.shown();
    // What t answers to a goes by its wires to b as well, which did not ask.
    assert_eq!(shown.iter().filter(|line| line.contains("dropped a reply")).count(), 2, "{shown:#?}");
    assert!(shown.contains(&"d: \"t\"".to_owned()) && shown.contains(&"e: \"u\"".to_owned()), "{shown:#?}");
    assert_eq!(world.watch.done().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_flow_with_a_node_for_node_red_in_it_refuses_its_agent() {
    let mut flow = flow(json!({"wires": [["f"]]}));
    flow.as_array_mut().unwrap().push(node("f", "function", json!([["a"]])));
    let world = World::new(&flow);
    let reports = world.fire().await;
    assert_eq!(ends(&reports), ["run-1 a refused NEEDS_NODE_RED"]);
    let message = only_message(&reports);
    assert_eq!(message["payload"]["message"], "`f` is of type `function`, which this build cannot run");
}

/// Of a tool whose own node fails nothing has been done; of one that fails behind it nobody knows.
#[tokio::test(start_paused = true)]
async fn a_flow_that_fails_where_nobody_catches_it_is_over_at_once() {
    let dangerous = json!({"effect": "at_most_once", "timeout": 60_000});
    let world = World::new(&flow(with(dangerous.clone(), json!({"fails": "no such room"}))));
    let message = only_message(&world.fire().await);
    let call = &message["envelope"]["tools"]["history"][0];
    assert_eq!((&call["success"], &call["error"]), (&json!(false), &json!("no such room")));
    assert_eq!(call["durationMs"], 0, "{call}");
    let mut later = flow(with(dangerous, json!({"wires": [["u"]]})));
    later
        .as_array_mut()
        .unwrap()
        .push(with(node("u", "node.double", json!([["a"]])), json!({"fails": "late"})));
    let world = World::new(&later);
    assert_eq!(ends(&world.fire().await), ["run-1 a waiting run-1:1 t 1"]);
    // The same of one that may be called again is a failure like any other.
    later[3]["effect"] = json!("read");
    let message = only_message(&World::new(&later).fire().await);
    assert_eq!(message["envelope"]["tools"]["history"][0]["error"], "late");
}

/// What hangs beside the way back does not decide.
#[tokio::test(start_paused = true)]
async fn a_side_branch_that_fails_does_not_fail_the_call() {
    for order in [json!([["u", "a"]]), json!([["a", "u"]])] {
        let mut flow = flow(json!({"payload": 4, "effect": "at_most_once", "wires": order}));
        flow.as_array_mut()
            .unwrap()
            .push(with(node("u", "node.double", json!([[]])), json!({"fails": "side"})));
        let world = World::new(&flow);
        let message = only_message(&world.fire().await);
        let call = &message["envelope"]["tools"]["history"][0];
        assert_eq!((&call["success"], &call["output"]), (&json!(true), &json!(4)), "{order}");
        assert!(!world.watch.shown().iter().any(|line| line.contains("dropped")), "{order}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_for_which_there_is_no_room_was_not_made() {
    let mut setup = Setup::default();
    // The inject, and its message to the agent.
    setup.limits.max_deliveries = 2;
    let world = setup.world(&flow(json!({"effect": "at_most_once"})));
    let message = only_message(&world.fire().await);
    let call = &message["envelope"]["tools"]["history"][0];
    assert_eq!(call["error"], "the call was not made: too many messages were sent by this start");
    assert_eq!(world.watch.done(), [] as [&str; 0]);
}

/// What a tool of `a` sends by a wire to `b` is no question to `b`: the wire is refused, and so is `b`. What others ask
/// of `b` is answered with that.
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
            model("m", json!([asks("t", json!({})), says("done")])),
            model("n", json!([says("never")])),
            with(node("t", "node.double", json!([["a", "b"]])), json!({"payload": "t", "effect": "read"})),
            debug("d", "payload"),
            debug("e", "payload.code"),
        ])
    };
    let world = World::new(&flow(&["a"]));
    assert_eq!(ends(&world.fire().await), ["run-1 a completed"]);
    let shown = world.watch.shown();
    assert!(shown.iter().any(|line| line.contains("dropped a reply")), "{shown:#?}");
    assert!(!shown.iter().any(|line| line.starts_with("e:")), "{shown:#?}");

    let world = World::new(&flow(&["a", "b"]));
    assert_eq!(ends(&world.fire().await), ["run-1 a completed", "run-2 b refused EDGE_REJECTED"]);
    let shown = world.watch.shown();
    assert_eq!(shown.iter().filter(|line| line.starts_with("e:")).count(), 1, "{shown:#?}");
}
