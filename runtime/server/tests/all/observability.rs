//! `ws /observability`: live frames for the Redflow UI, in which no node stays running.

use crate::client::{PATIENCE, Reply, Socket};
use crate::kit::{Setup, TOKEN, TestSidecar, eventually, flow, plain_flow, tool_flow};
use futures::{SinkExt as _, StreamExt as _};
use pretty_assertions::assert_eq;
use redflow_contract::observability::ObservabilityEvent;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

/// A client of `/observability`.
struct UiClient(Socket);

impl UiClient {
    async fn try_open(sidecar: &TestSidecar, token: &str) -> Result<Self, Reply> {
        let bearer = format!("Bearer {token}");
        Socket::try_open_at(sidecar.addr, "/observability", &[("authorization", &bearer)]).await.map(Self)
    }

    /// Opens a socket and receives the first message.
    async fn open(sidecar: &TestSidecar) -> Self {
        let mut client = Self::try_open(sidecar, TOKEN).await.unwrap();
        assert_eq!(client.event().await["event"], "connected");
        client
    }

    /// The next message; the code and the reason if the socket is closed.
    async fn next(&mut self) -> Result<Value, (u16, String)> {
        loop {
            match timeout(PATIENCE, self.0.stream.next()).await.unwrap() {
                Some(Ok(Message::Text(text))) => {
                    // The message matches the contract exactly.
                    let event: ObservabilityEvent = serde_json::from_str(&text).unwrap();
                    let value = serde_json::from_str(&text).unwrap();
                    assert_eq!(serde_json::to_value(event).unwrap(), value);
                    return Ok(value);
                }
                Some(Ok(Message::Close(Some(frame)))) => {
                    return Err((frame.code.into(), frame.reason.to_string()));
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn event(&mut self) -> Value {
        self.next().await.unwrap()
    }

    /// All events until a frame ends.
    async fn frame(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = self.event().await;
            if event["event"] == "heartbeat" {
                continue;
            }
            let ends = event["event"] == "frame:end";
            events.push(event);
            if ends {
                return events;
            }
        }
    }

    async fn send(&mut self, text: &str) {
        self.0.send(Message::text(text)).await;
    }
}

fn port(event: &Value) -> Option<u64> {
    event.pointer("/data/outputs/0/port").and_then(Value::as_u64)
}

fn payload(event: &Value) -> &Value {
    &event["data"]["outputs"][0]["payload"]
}

/// The outputs of a node, in order.
fn outputs<'a>(events: &'a [Value], node: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == "node:output" && event["nodeId"] == node).collect()
}

fn behavior(event: &Value) -> &str {
    event.pointer("/data/semantics/behavior").and_then(Value::as_str).unwrap_or_default()
}

/// Asserts that the events are one frame with this trigger and right numbers, in which no node stays running.
fn assert_frame(events: &[Value], trigger: &str) {
    let id = events[0]["frameId"].as_str().unwrap();
    assert_eq!(
        (&events[0]["event"], &events[0]["data"]["triggerNodeId"]),
        (&json!("frame:start"), &json!(trigger))
    );
    let (mut running, mut failed, mut sent) = (HashSet::from([trigger.to_owned()]), HashSet::new(), 0);
    for event in events {
        assert_eq!(event["frameId"], id, "{event}");
        let node = event["nodeId"].as_str().unwrap_or_default().to_owned();
        match event["event"].as_str().unwrap() {
            "node:input" => assert!(running.insert(node) || event["nodeId"] == "agent", "{event}"),
            "node:output" => {
                running.remove(&node);
                sent += u64::from(port(event).is_some());
                if behavior(event) == "terminated" {
                    failed.insert(node);
                }
            }
            "node:error" => assert!(failed.contains(&node), "{event}"),
            "frame:start" | "frame:end" => {}
            other => panic!("{other}"),
        }
    }
    assert_eq!(running, HashSet::new(), "{events:#?}");
    let stats = &events.last().unwrap()["data"]["stats"];
    assert_eq!((&stats["erroredNodes"], &stats["outputsEmitted"]), (&json!(failed.len()), &json!(sent)));
}

/// Fires the inject node and gives the frame.
async fn inject(sidecar: &TestSidecar, client: &mut UiClient) -> Vec<Value> {
    sidecar.post("/api/runs", json!({"node": "ask"})).await.ok(202);
    let events = client.frame().await;
    assert_frame(&events, "ask");
    events
}

#[tokio::test]
async fn opens_a_probe_and_then_the_socket_at_once() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let mut probe = UiClient::try_open(&sidecar, TOKEN).await.unwrap();
    probe.0.stream.close(None).await.unwrap();
    // Messages that were under way still arrive, and the close frame is answered.
    loop {
        match timeout(PATIENCE, probe.0.stream.next()).await.unwrap() {
            Some(Ok(Message::Text(_))) => {}
            Some(Ok(Message::Close(_))) => break,
            other => panic!("{other:?}"),
        }
    }
    let mut client = UiClient::open(&sidecar).await;
    inject(&sidecar, &mut client).await;
}

#[tokio::test]
async fn refuses_clients_without_a_valid_token() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let refused = UiClient::try_open(&sidecar, "another-token-altogether").await.err().unwrap();
    refused.refused(401, "UNAUTHORIZED");
    Socket::try_open_at(sidecar.addr, "/observability", &[])
        .await
        .err()
        .unwrap()
        .refused(401, "UNAUTHORIZED");
    sidecar.get("/observability").await.refused(400, "REQUEST_INVALID");
    sidecar.get("/admin/observability").await.refused(400, "REQUEST_INVALID");
}

#[tokio::test]
async fn a_socket_of_the_ui_does_not_outlive_its_token() {
    let mut setup = Setup::default();
    setup.settings.heartbeat = Duration::from_millis(300);
    let sidecar = setup.start(Some(plain_flow())).await;
    let token = crate::kit::token(sidecar.dir.path(), "guest", &[redflow_contract::api::Scope::Read], 1);
    let mut client =
        eventually("the token is known", || async { UiClient::try_open(&sidecar, &token).await.ok() }).await;
    assert_eq!(client.event().await["event"], "connected");
    redflow_access::tokens::remove(sidecar.dir.path(), "guest").unwrap();
    assert_eq!(client.next().await, Err((1008, "UNAUTHORIZED".to_owned())));
}

#[tokio::test]
async fn answers_pings_and_ignores_other_messages() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let mut client = UiClient::open(&sidecar).await;
    let deep = "[".repeat(5000);
    for ignored in ["", "no json", "[]", "7", r#"{"type":"subscribe"}"#, r#"{"type":["ping"]}"#, &deep] {
        client.send(ignored).await;
    }
    client.send(r#"{"type":"ping"}"#).await;
    assert_eq!(client.event().await["event"], "pong");
    inject(&sidecar, &mut client).await;
}

#[tokio::test]
async fn closes_a_socket_of_the_ui_that_sends_too_much() {
    let mut setup = Setup::default();
    setup.settings.access.requests_per_second = 1;
    setup.settings.access.request_burst = 20;
    setup.settings.max_message_bytes = 2000;
    let sidecar = setup.start(Some(plain_flow())).await;
    let mut client = UiClient::open(&sidecar).await;
    for _ in 0..50 {
        if client.0.stream.send(Message::text("noise")).await.is_err() {
            break;
        }
    }
    assert_eq!(client.next().await, Err((1008, "RATE_LIMITED".to_owned())));
    let mut client = UiClient::open(&sidecar).await;
    client.send(&"x".repeat(2001)).await;
    assert_eq!(client.next().await, Err((1009, "MESSAGE_TOO_LARGE".to_owned())));
}

#[tokio::test]
async fn heartbeats_carry_the_number_of_connections() {
    let mut setup = Setup::default();
    setup.settings.observability_heartbeat = Duration::from_millis(50);
    let sidecar = setup.start(Some(plain_flow())).await;
    let (mut first, mut second) = (UiClient::open(&sidecar).await, UiClient::open(&sidecar).await);
    for client in [&mut first, &mut second] {
        loop {
            let beat = client.event().await;
            assert_eq!(beat["event"], "heartbeat");
            if beat["connections"] == 2 {
                break;
            }
        }
    }
    drop(second);
    while first.event().await["connections"] != 1 {}
}

#[tokio::test]
async fn sends_the_same_events_to_fifty_sockets_and_refuses_more() {
    const SOCKETS: u32 = 50;
    let mut setup = Setup::default();
    setup.settings.max_observers = SOCKETS;
    let sidecar = setup.start(Some(tool_flow("calculator-tool"))).await;
    let mut all = Vec::new();
    for _ in 0..SOCKETS {
        all.push(UiClient::open(&sidecar).await);
    }
    UiClient::try_open(&sidecar, TOKEN).await.err().unwrap().refused(503, "TOO_MANY_CONNECTIONS");
    let events = inject(&sidecar, &mut all[0]).await;
    for client in &mut all[1..] {
        assert_eq!(client.frame().await, events);
    }
    all.pop();
    eventually("there is room again", || async { UiClient::try_open(&sidecar, TOKEN).await.ok() }).await;
}

#[tokio::test]
async fn closes_the_socket_of_a_blocked_client_only() {
    /// More than the buffers of the operating system hold.
    const MANY: usize = 200;
    let mut setup = Setup::default();
    setup.settings.send_timeout = Duration::from_secs(1);
    let mut nodes = plain_flow();
    let large = json!(vec!["x".repeat(4900); 9]);
    nodes[1]["payload"] = json!(large.to_string());
    nodes[1]["payloadType"] = json!("json");
    nodes[1]["wires"] = json!([["result"]]);
    let sidecar = setup.start(Some(nodes)).await;
    let mut blocked = UiClient::open(&sidecar).await;
    let mut reading = UiClient::open(&sidecar).await;
    let counting = tokio::spawn(async move {
        for _ in 0..MANY {
            reading.frame().await;
        }
    });
    for _ in 0..MANY {
        sidecar.post("/api/runs", json!({"node": "ask"})).await.ok(202);
    }
    counting.await.unwrap();
    eventually("its socket is closed", || async {
        let metrics = sidecar.get("/metrics").await;
        String::from_utf8_lossy(&metrics.body).contains("closed READER_TOO_SLOW").then_some(())
    })
    .await;
    // It can read the buffered messages, then the socket ends.
    let mut seen = 0;
    while let Some(Ok(Message::Text(_))) = timeout(PATIENCE, blocked.0.stream.next()).await.unwrap() {
        seen += 1;
    }
    assert!(seen < MANY * 4);
}

#[tokio::test]
async fn tells_sockets_of_the_ui_that_the_sidecar_stops() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let mut client = UiClient::open(&sidecar).await;
    sidecar.begin_to_stop();
    assert_eq!(client.next().await, Err((1012, "STOPPING".to_owned())));
}

/// A flow whose agent sends each answer of its model to a debug node.
fn answering_flow(replies: Value, tools: &[(&str, &str)]) -> Value {
    let mut nodes = flow(replies, tools);
    nodes[2]["wires"][4] = json!(["answers"]);
    let answers = json!({"id": "answers", "type": "debug", "z": "tab", "active": true, "complete": "payload",
                      "targetType": "msg", "wires": []});
    nodes.as_array_mut().unwrap().push(answers);
    nodes
}

/// One word or two for each event of a node: its type, or its port and behaviour.
fn outline(events: &[Value], node: &str) -> Vec<String> {
    let own = events.iter().filter(|event| event["nodeId"] == node);
    own.map(|event| match (event["event"].as_str().unwrap(), port(event)) {
        ("node:output", Some(port)) => format!("{port} {}", behavior(event)),
        ("node:output", None) => behavior(event).to_owned(),
        (other, _) => other.to_owned(),
    })
    .collect()
}

#[tokio::test]
async fn shows_a_final_answer() {
    let sidecar =
        TestSidecar::start(answering_flow(json!([{"action": "final", "message": "42"}]), &[])).await;
    let mut client = UiClient::open(&sidecar).await;
    let events = inject(&sidecar, &mut client).await;
    assert_eq!(outline(&events, "ask"), ["0 transformed"]);
    let expected = ["node:input", "0 transformed", "node:input", "4 transformed", "3 transformed"];
    assert_eq!(outline(&events, "agent"), expected);
    assert_eq!(outline(&events, "model"), ["node:input", "0 transformed"]);
    for debug in ["answers", "result"] {
        assert_eq!(outline(&events, debug), ["node:input", "pass-through"]);
    }
    let agent = outputs(&events, "agent");
    assert_eq!(payload(agent[0])["preview"]["tools"], json!([{"name": "calculator"}]));
    assert_eq!(payload(agent[1])["fullMessage"], "42");
    assert_eq!(payload(agent[1])["agentResult"]["action"], "final");
    assert_eq!(payload(agent[2])["agentResult"]["completed"], true);
    let model = payload(outputs(&events, "model")[0]);
    assert_eq!(model["preview"]["payload"]["message"], "42");
    assert_eq!(model["preview"]["_agentCore"]["traceId"], payload(agent[0])["preview"]["traceId"]);
}

#[tokio::test]
async fn shows_a_tool_iteration() {
    let call = json!({"action": "tool", "tool": "calc", "input": {"expression": "6 * 7"}, "confidence": 1});
    let replies = json!([call, {"action": "final", "message": "42"}]);
    let sidecar = TestSidecar::start(answering_flow(replies, &[("calc", "calculator-tool")])).await;
    let mut client = UiClient::open(&sidecar).await;
    let events = inject(&sidecar, &mut client).await;
    let expected = [
        "node:input",
        "0 transformed",
        "node:input",
        "4 transformed",
        "1 transformed",
        "node:input",
        "0 transformed",
        "node:input",
        "4 transformed",
        "3 transformed",
    ];
    assert_eq!(outline(&events, "agent"), expected);
    assert_eq!(outline(&events, "calc"), ["node:input", "0 transformed"]);
    assert_eq!(outline(&events, "model"), ["node:input", "0 transformed", "node:input", "0 transformed"]);
    assert_eq!(payload(outputs(&events, "agent")[2])["preview"], json!({"expression": "6 * 7"}));
}

#[tokio::test]
async fn shows_a_failed_run_as_terminated_with_its_code() {
    let forbidden = json!({"action": "tool", "tool": "other", "input": {}, "confidence": 1});
    for (reply, code) in [(json!("Sure! It is 42."), "INVALID_JSON"), (forbidden, "TOOL_NOT_ALLOWED")] {
        let sidecar = TestSidecar::start(answering_flow(json!([reply]), &[])).await;
        let mut client = UiClient::open(&sidecar).await;
        let events = inject(&sidecar, &mut client).await;
        let expected = ["node:input", "0 transformed", "node:input", "3 terminated", "node:error"];
        assert_eq!(outline(&events, "agent"), expected, "{code}");
        let error = events.iter().find(|event| event["event"] == "node:error").unwrap();
        assert_eq!(error["data"]["error"]["code"], code);
        let shown = payload(outputs(&events, "agent")[1]);
        assert_eq!(shown["agentResult"]["error"]["code"], code);
        assert_eq!(outline(&events, "result"), ["node:input", "pass-through"]);
    }
}

#[tokio::test]
async fn shows_in_the_chat_why_there_is_no_answer() {
    let mut nodes = flow(json!(["Sure! It is 42."]), &[]);
    nodes[2]["wires"][4] = json!(["chat"]);
    let chat = json!({"id": "chat", "type": "chat-node", "z": "tab", "wires": [["agent"]]});
    nodes.as_array_mut().unwrap().push(chat);
    let sidecar = TestSidecar::start(nodes).await;
    let mut client = UiClient::open(&sidecar).await;
    sidecar.post("/chat-node/chat/send", json!({"message": "6 * 7?"})).await.ok(200);
    let events = client.frame().await;
    assert_frame(&events, "chat");
    let expected =
        ["node:input", "0 transformed", "node:input", "4 terminated", "3 terminated", "node:error"];
    assert_eq!(outline(&events, "agent"), expected);
    let text = payload(outputs(&events, "agent")[1])["fullMessage"].as_str().unwrap();
    assert!(!text.is_empty());
    assert_eq!(outline(&events, "chat"), ["0 transformed", "node:input", "pass-through"]);
}

#[tokio::test]
async fn shows_a_refused_agent_at_the_deploy_and_at_every_start() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let mut client = UiClient::open(&sidecar).await;
    let mut nodes = plain_flow();
    // A model must not be wired to the result port.
    nodes[2]["wires"][3] = json!(["model"]);
    assert_eq!(sidecar.post("/flows", nodes).await.status, 204);
    let refused = [client.event().await, client.event().await];
    assert_eq!((&refused[0]["event"], &refused[0]["nodeId"]), (&json!("node:output"), &json!("agent")));
    assert_eq!((refused[0].get("frameId"), behavior(&refused[0])), (None, "terminated"));
    let error = &payload(&refused[0])["preview"]["error"];
    assert_eq!((&refused[1]["event"], &refused[1]["data"]["error"]), (&json!("node:error"), error));
    let events = inject(&sidecar, &mut client).await;
    assert_eq!(outline(&events, "agent"), ["node:input", "3 terminated", "node:error"]);
}

#[tokio::test]
async fn a_frame_ends_when_its_slow_call_is_cancelled() {
    let sidecar = TestSidecar::start(tool_flow("tool.slow")).await;
    let mut client = UiClient::open(&sidecar).await;
    sidecar.post("/api/runs", json!({"node": "ask"})).await.ok(202);
    let mut events = Vec::new();
    while events.last().is_none_or(|last: &Value| last["nodeId"] != "act") {
        events.push(client.event().await);
    }
    let runs = sidecar.get("/api/runs").await.ok(200);
    let run = runs["runs"][0]["runId"].as_str().unwrap();
    sidecar.post(&format!("/api/runs/{run}/cancel"), json!({})).await.ok(200);
    events.extend(client.frame().await);
    assert_frame(&events, "ask");
    assert_eq!(outline(&events, "act"), ["node:input", "terminated", "node:error"]);
    assert_eq!(outline(&events, "agent").last().unwrap(), "node:error");
}

#[tokio::test]
async fn makes_a_frame_for_each_of_two_concurrent_runs() {
    let sidecar = TestSidecar::start(tool_flow("calculator-tool")).await;
    let mut client = UiClient::open(&sidecar).await;
    let start = || sidecar.post("/api/runs", json!({"node": "ask"}));
    let (first, second) = tokio::join!(start(), start());
    first.ok(202);
    second.ok(202);
    let mut events = client.frame().await;
    events.extend(client.frame().await);
    let ids: HashSet<String> =
        events.iter().map(|event| event["frameId"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 2);
    for id in ids {
        let own: Vec<Value> = events.iter().filter(|event| event["frameId"] == *id).cloned().collect();
        assert_frame(&own, "ask");
        assert_eq!(outline(&own, "act"), ["node:input", "0 transformed"]);
    }
}

#[tokio::test]
async fn an_agent_that_waits_for_a_person_does_not_stay_running() {
    let sidecar = TestSidecar::start(tool_flow("tool.lost")).await;
    let mut client = UiClient::open(&sidecar).await;
    let events = inject(&sidecar, &mut client).await;
    assert_eq!(outline(&events, "agent").last().unwrap(), "filtered");
    assert_eq!(outline(&events, "act"), ["node:input", "terminated", "node:error"]);
    assert_eq!(events.last().unwrap()["data"]["stats"]["filteredNodes"], 1);
}

#[tokio::test]
async fn never_shows_a_secret_of_the_flow() {
    const SECRET: &str = "sk-a-secret-of-some-length";
    let mut nodes = answering_flow(json!([]), &[]);
    nodes[1]["payload"] = json!(format!("{SECRET} is what I know"));
    nodes[3] = json!({"id": "model", "type": "openai-model", "z": "tab", "model": "gpt-4o",
                      "baseURL": "http://127.0.0.1:9/v1", "credentials": {"apiKey": SECRET}, "wires": [["agent"]]});
    let sidecar = Setup::default().start(None).await;
    let mut client = UiClient::open(&sidecar).await;
    sidecar.post("/api/deployment", json!({"flows": nodes})).await.ok(200);
    let events = inject(&sidecar, &mut client).await;
    let text = json!(events).to_string();
    assert!(text.contains("[redacted] is what I know") && !text.contains(SECRET), "{text}");
    assert_eq!(outline(&events, "model").last().unwrap(), "node:error");
}

#[tokio::test]
async fn a_stop_during_a_run_leaves_no_node_running() {
    let sidecar = TestSidecar::start(tool_flow("tool.slow")).await;
    let mut client = UiClient::open(&sidecar).await;
    sidecar.post("/api/runs", json!({"node": "ask"})).await.ok(202);
    let mut running = HashSet::new();
    let mut track = |event: &Value| {
        let node = event["nodeId"].as_str().unwrap_or_default().to_owned();
        match event["event"].as_str().unwrap() {
            "node:input" => drop(running.insert(node)),
            "node:output" => drop(running.remove(&node)),
            _ => {}
        }
        running.clone()
    };
    while !track(&client.event().await).contains("act") {}
    sidecar.begin_to_stop();
    let (mut last, end) = (
        HashSet::new(),
        loop {
            match client.next().await {
                Ok(event) => drop(track(&event)),
                Err(end) => break end,
            }
        },
    );
    last.extend(running);
    assert_eq!((last, end), (HashSet::new(), (1012, "STOPPING".to_owned())));
}

#[tokio::test]
async fn shows_refused_and_corrected_agents_to_later_clients() {
    let mut broken = plain_flow();
    broken[2]["maxIterations"] = json!(99);
    let sidecar = TestSidecar::start(broken).await;
    let mut client = UiClient::open(&sidecar).await;
    let event = client.event().await;
    assert_eq!((&event["nodeId"], behavior(&event)), (&json!("agent"), "terminated"));
    let text = payload(&event)["preview"]["error"]["message"].as_str().unwrap();
    assert!(text.contains("maxIterations") && text.contains(". "), "{text}");
    assert_eq!(client.event().await["event"], "node:error");
    sidecar.post("/flows", plain_flow()).await;
    let event = client.event().await;
    assert_eq!((&event["nodeId"], behavior(&event)), (&json!("agent"), "pass-through"));
    assert_eq!(event["data"]["outputs"], json!([]));
}

#[tokio::test]
async fn a_request_for_an_unknown_run_begins_no_frame() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let mut client = UiClient::open(&sidecar).await;
    sidecar.post("/api/runs/nope/cancel", json!({})).await.refused(404, "RUN_UNKNOWN");
    sidecar.post("/api/runs", json!({"node": "ask"})).await.ok(202);
    assert_frame(&client.frame().await, "ask");
}

/// Credentials that are stored while a flow is active become known secrets at once, and earlier ones stay
/// known.
// SECURITY: ui-preview
#[tokio::test]
async fn never_shows_a_secret_that_is_stored_later() {
    let keys = ["sk-first-stored-secret-0123", "sk-second-stored-secret-4567"];
    let mut nodes = plain_flow();
    nodes[3] = json!({"id": "model", "type": "model.azure.openai", "z": "tab", "endpoint": "http://127.0.0.1:9",
                      "deployment": "d", "apiVersion": "v1", "maxRetries": 0, "wires": [["agent"]]});
    let sidecar = Setup::default().start(Some(nodes)).await;
    let mut client = UiClient::open(&sidecar).await;
    for (stored, key) in keys.iter().enumerate() {
        let items = json!({"node-credentials:model": {"apiKey": key}});
        sidecar.post("/redflow/persistent-storage", items).await.ok(200);
        let known = &keys[..=stored];
        sidecar.run(json!({"payload": format!("I know {}", known.join(" and "))})).await;
        let shown = json!(client.frame().await).to_string();
        assert!(shown.contains("I know [redacted]"), "{shown}");
        assert!(!known.iter().any(|key| shown.contains(key)), "{shown}");
    }
}

#[tokio::test]
async fn shows_an_agent_as_ready_after_its_key_is_stored() {
    let mut nodes = plain_flow();
    nodes[3] = json!({"id": "model", "type": "model.azure.openai", "z": "tab", "deployment": "d", "wires": [["agent"]],
                      "endpoint": "https://x.openai.azure.com", "apiVersion": "2024-02-15-preview"});
    let sidecar = TestSidecar::start(nodes).await;
    let mut client = UiClient::open(&sidecar).await;
    assert_eq!(behavior(&client.event().await), "terminated");
    assert_eq!(client.event().await["event"], "node:error");
    let stored = json!({"node-credentials:model": {"apiKey": "sk-1"}});
    sidecar.post("/redflow/persistent-storage", stored).await.ok(200);
    let event = client.event().await;
    assert_eq!((&event["nodeId"], behavior(&event)), (&json!("agent"), "pass-through"));
}
