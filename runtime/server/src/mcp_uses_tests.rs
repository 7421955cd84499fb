use super::{McpUses, address_of};
use redflow_contract::flow::Profile;
use redflow_contract::id::{InstanceId, NodeId};
use redflow_contract::limits::{FlowLimits, RunLimits};
use redflow_contract::mcp::{McpOrigin, McpServerState, McpServerSummary, McpTransport};
use redflow_contract::node::Budget;
use redflow_flow::{CheckOptions, CheckedFlow, check_bytes};
use serde_json::{Value, json};

fn env(name: &str) -> Option<String> {
    (name == "MCP_URL").then(|| "https://a.example/v1/mcp?key=s3cret".to_owned())
}

fn checked(flow: &Value) -> CheckedFlow {
    let options = CheckOptions {
        profile: Profile::Strict,
        limits: FlowLimits::default(),
        run_limits: RunLimits::default(),
        run_budget: Budget::default(),
        instance: InstanceId::local(),
        can_run: &|_| true,
        provides_tools: &|_| false,
        env: &env,
    };
    check_bytes(flow.to_string().as_bytes(), &options).unwrap()
}

fn server(name: &str, origin: McpOrigin, target: &str) -> McpServerSummary {
    McpServerSummary {
        name: name.to_owned(),
        key: name.to_owned(),
        origin,
        transport: McpTransport::Http,
        target: target.to_owned(),
        state: McpServerState::Ready,
        reason: None,
        code: None,
        protocol: None,
        server: None,
        tools: 1,
        changed: 0,
        since: None,
        confinement: None,
    }
}

/// The servers of an agent with this node and these properties, of all that there are.
fn used(client: &Value, agent: &Value) -> Vec<String> {
    let mut flow = json!([
        {"id": "a", "type": "ai-agent", "model": "m", "tools": ["c"], "wires": [[], []]},
        {"id": "m", "type": "scripted-model", "replies": ["x"], "wires": [[]]},
        {"id": "c", "type": "mcp-client", "wires": [[]]},
    ]);
    for (node, more) in [(0, agent), (2, client)] {
        flow[node].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    }
    let all = vec![
        server("files", McpOrigin::Manifest, "files-server"),
        server("one", McpOrigin::Node, "https://a.example/v1/mcp"),
        server("two", McpOrigin::Node, "https://a.example/v2/mcp"),
        server("port", McpOrigin::Node, "https://a.example:8443/v1/mcp"),
    ];
    let uses = McpUses::new(&checked(&flow), &env);
    uses.select(&NodeId::from("a"), &[], all).into_iter().map(|server| server.name).collect()
}

#[test]
fn a_node_uses_the_server_at_its_whole_address() {
    for (url, expected) in [
        ("https://a.example/v1/mcp", &["one"][..]),
        ("https://A.example:443/v1/mcp?x=1#y", &["one"]),
        ("https://a.example/v2/mcp", &["two"]),
        ("https://a.example:8443/v1/mcp", &["port"]),
        ("https://a.example/v3/mcp", &[]),
        ("${MCP_URL}", &["one"]),
    ] {
        assert_eq!(used(&json!({ "url": url }), &json!({})), expected, "{url}");
    }
    assert_eq!(used(&json!({"server": "files"}), &json!({})), ["files"]);
}

#[test]
fn the_prompt_of_a_server_may_stand_in_options() {
    let client = json!({"url": "https://a.example/v3/mcp"});
    for agent in
        [json!({"systemPrompt": "mcp:files/plain"}), json!({"options": {"systemPrompt": "mcp:files/plain"}})]
    {
        assert_eq!(used(&client, &agent), ["files"], "{agent}");
    }
}

#[test]
fn an_address_has_no_secrets() {
    assert_eq!(address_of("http://u:p@127.0.0.1:81?k=1#f").as_deref(), Some("http://127.0.0.1:81/"));
    assert_eq!(address_of("npx -y server"), None);
    assert_eq!(address_of("file:///etc/passwd"), None);
}
