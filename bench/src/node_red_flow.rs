//! The flows that are measured in Node-RED: the same runs, made by one function node, done in different ways.
//!
//! What the function nodes do is in `bench/node_red/`.

use crate::Failure;
use serde_json::{Value, json};

/// Where orders for runs go.
pub(crate) const ORDERS: &str = "/orders";

const DRIVE: &str = include_str!("../node_red/drive.js");
const BEGIN: &str = include_str!("../node_red/begin.js");
const DECIDE: &str = include_str!("../node_red/decide.js");
const CALCULATE: &str = include_str!("../node_red/calculate.js");
const OBSERVE: &str = include_str!("../node_red/observe.js");

/// What stands in the function nodes for how the conversation begins, and for the key.
const OPENING: &str = "OPENING";
const KEY: &str = "KEY";

/// Who does the work of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Nobody: the answer is there at once. What is left is making runs.
    Nobody,
    /// Function nodes and an http request node.
    ByHand,
    /// The sidecar, with its own tool.
    Sidecar,
    /// The sidecar, with a tool that is a function node in Node-RED.
    FlowTool,
}

impl Way {
    pub(crate) const ALL: [Self; 4] = [Self::Nobody, Self::ByHand, Self::Sidecar, Self::FlowTool];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nobody => "nothing",
            Self::ByHand => "by hand",
            Self::Sidecar => "sidecar, its own tool",
            Self::FlowTool => "sidecar, a flow as tool",
        }
    }

    pub(crate) fn has_sidecar(self) -> bool {
        matches!(self, Self::Sidecar | Self::FlowTool)
    }
}

/// What a flow is to know of the world.
pub(crate) struct Surroundings<'a> {
    /// The base address of the model.
    pub(crate) model: &'a str,
    /// The key of the model.
    pub(crate) key: &'a str,
    /// The first question, as the product asks it.
    pub(crate) opening: &'a Value,
    /// The address of the sidecar, and what lets one in.
    pub(crate) sidecar: Option<(&'a str, &'a str)>,
}

/// A flow, and the credentials that Node-RED keeps beside it.
pub(crate) struct Deployed {
    pub(crate) flow: Value,
    pub(crate) credentials: Value,
}

/// The flow for a way.
pub(crate) fn flow(way: Way, around: &Surroundings<'_>) -> Result<Deployed, Failure> {
    let first = match way {
        Way::Nobody => "nobody",
        Way::ByHand => "begin",
        Way::Sidecar | Way::FlowTool => "agent",
    };
    let mut order = node("order", "http in", &json!([["drive"]]));
    order["url"] = ORDERS.into();
    order["method"] = "post".into();
    let mut nodes = vec![
        json!({"id": "t", "type": "tab", "label": way.name()}),
        order,
        function("drive", DRIVE, &json!([[first], ["reply"]])),
        node("reply", "http response", &json!([])),
    ];
    let mut credentials = json!({});
    match way {
        Way::Nobody => {
            let answer = "msg.payload = \"The tax is 231.90.\";\nreturn msg;";
            nodes.push(function("nobody", answer, &json!([["drive"]])));
        }
        Way::ByHand => nodes.extend(by_hand(around)),
        Way::Sidecar | Way::FlowTool => {
            let (url, token) = around.sidecar.ok_or("a flow with an agent needs a sidecar")?;
            nodes.extend(with_agent(way, around.model, url));
            credentials = json!({"runtime": {"token": token}, "model": {"apiKey": around.key}});
        }
    }
    Ok(Deployed { flow: Value::Array(nodes), credentials })
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

/// The loop that somebody writes who has Node-RED and a model, with nothing in it that could be left out.
fn by_hand(around: &Surroundings<'_>) -> [Value; 5] {
    let filled = |code: &str| code.replace(OPENING, &around.opening.to_string()).replace(KEY, around.key);
    let mut request = node("request", "http request", &json!([["decide"]]));
    request["method"] = "POST".into();
    request["url"] = format!("{}/chat/completions", around.model).into();
    // A parsed object comes back, and the connection stays open.
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
fn with_agent(way: Way, base: &str, url: &str) -> Vec<Value> {
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
    if way == Way::FlowTool {
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
    use super::{Surroundings, Way, flow};
    use serde_json::{Value, json};

    fn nodes(way: Way) -> Vec<Value> {
        let opening = json!({"model": "m", "messages": [{"role": "system", "content": "\"`OPEN"}, {"role": "user", "content": "?"}]});
        let around = Surroundings {
            model: "http://127.0.0.1:1/v1",
            key: "sk-1",
            opening: &opening,
            sidecar: Some(("http://127.0.0.1:2", "token")),
        };
        flow(way, &around).unwrap().flow.as_array().unwrap().clone()
    }

    #[test]
    fn every_wire_leads_to_a_node() {
        for way in Way::ALL {
            let nodes = nodes(way);
            let ids: Vec<&str> = nodes.iter().map(|node| node["id"].as_str().unwrap()).collect();
            let ports = nodes.iter().filter_map(|node| node["wires"].as_array()).flatten();
            for wire in ports.flat_map(|port| port.as_array().unwrap()) {
                assert!(ids.contains(&wire.as_str().unwrap()), "{way:?}: {wire}");
            }
        }
    }

    #[test]
    fn what_stands_for_something_is_filled_in() {
        for node in nodes(Way::ByHand) {
            let code = node["func"].as_str().unwrap_or_default();
            assert!(!code.contains("= OPENING") && !code.contains("Bearer KEY"), "{code}");
        }
    }

    #[test]
    fn the_tool_is_the_same_code_by_hand_and_as_a_flow() {
        let code = |way: Way| {
            nodes(way).into_iter().find(|node| node["id"] == "calculate").map(|node| node["func"].clone())
        };
        assert!(code(Way::ByHand).is_some());
        assert_eq!(code(Way::ByHand), code(Way::FlowTool));
    }
}
