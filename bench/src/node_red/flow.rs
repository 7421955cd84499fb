//! The measured flows of Node-RED. One function node starts the runs, and each kind of run does the same work.
//!
//! The code of the function nodes is in `bench/node_red/`.

use crate::Failure;
use serde_json::{Value, json};

/// The path that starts runs.
pub(crate) const ORDERS: &str = "/orders";

const DRIVE: &str = include_str!("../../node_red/drive.js");
const BEGIN: &str = include_str!("../../node_red/begin.js");
const DECIDE: &str = include_str!("../../node_red/decide.js");
const CALCULATE: &str = include_str!("../../node_red/calculate.js");
const OBSERVE: &str = include_str!("../../node_red/observe.js");

/// The placeholders in the function nodes for the first request and the key.
const OPENING: &str = "OPENING";
const KEY: &str = "KEY";

/// What does the work of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunKind {
    /// Nothing: the answer is fixed. This measures the cost of starting runs.
    Nothing,
    /// Function nodes and an http request node.
    ByHand,
    /// The sidecar, with its own tool.
    Sidecar,
    /// The sidecar, with a flow tool of one function node.
    FlowTool,
}

impl RunKind {
    pub(crate) const ALL: [Self; 4] = [Self::Nothing, Self::ByHand, Self::Sidecar, Self::FlowTool];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::ByHand => "by hand",
            Self::Sidecar => "sidecar, its own tool",
            Self::FlowTool => "sidecar, a flow as tool",
        }
    }

    pub(crate) fn has_sidecar(self) -> bool {
        matches!(self, Self::Sidecar | Self::FlowTool)
    }
}

/// The addresses and keys of a flow.
pub(crate) struct FlowOptions<'a> {
    /// The base address of the model.
    pub(crate) model: &'a str,
    /// The key of the model.
    pub(crate) key: &'a str,
    /// The first request of the product.
    pub(crate) opening: &'a Value,
    /// The address of the sidecar, and its token.
    pub(crate) sidecar: Option<(&'a str, &'a str)>,
}

/// A flow and its credentials.
pub(crate) struct FlowFiles {
    pub(crate) flow: Value,
    pub(crate) credentials: Value,
}

/// The flow for a kind of run.
pub(crate) fn flow(kind: RunKind, options: &FlowOptions<'_>) -> Result<FlowFiles, Failure> {
    let first = match kind {
        RunKind::Nothing => "answer",
        RunKind::ByHand => "begin",
        RunKind::Sidecar | RunKind::FlowTool => "agent",
    };
    let mut order = node("order", "http in", &json!([["drive"]]));
    order["url"] = ORDERS.into();
    order["method"] = "post".into();
    let mut nodes = vec![
        json!({"id": "t", "type": "tab", "label": kind.name()}),
        order,
        function("drive", DRIVE, &json!([[first], ["reply"]])),
        node("reply", "http response", &json!([])),
    ];
    let mut credentials = json!({});
    match kind {
        RunKind::Nothing => {
            let answer = "msg.payload = \"The tax is 231.90.\";\nreturn msg;";
            nodes.push(function("answer", answer, &json!([["drive"]])));
        }
        RunKind::ByHand => nodes.extend(by_hand(options)),
        RunKind::Sidecar | RunKind::FlowTool => {
            let (url, token) = options.sidecar.ok_or("a flow with an agent needs a sidecar")?;
            nodes.extend(with_agent(kind, options.model, url));
            credentials = json!({"runtime": {"token": token}, "model": {"apiKey": options.key}});
        }
    }
    Ok(FlowFiles { flow: Value::Array(nodes), credentials })
}

fn node(id: &str, kind: &str, wires: &Value) -> Value {
    json!({"id": id, "type": kind, "z": "t", "name": id, "x": 340, "y": 120, "wires": wires})
}

fn function(id: &str, code: &str, wires: &Value) -> Value {
    let outputs = wires.as_array().map_or(0, Vec::len);
    let mut function = node(id, "function", wires);
    function["func"] = code.into();
    function["outputs"] = outputs.into();
    function
}

/// The smallest loop with function nodes and an http request node.
fn by_hand(options: &FlowOptions<'_>) -> [Value; 5] {
    let filled = |code: &str| code.replace(OPENING, &options.opening.to_string()).replace(KEY, options.key);
    let mut request = node("request", "http request", &json!([["decide"]]));
    request["method"] = "POST".into();
    request["url"] = format!("{}/chat/completions", options.model).into();
    // The node parses the response and keeps the connection open.
    request["ret"] = "obj".into();
    request["persist"] = true.into();
    [
        function("begin", &filled(BEGIN), &json!([["request"]])),
        request,
        function("decide", DECIDE, &json!([["calculate"], ["drive"]])),
        function("calculate", CALCULATE, &json!([["observe"]])),
        function("observe", &filled(OBSERVE), &json!([["request"]])),
    ]
}

/// An agent whose tool is the sidecar's own, or a function node.
fn with_agent(kind: RunKind, base: &str, url: &str) -> Vec<Value> {
    let runtime =
        json!({"id": "runtime", "type": "redflow-runtime", "name": "", "mode": "remote", "url": url});
    let mut agent = node("agent", "agent-core", &json!([["model"], ["tool"], [], ["drive"], []]));
    agent["runtime"] = "runtime".into();
    agent["strategy"] = "react".into();
    agent["maxIterations"] = 6.into();
    agent["allowedTools"] = json!(["calculator"]);
    let mut model = node("model", "openai-model", &json!([]));
    model["model"] = "gpt-4.1-mini".into();
    model["baseURL"] = base.into();
    model["structuredOutput"] = "json_schema".into();
    let mut nodes = vec![runtime, agent, model];
    if kind == RunKind::FlowTool {
        let mut tool = node("tool", "flow-tool", &json!([["calculate"]]));
        tool["toolName"] = "calculator".into();
        // As the sidecar's own tool says it, so that the model is asked the same.
        tool["description"] = "Evaluates an arithmetic expression: + - * / ^, parentheses, decimals.".into();
        tool["inputSchema"] = json!({"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]});
        tool["effect"] = "read".into();
        nodes.push(tool);
        nodes.push(function("calculate", CALCULATE, &json!([["return"]])));
        nodes.push(node("return", "flow-tool-return", &json!([])));
    } else {
        nodes.push(node("tool", "calculator-tool", &json!([])));
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::{FlowOptions, RunKind, flow};
    use serde_json::{Value, json};

    fn nodes(kind: RunKind) -> Vec<Value> {
        let opening = json!({"model": "m", "messages": [{"role": "system", "content": "\"`OPEN"}, {"role": "user", "content": "?"}]});
        let options = FlowOptions {
            model: "http://127.0.0.1:1/v1",
            key: "sk-1",
            opening: &opening,
            sidecar: Some(("http://127.0.0.1:2", "token")),
        };
        flow(kind, &options).unwrap().flow.as_array().unwrap().clone()
    }

    #[test]
    fn every_wire_leads_to_a_node() {
        for kind in RunKind::ALL {
            let nodes = nodes(kind);
            let ids: Vec<&str> = nodes.iter().map(|node| node["id"].as_str().unwrap()).collect();
            let ports = nodes.iter().filter_map(|node| node["wires"].as_array()).flatten();
            for wire in ports.flat_map(|port| port.as_array().unwrap()) {
                assert!(ids.contains(&wire.as_str().unwrap()), "{kind:?}: {wire}");
            }
        }
    }

    #[test]
    fn what_stands_for_something_is_filled_in() {
        for node in nodes(RunKind::ByHand) {
            let code = node["func"].as_str().unwrap_or_default();
            assert!(!code.contains("= OPENING") && !code.contains("Bearer KEY"), "{code}");
        }
    }

    #[test]
    fn the_tool_is_the_same_code_by_hand_and_as_a_flow() {
        let code = |kind: RunKind| {
            nodes(kind).into_iter().find(|node| node["id"] == "calculate").map(|node| node["func"].clone())
        };
        assert!(code(RunKind::ByHand).is_some());
        assert_eq!(code(RunKind::ByHand), code(RunKind::FlowTool));
    }
}
