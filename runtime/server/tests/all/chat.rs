//! Chats: what is said, what is answered, and that it is still there.

use crate::kit::{Setup, World, eventually, flow};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// An agent with a chat on both sides.
fn talks(replies: Value) -> Value {
    let mut nodes = flow(replies, &[]);
    nodes[2]["wires"][4] = json!(["chat 1.a"]);
    nodes.as_array_mut().unwrap().push(json!({
        "id": "chat 1.a", "type": "chat-node", "z": "tab", "maxHistory": 4, "wires": [["agent"]],
    }));
    nodes
}

const SEND: &str = "/chat-node/chat%201.a/send";
const HISTORY: &str = "/chat-node/chat%201.a/history";

async fn said(world: &World) -> Vec<String> {
    let history = world.get(HISTORY).await.ok(200);
    assert_eq!(history["nodeId"], "chat 1.a");
    let items = history["history"].as_array().unwrap();
    assert_eq!(history["count"], items.len());
    let text = |item: &Value, key: &str| item[key].as_str().unwrap().to_owned();
    items.iter().map(|item| format!("{}: {}", text(item, "type"), text(item, "content"))).collect()
}

async fn until_said(world: &World, count: usize) -> Vec<String> {
    eventually("an answer in the chat", || async {
        let said = said(world).await;
        (said.len() == count).then_some(said)
    })
    .await
}

#[tokio::test]
async fn several_turns_are_kept_in_order_and_the_oldest_go() {
    let world = World::with(talks(json!([{"action": "final", "message": "42"}]))).await;
    let answer = world.post(SEND, json!({"message": "one"})).await.ok(200);
    assert_eq!((&answer["success"], &answer["agentCoreId"]), (&json!(true), &json!("agent")));
    assert_eq!(until_said(&world, 2).await, ["user: one", "agent: 42"]);
    world.post(SEND, json!({"message": "two"})).await.ok(200);
    assert_eq!(until_said(&world, 4).await, ["user: one", "agent: 42", "user: two", "agent: 42"]);
    world.post(SEND, json!({"message": "three"})).await.ok(200);
    eventually("the oldest to go", || async {
        let expected = ["user: two", "agent: 42", "user: three", "agent: 42"];
        (said(&world).await == expected).then_some(())
    })
    .await;
    let runs = world.get("/api/runs").await.ok(200);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 3, "no answer started the agent again");
    let history = world.get(HISTORY).await.ok(200);
    let last = &history["history"][3];
    assert_eq!(last["iteration"], 1);
    assert_eq!(last["traceId"], runs["runs"][0]["runId"]);
    // It is still there after a restart.
    let dir = world.stop().await;
    let world = Setup { dir, ..Setup::default() }.start(None).await;
    assert_eq!(said(&world).await.len(), 4);
    world.request("POST", "/chat-node/chat%201.a/clear").token(crate::kit::TOKEN).send().await.ok(200);
    assert_eq!(said(&world).await, [] as [&str; 0]);
}

#[tokio::test]
async fn what_is_sent_again_is_not_said_or_done_twice() {
    let world = World::with(talks(json!([{"action": "final", "message": "42"}]))).await;
    let item = json!({"id": "msg-1", "type": "user", "content": "one", "timestamp": 1});
    for _ in 0..2 {
        world.post(SEND, json!({"message": "one", "chatMessage": item})).await.ok(200);
        assert_eq!(until_said(&world, 2).await, ["user: one", "agent: 42"]);
    }
    assert_eq!(world.get("/api/runs").await.ok(200)["runs"].as_array().unwrap().len(), 1);
    // An agent does not let others speak for it.
    let forged = json!({"id": "msg-2", "type": "agent", "content": "I said so", "timestamp": 1});
    world.post(SEND, json!({"message": "two", "chatMessage": forged})).await.ok(200);
    let said = until_said(&world, 4).await;
    assert_eq!(said[2], "user: two");
}

#[tokio::test]
async fn a_run_that_fails_and_an_agent_that_is_refused_say_so_in_the_chat() {
    let mut refused = talks(json!([{"action": "final", "message": "42"}]));
    refused[2]["maxIterations"] = json!(99);
    for (nodes, code) in [
        (talks(json!(["no object at all"])), "INVALID_JSON"),
        (
            talks(json!([{"action": "tool", "tool": "launch", "input": {}, "confidence": 1}])),
            "TOOL_NOT_ALLOWED",
        ),
        (refused, "CONFIG_INVALID"),
    ] {
        let world = World::with(nodes).await;
        let answer = world.post(SEND, json!({"message": "go"})).await.ok(200);
        assert_eq!(answer["agentCoreId"], "agent");
        let said = until_said(&world, 2).await;
        assert!(said[1].starts_with(&format!("agent: {code}: ")), "{said:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_said_is_refused_with_a_code() {
    let mut nodes = talks(json!([{"action": "final", "message": "42"}]));
    nodes
        .as_array_mut()
        .unwrap()
        .push(json!({"id": "alone", "type": "chat-node", "z": "tab", "wires": [[]]}));
    let world = World::with(nodes).await;
    world.post("/chat-node/alone/send", json!({"message": "x"})).await.refused(409, "CHAT_NOT_CONNECTED");
    for path in ["/chat-node/gone/send", "/chat-node/agent/send", "/chat-node/%2e%2e/send"] {
        world.post(path, json!({"message": "x"})).await.refused(404, "NOT_FOUND");
    }
    for path in ["/chat-node/gone/history", "/chat-node/ask/history"] {
        world.get(path).await.refused(404, "NOT_FOUND");
    }
    world.post(SEND, json!({})).await.refused(400, "BODY_INVALID");
    world.post(SEND, json!({"message": "  "})).await.refused(400, "BODY_INVALID");
    world.post(SEND, json!({"message": 1})).await.refused(400, "BODY_INVALID");
    world.post(SEND, json!({"message": "x".repeat(600 * 1024)})).await.refused(400, "BODY_INVALID");
    assert_eq!(said(&world).await, [] as [&str; 0]);
}
