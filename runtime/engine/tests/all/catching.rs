//! Which Catch nodes get an error, and what they get.

use crate::kit::{
    EngineTest, agent, calculator, catch, check, debug, ends, final_answer, inject, model, node, not_json,
    only_message, with,
};
use pretty_assertions::assert_eq;
use redflow_contract::event::FlowEvent;
use serde_json::{Value, json};

const FAILED: [&str; 1] = ["run-1 a failed INVALID_JSON"];

/// inject → an agent that fails, and `more`.
fn flow(more: &[Value]) -> Value {
    let mut nodes = vec![inject(&["a"]), agent("a", "m", &[]), model("m", json!([not_json()])), calculator()];
    nodes.extend_from_slice(more);
    Value::Array(nodes)
}

/// A Catch node with a debug node that shows the source of the error.
fn catch_and_debug(id: &str, props: Value) -> [Value; 2] {
    let debug_id = format!("{id}!");
    [
        with(catch(id, Value::Null, &[&debug_id]), props.clone()),
        with(debug(&debug_id, "error.source.id"), tab_of(&props)),
    ]
}

/// The tab or subflow of a node; `t` if the properties name none.
fn tab_of(props: &Value) -> Value {
    json!({"z": props.get("z").unwrap_or(&json!("t"))})
}

#[tokio::test(start_paused = true)]
async fn a_catch_node_gets_the_message_of_port_3() {
    let mut flow = flow(&[debug("d", "true"), catch("c", Value::Null, &["e"]), debug("e", "true")]);
    flow[1] = with(agent("a", "m", &["d"]), json!({"name": "Counting"}));
    let test = EngineTest::new(&flow);
    let message = only_message(&test.fire().await);
    let source = json!({"id": "a", "type": "agent-core", "name": "Counting", "count": 1});
    let text = "The answer is not exactly one JSON object; reading stopped at line 1, column 1.";
    assert_eq!(
        message["error"],
        json!({"code": "INVALID_JSON", "message": text, "rule": "json", "iteration": 1, "source": source})
    );
    let values: Vec<Value> = test
        .recorder
        .flow_events()
        .into_iter()
        .filter_map(|event| match event {
            FlowEvent::Debug { value, .. } => Some(value),
            _ => None,
        })
        .collect();
    assert_eq!(values, [message.clone(), message], "the same message leaves port 3 and the Catch node");
}

#[tokio::test(start_paused = true)]
async fn catch_scopes_on_a_tab() {
    let uncaught = json!({"uncaught": true});
    let group = |id: &str, around: Value| with(json!({"id": id, "type": "group", "z": "t"}), around);
    let in_group = |id: &str| json!({"scope": "group", "g": id});
    // The Catch nodes, the group of the agent, and the Catch nodes that get its error.
    type Row = (Vec<[Value; 2]>, Option<&'static str>, Vec<&'static str>);
    let rows: Vec<Row> = vec![
        (vec![catch_and_debug("all", json!({}))], None, vec!["all"]),
        (
            vec![catch_and_debug("all", json!({})), catch_and_debug("one", json!({"scope": ["a"]}))],
            None,
            vec!["one", "all"],
        ),
        (vec![catch_and_debug("other", json!({"scope": ["i", "calc"]}))], None, vec![]),
        (
            vec![catch_and_debug("empty", json!({"scope": []})), catch_and_debug("rest", uncaught.clone())],
            None,
            vec!["rest"],
        ),
        (
            vec![catch_and_debug("rest", uncaught.clone()), catch_and_debug("all", json!({}))],
            None,
            vec!["all"],
        ),
        (
            vec![catch_and_debug("rest", uncaught.clone()), catch_and_debug("one", json!({"scope": ["a"]}))],
            None,
            vec!["one"],
        ),
        (vec![catch_and_debug("away", json!({"z": "u"}))], None, vec![]),
        (vec![catch_and_debug("away", json!({"z": "u", "scope": ["a"]}))], None, vec![]),
        (vec![catch_and_debug("off", json!({"d": true}))], None, vec![]),
        (
            vec![catch_and_debug("mine", in_group("g")), catch_and_debug("out", in_group("h"))],
            Some("g"),
            vec!["mine"],
        ),
        // A group scope includes the groups inside it, but not those around it.
        (
            vec![catch_and_debug("near", in_group("k")), catch_and_debug("far", in_group("g"))],
            Some("k"),
            vec!["near", "far"],
        ),
        (
            vec![catch_and_debug("near", in_group("k")), catch_and_debug("far", in_group("g"))],
            Some("g"),
            vec!["far"],
        ),
        (vec![catch_and_debug("near", in_group("k"))], None, vec![]),
    ];
    for (catches, inside, expected) in rows {
        let groups = [group("g", json!({})), group("h", json!({})), group("k", json!({"g": "g"}))];
        let mut flow = flow(&[catches.concat(), groups.to_vec()].concat());
        if let Some(id) = inside {
            flow[1]["g"] = json!(id);
        }
        let mut lines: Vec<String> = expected.iter().map(|id| format!("{id}!: \"a\"")).collect();
        if lines.is_empty() {
            lines.push("a uncaught INVALID_JSON #1".to_owned());
        }
        check(flow, &FAILED, &lines.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn errors_leave_a_subflow_that_does_not_catch_them() {
    let inner = |props: Value| with(props, json!({"z": "sf"}));
    let rows: Vec<(Vec<[Value; 2]>, Vec<&str>)> = vec![
        // Inside a subflow, ids mean the nodes of the instance.
        (
            vec![catch_and_debug("in", inner(json!({}))), catch_and_debug("out", json!({}))],
            vec!["box-in!: \"box-a\""],
        ),
        (vec![catch_and_debug("in", inner(json!({"scope": ["a"]})))], vec!["box-in!: \"box-a\""]),
        (
            vec![catch_and_debug("in", inner(json!({"uncaught": true}))), catch_and_debug("out", json!({}))],
            vec!["box-in!: \"box-a\""],
        ),
        (
            vec![catch_and_debug("in", inner(json!({"scope": ["m"]}))), catch_and_debug("out", json!({}))],
            vec!["out!: \"box-a\""],
        ),
        // Outside, the id of the instance stands for all nodes in it.
        (vec![catch_and_debug("out", json!({"scope": ["box"]}))], vec!["out!: \"box-a\""]),
        (vec![catch_and_debug("out", json!({"scope": ["i"]}))], vec!["box-a uncaught INVALID_JSON #1"]),
        (vec![catch_and_debug("out", json!({"scope": "group", "g": "g"}))], vec!["out!: \"box-a\""]),
    ];
    for (catches, lines) in rows {
        let flow = [
            vec![
                inject(&["box"]),
                json!({"id": "sf", "type": "subflow", "name": "sf", "in": [{"wires": [{"id": "a"}]}], "out": []}),
                json!({"id": "g", "type": "group", "z": "t"}),
                with(node("box", "subflow:sf", json!([])), json!({"g": "g"})),
                inner(agent("a", "m", &[])),
                inner(model("m", json!([not_json()]))),
                inner(calculator()),
            ],
            catches.concat(),
        ];
        check(Value::Array(flow.concat()), &["run-1 box-a failed INVALID_JSON"], &lines).await;
    }
}

#[tokio::test(start_paused = true)]
async fn catches_errors_of_ordinary_nodes_and_keeps_older_errors() {
    let jsonata = json!({"complete": "$sum(x)", "targetType": "jsonata"});
    let flow = flow(&[
        catch("first", json!(["a"]), &["broken"]),
        with(debug("broken", ""), jsonata),
        catch("second", json!(["broken"]), &["new", "old"]),
        debug("new", "error"),
        debug("old", "_error.source.id"),
    ]);
    let text = "this debug node shows a JSONata expression, which needs Node-RED";
    let source = json!({"id": "broken", "type": "debug", "name": "broken", "count": 1});
    let error = json!({"code": "NEEDS_NODE_RED", "message": text, "iteration": 0, "source": source});
    check(flow, &FAILED, &[&format!("new: {error}"), "old: \"a\""]).await;
}

#[tokio::test(start_paused = true)]
async fn stops_a_catch_node_wired_back_to_the_failing_node() {
    let looped = flow(&[catch("c", Value::Null, &["a", "count"]), debug("count", "error.source.count")]);
    let test = EngineTest::new(&looped);
    let reports = test.fire().await;
    let failed: Vec<String> = (1..=10).map(|run| format!("run-{run} a failed INVALID_JSON")).collect();
    assert_eq!(ends(&reports), failed);
    let mut lines: Vec<String> = (1..=9).map(|count| format!("count: {count}")).collect();
    lines.push("a uncaught INVALID_JSON #10".to_owned());
    assert_eq!(test.recorder.flow_lines(), lines);

    let jsonata = json!({"complete": "$sum(x)", "targetType": "jsonata"});
    let looped = json!([
        inject(&["broken"]),
        with(debug("broken", ""), jsonata),
        catch("c", Value::Null, &["broken"]),
    ]);
    check(looped, &[], &["broken uncaught NEEDS_NODE_RED #10"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_handled_error_is_not_raised_again() {
    let flow = flow(&[
        catch("c", json!(["a"]), &["b"]),
        agent("b", "well", &["d"]),
        model("well", json!([final_answer("fixed")])),
        debug("d", "payload"),
        catch("again", json!(["b"]), &["never"]),
        debug("never", "error"),
    ]);
    check(flow, &["run-1 a failed INVALID_JSON", "run-2 b completed"], &["d: \"fixed\""]).await;
}

/// A debug node that fails on every message.
fn failing_debug(id: &str) -> Value {
    with(debug(id, ""), json!({"complete": "$sum(x)", "targetType": "jsonata"}))
}

#[tokio::test(start_paused = true)]
async fn finds_the_right_one_of_many_catch_nodes() {
    const MANY: usize = 3_000;
    let ids: Vec<String> = (0..MANY).map(|n| format!("b{n}")).collect();
    let mut flow: Vec<Value> = ids.iter().map(|id| failing_debug(id)).collect();
    flow.push(inject(&ids.iter().map(String::as_str).collect::<Vec<_>>()));
    for id in &ids {
        // The scope names the node twice, but the Catch node gets the error once. Another tab gets nothing.
        flow.push(catch(&format!("c-{id}"), json!([id, "nobody", id]), &[&format!("d-{id}")]));
        flow.push(with(catch(&format!("u-{id}"), json!([id]), &[]), json!({"z": "u"})));
        flow.push(debug(&format!("d-{id}"), "error.source.id"));
    }
    let lines: Vec<String> = ids.iter().map(|id| format!("d-{id}: \"{id}\"")).collect();
    let test = EngineTest::new(&Value::Array(flow));
    test.fire().await;
    // A search through all Catch nodes for each failure would take half a minute.
    assert_eq!(test.recorder.flow_lines(), lines);
}

#[tokio::test(start_paused = true)]
async fn each_subflow_instance_has_its_own_catch_nodes() {
    let inner = |props: Value| with(props, json!({"z": "sf"}));
    let boxes = ["one", "two", "three"];
    let mut flow = vec![
        inject(&boxes),
        json!({"id": "sf", "type": "subflow", "name": "sf", "in": [{"wires": [{"id": "a"}, {"id": "b"}]}], "out": []}),
        inner(failing_debug("a")),
        inner(failing_debug("b")),
    ];
    flow.extend(boxes.map(|id| node(id, "subflow:sf", json!([]))));
    flow.extend(catch_and_debug("in", inner(json!({"scope": ["a"]}))));
    flow.extend(catch_and_debug("out", json!({"scope": ["two"]})));
    let test = EngineTest::new(&Value::Array(flow));
    test.fire().await;
    let mut lines = test.recorder.flow_lines();
    lines.sort();
    let expected = [
        "one-b uncaught NEEDS_NODE_RED #1",
        "one-in!: \"one-a\"",
        "out!: \"two-b\"",
        "three-b uncaught NEEDS_NODE_RED #1",
        "three-in!: \"three-a\"",
        "two-in!: \"two-a\"",
    ];
    assert_eq!(lines, expected);
}

#[tokio::test(start_paused = true)]
async fn a_cut_cascade_costs_no_more_with_many_wires() {
    // Each of 100 000 deliveries would go to 50 000 more, and each failure to 2 000 Catch nodes.
    let wide = [vec!["j"; 48_000], vec!["broken"; 2_000]].concat();
    let mut flow =
        vec![inject(&["broken", "j"]), node("j", "junction", json!([wide])), failing_debug("broken")];
    flow.extend((0..2_000).map(|n| catch(&format!("c{n}"), Value::Null, &["j"])));
    let test = EngineTest::new(&Value::Array(flow));
    test.fire().await;
    let cut = test.recorder.flow_lines().iter().filter(|line| line.contains("100000")).count();
    assert_eq!(cut, 1);
}
