//! Generates flows of any size, always the same for a size.
//!
//! Each agent has ten nodes: an inject, functions, a junction, the agent with its model and calculator, link pairs or
//! subflow instances, a debug. Tabs and the one subflow count as nodes too.

use redflow_contract::flow::Profile;
use redflow_contract::id::InstanceId;
use redflow_contract::limits::{FlowLimits, RunLimits};
use redflow_flow::CheckOptions;
use serde_json::{Value, json};

/// Nodes of one agent's block; the tenth of each block goes to tabs, the subflow and more functions.
const BLOCK: usize = 9;
/// In a flow with errors, one of so many agents is broken.
const BROKEN: usize = 10;

/// A flow file and its counts.
pub(crate) struct Flow {
    pub(crate) bytes: Vec<u8>,
    pub(crate) nodes: usize,
}

/// Whether a flow has errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errors {
    None,
    /// One in each tenth agent.
    Some,
}

/// A flow of `nodes` nodes (at least 100), a tenth of them agents.
pub(crate) fn generate(nodes: usize, errors: Errors) -> Result<Flow, serde_json::Error> {
    let agents = nodes / 10;
    let tabs = agents.div_ceil(10);
    let mut list: Vec<Value> = (0..tabs).map(tab).collect();
    list.extend(subflow());
    let extras = nodes.saturating_sub(list.len() + agents * BLOCK);
    for agent in 0..agents {
        list.extend(block(agent, agent < extras, (errors == Errors::Some).then(|| fault(agent)).flatten()));
    }
    let nodes = list.len();
    Ok(Flow { bytes: serde_json::to_vec(&list)?, nodes })
}

/// The options of a check for Node-RED: every type can run.
pub(crate) fn options() -> CheckOptions<'static> {
    fn runs(_: &str) -> bool {
        true
    }
    fn env(_: &str) -> Option<String> {
        None
    }
    CheckOptions {
        profile: Profile::Strict,
        limits: FlowLimits::default(),
        run_limits: RunLimits::default(),
        run_budget: Default::default(),
        instance: InstanceId::local(),
        provides_tools: &|_| false,
        can_run: &runs,
        env: &env,
    }
}

/// The error of a broken agent.
#[derive(Clone, Copy)]
enum Fault {
    Iterations,
    ResultOnMemoryPort,
    UnknownTool,
    Dangling,
}

fn fault(agent: usize) -> Option<Fault> {
    const FAULTS: [Fault; 4] =
        [Fault::Iterations, Fault::ResultOnMemoryPort, Fault::UnknownTool, Fault::Dangling];
    (agent % BROKEN == BROKEN / 2).then(|| FAULTS[agent / BROKEN % FAULTS.len()])
}

/// Sixteen hex digits, as in Node-RED. The odd factor makes them unique.
fn id(number: usize) -> String {
    format!("{:016x}", (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn tab_id(tab: usize) -> String {
    format!("tab{tab}")
}

fn tab(number: usize) -> Value {
    json!({"id": tab_id(number), "type": "tab", "label": format!("Flow {number}"), "disabled": false, "info": "", "env": []})
}

/// A subflow of two functions.
fn subflow() -> [Value; 3] {
    let ends = |id: &str| json!([{"x": 60, "y": 80, "wires": [{"id": id, "port": 0}]}]);
    let inner = |id: &str, wires: Value| with(node(id, "function", "inside", "wash", &wires), code());
    [
        json!({"id": "wash", "type": "subflow", "name": "Wash", "info": "", "category": "", "in": ends("rinse"), "out": ends("dry"), "env": [], "color": "#DDAA99"}),
        inner("rinse", json!([["dry"]])),
        inner("dry", json!([[]])),
    ]
}

fn block(agent: usize, extra: bool, fault: Option<Fault>) -> Vec<Value> {
    let id_of = |slot: usize| id(agent * 16 + slot);
    let on_tab = tab_id(agent / 10);
    let make =
        |slot: usize, kind: &str, name: &str, wires: Value| node(&id_of(slot), kind, name, &on_tab, &wires);
    let to = |slot: usize| json!([[id_of(slot)]]);
    let function =
        |slot: usize, wires: Value| with(make(slot, "function", "Shape the message", wires), code());
    let inject = json!({"props": [{"p": "payload"}, {"p": "topic", "vt": "str"}], "repeat": "", "crontab": "", "once": false, "onceDelay": 0.1, "topic": "orders", "payload": "What does the order cost?", "payloadType": "str"});
    let debug = json!({"active": true, "tosidebar": true, "console": false, "tostatus": false, "complete": "payload", "targetType": "msg"});
    let started = if extra { json!([[id_of(1), id_of(9)]]) } else { to(1) };
    let mut nodes = vec![
        with(make(0, "inject", "Ask", started), inject),
        function(1, to(2)),
        make(2, "junction", "", to(3)),
        agent_node(make(3, "agent-core", &format!("Agent {agent}"), json!([])), [4, 5, 6].map(id_of), fault),
        with(make(4, "scripted-model", "Model", to(3)), replies()),
        make(5, "calculator-tool", "Calculator", to(3)),
    ];
    if agent.is_multiple_of(20) {
        nodes.push(with(make(6, "subflow:wash", "", to(7)), json!({"env": []})));
        nodes.push(function(7, to(8)));
    } else if agent % 5 == 1 {
        nodes.push(with(make(6, "link out", "", json!([])), json!({"mode": "link", "links": [id_of(7)]})));
        nodes.push(with(make(7, "link in", "", to(8)), json!({"links": [id_of(6)]})));
    } else {
        nodes.extend([function(6, to(7)), function(7, to(8))]);
    }
    nodes.push(with(make(8, "debug", "Result", json!([])), debug));
    if extra {
        nodes.push(function(9, to(8)));
    }
    nodes
}

fn agent_node(node: Value, [model, tool, result]: [String; 3], fault: Option<Fault>) -> Value {
    let mut config = json!({"strategy": "react", "maxIterations": 5, "allowedTools": ["calculator"], "stopConditions": [{"type": "confidence_threshold", "value": 0.95}], "debug": false});
    config["wires"] = match fault {
        Some(Fault::ResultOnMemoryPort) => json!([[model], [tool], [result], [], []]),
        Some(Fault::Dangling) => json!([[model], [tool, "gone"], [], [result], []]),
        Some(Fault::Iterations | Fault::UnknownTool) | None => json!([[model], [tool], [], [result], []]),
    };
    match fault {
        Some(Fault::Iterations) => config["maxIterations"] = json!(0),
        Some(Fault::UnknownTool) => config["allowedTools"] = json!(["calculator", "weather"]),
        Some(Fault::ResultOnMemoryPort | Fault::Dangling) | None => {}
    }
    with(node, config)
}

fn node(id: &str, kind: &str, name: &str, on_tab: &str, wires: &Value) -> Value {
    json!({"id": id, "type": kind, "z": on_tab, "name": name, "x": 340, "y": 120, "wires": wires})
}

fn code() -> Value {
    json!({"func": "msg.payload = { text: msg.payload, at: Date.now() };\nreturn msg;", "outputs": 1, "timeout": 0, "noerr": 0, "initialize": "", "finalize": "", "libs": []})
}

fn replies() -> Value {
    json!({"replies": [{"action": "tool", "tool": "calculator", "input": {"expression": "3 * 89.90"}, "confidence": 0.8}, {"action": "final", "message": "269.70", "confidence": 0.97}]})
}

fn with(mut node: Value, extra: Value) -> Value {
    if let (Some(node), Value::Object(extra)) = (node.as_object_mut(), extra) {
        node.extend(extra);
    }
    node
}

#[cfg(test)]
mod tests {
    use super::{Errors, generate, options};
    use redflow_flow::{CheckedFlow, Verdict, check_bytes};
    use serde_json::Value;

    fn checked(nodes: usize, errors: Errors) -> CheckedFlow {
        let flow = generate(nodes, errors).unwrap();
        let list: Vec<Value> = serde_json::from_slice(&flow.bytes).unwrap();
        assert_eq!((flow.nodes, list.len()), (nodes, nodes));
        let agents = list.iter().filter(|node| node["type"] == "agent-core").count();
        assert_eq!(agents, nodes / 10);
        check_bytes(&flow.bytes, &options()).unwrap()
    }

    fn refused(checked: &CheckedFlow) -> usize {
        checked.agents.iter().filter(|agent| matches!(agent.verdict, Verdict::Refused { .. })).count()
    }

    #[test]
    fn a_flow_without_errors_checks_clean() {
        for nodes in [100, 1_000] {
            let checked = checked(nodes, Errors::None);
            assert_eq!(checked.report.diagnostics, []);
            assert_eq!((checked.agents.len(), refused(&checked)), (nodes / 10, 0));
        }
    }

    #[test]
    fn a_flow_with_errors_has_one_in_each_tenth_agent() {
        let checked = checked(1_000, Errors::Some);
        assert_eq!((checked.report.ok, checked.report.diagnostics.len()), (false, 10));
        assert_eq!(refused(&checked), 10);
        let codes: std::collections::BTreeSet<String> =
            checked.report.diagnostics.iter().map(|diagnostic| diagnostic.code.to_string()).collect();
        assert_eq!(codes.len(), 4, "{codes:?}");
    }
}
