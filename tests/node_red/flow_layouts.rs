//! Agents and tools in subflows, behind links, on other tabs and in chats.

use crate::client::Request;
use crate::kit::eventually;
use crate::kit::flow::{final_answer, tool_call};
use crate::kit::on_the_newer_line;
use crate::kit::release_line::{ReleaseLine, example};
use crate::kit::scene::{MODEL, Scene};
use crate::kit::sidecar::TOKEN;
use crate::kit::witness::completion;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

on_the_newer_line! {
    agents_work_in_subflows
    a_tool_works_over_link_nodes
    the_http_example_answers
    the_chat_example_answers
}

async fn agents_work_in_subflows(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let inside = |id: &str, kind: &str, wires: Value, props: Value| {
        let mut node =
            json!({"id": id, "type": kind, "z": "sub", "name": "", "x": 100, "y": 100, "wires": wires});
        node.as_object_mut().unwrap().extend(props.as_object().unwrap().clone());
        node
    };
    let schema = json!({"type": "object"}).to_string();
    let mut flow = scene
        .flow()
        .inject("ask", "first", "one")
        .inject("ask-two", "second", "two")
        .node("one", "subflow:sub", json!([["result"]]), json!({"env": []}))
        .node("two", "subflow:sub", json!([["result"]]), json!({"env": []}))
        .post_to(&scene.witness, "result", "/results");
    flow.0.extend([
        json!({"id": "sub", "type": "subflow", "name": "Desk", "info": "", "env": [],
               "in": [{"x": 50, "y": 50, "wires": [{"id": "agent"}]}],
               "out": [{"x": 400, "y": 50, "wires": [{"id": "agent", "port": 3}]}]}),
        inside("agent", "agent-core", json!([["model"], ["tool"], [], [], []]),
               json!({"runtime": "runtime", "strategy": "react", "maxIterations": 5, "allowedTools": ["where"],
                      "stopConditions": [], "debug": false})),
        inside("model", "openai-model", json!([["agent"]]),
               json!({"model": "gpt-4.1-mini", "baseURL": scene.witness.url("/v1"), "maxRetries": 0,
                      "credentials": {"apiKey": "sk-of-a-subflow"}})),
        inside("tool", "flow-tool", json!([["body"]]),
               json!({"toolName": "where", "description": "Where.", "effect": "read", "timeout": 30000, "inputSchema": schema})),
        inside("body", "function", json!([["back"]]),
               json!({"func": "msg.payload = env.get('NR_SUBFLOW_ID'); return msg;", "outputs": 1, "timeout": 0,
                      "initialize": "", "finalize": "", "libs": []})),
        inside("back", "flow-tool-return", json!([]), json!({})),
    ]);
    scene.deploy(&flow).await;
    for (round, (button, place)) in [("ask", "one"), ("ask-two", "two")].into_iter().enumerate() {
        let script = [tool_call("where", json!({})), final_answer(place)];
        scene.witness.set_answers(MODEL, script.each_ref().map(completion));
        scene.node_red.admin.inject(button).await;
        let results = scene.witness.wait_for_bodies("/results", round + 1).await;
        assert_eq!(results[round]["payload"], place, "{results:#?}");
        let asked = scene.witness.wait_for_bodies(MODEL, 2 * (round + 1)).await;
        // The tool of this subflow instance was called, not that of the other.
        assert!(asked[2 * round + 1].to_string().contains(place), "{:#}", asked[2 * round + 1]);
    }
    assert_eq!(
        scene.witness.requests(MODEL)[0].headers.get("authorization").map(String::as_str),
        Some("Bearer sk-of-a-subflow")
    );
}

async fn a_tool_works_over_link_nodes(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let mut flow = scene
        .flow()
        .standard_agent(&scene.witness, &["far"], &["far-tool"])
        .scripted(&[tool_call("far", json!({})), final_answer("Back again.")])
        .flow_tool("far-tool", "far", "read", &["out"])
        .node("out", "link out", json!([]), json!({"mode": "link", "links": ["in"]}))
        .node("in", "link in", json!([["call"]]), json!({"links": ["out"]}))
        .change("in", json!({"z": "other"}))
        .node(
            "call",
            "link call",
            json!([["body"]]),
            json!({"links": ["served"], "linkType": "static", "timeout": "30"}),
        )
        .change("call", json!({"z": "other"}))
        .node("served", "link in", json!([["serve"]]), json!({"links": []}))
        .function("serve", "msg.payload = 'served'; return msg;", &["return"])
        .node("return", "link out", json!([]), json!({"mode": "return", "links": []}))
        .post_to(&scene.witness, "seen", "/seen")
        .function("body", "return msg;", &["back", "seen"])
        .change("body", json!({"z": "other", "wires": [["back", "seen-link"]]}))
        .node("seen-link", "link out", json!([]), json!({"mode": "link", "links": ["seen-in"]}))
        .change("seen-link", json!({"z": "other"}))
        .node("seen-in", "link in", json!([["seen"]]), json!({"links": ["seen-link"]}))
        .node("back", "flow-tool-return", json!([]), json!({}))
        .change("back", json!({"z": "other"}));
    flow.0.push(json!({"id": "other", "type": "tab", "label": "Elsewhere"}));
    scene.deploy(&flow).await;
    assert_eq!(scene.ask().await["payload"], "Back again.");
    assert_eq!(scene.witness.wait_for_bodies("/seen", 1).await[0]["payload"], "served");
    assert_eq!(scene.node_red.count_log_lines("REPLY_DROPPED"), 0);
}

/// An example, only with another address of its sidecar.
fn imported(name: &str, url: &str) -> Vec<Value> {
    let mut nodes: Vec<Value> = example(name).as_array().unwrap().clone();
    for node in nodes.iter_mut().filter(|node| node["type"] == "redflow-runtime") {
        let ours = json!({"mode": "remote", "url": url, "credentials": {"token": TOKEN}});
        node.as_object_mut().unwrap().extend(ours.as_object().unwrap().clone());
    }
    nodes
}

fn first<'a>(nodes: &'a [Value], kind: &str) -> &'a Value {
    nodes.iter().find(|node| node["type"] == kind).unwrap_or_else(|| panic!("no {kind}"))
}

async fn the_http_example_answers(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let mut nodes = imported("03-http-agent.json", &scene.sidecar.url());
    let endpoint = first(&nodes, "http in").clone();
    scene.node_red.deploy(&Value::Array(nodes.clone())).await;
    let path =
        format!("{}?session=ada&question=What%20is%206%20times%207", endpoint["url"].as_str().unwrap());
    let ask = async || Request::new(scene.node_red.addr(), "GET", &path).send().await;
    let reply = ask().await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(String::from_utf8_lossy(&reply.body), "6 times 7 is 42.");
    // A failed run answers with the status of its code.
    let model = nodes.iter().position(|node| node["type"] == "scripted-model").unwrap();
    nodes[model]["replies"] = json!([{"action": "tool", "tool": "other", "input": {}, "confidence": 1}]);
    scene.node_red.deploy(&Value::Array(nodes.clone())).await;
    let reply = ask().await;
    assert_eq!((reply.status, &reply.json()["code"]), (502, &json!("TOOL_NOT_ALLOWED")), "{reply:?}");
    // So does an agent that cannot run.
    nodes[model] = json!({"id": nodes[model]["id"], "type": "openai-model", "z": nodes[model]["z"], "x": 1,
                          "y": 1, "wires": [[]]});
    scene.node_red.deploy(&Value::Array(nodes.clone())).await;
    let reply = ask().await;
    assert_eq!((reply.status, &reply.json()["code"]), (500, &json!("MODEL_KEY_MISSING")), "{reply:?}");
    // The Catch node answers for an agent without a runtime, because no run begins.
    let agent = nodes.iter().position(|node| node["type"] == "agent-core").unwrap();
    nodes[agent]["runtime"] = json!("gone");
    scene.node_red.deploy(&Value::Array(nodes)).await;
    let reply = ask().await;
    assert_eq!(reply.status, 500, "{reply:?}");
    let text = String::from_utf8_lossy(&reply.body);
    assert!(text.contains("runtime"), "{text}");
}

async fn the_chat_example_answers(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let nodes = imported("04-chat.json", &scene.sidecar.url());
    let chat = first(&nodes, "chat-node")["id"].as_str().unwrap().to_owned();
    scene.node_red.deploy(&Value::Array(nodes)).await;
    let path = format!("/redflow/chat/{chat}");
    for turn in 1..=2 {
        let question =
            scene.node_red.admin.request("POST", &path).json(json!({"message": "What is 17 times 3?"}));
        question.send().await.ok(200);
        // The history has every question and every answer once.
        let count =
            |history: &[Value], text: &str| history.iter().filter(|item| item["content"] == text).count();
        let history = eventually("an answer", async || {
            let history = scene.node_red.admin.ask("GET", &path).await.ok(200);
            let history = history["history"].as_array().unwrap().clone();
            (count(&history, "17 times 3 is 51.") >= turn).then_some(history)
        })
        .await;
        assert_eq!(count(&history, "What is 17 times 3?"), turn, "{history:#?}");
        assert_eq!(count(&history, "17 times 3 is 51."), turn, "{history:#?}");
        let runs = scene.sidecar.runs().await.len();
        assert_eq!(runs, turn, "an answer must start no run");
    }
}
