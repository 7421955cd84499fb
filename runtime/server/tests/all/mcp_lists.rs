//! The lists of the sidecar's MCP server: ids of tools, changes, completions, and headers of arguments.

use crate::bridge::NodeRed;
use crate::kit::{Setup, TOKEN, TestSidecar, eventually, plain_flow};
use crate::mcp_server::{LEGACY, Legacy, MODERN, Modern, messages, names, post, read_more, read_until};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

async fn listed(sidecar: &TestSidecar) -> Vec<String> {
    let list = Modern::new(sidecar).call("tools/list", json!({})).await;
    names(&list).into_iter().map(str::to_owned).collect()
}

/// A cached list of a client must never lead to another agent.
// SECURITY: mcp-key
#[tokio::test]
async fn a_tool_keeps_its_id_when_a_node_red_disconnects() {
    let sidecar = Setup::default().start(None).await;
    let mut first = NodeRed::new(&sidecar, "one", "b1").await;
    first.deploy(plain_flow()).await;
    assert_eq!(listed(&sidecar).await, ["agent__Counting"]);
    let mut second = NodeRed::new(&sidecar, "two", "b1").await;
    second.deploy(plain_flow()).await;
    assert_eq!(listed(&sidecar).await, ["agent__Counting-one", "agent__Counting-two"]);
    drop(first);
    let is_gone = || async { (listed(&sidecar).await.len() == 1).then_some(()) };
    eventually("the first Node-RED is gone", is_gone).await;
    assert_eq!(listed(&sidecar).await, ["agent__Counting-two"]);
    let client = Modern::new(&sidecar);
    let call = |name: &str| json!({"name": name, "arguments": {"input": "?"}});
    for gone in ["agent.Counting", "agent__Counting", "agent.Counting-one", "agent__Counting-one"] {
        let refused = client.call("tools/call", call(gone)).await;
        assert_eq!(refused["error"]["data"]["code"], "NOT_FOUND", "{gone}");
    }
    for name in ["agent__Counting-two", "agent.Counting-two"] {
        let called = client.call("tools/call", call(name)).await;
        assert_eq!(called["result"]["content"][0]["text"], "42", "{called}");
    }
}

#[tokio::test]
async fn the_flow_of_the_sidecar_has_the_plain_id() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let mut node_red = NodeRed::new(&sidecar, "ho.me", "b1").await;
    node_red.deploy(plain_flow()).await;
    assert_eq!(listed(&sidecar).await, ["agent__Counting", "agent__Counting-ho-me"]);
}

/// Agents with these ids and names. Each answers with its id.
fn agents(names: &[(&str, &str)]) -> Value {
    let mut nodes = vec![json!({"id": "tab", "type": "tab", "label": "Home"})];
    for (id, name) in names {
        let model = format!("model-{id}");
        nodes.push(json!({"id": id, "type": "ai-agent", "z": "tab", "name": name, "model": model, "wires": [[], []]}));
        nodes
            .push(json!({"id": model, "type": "scripted-model", "z": "tab", "replies": [id], "wires": [[]]}));
    }
    Value::Array(nodes)
}

/// Which agent answers to each listed name.
async fn answers(sidecar: &TestSidecar) -> BTreeMap<String, String> {
    let client = Modern::new(sidecar);
    let mut answers = BTreeMap::new();
    for name in listed(sidecar).await {
        let called = client.call("tools/call", json!({"name": name, "arguments": {"input": "?"}})).await;
        answers.insert(name, called["result"]["content"][0]["text"].as_str().unwrap().to_owned());
    }
    answers
}

/// OpenAI and others refuse requests with other names. A client that keeps a name must reach the same agent later.
#[tokio::test]
async fn every_provider_takes_the_names_and_they_stay() {
    let long = "Answers questions about pumps, valves, pipes and everything else that leaks ".repeat(2);
    let named = [
        ("a", "Counting"),
        ("b", "Counting"),
        ("c", "Weather agent"),
        ("d", "天気"),
        ("e", "天候"),
        ("f", "v1.2"),
        ("g", &*format!("{long}1")),
        ("h", &*format!("{long}2")),
        ("i", ""),
    ];
    let sidecar = TestSidecar::start(agents(&named)).await;
    let before = answers(&sidecar).await;
    let is_taken = |name: &String| {
        name.len() <= 64
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    assert!(before.keys().all(is_taken), "{before:#?}");
    let ids: BTreeSet<&str> = before.values().map(String::as_str).collect();
    assert_eq!(ids, named.iter().map(|(id, _)| *id).collect());
    for (name, id) in [("agent__Weather-agent", "c"), ("agent__i", "i")] {
        assert_eq!(before.get(name).map(String::as_str), Some(id), "{before:#?}");
    }
    // Neither the order of the nodes nor further ones change a name.
    let mut other: Vec<(&str, &str)> = named.iter().rev().copied().collect();
    other.insert(0, ("j", "v1-2"));
    other.insert(0, ("k", "天天"));
    let revision = sidecar.revision().await;
    let deployment = json!({"flows": agents(&other), "revision": revision});
    sidecar.post("/api/deployment", deployment).await.ok(200);
    let after = answers(&sidecar).await;
    assert_eq!(after.len(), named.len() + 2);
    assert!(before.iter().all(|(name, id)| after.get(name) == Some(id)), "{before:#?} {after:#?}");
}

#[tokio::test]
async fn agents_with_the_same_name_have_different_names_in_the_list() {
    let sidecar = TestSidecar::start(agents(&[("one", "Counting"), ("two", "Counting")])).await;
    let both = answers(&sidecar).await;
    let (of_one, _) = both.iter().find(|(_, id)| *id == "one").unwrap();
    assert!(of_one.starts_with("agent__Counting_"), "{both:#?}");
    // The ids with dots, and what earlier versions made of them, are for the nodes in their order.
    let client = Modern::new(&sidecar);
    let call = |name: &str| json!({"name": name, "arguments": {"input": "?"}});
    for (name, id) in [
        ("agent.Counting", "one"),
        ("agent__Counting", "one"),
        ("Counting", "one"),
        ("agent.Counting-2", "two"),
        ("agent__Counting-2", "two"),
    ] {
        let called = client.call("tools/call", call(name)).await;
        assert_eq!(called["result"]["content"][0]["text"], id, "{name}: {called}");
    }
    // Alone, an agent has the plain name, and answers to the one that it had before.
    let revision = sidecar.revision().await;
    let deployment = json!({"flows": agents(&[("one", "Counting")]), "revision": revision});
    sidecar.post("/api/deployment", deployment).await.ok(200);
    assert_eq!(listed(&sidecar).await, ["agent__Counting"]);
    let called = client.call("tools/call", call(of_one)).await;
    assert_eq!(called["result"]["content"][0]["text"], "one", "{called}");
}

/// Reads until nothing comes for a while.
async fn read_rest(tcp: &mut TcpStream) -> String {
    let mut seen = Vec::new();
    while let Ok(Ok(1..)) = timeout(Duration::from_millis(800), tcp.read_buf(&mut seen)).await {}
    String::from_utf8_lossy(&seen).into_owned()
}

/// A client that says again and again that it is ready gets each change once.
#[tokio::test]
async fn a_change_is_announced_once() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let client = Legacy::open(&sidecar, TOKEN).await;
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for _ in 0..20 {
        assert_eq!(client.post(ready.clone()).send().await.status, 202);
    }
    let stream = sidecar.request("GET", "/mcp").token(TOKEN).header("accept", "text/event-stream");
    let (mut tcp, _) = read_until(&client.with_session(stream), "\r\n\r\n").await;
    let mut flows = plain_flow();
    for name in ["Second", "Third"] {
        flows[2]["name"] = json!(name);
        let revision = sidecar.revision().await;
        sidecar.post("/api/deployment", json!({"flows": flows, "revision": revision})).await.ok(200);
        let mut seen = read_more(&mut tcp, "list_changed").await;
        seen.push_str(&read_rest(&mut tcp).await);
        assert_eq!(seen.matches("notifications/tools/list_changed").count(), 1, "{seen}");
        assert!(!seen.contains("resources/list_changed"), "{seen}");
    }
}

#[tokio::test]
async fn what_is_declared_is_answered() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let started = sidecar.run(json!({"payload": "?"})).await;
    let run = started["runs"][0]["runId"].as_str().unwrap();
    let client = Modern::new(&sidecar);
    let discovered = client.call("server/discover", json!({})).await;
    let mut declared: Vec<&String> =
        discovered["result"]["capabilities"].as_object().unwrap().keys().collect();
    declared.sort();
    assert_eq!(declared, ["completions", "prompts", "resources", "tools"]);
    assert_eq!(discovered["result"]["capabilities"]["resources"]["listChanged"], Value::Null);
    assert_eq!(client.call("prompts/list", json!({})).await["result"]["prompts"], json!([]));
    let prompt = client.call("prompts/get", json!({"name": "x"})).await;
    assert_eq!(
        (&prompt["error"]["code"], &prompt["error"]["data"]["code"]),
        (&json!(-32602), &json!("NOT_FOUND"))
    );
    let complete = async |uri: &str, name: &str, value: &str| {
        let argument = json!({"name": name, "value": value});
        let params = json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": argument});
        client.call("completion/complete", params).await
    };
    let runs = complete("redflow://runs/{run}", "run", &run[..4]).await;
    assert_eq!(runs["result"]["completion"]["values"], json!([run]), "{runs}");
    let none = complete("redflow://runs/{run}", "run", "no-such").await;
    assert_eq!(none["result"]["completion"]["values"], json!([]));
    let refused = complete("redflow://runs/{run}", "other", "").await;
    assert_eq!(refused["error"]["data"]["code"], "REQUEST_INVALID", "{refused}");
}

/// Since 2026-07-28, an argument whose schema names a header is sent in that header too.
#[tokio::test]
async fn a_header_of_an_argument_must_agree_with_it() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let schema =
        json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let tool = json!({"id": "test.shop", "kind": "http", "description": "Orders.", "method": "GET",
        "url": "https://example.org/x", "effect": "read", "mcp": true, "inputSchema": schema});
    sidecar.post("/api/tools", tool).await.ok(201);
    let client = Modern::new(&sidecar);
    let call = json!({"name": "test.shop", "arguments": {"region": "süd"}});
    for (header, is_right) in [
        (None, false),
        (Some("nord"), false),
        (Some("=?base64?bm9yZA==?="), false),
        (Some("=?base64?c8O8ZA==?="), true),
    ] {
        let request = client.request("tools/call", call.clone());
        let request = match header {
            Some(value) => request.header("mcp-param-region", value),
            None => request,
        };
        let reply = request.send().await;
        let answer = messages(&reply).pop().unwrap();
        if is_right {
            assert_eq!(answer["result"]["structuredContent"], json!({"region": "süd"}), "{answer}");
        } else {
            assert_eq!(
                (reply.status, &answer["error"]["code"]),
                (400, &json!(-32020)),
                "{header:?}: {answer}"
            );
        }
    }
    // Earlier versions have no such headers.
    let client = Legacy::open(&sidecar, TOKEN).await;
    let called = client.call(1, "tools/call", call).await.pop().unwrap();
    assert_eq!(called["result"]["isError"], false, "{called}");
}

#[tokio::test]
async fn a_wrong_cursor_is_refused() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let client = Modern::new(&sidecar);
    for method in ["tools/list", "resources/list"] {
        let refused = client.call(method, json!({"cursor": "no-such-entry"})).await;
        assert_eq!(refused["error"]["code"], -32602, "{method}");
    }
    let after = client.call("tools/list", json!({"cursor": "agent__Counting"})).await;
    assert_eq!(after["result"]["tools"], json!([]));
    // A client of either version reads the same list.
    assert_ne!(LEGACY, MODERN);
    let unknown =
        post(&sidecar, TOKEN, json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).send().await;
    assert_eq!(unknown.status / 100, 4);
}

/// A client refuses a result without the structured content that the schema of its tool promises.
#[tokio::test]
async fn only_an_agent_with_json_promises_its_schema() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]});
    for format in ["text", "json", "full"] {
        let flow = json!([
            {"id": "tab", "type": "tab", "label": "Home"},
            {"id": "agent", "type": "ai-agent", "z": "tab", "name": "Counting", "model": "model",
             "outputSchema": schema, "outputFormat": format, "wires": [[], []]},
            {"id": "model", "type": "scripted-model", "z": "tab", "replies": [r#"{"n": 4}"#], "wires": [[]]},
        ]);
        let sidecar = TestSidecar::start(flow).await;
        let client = Modern::new(&sidecar);
        let list = client.call("tools/list", json!({})).await;
        let promised = &list["result"]["tools"][0]["outputSchema"];
        let call = json!({"name": "agent.Counting", "arguments": {"input": "?"}});
        let called = client.call("tools/call", call).await;
        let result = &called["result"];
        assert_eq!(result["isError"], json!(false), "{format}: {called}");
        match format {
            "json" => {
                assert_eq!((promised, &result["structuredContent"]), (&schema, &json!({"n": 4})), "{called}");
            }
            "text" => {
                assert_eq!(
                    (promised, &result["structuredContent"]),
                    (&Value::Null, &Value::Null),
                    "{called}"
                );
                assert_eq!(result["content"][0]["text"], r#"{"n": 4}"#);
            }
            _ => assert_eq!(promised, &Value::Null, "{list}"),
        }
    }
}

#[tokio::test]
async fn a_page_of_tools_has_200_entries() {
    const PAGE: usize = 200;
    let setup = Setup::default();
    let tool = |number: usize| {
        json!({"id": format!("test.t{number:03}"), "kind": "http", "description": "Reads.", "method": "GET",
            "url": "https://example.org/x", "effect": "read", "mcp": true, "inputSchema": {"type": "object"}})
    };
    let tools: Vec<Value> = (0..2 * PAGE).map(tool).collect();
    std::fs::write(setup.dir.path().join("tools.json"), json!({"tools": tools}).to_string()).unwrap();
    let sidecar = setup.start(Some(plain_flow())).await;
    let client = Modern::new(&sidecar);
    let (mut seen, mut pages, mut cursor) = (Vec::new(), Vec::new(), json!(null));
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
        let mut list = client.call("tools/list", params).await;
        pages.push(names(&list).len());
        seen.extend(names(&list).into_iter().map(str::to_owned));
        cursor = list["result"]["nextCursor"].take();
        if cursor.is_null() {
            break;
        }
    }
    let expected = (0..2 * PAGE).map(|number| format!("test__t{number:03}"));
    let expected: Vec<String> = std::iter::once("agent__Counting".to_owned()).chain(expected).collect();
    assert_eq!((pages, seen), (vec![PAGE, PAGE, 1], expected));
}
