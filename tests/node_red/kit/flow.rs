//! Builds flows for Node-RED.

use super::sidecar::{Sidecar, TOKEN};
use super::witness::Witness;
use serde_json::{Map, Value, json};

/// Nodes on the tab `tab`, and the runtime node `runtime`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flow(pub(crate) Vec<Value>);

/// Adds or replaces properties of a value.
pub(crate) fn with(mut value: Value, more: Value) -> Value {
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    value
}

/// The action of a model that calls a tool.
pub(crate) fn tool_call(tool: &str, input: Value) -> Value {
    json!({"action": "tool", "tool": tool, "input": input, "confidence": 0.8, "message": format!("asking {tool}")})
}

/// The action of a model that ends a run.
pub(crate) fn final_answer(message: &str) -> Value {
    json!({"action": "final", "message": message, "confidence": 0.95})
}

impl Flow {
    /// A tab without a runtime.
    pub(crate) fn bare() -> Self {
        Self(vec![json!({"id": "tab", "type": "tab", "label": "Test"})])
    }

    /// A tab, and a runtime node that uses the cable of a sidecar.
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

    /// The standard agent: `ask` → `agent` with `model`. It posts results to the witness at `/results`, answers of the
    /// model at `/answers`, errors at `/caught` and completions at `/completed`. Without tools it gets a calculator.
    pub(crate) fn standard_agent(self, witness: &Witness, tools: &[&str], tool_nodes: &[&str]) -> Self {
        if tools.is_empty() {
            return self.standard_agent(witness, &["calculator"], &["calc"]).calculator();
        }
        self.inject("ask", "How warm is it?", "agent")
            .agent("agent", tools, json!([["model"], tool_nodes, [], ["result"], ["answer"]]))
            .post_to(witness, "result", "/results")
            .post_to(witness, "answer", "/answers")
            .node("catch", "catch", json!([["caught"]]), json!({"scope": ["agent"], "uncaught": false}))
            .post_to(witness, "caught", "/caught")
            .node("complete", "complete", json!([["completed"]]), json!({"scope": ["agent"]}))
            .post_to(witness, "completed", "/completed")
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

    /// A node that posts each message to a path of the witness, without live objects.
    pub(crate) fn post_to(self, witness: &Witness, id: &str, path: &str) -> Self {
        let post = format!("{id}-post");
        let code =
            "const copy = Object.assign({}, msg); delete copy.req; delete copy.res; return {payload: copy};";
        self.function(id, code, &[&post]).post(&post, &witness.url(path), &[])
    }

    /// A flow tool. Its first node is `to`.
    pub(crate) fn flow_tool(self, id: &str, name: &str, effect: &str, to: &[&str]) -> Self {
        let schema = json!({"type": "object", "properties": {"room": {"type": "string"}}, "additionalProperties": false});
        let props = json!({"toolName": name, "description": "A test.", "effect": effect, "timeout": 30_000,
                           "inputSchema": schema.to_string()});
        self.node(id, "flow-tool", json!([to]), props)
    }

    /// A flow tool that posts input and key to the witness at `/<name>` and returns the response.
    pub(crate) fn http_tool(self, witness: &Witness, name: &str, effect: &str) -> Self {
        let [tool, wrap, post, back] =
            ["tool", "wrap", "post", "return"].map(|part| format!("{name}-{part}"));
        let code = "msg.payload = {input: msg.payload, key: msg._agentCore.idempotencyKey}; return msg;";
        self.flow_tool(&tool, name, effect, &[&wrap])
            .function(&wrap, code, &[&post])
            .post(&post, &witness.url(&format!("/{name}")), &[&back])
            .node(&back, "flow-tool-return", json!([]), json!({}))
    }

    /// A flow tool that is one function node.
    pub(crate) fn function_tool(self, name: &str, code: &str) -> Self {
        let [tool, body, back] = ["tool", "body", "return"].map(|part| format!("{name}-{part}"));
        self.flow_tool(&tool, name, "read", &[&body]).function(&body, code, &[&back]).node(
            &back,
            "flow-tool-return",
            json!([]),
            json!({}),
        )
    }

    /// Changes properties of a node.
    pub(crate) fn change(mut self, id: &str, props: Value) -> Self {
        let node = self.0.iter_mut().find(|node| node["id"] == id).unwrap_or_else(|| panic!("no {id}"));
        *node = with(node.clone(), props);
        self
    }

    /// Removes a node.
    pub(crate) fn without(mut self, id: &str) -> Self {
        self.0.retain(|node| node["id"] != id);
        self
    }

    /// The flow as a later deploy of the editor sends it: without credentials.
    pub(crate) fn without_credentials(mut self) -> Self {
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
