//! `ws /bridge`, tested with a stand-in for Node-RED.

use crate::client::{PATIENCE, Socket};
use crate::kit::{Setup, TOKEN, TestSidecar, eventually, flow, plain_flow, token, tool_flow};
use crate::llama_stand_in::{flow_with_model, loading_server};
use futures::{SinkExt as _, StreamExt as _};
use redflow_contract::api::Scope;
use redflow_contract::bridge::BridgeMessage;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

/// A stand-in for Node-RED that remembers what the palette module remembers.
pub(crate) struct NodeRed {
    socket: Socket,
    session: String,
    received: u64,
    seq: u64,
    /// The last number that the sidecar has acknowledged.
    acknowledged: u64,
}

fn hello(instance: &str, boot: &str, session: Option<&str>, received: u64) -> Value {
    let mut hello = json!({"type": "hello", "protocol": "redflow.bridge.v1", "instance": instance, "boot": boot,
        "nodeRed": "5.0.7", "bridge": "0.1.0", "received": received});
    if let Some(session) = session {
        hello["session"] = json!(session);
    }
    hello
}

async fn open(sidecar: &TestSidecar, token: &str) -> Socket {
    let bearer = format!("Bearer {token}");
    Socket::try_open_at(sidecar.addr, "/bridge", &[("authorization", &bearer)]).await.unwrap()
}

async fn receive(socket: &mut Socket) -> Option<Value> {
    loop {
        match timeout(PATIENCE, socket.stream.next()).await.unwrap()?.ok()? {
            Message::Text(text) => {
                // The message matches the protocol.
                let _: BridgeMessage =
                    serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}: {text}"));
                return Some(serde_json::from_str(&text).unwrap());
            }
            Message::Close(_) => return None,
            _ => {}
        }
    }
}

/// The code that closes a socket after this first message.
async fn close_code(sidecar: &TestSidecar, first: &str) -> String {
    let mut socket = open(sidecar, TOKEN).await;
    socket.send(Message::text(first)).await;
    let message = receive(&mut socket).await.unwrap();
    assert_eq!(message["type"], "closing", "{message}");
    message["code"].as_str().unwrap().to_owned()
}

impl NodeRed {
    pub(crate) async fn new(sidecar: &TestSidecar, instance: &str, boot: &str) -> Self {
        Self::connect(sidecar, hello(instance, boot, None, 0)).await
    }

    async fn connect(sidecar: &TestSidecar, hello: Value) -> Self {
        let mut socket = open(sidecar, TOKEN).await;
        socket.send(Message::text(hello.to_string())).await;
        let welcome = receive(&mut socket).await.unwrap();
        assert_eq!(welcome["type"], "welcome", "{welcome}");
        let (session, seq) =
            (welcome["session"].as_str().unwrap().to_owned(), welcome["received"].as_u64().unwrap());
        let received = hello["received"].as_u64().unwrap();
        let received = if hello["session"] == welcome["session"] { received } else { 0 };
        Self { socket, session, received, seq, acknowledged: 0 }
    }

    /// Opens another socket as the same process.
    async fn reconnect(self, sidecar: &TestSidecar, instance: &str, boot: &str) -> Self {
        let Self { socket, session, received, .. } = self;
        drop(socket);
        Self::connect(sidecar, hello(instance, boot, Some(&session), received)).await
    }

    async fn send(&mut self, mut message: Value) -> u64 {
        self.seq += 1;
        message["seq"] = json!(self.seq);
        self.socket.send(Message::text(message.to_string())).await;
        self.seq
    }

    /// Receives messages up to the next of a type. Asserts that no number is missing.
    pub(crate) async fn receive(&mut self, wanted: &str) -> Value {
        loop {
            let message = self.next().await;
            if message["type"] == wanted {
                return message;
            }
        }
    }

    async fn next(&mut self) -> Value {
        let message = receive(&mut self.socket).await.unwrap_or_else(|| panic!("the socket was closed"));
        match message["seq"].as_u64() {
            Some(seq) if message["type"] == "ack" => self.acknowledged = seq,
            Some(seq) => {
                assert_eq!(seq, self.received + 1, "{message}");
                self.received = seq;
            }
            None => {}
        }
        message
    }

    async fn ack(&mut self) {
        let ack = json!({"type": "ack", "seq": self.received});
        self.socket.send(Message::text(ack.to_string())).await;
    }

    /// Waits until the sidecar has acknowledged a number.
    async fn wait_for_ack(&mut self, seq: u64) {
        while self.acknowledged < seq {
            self.next().await;
        }
    }

    pub(crate) async fn deploy(&mut self, flows: Value) -> Value {
        self.send(json!({"type": "flows", "revision": "r1", "flows": flows, "credentials": {}})).await;
        let deployed = self.receive("deployed").await;
        self.ack().await;
        deployed
    }

    async fn start(&mut self, start: &str, message: Value) -> u64 {
        self.send(json!({"type": "start", "start": start, "node": "agent", "message": message})).await
    }

    /// Receives and acknowledges the result of a run.
    async fn result(&mut self) -> Value {
        loop {
            let sent = self.receive("send").await;
            self.ack().await;
            if sent["last"] == true {
                return sent;
            }
        }
    }

    pub(crate) async fn reply(&mut self, call: &Value, reply: Value) -> u64 {
        self.send(json!({"type": "tool_result", "run": call["run"], "call": call["call"], "reply": reply}))
            .await
    }
}

pub(crate) fn returned(output: &Value) -> Value {
    json!({"type": "returned", "output": output})
}

/// A flow whose agent calls its only tool, a flow tool of this effect class, once.
pub(crate) fn flow_tool_flow(effect: &str) -> Value {
    let call = json!({"action": "tool", "tool": "look", "input": {"what": "door"}, "confidence": 1});
    let mut nodes = flow(json!([call, {"action": "final", "message": "42"}]), &[("look", "flow-tool")]);
    let nodes_list = nodes.as_array_mut().unwrap();
    nodes_list.retain(|node| node["id"] != "look");
    nodes_list
        .push(json!({"id": "look", "type": "flow-tool", "z": "tab", "toolName": "look", "effect": effect,
        "inputSchema": {"type": "object"}, "wires": [["work"]]}));
    nodes_list.push(json!({"id": "work", "type": "function", "z": "tab", "wires": [["back"]]}));
    nodes_list.push(json!({"id": "back", "type": "flow-tool-return", "z": "tab", "wires": []}));
    nodes
}

async fn status_of(sidecar: &TestSidecar, run: &Value) -> String {
    let run = run.as_str().unwrap();
    sidecar.get(&format!("/api/runs/{run}")).await.ok(200)["summary"]["status"].as_str().unwrap().to_owned()
}

async fn wait_for_status(sidecar: &TestSidecar, run: &Value, wanted: &str) {
    eventually(wanted, || async { (status_of(sidecar, run).await == wanted).then_some(()) }).await;
}

#[tokio::test]
async fn returns_the_result_of_a_run_with_the_properties_of_its_message() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    let deployed = node_red.deploy(plain_flow()).await;
    assert_eq!(deployed["agents"][0]["ready"], true, "{deployed}");
    let tagged = json!({"$redflow": "buffer", "data": "AA=="});
    let seq = node_red.start("s1", json!({"_msgid": "m1", "payload": "6 * 7?", "picture": tagged})).await;
    let sent = node_red.result().await;
    assert_eq!((&sent["node"], &sent["port"], &sent["start"]), (&json!("agent"), &json!(3), &json!("s1")));
    let message = &sent["message"];
    assert_eq!((&message["payload"], &message["_msgid"]), (&json!("42"), &json!("m1")));
    assert_eq!(message["picture"], tagged);
    assert!(message.get("_redflowStart").is_none(), "{message}");
    node_red.wait_for_ack(seq).await;
    // The result counts as delivered, and the run belongs to the instance.
    let run = sent["run"].as_str().unwrap().to_owned();
    let summary = eventually("delivered", || async {
        let run = sidecar.get(&format!("/api/runs/{run}")).await.ok(200)["summary"].clone();
        (run["delivered"] == true).then_some(run)
    });
    assert_eq!(summary.await["agent"], json!({"instance": "home", "nodeId": "agent"}));
    let known = sidecar.get("/api/instances").await.ok(200);
    let known = &known["instances"][0];
    assert_eq!(
        (&known["instance"], &known["connected"], &known["nodeRed"]),
        (&json!("home"), &json!(true), &json!("5.0.7"))
    );
    assert_eq!(known["waiting"], 0, "{known}");
}

#[tokio::test]
async fn sends_port_4_only_if_it_is_wired() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    let mut flows = plain_flow();
    for (wired, expected) in [(false, vec![3]), (true, vec![4, 3])] {
        flows[2]["wires"][4] = if wired { json!(["result"]) } else { json!([]) };
        node_red.deploy(flows.clone()).await;
        node_red.start(&format!("s{wired}"), json!({"payload": "?"})).await;
        let mut ports = Vec::new();
        while ports.last() != Some(&3) {
            ports.push(node_red.receive("send").await["port"].as_i64().unwrap());
            node_red.ack().await;
        }
        assert_eq!(ports, expected);
    }
}

/// A flow whose agent calls the operation `add` of its node `books`.
fn operation_flow() -> Value {
    let call = json!({"action": "tool", "tool": "books__add", "input": {"title": "Rent"}, "confidence": 1});
    let mut nodes = flow(json!([call, {"action": "final", "message": "42"}]), &[("books", "ledger")]);
    nodes[2]["allowedTools"] = json!(["ledger.*"]);
    nodes
}

#[tokio::test]
async fn an_operation_of_a_node_is_a_call_with_a_message_of_its_own() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    let add = json!({"description": "Adds.", "inputSchema": {"type": "object"}, "effect": "read",
        "msg": {"topic": "add", "payload": {"title": "{{input.title}}"}}, "result": "payload.id"});
    let tools = json!({"ledger": {"add": add, "wrong": {"describe": 5}}});
    let flows = json!({"type": "flows", "revision": "r1", "flows": operation_flow(), "credentials": {}, "nodeTools": tools});
    node_red.send(flows).await;
    let deployed = node_red.receive("deployed").await;
    node_red.ack().await;
    // An operation with a problem is reported and left out; the other one works.
    assert_eq!(deployed["agents"][0]["ready"], true, "{deployed:#}");
    let problem = &deployed["report"]["diagnostics"][0];
    assert_eq!((&problem["code"], &deployed["report"]["ok"]), (&json!("MANIFEST_INVALID"), &json!(false)));
    let message = problem["message"].as_str().unwrap();
    assert!(
        message.starts_with("`redflow.tools` of a node package: ") && message.contains("/ledger/wrong"),
        "{message}"
    );
    node_red.start("s1", json!({"payload": "?"})).await;
    let call = node_red.receive("tool_call").await;
    let sent = ["agent", "node", "tool", "input", "effect", "operation"].map(|key| call[key].clone());
    let operation = json!({"msg": {"topic": "add", "payload": {"title": "Rent"}}, "result": "payload.id"});
    assert_eq!(json!(sent), json!(["agent", "books", "books__add", {"title": "Rent"}, "read", operation]));
    node_red.reply(&call, returned(&json!(7))).await;
    assert_eq!(node_red.result().await["message"]["payload"], "42");
    // The log has the call under the operation's id, whatever name the node gave it.
    let calls = sidecar.get("/api/tools/ledger.add/calls").await.ok(200)["calls"].clone();
    assert_eq!(calls.as_array().unwrap().len(), 1, "{calls}");
    let logged = ["id", "tool", "by", "input", "output"].map(|key| calls[0][key].clone());
    assert_eq!(json!(logged), json!(["ledger.add", "books__add", "node-red:home", {"title": "Rent"}, 7]));
}

/// The tools of a Node-RED are offline while it is, and gone when another one has its place.
#[tokio::test]
async fn the_tools_of_a_node_red_go_with_it() {
    let mut setup = Setup::default();
    setup.settings.max_instances = 1;
    let sidecar = setup.start(None).await;
    let mut home = NodeRed::new(&sidecar, "home", "b1").await;
    let tools =
        json!({"ledger": {"add": {"description": "Adds.", "inputSchema": {"type": "object"}, "msg": {}}}});
    let flows = json!({"type": "flows", "revision": "r1", "flows": plain_flow(), "credentials": {}, "nodeTools": tools});
    home.send(flows).await;
    home.receive("deployed").await;
    let states = || async {
        let list = sidecar.get("/api/tools").await.ok(200)["tools"].clone();
        let state = |tool: &Value| json!([tool["id"], tool["instance"], tool["state"]]);
        list.as_array().unwrap().iter().map(state).collect::<Vec<_>>()
    };
    let all = |state: &str| ["builtin.calculator", "ledger.add"].map(|id| json!([id, "home", state]));
    assert_eq!(states().await, all("ready"));
    drop(home);
    eventually("the tools are offline", || async { (states().await == all("away")).then_some(()) }).await;
    let other = NodeRed::new(&sidecar, "other", "b2").await;
    assert_eq!(states().await, Vec::<Value>::new());
    drop(other);
}

#[tokio::test]
async fn operations_that_are_nonsense_close_no_socket() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    for tools in [json!({"ledger": []}), json!({"ledger": {"add": null}}), json!({"": {"": {}}}), Value::Null]
    {
        let is_absent = tools.is_null();
        let flows = json!({"type": "flows", "revision": "r", "flows": plain_flow(), "credentials": {}, "nodeTools": tools});
        node_red.send(flows).await;
        let deployed = node_red.receive("deployed").await;
        node_red.ack().await;
        assert_eq!(deployed["agents"][0]["ready"], true, "{deployed:#}");
        assert_eq!(deployed["report"]["ok"], is_absent, "{deployed:#}");
    }
}

#[tokio::test]
async fn calls_a_flow_tool_once_and_uses_its_result() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    node_red.deploy(flow_tool_flow("at_most_once")).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    let call = node_red.receive("tool_call").await;
    let sent = ["agent", "node", "tool", "input", "effect", "timeoutMs"].map(|key| call[key].clone());
    let expected = json!(["agent", "look", "look", {"what": "door"}, "at_most_once", 30000]);
    assert_eq!(json!(sent), expected);
    assert!(
        call["known"].is_null() && call["idempotencyKey"].as_str().is_some_and(|key| key.len() > 32),
        "{call}"
    );
    node_red.reply(&call, returned(&json!({"$redflow": "date", "data": 5}))).await;
    let result = node_red.result().await;
    let history = &result["message"]["envelope"]["tools"]["history"][0];
    assert_eq!((&history["success"], &history["output"]["data"]), (&json!(true), &json!(5)));
}

/// The socket is cut at every point between a start and its result. Each side sends the last number it
/// received.
#[tokio::test]
async fn a_cut_socket_loses_and_repeats_no_message() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    node_red.deploy(flow_tool_flow("at_most_once")).await;
    let seq = node_red.start("s1", json!({"payload": "?"})).await;
    let call = node_red.receive("tool_call").await;
    node_red.wait_for_ack(seq).await;
    // The call was received and not acknowledged. `received` covers it, so it is not sent again.
    let mut node_red = node_red.reconnect(&sidecar, "home", "b1").await;
    // The last acknowledgement may be lost, so the sidecar sends it again.
    node_red.wait_for_ack(seq).await;
    assert_eq!(node_red.seq, seq, "the start need not be sent again");
    let answer = node_red.reply(&call, returned(&json!("open"))).await;
    let result = node_red.receive("send").await;
    let mut node_red = node_red.reconnect(&sidecar, "home", "b1").await;
    assert_eq!(node_red.seq, answer);
    // The next call belongs to the next start.
    node_red.start("s2", json!({"payload": "again"})).await;
    let next = node_red.receive("tool_call").await;
    assert_ne!(next["run"], result["run"]);
    node_red.ack().await;
    // A message that did not arrive is sent again with the same number.
    let lost = NodeRed { received: node_red.received, ..node_red };
    let mut lost = lost.reconnect(&sidecar, "home", "b1").await;
    lost.reply(&next, returned(&json!("shut"))).await;
    drop(lost.receive("send").await);
    lost.received -= 1;
    let mut back = lost.reconnect(&sidecar, "home", "b1").await;
    let result = back.result().await;
    assert_eq!((&result["run"], &result["start"]), (&next["run"], &json!("s2")));
}

#[tokio::test]
async fn a_repeated_start_begins_no_second_run() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    node_red.deploy(plain_flow()).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    node_red.result().await;
    let seq = node_red.start("s1", json!({"payload": "?"})).await;
    node_red.wait_for_ack(seq).await;
    assert_eq!(sidecar.get("/api/runs").await.ok(200)["runs"].as_array().unwrap().len(), 1);
}

/// Only the sidecar has restarted. Node-RED knows the outcome of the call, so no person has to answer.
#[tokio::test]
async fn resumes_runs_after_a_sidecar_restart_with_outcomes_from_node_red() {
    for (effect, known) in [("read", false), ("idempotent", false), ("at_most_once", true)] {
        let mut setup = Setup::default();
        setup.settings.drain_timeout = std::time::Duration::ZERO;
        let dir = setup.dir.clone();
        let sidecar = setup.start(None).await;
        let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
        node_red.deploy(flow_tool_flow(effect)).await;
        let seq = node_red.start("s1", json!({"payload": "?", "topic": "kept"})).await;
        let call = node_red.receive("tool_call").await;
        node_red.wait_for_ack(seq).await;
        drop(node_red.socket);
        sidecar.stop().await;

        let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
        let mut back =
            NodeRed::connect(&sidecar, hello("home", "b1", Some(&node_red.session), node_red.received)).await;
        assert_ne!(back.session, node_red.session);
        back.deploy(flow_tool_flow(effect)).await;
        let again = back.receive("tool_call").await;
        assert_eq!(
            (&again["call"], &again["idempotencyKey"]),
            (&call["call"], &call["idempotencyKey"]),
            "{effect}"
        );
        assert_eq!(again["known"] == true, known, "{effect}");
        back.ack().await;
        back.reply(&again, returned(&json!("open"))).await;
        let result = back.result().await;
        assert_eq!((&result["start"], &result["message"]["topic"]), (&json!("s1"), &json!("kept")));
        assert_eq!(result["message"]["payload"], "42");
    }
}

#[tokio::test]
async fn a_call_with_an_unknown_outcome_waits_for_a_person() {
    let mut setup = Setup::default();
    setup.settings.drain_timeout = std::time::Duration::ZERO;
    let dir = setup.dir.clone();
    let sidecar = setup.start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    node_red.deploy(flow_tool_flow("at_most_once")).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    let run = node_red.receive("tool_call").await["run"].clone();
    drop(node_red.socket);
    sidecar.stop().await;
    // Both have restarted.
    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    let mut back = NodeRed::new(&sidecar, "home", "b2").await;
    back.deploy(flow_tool_flow("at_most_once")).await;
    let query = back.receive("tool_call").await;
    assert_eq!(query["known"], true);
    back.reply(&query, json!({"type": "unknown", "reason": "Node-RED does not know this call"})).await;
    wait_for_status(&sidecar, &run, "waiting").await;
    // A person resolves the call, and the result arrives.
    let body = json!({"callId": query["call"], "result": {"success": true, "output": "open"}});
    sidecar.post(&format!("/api/runs/{}/resolve", run.as_str().unwrap()), body).await.ok(200);
    assert_eq!(back.result().await["message"]["payload"], "42");
}

/// Only Node-RED has restarted.
#[tokio::test]
async fn repeats_calls_by_effect_class_after_a_node_red_restart() {
    for (effect, repeats) in [("read", true), ("idempotent", true), ("at_most_once", false)] {
        let sidecar = Setup::default().start(None).await;
        let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
        node_red.deploy(flow_tool_flow(effect)).await;
        node_red.start("s1", json!({"payload": "?"})).await;
        let call = node_red.receive("tool_call").await;
        node_red.ack().await;
        drop(node_red.socket);
        let is_disconnected = || async {
            (sidecar.get("/api/instances").await.ok(200)["instances"][0]["connected"] == false).then_some(())
        };
        eventually("disconnected", is_disconnected).await;
        let mut back = NodeRed::new(&sidecar, "home", "b2").await;
        if repeats {
            let again = back.receive("tool_call").await;
            assert_eq!((&again["call"], &again["idempotencyKey"]), (&call["call"], &call["idempotencyKey"]));
            back.deploy(flow_tool_flow(effect)).await;
            back.reply(&again, returned(&json!("open"))).await;
            assert_eq!(back.result().await["message"]["payload"], "42");
        } else {
            wait_for_status(&sidecar, &call["run"], "waiting").await;
        }
    }
}

#[tokio::test]
async fn a_call_that_was_never_sent_fails() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    let mut flows = flow_tool_flow("at_most_once");
    // The model is slow, so that the call is made after Node-RED has disconnected.
    for node in flows.as_array_mut().unwrap() {
        if node["id"] == "model" {
            node["delayMs"] = json!(800);
        }
        if node["id"] == "look" {
            node["timeout"] = json!(200);
        }
    }
    node_red.deploy(flows).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    let first_run = || async {
        let run = sidecar.get("/api/runs").await.ok(200)["runs"][0]["runId"].clone();
        run.is_string().then_some(run)
    };
    let run = eventually("the run has begun", first_run).await;
    let session = node_red.session.clone();
    let received = node_red.received;
    drop(node_red.socket);
    wait_for_status(&sidecar, &run, "completed").await;
    let mut back = NodeRed::connect(&sidecar, hello("home", "b1", Some(&session), received)).await;
    let result = back.result().await;
    let history = &result["message"]["envelope"]["tools"]["history"][0];
    let reason = "the call was not made: Node-RED was not connected in time";
    assert_eq!((&history["success"], &history["error"]), (&json!(false), &json!(reason)));
}

/// The call timed out in the run, and the flow replies later.
#[tokio::test]
async fn a_late_reply_resolves_a_waiting_run_or_is_dropped() {
    for (effect, dropped) in [("at_most_once", false), ("read", true)] {
        let sidecar = Setup::default().start(None).await;
        let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
        let mut flows = flow_tool_flow(effect);
        for node in flows.as_array_mut().unwrap().iter_mut().filter(|node| node["id"] == "look") {
            node["timeout"] = json!(50);
        }
        node_red.deploy(flows).await;
        node_red.start("s1", json!({"payload": "?"})).await;
        let call = node_red.receive("tool_call").await;
        if dropped {
            node_red.result().await;
            let seq = node_red.reply(&call, returned(&json!("late"))).await;
            let notice = node_red.receive("notice").await;
            assert_eq!((&notice["code"], &notice["node"]), (&json!("REPLY_DROPPED"), &json!("agent")));
            node_red.wait_for_ack(seq).await;
        } else {
            let notice = node_red.receive("notice").await;
            assert_eq!((&notice["code"], &notice["node"]), (&json!("TOOL_OUTCOME_UNKNOWN"), &json!("agent")));
            assert!(notice["message"].as_str().unwrap().contains("redflow runs resolve"), "{notice}");
            wait_for_status(&sidecar, &call["run"], "waiting").await;
            node_red.reply(&call, returned(&json!("late"))).await;
            let result = node_red.result().await;
            assert_eq!(result["message"]["envelope"]["tools"]["history"][0]["output"], "late");
        }
    }
}

#[tokio::test]
async fn draws_the_flow_of_a_node_red() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "house", "b1").await;
    let path = "/api/flows/graph?instance=house";
    sidecar.get(path).await.refused(404, "NOT_FOUND");
    let mut flow = plain_flow();
    flow[3]["credentials"] = json!({"apiKey": "sk-hidden"});
    node_red.deploy(flow).await;
    let graph = sidecar.get(path).await.ok(200);
    assert_eq!((&graph["tabs"][0]["label"], graph["nodes"].as_array().unwrap().len()), (&json!("Home"), 5));
    assert!(!graph.to_string().contains("sk-hidden"), "{graph}");
    sidecar.get(&format!("{path}&tab=none")).await.refused(404, "NOT_FOUND");
}

// SECURITY: bridge-separate
#[tokio::test]
async fn separates_two_node_reds() {
    let sidecar = Setup::default().start(None).await;
    let mut home = NodeRed::new(&sidecar, "home", "b1").await;
    let mut work = NodeRed::new(&sidecar, "work", "b2").await;
    home.deploy(flow_tool_flow("at_most_once")).await;
    work.deploy(plain_flow()).await;
    // The same start id and the same agent id.
    home.start("s1", json!({"payload": "?"})).await;
    work.start("s1", json!({"payload": "?"})).await;
    let call = home.receive("tool_call").await;
    let of_work = work.result().await;
    assert_ne!(of_work["run"], call["run"]);
    // Neither can answer, cancel or see the runs of the other.
    let seq = work.reply(&call, returned(&json!("forged"))).await;
    work.wait_for_ack(seq).await;
    let seq = work.send(json!({"type": "cancel", "start": "s1", "reason": "not mine"})).await;
    work.wait_for_ack(seq).await;
    home.reply(&call, returned(&json!("true"))).await;
    assert_eq!(home.result().await["message"]["envelope"]["tools"]["history"][0]["output"], "true");
}

#[tokio::test]
async fn cancels_runs_by_start_by_deploy_and_by_http() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    node_red.deploy(flow_tool_flow("at_most_once")).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    let call = node_red.receive("tool_call").await;
    node_red.send(json!({"type": "cancel", "start": "s1", "reason": "no more"})).await;
    let result = node_red.result().await;
    assert_eq!(result["message"]["error"]["code"], "CANCELLED", "{call}");
    // The agent is removed during a run.
    node_red.start("s2", json!({"payload": "?"})).await;
    let call = node_red.receive("tool_call").await;
    node_red.deploy(json!([{"id": "tab", "type": "tab", "label": "empty"}])).await;
    wait_for_status(&sidecar, &call["run"], "failed").await;
    // And over HTTP.
    node_red.deploy(flow_tool_flow("at_most_once")).await;
    node_red.start("s3", json!({"payload": "?"})).await;
    let run = node_red.receive("tool_call").await["run"].clone();
    sidecar.post(&format!("/api/runs/{}/cancel", run.as_str().unwrap()), json!({})).await.ok(200);
    assert_eq!(node_red.result().await["message"]["error"]["code"], "CANCELLED");
}

#[tokio::test]
async fn a_deploy_that_keeps_the_agent_keeps_its_runs() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    node_red.deploy(flow_tool_flow("read")).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    let call = node_red.receive("tool_call").await;
    let mut flows = flow_tool_flow("read");
    flows[2]["name"] = json!("Another name");
    node_red.deploy(flows).await;
    node_red.reply(&call, returned(&json!("open"))).await;
    assert_eq!(node_red.result().await["message"]["payload"], "42");
}

#[tokio::test]
async fn refused_agents_reply_with_the_reason() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    let mut flows = plain_flow();
    flows[2]["wires"][0] = json!([]);
    flows[3]["wires"] = json!([[]]);
    let deployed = node_red.deploy(flows).await;
    let agent = &deployed["agents"][0];
    assert_eq!((&agent["ready"], &agent["problems"][0]["code"]), (&json!(false), &json!("MODEL_MISSING")));
    node_red.start("s1", json!({"payload": "?"})).await;
    let result = node_red.result().await;
    assert_eq!(
        (&result["start"], &result["message"]["error"]["code"]),
        (&json!("s1"), &json!("EDGE_REJECTED"))
    );
    // A model without a key refuses its agent in the same way, in the report too.
    let mut flows = plain_flow();
    flows[3] = json!({"id": "model", "type": "openai-model", "z": "tab", "wires": [[]]});
    let deployed = node_red.deploy(flows).await;
    let problem = &deployed["report"]["diagnostics"][0];
    assert_eq!((&problem["code"], &problem["node"]["id"]), (&json!("MODEL_KEY_MISSING"), &json!("model")));
    assert_eq!(deployed["agents"][0]["problems"], json!([problem]));
    // A notice of a tool refuses nothing.
    let deployed = node_red.deploy(tool_flow("tool.noticed")).await;
    let notice = deployed["report"]["diagnostics"].as_array().unwrap().last().unwrap();
    assert_eq!((&notice["code"], &notice["node"]["id"]), (&json!("COLLECTION_UNKNOWN"), &json!("act")));
    assert_eq!((&deployed["report"]["ok"], &deployed["agents"][0]["ready"]), (&json!(true), &json!(true)));
    node_red.deploy(plain_flow()).await;
    // An invalid flow is refused, and the flow before stays active.
    node_red
        .send(json!({"type": "flows", "revision": "r2", "flows": [{"type": "tab"}], "credentials": {}}))
        .await;
    let refused = node_red.receive("flows_refused").await;
    assert_eq!((&refused["revision"], &refused["error"]["code"]), (&json!("r2"), &json!("FLOW_REFUSED")));
    // An unknown agent.
    node_red.send(json!({"type": "start", "start": "s2", "node": "gone", "message": {"payload": 1}})).await;
    let failed = node_red.receive("start_failed").await;
    assert_eq!((&failed["start"], &failed["code"]), (&json!("s2"), &json!("NOT_FOUND")));
}

#[tokio::test]
async fn sends_statuses_and_watched_events() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    node_red.deploy(plain_flow()).await;
    node_red.socket.send(Message::text(json!({"type": "watch", "events": true}).to_string())).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    let mut kinds = Vec::new();
    while kinds.last() != Some(&json!("run_finished")) {
        kinds.push(node_red.receive("event").await["event"]["event"]["type"].clone());
    }
    assert_eq!(json!(kinds), json!(["run_started", "model_called", "model_answered", "run_finished"]));
    loop {
        let status = node_red.receive("status").await;
        if status["fill"] == "green" {
            assert_eq!(
                (&status["shape"], &status["text"]),
                (&json!("dot"), &json!("done after 1 iteration"))
            );
            break;
        }
    }
}

/// The text of an answer reaches Node-RED in pieces, with the start they belong to, before the result.
#[tokio::test]
async fn streams_the_text_of_an_agent() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    let answer = "The quick brown fox jumps over the lazy dog. ".repeat(40);
    let agent = |wires: Value| {
        json!([
            {"id": "t", "type": "tab"},
            {"id": "agent", "z": "t", "type": "ai-agent", "name": "", "model": "m", "wires": wires},
            {"id": "m", "z": "t", "type": "scripted-model", "name": "", "replies": [answer], "wires": []},
            {"id": "d", "z": "t", "type": "debug", "name": "", "wires": []},
        ])
    };
    for (start, wires) in [("s1", json!([["d"], ["d"]])), ("s2", json!([["d"], []]))] {
        node_red.deploy(agent(wires)).await;
        node_red.start(start, json!({"payload": "hi", "_msgid": "m1"})).await;
        let (mut joined, mut last) = (String::new(), Value::Null);
        let result = loop {
            let message = node_red.next().await;
            match message["type"].as_str().unwrap() {
                "stream" => {
                    assert_eq!((&message["node"], &message["port"]), (&json!("agent"), &json!(1)));
                    assert_eq!((&message["start"], &message["seq"]), (&json!(start), &Value::Null));
                    joined += message["message"]["payload"].as_str().unwrap();
                    last = message["message"]["stream"].clone();
                }
                "send" => break message,
                _ => {}
            }
        };
        assert_eq!(result["message"]["payload"], json!(answer));
        if start == "s1" {
            assert_eq!((joined, &last["type"]), (answer.clone(), &json!("end")));
            assert_eq!(last["runId"], result["run"]);
        } else {
            assert_eq!((joined, last), (String::new(), Value::Null));
        }
        node_red.ack().await;
    }
}

// SECURITY: bridge-separate
#[tokio::test]
async fn refuses_connections_with_a_reason() {
    let mut setup = Setup::default();
    setup.settings.max_instances = 2;
    setup.settings.max_bridge_bytes = 10_000;
    let reader = token(setup.dir.path(), "runner", &[Scope::Run], 1);
    let sidecar = setup.start(None).await;
    let reply = Socket::try_open_at(sidecar.addr, "/bridge", &[("authorization", "Bearer wrong")])
        .await
        .err()
        .unwrap();
    reply.refused(401, "UNAUTHORIZED");
    let bearer = format!("Bearer {reader}");
    let reply =
        Socket::try_open_at(sidecar.addr, "/bridge", &[("authorization", &bearer)]).await.err().unwrap();
    reply.refused(403, "FORBIDDEN");

    let mut other = hello("home", "b1", None, 0);
    other["protocol"] = json!("redflow.bridge.v9");
    assert_eq!(close_code(&sidecar, &other.to_string()).await, "PROTOCOL_MISMATCH");
    let invalid = [
        json!({"type": "ack", "seq": 1}),
        hello("local", "b1", None, 0),
        hello("", "b1", None, 0),
        hello("a b", "b1", None, 0),
        hello(&"x".repeat(201), "b1", None, 0),
        hello("home", "", None, 0),
        json!({"type": "hello"}),
    ];
    for hello in invalid {
        assert_eq!(close_code(&sidecar, &hello.to_string()).await, "MESSAGE_INVALID", "{hello}");
    }
    assert_eq!(close_code(&sidecar, "{\"type\":").await, "MESSAGE_INVALID");

    let home = NodeRed::new(&sidecar, "home", "b1").await;
    assert_eq!(close_code(&sidecar, &hello("home", "b2", None, 0).to_string()).await, "INSTANCE_TAKEN");
    let _work = NodeRed::new(&sidecar, "work", "b3").await;
    assert_eq!(close_code(&sidecar, &hello("third", "b4", None, 0).to_string()).await, "TOO_MANY_INSTANCES");
    // A disconnected Node-RED makes room.
    drop(home);
    let connect = || async {
        let mut socket = open(&sidecar, TOKEN).await;
        socket.send(Message::text(hello("third", "b4", None, 0).to_string())).await;
        (receive(&mut socket).await.unwrap()["type"] == "welcome").then_some(())
    };
    eventually("room for the third", connect).await;
}

#[tokio::test]
async fn limits_the_sockets_without_hello() {
    let mut setup = Setup::default();
    setup.settings.max_instances = 2;
    let sidecar = setup.start(None).await;
    let (first, second) = (open(&sidecar, TOKEN).await, open(&sidecar, TOKEN).await);
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("authorization", bearer.as_str())];
    let try_open = || Socket::try_open_at(sidecar.addr, "/bridge", &headers);
    try_open().await.err().unwrap().refused(503, "TOO_MANY_CONNECTIONS");
    drop((first, second));
    eventually("there is room again", || async { try_open().await.ok().map(drop) }).await;
}

// SECURITY: message-limit
#[tokio::test]
async fn limits_messages_as_it_limits_bodies() {
    let mut setup = Setup::default();
    setup.settings.max_body_keys = 100_000;
    setup.settings.run_limits.max_message_bytes = 1_000_000;
    let sidecar = setup.start(None).await;
    // Before `hello` only a small message is parsed.
    let zeros = |count: usize| format!("[{}0]", "0,".repeat(count));
    assert_eq!(close_code(&sidecar, &zeros(40_000)).await, "MESSAGE_TOO_LARGE");
    assert_eq!(close_code(&sidecar, &zeros(23_000_000)).await, "MESSAGE_TOO_LARGE");
    // After it, values are counted before they are parsed, and only a flow may be larger than a message.
    let start = |payload: &str| {
        format!(r#"{{"type":"start","seq":1,"start":"s","node":"agent","message":{{"payload":{payload}}}}}"#)
    };
    let long = format!("\"{}\"", "x".repeat(1_200_000));
    for (nr, text) in [start(&zeros(150_000)), start(&zeros(1_000_000)), start(&long)].into_iter().enumerate()
    {
        let mut node_red = NodeRed::new(&sidecar, "home", &format!("b{nr}")).await;
        node_red.socket.send(Message::text(text)).await;
        let message = receive(&mut node_red.socket).await.unwrap();
        assert_eq!((&message["type"], &message["code"]), (&json!("closing"), &json!("MESSAGE_TOO_LARGE")));
        drop(node_red);
    }
    let mut node_red = NodeRed::new(&sidecar, "home", "last").await;
    let deployed =
        node_red.deploy(json!([{"id": "n", "type": "comment", "info": "x".repeat(2_000_000)}])).await;
    assert_eq!(deployed["report"]["ok"], true);
}

// SECURITY: bridge-separate
#[tokio::test]
async fn closes_the_socket_after_an_invalid_message() {
    let mut setup = Setup::default();
    setup.settings.max_bridge_bytes = 10_000;
    let sidecar = setup.start(None).await;
    let big = format!("{{\"type\":\"ack\",\"seq\":0{}}}", " ".repeat(20_000));
    let deep = format!(
        "{{\"type\":\"start\",\"seq\":1,\"start\":\"s\",\"node\":\"agent\",\"message\":{}1{}}}",
        "{\"a\":".repeat(200),
        "}".repeat(200)
    );
    let cases = [
        (hello("home", "b1", None, 0).to_string(), "MESSAGE_INVALID"),
        (
            json!({"type": "start", "seq": 7, "start": "s", "node": "agent", "message": {}}).to_string(),
            "MESSAGE_INVALID",
        ),
        (
            json!({"type": "start", "seq": 1, "start": "s\n", "node": "agent", "message": {}}).to_string(),
            "MESSAGE_INVALID",
        ),
        (json!({"type": "ack", "seq": 9}).to_string(), "MESSAGE_INVALID"),
        (json!({"type": "ack", "seq": 0, "more": 1}).to_string(), "MESSAGE_INVALID"),
        (json!(["ack", 0]).to_string(), "MESSAGE_INVALID"),
        (
            json!({"type": "tool_result", "seq": 1, "run": "r", "call": "c", "reply": ["returned", 1]}).to_string(),
            "MESSAGE_INVALID",
        ),
        (
            r#"{"type":"start","seq":1,"start":"s","node":"agent","message":{"payload":123456789012345678901}}"#
                .to_owned(),
            "MESSAGE_INVALID",
        ),
        (deep, "MESSAGE_INVALID"),
        (big, "MESSAGE_TOO_LARGE"),
    ];
    for (nr, (text, code)) in cases.into_iter().enumerate() {
        let mut node_red = NodeRed::new(&sidecar, "home", &format!("b{nr}")).await;
        node_red.socket.stream.send(Message::text(text.clone())).await.unwrap();
        let message = receive(&mut node_red.socket).await.unwrap();
        assert_eq!((&message["type"], &message["code"]), (&json!("closing"), &json!(code)), "{text}");
        drop(node_red);
        let is_disconnected = || async {
            (sidecar.get("/api/instances").await.ok(200)["instances"][0]["connected"] == false).then_some(())
        };
        eventually("disconnected", is_disconnected).await;
    }
}

/// Keys are held in memory only.
// SECURITY: bridge-credentials
#[tokio::test]
async fn credentials_reach_the_nodes_and_no_file() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    let key = "sk-of-node-red-4711";
    let mut flows = plain_flow();
    flows[3] = json!({"id": "model", "type": "openai-model", "z": "tab", "model": "gpt-x", "keyNode": "shared",
        "wires": [["agent"]]});
    flows.as_array_mut().unwrap().push(json!({"id": "shared", "type": "openai-key"}));
    // At the provider itself a model cannot be built without a key. Nothing is sent there.
    let own = json!({"model": {"apiKey": key}});
    let shared = json!({"shared": {"apiKey": key}});
    let nowhere = json!("http://127.0.0.1:9");
    let rows = [(json!({}), json!(""), false), (shared, json!(""), true), (own, nowhere, true)];
    for (number, (credentials, address, ready)) in rows.into_iter().enumerate() {
        flows[3]["baseURL"] = address;
        let revision = format!("r{number}");
        node_red
            .send(json!({"type": "flows", "revision": revision, "flows": flows, "credentials": credentials}))
            .await;
        let deployed = node_red.receive("deployed").await;
        assert_eq!(deployed["agents"][0]["ready"], ready, "{deployed}");
    }
    node_red.start("s1", json!({"payload": "?"})).await;
    let result = node_red.result().await;
    // No server listens there, so the model was built with the key and called.
    assert_eq!(result["message"]["error"]["code"], "PROVIDER_UNAVAILABLE", "{result}");
    let dir = sidecar.stop().await;
    let mut files = vec![dir.path().to_owned()];
    let mut seen = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            seen += 1;
            assert!(!bytes.windows(key.len()).any(|window| window == key.as_bytes()), "{}", path.display());
        }
    }
    assert!(seen > 0);
}

/// A message without a payload only clears the memory. Node-RED gets `start_done`, or the error.
#[tokio::test]
async fn a_message_that_only_clears_memory_gets_no_result() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    let mut flows = plain_flow();
    flows[2]["wires"][2] = json!(["memory"]);
    let memory =
        json!({"id": "memory", "type": "buffer-memory", "z": "tab", "sessionId": "s", "wires": [["agent"]]});
    flows.as_array_mut().unwrap().push(memory);
    node_red.deploy(flows.clone()).await;
    node_red.start("s1", json!({"memory": "clear"})).await;
    assert_eq!(node_red.receive("start_done").await["start"], "s1");
    // No server listens there.
    let last = flows.as_array_mut().unwrap().last_mut().unwrap();
    (last["type"], last["url"]) = (json!("redis-memory"), json!("redis://127.0.0.1:9"));
    let deployed = node_red.deploy(flows).await;
    assert_eq!(deployed["agents"][0]["ready"], true, "{deployed}");
    node_red.start("s2", json!({"memory": "clear"})).await;
    let result = node_red.result().await;
    assert_eq!(
        (&result["start"], &result["message"]["error"]["code"]),
        (&json!("s2"), &json!("MEMORY_ERROR"))
    );
}

/// The run no longer waits for the call, and Node-RED may not have received it.
#[tokio::test]
async fn queries_a_cancelled_call_instead_of_making_it() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    node_red.deploy(flow_tool_flow("at_most_once")).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    let call = node_red.receive("tool_call").await;
    sidecar.post(&format!("/api/runs/{}/cancel", call["run"].as_str().unwrap()), json!({})).await.ok(200);
    node_red.received -= 1;
    let mut back = node_red.reconnect(&sidecar, "home", "b1").await;
    let again = back.receive("tool_call").await;
    assert_eq!((&again["call"], &again["known"]), (&call["call"], &json!(true)));
}

#[tokio::test]
async fn uses_a_reply_that_arrives_while_the_sidecar_stops() {
    let mut setup = Setup::default();
    setup.settings.drain_timeout = std::time::Duration::from_secs(20);
    let dir = setup.dir.clone();
    let sidecar = setup.start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    node_red.deploy(flow_tool_flow("at_most_once")).await;
    let seq = node_red.start("s1", json!({"payload": "?"})).await;
    let call = node_red.receive("tool_call").await;
    node_red.wait_for_ack(seq).await;
    sidecar.begin_to_stop();
    // It takes no more work and does not acknowledge it.
    let late = node_red.start("s2", json!({"payload": "?"})).await;
    node_red.send(json!({"type": "flows", "revision": "r9", "flows": [], "credentials": {}})).await;
    node_red.reply(&call, returned(&json!("open"))).await;
    while let Some(message) = receive(&mut node_red.socket).await {
        assert!(message["type"] != "ack" || message["seq"].as_u64().unwrap() < late, "{message}");
        if message["type"] == "closing" {
            assert_eq!(message["code"], "STOPPING");
        }
    }
    sidecar.stop().await;
    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    let mut back = NodeRed::new(&sidecar, "home", "b1").await;
    back.deploy(flow_tool_flow("at_most_once")).await;
    // The reply is on disk, so the call is not queried.
    loop {
        let message = back.next().await;
        assert_ne!(message["type"], "tool_call", "{message}");
        if message["type"] == "send" {
            assert_eq!((&message["start"], &message["message"]["payload"]), (&json!("s1"), &json!("42")));
            break;
        }
    }
}

/// A reply that no run can use blocks nothing. The second call keeps the run alive meanwhile.
#[tokio::test]
async fn a_late_reply_is_acknowledged_at_once() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    let call =
        |tool: &str| json!({"action": "tool", "tool": tool, "input": {"what": "door"}, "confidence": 1});
    let replies = json!([call("look"), call("ask"), {"action": "final", "message": "42"}]);
    let mut flows = flow(replies, &[("look", "flow-tool"), ("ask", "flow-tool")]);
    let nodes = flows.as_array_mut().unwrap();
    nodes.retain(|node| node["id"] != "look" && node["id"] != "ask");
    for (tool, timeout) in [("look", 20), ("ask", 30_000)] {
        nodes.push(json!({"id": tool, "type": "flow-tool", "z": "tab", "toolName": tool, "effect": "read",
            "timeout": timeout, "inputSchema": {"type": "object"}, "wires": [["back"]]}));
    }
    nodes.push(json!({"id": "back", "type": "flow-tool-return", "z": "tab", "wires": []}));
    node_red.deploy(flows).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    let late = node_red.receive("tool_call").await;
    // The model calls the second tool after the first has timed out.
    let waiting = node_red.receive("tool_call").await;
    assert_eq!((&late["node"], &waiting["node"]), (&json!("look"), &json!("ask")));
    let seq = node_red.reply(&late, returned(&json!("late"))).await;
    node_red.wait_for_ack(seq).await;
    assert_eq!(status_of(&sidecar, &late["run"]).await, "running");
    node_red.reply(&waiting, returned(&json!("now"))).await;
    assert_eq!(node_red.result().await["message"]["payload"], "42");
}

#[tokio::test]
async fn acknowledges_a_failed_start_after_its_reply_arrived() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    node_red.deploy(plain_flow()).await;
    let seq = node_red
        .send(json!({"type": "start", "start": "s1", "node": "gone", "message": {"payload": 1}}))
        .await;
    node_red.receive("start_failed").await;
    node_red.start("s2", json!({"payload": "?"})).await;
    node_red.receive("send").await;
    assert!(node_red.acknowledged < seq, "it is not acknowledged yet");
    node_red.ack().await;
    node_red.wait_for_ack(seq + 1).await;
}

#[tokio::test]
async fn a_silent_node_red_counts_as_disconnected() {
    let mut setup = Setup::default();
    setup.settings.heartbeat = std::time::Duration::from_millis(100);
    let sidecar = setup.start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    node_red.deploy(flow_tool_flow("read")).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    node_red.receive("tool_call").await;
    // Its socket is open but not read, so no ping is answered.
    let is_disconnected = || async {
        (sidecar.get("/api/instances").await.ok(200)["instances"][0]["connected"] == false).then_some(())
    };
    eventually("disconnected", is_disconnected).await;
    NodeRed::new(&sidecar, "home", "b2").await;
}

/// Node-RED may be busy with a deploy. A message that waits there must not block a cancel.
#[tokio::test]
async fn a_run_with_an_unacknowledged_answer_can_be_cancelled() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    let mut flows = flow_tool_flow("at_most_once");
    flows[2]["wires"][4] = json!(["result"]);
    node_red.deploy(flows).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    let sent = node_red.receive("send").await;
    assert_eq!(sent["port"], 4);
    sidecar.post(&format!("/api/runs/{}/cancel", sent["run"].as_str().unwrap()), json!({})).await.ok(200);
    assert_eq!(node_red.result().await["message"]["error"]["code"], "CANCELLED");
}

/// More replies than starts may be under way at once. Each waits for an acknowledgement on the same socket.
#[tokio::test]
async fn replies_to_many_failed_starts() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    let mut flows = plain_flow();
    (flows[2]["wires"][0], flows[3]["wires"]) = (json!([]), json!([[]]));
    node_red.deploy(flows).await;
    let mut last = 0;
    for number in 0..1_200 {
        last = node_red.start(&format!("s{number}"), json!({"payload": number})).await;
    }
    let mut replies = 0;
    while replies < 1_200 {
        let message = node_red.next().await;
        replies += i32::from(message["type"] == "send");
    }
    assert!(node_red.acknowledged < last, "no start is acknowledged yet");
    node_red.ack().await;
    node_red.wait_for_ack(last).await;
}

/// A refused start is processed when its reply has arrived, not when the sidecar stops.
#[tokio::test]
async fn a_stop_does_not_acknowledge_a_start_whose_reply_has_not_arrived() {
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    let mut flows = plain_flow();
    (flows[2]["wires"][0], flows[3]["wires"]) = (json!([]), json!([[]]));
    node_red.deploy(flows).await;
    let seq = node_red.start("s1", json!({"payload": "?"})).await;
    node_red.receive("send").await;
    sidecar.begin_to_stop();
    while let Some(message) = receive(&mut node_red.socket).await {
        assert!(message["type"] != "ack" || message["seq"].as_u64().unwrap() < seq, "{message}");
    }
}

/// The reply came while the sidecar was down. The run waits for a person, but Node-RED knows the outcome.
#[tokio::test]
async fn queries_the_call_of_a_waiting_run_after_a_restart() {
    let setup = Setup::default();
    let dir = setup.dir.clone();
    let sidecar = setup.start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    let mut flows = flow_tool_flow("at_most_once");
    for node in flows.as_array_mut().unwrap().iter_mut().filter(|node| node["id"] == "look") {
        node["timeout"] = json!(50);
    }
    node_red.deploy(flows.clone()).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    let call = node_red.receive("tool_call").await;
    wait_for_status(&sidecar, &call["run"], "waiting").await;
    drop(node_red.socket);
    sidecar.stop().await;
    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    let mut back = NodeRed::connect(&sidecar, hello("home", "b1", Some(&node_red.session), 0)).await;
    back.deploy(flows).await;
    let query = back.receive("tool_call").await;
    assert_eq!((&query["call"], &query["known"]), (&call["call"], &json!(true)));
    back.reply(&query, returned(&json!("open"))).await;
    let result = back.result().await;
    assert_eq!(result["message"]["envelope"]["tools"]["history"][0]["output"], "open");
}

/// Node-RED and its sidecar stop together, so no reply can come.
#[tokio::test]
async fn a_stop_does_not_wait_for_a_disconnected_node_red() {
    let mut setup = Setup::default();
    setup.settings.drain_timeout = std::time::Duration::from_secs(3600);
    let sidecar = setup.start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    node_red.deploy(flow_tool_flow("at_most_once")).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    node_red.receive("tool_call").await;
    drop(node_red.socket);
    timeout(PATIENCE, sidecar.stop()).await.unwrap();
}

#[tokio::test]
async fn the_status_in_node_red_says_that_the_model_is_loading() {
    let server = loading_server().await;
    let sidecar = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&sidecar, "home", "b1").await;
    node_red.deploy(flow_with_model(&server)).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    while node_red.receive("status").await["text"] != "iteration 1: the model is loading" {}
    assert_eq!(node_red.result().await["message"]["payload"], "42");
}
