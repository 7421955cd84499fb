//! `ws /comms`: authentication, notices in batches, and retained notices.

use crate::client::{PATIENCE, Socket};
use crate::kit::{Setup, TOKEN, TestSidecar, eventually, flow, plain_flow, token, tool_flow};
use crate::llama_stand_in::{flow_with_model, loading_server};
use futures::{SinkExt as _, StreamExt as _};
use pretty_assertions::assert_eq;
use redflow_contract::api::Scope;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

const UI: &str = "http://localhost:5173";

/// A message that an editor receives.
#[derive(Debug, PartialEq)]
enum Received {
    /// A batch of notices.
    Notices(Vec<Value>),
    Other(Value),
    /// The socket is closed, with the reason.
    Closed(String),
}

struct EditorClient {
    socket: Socket,
    /// The rest of the last batch.
    rest: Vec<Value>,
}

impl EditorClient {
    async fn open(sidecar: &TestSidecar, headers: &[(&str, &str)]) -> Self {
        let socket = Socket::try_open_at(sidecar.addr, "/comms", headers).await;
        Self { socket: socket.unwrap_or_else(|answer| panic!("{answer:?}")), rest: Vec::new() }
    }

    async fn open_with_token(sidecar: &TestSidecar) -> Self {
        Self::open(sidecar, &[("authorization", &format!("Bearer {TOKEN}"))]).await
    }

    async fn send(&mut self, message: Value) {
        self.socket.send(Message::text(message.to_string())).await;
    }

    async fn receive(&mut self) -> Received {
        loop {
            match timeout(PATIENCE, self.socket.stream.next()).await.unwrap() {
                Some(Ok(Message::Text(text))) => {
                    return match serde_json::from_str(&text).unwrap() {
                        Value::Array(notices) => Received::Notices(notices),
                        other => Received::Other(other),
                    };
                }
                Some(Ok(Message::Close(frame))) => {
                    let reason = frame.map(|frame| frame.reason.to_string());
                    return Received::Closed(reason.unwrap_or_default());
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Received::Closed("without a close frame".to_owned()),
            }
        }
    }

    async fn notices(&mut self) -> Vec<Value> {
        match self.receive().await {
            Received::Notices(notices) => {
                assert!((1..=50).contains(&notices.len()), "{}", notices.len());
                notices
            }
            other => panic!("{other:?}"),
        }
    }

    /// The next notice.
    async fn next(&mut self) -> Value {
        if self.rest.is_empty() {
            self.rest = self.notices().await;
        }
        self.rest.remove(0)
    }

    /// The next notice of a topic, or of a topic below it.
    async fn next_of(&mut self, topic: &str) -> Value {
        loop {
            let notice = self.next().await;
            if notice["topic"].as_str().unwrap().starts_with(topic) {
                return notice;
            }
        }
    }

    /// The statuses of the agent, up to one with this fill.
    async fn statuses_until(&mut self, fill: &str) -> Vec<String> {
        let mut texts = Vec::new();
        loop {
            let Value::Object(data) = self.next_of("status/agent").await["data"].take() else {
                panic!("no object")
            };
            let text = |key: &str| data[key].as_str().unwrap().to_owned();
            texts.push(format!("{} {} {}", text("fill"), text("shape"), text("text")));
            if data["fill"] == fill {
                return texts;
            }
        }
    }

    /// Reads until the socket is closed and gives the reason.
    async fn close_reason(mut self) -> String {
        loop {
            if let Received::Closed(reason) = self.receive().await {
                return reason;
            }
        }
    }
}

fn auth(token: &str) -> Value {
    json!({"auth": token})
}

/// A flow whose inject node sends a value to debug nodes.
fn debug_flow(payload: &str, payload_type: &str, debugs: usize) -> Value {
    let ids: Vec<String> = (0..debugs).map(|number| format!("debug {number}")).collect();
    let mut nodes = vec![
        json!({"id": "tab", "type": "tab", "label": "Home"}),
        json!({"id": "ask", "type": "inject", "z": "tab", "props": [{"p": "payload"}, {"p": "topic", "vt": "str"}],
               "payload": payload, "payloadType": payload_type, "topic": "t", "wires": [ids]}),
    ];
    for id in ids {
        nodes.push(json!({"id": id, "type": "debug", "z": "tab", "name": "Shows", "active": true,
                          "complete": "payload", "targetType": "msg", "wires": []}));
    }
    Value::Array(nodes)
}

/// Starts a sidecar and waits until the notices of its start were sent.
async fn start_with(setup: Setup, flow: Value) -> TestSidecar {
    let sidecar = setup.start(Some(flow)).await;
    eventually("the notice of its deploy is sent", || async {
        let mut editor = EditorClient::open_with_token(&sidecar).await;
        editor.send(json!({"subscribe": "notification/runtime-deploy"})).await;
        // The answer to this comes next if there was no notice.
        editor.send(auth(TOKEN)).await;
        matches!(editor.receive().await, Received::Notices(_)).then_some(())
    })
    .await;
    sidecar
}

async fn start(flow: Value) -> TestSidecar {
    start_with(Setup::default(), flow).await
}

async fn fire(sidecar: &TestSidecar) {
    sidecar.post("/api/runs", json!({"node": "ask"})).await.ok(202);
}

#[tokio::test]
async fn sends_nothing_before_the_token_arrives() {
    let sidecar = start(plain_flow()).await;
    let mut observer = EditorClient::open_with_token(&sidecar).await;
    let mut late = EditorClient::open(&sidecar, &[]).await;
    sidecar.run(json!({"node": "agent", "payload": "?"})).await;
    observer.next_of("debug").await;
    late.send(auth(TOKEN)).await;
    assert_eq!(late.receive().await, Received::Other(json!({"auth": "ok"})));
    sidecar.run(json!({"node": "agent", "payload": "?"})).await;
    // It gets no notice of the first run.
    assert_eq!(late.statuses_until("grey").await[0], "green ring started");
}

#[tokio::test]
async fn refuses_a_wrong_token_or_another_first_message() {
    let sidecar = start(plain_flow()).await;
    let messages = [
        auth("a guess").to_string(),
        auth("").to_string(),
        json!({"auth": 5}).to_string(),
        json!({"auth": null}).to_string(),
        json!({"subscribe": "status/#"}).to_string(),
        "no json".to_owned(),
        "[]".to_owned(),
        String::new(),
        format!(r#"{{"auth":"a guess","auth":"{TOKEN}"}}"#),
    ];
    for message in messages {
        let mut editor = EditorClient::open(&sidecar, &[]).await;
        editor.socket.send(Message::text(message.clone())).await;
        assert_eq!(editor.receive().await, Received::Other(json!({"auth": "fail"})), "{message}");
        assert_eq!(editor.receive().await, Received::Closed("UNAUTHORIZED".to_owned()), "{message}");
    }
    // A later token replaces the one of the request.
    let mut editor = EditorClient::open_with_token(&sidecar).await;
    editor.send(auth(TOKEN)).await;
    assert_eq!(editor.receive().await, Received::Other(json!({"auth": "ok"})));
    editor.send(auth("a guess")).await;
    assert_eq!(editor.receive().await, Received::Other(json!({"auth": "fail"})));
    assert_eq!(editor.receive().await, Received::Closed("UNAUTHORIZED".to_owned()));
}

#[tokio::test]
async fn limits_guesses_of_tokens() {
    let mut setup = Setup::default();
    (setup.settings.access.failures_per_second, setup.settings.access.failure_burst) = (0, 3);
    let sidecar = start_with(setup, plain_flow()).await;
    let mut reasons = Vec::new();
    for _ in 0..4 {
        let mut editor = EditorClient::open(&sidecar, &[]).await;
        editor.send(auth("a guess")).await;
        reasons.push(editor.close_reason().await);
    }
    assert_eq!(reasons, ["UNAUTHORIZED", "UNAUTHORIZED", "UNAUTHORIZED", "RATE_LIMITED"]);
    // The right token still works.
    let mut editor = EditorClient::open(&sidecar, &[]).await;
    editor.send(auth(TOKEN)).await;
    assert_eq!(editor.receive().await, Received::Other(json!({"auth": "ok"})));
}

#[tokio::test]
async fn closes_a_socket_that_sends_no_token_in_time() {
    let mut setup = Setup::default();
    setup.settings.first_message_timeout = Duration::from_millis(50);
    let sidecar = start_with(setup, plain_flow()).await;
    let mut editor = EditorClient::open(&sidecar, &[]).await;
    // A ping does not count as a token.
    let _ = editor.socket.stream.send(Message::Ping("x".into())).await;
    assert_eq!(editor.receive().await, Received::Other(json!({"auth": "fail"})));
    assert_eq!(editor.receive().await, Received::Closed("UNAUTHORIZED".to_owned()));
}

#[tokio::test]
async fn accepts_a_token_in_the_request_and_refuses_other_pages() {
    let mut setup = Setup::default();
    setup.settings.access.redflow_ui = Some(UI.to_owned());
    let sidecar = start_with(setup, plain_flow()).await;
    let offered = format!("redflow.comms.v1, redflow.token.{TOKEN}");
    for headers in [[("sec-websocket-protocol", offered.as_str())], [("origin", UI)]] {
        let mut editor = EditorClient::open(&sidecar, &headers).await;
        editor.send(json!({"subscribe": "notification/runtime-state"})).await;
        assert_eq!(editor.next().await["data"], json!({"state": "start", "deploy": true}));
    }
    for (headers, status, code) in [
        (vec![("origin", "http://evil.example")], 403, "ORIGIN_REFUSED"),
        (vec![("origin", "http://localhost:5174")], 403, "ORIGIN_REFUSED"),
        (vec![("authorization", "Bearer guess")], 401, "UNAUTHORIZED"),
        (vec![("host", "evil.example")], 403, "HOST_REFUSED"),
    ] {
        match Socket::try_open_at(sidecar.addr, "/comms", &headers).await {
            Err(answer) => answer.refused(status, code),
            Ok(_) => panic!("{headers:?} opened a socket"),
        }
    }
    sidecar.get("/comms").await.refused(400, "REQUEST_INVALID");
}

#[tokio::test]
async fn a_socket_does_not_outlive_a_token_from_its_first_message() {
    let mut setup = Setup::default();
    setup.settings.heartbeat = Duration::from_millis(300);
    let sidecar = start_with(setup, plain_flow()).await;
    let token = token(sidecar.dir.path(), "guest", &[Scope::Read], 1);
    let mut editor = eventually("the token is known", || async {
        let mut editor = EditorClient::open(&sidecar, &[]).await;
        editor.send(auth(&token)).await;
        (editor.receive().await == Received::Other(json!({"auth": "ok"}))).then_some(editor)
    })
    .await;
    redflow_access::tokens::remove(sidecar.dir.path(), "guest").unwrap();
    assert_eq!(editor.receive().await, Received::Other(json!({"auth": "fail"})));
    assert_eq!(editor.receive().await, Received::Closed("UNAUTHORIZED".to_owned()));
}

#[tokio::test]
async fn sends_the_status_of_an_agent_and_repeats_it_to_subscribers() {
    let sidecar = start(tool_flow("calculator-tool")).await;
    let mut editor = EditorClient::open_with_token(&sidecar).await;
    sidecar.run(json!({"node": "agent", "payload": "?"})).await;
    assert_eq!(
        editor.statuses_until("grey").await,
        [
            "green ring started",
            "green ring iteration 1: model",
            "green ring iteration 1: act",
            "green ring iteration 2: model",
            "green ring iteration 2: final",
            "grey dot done after 2 iterations"
        ]
    );
    let mut late = EditorClient::open_with_token(&sidecar).await;
    let done = json!({"fill": "grey", "shape": "dot", "text": "done after 2 iterations"});
    for (pattern, matches) in
        [("status/+", true), ("debug", false), ("nothing/#", false), ("status/agent", true)]
    {
        late.send(json!({"subscribe": pattern})).await;
        if matches {
            assert_eq!(late.notices().await, [json!({"topic": "status/agent", "data": done})]);
        }
    }
}

#[tokio::test]
async fn shows_the_status_of_a_waiting_and_a_failed_run() {
    let sidecar = start(tool_flow("tool.lost")).await;
    let mut editor = EditorClient::open_with_token(&sidecar).await;
    let run = sidecar.run(json!({"node": "agent", "payload": "?"})).await["runs"][0]["runId"].clone();
    let waiting = editor.statuses_until("yellow").await;
    assert_eq!(waiting.last().unwrap(), "yellow ring waiting for the outcome of act");
    sidecar.post(&format!("/api/runs/{}/cancel", run.as_str().unwrap()), json!({})).await.ok(200);
    assert_eq!(editor.statuses_until("red").await, ["red ring CANCELLED after 1 iteration"]);
}

#[tokio::test]
async fn shows_an_uncaught_error_in_the_sidebar() {
    let mut nodes = plain_flow();
    nodes[3]["replies"] = json!(["this is no action"]);
    let sidecar = start(nodes).await;
    let mut editor = EditorClient::open_with_token(&sidecar).await;
    sidecar.run(json!({"node": "agent", "payload": "?"})).await;
    let failed = loop {
        let shown = editor.next_of("debug").await["data"].take();
        if shown["level"] == 20 {
            break shown;
        }
    };
    assert_eq!(
        [&failed["id"], &failed["type"], &failed["z"], &failed["name"]],
        ["agent", "agent-core", "tab", "Counting"]
    );
    let text = failed["msg"].as_str().unwrap();
    assert!(text.contains(": "), "{text}");
    assert_eq!(failed["format"], json!(format!("string[{}]", text.encode_utf16().count())));
}

#[tokio::test]
async fn sends_a_notice_of_a_deploy_and_clears_old_statuses() {
    let mut refused = plain_flow();
    refused[2]["strategy"] = json!("another");
    let sidecar = start(refused).await;
    let mut editor = EditorClient::open_with_token(&sidecar).await;
    editor.send(json!({"subscribe": "status/#"})).await;
    let red = editor.notices().await;
    assert_eq!([&red[0]["topic"], &red[0]["data"]["fill"]], ["status/agent", "red"]);
    let deploy = |flows: Value| sidecar.post("/api/deployment", json!({"flows": flows, "force": true}));

    // A corrected agent has no status. After a run it has one, and keeps it over a deploy.
    let revision = deploy(plain_flow()).await.ok(200)["revision"].clone();
    assert_eq!(editor.next_of("status/agent").await["data"], json!({}));
    assert_eq!(
        editor.next_of("notification/runtime-state").await["data"],
        json!({"state": "start", "deploy": true})
    );
    assert_eq!(editor.next_of("notification/runtime-deploy").await["data"], json!({"revision": revision}));
    sidecar.run(json!({"node": "agent", "payload": "?"})).await;
    editor.statuses_until("grey").await;
    deploy(plain_flow()).await.ok(200);
    assert_eq!(editor.next_of("").await["topic"], "debug");
    assert_eq!(editor.next_of("").await["topic"], "notification/runtime-state");
    assert_eq!(editor.next_of("").await["topic"], "notification/runtime-deploy");

    deploy(debug_flow("1", "num", 1)).await.ok(200);
    assert_eq!(editor.next_of("").await, json!({"topic": "status/agent", "data": {}}));
    editor.next_of("notification/runtime-deploy").await;
    editor.send(json!({"subscribe": "#"})).await;
    let retained: Vec<Value> = editor.notices().await.iter().map(|notice| notice["topic"].clone()).collect();
    assert_eq!(retained, ["notification/runtime-deploy", "notification/runtime-state"]);
}

#[tokio::test]
async fn reports_a_refused_agent_at_a_deploy() {
    let sidecar = start(plain_flow()).await;
    let mut editor = EditorClient::open_with_token(&sidecar).await;
    let mut refused = plain_flow();
    refused[2]["strategy"] = json!("another");
    let body = json!({"flows": refused});
    let request = sidecar.request("POST", "/flows").token(TOKEN).header("node-red-api-version", "v2");
    request.json(body).send().await.ok(200);
    let status = editor.next_of("status/agent").await["data"].take();
    assert_eq!([&status["fill"], &status["shape"]], ["red", "ring"]);
    let shown = editor.next_of("debug").await["data"].take();
    assert_eq!((&shown["id"], &shown["level"]), (&json!("agent"), &json!(20)));
    let code = status["text"].as_str().unwrap();
    assert!(shown["msg"].as_str().unwrap().starts_with(code), "{shown}");
}

#[tokio::test]
async fn sends_debug_messages_in_node_reds_format() {
    for (payload, kind, msg, format) in [
        ("hello", "str", "hello", "string[5]"),
        ("7", "num", "7", "number"),
        ("true", "bool", "true", "boolean"),
        (r#"{"a":[1,null]}"#, "json", r#"{"a":[1,null]}"#, "Object"),
        ("[1,2,3]", "json", "[1,2,3]", "array[3]"),
        ("null", "json", "(undefined)", "null"),
    ] {
        let sidecar = start(debug_flow(payload, kind, 1)).await;
        let mut editor = EditorClient::open_with_token(&sidecar).await;
        fire(&sidecar).await;
        let Value::Object(mut data) = editor.next_of("debug").await["data"].take() else {
            panic!("no object")
        };
        assert!(data.remove("timestamp").unwrap().is_u64());
        let expected = json!({"id": "debug 0", "z": "tab", "path": "tab", "name": "Shows", "property": "payload",
                              "msg": msg, "format": format});
        assert_eq!(Value::Object(data), expected);
    }
    let mut whole = debug_flow("hello", "str", 1);
    whole[2]["complete"] = json!("true");
    let sidecar = start(whole).await;
    let mut editor = EditorClient::open_with_token(&sidecar).await;
    fire(&sidecar).await;
    let data = editor.next_of("debug").await["data"].take();
    assert_eq!(
        (&data["topic"], &data["format"], data.get("property")),
        (&json!("t"), &json!("Object"), None)
    );
    let msg: Value = serde_json::from_str(data["msg"].as_str().unwrap()).unwrap();
    assert_eq!([&msg["payload"], &msg["topic"]], ["hello", "t"]);
}

#[tokio::test]
async fn sends_many_notices_in_ordered_batches() {
    const MANY: usize = 240;
    let sidecar = start(debug_flow("x", "str", MANY)).await;
    let mut editor = EditorClient::open_with_token(&sidecar).await;
    fire(&sidecar).await;
    let (mut ids, mut batches) = (Vec::new(), 0);
    while ids.len() < MANY {
        batches += 1;
        ids.extend(editor.notices().await.iter().map(|notice| notice["data"]["id"].clone()));
    }
    assert!(batches < MANY, "one by one");
    let expected: Vec<Value> = (0..MANY).map(|number| json!(format!("debug {number}"))).collect();
    assert_eq!(ids, expected);
}

#[tokio::test]
async fn sends_heartbeats() {
    let mut setup = Setup::default();
    setup.settings.comms_heartbeat = Duration::from_millis(30);
    let sidecar = start_with(setup, plain_flow()).await;
    let mut editor = EditorClient::open_with_token(&sidecar).await;
    let first = editor.next_of("hb").await["data"].as_u64().unwrap();
    let second = editor.next_of("hb").await["data"].as_u64().unwrap();
    assert!(first > 1_600_000_000_000 && second >= first);
}

#[tokio::test]
async fn sends_the_same_notices_to_fifty_editors() {
    let sidecar = start(debug_flow("x", "str", 3)).await;
    let mut editors = Vec::new();
    for _ in 0..50 {
        editors.push(EditorClient::open_with_token(&sidecar).await);
    }
    // All are connected before the first notice.
    for editor in &mut editors {
        editor.send(auth(TOKEN)).await;
        assert_eq!(editor.receive().await, Received::Other(json!({"auth": "ok"})));
    }
    fire(&sidecar).await;
    for editor in &mut editors {
        for number in 0..3 {
            assert_eq!(editor.next_of("debug").await["data"]["id"], json!(format!("debug {number}")));
        }
    }
}

#[tokio::test]
async fn ignores_unknown_messages_and_closes_on_oversized_ones() {
    let mut setup = Setup::default();
    setup.settings.max_message_bytes = 2000;
    let sidecar = start_with(setup, plain_flow()).await;
    let mut editor = EditorClient::open_with_token(&sidecar).await;
    let deep = "[".repeat(900) + &"]".repeat(900);
    for message in [
        "no json",
        "",
        "[]",
        "{}",
        "null",
        r#"{"subscribe":5}"#,
        r#"{"subscribe":null,"auth":null}"#,
        r#"{"subscribe":"(((((.*)*)*)*)*)$"}"#,
        r#"{"subscribe":"a","subscribe":"status/#"}"#,
        r#"{"topic":"multiplayer/connect","data":{"session":"x"}}"#,
        &format!(r#"{{"topic":"x","data":{deep}}}"#),
    ] {
        editor.socket.send(Message::text(message.to_owned())).await;
    }
    editor.send(json!({"subscribe": "notification/runtime-deploy"})).await;
    assert_eq!(editor.next().await["topic"], "notification/runtime-deploy");

    let cases = [
        (Message::binary("x"), "MESSAGE_INVALID"),
        (Message::text(json!({"topic": "x".repeat(3000)}).to_string()), "MESSAGE_TOO_LARGE"),
    ];
    for (message, code) in cases {
        for headers in [vec![], vec![("authorization", format!("Bearer {TOKEN}"))]] {
            let headers: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let mut editor = EditorClient::open(&sidecar, &headers).await;
            editor.socket.send(message.clone()).await;
            assert_eq!(editor.close_reason().await, code);
        }
    }
}

#[tokio::test]
async fn closes_the_socket_of_an_editor_that_sends_too_much() {
    let mut setup = Setup::default();
    (setup.settings.access.requests_per_second, setup.settings.access.request_burst) = (1, 20);
    let sidecar = setup.start(Some(plain_flow())).await;
    let mut editor = EditorClient::open_with_token(&sidecar).await;
    for _ in 0..50 {
        if editor.socket.stream.send(Message::text("{}")).await.is_err() {
            break;
        }
    }
    assert_eq!(editor.close_reason().await, "RATE_LIMITED");
}

#[tokio::test]
async fn closes_the_socket_of_a_blocked_editor_only() {
    /// More than the buffers of the operating system hold.
    const MANY: usize = 1200;
    let mut setup = Setup::default();
    setup.settings.send_timeout = Duration::from_secs(1);
    let texts: Vec<String> = (0..12).map(|_| "x".repeat(1000)).collect();
    let sidecar = start_with(setup, debug_flow(&json!(texts).to_string(), "json", 1)).await;
    let _blocked = EditorClient::open_with_token(&sidecar).await;
    let mut reading = EditorClient::open_with_token(&sidecar).await;
    let counting = tokio::spawn(async move {
        for _ in 0..MANY {
            reading.next_of("debug").await;
        }
    });
    for _ in 0..MANY {
        fire(&sidecar).await;
    }
    counting.await.unwrap();
    eventually("its socket is closed", || async {
        let metrics = sidecar.get("/metrics").await;
        String::from_utf8_lossy(&metrics.body).contains("closed READER_TOO_SLOW").then_some(())
    })
    .await;
}

#[tokio::test]
async fn tells_editors_that_the_sidecar_stops() {
    let sidecar = start(plain_flow()).await;
    let authenticated = EditorClient::open_with_token(&sidecar).await;
    let waiting = EditorClient::open(&sidecar, &[]).await;
    sidecar.begin_to_stop();
    for editor in [authenticated, waiting] {
        assert_eq!(editor.close_reason().await, "STOPPING");
    }
}

#[tokio::test]
async fn treats_node_ids_as_plain_text() {
    let mut nodes = flow(json!([{"action": "final", "message": "42"}]), &[]);
    let text = nodes.to_string().replace("\"agent\"", r##""a/+/#\"\\ .b""##);
    nodes = serde_json::from_str(&text).unwrap();
    let sidecar = start(nodes).await;
    let mut editor = EditorClient::open_with_token(&sidecar).await;
    sidecar.run(json!({"node": "a/+/#\"\\ .b", "payload": "?"})).await;
    while editor.next_of("status/").await["data"]["fill"] != "grey" {}
    for pattern in ["status/#", "status/a/#", "status/a/+/+", "status/a/+/#\"\\ .b"] {
        editor.send(json!({"subscribe": pattern})).await;
        let status = editor.next_of("status/").await;
        assert_eq!(
            (&status["topic"], &status["data"]["text"]),
            (&json!("status/a/+/#\"\\ .b"), &json!("done after 1 iteration"))
        );
    }
}

#[tokio::test]
async fn the_status_says_that_the_model_is_loading() {
    let server = loading_server().await;
    let sidecar = start(flow_with_model(&server)).await;
    let mut editor = EditorClient::open_with_token(&sidecar).await;
    editor.send(json!({"subscribe": "status/#"})).await;
    fire(&sidecar).await;
    let statuses = editor.statuses_until("grey").await;
    assert!(statuses.contains(&"green ring iteration 1: the model is loading".to_owned()), "{statuses:?}");
    assert_eq!(statuses.last().unwrap(), "grey dot done after 1 iteration");
}
