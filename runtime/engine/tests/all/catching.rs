//! Which Catch nodes hear of an error, and what they hear.

use crate::kit::{
    World, agent, calculator, catch, check, debug, ends, inject, model, node, only_message, prose, says, with,
};
use pretty_assertions::assert_eq;
use redflow_contract::event::FlowEvent;
use serde_json::{Value, json};

const FAILED: [&str; 1] = ["run-1 a failed INVALID_JSON"];

/// inject → an agent that fails, and `more`.
fn flow(more: &[Value]) -> Value {
    let mut nodes = vec![inject(&["a"]), agent("a", "m", &[]), model("m", json!([prose()])), calculator()];
    nodes.extend_from_slice(more);
    Value::Array(nodes)
}

/// A Catch node with a debug node of its own that says so.
fn heard(id: &str, props: Value) -> [Value; 2] {
    let ear = format!("{id}!");
    [
        with(catch(id, Value::Null, &[&ear]), props.clone()),
        with(debug(&ear, "error.source.id"), place(&props)),
    ]
}

/// The tab or subflow of a node, if it is another one.
fn place(props: &Value) -> Value {
    json!({"z": props.get("z").unwrap_or(&json!("t"))})
}

#[tokio::test(start_paused = true)]
async fn what_a_catch_node_hears() {
    let mut flow = flow(&[debug("d", "true"), catch("c", Value::Null, &["e"]), debug("e", "true")]);
    flow[1] = with(agent("a", "m", &["d"]), json!({"name": "Counting"}));
    let world = World::new(&flow);
    let message = only_message(&world.fire().await);
    let source = json!({"id": "a", "type": "agent-core", "name": "Counting", "count": 1});
    let text = "The answer is not exactly one JSON object; reading stopped at line 1, column 1.";
    assert_eq!(
        message["error"],
        json!({"code": "INVALID_JSON", "message": text, "rule": "json", "iteration": 1, "source": source})
    );
    let values: Vec<Value> = world
        .watch
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
async fn scopes_on_a_tab() {
    let uncaught = json!({"uncaught": true});
    let group = |id: &str, around: Value| with(json!({"id": id, "type": "group", "z": "t"}), around);
    let in_group = |id: &str| json!({"scope": "group", "g": id});
    // The Catch nodes, what the agent is in, and who hears of its error.
    type Row = (Vec<[Value; 2]>, Option<&'static str>, Vec<&'static str>);
    let rows: Vec<Row> = vec![
        (vec![heard("all", json!({}))], None, vec!["all"]),
        (vec![heard("all", json!({})), heard("one", json!({"scope": ["a"]}))], None, vec!["one", "all"]),
        (vec![heard("other", json!({"scope": ["i", "calc"]}))], None, vec![]),
        (vec![heard("empty", json!({"scope": []})), heard("rest", uncaught.clone())], None, vec!["rest"]),
        (vec![heard("rest", uncaught.clone()), heard("all", json!({}))], None, vec!["all"]),
        (vec![heard("rest", uncaught.clone()), heard("one", json!({"scope": ["a"]}))], None, vec!["one"]),
        (vec![heard("away", json!({"z": "u"}))], None, vec![]),
        (vec![heard("away", json!({"z": "u", "scope": ["a"]}))], None, vec![]),
        (vec![heard("off", json!({"d": true}))], None, vec![]),
        (vec![heard("mine", in_group("g")), heard("out", in_group("h"))], Some("g"), vec!["mine"]),
        // A group hears the groups inside it, and not the ones around it.
        (vec![heard("near", in_group("k")), heard("far", in_group("g"))], Some("k"), vec!["near", "far"]),
        (vec![heard("near", in_group("k")), heard("far", in_group("g"))], Some("g"), vec!["far"]),
        (vec![heard("near", in_group("k"))], None, vec![]),
    ];
    for (catches, inside, expected) in rows {
        let groups = [group("g", json!({})), group("h", json!({})), group("k", json!({"g": "g"}))];
        let mut flow = flow(&[catches.concat(), groups.to_vec()].concat());
        if let Some(id) = inside {
            flow[1]["g"] = json!(id);
        }
        let mut shown: Vec<String> = expected.iter().map(|id| format!("{id}!: \"a\"")).collect();
        if shown.is_empty() {
            shown.push("a uncaught INVALID_JSON #1".to_owned());
        }
        check(flow, &FAILED, &shown.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn errors_inside_a_subflow_go_out_when_nobody_inside_takes_them() {
    let inner = |props: Value| with(props, json!({"z": "sf"}));
    let rows: Vec<(Vec<[Value; 2]>, Vec<&str>)> = vec![
        // Inside, ids mean the nodes of the instance.
        (vec![heard("in", inner(json!({}))), heard("out", json!({}))], vec!["box-in!: \"box-a\""]),
        (vec![heard("in", inner(json!({"scope": ["a"]})))], vec!["box-in!: \"box-a\""]),
        (
            vec![heard("in", inner(json!({"uncaught": true}))), heard("out", json!({}))],
            vec!["box-in!: \"box-a\""],
        ),
        (vec![heard("in", inner(json!({"scope": ["m"]}))), heard("out", json!({}))], vec!["out!: \"box-a\""]),
        // Outside, the instance stands for what is in it.
        (vec![heard("out", json!({"scope": ["box"]}))], vec!["out!: \"box-a\""]),
        (vec![heard("out", json!({"scope": ["i"]}))], vec!["box-a uncaught INVALID_JSON #1"]),
        (vec![heard("out", json!({"scope": "group", "g": "g"}))], vec!["out!: \"box-a\""]),
    ];
    for (catches, shown) in rows {
        let flow = [
            vec![
                inject(&["box"]),
                json!({"id": "sf", "type": "subflow", "name": "sf", "in": [{"wires": [{"id": "a"}]}], "out": []}),
                json!({"id": "g", "type": "group", "z": "t"}),
                with(node("box", "subflow:sf", json!([])), json!({"g": "g"})),
                inner(agent("a", "m", &[])),
                inner(model("m", json!([prose()]))),
                inner(calculator()),
            ],
            catches.concat(),
        ];
        check(Value::Array(flow.concat()), &["run-1 box-a failed INVALID_JSON"], &shown).await;
    }
}

#[tokio::test(start_paused = true)]
async fn ordinary_nodes_fail_too_and_older_errors_stay_readable() {
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
async fn a_catch_wired_back_to_what_fails_ends() {
    let looped = flow(&[catch("c", Value::Null, &["a", "count"]), debug("count", "error.source.count")]);
    let world = World::new(&looped);
    let reports = world.fire().await;
    let failed: Vec<String> = (1..=10).map(|run| format!("run-{run} a failed INVALID_JSON")).collect();
    assert_eq!(ends(&reports), failed);
    let mut shown: Vec<String> = (1..=9).map(|count| format!("count: {count}")).collect();
    shown.push("a uncaught INVALID_JSON #10".to_owned());
    assert_eq!(world.watch.shown(), shown);

    let jsonata = json!({"complete": "$sum(x)", "targetType": "jsonata"});
    let looped = json!([
        inject(&["broken"]),
        with(debug("broken", ""), jsonata),
        catch("c", Value::Null, &["broken"]),
    ]);
    check(looped, &[], &["broken uncaught NEEDS_NODE_RED #10"]).await;
}

#[tokio::test(start_paused = true)]
async fn an_error_that_is_mended_is_not_raised_again() {
    let flow = flow(&[
        catch("c", json!(["a"]), &["b"]),
        agent("b", "well", &["d"]),
        model("well", json!([says("mended")])),
        debug("d", "payload"),
        catch("again", json!(["b"]), &["never"]),
        debug("never", "error"),
    ]);
    check(flow, &["run-1 a failed INVALID_JSON", "run-2 b completed"], &["d: \"mended\""]).await;
}

/// A debug node that fails on every message.
fn broken(id: &str) -> Value {
    with(debug(id, ""), json!({"complete": "$sum(x)", "targetType": "jsonata"}))
}

#[tokio::test(start_paused = true)]
async fn of_many_catch_nodes_the_right_one_hears() {
    const MANY: usize = 3_000;
    let ids: Vec<String> = (0..MANY).map(|n| format!("b{n}")).collect();
    let mut flow: Vec<Value> = ids.iter().map(|id| broken(id)).collect();
    flow.push(inject(&ids.iter().map(String::as_str).collect::<Vec<_>>()));
    for id in &ids {
        // Named twice, heard once; what is on another tab is nobody's.
        flow.push(catch(&format!("c-{id}"), json!([id, "nobody", id]), &[&format!("d-{id}")]));
        flow.push(with(catch(&format!("u-{id}"), json!([id]), &[]), json!({"z": "u"})));
        flow.push(debug(&format!("d-{id}"), "error.source.id"));
    }
    let shown: Vec<String> = ids.iter().map(|id| format!("d-{id}: \"{id}\"")).collect();
    let world = World::new(&Value::Array(flow));
    world.fire().await;
    // To look at every Catch node for every failure takes half a minute.
    assert_eq!(world.watch.shown(), shown);
}

#[tokio::test(start_paused = true)]
async fn every_instance_of_a_subflow_has_catch_nodes_of_its_own() {
    let inner = |props: Value| with(props, json!({"z": "sf"}));
    let boxes = ["one", "two", "three"];
    let mut flow = vec![
        inject(&boxes),
        json!({"id": "sf", "type": "subflow", "name": "sf", "in": [{"wires": [{"id": "a"}, {"id": "b"}]}], "out": []}),
        inner(broken("a")),
        inner(broken("b")),
    ];
    flow.extend(boxes.map(|id| node(id, "subflow:sf", json!([]))));
    flow.extend(heard("in", inner(json!({"scope": ["a"]}))));
    flow.extend(heard("out", json!({"scope": ["two"]})));
    let world = World::new(&Value::Array(flow));
    world.fire().await;
    let mut shown = world.watch.shown();
    shown.sort();
    let expected = [
        "one-b uncaught NEEDS_NODE_RED #1",
        "one-in!: \"one-a\"",
        "out!: \"two-b\"",
        "three-b uncaught NEEDS_NODE_RED #1",
        "three-in!: \"three-a\"",
        "two-in!: \"two-a\"",
    ];
    assert_eq!(shown, expected);
}

#[tokio::test(start_paused = true)]
async fn a_chain_that_is_cut_costs_no_more_however_wide_it_is() {
    // Each of 100 000 deliveries would go to 50 000 more, and each failure to 2 000 Catch nodes.
    let wide = [vec!["j"; 48_000], vec!["broken"; 2_000]].concat();
    let mut flow = vec![inject(&["broken", "j"]), node("j", "junction", json!([wide])), broken("broken")];
    flow.extend((0..2_000).map(|n| catch(&format!("c{n}"), Value::Null, &["j"])));
    let world = World::new(&Value::Array(flow));
    world.fire().await;
    let cut = world.watch.shown().iter().filter(|line| line.contains("100000")).count();
    assert_eq!(cut, 1);
}
