//! The rules of the policy in the answers of `/api/tools`.

use crate::kit::{Setup, plain_flow};
use pretty_assertions::assert_eq;
use serde_json::json;

/// A tool names the rules about it, the list has their text. A tool whose every call is refused is blocked.
#[tokio::test]
async fn a_tool_has_the_rules_of_the_policy_about_it() {
    let tool = |id: &str| {
        json!({
            "id": id, "kind": "http", "description": "The weather", "inputSchema": {"type": "object"},
            "url": "https://weather.example",
        })
    };
    let policy = json!([
        {"limit": ["*"], "per": "agent", "rate": "30/m", "concurrent": 2},
        {"allow": ["weather.*"], "roles": ["staff"]},
        {"deny": ["weather.past"]},
        {"allow": ["calculator"], "servers": ["none"]},
    ]);
    let manifest = json!({
        "tools": [tool("weather.current"), tool("weather.past")], "policy": policy, "roles": {"staff": {"tokens": ["main"]}},
    });
    let setup = Setup::default();
    std::fs::write(setup.dir.path().join("tools.json"), manifest.to_string()).unwrap();
    let sidecar = setup.start(Some(plain_flow())).await;
    let list = sidecar.get("/api/tools").await.ok(200);
    assert_eq!(list["policy"], policy);
    let limit = json!({"rule": 1, "action": "limit", "calls": "every"});
    let staff = json!({"rule": 2, "action": "allow", "calls": "some"});
    for (id, rules, state) in [
        ("weather.current", json!([limit, staff]), json!(["ready", null])),
        (
            "weather.past",
            json!([limit, staff, {"rule": 3, "action": "deny", "calls": "every"}]),
            json!(["blocked", "the policy allows no call (rule 3)"]),
        ),
        (
            "builtin.calculator",
            json!([limit, {"rule": 4, "action": "allow", "calls": "none"}]),
            json!(["blocked", "the policy allows no call (rule 4)"]),
        ),
    ] {
        let tool = sidecar.get(&format!("/api/tools/{id}")).await.ok(200);
        assert_eq!((&tool["rules"], json!([tool["state"], tool["reason"]])), (&rules, state), "{id}");
        assert!(list["tools"].as_array().unwrap().contains(&tool), "{id}");
    }
    for (id, is_allowed) in
        [("weather.current", true), ("weather.past", false), ("builtin.calculator", false)]
    {
        let input = json!({"input": {"city": "Bern", "expression": "1"}});
        let call = sidecar.post(&format!("/api/tools/{id}/call"), input).await.ok(200);
        assert_eq!(call["code"] != "TOOL_DENIED", is_allowed, "{id}: {call}");
    }
}
