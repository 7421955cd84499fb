//! Whole flows with the real adapters.

use crate::kit::{
    EngineTest, Setup, actions, agent, calculator, check, debug, ends, final_answer, inject, model, node,
    not_json, only_message, tool_call, with,
};
use pretty_assertions::assert_eq;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::NodeSummary;
use serde_json::{Value, json};

fn sum() -> Value {
    tool_call("calculator", json!({"expression": "2+2"}))
}

/// inject → agent → debug; `more` are properties of the agent.
fn flow(replies: Value, more: Value) -> Value {
    json!([
        inject(&["a"]),
        with(agent("a", "m", &["d"]), more),
        with(model("m", replies), json!({"delayMs": 250})),
        calculator(),
        debug("d", "payload"),
        debug("e", "agentResult.action"),
    ])
}

#[tokio::test(start_paused = true)]
async fn inject_to_agent_to_debug() {
    let test = EngineTest::new(&flow(json!([sum(), final_answer("It is 4.")]), json!({})));
    let reports = test.fire().await;
    assert_eq!(ends(&reports), ["run-1 a completed"]);
    let event = |iteration: u32, action: &str, at: &str| json!({"iteration": iteration, "action": action, "at": format!("2025-12-17T19:33:20.{at}Z")});
    let events = [
        with(
            event(1, "model_response", "250"),
            json!({"tool": "calculator", "durationMs": 250, "confidence": 0.5}),
        ),
        with(event(1, "tool_request", "250"), json!({"tool": "calculator"})),
        with(event(1, "tool_response", "250"), json!({"tool": "calculator", "durationMs": 0})),
        with(event(2, "model_response", "500"), json!({"durationMs": 250})),
        event(2, "completed", "500"),
    ];
    let history = json!({
        "iteration": 1,
        "tool": "calculator",
        "input": {"expression": "2+2"},
        "output": {"result": 4, "expression": "2+2"},
        "success": true,
        "durationMs": 0,
        "callId": "run-1:1",
    });
    let expected = json!({
        "_msgid": "msg-1",
        "topic": "sums",
        "payload": "It is 4.",
        "envelope": {
            "input": "go",
            "state": {"iteration": 2, "lastAction": "final", "lastTool": "calculator", "completed": true},
            "model": {"lastResponse": final_answer("It is 4.")},
            "tools": {"available": ["calculator"], "history": [history]},
            "observability": {"traceId": "run-1", "startedAt": "2025-12-17T19:33:20.000Z", "events": events},
        },
        "agentResult": {
            "completed": true,
            "iterations": 2,
            "traceId": "run-1",
            "message": "It is 4.",
            "finalAction": "final",
            "stopReason": "final_answer",
        },
    });
    assert_eq!(only_message(&reports), expected);
    let node = NodeSummary { id: "d".into(), type_name: "debug".to_owned(), name: "d".to_owned() };
    let lines = FlowEvent::Debug { node, property: "msg.payload".to_owned(), value: json!("It is 4.") };
    assert_eq!(test.recorder.flow_events(), [lines]);
}

#[tokio::test(start_paused = true)]
async fn port_4_sends_before_port_3_and_only_when_wired() {
    let wired = json!({"wires": [["m"], ["calc"], [], ["d"], ["e"]]});
    let talk = json!([sum(), sum(), final_answer("4")]);
    let lines = ["e: \"tool\"", "e: \"tool\"", "e: \"final\"", "d: \"4\""];
    check(flow(talk.clone(), wired.clone()), &["run-1 a completed"], &lines).await;
    check(flow(talk, json!({})), &["run-1 a completed"], &["d: \"4\""]).await;
    // An invalid answer does not leave port 4.
    let test = EngineTest::new(&flow(json!([sum(), not_json()]), wired));
    test.fire().await;
    assert_eq!(
        test.recorder.flow_lines(),
        [
            "e: \"tool\"",
            "a uncaught INVALID_JSON #1",
            "d: {\"code\":\"INVALID_JSON\",\"message\":\"The answer is not exactly one JSON object; reading stopped at line 1, column 1.\",\"rule\":\"json\",\"iteration\":2}",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn messages_of_port_4_keep_the_input_properties() {
    let wires = json!({"wires": [["m"], ["calc"], [], [], ["d"]]});
    let mut flow = flow(json!([final_answer("4")]), wires);
    flow[4]["complete"] = json!("true");
    let test = EngineTest::new(&flow);
    let result = only_message(&test.fire().await);
    let [FlowEvent::Debug { value, .. }] = &test.recorder.flow_events()[..] else { panic!("one message") };
    for key in ["_msgid", "topic"] {
        assert_eq!(value[key], result[key]);
    }
    assert_eq!(value["payload"], final_answer("4"));
    assert_eq!(actions(value), ["model_response"]);
    assert_eq!(
        value["agentResult"],
        json!({"iteration": 1, "traceId": "run-1", "action": "final", "tool": null, "confidence": null, "message": "4"})
    );
}

#[tokio::test(start_paused = true)]
async fn another_payload_replaces_only_the_payload() {
    let flow = flow(json!([final_answer("hi")]), json!({}));
    let sent = only_message(&EngineTest::new(&flow).fire_with(json!({"n": 1})).await);
    assert_eq!((&sent["topic"], &sent["envelope"]["input"]), (&json!("sums"), &json!({"n": 1})));
    let asked = only_message(&EngineTest::new(&flow).send(json!([7])).await);
    assert_eq!((&asked["topic"], &asked["envelope"]["input"]), (&Value::Null, &json!([7])));
}

#[tokio::test(start_paused = true)]
async fn does_not_evaluate_a_replaced_payload() {
    let mut flow = flow(json!([final_answer("hi")]), json!({}));
    for (props, kind) in
        [(flow[0]["props"].clone(), "jsonata"), (json!([{"p": "topic", "v": "sums"}]), "str")]
    {
        flow[0]["props"] = props;
        flow[0]["payloadType"] = json!(kind);
        let sent = only_message(&EngineTest::new(&flow).fire_with(json!("x")).await);
        assert_eq!((&sent["topic"], &sent["envelope"]["input"]), (&json!("sums"), &json!("x")), "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn reports_an_inject_that_cannot_make_its_message() {
    let mut flow = flow(json!([final_answer("hi")]), json!({}));
    flow[0]["props"] = json!([{"p": "topic", "v": "$now()", "vt": "jsonata"}, {"p": "payload"}]);
    let lines = ["i uncaught NEEDS_NODE_RED #1"];
    let none: [&str; 0] = [];
    let test = check(flow, &none, &lines).await;
    assert_eq!(ends(&test.fire_with(json!("x")).await), none);
    assert_eq!(test.recorder.flow_lines(), [lines, lines].concat());
}

#[tokio::test(start_paused = true)]
async fn nodes_read_the_environment_of_their_tab() {
    let flow = json!([
        {"id": "t", "type": "tab", "label": "Tab", "env": [{"name": "ROUND", "type": "num", "value": "3"}]},
        with(inject(&["d", "e"]), json!({"props": [
            {"p": "payload", "v": "ROUND", "vt": "env"},
            {"p": "topic", "v": "HOME_TOWN", "vt": "env"},
        ]})),
        debug("d", "payload"),
        debug("e", "topic"),
    ]);
    check(flow, &[], &["d: 3", "e: \"Graz\""]).await;
}

#[tokio::test(start_paused = true)]
async fn links_junctions_and_subflows_carry_messages() {
    let inner = |node: Value| with(node, json!({"z": "sf"}));
    let flow = json!([
        inject(&["out"]),
        with(node("out", "link out", json!([])), json!({"links": ["in"]})),
        with(node("in", "link in", json!([["j"]])), json!({"links": []})),
        node("j", "junction", json!([["box"]])),
        node("box", "subflow:sf", json!([["d"]])),
        {"id": "sf", "type": "subflow", "name": "sf",
            "in": [{"wires": [{"id": "a"}]}], "out": [{"wires": [{"id": "a", "port": 3}]}]},
        inner(agent("a", "m", &[])),
        inner(model("m", json!([final_answer("from inside")]))),
        inner(calculator()),
        debug("d", "payload"),
    ]);
    check(flow, &["run-1 box-a completed"], &["d: \"from inside\""]).await;
}

#[tokio::test(start_paused = true)]
async fn run_events_are_numbered_and_change_nothing() {
    let flow = flow(json!([sum(), final_answer("4")]), json!({}));
    let watched = EngineTest::new(&flow);
    let seen = watched.fire().await;
    let alone = Setup { watches_runs: false, ..Setup::default() }.start_engine(&flow);
    let unseen = alone.fire().await;
    assert_eq!(only_message(&seen), only_message(&unseen));
    assert_eq!(watched.store.journal(&seen[0].run_id), alone.store.journal(&unseen[0].run_id));
    assert_eq!(alone.recorder.run_events(), []);
    let events = serde_json::to_value(watched.recorder.run_events()).unwrap();
    let events: Vec<(u64, &str)> = events
        .as_array()
        .unwrap()
        .iter()
        .map(|event| (event["seq"].as_u64().unwrap(), event["event"]["type"].as_str().unwrap()))
        .collect();
    assert_eq!(
        events,
        [
            (1, "run_started"),
            (2, "model_called"),
            (3, "model_answered"),
            (4, "tool_called"),
            (5, "tool_returned"),
            (6, "model_called"),
            (7, "model_answered"),
            (8, "run_finished"),
        ]
    );
}
