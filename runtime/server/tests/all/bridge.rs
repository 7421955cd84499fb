//! `ws /bridge`, from the other side of it: what Node-RED says, and what it is told.

use crate::client::{PATIENCE, Socket};
use crate::kit::{Setup, TOKEN, World, eventually, flow, token};
use futures::{SinkExt as _, StreamExt as _};
use redflow_contract::api::Scope;
use redflow_contract::bridge::BridgeMessage;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

/// A Node-RED: what it remembers is what the palette module remembers.
struct NodeRed {
    socket: Socket,
    session: String,
    received: u64,
    seq: u64,
    /// What the sidecar has taken for good.
    taken: u64,
}

fn hello(instance: &str, boot: &str, session: Option<&str>, received: u64) -> Value {
    let mut hello = json!({"type": "hello", "protocol": "redflow.bridge.v1", "instance": instance, "boot": boot,
        "nodeRed": "5.0.7", "bridge": "0.1.0", "received": received});
    if let Some(session) = session {
        hello["session"] = json!(session);
    }
    hello
}

async fn open(world: &World, token: &str) -> Socket {
    let bearer = format!("Bearer {token}");
    Socket::try_open_at(world.addr, "/bridge", &[("authorization", &bearer)]).await.unwrap()
}

async fn heard(socket: &mut Socket) -> Option<Value> {
    loop {
        match timeout(PATIENCE, socket.stream.next()).await.unwrap()?.ok()? {
            Message::Text(text) => {
                // What goes out is of the protocol.
                let _: BridgeMessage =
                    serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}: {text}"));
                return Some(serde_json::from_str(&text).unwrap());
            }
            Message::Close(_) => return None,
            _ => {}
        }
    }
}

/// Why a socket is closed that begins with this.
async fn closing(world: &World, first: &str) -> String {
    let mut socket = open(world, TOKEN).await;
    socket.send(Message::text(first)).await;
    let said = heard(&mut socket).await.unwrap();
    assert_eq!(said["type"], "closing", "{said}");
    said["code"].as_str().unwrap().to_owned()
}

impl NodeRed {
    async fn new(world: &World, instance: &str, boot: &str) -> Self {
        Self::come(world, hello(instance, boot, None, 0)).await
    }

    async fn come(world: &World, hello: Value) -> Self {
        let mut socket = open(world, TOKEN).await;
        socket.send(Message::text(hello.to_string())).await;
        let welcome = heard(&mut socket).await.unwrap();
        assert_eq!(welcome["type"], "welcome", "{welcome}");
        let (session, seq) =
            (welcome["session"].as_str().unwrap().to_owned(), welcome["received"].as_u64().unwrap());
        let received = hello["received"].as_u64().unwrap();
        let received = if hello["session"] == welcome["session"] { received } else { 0 };
        Self { socket, session, received, seq, taken: 0 }
    }

    /// Opens another socket, as the same process.
    async fn come_back(self, world: &World, instance: &str, boot: &str) -> Self {
        let Self { socket, session, received, .. } = self;
        drop(socket);
        Self::come(world, hello(instance, boot, Some(&session), received)).await
    }

    async fn say(&mut self, mut message: Value) -> u64 {
        self.seq += 1;
        message["seq"] = json!(self.seq);
        self.socket.send(Message::text(message.to_string())).await;
        self.seq
    }

    /// The next message of a type; what is numbered is counted, and nothing is missing between.
    async fn hear(&mut self, wanted: &str) -> Value {
        loop {
            let said = self.next().await;
            if said["type"] == wanted {
                return said;
            }
        }
    }

    async fn next(&mut self) -> Value {
        let said = heard(&mut self.socket).await.unwrap_or_else(|| panic!("the socket was closed"));
        match said["seq"].as_u64() {
            Some(seq) if said["type"] == "ack" => self.taken = seq,
            Some(seq) => {
                assert_eq!(seq, self.received + 1, "{said}");
                self.received = seq;
            }
            None => {}
        }
        said
    }

    async fn ack(&mut self) {
        let ack = json!({"type": "ack", "seq": self.received});
        self.socket.send(Message::text(ack.to_string())).await;
    }

    /// Everything up to a number has been taken for good.
    async fn acked(&mut self, seq: u64) {
        while self.taken < seq {
            self.next().await;
        }
    }

    async fn deploy(&mut self, flows: Value) -> Value {
        self.say(json!({"type": "flows", "revision": "r1", "flows": flows, "credentials": {}})).await;
        let told = self.hear("deployed").await;
        self.ack().await;
        told
    }

    async fn start(&mut self, start: &str, message: Value) -> u64 {
        self.say(json!({"type": "start", "start": start, "node": "agent", "message": message})).await
    }

    /// The result of a run, taken.
    async fn result(&mut self) -> Value {
        loop {
            let sent = self.hear("send").await;
            self.ack().await;
            if sent["last"] == true {
                return sent;
            }
        }
    }

    async fn reply(&mut self, call: &Value, reply: Value) -> u64 {
        self.say(json!({"type": "tool_result", "run": call["run"], "call": call["call"], "reply": reply}))
            .await
    }
}

fn returned(output: &Value) -> Value {
    json!({"type": "returned", "output": output})
}

/// An agent whose one tool is a flow, of this class; it is called once.
fn with_flow_tool(effect: &str) -> Value {
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

fn plain() -> Value {
    flow(json!([{"action": "final", "message": "42"}]), &[])
}

async fn status_of(world: &World, run: &Value) -> String {
    let run = run.as_str().unwrap();
    world.get(&format!("/api/runs/{run}")).await.ok(200)["summary"]["status"].as_str().unwrap().to_owned()
}

async fn waits_until(world: &World, run: &Value, wanted: &str) {
    eventually(wanted, || async { (status_of(world, run).await == wanted).then_some(()) }).await;
}

#[tokio::test]
async fn a_message_becomes_a_run_and_its_result_comes_back_with_what_it_brought() {
    let world = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    let told = node_red.deploy(plain()).await;
    assert_eq!(told["agents"][0]["ready"], true, "{told}");
    let tagged = json!({"$redflow": "buffer", "data": "AA=="});
    let seq = node_red.start("s1", json!({"_msgid": "m1", "payload": "6 * 7?", "picture": tagged})).await;
    let sent = node_red.result().await;
    assert_eq!((&sent["node"], &sent["port"], &sent["start"]), (&json!("agent"), &json!(3), &json!("s1")));
    let message = &sent["message"];
    assert_eq!((&message["payload"], &message["_msgid"]), (&json!("42"), &json!("m1")));
    assert_eq!(message["picture"], tagged);
    assert!(message.get("_redflowStart").is_none(), "{message}");
    node_red.acked(seq).await;
    // It has arrived for good, and says whose it is.
    let run = sent["run"].as_str().unwrap().to_owned();
    let summary = eventually("delivered", || async {
        let run = world.get(&format!("/api/runs/{run}")).await.ok(200)["summary"].clone();
        (run["delivered"] == true).then_some(run)
    });
    assert_eq!(summary.await["agent"], json!({"instance": "home", "nodeId": "agent"}));
    let known = world.get("/api/instances").await.ok(200);
    let known = &known["instances"][0];
    assert_eq!(
        (&known["instance"], &known["connected"], &known["nodeRed"]),
        (&json!("home"), &json!(true), &json!("5.0.7"))
    );
    assert_eq!(known["waiting"], 0, "{known}");
}

#[tokio::test]
async fn port_4_is_sent_only_where_a_wire_takes_it() {
    let world = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    let mut flows = plain();
    for (wired, expected) in [(false, vec![3]), (true, vec![4, 3])] {
        flows[2]["wires"][4] = if wired { json!(["result"]) } else { json!([]) };
        node_red.deploy(flows.clone()).await;
        node_red.start(&format!("s{wired}"), json!({"payload": "?"})).await;
        let mut ports = Vec::new();
        while ports.last() != Some(&3) {
            ports.push(node_red.hear("send").await["port"].as_i64().unwrap());
            node_red.ack().await;
        }
        assert_eq!(ports, expected);
    }
}

#[tokio::test]
async fn a_flow_that_is_a_tool_is_called_once_and_its_result_counts() {
    let world = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    node_red.deploy(with_flow_tool("at_most_once")).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    let call = node_red.hear("tool_call").await;
    let told = ["agent", "node", "tool", "input", "effect", "timeoutMs"].map(|key| call[key].clone());
    let expected = json!(["agent", "look", "look", {"what": "door"}, "at_most_once", 30000]);
    assert_eq!(json!(told), expected);
    assert!(
        call["known"].is_null() && call["idempotencyKey"].as_str().is_some_and(|key| key.len() > 32),
        "{call}"
    );
    node_red.reply(&call, returned(&json!({"$redflow": "date", "data": 5}))).await;
    let result = node_red.result().await;
    let history = &result["message"]["envelope"]["tools"]["history"][0];
    assert_eq!((&history["success"], &history["output"]["data"]), (&json!(true), &json!(5)));
}

/// The socket is cut at every point between a start and its result; each side says how far it came.
#[tokio::test]
async fn a_cut_socket_loses_and_repeats_nothing() {
    let world = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    node_red.deploy(with_flow_tool("at_most_once")).await;
    let seq = node_red.start("s1", json!({"payload": "?"})).await;
    let call = node_red.hear("tool_call").await;
    node_red.acked(seq).await;
    // It was heard and not acknowledged: `received` says so, and it does not come again.
    let mut node_red = node_red.come_back(&world, "home", "b1").await;
    // The sidecar cannot know whether its own last word was heard.
    node_red.acked(seq).await;
    assert_eq!(node_red.seq, seq, "the start need not be said again");
    let answer = node_red.reply(&call, returned(&json!("open"))).await;
    let result = node_red.hear("send").await;
    let mut node_red = node_red.come_back(&world, "home", "b1").await;
    assert_eq!(node_red.seq, answer);
    // Nothing more comes of it: the next thing that comes is of the next start.
    node_red.start("s2", json!({"payload": "again"})).await;
    let next = node_red.hear("tool_call").await;
    assert_ne!(next["run"], result["run"]);
    node_red.ack().await;
    // What was never heard comes again, with the same number.
    let lost = NodeRed { received: node_red.received, ..node_red };
    let mut lost = lost.come_back(&world, "home", "b1").await;
    lost.reply(&next, returned(&json!("shut"))).await;
    drop(lost.hear("send").await);
    lost.received -= 1;
    let mut back = lost.come_back(&world, "home", "b1").await;
    let result = back.result().await;
    assert_eq!((&result["run"], &result["start"]), (&next["run"], &json!("s2")));
}

#[tokio::test]
async fn a_start_that_is_said_again_begins_no_second_run() {
    let world = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    node_red.deploy(plain()).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    node_red.result().await;
    let seq = node_red.start("s1", json!({"payload": "?"})).await;
    node_red.acked(seq).await;
    assert_eq!(world.get("/api/runs").await.ok(200)["runs"].as_array().unwrap().len(), 1);
}

/// The sidecar is new. Node-RED is not: it knows what came of the call, so nobody has to be asked.
#[tokio::test]
async fn after_a_restart_of_the_sidecar_runs_go_on_with_what_node_red_knows() {
    for (effect, known) in [("read", false), ("idempotent", false), ("at_most_once", true)] {
        let mut setup = Setup::default();
        setup.settings.drain = std::time::Duration::ZERO;
        let dir = setup.dir.clone();
        let world = setup.start(None).await;
        let mut node_red = NodeRed::new(&world, "home", "b1").await;
        node_red.deploy(with_flow_tool(effect)).await;
        let seq = node_red.start("s1", json!({"payload": "?", "topic": "kept"})).await;
        let call = node_red.hear("tool_call").await;
        node_red.acked(seq).await;
        drop(node_red.socket);
        world.stop().await;

        let world = Setup { dir, ..Setup::default() }.start(None).await;
        let mut back =
            NodeRed::come(&world, hello("home", "b1", Some(&node_red.session), node_red.received)).await;
        assert_ne!(back.session, node_red.session);
        back.deploy(with_flow_tool(effect)).await;
        let again = back.hear("tool_call").await;
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
async fn a_call_that_nobody_knows_any_more_waits_for_a_person() {
    let mut setup = Setup::default();
    setup.settings.drain = std::time::Duration::ZERO;
    let dir = setup.dir.clone();
    let world = setup.start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    node_red.deploy(with_flow_tool("at_most_once")).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    let run = node_red.hear("tool_call").await["run"].clone();
    drop(node_red.socket);
    world.stop().await;
    // Both are new.
    let world = Setup { dir, ..Setup::default() }.start(None).await;
    let mut back = NodeRed::new(&world, "home", "b2").await;
    back.deploy(with_flow_tool("at_most_once")).await;
    let asked = back.hear("tool_call").await;
    assert_eq!(asked["known"], true);
    back.reply(&asked, json!({"type": "unknown", "reason": "Node-RED does not know this call"})).await;
    waits_until(&world, &run, "waiting").await;
    // A person can say what came of it, and the result goes where it belongs.
    let body = json!({"callId": asked["call"], "result": {"success": true, "output": "open"}});
    world.post(&format!("/api/runs/{}/resolve", run.as_str().unwrap()), body).await.ok(200);
    assert_eq!(back.result().await["message"]["payload"], "42");
}

/// Node-RED is new, the sidecar is not.
#[tokio::test]
async fn after_a_restart_of_node_red_calls_are_treated_by_their_class() {
    for (effect, repeats) in [("read", true), ("idempotent", true), ("at_most_once", false)] {
        let world = Setup::default().start(None).await;
        let mut node_red = NodeRed::new(&world, "home", "b1").await;
        node_red.deploy(with_flow_tool(effect)).await;
        node_red.start("s1", json!({"payload": "?"})).await;
        let call = node_red.hear("tool_call").await;
        node_red.ack().await;
        drop(node_red.socket);
        let is_away = || async {
            (world.get("/api/instances").await.ok(200)["instances"][0]["connected"] == false).then_some(())
        };
        eventually("away", is_away).await;
        let mut back = NodeRed::new(&world, "home", "b2").await;
        if repeats {
            let again = back.hear("tool_call").await;
            assert_eq!((&again["call"], &again["idempotencyKey"]), (&call["call"], &call["idempotencyKey"]));
            back.deploy(with_flow_tool(effect)).await;
            back.reply(&again, returned(&json!("open"))).await;
            assert_eq!(back.result().await["message"]["payload"], "42");
        } else {
            waits_until(&world, &call["run"], "waiting").await;
        }
    }
}

#[tokio::test]
async fn a_call_that_was_never_sent_was_not_made() {
    let world = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    let mut flows = with_flow_tool("at_most_once");
    // The model takes its time, so that the call is made when nobody is there.
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
    let begun = || async {
        let run = world.get("/api/runs").await.ok(200)["runs"][0]["runId"].clone();
        run.is_string().then_some(run)
    };
    let run = eventually("begun", begun).await;
    let session = node_red.session.clone();
    let received = node_red.received;
    drop(node_red.socket);
    waits_until(&world, &run, "completed").await;
    let mut back = NodeRed::come(&world, hello("home", "b1", Some(&session), received)).await;
    let result = back.result().await;
    let history = &result["message"]["envelope"]["tools"]["history"][0];
    let why = "the call was not made: Node-RED was not there to take it in time";
    assert_eq!((&history["success"], &history["error"]), (&json!(false), &json!(why)));
}

/// The run gave the call up and waits for a person; the flow answers all the same.
#[tokio::test]
async fn a_late_reply_is_what_the_run_waits_for_or_is_dropped() {
    for (effect, dropped) in [("at_most_once", false), ("read", true)] {
        let world = Setup::default().start(None).await;
        let mut node_red = NodeRed::new(&world, "home", "b1").await;
        let mut flows = with_flow_tool(effect);
        for node in flows.as_array_mut().unwrap().iter_mut().filter(|node| node["id"] == "look") {
            node["timeout"] = json!(50);
        }
        node_red.deploy(flows).await;
        node_red.start("s1", json!({"payload": "?"})).await;
        let call = node_red.hear("tool_call").await;
        if dropped {
            node_red.result().await;
            let seq = node_red.reply(&call, returned(&json!("late"))).await;
            let notice = node_red.hear("notice").await;
            assert_eq!((&notice["code"], &notice["node"]), (&json!("REPLY_DROPPED"), &json!("agent")));
            node_red.acked(seq).await;
        } else {
            let notice = node_red.hear("notice").await;
            assert_eq!((&notice["code"], &notice["node"]), (&json!("TOOL_OUTCOME_UNKNOWN"), &json!("agent")));
            assert!(notice["message"].as_str().unwrap().contains("redflow runs resolve"), "{notice}");
            waits_until(&world, &call["run"], "waiting").await;
            node_red.reply(&call, returned(&json!("late"))).await;
            let result = node_red.result().await;
            assert_eq!(result["message"]["envelope"]["tools"]["history"][0]["output"], "late");
        }
    }
}

#[tokio::test]
async fn two_node_reds_have_nothing_of_each_other() {
    let world = Setup::default().start(None).await;
    let mut home = NodeRed::new(&world, "home", "b1").await;
    let mut work = NodeRed::new(&world, "work", "b2").await;
    home.deploy(with_flow_tool("at_most_once")).await;
    work.deploy(plain()).await;
    // The same name of a start, the same id of an agent.
    home.start("s1", json!({"payload": "?"})).await;
    work.start("s1", json!({"payload": "?"})).await;
    let call = home.hear("tool_call").await;
    let of_work = work.result().await;
    assert_ne!(of_work["run"], call["run"]);
    // Neither can answer, end or see the other's.
    let seq = work.reply(&call, returned(&json!("forged"))).await;
    work.acked(seq).await;
    let seq = work.say(json!({"type": "cancel", "start": "s1", "reason": "not mine"})).await;
    work.acked(seq).await;
    home.reply(&call, returned(&json!("true"))).await;
    assert_eq!(home.result().await["message"]["envelope"]["tools"]["history"][0]["output"], "true");
}

#[tokio::test]
async fn what_is_cancelled_ends() {
    let world = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    node_red.deploy(with_flow_tool("at_most_once")).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    let call = node_red.hear("tool_call").await;
    node_red.say(json!({"type": "cancel", "start": "s1", "reason": "no more"})).await;
    let result = node_red.result().await;
    assert_eq!(result["message"]["error"]["code"], "CANCELLED", "{call}");
    // The agent is removed in mid-run.
    node_red.start("s2", json!({"payload": "?"})).await;
    let call = node_red.hear("tool_call").await;
    node_red.deploy(json!([{"id": "tab", "type": "tab", "label": "empty"}])).await;
    waits_until(&world, &call["run"], "failed").await;
    // And over HTTP, whoever drives it.
    node_red.deploy(with_flow_tool("at_most_once")).await;
    node_red.start("s3", json!({"payload": "?"})).await;
    let run = node_red.hear("tool_call").await["run"].clone();
    world.post(&format!("/api/runs/{}/cancel", run.as_str().unwrap()), json!({})).await.ok(200);
    assert_eq!(node_red.result().await["message"]["error"]["code"], "CANCELLED");
}

#[tokio::test]
async fn a_deploy_that_keeps_the_agent_keeps_its_runs() {
    let world = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    node_red.deploy(with_flow_tool("read")).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    let call = node_red.hear("tool_call").await;
    let mut flows = with_flow_tool("read");
    flows[2]["name"] = json!("Another name");
    node_red.deploy(flows).await;
    node_red.reply(&call, returned(&json!("open"))).await;
    assert_eq!(node_red.result().await["message"]["payload"], "42");
}

#[tokio::test]
async fn agents_that_may_not_run_say_why() {
    let world = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    let mut flows = plain();
    flows[2]["wires"][0] = json!([]);
    flows[3]["wires"] = json!([[]]);
    let told = node_red.deploy(flows).await;
    let agent = &told["agents"][0];
    assert_eq!((&agent["ready"], &agent["problems"][0]["code"]), (&json!(false), &json!("MODEL_MISSING")));
    node_red.start("s1", json!({"payload": "?"})).await;
    let result = node_red.result().await;
    assert_eq!(
        (&result["start"], &result["message"]["error"]["code"]),
        (&json!("s1"), &json!("EDGE_REJECTED"))
    );
    // A flow that is none is refused, and the one before stays.
    node_red
        .say(json!({"type": "flows", "revision": "r2", "flows": [{"type": "tab"}], "credentials": {}}))
        .await;
    let refused = node_red.hear("flows_refused").await;
    assert_eq!((&refused["revision"], &refused["error"]["code"]), (&json!("r2"), &json!("FLOW_REFUSED")));
    // An agent that is not there.
    node_red.say(json!({"type": "start", "start": "s2", "node": "gone", "message": {"payload": 1}})).await;
    let failed = node_red.hear("start_failed").await;
    assert_eq!((&failed["start"], &failed["code"]), (&json!("s2"), &json!("NOT_FOUND")));
}

#[tokio::test]
async fn statuses_and_events_are_for_who_looks() {
    let world = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    node_red.deploy(plain()).await;
    node_red.socket.send(Message::text(json!({"type": "watch", "events": true}).to_string())).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    let mut kinds = Vec::new();
    while kinds.last() != Some(&json!("run_finished")) {
        kinds.push(node_red.hear("event").await["event"]["event"]["type"].clone());
    }
    assert_eq!(json!(kinds), json!(["run_started", "model_called", "model_answered", "run_finished"]));
    loop {
        let status = node_red.hear("status").await;
        if status["fill"] == "green" {
            assert_eq!(
                (&status["shape"], &status["text"]),
                (&json!("dot"), &json!("done after 1 iteration"))
            );
            break;
        }
    }
}

#[tokio::test]
async fn who_may_not_come_in_is_told_why() {
    let mut setup = Setup::default();
    setup.settings.max_instances = 2;
    setup.settings.max_bridge_bytes = 10_000;
    let reader = token(setup.dir.path(), "runner", &[Scope::Run], 1);
    let world = setup.start(None).await;
    let reply =
        Socket::try_open_at(world.addr, "/bridge", &[("authorization", "Bearer wrong")]).await.err().unwrap();
    reply.refused(401, "UNAUTHORIZED");
    let bearer = format!("Bearer {reader}");
    let reply =
        Socket::try_open_at(world.addr, "/bridge", &[("authorization", &bearer)]).await.err().unwrap();
    reply.refused(403, "FORBIDDEN");

    let mut other = hello("home", "b1", None, 0);
    other["protocol"] = json!("redflow.bridge.v9");
    assert_eq!(closing(&world, &other.to_string()).await, "PROTOCOL_MISMATCH");
    let odd = [
        json!({"type": "ack", "seq": 1}),
        hello("local", "b1", None, 0),
        hello("", "b1", None, 0),
        hello("a b", "b1", None, 0),
        hello(&"x".repeat(201), "b1", None, 0),
        hello("home", "", None, 0),
        json!({"type": "hello"}),
    ];
    for odd in odd {
        assert_eq!(closing(&world, &odd.to_string()).await, "MESSAGE_INVALID", "{odd}");
    }
    assert_eq!(closing(&world, "{\"type\":").await, "MESSAGE_INVALID");

    let home = NodeRed::new(&world, "home", "b1").await;
    assert_eq!(closing(&world, &hello("home", "b2", None, 0).to_string()).await, "INSTANCE_TAKEN");
    let _work = NodeRed::new(&world, "work", "b3").await;
    assert_eq!(closing(&world, &hello("third", "b4", None, 0).to_string()).await, "TOO_MANY_INSTANCES");
    // One that has gone makes room.
    drop(home);
    let come = || async {
        let mut socket = open(&world, TOKEN).await;
        socket.send(Message::text(hello("third", "b4", None, 0).to_string())).await;
        (heard(&mut socket).await.unwrap()["type"] == "welcome").then_some(())
    };
    eventually("room for the third", come).await;
}

#[tokio::test]
async fn what_is_not_of_the_protocol_closes_the_socket() {
    let mut setup = Setup::default();
    setup.settings.max_bridge_bytes = 10_000;
    let world = setup.start(None).await;
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
        (deep, "MESSAGE_INVALID"),
        (big, "MESSAGE_TOO_LARGE"),
    ];
    for (nr, (text, code)) in cases.into_iter().enumerate() {
        let mut node_red = NodeRed::new(&world, "home", &format!("b{nr}")).await;
        node_red.socket.stream.send(Message::text(text.clone())).await.unwrap();
        let said = heard(&mut node_red.socket).await.unwrap();
        assert_eq!((&said["type"], &said["code"]), (&json!("closing"), &json!(code)), "{text}");
        drop(node_red);
        let is_away = || async {
            (world.get("/api/instances").await.ok(200)["instances"][0]["connected"] == false).then_some(())
        };
        eventually("away", is_away).await;
    }
}

/// Keys are handed over in the process and kept in memory only.
#[tokio::test]
async fn credentials_reach_the_nodes_and_no_file() {
    let world = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    let key = "sk-of-node-red-4711";
    let mut flows = plain();
    flows[3] = json!({"id": "model", "type": "openai-model", "z": "tab", "model": "gpt-x",
        "baseURL": "http://127.0.0.1:9", "wires": [["agent"]]});
    node_red.say(json!({"type": "flows", "revision": "r1", "flows": flows, "credentials": {"model": {"apiKey": key}}})).await;
    let told = node_red.hear("deployed").await;
    assert_eq!(told["agents"][0]["ready"], true, "{told}");
    node_red.start("s1", json!({"payload": "?"})).await;
    let result = node_red.result().await;
    // Nobody listens there, so it was built with the key and asked.
    assert_eq!(result["message"]["error"]["code"], "PROVIDER_UNAVAILABLE", "{result}");
    let dir = world.stop().await;
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

/// A message without a payload makes the memory forget; nothing leaves the agent, and Node-RED hears that it is done, or
/// that it did not work.
#[tokio::test]
async fn a_message_that_only_forgets_is_done_without_a_result() {
    let world = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    let mut flows = plain();
    flows[2]["wires"][2] = json!(["memory"]);
    let memory =
        json!({"id": "memory", "type": "buffer-memory", "z": "tab", "sessionId": "s", "wires": [["agent"]]});
    flows.as_array_mut().unwrap().push(memory);
    node_red.deploy(flows.clone()).await;
    node_red.start("s1", json!({"memory": "clear"})).await;
    assert_eq!(node_red.hear("start_done").await["start"], "s1");
    // Nobody listens there.
    let last = flows.as_array_mut().unwrap().last_mut().unwrap();
    (last["type"], last["url"]) = (json!("redis-memory"), json!("redis://127.0.0.1:9"));
    let told = node_red.deploy(flows).await;
    assert_eq!(told["agents"][0]["ready"], true, "{told}");
    node_red.start("s2", json!({"memory": "clear"})).await;
    let result = node_red.result().await;
    assert_eq!(
        (&result["start"], &result["message"]["error"]["code"]),
        (&json!("s2"), &json!("MEMORY_ERROR"))
    );
}

/// Nobody waits for the call any more; Node-RED may never have heard it.
#[tokio::test]
async fn a_call_that_is_over_is_asked_for_and_not_made() {
    let world = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    node_red.deploy(with_flow_tool("at_most_once")).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    let call = node_red.hear("tool_call").await;
    world.post(&format!("/api/runs/{}/cancel", call["run"].as_str().unwrap()), json!({})).await.ok(200);
    node_red.received -= 1;
    let mut back = node_red.come_back(&world, "home", "b1").await;
    let again = back.hear("tool_call").await;
    assert_eq!((&again["call"], &again["known"]), (&call["call"], &json!(true)));
}

/// While the sidecar stops, calls that are under way can still be answered.
#[tokio::test]
async fn what_comes_back_while_the_sidecar_stops_counts() {
    let mut setup = Setup::default();
    setup.settings.drain = std::time::Duration::from_secs(20);
    let dir = setup.dir.clone();
    let world = setup.start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    node_red.deploy(with_flow_tool("at_most_once")).await;
    let seq = node_red.start("s1", json!({"payload": "?"})).await;
    let call = node_red.hear("tool_call").await;
    node_red.acked(seq).await;
    world.begin_to_stop();
    // It takes no more work, and says so by not acknowledging it.
    let late = node_red.start("s2", json!({"payload": "?"})).await;
    node_red.say(json!({"type": "flows", "revision": "r9", "flows": [], "credentials": {}})).await;
    node_red.reply(&call, returned(&json!("open"))).await;
    while let Some(said) = heard(&mut node_red.socket).await {
        assert!(said["type"] != "ack" || said["seq"].as_u64().unwrap() < late, "{said}");
        if said["type"] == "closing" {
            assert_eq!(said["code"], "STOPPING");
        }
    }
    world.stop().await;
    let world = Setup { dir, ..Setup::default() }.start(None).await;
    let mut back = NodeRed::new(&world, "home", "b1").await;
    back.deploy(with_flow_tool("at_most_once")).await;
    // The answer is on the disk: nobody is asked.
    loop {
        let said = back.next().await;
        assert_ne!(said["type"], "tool_call", "{said}");
        if said["type"] == "send" {
            assert_eq!((&said["start"], &said["message"]["payload"]), (&json!("s1"), &json!("42")));
            break;
        }
    }
}

/// A reply that is of no use any more holds nothing up.
#[tokio::test]
async fn a_late_reply_is_acknowledged_at_once() {
    let world = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    let mut flows = with_flow_tool("read");
    for node in flows.as_array_mut().unwrap() {
        if node["id"] == "model" {
            node["delayMs"] = json!(600);
        }
        if node["id"] == "look" {
            node["timeout"] = json!(20);
        }
    }
    node_red.deploy(flows).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    let call = node_red.hear("tool_call").await;
    let run = call["run"].clone();
    // The call is given up, and the model is at work again.
    let gave_up = || async {
        let events =
            world.get(&format!("/api/runs/{}", run.as_str().unwrap())).await.ok(200)["events"].clone();
        events.as_array().unwrap().iter().any(|event| event["event"]["type"] == "tool_returned").then_some(())
    };
    eventually("given up", gave_up).await;
    let seq = node_red.reply(&call, returned(&json!("late"))).await;
    node_red.acked(seq).await;
    assert_eq!(status_of(&world, &run).await, "running");
    node_red.result().await;
}

#[tokio::test]
async fn a_start_that_fails_is_done_with_when_that_was_heard() {
    let world = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    node_red.deploy(plain()).await;
    let seq = node_red
        .say(json!({"type": "start", "start": "s1", "node": "gone", "message": {"payload": 1}}))
        .await;
    node_red.hear("start_failed").await;
    node_red.start("s2", json!({"payload": "?"})).await;
    node_red.hear("send").await;
    assert!(node_red.taken < seq, "it was not taken yet");
    node_red.ack().await;
    node_red.acked(seq + 1).await;
}

/// It was written to, and takes nothing: nobody answers for it.
#[tokio::test]
async fn a_node_red_that_says_nothing_any_more_is_away() {
    let mut setup = Setup::default();
    setup.settings.heartbeat = std::time::Duration::from_millis(100);
    let world = setup.start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    node_red.deploy(with_flow_tool("read")).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    node_red.hear("tool_call").await;
    // Its socket is open and nobody reads, so nobody answers a ping.
    let is_away = || async {
        (world.get("/api/instances").await.ok(200)["instances"][0]["connected"] == false).then_some(())
    };
    eventually("away", is_away).await;
    NodeRed::new(&world, "home", "b2").await;
}

/// Node-RED may be in the middle of a deploy: what waits to be taken there keeps no run from being ended.
#[tokio::test]
async fn a_run_whose_answer_is_not_taken_can_be_ended() {
    let world = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    let mut flows = with_flow_tool("at_most_once");
    flows[2]["wires"][4] = json!(["result"]);
    node_red.deploy(flows).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    let sent = node_red.hear("send").await;
    assert_eq!(sent["port"], 4);
    world.post(&format!("/api/runs/{}/cancel", sent["run"].as_str().unwrap()), json!({})).await.ok(200);
    assert_eq!(node_red.result().await["message"]["error"]["code"], "CANCELLED");
}

/// More last words than starts are worked on at once: each waits for an acknowledgement that comes on the same socket.
#[tokio::test]
async fn many_starts_that_fail_are_all_answered() {
    let world = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    let mut flows = plain();
    (flows[2]["wires"][0], flows[3]["wires"]) = (json!([]), json!([[]]));
    node_red.deploy(flows).await;
    let mut last = 0;
    for number in 0..1_200 {
        last = node_red.start(&format!("s{number}"), json!({"payload": number})).await;
    }
    let mut heard = 0;
    while heard < 1_200 {
        let said = node_red.next().await;
        heard += i32::from(said["type"] == "send");
    }
    assert!(node_red.taken < last, "nothing of it was taken yet");
    node_red.ack().await;
    node_red.acked(last).await;
}

/// A start that was refused is done with when Node-RED has heard that, not when the sidecar stops.
#[tokio::test]
async fn a_stop_acknowledges_nothing_that_was_not_taken() {
    let world = Setup::default().start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    let mut flows = plain();
    (flows[2]["wires"][0], flows[3]["wires"]) = (json!([]), json!([[]]));
    node_red.deploy(flows).await;
    let seq = node_red.start("s1", json!({"payload": "?"})).await;
    node_red.hear("send").await;
    world.begin_to_stop();
    while let Some(said) = heard(&mut node_red.socket).await {
        assert!(said["type"] != "ack" || said["seq"].as_u64().unwrap() < seq, "{said}");
    }
}

/// The reply came when the sidecar was stopping or dead; the run waits for a person, and Node-RED knows.
#[tokio::test]
async fn a_run_that_waits_hears_from_node_red_after_a_restart() {
    let setup = Setup::default();
    let dir = setup.dir.clone();
    let world = setup.start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    let mut flows = with_flow_tool("at_most_once");
    for node in flows.as_array_mut().unwrap().iter_mut().filter(|node| node["id"] == "look") {
        node["timeout"] = json!(50);
    }
    node_red.deploy(flows.clone()).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    let call = node_red.hear("tool_call").await;
    waits_until(&world, &call["run"], "waiting").await;
    drop(node_red.socket);
    world.stop().await;
    let world = Setup { dir, ..Setup::default() }.start(None).await;
    let mut back = NodeRed::come(&world, hello("home", "b1", Some(&node_red.session), 0)).await;
    back.deploy(flows).await;
    let asked = back.hear("tool_call").await;
    assert_eq!((&asked["call"], &asked["known"]), (&call["call"], &json!(true)));
    back.reply(&asked, returned(&json!("open"))).await;
    let result = back.result().await;
    assert_eq!(result["message"]["envelope"]["tools"]["history"][0]["output"], "open");
}

/// Node-RED stops, and its sidecar with it: nobody is left who could answer.
#[tokio::test]
async fn a_stop_does_not_wait_for_a_node_red_that_has_gone() {
    let mut setup = Setup::default();
    setup.settings.drain = std::time::Duration::from_secs(3600);
    let world = setup.start(None).await;
    let mut node_red = NodeRed::new(&world, "home", "b1").await;
    node_red.deploy(with_flow_tool("at_most_once")).await;
    node_red.start("s1", json!({"payload": "?"})).await;
    node_red.hear("tool_call").await;
    drop(node_red.socket);
    timeout(PATIENCE, world.stop()).await.unwrap();
}
