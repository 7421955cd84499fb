//! The wires of agents as the UI needs them.
//!
//! The UI takes the length of `wires` for the number of outputs. Its own new agents have none, so a person could not
//! wire them.

use redflow_contract::catalogue::lookup;
use redflow_contract::edge::Role;
use serde_json::{Value, json};

/// The nodes of a flow, as JSON, with an entry in `wires` for every output of an agent.
pub(crate) fn pad_wires(nodes: &str) -> String {
    let mut nodes: Vec<Value> = serde_json::from_str(nodes).unwrap_or_default();
    for node in &mut nodes {
        let declared = node.get("type").and_then(Value::as_str).map(lookup);
        let Some(declared) = declared.filter(|declared| declared.role == Role::Agent) else { continue };
        let outputs = declared.outputs.map_or(0, <[_]>::len);
        let Some(node) = node.as_object_mut() else { continue };
        if let Value::Array(wires) = node.entry("wires").or_insert_with(|| json!([])) {
            wires.resize(wires.len().max(outputs), json!([]));
        }
    }
    serde_json::to_string(&nodes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::pad_wires;
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(node: &Value, wires: Option<Value>) {
        let mut expected = node.clone();
        if let Some(wires) = wires {
            expected["wires"] = wires;
        }
        let padded: Value = serde_json::from_str(&pad_wires(&json!([node]).to_string())).unwrap();
        assert_eq!(padded, json!([expected]));
    }

    #[test]
    fn gives_every_output_of_an_agent_an_entry() {
        let agent = |wires: Value| json!({"id": "a", "type": "agent-core", "x": 0.1, "wires": wires});
        check(&agent(json!([])), Some(json!([[], [], [], [], []])));
        check(&agent(json!([["m"], [], ["d"]])), Some(json!([["m"], [], ["d"], [], []])));
        check(&json!({"id": "a", "type": "agent-core"}), Some(json!([[], [], [], [], []])));
        // Nothing is removed, and what is no list stays.
        check(&agent(json!([[], [], [], [], ["c"], ["more"]])), None);
        check(&agent(json!("none")), None);
        // Other nodes have the outputs that they have.
        check(&json!({"id": "f", "type": "function", "wires": []}), None);
        check(&json!({"id": "t", "type": "tab"}), None);
    }
}
