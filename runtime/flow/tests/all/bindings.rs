//! The three ways to bind a service, replies, and counts.

use crate::kit::{agent, calculator, check, checked, model, node, with};
use redflow_flow::Verdict;
use serde_json::{Value, json};

/// The services of the only agent: model, memory, tools.
fn bound(flow: &Value) -> (String, Option<String>, Vec<String>) {
    let checked = checked(flow);
    let Verdict::Ready(ready) = &checked.agents[0].verdict else { panic!("{:#?}", checked.report) };
    let id = |ix: usize| checked.flow.nodes[ix].id.to_string();
    (id(ready.model), ready.memory.map(id), ready.tools.iter().map(|tool| id(tool.ix)).collect())
}

#[test]
fn binds_a_service_once_in_any_way() {
    let wired = json!([agent("a", json!([["m"], ["c"]])), model("m", json!([])), calculator("c", json!([]))]);
    let from_service =
        json!([agent("a", json!([])), model("m", json!([["a"]])), calculator("c", json!([["a"]]))]);
    let property = json!([
        with(agent("a", json!([])), json!({"model": "m", "tools": ["c"], "memory": ""})),
        model("m", json!([])),
        calculator("c", json!([])),
    ]);
    let every = json!([
        with(agent("a", json!([["m"], ["c"]])), json!({"model": "m", "tools": ["c"]})),
        model("m", json!([["a"]])),
        calculator("c", json!([["a"]])),
    ]);
    for flow in [wired, from_service, property, every] {
        check(flow.clone(), &[]);
        assert_eq!(bound(&flow), ("m".to_owned(), None, vec!["c".to_owned()]));
    }
}

#[test]
fn binds_services_without_coordinates() {
    let mut m = model("m", json!([]));
    m.as_object_mut().unwrap().retain(|key, _| key != "x" && key != "y" && key != "z");
    let flow = json!([agent("a", json!([["m"], ["c"]])), m, calculator("c", json!([]))]);
    check(flow.clone(), &[]);
    assert_eq!(bound(&flow).0, "m");
}

#[test]
fn reports_a_reply_to_an_agent_that_binds_another_service() {
    let flow = json!([
        agent("a", json!([["m"], ["c"]])),
        agent("b", json!([[], ["c"]])),
        model("m", json!([["a"]])),
        model("m2", json!([["a", "b"]])),
        calculator("c", json!([["a", "b"]])),
        with(calculator("c2", json!([["a"]])), json!({"toolName": "other"})),
    ]);
    // m2 replies to a, which bound m; b has no model but m2. c2 replies to a, which bound c.
    check(flow, &["EDGE_FOREIGN_REPLY m2:0 -> a /wires/0/0", "EDGE_FOREIGN_REPLY c2:0 -> a /wires/0/0"]);
}

#[test]
fn reports_properties_that_name_missing_or_wrong_services() {
    let flow = json!([
        with(
            agent("a", json!([["m"], ["c"]])),
            json!({"model": "c", "memory": "nowhere", "tools": ["c", "m", "c", "a"]})
        ),
        model("m", json!([])),
        calculator("c", json!([])),
    ]);
    check(
        flow,
        &[
            "EDGE_DUPLICATE a /tools/2",
            "EDGE_KIND_MISMATCH a -> c /model",
            "EDGE_TARGET_MISSING a /memory",
            "EDGE_KIND_MISMATCH a -> m /tools/1",
            "EDGE_KIND_MISMATCH a -> a /tools/3",
        ],
    );
}

#[test]
fn exactly_one_model_and_at_most_one_memory() {
    let memory = |id: &str| with(node(id, "window-memory", json!([])), json!({"sessionId": "x"}));
    let flow = json!([
        agent("a", json!([["m", "m2"], ["c"], ["x", "y"]])),
        agent("b", json!([[], ["c"]])),
        model("m", json!([])),
        model("m2", json!([])),
        calculator("c", json!([])),
        memory("x"),
        memory("y"),
    ]);
    check(flow, &["MODEL_MULTIPLE a:0 -> m2", "MEMORY_MULTIPLE a:2 -> y", "MODEL_MISSING b:0"]);
    // An ai-agent binds by a wire from the service or by property; it has no port for it.
    let flow = json!([
        node("ai", "ai-agent", json!([["d"], ["d"]])),
        node("ai2", "ai-agent", json!([[], []])),
        model("m", json!([["ai"]])),
        node("d", "debug", json!([])),
    ]);
    check(flow, &["MODEL_MISSING ai2"]);
    // Tools may be bound by both ways, but a model only by one.
    let named = json!({"tools": ["named"], "model": "m"});
    let flow = json!([
        with(node("ai", "ai-agent", json!([[], []])), named),
        model("m", json!([])),
        model("other", json!([["ai"]])),
        calculator("named", json!([])),
        with(calculator("wired", json!([["ai"]])), json!({"toolName": "wired"})),
    ]);
    check(flow, &["EDGE_FOREIGN_REPLY other:0 -> ai /wires/0/0"]);
}

#[test]
fn a_memory_without_a_session_warns() {
    let memory = |extra: Value| with(node("mem", "redis-memory", json!([])), extra);
    let flow = |agent_extra: Value, extra: Value| {
        json!([
            with(agent("a", json!([["m"], ["c"], ["mem"]])), agent_extra),
            model("m", json!([])),
            calculator("c", json!([])),
            memory(extra),
        ])
    };
    let shared = ["SESSION_SHARED a -> mem /sessionId"];
    check(flow(json!({}), json!({})), &shared);
    check(flow(json!({}), json!({"sessionId": "default"})), &shared);
    check(flow(json!({"sessionId": ""}), json!({"sessionId": ""})), &shared);
    check(flow(json!({"sessionId": "{{msg.user}}"}), json!({})), &[]);
    check(flow(json!({}), json!({"sessionId": "kitchen"})), &[]);
}

#[test]
fn allowed_tools_takes_names_ids_and_patterns() {
    let rows: [(Value, &[&str]); 6] = [
        (json!(["calculator"]), &[]),
        (json!(["builtin.calculator"]), &[]),
        (json!(["builtin.*"]), &[]),
        (json!(["*"]), &[]),
        (
            json!(["flow.calculator"]),
            &["TOOL_NOT_CONNECTED a:1 /allowedTools/0", "TOOL_CONNECTED_NOT_ALLOWED a:1 -> c /allowedTools"],
        ),
        (
            json!(["flow.*"]),
            &["TOOL_NOT_CONNECTED a:1 /allowedTools/0", "TOOL_CONNECTED_NOT_ALLOWED a:1 -> c /allowedTools"],
        ),
    ];
    for (allowed, problems) in rows {
        let agent = with(agent("a", json!([["m"], ["c"]])), json!({"allowedTools": allowed}));
        let flow = json!([agent, model("m", json!([])), calculator("c", json!([]))]);
        check(flow.clone(), problems);
        if problems.is_empty() {
            assert_eq!(bound(&flow).2, ["c"], "{allowed}");
        }
    }
}

#[test]
fn a_registry_tool_needs_no_name_and_checks_its_ids() {
    let rows: [(Value, &[&str]); 4] = [
        (json!({"ids": ["weather.*", "a.b", "*"], "name": ""}), &[]),
        (json!({"ids": ["weather.current"], "name": "Weather tools"}), &[]),
        (json!({"ids": []}), &["CONFIG_INVALID r /ids"]),
        (json!({"ids": ["a b", "a.*b"]}), &["CONFIG_INVALID r /ids/0", "CONFIG_INVALID r /ids/1"]),
    ];
    for (properties, problems) in rows {
        let agent = with(agent("a", json!([["m"], ["r"]])), json!({"allowedTools": ["weather.*"]}));
        let registry = with(with(node("r", "registry-tool", json!([])), json!({"name": ""})), properties);
        check(json!([agent, model("m", json!([])), registry]), problems);
    }
}

/// Earlier texts of strangers must not stand in the conversation of an agent that takes its text as data.
#[test]
fn an_agent_that_reads_one_text_has_no_memory() {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let reader = |type_name: &str, props: Value| {
        with(node("a", type_name, json!([[], []])), with(json!({"model": "m"}), props))
    };
    let memory = |id: &str, wires: Value| node(id, "buffer-memory", wires);
    for (type_name, props) in [
        ("ai-extractor", json!({"outputSchema": schema})),
        ("ai-classifier", json!({"categories": ["a"]})),
        ("ai-summarizer", json!({})),
    ] {
        let named = reader(type_name, with(props.clone(), json!({"memory": "mem"})));
        let by_property = json!([named, model("m", json!([])), memory("mem", json!([]))]);
        let by_wire = json!([reader(type_name, props), model("m", json!([])), memory("mem", json!([["a"]]))]);
        for flow in [by_property, by_wire] {
            // There is no conversation that users could share either.
            check(flow.clone(), &["MEMORY_NOT_USED a -> mem"]);
            let checked = crate::kit::checked(&flow);
            let Verdict::Ready(ready) = &checked.agents[0].verdict else { panic!("{:#?}", checked.report) };
            assert_eq!((ready.memory, ready.spec.memory, ready.plan.memory.is_none()), (None, false, true));
            assert!(checked.agents[0].memories.is_empty(), "{type_name}");
        }
    }
    // What the memory names is not needed, and two memories are no error.
    let summary = with(
        memory("s", json!([["a"]])),
        json!({"type": "summary-memory", "model": "n", "shortMemory": "mem"}),
    );
    let two = json!([
        reader("ai-summarizer", json!({})),
        model("m", json!([])),
        model("n", json!([])),
        memory("mem", json!([["a"]])),
        summary,
    ]);
    check(two.clone(), &["MEMORY_NOT_USED a -> mem", "MEMORY_NOT_USED a -> s"]);
    let checked = crate::kit::checked(&two);
    let Verdict::Ready(ready) = &checked.agents[0].verdict else { panic!("{:#?}", checked.report) };
    assert!(ready.plan.services.is_empty(), "{:?}", ready.plan.services);
    // An agent that reaches an objective keeps its memory.
    let simple = with(reader("ai-simple-agent", json!({})), json!({"memory": "mem", "sessionId": "x"}));
    let flow = json!([simple, model("m", json!([])), memory("mem", json!([]))]);
    check(flow.clone(), &[]);
    assert_eq!(crate::kit::checked(&flow).agents[0].memories.len(), 1);
}
