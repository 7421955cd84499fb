//! Flows as Node-RED gets them.

use super::sidecar::{Sidecar, TOKEN};
use super::witness::Witness;
use serde_json::{Map, Value, json};

/// Nodes on one tab, `tab`, and a runtime, `runtime`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flow(pub(crate) Vec<Value>);

/// A value with more properties, or with other ones.
pub(crate) fn with(mut value: Value, more: Value) -> Value {
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    value
}

/// A call, as a model says it.
pub(crate) fn calls(tool: &str, input: Value) -> Value {
    json!({"action": "tool", "tool": tool, "input": input, "confidence": 0.8, "message": format!("asking {tool}")})
}

/// The end, as a model says it.
pub(crate) fn says(message: &str) -> Value {
    json!({"action": "final", "message": message, "confidence": 0.95})
}

impl Flow {
    /// A tab without a runtime.
    pub(crate) fn bare() -> Self {
        Self(vec![json!({"id": "tab", "type": "tab", "label": "Test"})])
    }

    /// A tab, and the runtime at the end of a sidecar's cable.
    pub(crate) fn new(sidecar: &Sidecar) -> Self {
        Self::bare().runtime(json!({"url": sidecar.url(), "credentials": {"token": TOKEN}}))
    }

    pub(crate) fn runtime(mut self, props: Value) -> Self {
        let plain = json!({"id": "runtime", "type": "redflow-runtime", "mode": "remote"});
        self.0.push(with(plain, props));
        self
    }

    /// A node with its wires.
    pub(crate) fn node(mut self, id: &str, kind: &str, wires: Value, props: Value) -> Self {
        let y = 40 * (self.0.len() + 1);
        let plain = json!({"id": id, "type": kind, "z": "tab", "name": "", "x": 200, "y": y, "wires": wires});
        self.0.push(with(plain, props));
        self
    }

    pub(crate) fn inject(self, id: &str, text: &str, to: &str) -> Self {
        let props = json!({"props": [{"p": "payload"}], "payload": text, "payloadType": "str", "topic": "",
                           "repeat": "", "crontab": "", "once": false, "onceDelay": 0.1});
        self.node(id, "inject", json!([[to]]), props)
    }

    /// An agent. `wires` are those of its five ports.
    pub(crate) fn agent(self, id: &str, tools: &[&str], wires: Value) -> Self {
        let props = json!({"runtime": "runtime", "strategy": "react", "maxIterations": 5, "allowedTools": tools,
                           "stopConditions": [], "debug": false});
        self.node(id, "agent-core", wires, props)
    }

    /// The usual agent: `ask` → `agent` with `model`; its results are told to the witness at `/results`, its answers
    /// at `/answers`, its errors at `/caught`, its ends at `/completed`. Without other tools it has a calculator.
    pub(crate) fn usual(self, witness: &Witness, tools: &[&str], tool_nodes: &[&str]) -> Self {
        if tools.is_empty() {
            return self.usual(witness, &["calculator"], &["calc"]).calculator();
        }
        self.inject("ask", "How warm is it?", "agent")
            .agent("agent", tools, json!([["model"], tool_nodes, [], ["result"], ["answer"]]))
            .told(witness, "result", "/results")
            .told(witness, "answer", "/answers")
            .node("catch", "catch", json!([["caught"]]), json!({"scope": ["agent"], "uncaught": false}))
            .told(witness, "caught", "/caught")
            .node("complete", "complete", json!([["completed"]]), json!({"scope": ["agent"]}))
            .told(witness, "completed", "/completed")
    }

    pub(crate) fn scripted(self, replies: &[Value]) -> Self {
        self.node("model", "scripted-model", json!([["agent"]]), json!({"replies": replies}))
    }

    /// A model behind the witness, at `/v1/chat/completions`.
    pub(crate) fn live(self, witness: &Witness) -> Self {
        let props = json!({"model": "gpt-4.1-mini", "baseURL": witness.url("/v1"), "maxRetries": 0,
                           "credentials": {"apiKey": KEY}});
        self.node("model", "openai-model", json!([["agent"]]), props)
    }

    pub(crate) fn calculator(self) -> Self {
        self.node("calc", "calculator-tool", json!([["agent"]]), json!({}))
    }

    pub(crate) fn function(self, id: &str, code: &str, to: &[&str]) -> Self {
        let props = json!({"func": code, "outputs": 1, "timeout": 0, "noerr": 0, "initialize": "", "finalize": "",
                           "libs": []});
        self.node(id, "function", json!([to]), props)
    }

    pub(crate) fn post(self, id: &str, url: &str, to: &[&str]) -> Self {
        let props = json!({"method": "POST", "ret": "obj", "paytoqs": "ignore", "url": url, "tls": "", "persist": false,
                           "proxy": "", "insecureHTTPParser": false, "authType": "", "senderr": false, "headers": []});
        self.node(id, "http request", json!([to]), props)
    }

    /// Whatever comes to `id` is told to the witness at a path, all of it but live objects.
    pub(crate) fn told(self, witness: &Witness, id: &str, path: &str) -> Self {
        let post = format!("{id}-post");
        let code =
            "const told = Object.assign({}, msg); delete told.req; delete told.res; return {payload: told};";
        self.function(id, code, &[&post]).post(&post, &witness.url(path), &[])
    }

    /// A tool that is a flow. Its first node is `to`.
    pub(crate) fn flow_tool(self, id: &str, name: &str, effect: &str, to: &[&str]) -> Self {
        let schema = json!({"type": "object", "properties": {"room": {"type": "string"}}, "additionalProperties": false});
        let props = json!({"toolName": name, "description": "A test.", "effect": effect, "timeout": 30_000,
                           "inputSchema": schema.to_string()});
        self.node(id, "flow-tool", json!([to]), props)
    }

    /// A tool that asks the witness at `/<name>`, with the input and the key, and returns what it is told.
    pub(crate) fn asking_tool(self, witness: &Witness, name: &str, effect: &str) -> Self {
        let [tool, wrap, post, back] =
            ["tool", "wrap", "post", "return"].map(|part| format!("{name}-{part}"));
        let code = "msg.payload = {input: msg.payload, key: msg._agentCore.idempotencyKey}; return msg;";
        self.flow_tool(&tool, name, effect, &[&wrap])
            .function(&wrap, code, &[&post])
            .post(&post, &witness.url(&format!("/{name}")), &[&back])
            .node(&back, "flow-tool-return", json!([]), json!({}))
    }

    /// A tool that is one function.
    pub(crate) fn coded_tool(self, name: &str, code: &str) -> Self {
        let [tool, body, back] = ["tool", "body", "return"].map(|part| format!("{name}-{part}"));
        self.flow_tool(&tool, name, "read", &[&body]).function(&body, code, &[&back]).node(
            &back,
            "flow-tool-return",
            json!([]),
            json!({}),
        )
    }

    /// Other properties for a node that is there.
    pub(crate) fn changed(mut self, id: &str, props: Value) -> Self {
        let node = self.0.iter_mut().find(|node| node["id"] == id).unwrap_or_else(|| panic!("no {id}"));
        *node = with(node.clone(), props);
        self
    }

    /// Without a node.
    pub(crate) fn without(mut self, id: &str) -> Self {
        self.0.retain(|node| node["id"] != id);
        self
    }

    /// What a deploy from the editor carries later: credentials stay where they are.
    pub(crate) fn again(mut self) -> Self {
        for node in &mut self.0 {
            let _: Option<Value> =
                node.as_object_mut().and_then(|node: &mut Map<_, _>| node.remove("credentials"));
        }
        self
    }

    pub(crate) fn json(&self) -> Value {
        Value::Array(self.0.clone())
    }
}

/// The key of the live model.
pub(crate) const KEY: &str = "sk-the-key-only-the-provider-may-see";
