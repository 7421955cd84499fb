//! The policy for MCP clients: which tools they see, and which of their calls are made.

use crate::bridge::{NodeRed, flow_tool_flow, returned};
use crate::kit::{Setup, TOKEN, TestSidecar, eventually, token, tool_flow};
use crate::mcp_server::{Legacy, Modern, names};
use pretty_assertions::assert_eq;
use redflow_contract::api::Scope;
use serde_json::{Value, json};
use std::pin::pin;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A sidecar with the tool `test.shop` and a policy. The main token has the role `staff`, the returned one `guests`.
async fn start(policy: Value, flow: Option<Value>) -> (TestSidecar, String) {
    let setup = Setup::default();
    let tool = json!({"id": "test.shop", "kind": "http", "description": "Orders.", "method": "POST", "mcp": true,
        "url": "https://example.org/x", "effect": "read", "inputSchema": {"type": "object"}});
    let roles = json!({"staff": {"tokens": ["main"]}, "guests": {"tokens": ["guest"]}});
    let manifest = json!({"tools": [tool], "policy": policy, "roles": roles});
    std::fs::write(setup.dir.path().join("tools.json"), manifest.to_string()).unwrap();
    let guest = token(setup.dir.path(), "guest", &[Scope::Run], 1);
    (setup.start(flow).await, guest)
}

/// `ok`, or the code of a refused call.
fn outcome(called: &Value) -> &str {
    let result = &called["result"];
    match result["isError"].as_bool().unwrap_or_else(|| panic!("{called}")) {
        false => "ok",
        true => result["_meta"]["redflow/code"].as_str().unwrap(),
    }
}

/// Each rule is about a tool of the manifest and about a flow tool. The calls are those of `main`, of `guest`, and of
/// `main` again.
// SECURITY: mcp-serve
#[tokio::test]
async fn the_policy_decides_about_lists_and_calls() {
    const OK: &str = "ok";
    const DENIED: &str = "TOOL_DENIED";
    const LIMITED: &str = "TOOL_RATE_LIMITED";
    const TOOLS: [&str; 2] = ["flow.look", "test.shop"];
    const NAMES: [&str; 2] = ["flow__look", "test__shop"];
    let cases = [
        (json!({"allow": TOOLS}), true, [OK, OK, OK]),
        (json!({"allow": TOOLS, "roles": ["staff"]}), true, [OK, DENIED, OK]),
        (json!({"allow": TOOLS, "servers": ["none"]}), false, [DENIED; 3]),
        (json!({"deny": TOOLS}), false, [DENIED; 3]),
        (json!({"deny": ["look", "test.*"]}), false, [DENIED; 3]),
        (json!({"deny": TOOLS, "roles": ["guests"]}), true, [OK, DENIED, OK]),
        (json!({"deny": TOOLS, "effect": ["at_most_once"]}), true, [OK, OK, OK]),
        // A person cannot be asked yet.
        (json!({"ask": TOOLS}), false, [DENIED; 3]),
        (json!({"ask": TOOLS, "roles": ["guests"]}), true, [OK, DENIED, OK]),
        (json!({"limit": TOOLS, "rate": "1/d"}), true, [OK, LIMITED, LIMITED]),
        (json!({"limit": TOOLS, "rate": "1/d", "burst": 2}), true, [OK, OK, LIMITED]),
        // The two tools count together.
        (json!({"limit": TOOLS, "rate": "2/d", "per": "principal"}), true, [OK, OK, LIMITED]),
        (json!({"limit": TOOLS, "rate": "2/d", "per": "principal", "roles": ["guests"]}), true, [OK, OK, OK]),
    ];
    for (rule, is_listed, outcomes) in cases {
        let (sidecar, guest) = start(json!([rule]), None).await;
        let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
        node_red.deploy(flow_tool_flow("read")).await;
        let staff = Modern::new(&sidecar);
        let guest = Modern { sidecar: &sidecar, token: &guest };
        for client in [&staff, &guest] {
            let list = client.call("tools/list", json!({})).await;
            let expected: &[&str] = if is_listed { &NAMES } else { &[] };
            assert_eq!(names(&list), [&["agent__Counting"], expected].concat(), "{rule}");
        }
        for (client, expected) in [&staff, &guest, &staff].into_iter().zip(outcomes) {
            let shop = client.call("tools/call", json!({"name": "test.shop", "arguments": {}})).await;
            assert_eq!(outcome(&shop), expected, "{rule}: {shop}");
            let mut call = pin!(client.call("tools/call", json!({"name": "flow.look", "arguments": {}})));
            let look = loop {
                tokio::select! {
                    called = &mut call => break called,
                    call = node_red.receive("tool_call") => {
                        node_red.reply(&call, returned(&json!("open"))).await;
                    }
                }
            };
            assert_eq!(outcome(&look), expected, "{rule}: {look}");
        }
        // A refused call is in the log, and was not made.
        for tool in TOOLS {
            let logged = sidecar.get(&format!("/api/tools/{tool}/calls")).await.ok(200);
            let calls = logged["calls"].as_array().unwrap().iter().rev();
            let calls: Vec<_> =
                calls.map(|call| (call["code"].as_str().unwrap_or(OK), call["tries"] == 1)).collect();
            assert_eq!(calls, outcomes.map(|code| (code, code == OK)), "{rule}: {tool}");
        }
    }
}

/// A client of the older era, because it has a session: the limit is not one of sessions of MCP.
// SECURITY: mcp-serve
#[tokio::test]
async fn calls_at_the_same_time_are_limited_by_principal() {
    let (sidecar, guest) =
        start(json!([{"limit": ["test.*"], "per": "principal", "concurrent": 1}]), None).await;
    let hold = sidecar.dir.path().join("hold");
    let client = Legacy::open(&sidecar, TOKEN).await;
    let call = |input: Value| json!({"name": "test.shop", "arguments": input});
    let body =
        json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": call(json!({"hold": hold}))});
    let mut first = TcpStream::connect(sidecar.addr).await.unwrap();
    first.write_all(&client.post(body).text()).await.unwrap();
    eventually("the first call has begun", || async { hold.exists().then_some(()) }).await;
    let other_session = Legacy::open(&sidecar, TOKEN).await;
    let second = other_session.call(1, "tools/call", call(json!({}))).await.pop().unwrap();
    assert_eq!(outcome(&second), "TOOL_RATE_LIMITED", "{second}");
    let other = Modern { sidecar: &sidecar, token: &guest }.call("tools/call", call(json!({}))).await;
    assert_eq!(outcome(&other), "ok", "{other}");
    // The end of the first call makes room.
    std::fs::remove_file(&hold).unwrap();
    let mut answer = Vec::new();
    while !String::from_utf8_lossy(&answer).contains("structuredContent") {
        assert!(first.read_buf(&mut answer).await.unwrap() > 0, "{}", String::from_utf8_lossy(&answer));
    }
    let third = other_session.call(2, "tools/call", call(json!({}))).await.pop().unwrap();
    assert_eq!(outcome(&third), "ok", "{third}");
}

/// The run of an agent is one of the caller, so the rules about its caller hold for the tools of the agent too.
// SECURITY: mcp-serve
#[tokio::test]
async fn the_tools_of_a_called_agent_follow_the_rules_about_the_caller() {
    let policy = json!([{"deny": ["builtin.act"], "roles": ["guests"]}]);
    let (sidecar, guest) = start(policy, Some(tool_flow("calculator-tool"))).await;
    for token in [TOKEN, &guest] {
        let client = Modern { sidecar: &sidecar, token };
        assert_eq!(names(&client.call("tools/list", json!({})).await), ["agent__Counting", "test__shop"]);
        let call = json!({"name": "agent.Counting", "arguments": {"input": "?"}});
        let called = client.call("tools/call", call).await;
        assert_eq!(called["result"]["content"][0]["text"], "42", "{called}");
    }
    let logged = sidecar.get("/api/tools/builtin.act/calls").await.ok(200);
    let calls = logged["calls"].as_array().unwrap().iter();
    let calls: Vec<_> = calls.map(|call| (call["by"].as_str().unwrap(), call["code"].as_str())).collect();
    assert_eq!(calls, [("token:guest", Some("TOOL_DENIED")), ("token:main", None)]);
}
