//! Calls of tools by MCP clients: keys, cancellation, the log of calls, and limits.

use crate::bridge::{NodeRed, flow_tool_flow, returned};
use crate::kit::{Setup, TOKEN, TestSidecar, eventually, plain_flow, token, tool_flow};
use crate::mcp_server::{Legacy, Modern, read_until, runs, slow_call, status_becomes};
use pretty_assertions::assert_eq;
use redflow_contract::api::Scope;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The most calls of agents by one token, and the most calls of tools.
const AGENT_CALLS: usize = 128;
const TOOL_CALLS: usize = 64;

fn keyed(name: &str, arguments: Value, key: Value) -> Value {
    json!({"name": name, "arguments": arguments, "_meta": {"redflow/key": key}})
}

// SECURITY: mcp-key
#[tokio::test]
async fn a_key_belongs_to_its_token_and_its_conversation() {
    let setup = Setup::default();
    let [a, b] = ["a", "b"].map(|name| token(setup.dir.path(), name, &[Scope::Run], 1));
    let sidecar = setup.start(Some(plain_flow())).await;
    let run = async |token: &str, arguments: Value| {
        let called = Modern { sidecar: &sidecar, token }
            .call("tools/call", keyed("Counting", arguments, json!("k1")))
            .await;
        called["result"]["_meta"]["redflow/run"].as_str().unwrap_or_else(|| panic!("{called}")).to_owned()
    };
    let plain = || json!({"input": "yes"});
    let in_session = |session: &str| json!({"input": "yes", "sessionId": session});
    let mut all = Vec::new();
    for (token, arguments) in
        [(&a, plain()), (&b, plain()), (&a, in_session("x")), (&a, in_session("y")), (&b, in_session("x"))]
    {
        let first = run(token, arguments.clone()).await;
        assert_eq!(run(token, arguments).await, first, "the same call is made once");
        all.push(first);
    }
    // The header of the API has keys of its own.
    let request = sidecar.request("POST", "/api/runs").token(&a).header("idempotency-key", "k1");
    let started = request.json(json!({"node": "agent", "payload": "yes", "wait": true})).send().await.ok(200);
    all.push(started["runs"][0]["runId"].as_str().unwrap().to_owned());
    all.sort();
    all.dedup();
    assert_eq!((all.len(), runs(&sidecar).await.len()), (6, 6));
}

#[tokio::test]
async fn a_flow_tool_gets_the_key_and_runs_again() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    node_red.deploy(flow_tool_flow("at_most_once")).await;
    let client = Modern::new(&sidecar);
    let mut keys = Vec::new();
    for key in ["k1", "k1", "k2"] {
        let call = client.call("tools/call", keyed("flow.look", json!({"what": "door"}), json!(key)));
        let answer = async {
            let call = node_red.receive("tool_call").await;
            node_red.reply(&call, returned(&json!({"open": true}))).await;
            call["idempotencyKey"].clone()
        };
        let (called, key) = tokio::join!(call, answer);
        assert_eq!(called["result"]["structuredContent"], json!({"open": true}), "{called}");
        keys.push(key);
    }
    // The flow ran three times. The same key gave it the same idempotency key, by which its nodes can tell.
    assert_eq!((keys[0] == keys[1], keys[1] == keys[2]), (true, false), "{keys:?}");
    for wrong in [json!(""), json!(1), json!("x".repeat(201)), json!("a b")] {
        let refused = client.call("tools/call", keyed("flow.look", json!({}), wrong)).await;
        assert_eq!(refused["result"]["_meta"]["redflow/code"], "TOOL_INPUT_INVALID", "{refused}");
    }
    let calls = sidecar.get("/api/tools/flow.look/calls").await.ok(200);
    assert_eq!(calls["calls"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_tool_of_the_registry_refuses_a_key() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let tool = json!({"id": "test.pay", "kind": "http", "description": "Pays.", "method": "POST",
        "url": "https://example.org/x", "effect": "at_most_once", "mcp": true, "inputSchema": {"type": "object"}});
    sidecar.post("/api/tools", tool).await.ok(201);
    let client = Modern::new(&sidecar);
    let refused = client.call("tools/call", keyed("test.pay", json!({}), json!("k1"))).await;
    assert_eq!(refused["result"]["_meta"]["redflow/code"], "TOOL_INPUT_INVALID", "{refused}");
    assert!(refused["result"]["content"][0]["text"].as_str().unwrap().contains("leave the key out"));
    assert_eq!(sidecar.get("/api/tools/test.pay/calls").await.ok(200)["calls"], json!([]));
    let called = client.call("tools/call", json!({"name": "test.pay", "arguments": {"a": 1}})).await;
    assert_eq!(called["result"]["structuredContent"], json!({"a": 1}));
}

#[tokio::test]
async fn agents_and_flow_tools_of_a_node_red_are_callable() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    node_red.deploy(flow_tool_flow("read")).await;
    let client = Modern::new(&sidecar);
    let call = client.call("tools/call", json!({"name": "agent.Counting", "arguments": {"input": "?"}}));
    let answer = async {
        let call = node_red.receive("tool_call").await;
        assert_eq!((&call["tool"], &call["input"]), (&json!("look"), &json!({"what": "door"})));
        node_red.reply(&call, returned(&json!("shut"))).await;
    };
    let (called, ()) = tokio::join!(call, answer);
    assert_eq!(called["result"]["content"][0]["text"], "42", "{called}");
    let run = called["result"]["_meta"]["redflow/run"].as_str().unwrap();
    let stored = sidecar.get(&format!("/api/runs/{run}")).await.ok(200);
    assert_eq!(stored["summary"]["by"], "token:main");
    // When it is gone, nothing of it is listed or callable.
    drop(node_red);
    let gone = || async {
        let list = client.call("tools/list", json!({})).await;
        list["result"]["tools"].as_array().unwrap().is_empty().then_some(())
    };
    eventually("the tools are gone", gone).await;
    let refused = client.call("tools/call", json!({"name": "flow.look", "arguments": {}})).await;
    assert_eq!(refused["error"]["data"]["code"], "NOT_FOUND");
}

/// Node-RED has the call, and may have done something. So the log has it too.
#[tokio::test]
async fn a_cancelled_call_of_a_flow_tool_is_in_the_log() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    node_red.deploy(flow_tool_flow("at_most_once")).await;
    let client = Legacy::open(&sidecar, TOKEN).await;
    let params = json!({"name": "flow.look", "arguments": {"what": "door"}});
    let body = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params});
    let mut tcp = TcpStream::connect(sidecar.addr).await.unwrap();
    tcp.write_all(&client.post(body).text()).await.unwrap();
    node_red.receive("tool_call").await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}});
    assert_eq!(client.post(cancel).send().await.status, 202);
    let logged = || async {
        let calls = sidecar.get("/api/tools/flow.look/calls").await.ok(200);
        calls["calls"].as_array().unwrap().first().cloned()
    };
    let call = eventually("the call is in the log", logged).await;
    assert_eq!((&call["success"], &call["input"]), (&json!(false), &json!({"what": "door"})));
    assert!(call["error"].as_str().unwrap().contains("unknown whether it took effect"), "{call}");
    assert_eq!(call["by"], "token:main");
}

/// Sends a call and reads its answer, unless there is none within a moment. A call that is under way is cancelled then.
async fn answer_at_once(client: &Modern<'_>, params: Value) -> String {
    let request = client.request("tools/call", params);
    let mut tcp = TcpStream::connect(request.addr).await.unwrap();
    tcp.write_all(&request.text()).await.unwrap();
    let mut answer = Vec::new();
    let read = async { while tcp.read_buf(&mut answer).await.unwrap() > 0 {} };
    let _ = timeout(Duration::from_millis(500), read).await;
    String::from_utf8_lossy(&answer).into_owned()
}

// SECURITY: mcp-serve
#[tokio::test]
async fn one_token_cannot_take_all_calls_of_agents() {
    let setup = Setup::default();
    let other = token(setup.dir.path(), "other", &[Scope::Run], 1);
    let sidecar = setup.start(Some(tool_flow("tool.slow"))).await;
    let client = Modern::new(&sidecar);
    let call = || json!({"name": "Counting", "arguments": {"input": "?"}});
    let mut open = Vec::new();
    for _ in 0..AGENT_CALLS {
        let request = client.request("tools/call", call());
        let mut tcp = TcpStream::connect(request.addr).await.unwrap();
        tcp.write_all(&request.text()).await.unwrap();
        open.push(tcp);
    }
    let refused = || async {
        let answer = answer_at_once(&client, call()).await;
        answer.contains("TOO_MANY_CONNECTIONS").then_some(answer)
    };
    let answer = eventually("the limit is reached", refused).await;
    assert!(answer.contains("128 calls of agents by this token"), "{answer}");
    let other = answer_at_once(&Modern { sidecar: &sidecar, token: &other }, call()).await;
    assert!(!other.contains("TOO_MANY_CONNECTIONS"), "{other}");
    // A call that ends makes room.
    open.pop();
    let taken = || async { (!answer_at_once(&client, call()).await.contains("TOO_MANY")).then_some(()) };
    eventually("there is room", taken).await;
}

#[tokio::test]
async fn more_calls_of_flow_tools_wait_and_can_be_cancelled() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    node_red.deploy(flow_tool_flow("read")).await;
    let client = Modern::new(&sidecar);
    let open = async |number: usize| {
        let call = json!({"name": "flow.look", "arguments": {"number": number}});
        let request = client.request("tools/call", call);
        let mut tcp = TcpStream::connect(request.addr).await.unwrap();
        tcp.write_all(&request.text()).await.unwrap();
        tcp
    };
    let (mut sockets, mut calls) = (Vec::new(), Vec::new());
    for number in 0..TOOL_CALLS {
        sockets.push(open(number).await);
        calls.push(node_red.receive("tool_call").await);
    }
    // Two more wait. The client of the first one disconnects.
    let cancelled = open(TOOL_CALLS).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let _waiting = open(TOOL_CALLS + 1).await;
    assert!(timeout(Duration::from_millis(300), node_red.receive("tool_call")).await.is_err());
    drop(cancelled);
    tokio::time::sleep(Duration::from_millis(200)).await;
    node_red.reply(&calls[0], returned(&json!({}))).await;
    let next = timeout(Duration::from_secs(20), node_red.receive("tool_call")).await.unwrap();
    assert_eq!(next["input"], json!({"number": TOOL_CALLS + 1}));
}

#[tokio::test]
async fn a_stopped_sidecar_logs_the_calls_of_flow_tools() {
    let setup = Setup::default();
    let dir = std::sync::Arc::clone(&setup.dir);
    let sidecar = setup.start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    node_red.deploy(flow_tool_flow("at_most_once")).await;
    let request = Modern::new(&sidecar).request("tools/call", json!({"name": "flow.look", "arguments": {}}));
    let mut tcp = TcpStream::connect(request.addr).await.unwrap();
    tcp.write_all(&request.text()).await.unwrap();
    node_red.receive("tool_call").await;
    drop(node_red);
    sidecar.stop().await;
    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    let calls = sidecar.get("/api/tools/flow.look/calls").await.ok(200);
    let error = calls["calls"][0]["error"].as_str().unwrap_or_default();
    assert!(error.contains("unknown whether"), "{calls}");
}

#[tokio::test]
async fn a_run_that_is_cancelled_by_another_token_is_another_run() {
    let setup = Setup::default();
    let [a, b] = ["a", "b"].map(|name| token(setup.dir.path(), name, &[Scope::Run], 1));
    let sidecar = setup.start(Some(tool_flow("tool.slow"))).await;
    let mut call = slow_call();
    call["_meta"]["redflow/key"] = json!("same");
    let request = Modern { sidecar: &sidecar, token: &a }.request("tools/call", call.clone());
    let (_first, _) = read_until(&request, "notifications/progress").await;
    let request = Modern { sidecar: &sidecar, token: &b }.request("tools/call", call);
    let (second, _) = read_until(&request, "notifications/progress").await;
    drop(second);
    let failed = status_becomes(&sidecar, "failed").await;
    assert_eq!((&failed["code"], &failed["by"]), (&json!("CANCELLED"), &json!("token:b")));
    let running = status_becomes(&sidecar, "running").await;
    assert_eq!(running["by"], "token:a");
}
