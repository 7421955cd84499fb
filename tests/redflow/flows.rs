//! Flows as the Redflow UI posts them: tabs with wires, position and project, ids of type and time, shortened wires, and
//! the return wires that the UI draws itself.

use crate::azure::{DEPLOYMENT, VERSION};
use serde_json::{Value, json};
use std::collections::HashMap;

pub(crate) const TAB: &str = "tab-1766000000000";
pub(crate) const INJECT: &str = "inject-1766000000001";
pub(crate) const AGENT: &str = "agent-core-1766000000002";
pub(crate) const MODEL: &str = "model.azure.openai-1766000000003";
pub(crate) const DEBUG: &str = "debug-1766000000004";
pub(crate) const CHAT: &str = "chat-node-1766000000005";
pub(crate) const CALCULATOR: &str = "calculator-tool-1766000000006";
pub(crate) const CHANGE: &str = "change-1766000000007";
pub(crate) const MEMORY: &str = "buffer-memory-1766000000008";
pub(crate) const INJECT2: &str = "inject-1766000000101";
pub(crate) const AGENT2: &str = "agent-core-1766000000102";
pub(crate) const MODEL2: &str = "model.azure.openai-1766000000103";
pub(crate) const DEBUG2: &str = "debug-1766000000104";
pub(crate) const CHANGE2: &str = "change-1766000000107";

/// A readable form of an id: the type, and `2` for the second of a type.
pub(crate) fn short(id: &str) -> String {
    match id.split_once("-17660000000") {
        Some((kind, _)) => kind.to_owned(),
        None => id.split_once("-17660000001").map_or(id.to_owned(), |(kind, _)| format!("{kind} 2")),
    }
}

/// The nodes of a flow.
#[derive(Debug, Clone)]
pub(crate) struct Flow(pub(crate) Vec<Value>);

impl Flow {
    /// A tab with these nodes.
    pub(crate) fn new(nodes: impl IntoIterator<Item = Value>) -> Self {
        let tab = json!({"id": TAB, "type": "tab", "label": "Flow 1", "disabled": false, "info": "", "x": 0, "y": 0,
                         "wires": [], "projectId": null});
        Self(std::iter::once(tab).chain(nodes).collect())
    }

    pub(crate) fn models(&self) -> impl Iterator<Item = &str> {
        let models = self.0.iter().filter(|node| node["type"] == "model.azure.openai");
        models.filter_map(|node| node["id"].as_str())
    }

    /// A node to change.
    #[track_caller]
    pub(crate) fn node(&mut self, id: &str) -> &mut Value {
        self.0.iter_mut().find(|node| node["id"] == id).unwrap()
    }
}

/// The type of every node.
pub(crate) fn ids_of(flow: &Flow) -> HashMap<String, String> {
    let text = |node: &Value, name: &str| node[name].as_str().unwrap().to_owned();
    flow.0.iter().map(|node| (text(node, "id"), text(node, "type"))).collect()
}

fn node(id: &str, more: Value) -> Value {
    let mut node = json!({"id": id, "type": short(id).trim_end_matches(" 2"), "z": TAB, "name": ""});
    let position = json!({"x": 447.779_479_326_186_8, "y": 227.013_782_542_113_32});
    for more in [more, position] {
        node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    }
    node
}

/// An inject node with a text.
pub(crate) fn inject(id: &str, payload: &str, to: &str) -> Value {
    node(
        id,
        json!({"type": "inject", "props": [{"p": "payload"}], "repeat": "", "crontab": "", "once": false, "onceDelay": 0.1,
               "topic": "", "payload": payload, "payloadType": "str", "wires": [[to]]}),
    )
}

/// An agent without settings, as a new one on the canvas.
pub(crate) fn fresh_agent(id: &str, wires: Value) -> Value {
    node(id, json!({"wires": wires}))
}

/// An agent with settings.
pub(crate) fn agent(id: &str, tools: &[&str], wires: Value) -> Value {
    node(
        id,
        json!({"name": "Agent Core", "strategy": "react", "maxIterations": 3, "allowedTools": tools,
               "stopConditions": [{"type": "final_answer"}], "debug": false, "wires": wires}),
    )
}

/// A model, with the return wire that the UI draws.
pub(crate) fn model(id: &str, endpoint: &str, agent: &str) -> Value {
    node(
        id,
        json!({"name": "Azure OpenAI", "endpoint": endpoint, "deployment": DEPLOYMENT,
               "apiVersion": VERSION, "credentialId": "", "temperature": 0, "maxTokens": 500, "timeoutMs": 15000,
               "wires": [[agent]]}),
    )
}

pub(crate) fn debug(id: &str) -> Value {
    node(
        id,
        json!({"name": "Resultado", "active": true, "tosidebar": true, "console": false, "tostatus": false,
               "complete": "payload", "targetType": "msg", "wires": []}),
    )
}

pub(crate) fn chat(id: &str, agent: &str) -> Value {
    node(id, json!({"name": "Chat", "maxHistory": 100, "wires": [[agent]]}))
}

pub(crate) fn calculator(agent: &str) -> Value {
    node(CALCULATOR, json!({"name": "calculator", "wires": [[agent]]}))
}

/// An ordinary node as a tool. It adds a temperature to its input.
pub(crate) fn lookup(id: &str, name: &str, celsius: &str, agent: &str) -> Value {
    let rules = json!([{"t": "set", "p": "payload.celsius", "pt": "msg", "to": celsius, "tot": "num"}]);
    let schema = json!({"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]});
    node(
        id,
        json!({"name": name, "rules": rules, "action": "", "property": "", "from": "", "to": "", "reg": false,
               "description": format!("Says how warm it is: {name}."), "effect": "read", "inputSchema": schema,
               "wires": [[agent]]}),
    )
}

pub(crate) fn memory() -> Value {
    node(MEMORY, json!({"sessionId": "talk", "wires": []}))
}

/// Inject, an agent without settings, its model, a debug node and a chat.
pub(crate) fn talking(endpoint: &str) -> Flow {
    Flow::new([
        inject(INJECT, "How are you?", AGENT),
        fresh_agent(AGENT, json!([[MODEL], [], [], [DEBUG], [CHAT]])),
        model(MODEL, endpoint, AGENT),
        debug(DEBUG),
        chat(CHAT, AGENT),
    ])
}

/// The same with a calculator.
pub(crate) fn counting(endpoint: &str) -> Flow {
    Flow::new([
        inject(INJECT, "What is 17 * 3?", AGENT),
        agent(AGENT, &["calculator"], json!([[MODEL], [CALCULATOR], [], [DEBUG], [CHAT]])),
        model(MODEL, endpoint, AGENT),
        calculator(AGENT),
        debug(DEBUG),
        chat(CHAT, AGENT),
    ])
}
