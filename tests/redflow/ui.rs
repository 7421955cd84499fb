//! The requests of the Redflow UI in its order, from its origin and without a token.

use crate::azure::{Azure, KEY, Rule};
use crate::client::{PATIENCE, Reply, Request, Socket};
use crate::conversation::{Frame, line, text};
use crate::flows::{Flow, ids_of};
use crate::sidecar::{ORIGIN, Sidecar, StoppedSidecar, contains};
use futures::StreamExt as _;
use pretty_assertions::assert_eq;
use redflow_contract::observability::ObservabilityEvent;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::{timeout, timeout_at};
use tokio_tungstenite::tungstenite::Message;

/// The path of the UI's storage.
pub(crate) const STORAGE: &str = "/redflow/persistent-storage";

/// A UI, its sidecar, and the model behind it.
pub(crate) struct Ui {
    pub(crate) sidecar: Sidecar,
    pub(crate) azure: Azure,
    observability: EventSocket,
    comms: Socket,
    notices: VecDeque<Value>,
    /// The types of the nodes that were deployed.
    types: HashMap<String, String>,
    /// Everything that the sidecar sent.
    received: Mutex<Vec<Vec<u8>>>,
}

/// A socket at `/observability`.
pub(crate) struct EventSocket(Socket);

impl EventSocket {
    pub(crate) async fn open(sidecar: &Sidecar) -> Self {
        let mut socket = Self(socket(sidecar, "/observability").await);
        let hello = socket.next().await.unwrap();
        assert!(text(&json_of(&hello), "/event") == "connected", "{hello}");
        socket
    }

    /// The next message, or none if the socket is closed.
    async fn next(&mut self) -> Option<String> {
        loop {
            match timeout(PATIENCE, self.0.stream.next()).await.expect("no message")? {
                Ok(Message::Text(text)) => return Some(text.as_str().to_owned()),
                // The next read answers a close message.
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Close(_)) => {}
                Err(_) => return None,
                Ok(other) => panic!("{other:?}"),
            }
        }
    }

    /// All texts of the next frame.
    pub(crate) async fn frame(&mut self) -> Vec<String> {
        let mut texts = Vec::new();
        loop {
            let text = self.next().await.unwrap();
            let event = json_of(&text);
            if event["event"] != "heartbeat" {
                texts.push(text);
            }
            if event["event"] == "frame:end" {
                return texts;
            }
        }
    }
}

async fn socket(sidecar: &Sidecar, path: &str) -> Socket {
    let opened = Socket::try_open_at(sidecar.addr, path, &[("origin", ORIGIN)]).await;
    opened.unwrap_or_else(|refused| panic!("{path}: {refused:?}"))
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {text}"))
}

impl Ui {
    /// Starts everything and loads the page.
    pub(crate) async fn start(rules: Vec<Rule>) -> Self {
        let azure = Azure::start(rules).await;
        let sidecar = Sidecar::start();
        // The UI first opens a socket as a probe and closes it at once.
        let mut probe = EventSocket::open(&sidecar).await;
        probe.0.stream.close(None).await.unwrap();
        let observability = EventSocket::open(&sidecar).await;
        let comms = socket(&sidecar, "/comms").await;
        let (notices, types, received) = (VecDeque::new(), HashMap::new(), Mutex::default());
        Self { sidecar, azure, observability, comms, notices, types, received }
    }

    /// Starts everything and deploys a flow whose models have their key.
    pub(crate) async fn with(rules: Vec<Rule>, flow: impl FnOnce(&str) -> Flow) -> Self {
        let mut ui = Self::start(rules).await;
        let flow = flow(&ui.azure.endpoint());
        ui.deploy(&flow).await;
        ui.store_keys(&flow).await;
        ui
    }

    fn request(&self, method: &str, path: &str) -> Request {
        Request::new(self.sidecar.addr, method, path)
            .header("origin", ORIGIN)
            .header("accept", "application/json")
    }

    /// Sends a request of the page. CORS must let the page read the response.
    pub(crate) async fn send(&self, request: Request) -> Reply {
        let reply = request.send().await;
        assert_eq!(reply.header("access-control-allow-origin"), Some(ORIGIN), "{reply:?}");
        self.received.lock().unwrap().push(reply.body.clone());
        reply
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(self.request("GET", path).header("node-red-api-version", "v2")).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.send(self.request("POST", path).json(body)).await
    }

    /// A request with the token, for what the UI does not do.
    pub(crate) async fn api(&self, method: &str, path: &str) -> Value {
        let request = Request::new(self.sidecar.addr, method, path).token(&self.sidecar.token());
        let request = if method == "POST" { request.json(json!({})) } else { request };
        let reply = request.send().await;
        self.received.lock().unwrap().push(reply.body.clone());
        reply.ok(200)
    }

    /// *Save & Deploy*: reads the revision, posts the flow, and reads it again.
    pub(crate) async fn deploy(&mut self, flow: &Flow) {
        let before = self.get("/flows").await.ok(200);
        let body = json!({"rev": before["rev"], "flows": flow.0});
        let posted = self.request("POST", "/flows").json(body);
        let posted = posted.header("node-red-api-version", "v2").header("node-red-deployment-type", "full");
        let answer = self.send(posted).await.ok(200);
        let after = self.get("/flows").await.ok(200);
        assert_eq!(after, json!({"flows": with_all_ports(flow), "rev": answer["rev"]}));
        // Only the UI gets longer wires.
        assert_eq!(self.api("GET", "/flows").await, json!(flow.0));
        assert_ne!(after["rev"], before["rev"]);
        // Nodes of the earlier flow may still run.
        self.types.extend(ids_of(flow));
    }

    /// Stores the key of every model on the server, as the UI does.
    pub(crate) async fn store_keys(&self, flow: &Flow) {
        let keys =
            flow.models().map(|id| (format!("node-credentials:{id}"), json!({"apiKey": KEY}))).collect();
        let stored = self.post(STORAGE, Value::Object(keys)).await.ok(200);
        assert_eq!(stored["success"], true);
    }

    /// *Ejecutar Flow* (run the flow) for one inject node.
    pub(crate) async fn inject(&self, id: &str) {
        let flows = self.get("/flows").await.ok(200);
        let nodes = flows["flows"].as_array().unwrap();
        assert!(nodes.iter().any(|node| node["id"] == id && node["type"] == "inject"));
        let reply = self.send(self.request("POST", &format!("/inject/{}", encoded(id)))).await;
        assert_eq!((reply.status, reply.body.as_slice()), (200, b"OK".as_slice()), "{reply:?}");
    }

    /// Sends a chat message and gives the agent of the chat.
    pub(crate) async fn say(&self, chat: &str, number: u32, message: &str) -> Value {
        let item = json!({"id": format!("user-{number}"), "type": "user", "content": message,
                          "timestamp": 1_766_000_000_000_u64});
        let body = json!({"message": message, "chatMessage": item});
        let answer = self.post(&format!("/chat-node/{}/send", encoded(chat)), body).await.ok(200);
        assert_eq!(answer["success"], true);
        answer["agentCoreId"].clone()
    }

    /// The shown history: role and text.
    pub(crate) async fn history(&self, chat: &str) -> Vec<(String, String)> {
        let answer = self.get(&format!("/chat-node/{}/history", encoded(chat))).await.ok(200);
        let items = answer["history"].as_array().unwrap();
        assert_eq!((&answer["nodeId"], &answer["count"]), (&json!(chat), &json!(items.len())));
        items.iter().map(|item| (text(item, "/type").to_owned(), text(item, "/content").to_owned())).collect()
    }

    /// The next event that is no heartbeat. It must match the contract exactly.
    pub(crate) async fn event(&mut self) -> Value {
        let end = tokio::time::Instant::now() + PATIENCE;
        loop {
            // Heartbeats never end.
            let text = timeout_at(end, self.observability.next()).await.expect("no message");
            let text = text.expect("the socket was closed");
            self.received.lock().unwrap().push(text.clone().into_bytes());
            let event: ObservabilityEvent = serde_json::from_str(&text).unwrap();
            let value = json_of(&text);
            assert_eq!(serde_json::to_value(event).unwrap(), value);
            if value["event"] != "heartbeat" {
                return value;
            }
        }
    }

    /// All events until `count` frames have ended, by frame, in the order of their starts.
    pub(crate) async fn frames(&mut self, count: usize) -> Vec<Frame> {
        self.frames_from(Vec::new(), count).await
    }

    async fn frames_from(&mut self, started: Vec<(String, Vec<Value>)>, count: usize) -> Vec<Frame> {
        let (mut all, mut ended) = (started, 0);
        while ended < count {
            let event = self.event().await;
            ended += usize::from(event["event"] == "frame:end");
            let id = text(&event, "/frameId").to_owned();
            match all.iter_mut().find(|(known, _)| *known == id) {
                Some((_, events)) => events.push(event),
                None => all.push((id, vec![event])),
            }
        }
        assert_eq!(all.len(), count, "a frame has not ended, or a new one started: {all:#?}");
        all.into_iter().map(|(_, events)| Frame::new(events, &self.types)).collect()
    }

    pub(crate) async fn frame(&mut self) -> Frame {
        self.frames(1).await.remove(0)
    }

    /// The events of a frame until the first message from port 4, and the chat history at that moment.
    pub(crate) async fn until_answered(&mut self, chat: &str) -> (Vec<Value>, Vec<(String, String)>) {
        let mut events = Vec::new();
        while events.last().is_none_or(|last| !line(last).starts_with("out agent-core 4 ")) {
            events.push(self.event().await);
        }
        (events, self.history(chat).await)
    }

    /// The whole frame that begins with these events.
    pub(crate) async fn frame_from(&mut self, events: Vec<Value>) -> Frame {
        let id = text(&events[0], "/frameId").to_owned();
        self.frames_from(vec![(id, events)], 1).await.remove(0)
    }

    /// The next debug message at `/comms`.
    pub(crate) async fn debug(&mut self) -> Value {
        loop {
            while let Some(notice) = self.notices.pop_front() {
                if notice["topic"] == "debug" {
                    return notice["data"].clone();
                }
            }
            match timeout(PATIENCE, self.comms.stream.next()).await.expect("no message").unwrap().unwrap() {
                Message::Text(text) => {
                    self.received.lock().unwrap().push(text.as_str().into());
                    let Value::Array(notices) = json_of(&text) else { panic!("no list: {text}") };
                    self.notices.extend(notices);
                }
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Another socket of the same page.
    pub(crate) async fn open_socket(&self) -> EventSocket {
        EventSocket::open(&self.sidecar).await
    }

    /// Checks the events of a deploy with a refused agent: a red row without a run. Gives the reason.
    pub(crate) async fn refused(&mut self, agent: &str) -> String {
        let (row, error) = (self.event().await, self.event().await);
        assert_eq!((text(&row, "/event"), text(&error, "/event")), ("node:output", "node:error"));
        for event in [&row, &error] {
            assert_eq!((text(event, "/nodeId"), event.get("frameId")), (agent, None));
            assert_eq!(text(event, "/data/nodeType"), "agent-core");
        }
        assert_eq!(text(&row, "/data/semantics/behavior"), "terminated");
        let [output] = &row["data"]["outputs"].as_array().unwrap()[..] else { panic!("{row:#}") };
        assert_eq!(output["payload"]["preview"]["error"], error["data"]["error"]);
        error["data"]["error"].to_string()
    }

    /// Checks the event of a deploy with a warning about an agent: a yellow row without a run. Gives the warning.
    pub(crate) async fn warned(&mut self, agent: &str) -> Value {
        let row = self.event().await;
        assert_eq!((line(&row).as_str(), row.get("frameId")), ("out agent-core - filtered", None));
        assert_eq!(text(&row, "/nodeId"), agent);
        row["data"]["outputs"][0]["payload"]["preview"]["warning"].clone()
    }

    /// Checks the event of an agent that is not refused any more: its row is not red.
    pub(crate) async fn check_accepted(&mut self, agent: &str) {
        let row = self.event().await;
        assert_eq!((line(&row).as_str(), row.get("frameId")), ("out agent-core - pass-through", None));
        assert_eq!(text(&row, "/nodeId"), agent);
    }

    /// The report of `redflow check` for a flow.
    pub(crate) async fn check(&self, flow: &Flow) -> Value {
        let request =
            Request::new(self.sidecar.addr, "POST", "/api/flows/check").token(&self.sidecar.token());
        let reply = request.json(json!({"flows": flow.0})).send().await;
        self.received.lock().unwrap().push(reply.body.clone());
        reply.ok(200)
    }

    /// All runs, newest first. It also reads the detail of each.
    pub(crate) async fn runs(&self) -> Vec<Value> {
        let list = self.api("GET", "/api/runs").await;
        let mut runs = Vec::new();
        for run in list["runs"].as_array().unwrap() {
            let whole = self.api("GET", &format!("/api/runs/{}", text(run, "/runId"))).await;
            runs.push(whole["summary"].clone());
        }
        runs
    }

    /// Ends every test. All requests to the model were valid and had the key. The key is in no response, socket message,
    /// file or log line. The test has checked every event.
    pub(crate) async fn end(mut self) -> StoppedSidecar {
        assert_eq!(self.azure.problems(), [] as [&str; 0]);
        self.runs().await;
        self.sidecar.terminate();
        while let Some(text) = self.observability.next().await {
            let event = json_of(&text);
            assert_eq!(event["event"], "heartbeat", "the test did not check {event:#}");
        }
        while let Ok(Some(Ok(message))) = timeout(PATIENCE, self.comms.stream.next()).await {
            self.received.lock().unwrap().push(message.into_data().to_vec());
        }
        let stopped = self.sidecar.wait();
        let received = self.received.into_inner().unwrap();
        let leaks: Vec<_> = received
            .iter()
            .filter(|bytes| contains(bytes, KEY))
            .map(|b| String::from_utf8_lossy(b))
            .collect();
        assert_eq!(leaks, [] as [&str; 0]);
        assert_eq!(stopped.places_containing(KEY), [] as [&str; 0]);
        // The search itself must work.
        assert!(!stopped.places_containing("agent-core-1766").is_empty());
        stopped
    }
}

/// The nodes as the UI gets them: the wires of an agent have an entry for each of its five ports.
fn with_all_ports(flow: &Flow) -> Vec<Value> {
    let mut nodes = flow.0.clone();
    for node in nodes.iter_mut().filter(|node| node["type"] == "agent-core") {
        let wires = node["wires"].as_array_mut().unwrap();
        wires.resize(wires.len().max(5), json!([]));
    }
    nodes
}

/// Encodes an id, more strictly than `encodeURIComponent`.
pub(crate) fn encoded(id: &str) -> String {
    id.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Polls until `look` gives a value.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut look: impl FnMut() -> F,
) -> T {
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(tokio::time::Instant::now() < end, "timeout: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
