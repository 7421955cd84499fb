//! The editor's socket: who may listen, what is told in what portions, what is told again.

use crate::client::{PATIENCE, Socket};
use crate::kit::{Setup, TOKEN, World, calling, eventually, flow, plain, token};
use futures::{SinkExt as _, StreamExt as _};
use pretty_assertions::assert_eq;
use redflow_contract::api::Scope;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

const UI: &str = "http://localhost:5173";

/// What an editor hears.
#[derive(Debug, PartialEq)]
enum Heard {
    /// Some notices at once.
    Notices(Vec<Value>),
    /// Anything else.
    Word(Value),
    /// The end, and why.
    Closed(String),
}

struct Editor {
    socket: Socket,
    /// Notices that came together with those that were waited for.
    rest: Vec<Value>,
}

impl Editor {
    async fn open(world: &World, headers: &[(&str, &str)]) -> Self {
        let socket = Socket::try_open_at(world.addr, "/comms", headers).await;
        Self { socket: socket.unwrap_or_else(|answer| panic!("{answer:?}")), rest: Vec::new() }
    }

    async fn admitted(world: &World) -> Self {
        Self::open(world, &[("authorization", &format!("Bearer {TOKEN}"))]).await
    }

    async fn say(&mut self, message: Value) {
        self.socket.send(Message::text(message.to_string())).await;
    }

    async fn hear(&mut self) -> Heard {
        loop {
            match timeout(PATIENCE, self.socket.stream.next()).await.unwrap() {
                Some(Ok(Message::Text(text))) => {
                    return match serde_json::from_str(&text).unwrap() {
                        Value::Array(notices) => Heard::Notices(notices),
                        word => Heard::Word(word),
                    };
                }
                Some(Ok(Message::Close(frame))) => {
                    let reason = frame.map(|frame| frame.reason.to_string());
                    return Heard::Closed(reason.unwrap_or_default());
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Heard::Closed("without a word".to_owned()),
            }
        }
    }

    async fn notices(&mut self) -> Vec<Value> {
        match self.hear().await {
            Heard::Notices(notices) => {
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

    /// The next notice of a topic, or of those below it.
    async fn of(&mut self, topic: &str) -> Value {
        loop {
            let notice = self.next().await;
            if notice["topic"].as_str().unwrap().starts_with(topic) {
                return notice;
            }
        }
    }

    /// What stands under the agent, until it is this.
    async fn statuses(&mut self, fill: &str) -> Vec<String> {
        let mut texts = Vec::new();
        loop {
            let Value::Object(data) = self.of("status/agent").await["data"].take() else {
                panic!("no object")
            };
            let text = |key: &str| data[key].as_str().unwrap().to_owned();
            texts.push(format!("{} {} {}", text("fill"), text("shape"), text("text")));
            if data["fill"] == fill {
                return texts;
            }
        }
    }

    /// The end, after whatever was on its way.
    async fn end(mut self) -> String {
        loop {
            if let Heard::Closed(reason) = self.hear().await {
                return reason;
            }
        }
    }
}

fn auth(token: &str) -> Value {
    json!({"auth": token})
}

/// A flow whose inject shows a value.
fn showing(payload: &str, payload_type: &str, debugs: usize) -> Value {
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

/// A sidecar that has told of its start.
async fn started(setup: Setup, flow: Value) -> World {
    let world = setup.start(Some(flow)).await;
    eventually("its start is told", || async {
        let mut editor = Editor::admitted(&world).await;
        editor.say(json!({"subscribe": "notification/runtime-deploy"})).await;
        // Is answered, if that is not.
        editor.say(auth(TOKEN)).await;
        matches!(editor.hear().await, Heard::Notices(_)).then_some(())
    })
    .await;
    world
}

async fn with(flow: Value) -> World {
    started(Setup::default(), flow).await
}

async fn fire(world: &World) {
    world.post("/api/runs", json!({"node": "ask"})).await.ok(202);
}

#[tokio::test]
async fn whoever_brings_no_token_is_told_nothing_before_it_sends_one() {
    let world = with(plain()).await;
    let mut watching = Editor::admitted(&world).await;
    let mut late = Editor::open(&world, &[]).await;
    world.run(json!({"node": "agent", "payload": "?"})).await;
    watching.of("debug").await;
    late.say(auth(TOKEN)).await;
    assert_eq!(late.hear().await, Heard::Word(json!({"auth": "ok"})));
    world.run(json!({"node": "agent", "payload": "?"})).await;
    // Of the first run it hears nothing.
    assert_eq!(late.statuses("grey").await[0], "green ring started");
}

#[tokio::test]
async fn a_wrong_token_and_anything_else_is_refused() {
    let world = with(plain()).await;
    let words = [
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
    for word in words {
        let mut editor = Editor::open(&world, &[]).await;
        editor.socket.send(Message::text(word.clone())).await;
        assert_eq!(editor.hear().await, Heard::Word(json!({"auth": "fail"})), "{word}");
        assert_eq!(editor.hear().await, Heard::Closed("UNAUTHORIZED".to_owned()), "{word}");
    }
    // Those who are in and show another token are held to that one.
    let mut editor = Editor::admitted(&world).await;
    editor.say(auth(TOKEN)).await;
    assert_eq!(editor.hear().await, Heard::Word(json!({"auth": "ok"})));
    editor.say(auth("a guess")).await;
    assert_eq!(editor.hear().await, Heard::Word(json!({"auth": "fail"})));
    assert_eq!(editor.hear().await, Heard::Closed("UNAUTHORIZED".to_owned()));
}

#[tokio::test]
async fn guesses_are_counted() {
    let mut setup = Setup::default();
    (setup.settings.access.failures_per_second, setup.settings.access.failure_burst) = (0, 3);
    let world = started(setup, plain()).await;
    let mut ends = Vec::new();
    for _ in 0..4 {
        let mut editor = Editor::open(&world, &[]).await;
        editor.say(auth("a guess")).await;
        ends.push(editor.end().await);
    }
    assert_eq!(ends, ["UNAUTHORIZED", "UNAUTHORIZED", "UNAUTHORIZED", "RATE_LIMITED"]);
    // Who knows the token comes in.
    let mut editor = Editor::open(&world, &[]).await;
    editor.say(auth(TOKEN)).await;
    assert_eq!(editor.hear().await, Heard::Word(json!({"auth": "ok"})));
}

#[tokio::test]
async fn whoever_says_nothing_is_not_waited_for() {
    let mut setup = Setup::default();
    setup.settings.auth_patience = Duration::from_millis(50);
    let world = started(setup, plain()).await;
    let mut editor = Editor::open(&world, &[]).await;
    // Signs of life are no token.
    let _ = editor.socket.stream.send(Message::Ping("x".into())).await;
    assert_eq!(editor.hear().await, Heard::Word(json!({"auth": "fail"})));
    assert_eq!(editor.hear().await, Heard::Closed("UNAUTHORIZED".to_owned()));
}

#[tokio::test]
async fn a_token_may_come_with_the_request_and_other_pages_may_not() {
    let mut setup = Setup::default();
    setup.settings.access.redflow_ui = Some(UI.to_owned());
    let world = started(setup, plain()).await;
    let offered = format!("redflow.comms.v1, redflow.token.{TOKEN}");
    for headers in [[("sec-websocket-protocol", offered.as_str())], [("origin", UI)]] {
        let mut editor = Editor::open(&world, &headers).await;
        editor.say(json!({"subscribe": "notification/runtime-state"})).await;
        assert_eq!(editor.next().await["data"], json!({"state": "start", "deploy": true}));
    }
    for (headers, status, code) in [
        (vec![("origin", "http://evil.example")], 403, "ORIGIN_REFUSED"),
        (vec![("origin", "http://localhost:5174")], 403, "ORIGIN_REFUSED"),
        (vec![("authorization", "Bearer guess")], 401, "UNAUTHORIZED"),
        (vec![("host", "evil.example")], 403, "HOST_REFUSED"),
    ] {
        match Socket::try_open_at(world.addr, "/comms", &headers).await {
            Err(answer) => answer.refused(status, code),
            Ok(_) => panic!("{headers:?} opened a socket"),
        }
    }
    world.get("/comms").await.refused(400, "REQUEST_INVALID");
}

#[tokio::test]
async fn a_socket_does_not_outlive_the_token_it_was_shown() {
    let mut setup = Setup::default();
    setup.settings.heartbeat = Duration::from_millis(300);
    let world = started(setup, plain()).await;
    let token = token(world.dir.path(), "guest", &[Scope::Read], 1);
    let mut editor = eventually("the token is known", || async {
        let mut editor = Editor::open(&world, &[]).await;
        editor.say(auth(&token)).await;
        (editor.hear().await == Heard::Word(json!({"auth": "ok"}))).then_some(editor)
    })
    .await;
    redflow_access::tokens::remove(world.dir.path(), "guest").unwrap();
    assert_eq!(editor.hear().await, Heard::Word(json!({"auth": "fail"})));
    assert_eq!(editor.hear().await, Heard::Closed("UNAUTHORIZED".to_owned()));
}

#[tokio::test]
async fn how_an_agent_stands_is_told_and_told_again_to_who_asks() {
    let world = with(calling("calculator-tool")).await;
    let mut editor = Editor::admitted(&world).await;
    world.run(json!({"node": "agent", "payload": "?"})).await;
    assert_eq!(
        editor.statuses("grey").await,
        [
            "green ring started",
            "green ring iteration 1",
            "green ring tool act",
            "green ring iteration 2",
            "grey dot completed"
        ]
    );
    let mut late = Editor::admitted(&world).await;
    for (pattern, answers) in
        [("status/+", true), ("debug", false), ("nothing/#", false), ("status/agent", true)]
    {
        late.say(json!({"subscribe": pattern})).await;
        if answers {
            assert_eq!(
                late.notices().await,
                [
                    json!({"topic": "status/agent", "data": {"fill": "grey", "shape": "dot", "text": "completed"}})
                ]
            );
        }
    }
}

#[tokio::test]
async fn a_run_that_waits_or_fails_is_seen() {
    let world = with(calling("tool.lost")).await;
    let mut editor = Editor::admitted(&world).await;
    let run = world.run(json!({"node": "agent", "payload": "?"})).await["runs"][0]["runId"].clone();
    let waits = editor.statuses("yellow").await;
    assert_eq!(waits.last().unwrap(), "yellow ring waiting for an outcome");
    world.post(&format!("/api/runs/{}/cancel", run.as_str().unwrap()), json!({})).await.ok(200);
    assert_eq!(editor.statuses("red").await, ["red ring CANCELLED"]);
}

#[tokio::test]
async fn an_error_nobody_caught_is_shown_as_one() {
    let mut nodes = plain();
    nodes[3]["replies"] = json!(["this is no action"]);
    let world = with(nodes).await;
    let mut editor = Editor::admitted(&world).await;
    world.run(json!({"node": "agent", "payload": "?"})).await;
    let failed = loop {
        let shown = editor.of("debug").await["data"].take();
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
async fn a_deploy_is_told_and_what_is_gone_has_no_status() {
    let mut refused = plain();
    refused[2]["strategy"] = json!("another");
    let world = with(refused).await;
    let mut editor = Editor::admitted(&world).await;
    editor.say(json!({"subscribe": "status/#"})).await;
    let red = editor.notices().await;
    assert_eq!([&red[0]["topic"], &red[0]["data"]["fill"]], ["status/agent", "red"]);
    let deploy = |flows: Value| world.post("/api/deployment", json!({"flows": flows, "force": true}));

    // Mended, it has none; after a run, it has that of the run, and keeps it.
    let revision = deploy(plain()).await.ok(200)["revision"].clone();
    assert_eq!(editor.of("status/agent").await["data"], json!({}));
    assert_eq!(
        editor.of("notification/runtime-state").await["data"],
        json!({"state": "start", "deploy": true})
    );
    assert_eq!(editor.of("notification/runtime-deploy").await["data"], json!({"revision": revision}));
    world.run(json!({"node": "agent", "payload": "?"})).await;
    editor.statuses("grey").await;
    deploy(plain()).await.ok(200);
    assert_eq!(editor.of("").await["topic"], "debug");
    assert_eq!(editor.of("").await["topic"], "notification/runtime-state");
    assert_eq!(editor.of("").await["topic"], "notification/runtime-deploy");

    deploy(showing("1", "num", 1)).await.ok(200);
    assert_eq!(editor.of("").await, json!({"topic": "status/agent", "data": {}}));
    editor.of("notification/runtime-deploy").await;
    editor.say(json!({"subscribe": "#"})).await;
    let left: Vec<Value> = editor.notices().await.iter().map(|notice| notice["topic"].clone()).collect();
    assert_eq!(left, ["notification/runtime-deploy", "notification/runtime-state"]);
}

#[tokio::test]
async fn a_refused_agent_is_told_of_at_a_deploy() {
    let world = with(plain()).await;
    let mut editor = Editor::admitted(&world).await;
    let mut refused = plain();
    refused[2]["strategy"] = json!("another");
    let body = json!({"flows": refused});
    let request = world.request("POST", "/flows").token(TOKEN).header("node-red-api-version", "v2");
    request.json(body).send().await.ok(200);
    let status = editor.of("status/agent").await["data"].take();
    assert_eq!([&status["fill"], &status["shape"]], ["red", "ring"]);
    let shown = editor.of("debug").await["data"].take();
    assert_eq!((&shown["id"], &shown["level"]), (&json!("agent"), &json!(20)));
    let code = status["text"].as_str().unwrap();
    assert!(shown["msg"].as_str().unwrap().starts_with(code), "{shown}");
}

#[tokio::test]
async fn what_debug_nodes_show_comes_as_node_red_writes_it() {
    for (payload, kind, msg, format) in [
        ("hello", "str", "hello", "string[5]"),
        ("7", "num", "7", "number"),
        ("true", "bool", "true", "boolean"),
        (r#"{"a":[1,null]}"#, "json", r#"{"a":[1,null]}"#, "Object"),
        ("[1,2,3]", "json", "[1,2,3]", "array[3]"),
        ("null", "json", "(undefined)", "null"),
    ] {
        let world = with(showing(payload, kind, 1)).await;
        let mut editor = Editor::admitted(&world).await;
        fire(&world).await;
        let Value::Object(mut data) = editor.of("debug").await["data"].take() else { panic!("no object") };
        assert!(data.remove("timestamp").unwrap().is_u64());
        let expected = json!({"id": "debug 0", "z": "tab", "path": "tab", "name": "Shows", "property": "payload",
                              "msg": msg, "format": format});
        assert_eq!(Value::Object(data), expected);
    }
    let mut whole = showing("hello", "str", 1);
    whole[2]["complete"] = json!("true");
    let world = with(whole).await;
    let mut editor = Editor::admitted(&world).await;
    fire(&world).await;
    let data = editor.of("debug").await["data"].take();
    assert_eq!(
        (&data["topic"], &data["format"], data.get("property")),
        (&json!("t"), &json!("Object"), None)
    );
    let msg: Value = serde_json::from_str(data["msg"].as_str().unwrap()).unwrap();
    assert_eq!([&msg["payload"], &msg["topic"]], ["hello", "t"]);
}

#[tokio::test]
async fn much_at_once_goes_out_in_portions_and_in_order() {
    const MANY: usize = 240;
    let world = with(showing("x", "str", MANY)).await;
    let mut editor = Editor::admitted(&world).await;
    fire(&world).await;
    let (mut ids, mut portions) = (Vec::new(), 0);
    while ids.len() < MANY {
        portions += 1;
        ids.extend(editor.notices().await.iter().map(|notice| notice["data"]["id"].clone()));
    }
    assert!(portions < MANY, "one by one");
    let expected: Vec<Value> = (0..MANY).map(|number| json!(format!("debug {number}"))).collect();
    assert_eq!(ids, expected);
}

#[tokio::test]
async fn a_heartbeat_comes_whether_or_not_something_happens() {
    let mut setup = Setup::default();
    setup.settings.comms_heartbeat = Duration::from_millis(30);
    let world = started(setup, plain()).await;
    let mut editor = Editor::admitted(&world).await;
    let first = editor.of("hb").await["data"].as_u64().unwrap();
    let second = editor.of("hb").await["data"].as_u64().unwrap();
    assert!(first > 1_600_000_000_000 && second >= first);
}

#[tokio::test]
async fn fifty_editors_are_told_the_same() {
    let world = with(showing("x", "str", 3)).await;
    let mut editors = Vec::new();
    for _ in 0..50 {
        editors.push(Editor::admitted(&world).await);
    }
    // All are past the door before something happens.
    for editor in &mut editors {
        editor.say(auth(TOKEN)).await;
        assert_eq!(editor.hear().await, Heard::Word(json!({"auth": "ok"})));
    }
    fire(&world).await;
    for editor in &mut editors {
        for number in 0..3 {
            assert_eq!(editor.of("debug").await["data"]["id"], json!(format!("debug {number}")));
        }
    }
}

#[tokio::test]
async fn what_means_nothing_is_ignored_and_what_is_too_much_closes_the_socket() {
    let mut setup = Setup::default();
    setup.settings.max_message_bytes = 2000;
    let world = started(setup, plain()).await;
    let mut editor = Editor::admitted(&world).await;
    let deep = "[".repeat(900) + &"]".repeat(900);
    for word in [
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
        editor.socket.send(Message::text(word.to_owned())).await;
    }
    editor.say(json!({"subscribe": "notification/runtime-deploy"})).await;
    assert_eq!(editor.next().await["topic"], "notification/runtime-deploy");

    let cases = [
        (Message::binary("x"), "MESSAGE_INVALID"),
        (Message::text(json!({"topic": "x".repeat(3000)}).to_string()), "MESSAGE_TOO_LARGE"),
    ];
    for (message, code) in cases {
        for headers in [vec![], vec![("authorization", format!("Bearer {TOKEN}"))]] {
            let headers: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let mut editor = Editor::open(&world, &headers).await;
            editor.socket.send(message.clone()).await;
            assert_eq!(editor.end().await, code);
        }
    }
}

#[tokio::test]
async fn an_editor_that_says_too_much_is_cut_off() {
    let mut setup = Setup::default();
    (setup.settings.access.requests_per_second, setup.settings.access.request_burst) = (1, 20);
    let world = setup.start(Some(plain())).await;
    let mut editor = Editor::admitted(&world).await;
    for _ in 0..50 {
        if editor.socket.stream.send(Message::text("{}")).await.is_err() {
            break;
        }
    }
    assert_eq!(editor.end().await, "RATE_LIMITED");
}

#[tokio::test]
async fn an_editor_that_takes_nothing_is_cut_off_and_the_others_are_not() {
    /// More than the buffers of the system hold.
    const MANY: usize = 1200;
    let mut setup = Setup::default();
    setup.settings.reader_patience = Duration::from_secs(1);
    let texts: Vec<String> = (0..12).map(|_| "x".repeat(1000)).collect();
    let world = started(setup, showing(&json!(texts).to_string(), "json", 1)).await;
    let _stuck = Editor::admitted(&world).await;
    let mut lively = Editor::admitted(&world).await;
    let counting = tokio::spawn(async move {
        for _ in 0..MANY {
            lively.of("debug").await;
        }
    });
    for _ in 0..MANY {
        fire(&world).await;
    }
    counting.await.unwrap();
    eventually("it is cut off", || async {
        let metrics = world.get("/metrics").await;
        String::from_utf8_lossy(&metrics.body).contains("closed READER_TOO_SLOW").then_some(())
    })
    .await;
}

#[tokio::test]
async fn editors_are_told_when_the_sidecar_stops() {
    let world = with(plain()).await;
    let in_it = Editor::admitted(&world).await;
    let before_it = Editor::open(&world, &[]).await;
    world.begin_to_stop();
    for editor in [in_it, before_it] {
        assert_eq!(editor.end().await, "STOPPING");
    }
}

#[tokio::test]
async fn ids_are_text_whatever_they_hold() {
    let mut nodes = flow(json!([{"action": "final", "message": "42"}]), &[]);
    let text = nodes.to_string().replace("\"agent\"", r##""a/+/#\"\\ .b""##);
    nodes = serde_json::from_str(&text).unwrap();
    let world = with(nodes).await;
    let mut editor = Editor::admitted(&world).await;
    world.run(json!({"node": "a/+/#\"\\ .b", "payload": "?"})).await;
    while editor.of("status/").await["data"]["fill"] != "grey" {}
    for pattern in ["status/#", "status/a/#", "status/a/+/+", "status/a/+/#\"\\ .b"] {
        editor.say(json!({"subscribe": pattern})).await;
        let status = editor.of("status/").await;
        assert_eq!(
            (&status["topic"], &status["data"]["text"]),
            (&json!("status/a/+/#\"\\ .b"), &json!("completed"))
        );
    }
}
