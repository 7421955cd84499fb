//! The models and memories that memories and tools name in their properties.

use crate::kit::{check_with, good, line, model, node, options, with};
use redflow_contract::flow::Profile;
use redflow_flow::{CheckOptions, CheckedFlow, Verdict};
use serde_json::{Value, json};

/// An agent with a model `m`, a second model `m2` and the memories.
fn flow(memories: Vec<Value>) -> Value {
    let mut all = memories;
    all.push(model("m2", json!([[]])));
    good(json!([["m"], ["c"], ["y"], ["d"]]), all)
}

fn checked(flow: &Value) -> CheckedFlow {
    let options = CheckOptions { can_run: &|_| true, ..options(Profile::Strict) };
    check_with(flow, &options).unwrap_or_else(|report| panic!("refused: {report:#?}"))
}

#[track_caller]
fn check(flow: Value, expected: &[&str]) {
    let found: Vec<String> = checked(&flow).report.diagnostics.iter().map(line).collect();
    assert_eq!(found, expected);
}

fn memory(id: &str, type_name: &str, props: Value) -> Value {
    with(node(id, type_name, json!([[]])), with(json!({"sessionId": "{{msg.user}}"}), props))
}

#[test]
fn a_memory_names_a_memory_and_a_model() {
    let window = || memory("w", "window-memory", json!({}));
    let summary = |props: Value| vec![memory("y", "summary-memory", props), window()];
    let rows = [
        (json!({"shortMemory": "w", "model": "m2"}), &[][..]),
        (json!({"options": {"shortMemory": "w", "model": "m2"}}), &[]),
        (json!({"model": "m2"}), &["CONFIG_INVALID y /shortMemory"]),
        (json!({"shortMemory": "w", "model": " "}), &["MEMORY_MODEL_MISSING y /model"]),
        (json!({"shortMemory": "x", "model": "m2"}), &["EDGE_TARGET_MISSING y /shortMemory"]),
        (
            json!({"shortMemory": "m2", "model": "w"}),
            &["EDGE_KIND_MISMATCH y -> m2 /shortMemory", "EDGE_KIND_MISMATCH y -> w /model"],
        ),
    ];
    for (props, expected) in rows {
        check(flow(summary(props)), expected);
    }
    check(flow(vec![memory("y", "long-memory", json!({}))]), &[]);
}

#[test]
fn a_circle_of_memories_is_refused() {
    let own = memory("y", "long-memory", json!({"shortMemory": "y"}));
    check(flow(vec![own]), &["EDGE_KIND_MISMATCH y -> y /shortMemory"]);
    let two = vec![
        memory("y", "long-memory", json!({"shortMemory": "z"})),
        memory("z", "summary-memory", json!({"shortMemory": "y", "model": "m2"})),
    ];
    check(flow(two), &["MEMORY_CYCLE y -> z /shortMemory", "MEMORY_CYCLE z -> y /shortMemory"]);
    let row = |count: usize| {
        let named = |number: usize| if number == 0 { "y".to_owned() } else { format!("s{number}") };
        let mut all: Vec<Value> = (0..count)
            .map(|number| {
                let props = json!({"shortMemory": named(number + 1), "model": "m2"});
                memory(&named(number), "summary-memory", props)
            })
            .collect();
        all.push(memory(&named(count), "window-memory", json!({})));
        all
    };
    check(flow(row(7)), &[]);
    check(flow(row(8)), &["MEMORY_CYCLE y -> s1 /shortMemory"]);
}

#[test]
fn the_plan_has_what_services_name_and_a_wrong_one_refuses_the_agent() {
    let good = flow(vec![
        memory("y", "long-memory", json!({"shortMemory": "z", "model": "m"})),
        memory("z", "summary-memory", json!({"shortMemory": "w", "model": "m2"})),
        memory("w", "window-memory", json!({})),
    ]);
    let checked_flow = checked(&good);
    let Verdict::Ready(ready) = &checked_flow.agents[0].verdict else { panic!() };
    let named: Vec<&str> = ready.plan.services.iter().map(|service| service.node.id.as_str()).collect();
    assert_eq!(named, ["z", "w", "m2"], "the model of the agent stands in the plan already");
    let mut wrong = good;
    let window = wrong.as_array_mut().unwrap().iter_mut().find(|node| node["id"] == "w").unwrap();
    window["maxMessages"] = json!("many");
    let checked_flow = checked(&wrong);
    assert!(matches!(checked_flow.agents[0].verdict, Verdict::Refused { .. }));
}
