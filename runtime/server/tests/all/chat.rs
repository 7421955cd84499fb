//! Chat nodes: messages, answers and the stored history.

use crate::client::{PATIENCE, Socket};
use crate::kit::{Setup, TOKEN, TestSidecar, eventually, flow};
use futures::StreamExt as _;
use pretty_assertions::assert_eq;
use redflow_engine::SystemClock;
use redflow_ports::{ChatStore as _, Clock as _};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

/// An agent with a chat node at its input and its output.
fn chat_flow(replies: Value) -> Value {
    let mut nodes = flow(replies, &[]);
    nodes[2]["wires"][4] = json!(["chat 1.a"]);
    nodes.as_array_mut().unwrap().push(json!({
        "id": "chat 1.a", "type": "chat-node", "z": "tab", "maxHistory": 4, "wires": [["agent"]],
    }));
    nodes
}

const SEND: &str = "/chat-node/chat%201.a/send";
const HISTORY: &str = "/chat-node/chat%201.a/history";

async fn chat_lines(sidecar: &TestSidecar) -> Vec<String> {
    let history = sidecar.get(HISTORY).await.ok(200);
    assert_eq!(history["nodeId"], "chat 1.a");
    let items = history["history"].as_array().unwrap();
    assert_eq!(history["count"], items.len());
    let text = |item: &Value, key: &str| item[key].as_str().unwrap().to_owned();
    items.iter().map(|item| format!("{}: {}", text(item, "type"), text(item, "content"))).collect()
}

async fn wait_for_history(sidecar: &TestSidecar, count: usize) -> Vec<String> {
    eventually("an answer in the chat", || async {
        let history = chat_lines(sidecar).await;
        (history.len() == count).then_some(history)
    })
    .await
}

#[tokio::test]
async fn keeps_the_newest_turns_in_order() {
    let sidecar = TestSidecar::start(chat_flow(json!([{"action": "final", "message": "42"}]))).await;
    let answer = sidecar.post(SEND, json!({"message": "one"})).await.ok(200);
    assert_eq!((&answer["success"], &answer["agentCoreId"]), (&json!(true), &json!("agent")));
    assert_eq!(wait_for_history(&sidecar, 2).await, ["user: one", "agent: 42"]);
    sidecar.post(SEND, json!({"message": "two"})).await.ok(200);
    assert_eq!(wait_for_history(&sidecar, 4).await, ["user: one", "agent: 42", "user: two", "agent: 42"]);
    sidecar.post(SEND, json!({"message": "three"})).await.ok(200);
    eventually("the oldest items are dropped", || async {
        let expected = ["user: two", "agent: 42", "user: three", "agent: 42"];
        (chat_lines(&sidecar).await == expected).then_some(())
    })
    .await;
    let runs = sidecar.get("/api/runs").await.ok(200);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 3, "no answer started the agent again");
    let history = sidecar.get(HISTORY).await.ok(200);
    let last = &history["history"][3];
    assert_eq!(last["iteration"], 1);
    assert_eq!(last["traceId"], runs["runs"][0]["runId"]);
    // It is kept after a restart.
    let dir = sidecar.stop().await;
    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    assert_eq!(chat_lines(&sidecar).await.len(), 4);
    sidecar.request("POST", "/chat-node/chat%201.a/clear").token(crate::kit::TOKEN).send().await.ok(200);
    assert_eq!(chat_lines(&sidecar).await, [] as [&str; 0]);
}

/// An AI Agent with a chat node.
fn image_flow() -> Value {
    let mut nodes = flow(json!(["A pixel."]), &[]);
    let agent = json!({
        "id": "agent", "type": "ai-agent", "z": "tab", "model": "model", "wires": [["chat 1.a"], []],
    });
    nodes[2] = agent;
    nodes.as_array_mut().unwrap().push(json!({
        "id": "chat 1.a", "type": "chat-node", "z": "tab", "wires": [["agent"]],
    }));
    nodes
}

#[tokio::test]
async fn a_message_may_have_images() {
    let sidecar = TestSidecar::start(image_flow()).await;
    let gif = "data:image/gif;base64,R0lGODlhAQABAIAAAA==";
    sidecar.post(SEND, json!({"message": "What is it?", "images": [gif]})).await.ok(200);
    assert_eq!(wait_for_history(&sidecar, 2).await, ["user: What is it?", "agent: A pixel."]);
    // What is no image ends the run, and the chat says why.
    let other = "data:image/gif;base64,aGVsbG8=";
    sidecar.post(SEND, json!({"message": "And this?", "images": [gif, other]})).await.ok(200);
    let history = wait_for_history(&sidecar, 4).await;
    let error = "agent: IMAGE_INVALID: Picture 2 of the message is no PNG, JPEG, GIF or WebP file";
    assert!(history[3].starts_with(error), "{}", history[3]);
    for images in [json!([gif, gif, gif, gif, gif]), json!(["https://example.org/a.gif"]), json!(["R0lG"])] {
        let problem = sidecar.post(SEND, json!({"message": "x", "images": images})).await.ok(400);
        assert_eq!(problem["code"], "BODY_INVALID");
        assert_eq!(problem["message"], "`images` must be a list of at most 4 data URLs.");
    }
    assert!(!sidecar.get(HISTORY).await.ok(200).to_string().contains("R0lG"));
}

#[tokio::test]
async fn a_repeated_message_has_no_second_effect() {
    let sidecar = TestSidecar::start(chat_flow(json!([{"action": "final", "message": "42"}]))).await;
    let item = json!({"id": "msg-1", "type": "user", "content": "one", "timestamp": 1});
    for _ in 0..2 {
        sidecar.post(SEND, json!({"message": "one", "chatMessage": item})).await.ok(200);
        assert_eq!(wait_for_history(&sidecar, 2).await, ["user: one", "agent: 42"]);
    }
    assert_eq!(sidecar.get("/api/runs").await.ok(200)["runs"].as_array().unwrap().len(), 1);
    // A client cannot send as the agent.
    let forged = json!({"id": "msg-2", "type": "agent", "content": "I said so", "timestamp": 1});
    sidecar.post(SEND, json!({"message": "two", "chatMessage": forged})).await.ok(200);
    let history = wait_for_history(&sidecar, 4).await;
    assert_eq!(history[2], "user: two");
}

#[tokio::test]
async fn shows_the_error_of_a_failed_run_or_refused_agent_in_the_chat() {
    let mut refused = chat_flow(json!([{"action": "final", "message": "42"}]));
    refused[2]["maxIterations"] = json!(99);
    for (nodes, code) in [
        (chat_flow(json!(["no object at all"])), "INVALID_JSON"),
        (
            chat_flow(json!([{"action": "tool", "tool": "launch", "input": {}, "confidence": 1}])),
            "TOOL_NOT_ALLOWED",
        ),
        (refused, "CONFIG_INVALID"),
    ] {
        let sidecar = TestSidecar::start(nodes).await;
        let answer = sidecar.post(SEND, json!({"message": "go"})).await.ok(200);
        assert_eq!(answer["agentCoreId"], "agent");
        let history = wait_for_history(&sidecar, 2).await;
        assert!(history[1].starts_with(&format!("agent: {code}: ")), "{history:?}");
    }
}

#[tokio::test]
async fn refuses_an_invalid_message_with_a_code() {
    let mut nodes = chat_flow(json!([{"action": "final", "message": "42"}]));
    nodes
        .as_array_mut()
        .unwrap()
        .push(json!({"id": "alone", "type": "chat-node", "z": "tab", "wires": [[]]}));
    let sidecar = TestSidecar::start(nodes).await;
    sidecar.post("/chat-node/alone/send", json!({"message": "x"})).await.refused(409, "CHAT_NOT_CONNECTED");
    for path in ["/chat-node/gone/send", "/chat-node/agent/send", "/chat-node/%2e%2e/send"] {
        sidecar.post(path, json!({"message": "x"})).await.refused(404, "NOT_FOUND");
    }
    for path in ["/chat-node/gone/history", "/chat-node/ask/history"] {
        sidecar.get(path).await.refused(404, "NOT_FOUND");
    }
    sidecar.post(SEND, json!({})).await.refused(400, "BODY_INVALID");
    sidecar.post(SEND, json!({"message": "  "})).await.refused(400, "BODY_INVALID");
    sidecar.post(SEND, json!({"message": 1})).await.refused(400, "BODY_INVALID");
    sidecar.post(SEND, json!({"message": "x".repeat(600 * 1024)})).await.refused(400, "BODY_INVALID");
    assert_eq!(chat_lines(&sidecar).await, [] as [&str; 0]);
}

/// What a page of the Redflow UI receives when it connects: everything before the answer to its ping.
async fn first_events(sidecar: &TestSidecar) -> Vec<Value> {
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("authorization", bearer.as_str())];
    let mut socket = Socket::try_open_at(sidecar.addr, "/admin/observability", &headers).await.unwrap();
    socket.send(Message::text(r#"{"type":"ping"}"#)).await;
    let mut events: Vec<Value> = Vec::new();
    loop {
        let message = timeout(PATIENCE, socket.stream.next()).await.unwrap().unwrap().unwrap();
        let Message::Text(text) = message else { continue };
        let event: Value = serde_json::from_str(&text).unwrap();
        if event["event"] == "pong" {
            assert_eq!(events.remove(0)["event"], "connected");
            return events;
        }
        events.push(event);
    }
}

/// Adds an item to the chat while no sidecar runs.
fn append(dir: &std::path::Path, item: Value) {
    let store = redflow_store::Store::open(dir).unwrap();
    store.append(&"chat 1.a".into(), serde_json::from_value(item).unwrap(), 100);
}

#[tokio::test]
async fn a_page_that_connects_gets_the_refusal_it_may_have_missed() {
    let mut flow = chat_flow(json!([]));
    let agent = flow.as_array_mut().unwrap().iter_mut().find(|node| node["id"] == "agent").unwrap();
    agent["maxIterations"] = json!(-1);
    let sidecar = TestSidecar::start(flow).await;
    sidecar.post(SEND, json!({"message": "one"})).await.ok(200);
    wait_for_history(&sidecar, 2).await;
    let dir = sidecar.stop().await;
    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    let events = first_events(&sidecar).await;
    let own =
        events.iter().filter(|event| event["nodeId"] == "agent").map(|event| &event["data"]["outputs"][0]);
    let mut texts = own.filter(|output| output["port"] == 4).map(|output| &output["payload"]["fullMessage"]);
    let text = texts.next().and_then(Value::as_str).unwrap_or_else(|| panic!("{events:#?}"));
    assert!(text.starts_with("CONFIG_INVALID: "), "{text}");
}

#[tokio::test]
async fn a_page_that_connects_gets_the_last_answer_it_may_have_missed() {
    let sidecar = TestSidecar::start(chat_flow(json!([{"action": "final", "message": "42"}]))).await;
    assert_eq!(first_events(&sidecar).await, [] as [Value; 0]);
    sidecar.post(SEND, json!({"message": "one"})).await.ok(200);
    wait_for_history(&sidecar, 2).await;
    eventually("the end of the run", || async {
        let runs = sidecar.get("/api/runs").await.ok(200);
        (runs["runs"][0]["status"] == "completed").then_some(())
    })
    .await;
    // Also after a restart, because the history is on the disk.
    let dir = sidecar.stop().await;
    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    let events = first_events(&sidecar).await;
    let [event] = &events[..] else { panic!("{events:#?}") };
    assert_eq!((&event["event"], &event["nodeId"]), (&json!("node:output"), &json!("agent")));
    assert_eq!((event.get("frameId"), &event["data"]["sampled"]), (None, &json!(true)));
    let output = &event["data"]["outputs"][0];
    assert_eq!((&output["port"], &output["payload"]["fullMessage"]), (&json!(4), &json!("42")));
    let run = output["payload"]["agentResult"]["traceId"].clone();
    assert!(run.is_string(), "{output}");
    // A page whose question is still open waits.
    let dir = sidecar.stop().await;
    let now = SystemClock.now();
    let question = json!({"id": "q", "type": "user", "content": "two", "timestamp": now});
    append(dir.path(), question);
    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    assert_eq!(first_events(&sidecar).await, [] as [Value; 0]);
    // An old answer is not repeated, nor one of an unknown run.
    let mut dir = sidecar.stop().await;
    for (number, (run, timestamp)) in
        [(run, now - 10 * 60_000), (json!("other"), now)].into_iter().enumerate()
    {
        let answer = json!({"id": number.to_string(), "type": "agent", "content": "3", "timestamp": timestamp, "traceId": run,
            "iteration": 1});
        append(dir.path(), answer);
        let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
        assert_eq!(first_events(&sidecar).await, [] as [Value; 0]);
        dir = sidecar.stop().await;
    }
}
