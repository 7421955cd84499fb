//! Agents for one thing as clients call them: over the API, and over MCP.

use crate::kit::{TOKEN, TestSidecar};
use crate::mcp_server::{Legacy, Modern, names};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
        "required": ["name", "count"],
        "additionalProperties": false,
    })
}

/// An extractor whose first result lacks a value.
fn extractor() -> Value {
    json!([
        {"id": "tab", "type": "tab", "label": "Home"},
        {"id": "agent", "type": "ai-extractor", "z": "tab", "name": "Order", "outputSchema": schema(), "model": "model",
         "wires": [["result"], []]},
        {"id": "model", "type": "scripted-model", "z": "tab", "wires": [],
         "replies": [{"result": {"name": "Ada"}}, {"result": {"name": "Ada", "count": 3}}]},
        {"id": "result", "type": "debug", "z": "tab", "active": true, "complete": "payload", "targetType": "msg",
         "wires": []},
    ])
}

fn order() -> Value {
    json!({"name": "Ada", "count": 3})
}

#[tokio::test]
async fn an_extractor_gives_its_values_over_the_api() {
    let sidecar = TestSidecar::start(extractor()).await;
    let ended = sidecar.run(json!({"node": "agent", "payload": "Three catalogues for Ada, please."})).await;
    let run = &ended["runs"][0];
    assert_eq!((&run["status"], &run["agent"]["name"]), (&json!("completed"), &json!("Order")), "{ended}");
    assert_eq!(
        (&run["result"]["payload"], &run["result"]["agentResult"]["iterations"]),
        (&order(), &json!(2))
    );
    let path = format!("/api/runs/{}", run["runId"].as_str().unwrap());
    let stored = sidecar.get(&path).await.ok(200);
    assert_eq!(stored["summary"]["status"], "completed", "{stored}");
    let replayed = sidecar.request("POST", &format!("{path}/replay")).token(TOKEN).send().await.ok(200);
    assert_eq!(replayed["equal"], true, "{replayed}");
}

#[tokio::test]
async fn an_extractor_gives_its_values_over_mcp() {
    let sidecar = TestSidecar::start(extractor()).await;
    let client = Modern::new(&sidecar);
    let list = client.call("tools/list", json!({})).await;
    assert_eq!(
        (names(&list), &list["result"]["tools"][0]["outputSchema"]),
        (vec!["agent__Order"], &schema())
    );
    let params = json!({"name": "agent.Order", "arguments": {"input": "Three catalogues for Ada, please."}});
    let modern = client.call("tools/call", params.clone()).await;
    let legacy = Legacy::open(&sidecar, TOKEN).await.call(1, "tools/call", params).await.pop().unwrap();
    for called in [modern, legacy] {
        let result = &called["result"];
        assert_eq!((&result["isError"], &result["structuredContent"]), (&json!(false), &order()), "{called}");
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, order());
        let path = format!("/api/runs/{}", result["_meta"]["redflow/run"].as_str().unwrap());
        assert_eq!(sidecar.get(&path).await.ok(200)["summary"]["by"], "token:main");
    }
}
