//! The socket of the Redflow UI: what moves, live, and no node that stays running.

use crate::client::{PATIENCE, Reply, Socket};
use crate::kit::{Setup, TOKEN, World, calling, eventually, flow, plain};
use futures::{SinkExt as _, StreamExt as _};
use pretty_assertions::assert_eq;
use redflow_contract::observability::ObservabilityEvent;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

/// A socket of the UI.
struct Watching(Socket);

impl Watching {
    async fn try_open(world: &World, token: &str) -> Result<Self, Reply> {
        let bearer = format!("Bearer {token}");
        Socket::try_open_at(world.addr, "/observability", &[("authorization", &bearer)]).await.map(Self)
    }

    /// Opens one and hears that it is open.
    async fn open(world: &World) -> Self {
        let mut watching = Self::try_open(world, TOKEN).await.unwrap();
        assert_eq!(watching.event().await["event"], "connected");
        watching
    }

    /// The next message; the code and the reason if the socket is closed.
    async fn next(&mut self) -> Result<Value, (u16, String)> {
        loop {
            match timeout(PATIENCE, self.0.stream.next()).await.unwrap() {
                Some(Ok(Message::Text(text))) => {
                    // Exactly what the contract has.
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

    /// Everything until a frame ends.
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

    async fn say(&mut self, text: &str) {
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

/// One frame, with its trigger, in which no node stays running and whose numbers are right.
fn check(events: &[Value], trigger: &str) {
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

/// Starts the inject node and gives the frame.
async fn inject(world: &World, watching: &mut Watching) -> Vec<Value> {
    world.post("/api/runs", json!({"node": "ask"})).await.ok(202);
    let events = watching.frame().await;
    check(&events, "ask");
    events
}

#[tokio::test]
async fn the_probe_and_then_the_socket_are_open_at_once() {
    let world = World::with(plain()).await;
    let mut probe = Watching::try_open(&world, TOKEN).await.unwrap();
    probe.0.stream.close(None).await.unwrap();
    // What was on its way still comes, and its goodbye is answered.
    loop {
        match timeout(PATIENCE, probe.0.stream.next()).await.unwrap() {
            Some(Ok(Message::Text(_))) => {}
            Some(Ok(Message::Close(_))) => break,
            other => panic!("{other:?}"),
        }
    }
    let mut watching = Watching::open(&world).await;
    inject(&world, &mut watching).await;
}

#[tokio::test]
async fn who_may_not_look_sees_nothing() {
    let world = World::with(plain()).await;
    let refused = Watching::try_open(&world, "another-token-altogether").await.err().unwrap();
    refused.refused(401, "UNAUTHORIZED");
    Socket::try_open_at(world.addr, "/observability", &[]).await.err().unwrap().refused(401, "UNAUTHORIZED");
    world.get("/observability").await.refused(400, "REQUEST_INVALID");
}

#[tokio::test]
async fn a_socket_of_the_ui_does_not_outlive_its_token() {
    let mut setup = Setup::default();
    setup.settings.heartbeat = Duration::from_millis(300);
    let world = setup.start(Some(plain())).await;
    let token = crate::kit::token(world.dir.path(), "guest", &[redflow_contract::api::Scope::Read], 1);
    let mut watching =
        eventually("the token is known", || async { Watching::try_open(&world, &token).await.ok() }).await;
    assert_eq!(watching.event().await["event"], "connected");
    redflow_access::tokens::remove(world.dir.path(), "guest").unwrap();
    assert_eq!(watching.next().await, Err((1008, "UNAUTHORIZED".to_owned())));
}

#[tokio::test]
async fn a_ping_is_answered_and_whatever_else_is_said_means_nothing() {
    let world = World::with(plain()).await;
    let mut watching = Watching::open(&world).await;
    let deep = "[".repeat(5000);
    for noise in ["", "no json", "[]", "7", r#"{"type":"subscribe"}"#, r#"{"type":["ping"]}"#, &deep] {
        watching.say(noise).await;
    }
    watching.say(r#"{"type":"ping"}"#).await;
    assert_eq!(watching.event().await["event"], "pong");
    inject(&world, &mut watching).await;
}

#[tokio::test]
async fn a_socket_of_the_ui_that_says_too_much_is_closed() {
    let mut setup = Setup::default();
    setup.settings.access.requests_per_second = 1;
    setup.settings.access.request_burst = 20;
    setup.settings.max_message_bytes = 2000;
    let world = setup.start(Some(plain())).await;
    let mut watching = Watching::open(&world).await;
    for _ in 0..50 {
        if watching.0.stream.send(Message::text("noise")).await.is_err() {
            break;
        }
    }
    assert_eq!(watching.next().await, Err((1008, "RATE_LIMITED".to_owned())));
    let mut watching = Watching::open(&world).await;
    watching.say(&"x".repeat(2001)).await;
    assert_eq!(watching.next().await, Err((1009, "MESSAGE_TOO_LARGE".to_owned())));
}

#[tokio::test]
async fn every_socket_hears_how_many_there_are() {
    let mut setup = Setup::default();
    setup.settings.observability_heartbeat = Duration::from_millis(50);
    let world = setup.start(Some(plain())).await;
    let (mut first, mut second) = (Watching::open(&world).await, Watching::open(&world).await);
    for watching in [&mut first, &mut second] {
        loop {
            let beat = watching.event().await;
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
async fn fifty_sockets_hear_the_same_and_there_is_an_end_to_them() {
    const SOCKETS: u32 = 50;
    let mut setup = Setup::default();
    setup.settings.max_observers = SOCKETS;
    let world = setup.start(Some(calling("calculator-tool"))).await;
    let mut all = Vec::new();
    for _ in 0..SOCKETS {
        all.push(Watching::open(&world).await);
    }
    Watching::try_open(&world, TOKEN).await.err().unwrap().refused(503, "TOO_MANY_CONNECTIONS");
    let told = inject(&world, &mut all[0]).await;
    for watching in &mut all[1..] {
        assert_eq!(watching.frame().await, told);
    }
    all.pop();
    eventually("there is room again", || async { Watching::try_open(&world, TOKEN).await.ok() }).await;
}

#[tokio::test]
async fn who_does_not_read_is_cut_off_and_others_miss_nothing() {
    /// More than the buffers of the system hold.
    const MANY: usize = 200;
    let mut setup = Setup::default();
    setup.settings.reader_patience = Duration::from_secs(1);
    let mut nodes = plain();
    let large = json!(vec!["x".repeat(4900); 9]);
    nodes[1]["payload"] = json!(large.to_string());
    nodes[1]["payloadType"] = json!("json");
    nodes[1]["wires"] = json!([["result"]]);
    let world = setup.start(Some(nodes)).await;
    let mut stuck = Watching::open(&world).await;
    let mut lively = Watching::open(&world).await;
    let counting = tokio::spawn(async move {
        for _ in 0..MANY {
            lively.frame().await;
        }
    });
    for _ in 0..MANY {
        world.post("/api/runs", json!({"node": "ask"})).await.ok(202);
    }
    counting.await.unwrap();
    eventually("it is cut off", || async {
        let metrics = world.get("/metrics").await;
        String::from_utf8_lossy(&metrics.body).contains("closed READER_TOO_SLOW").then_some(())
    })
    .await;
    // What was in the buffers can be read, then it is over.
    let mut seen = 0;
    while let Some(Ok(Message::Text(_))) = timeout(PATIENCE, stuck.0.stream.next()).await.unwrap() {
        seen += 1;
    }
    assert!(seen < MANY * 4);
}

#[tokio::test]
async fn sockets_of_the_ui_are_told_when_the_sidecar_stops() {
    let world = World::with(plain()).await;
    let mut watching = Watching::open(&world).await;
    world.begin_to_stop();
    assert_eq!(watching.next().await, Err((1012, "STOPPING".to_owned())));
}

/// A flow whose agent tells each answer of its model to a debug node.
fn telling(replies: Value, tools: &[(&str, &str)]) -> Value {
    let mut nodes = flow(replies, tools);
    nodes[2]["wires"][4] = json!(["said"]);
    let said = json!({"id": "said", "type": "debug", "z": "tab", "active": true, "complete": "payload",
                      "targetType": "msg", "wires": []});
    nodes.as_array_mut().unwrap().push(said);
    nodes
}

/// Everything about a node: what it was, by its output or how it behaved.
fn story(events: &[Value], node: &str) -> Vec<String> {
    let own = events.iter().filter(|event| event["nodeId"] == node);
    own.map(|event| match (event["event"].as_str().unwrap(), port(event)) {
        ("node:output", Some(port)) => format!("{port} {}", behavior(event)),
        ("node:output", None) => behavior(event).to_owned(),
        (other, _) => other.to_owned(),
    })
    .collect()
}

#[tokio::test]
async fn a_final_answer_is_seen_to_come() {
    let world = World::with(telling(json!([{"action": "final", "message": "42"}]), &[])).await;
    let mut watching = Watching::open(&world).await;
    let events = inject(&world, &mut watching).await;
    assert_eq!(story(&events, "ask"), ["0 transformed"]);
    let expected = ["node:input", "0 transformed", "node:input", "4 transformed", "3 transformed"];
    assert_eq!(story(&events, "agent"), expected);
    assert_eq!(story(&events, "model"), ["node:input", "0 transformed"]);
    for debug in ["said", "result"] {
        assert_eq!(story(&events, debug), ["node:input", "pass-through"]);
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
async fn a_tool_iteration_is_seen_live() {
    let call = json!({"action": "tool", "tool": "calc", "input": {"expression": "6 * 7"}, "confidence": 1});
    let replies = json!([call, {"action": "final", "message": "42"}]);
    let world = World::with(telling(replies, &[("calc", "calculator-tool")])).await;
    let mut watching = Watching::open(&world).await;
    let events = inject(&world, &mut watching).await;
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
    assert_eq!(story(&events, "agent"), expected);
    assert_eq!(story(&events, "calc"), ["node:input", "0 transformed"]);
    assert_eq!(story(&events, "model"), ["node:input", "0 transformed", "node:input", "0 transformed"]);
    assert_eq!(payload(outputs(&events, "agent")[2])["preview"], json!({"expression": "6 * 7"}));
}

#[tokio::test]
async fn what_goes_wrong_ends_terminated_with_its_code() {
    let forbidden = json!({"action": "tool", "tool": "other", "input": {}, "confidence": 1});
    for (reply, code) in [(json!("Sure! It is 42."), "INVALID_JSON"), (forbidden, "TOOL_NOT_ALLOWED")] {
        let world = World::with(telling(json!([reply]), &[])).await;
        let mut watching = Watching::open(&world).await;
        let events = inject(&world, &mut watching).await;
        let expected = ["node:input", "0 transformed", "node:input", "3 terminated", "node:error"];
        assert_eq!(story(&events, "agent"), expected, "{code}");
        let error = events.iter().find(|event| event["event"] == "node:error").unwrap();
        assert_eq!(error["data"]["error"]["code"], code);
        let shown = payload(outputs(&events, "agent")[1]);
        assert_eq!(shown["agentResult"]["error"]["code"], code);
        assert_eq!(story(&events, "result"), ["node:input", "pass-through"]);
    }
}

#[tokio::test]
async fn a_chat_is_told_why_it_gets_no_answer() {
    let mut nodes = flow(json!(["Sure! It is 42."]), &[]);
    nodes[2]["wires"][4] = json!(["chat"]);
    let chat = json!({"id": "chat", "type": "chat-node", "z": "tab", "wires": [["agent"]]});
    nodes.as_array_mut().unwrap().push(chat);
    let world = World::with(nodes).await;
    let mut watching = Watching::open(&world).await;
    world.post("/chat-node/chat/send", json!({"message": "6 * 7?"})).await.ok(200);
    let events = watching.frame().await;
    check(&events, "chat");
    let expected =
        ["node:input", "0 transformed", "node:input", "4 terminated", "3 terminated", "node:error"];
    assert_eq!(story(&events, "agent"), expected);
    let said = payload(outputs(&events, "agent")[1])["fullMessage"].as_str().unwrap();
    assert!(!said.is_empty());
    assert_eq!(story(&events, "chat"), ["0 transformed", "node:input", "pass-through"]);
}

#[tokio::test]
async fn a_refused_agent_is_told_at_the_deploy_and_whenever_it_is_asked() {
    let world = World::with(plain()).await;
    let mut watching = Watching::open(&world).await;
    let mut nodes = plain();
    // A model is no output.
    nodes[2]["wires"][3] = json!(["model"]);
    assert_eq!(world.post("/flows", nodes).await.status, 204);
    let told = [watching.event().await, watching.event().await];
    assert_eq!((&told[0]["event"], &told[0]["nodeId"]), (&json!("node:output"), &json!("agent")));
    assert_eq!((told[0].get("frameId"), behavior(&told[0])), (None, "terminated"));
    let error = &payload(&told[0])["preview"]["error"];
    assert_eq!((&told[1]["event"], &told[1]["data"]["error"]), (&json!("node:error"), error));
    let events = inject(&world, &mut watching).await;
    assert_eq!(story(&events, "agent"), ["node:input", "3 terminated", "node:error"]);
}

#[tokio::test]
async fn a_frame_goes_on_under_a_slow_call_and_ends_when_it_is_cut_off() {
    let world = World::with(calling("tool.slow")).await;
    let mut watching = Watching::open(&world).await;
    world.post("/api/runs", json!({"node": "ask"})).await.ok(202);
    let mut events = Vec::new();
    while events.last().is_none_or(|last: &Value| last["nodeId"] != "act") {
        events.push(watching.event().await);
    }
    let runs = world.get("/api/runs").await.ok(200);
    let run = runs["runs"][0]["runId"].as_str().unwrap();
    world.post(&format!("/api/runs/{run}/cancel"), json!({})).await.ok(200);
    events.extend(watching.frame().await);
    check(&events, "ask");
    assert_eq!(story(&events, "act"), ["node:input", "terminated", "node:error"]);
    assert_eq!(story(&events, "agent").last().unwrap(), "node:error");
}

#[tokio::test]
async fn two_runs_at_once_are_two_frames() {
    let world = World::with(calling("calculator-tool")).await;
    let mut watching = Watching::open(&world).await;
    let start = || world.post("/api/runs", json!({"node": "ask"}));
    let (first, second) = tokio::join!(start(), start());
    first.ok(202);
    second.ok(202);
    let mut events = watching.frame().await;
    events.extend(watching.frame().await);
    let ids: HashSet<String> =
        events.iter().map(|event| event["frameId"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 2);
    for id in ids {
        let own: Vec<Value> = events.iter().filter(|event| event["frameId"] == *id).cloned().collect();
        check(&own, "ask");
        assert_eq!(story(&own, "act"), ["node:input", "0 transformed"]);
    }
}

#[tokio::test]
async fn an_agent_that_waits_for_a_person_does_not_stay_running() {
    let world = World::with(calling("tool.lost")).await;
    let mut watching = Watching::open(&world).await;
    let events = inject(&world, &mut watching).await;
    assert_eq!(story(&events, "agent").last().unwrap(), "filtered");
    assert_eq!(story(&events, "act"), ["node:input", "terminated", "node:error"]);
    assert_eq!(events.last().unwrap()["data"]["stats"]["filteredNodes"], 1);
}

#[tokio::test]
async fn no_secret_of_the_flow_is_shown() {
    const SECRET: &str = "sk-a-secret-of-some-length";
    let mut nodes = telling(json!([]), &[]);
    nodes[1]["payload"] = json!(format!("{SECRET} is what I know"));
    nodes[3] = json!({"id": "model", "type": "openai-model", "z": "tab", "model": "gpt-4o",
                      "baseURL": "http://127.0.0.1:9/v1", "credentials": {"apiKey": SECRET}, "wires": [["agent"]]});
    let world = Setup::default().start(None).await;
    let mut watching = Watching::open(&world).await;
    world.post("/api/deployment", json!({"flows": nodes})).await.ok(200);
    let events = inject(&world, &mut watching).await;
    let text = json!(events).to_string();
    assert!(text.contains("[redacted] is what I know") && !text.contains(SECRET), "{text}");
    assert_eq!(story(&events, "model").last().unwrap(), "node:error");
}

#[tokio::test]
async fn a_stop_in_the_midst_of_a_run_leaves_no_node_running() {
    let world = World::with(calling("tool.slow")).await;
    let mut watching = Watching::open(&world).await;
    world.post("/api/runs", json!({"node": "ask"})).await.ok(202);
    let mut running = HashSet::new();
    let mut note = |event: &Value| {
        let node = event["nodeId"].as_str().unwrap_or_default().to_owned();
        match event["event"].as_str().unwrap() {
            "node:input" => drop(running.insert(node)),
            "node:output" => drop(running.remove(&node)),
            _ => {}
        }
        running.clone()
    };
    while !note(&watching.event().await).contains("act") {}
    world.begin_to_stop();
    let (mut last, end) = (
        HashSet::new(),
        loop {
            match watching.next().await {
                Ok(event) => drop(note(&event)),
                Err(end) => break end,
            }
        },
    );
    last.extend(running);
    assert_eq!((last, end), (HashSet::new(), (1012, "STOPPING".to_owned())));
}

#[tokio::test]
async fn a_refused_agent_is_shown_to_who_comes_later_and_one_that_is_mended_too() {
    let mut broken = plain();
    broken[2]["maxIterations"] = json!(99);
    let world = World::with(broken).await;
    let mut watching = Watching::open(&world).await;
    let told = watching.event().await;
    assert_eq!((&told["nodeId"], behavior(&told)), (&json!("agent"), "terminated"));
    let text = payload(&told)["preview"]["error"]["message"].as_str().unwrap();
    assert!(text.contains("maxIterations") && text.contains(". "), "{text}");
    assert_eq!(watching.event().await["event"], "node:error");
    world.post("/flows", plain()).await;
    let told = watching.event().await;
    assert_eq!((&told["nodeId"], behavior(&told)), (&json!("agent"), "pass-through"));
    assert_eq!(told["data"]["outputs"], json!([]));
}

#[tokio::test]
async fn what_is_asked_of_a_run_that_is_not_there_begins_no_frame() {
    let world = World::with(plain()).await;
    let mut watching = Watching::open(&world).await;
    world.post("/api/runs/nope/cancel", json!({})).await.refused(404, "RUN_UNKNOWN");
    world.post("/api/runs", json!({"node": "ask"})).await.ok(202);
    check(&watching.frame().await, "ask");
}

/// Credentials that are stored while a flow is in force are its secrets at once, and those before still are.
#[tokio::test]
async fn secrets_that_are_stored_later_are_not_shown_either() {
    let keys = ["sk-first-stored-secret-0123", "sk-second-stored-secret-4567"];
    let mut nodes = plain();
    nodes[3] = json!({"id": "model", "type": "model.azure.openai", "z": "tab", "endpoint": "http://127.0.0.1:9",
                      "deployment": "d", "apiVersion": "v1", "maxRetries": 0, "wires": [["agent"]]});
    let world = Setup::default().start(Some(nodes)).await;
    let mut watching = Watching::open(&world).await;
    for (stored, key) in keys.iter().enumerate() {
        let items = json!({"node-credentials:model": {"apiKey": key}});
        world.post("/redflow/persistent-storage", items).await.ok(200);
        let known = &keys[..=stored];
        world.run(json!({"payload": format!("I know {}", known.join(" and "))})).await;
        let shown = json!(watching.frame().await).to_string();
        assert!(shown.contains("I know [redacted]"), "{shown}");
        assert!(!known.iter().any(|key| shown.contains(key)), "{shown}");
    }
}

#[tokio::test]
async fn an_agent_that_a_stored_key_mends_is_shown_to_be_well() {
    let mut nodes = plain();
    nodes[3] = json!({"id": "model", "type": "model.azure.openai", "z": "tab", "deployment": "d", "wires": [["agent"]],
                      "endpoint": "https://x.openai.azure.com", "apiVersion": "2024-02-15-preview"});
    let world = World::with(nodes).await;
    let mut watching = Watching::open(&world).await;
    assert_eq!(behavior(&watching.event().await), "terminated");
    assert_eq!(watching.event().await["event"], "node:error");
    let stored = json!({"node-credentials:model": {"apiKey": "sk-1"}});
    world.post("/redflow/persistent-storage", stored).await.ok(200);
    let told = watching.event().await;
    assert_eq!((&told["nodeId"], behavior(&told)), (&json!("agent"), "pass-through"));
}
