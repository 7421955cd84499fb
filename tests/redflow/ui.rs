//! What the Redflow UI does, as it does it: from its origin, without a token, in its order.

use crate::azure::{Azure, KEY, When};
use crate::client::{PATIENCE, Reply, Request, Socket};
use crate::conversation::{Frame, line, text};
use crate::flows::{Flow, ids_of};
use crate::sidecar::{ORIGIN, Remains, Sidecar, holds};
use futures::StreamExt as _;
use pretty_assertions::assert_eq;
use redflow_contract::observability::ObservabilityEvent;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::{timeout, timeout_at};
use tokio_tungstenite::tungstenite::Message;

/// Where the UI's store is.
pub(crate) const STORAGE: &str = "/redflow/persistent-storage";

/// A UI, the sidecar it talks to, and the model behind that.
pub(crate) struct Ui {
    pub(crate) sidecar: Sidecar,
    pub(crate) azure: Azure,
    watching: Watching,
    comms: Socket,
    notices: VecDeque<Value>,
    /// The types of the nodes that were deployed.
    types: HashMap<String, String>,
    /// Everything that came back, by whatever way.
    heard: Mutex<Vec<Vec<u8>>>,
}

/// A socket at `/observability`.
pub(crate) struct Watching(Socket);

impl Watching {
    pub(crate) async fn open(sidecar: &Sidecar) -> Self {
        let mut watching = Self(socket(sidecar, "/observability").await);
        let hello = watching.next().await.unwrap();
        assert!(text(&json_of(&hello), "/event") == "connected", "{hello}");
        watching
    }

    /// The next message; none if it is closed.
    async fn next(&mut self) -> Option<String> {
        loop {
            match timeout(PATIENCE, self.0.stream.next()).await.expect("nothing came")? {
                Ok(Message::Text(text)) => return Some(text.as_str().to_owned()),
                // A goodbye is answered by reading on.
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Close(_)) => {}
                Err(_) => return None,
                Ok(other) => panic!("{other:?}"),
            }
        }
    }

    /// The texts of the next frame, all of it.
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
    /// Starts everything; the page is loaded.
    pub(crate) async fn start(whens: Vec<When>) -> Self {
        let azure = Azure::start(whens).await;
        let sidecar = Sidecar::start();
        // The probe, which is closed as soon as it is open, and then the socket that stays.
        let mut probe = Watching::open(&sidecar).await;
        probe.0.stream.close(None).await.unwrap();
        let watching = Watching::open(&sidecar).await;
        let comms = socket(&sidecar, "/comms").await;
        let (notices, types, heard) = (VecDeque::new(), HashMap::new(), Mutex::default());
        Self { sidecar, azure, watching, comms, notices, types, heard }
    }

    /// Starts everything and deploys a flow whose models have their key.
    pub(crate) async fn with(whens: Vec<When>, flow: impl FnOnce(&str) -> Flow) -> Self {
        let mut ui = Self::start(whens).await;
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

    /// Sends what a page sends; the answer is one that a page may read.
    pub(crate) async fn ask(&self, request: Request) -> Reply {
        let reply = request.send().await;
        assert_eq!(reply.header("access-control-allow-origin"), Some(ORIGIN), "{reply:?}");
        self.heard.lock().unwrap().push(reply.body.clone());
        reply
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask(self.request("GET", path).header("node-red-api-version", "v2")).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.ask(self.request("POST", path).json(body)).await
    }

    /// What is not the UI's business: asks with the token.
    pub(crate) async fn api(&self, method: &str, path: &str) -> Value {
        let request = Request::new(self.sidecar.addr, method, path).token(&self.sidecar.token());
        let request = if method == "POST" { request.json(json!({})) } else { request };
        let reply = request.send().await;
        self.heard.lock().unwrap().push(reply.body.clone());
        reply.ok(200)
    }

    /// Save & Deploy: the revision, the flow, and what is there then.
    pub(crate) async fn deploy(&mut self, flow: &Flow) {
        let before = self.get("/flows").await.ok(200);
        let body = json!({"rev": before["rev"], "flows": flow.0});
        let posted = self.request("POST", "/flows").json(body);
        let posted = posted.header("node-red-api-version", "v2").header("node-red-deployment-type", "full");
        let answer = self.ask(posted).await.ok(200);
        let after = self.get("/flows").await.ok(200);
        assert_eq!(after, json!({"flows": flow.0, "rev": answer["rev"]}));
        assert_ne!(after["rev"], before["rev"]);
        // What was there before may still run.
        self.types.extend(ids_of(flow));
    }

    /// The key of every model, as the UI copies it to the server.
    pub(crate) async fn store_keys(&self, flow: &Flow) {
        let keys =
            flow.models().map(|id| (format!("node-credentials:{id}"), json!({"apiKey": KEY}))).collect();
        let stored = self.post(STORAGE, Value::Object(keys)).await.ok(200);
        assert_eq!(stored["success"], true);
    }

    /// "Ejecutar Flow", for one inject node.
    pub(crate) async fn inject(&self, id: &str) {
        let flows = self.get("/flows").await.ok(200);
        let nodes = flows["flows"].as_array().unwrap();
        assert!(nodes.iter().any(|node| node["id"] == id && node["type"] == "inject"));
        let reply = self.ask(self.request("POST", &format!("/inject/{}", encoded(id)))).await;
        assert_eq!((reply.status, reply.body.as_slice()), (200, b"OK".as_slice()), "{reply:?}");
    }

    /// Types something into a chat; the agent that has it.
    pub(crate) async fn say(&self, chat: &str, number: u32, message: &str) -> Value {
        let item = json!({"id": format!("user-{number}"), "type": "user", "content": message,
                          "timestamp": 1_766_000_000_000_u64});
        let body = json!({"message": message, "chatMessage": item});
        let answer = self.post(&format!("/chat-node/{}/send", encoded(chat)), body).await.ok(200);
        assert_eq!(answer["success"], true);
        answer["agentCoreId"].clone()
    }

    /// What the window shows: who, and what.
    pub(crate) async fn history(&self, chat: &str) -> Vec<(String, String)> {
        let answer = self.get(&format!("/chat-node/{}/history", encoded(chat))).await.ok(200);
        let items = answer["history"].as_array().unwrap();
        assert_eq!((&answer["nodeId"], &answer["count"]), (&json!(chat), &json!(items.len())));
        items.iter().map(|item| (text(item, "/type").to_owned(), text(item, "/content").to_owned())).collect()
    }

    /// The next event that is no heartbeat, exactly as the contract has it.
    pub(crate) async fn event(&mut self) -> Value {
        let end = tokio::time::Instant::now() + PATIENCE;
        loop {
            // Heartbeats come for ever.
            let text = timeout_at(end, self.watching.next()).await.expect("nothing came");
            let text = text.expect("the socket was closed");
            self.heard.lock().unwrap().push(text.clone().into_bytes());
            let event: ObservabilityEvent = serde_json::from_str(&text).unwrap();
            let value = json_of(&text);
            assert_eq!(serde_json::to_value(event).unwrap(), value);
            if value["event"] != "heartbeat" {
                return value;
            }
        }
    }

    /// Everything until that many frames have ended, by frame, in the order in which they began.
    pub(crate) async fn frames(&mut self, count: usize) -> Vec<Frame> {
        self.frames_from(Vec::new(), count).await
    }

    async fn frames_from(&mut self, begun: Vec<(String, Vec<Value>)>, count: usize) -> Vec<Frame> {
        let (mut all, mut ended) = (begun, 0);
        while ended < count {
            let event = self.event().await;
            ended += usize::from(event["event"] == "frame:end");
            let id = text(&event, "/frameId").to_owned();
            match all.iter_mut().find(|(known, _)| *known == id) {
                Some((_, events)) => events.push(event),
                None => all.push((id, vec![event])),
            }
        }
        assert_eq!(all.len(), count, "a frame goes on, or one began anew: {all:#?}");
        all.into_iter().map(|(_, events)| Frame::new(events, &self.types)).collect()
    }

    pub(crate) async fn frame(&mut self) -> Frame {
        self.frames(1).await.remove(0)
    }

    /// The beginning of a frame until something leaves port 4, and what a chat shows in that moment.
    pub(crate) async fn until_answered(&mut self, chat: &str) -> (Vec<Value>, Vec<(String, String)>) {
        let mut begun = Vec::new();
        while begun.last().is_none_or(|last| !line(last).starts_with("out agent-core 4 ")) {
            begun.push(self.event().await);
        }
        (begun, self.history(chat).await)
    }

    /// The rest of a frame of which these were heard.
    pub(crate) async fn frame_from(&mut self, begun: Vec<Value>) -> Frame {
        let id = text(&begun[0], "/frameId").to_owned();
        self.frames_from(vec![(id, begun)], 1).await.remove(0)
    }

    /// The next debug message at `/comms`.
    pub(crate) async fn debug(&mut self) -> Value {
        loop {
            while let Some(notice) = self.notices.pop_front() {
                if notice["topic"] == "debug" {
                    return notice["data"].clone();
                }
            }
            match timeout(PATIENCE, self.comms.stream.next()).await.expect("nothing came").unwrap().unwrap() {
                Message::Text(text) => {
                    self.heard.lock().unwrap().push(text.as_str().into());
                    let Value::Array(notices) = json_of(&text) else { panic!("no list: {text}") };
                    self.notices.extend(notices);
                }
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// More sockets of the same page.
    pub(crate) async fn watch(&self) -> Watching {
        Watching::open(&self.sidecar).await
    }

    /// What the UI is told of an agent that may not run, at the deploy: a red row without a run, and why.
    pub(crate) async fn refused(&mut self, agent: &str) -> String {
        let (row, error) = (self.event().await, self.event().await);
        assert_eq!((text(&row, "/event"), text(&error, "/event")), ("node:output", "node:error"));
        for event in [&row, &error] {
            assert_eq!((text(event, "/nodeId"), event.get("frameId")), (agent, None));
            assert_eq!(text(event, "/data/nodeType"), "agent-core");
        }
        assert_eq!(text(&row, "/data/semantics/behavior"), "terminated");
        let [shown] = &row["data"]["outputs"].as_array().unwrap()[..] else { panic!("{row:#}") };
        assert_eq!(shown["payload"]["preview"]["error"], error["data"]["error"]);
        error["data"]["error"].to_string()
    }

    /// What the UI is told of an agent that was refused and is not any more: it is red no longer.
    pub(crate) async fn mended(&mut self, agent: &str) {
        let row = self.event().await;
        assert_eq!((line(&row).as_str(), row.get("frameId")), ("out agent-core - pass-through", None));
        assert_eq!(text(&row, "/nodeId"), agent);
    }

    /// What `redflow check` says of a flow, with the token.
    pub(crate) async fn check(&self, flow: &Flow) -> Value {
        let request =
            Request::new(self.sidecar.addr, "POST", "/api/flows/check").token(&self.sidecar.token());
        let reply = request.json(json!({"flows": flow.0})).send().await;
        self.heard.lock().unwrap().push(reply.body.clone());
        reply.ok(200)
    }

    /// The runs there were, newest first. Each is read whole.
    pub(crate) async fn runs(&self) -> Vec<Value> {
        let list = self.api("GET", "/api/runs").await;
        let mut runs = Vec::new();
        for run in list["runs"].as_array().unwrap() {
            let whole = self.api("GET", &format!("/api/runs/{}", text(run, "/runId"))).await;
            runs.push(whole["summary"].clone());
        }
        runs
    }

    /// The end of every scenario: the model was asked as it wants to be and with the key, and the key is nowhere else:
    /// in no answer, no message of a socket, no file, no line of the log. Nobody was told anything that was not looked
    /// at.
    pub(crate) async fn end(mut self) -> Remains {
        assert_eq!(self.azure.problems(), [] as [&str; 0]);
        self.runs().await;
        self.sidecar.ask_to_stop();
        while let Some(text) = self.watching.next().await {
            let event = json_of(&text);
            assert_eq!(event["event"], "heartbeat", "nobody looked at {event:#}");
        }
        while let Ok(Some(Ok(message))) = timeout(PATIENCE, self.comms.stream.next()).await {
            self.heard.lock().unwrap().push(message.into_data().to_vec());
        }
        let remains = self.sidecar.stopped();
        let heard = self.heard.into_inner().unwrap();
        let told: Vec<_> =
            heard.iter().filter(|bytes| holds(bytes, KEY)).map(|b| String::from_utf8_lossy(b)).collect();
        assert_eq!(told, [] as [&str; 0]);
        assert_eq!(remains.holding(KEY), [] as [&str; 0]);
        // Whoever finds nothing must be able to find something.
        assert!(!remains.holding("agent-core-1766").is_empty());
        remains
    }
}

/// As `encodeURIComponent` does it, and more.
pub(crate) fn encoded(id: &str) -> String {
    id.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Waits until something is so.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut look: impl FnMut() -> F,
) -> T {
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(tokio::time::Instant::now() < end, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
