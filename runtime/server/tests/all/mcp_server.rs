//! The sidecar as an MCP server: raw JSON-RPC over HTTP, in both eras of the protocol.

use crate::client::{PATIENCE, Reply, Request};
use crate::kit::{Setup, TOKEN, TestSidecar, eventually, flow, plain_flow, token, tool_flow};
use pretty_assertions::assert_eq;
use redflow_contract::api::Scope;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: &str = "2025-11-25";

/// A client of the era without sessions.
pub(crate) struct Modern<'a> {
    pub(crate) sidecar: &'a TestSidecar,
    pub(crate) token: &'a str,
}

impl Modern<'_> {
    pub(crate) fn new(sidecar: &TestSidecar) -> Modern<'_> {
        Modern { sidecar, token: TOKEN }
    }

    pub(crate) fn request(&self, method: &str, mut params: Value) -> Request {
        let name =
            params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str).map(str::to_owned);
        let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
        meta["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
        meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let request = post(self.sidecar, self.token, body)
            .header("mcp-protocol-version", MODERN)
            .header("mcp-method", method);
        name.map_or(request.clone(), |name| request.header("mcp-name", &name))
    }

    pub(crate) async fn send(&self, method: &str, params: Value) -> Reply {
        self.request(method, params).send().await
    }

    /// The last message of the answer.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        messages(&self.send(method, params).await).pop().unwrap()
    }
}

pub(crate) fn post(sidecar: &TestSidecar, token: &str, body: Value) -> Request {
    let request = sidecar.request("POST", "/mcp").token(token).json(body);
    request.header("accept", "application/json, text/event-stream")
}

/// The JSON-RPC messages of an answer: one, or a stream of them.
pub(crate) fn messages(reply: &Reply) -> Vec<Value> {
    let text = String::from_utf8_lossy(&reply.body).into_owned();
    if reply.header("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
        return vec![serde_json::from_str(&text).unwrap()];
    }
    streamed(&text)
}

fn streamed(text: &str) -> Vec<Value> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("data:"));
    lines.filter_map(|data| serde_json::from_str(data.trim()).ok()).collect()
}

/// A client of the era with sessions.
pub(crate) struct Legacy<'a> {
    pub(crate) sidecar: &'a TestSidecar,
    pub(crate) token: String,
    pub(crate) session: String,
}

impl<'a> Legacy<'a> {
    pub(crate) async fn open(sidecar: &'a TestSidecar, token: &str) -> Legacy<'a> {
        let reply = initialize(sidecar, token).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let answer = messages(&reply).pop().unwrap();
        assert_eq!(answer["result"]["protocolVersion"], LEGACY);
        assert_eq!(answer["result"]["serverInfo"]["name"], "redflow");
        let session = reply.header("mcp-session-id").unwrap().to_owned();
        let client = Legacy { sidecar, token: token.to_owned(), session };
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(client.post(ready).send().await.status, 202);
        client
    }

    pub(crate) fn with_session(&self, request: Request) -> Request {
        request.header("mcp-session-id", &self.session).header("mcp-protocol-version", LEGACY)
    }

    pub(crate) fn post(&self, body: Value) -> Request {
        self.with_session(post(self.sidecar, &self.token, body))
    }

    pub(crate) async fn call(&self, id: u32, method: &str, params: Value) -> Vec<Value> {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        messages(&self.post(body).send().await)
    }
}

pub(crate) async fn initialize(sidecar: &TestSidecar, token: &str) -> Reply {
    let params =
        json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    post(sidecar, token, body).send().await
}

/// Sends a request and reads until the text arrives, or to the end.
pub(crate) async fn read_until(request: &Request, wanted: &str) -> (TcpStream, String) {
    let mut tcp = TcpStream::connect(request.addr).await.unwrap();
    tcp.write_all(&request.text()).await.unwrap();
    let seen = read_more(&mut tcp, wanted).await;
    (tcp, seen)
}

pub(crate) async fn read_more(tcp: &mut TcpStream, wanted: &str) -> String {
    let mut seen = Vec::new();
    let read = async {
        while !String::from_utf8_lossy(&seen).contains(wanted) && tcp.read_buf(&mut seen).await.unwrap() > 0 {
        }
    };
    // Signs of life come again and again, so the whole time is limited.
    timeout(PATIENCE, read).await.unwrap_or_else(|_| panic!("`{wanted}` did not come"));
    String::from_utf8_lossy(&seen).into_owned()
}

pub(crate) fn names(list: &Value) -> Vec<&str> {
    list["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

pub(crate) async fn runs(sidecar: &TestSidecar) -> Vec<Value> {
    sidecar.get("/api/runs").await.ok(200)["runs"].as_array().unwrap().clone()
}

pub(crate) async fn status_becomes(sidecar: &TestSidecar, wanted: &str) -> Value {
    eventually(wanted, || async { runs(sidecar).await.into_iter().find(|run| run["status"] == wanted) }).await
}

#[tokio::test]
async fn both_eras_list_and_call_an_agent() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let discovered = Modern::new(&sidecar).call("server/discover", json!({})).await;
    assert_eq!(discovered["result"]["supportedVersions"].as_array().unwrap().contains(&json!(MODERN)), true);
    let list = Modern::new(&sidecar).call("tools/list", json!({})).await;
    assert_eq!(names(&list), ["agent__Counting"]);
    let tool = &list["result"]["tools"][0];
    assert_eq!(tool["inputSchema"]["required"], json!(["input"]));
    assert!(tool["description"].as_str().unwrap().starts_with("Counting"));
    assert_eq!((&tool["outputSchema"], &tool["annotations"]["readOnlyHint"]), (&Value::Null, &json!(false)));
    let params = json!({"name": "agent.Counting", "arguments": {"input": "What is 6 * 7?"}});
    let called = Modern::new(&sidecar).call("tools/call", params.clone()).await;
    assert_eq!(called["result"]["content"], json!([{"type": "text", "text": "42"}]), "{called}");
    let client = Legacy::open(&sidecar, TOKEN).await;
    let listed = client.call(1, "tools/list", json!({})).await;
    assert_eq!(names(listed.last().unwrap()), ["agent__Counting"]);
    let called = client.call(2, "tools/call", params).await.pop().unwrap();
    assert_eq!((&called["id"], &called["result"]["isError"]), (&json!(2), &json!(false)), "{called}");
    assert_eq!(called["result"]["content"][0]["text"], "42");
    // Each call was a durable run of its caller.
    let run = called["result"]["_meta"]["redflow/run"].as_str().unwrap();
    let stored = sidecar.get(&format!("/api/runs/{run}")).await.ok(200);
    assert_eq!(
        (&stored["summary"]["by"], &stored["summary"]["status"]),
        (&json!("token:main"), &json!("completed"))
    );
    assert_eq!(runs(&sidecar).await.len(), 2);
    // The plain name, and the name that models have for it, work too.
    for name in ["Counting", "agent__Counting"] {
        let params = json!({"name": name, "arguments": {"input": {"question": "?"}, "sessionId": "s1"}});
        assert_eq!(
            client.call(3, "tools/call", params).await.pop().unwrap()["result"]["content"][0]["text"],
            "42"
        );
    }
    assert_eq!(client.call(4, "ping", json!({})).await.pop().unwrap()["result"], json!({}));
}

#[tokio::test]
async fn lists_need_read_and_calls_need_run() {
    let setup = Setup::default();
    let read = token(setup.dir.path(), "reader", &[Scope::Read], 1);
    let run = token(setup.dir.path(), "runner", &[Scope::Run], 1);
    let deploy = token(setup.dir.path(), "deployer", &[Scope::Deploy], 1);
    let sidecar = setup.start(Some(plain_flow())).await;
    let call = json!({"name": "agent.Counting", "arguments": {"input": "?"}});
    for token in [&read, &run, &deploy] {
        let client = Modern { sidecar: &sidecar, token };
        assert_eq!(names(&client.call("tools/list", json!({})).await), ["agent__Counting"]);
        let called = client.call("tools/call", call.clone()).await;
        if token == &run {
            assert_eq!(called["result"]["content"][0]["text"], "42");
        } else {
            assert_eq!(called["error"]["data"], json!({"code": "FORBIDDEN"}), "{called}");
        }
    }
    // A session gives no rights: each request has those of its own token.
    let client = Legacy::open(&sidecar, &read).await;
    let called = client.call(1, "tools/call", call.clone()).await.pop().unwrap();
    assert_eq!(called["error"]["data"]["code"], "FORBIDDEN");
    // A session belongs to its token.
    let stolen = Legacy { sidecar: &sidecar, token: run.clone(), session: client.session.clone() };
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call});
    stolen.post(body).send().await.refused(404, "NOT_FOUND");
    let request = sidecar.request("DELETE", "/mcp").token(&run);
    stolen.with_session(request).send().await.refused(404, "NOT_FOUND");
    post(&sidecar, "wrong", json!({})).send().await.refused(401, "UNAUTHORIZED");
    assert_eq!(runs(&sidecar).await.len(), 1);
}

#[tokio::test]
async fn the_same_key_begins_one_run() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let client = Modern::new(&sidecar);
    let call = |input: &str, key: Value| json!({"name": "agent.Counting", "arguments": {"input": input}, "_meta": {"redflow/key": key}});
    let first = client.call("tools/call", call("a", json!("k1"))).await;
    let second = client.call("tools/call", call("a", json!("k1"))).await;
    assert_eq!(first["result"]["_meta"]["redflow/run"], second["result"]["_meta"]["redflow/run"]);
    assert_eq!(second["result"]["content"][0]["text"], "42");
    assert_eq!(runs(&sidecar).await.len(), 1);
    // The same key with another input is a mistake.
    let other = client.call("tools/call", call("b", json!("k1"))).await;
    assert_eq!(other["error"]["data"]["code"], "IDEMPOTENCY_KEY_REUSED");
    for wrong in [json!(""), json!(1), json!("x".repeat(201)), json!("a b")] {
        let refused = client.call("tools/call", call("a", wrong)).await;
        assert_eq!(refused["result"]["_meta"]["redflow/code"], "TOOL_INPUT_INVALID", "{refused}");
    }
    assert_eq!(runs(&sidecar).await.len(), 1);
}

#[tokio::test]
async fn a_wrong_call_says_what_is_wrong() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let client = Modern::new(&sidecar);
    let unknown = client.call("tools/call", json!({"name": "no.such", "arguments": {}})).await;
    assert_eq!(
        (&unknown["error"]["code"], &unknown["error"]["data"]["code"]),
        (&json!(-32602), &json!("NOT_FOUND"))
    );
    for arguments in
        [json!({}), json!({"input": 5}), json!({"input": "a", "x": 1}), json!({"input": "a", "sessionId": 1})]
    {
        let refused = client.call("tools/call", json!({"name": "Counting", "arguments": arguments})).await;
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        assert!(
            refused["result"]["content"][0]["text"].as_str().unwrap().starts_with("TOOL_INPUT_INVALID: ")
        );
    }
    assert_eq!(runs(&sidecar).await.len(), 0);
}

#[tokio::test]
async fn a_failed_run_and_a_waiting_run_say_so() {
    let sidecar = TestSidecar::start(tool_flow("tool.lost")).await;
    let call = json!({"name": "Counting", "arguments": {"input": "?"}});
    let waiting = Modern::new(&sidecar).call("tools/call", call.clone()).await;
    assert_eq!(
        (&waiting["result"]["isError"], &waiting["result"]["_meta"]["redflow/status"]),
        (&json!(false), &json!("waiting"))
    );
    assert!(waiting["result"]["content"][0]["text"].as_str().unwrap().contains("waits for a person"));
    drop(sidecar);
    let sidecar = TestSidecar::start(flow(json!(["this is no action"]), &[])).await;
    let failed = Modern::new(&sidecar).call("tools/call", call).await;
    assert_eq!(
        (&failed["result"]["isError"], &failed["result"]["_meta"]["redflow/status"]),
        (&json!(true), &json!("failed")),
        "{failed}"
    );
    let code = failed["result"]["_meta"]["redflow/code"].as_str().unwrap();
    assert!(
        failed["result"]["content"][0]["text"].as_str().unwrap().starts_with(&format!("{code}: ")),
        "{failed}"
    );
}

#[tokio::test]
async fn each_iteration_is_progress() {
    let sidecar = TestSidecar::start(tool_flow("calculator-tool")).await;
    let call = json!({"name": "Counting", "arguments": {"input": "?"}, "_meta": {"progressToken": "p1"}});
    let client = Legacy::open(&sidecar, TOKEN).await;
    let answers = [
        client.call(5, "tools/call", call.clone()).await,
        messages(&Modern::new(&sidecar).send("tools/call", call).await),
    ];
    for answer in answers {
        let progress: Vec<&Value> =
            answer.iter().filter(|message| message["method"] == "notifications/progress").collect();
        let numbers: Vec<&Value> = progress.iter().map(|message| &message["params"]["progress"]).collect();
        assert_eq!(
            numbers.iter().map(|number| number.as_f64().unwrap()).collect::<Vec<_>>(),
            [1.0, 2.0],
            "{answer:?}"
        );
        assert!(progress.iter().all(|message| message["params"]["progressToken"] == "p1"));
        assert_eq!(answer.last().unwrap()["result"]["content"][0]["text"], "42");
    }
}

/// A proxy ends a connection on which nothing moves.
#[tokio::test]
async fn a_call_without_progress_shows_signs_of_life() {
    let mut setup = Setup::default();
    setup.settings.mcp_heartbeat = Duration::from_millis(20);
    let sidecar = setup.start(Some(tool_flow("tool.slow"))).await;
    let call = json!({"name": "Counting", "arguments": {"input": "?"}});
    let request = Modern::new(&sidecar).request("tools/call", call);
    let (mut tcp, seen) = read_until(&request, ": keep-alive").await;
    assert!(seen.starts_with("HTTP/1.1 200") && seen.contains("text/event-stream"), "{seen}");
    assert!(read_more(&mut tcp, ": keep-alive").await.contains(": keep-alive"));
    // The run ends with the connection, as before the first comment.
    drop(tcp);
    assert_eq!(status_becomes(&sidecar, "failed").await["code"], "CANCELLED");
}

pub(crate) fn slow_call() -> Value {
    json!({"name": "Counting", "arguments": {"input": "?"}, "_meta": {"progressToken": 1}})
}

#[tokio::test]
async fn a_modern_client_that_disconnects_cancels_its_run() {
    let sidecar = TestSidecar::start(tool_flow("tool.slow")).await;
    let request = Modern::new(&sidecar).request("tools/call", slow_call());
    let (tcp, _) = read_until(&request, "notifications/progress").await;
    drop(tcp);
    assert_eq!(status_becomes(&sidecar, "failed").await["code"], "CANCELLED");
}

#[tokio::test]
async fn a_modern_client_that_disconnects_before_the_first_message_cancels_its_run() {
    let sidecar = TestSidecar::start(tool_flow("tool.slow")).await;
    let call = json!({"name": "Counting", "arguments": {"input": "?"}});
    let request = Modern::new(&sidecar).request("tools/call", call);
    let mut tcp = TcpStream::connect(request.addr).await.unwrap();
    tcp.write_all(&request.text()).await.unwrap();
    status_becomes(&sidecar, "running").await;
    drop(tcp);
    assert_eq!(status_becomes(&sidecar, "failed").await["code"], "CANCELLED");
}

#[tokio::test]
async fn a_legacy_client_that_disconnects_does_not_but_its_notification_cancels() {
    let sidecar = TestSidecar::start(tool_flow("tool.slow")).await;
    let client = Legacy::open(&sidecar, TOKEN).await;
    let body = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": slow_call()});
    let request = client.post(body);
    let (tcp, _) = read_until(&request, "notifications/progress").await;
    drop(tcp);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(runs(&sidecar).await[0]["status"], "running");
    // The call goes on, so its id is not free.
    request.clone().send().await.refused(400, "REQUEST_INVALID");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3, "reason": "x"}});
    assert_eq!(client.post(cancel).send().await.status, 202);
    assert_eq!(status_becomes(&sidecar, "failed").await["code"], "CANCELLED");
}

#[tokio::test]
async fn a_session_that_ends_leaves_its_run_alone() {
    let sidecar = TestSidecar::start(tool_flow("tool.slow")).await;
    let client = Legacy::open(&sidecar, TOKEN).await;
    let body = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": slow_call()});
    let (_tcp, _) = read_until(&client.post(body), "notifications/progress").await;
    let ended = client.with_session(sidecar.request("DELETE", "/mcp").token(TOKEN)).send().await;
    assert_eq!(ended.status, 202);
    let ping = json!({"jsonrpc": "2.0", "id": 9, "method": "ping"});
    client.post(ping).send().await.refused(404, "NOT_FOUND");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(runs(&sidecar).await[0]["status"], "running");
}

#[tokio::test]
async fn a_client_cannot_open_a_thousand_sessions() {
    let setup = Setup::default();
    let [other, third] = ["other", "third"].map(|name| token(setup.dir.path(), name, &[Scope::Read], 1));
    let sidecar = setup.start(Some(plain_flow())).await;
    let (mut opened, mut refused) = (Vec::new(), 0);
    for _ in 0..1_000 {
        let reply = initialize(&sidecar, TOKEN).await;
        match reply.header("mcp-session-id") {
            Some(session) => opened.push(session.to_owned()),
            None => {
                reply.refused(503, "TOO_MANY_CONNECTIONS");
                refused += 1;
            }
        }
    }
    // One token has half of the sessions. The others are for other tokens.
    assert_eq!((opened.len(), refused), (128, 872));
    for _ in 0..128 {
        assert_eq!(initialize(&sidecar, &other).await.status, 200);
    }
    initialize(&sidecar, &third).await.refused(503, "TOO_MANY_CONNECTIONS");
    // Clients without sessions are served, and an ended session makes room.
    assert_eq!(names(&Modern::new(&sidecar).call("tools/list", json!({})).await).len(), 1);
    let client = Legacy { sidecar: &sidecar, token: TOKEN.to_owned(), session: opened.pop().unwrap() };
    assert_eq!(client.with_session(sidecar.request("DELETE", "/mcp").token(TOKEN)).send().await.status, 202);
    assert_eq!(initialize(&sidecar, TOKEN).await.status, 200);
    initialize(&sidecar, TOKEN).await.refused(503, "TOO_MANY_CONNECTIONS");
}

#[tokio::test]
async fn hostile_messages_are_refused_with_a_code() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let text = "x".repeat(5 * 1024 * 1024);
    let call = json!({"name": "Counting", "arguments": {"input": text}});
    Modern::new(&sidecar).send("tools/call", call).await.refused(413, "BODY_TOO_LARGE");
    let large = post(&sidecar, TOKEN, json!({})).header("content-length", "41943040");
    let (_tcp, seen) = read_until(&large, "BODY_TOO_LARGE").await;
    assert!(seen.starts_with("HTTP/1.1 413"), "{seen}");
    for body in [json!([]), json!("x"), json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])] {
        post(&sidecar, TOKEN, body).send().await.refused(400, "BODY_INVALID");
    }
    // No JSON-RPC, no session, no such session, no stream.
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for body in [json!({}), json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}), ping.clone()] {
        let reply = post(&sidecar, TOKEN, body).send().await;
        assert!((400..500).contains(&reply.status), "{reply:?}");
        assert_eq!(reply.code(), "REQUEST_INVALID", "{reply:?}");
    }
    let strange = post(&sidecar, TOKEN, ping.clone()).header("mcp-session-id", "no-such-session");
    strange.send().await.refused(404, "NOT_FOUND");
    let client = Legacy::open(&sidecar, TOKEN).await;
    client.post(ping).header("accept", "application/json").send().await.refused(406, "REQUEST_INVALID");
    sidecar.get("/mcp").await.refused(400, "REQUEST_INVALID");
    sidecar.request("DELETE", "/mcp").token(TOKEN).send().await.refused(400, "REQUEST_INVALID");
    let unknown = Modern::new(&sidecar).call("no/such/method", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601);
    assert_eq!(sidecar.get("/health").await.ok(200)["live"], true);
}

#[tokio::test]
async fn a_deploy_changes_the_lists() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let client = Legacy::open(&sidecar, TOKEN).await;
    let stream = sidecar.request("GET", "/mcp").token(TOKEN).header("accept", "text/event-stream");
    let (mut legacy, _) = read_until(&client.with_session(stream), "\r\n\r\n").await;
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let listen = Modern::new(&sidecar).request("subscriptions/listen", filter);
    let (mut modern, _) = read_until(&listen, "acknowledged").await;
    let mut flows = plain_flow();
    flows[2]["name"] = json!("Other");
    flows[2]["info"] = json!("Answers questions about numbers.");
    let revision = sidecar.revision().await;
    sidecar.post("/api/deployment", json!({"flows": flows, "revision": revision})).await.ok(200);
    for tcp in [&mut legacy, &mut modern] {
        let seen = read_more(tcp, "notifications/tools/list_changed").await;
        assert!(seen.contains("notifications/tools/list_changed"), "{seen}");
    }
    let list = Modern::new(&sidecar).call("tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"][0]["description"], "Other: Answers questions about numbers.");
    assert_eq!(names(&list), ["agent__Other"]);
    // A node can be taken out.
    flows[2]["mcp"] = json!(false);
    let revision = sidecar.revision().await;
    sidecar.post("/api/deployment", json!({"flows": flows, "revision": revision})).await.ok(200);
    assert_eq!(names(&Modern::new(&sidecar).call("tools/list", json!({})).await), Vec::<&str>::new());
    let call = json!({"name": "agent.Other", "arguments": {"input": "?"}});
    let refused = Modern::new(&sidecar).call("tools/call", call).await;
    assert_eq!(refused["error"]["data"]["code"], "NOT_FOUND");
}

#[tokio::test]
async fn tools_of_the_registry_are_callable_if_they_say_so() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let tool = |id: &str, mcp: Value| {
        json!({"id": id, "kind": "http", "description": "Echoes.", "method": "GET", "url": "https://example.org/x",
               "effect": "read", "mcp": mcp, "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}}})
    };
    let client = Legacy::open(&sidecar, TOKEN).await;
    let stream = sidecar.request("GET", "/mcp").token(TOKEN).header("accept", "text/event-stream");
    let (mut tcp, _) = read_until(&client.with_session(stream), "\r\n\r\n").await;
    sidecar.post("/api/tools", tool("test.shown", json!(true))).await.ok(201);
    sidecar.post("/api/tools", tool("test.hidden", json!(false))).await.ok(201);
    assert!(read_more(&mut tcp, "tools/list_changed").await.contains("tools/list_changed"));
    let list = Modern::new(&sidecar).call("tools/list", json!({})).await;
    assert_eq!(names(&list), ["agent__Counting", "test__shown"]);
    assert_eq!(list["result"]["tools"][1]["annotations"]["readOnlyHint"], true);
    let call = |name: &str, input: Value| json!({"name": name, "arguments": input});
    let called = Modern::new(&sidecar).call("tools/call", call("test.shown", json!({"a": 1}))).await;
    assert_eq!(called["result"]["structuredContent"], json!({"a": 1}), "{called}");
    let wrong = Modern::new(&sidecar).call("tools/call", call("test.shown", json!({"a": "x"}))).await;
    assert_eq!(wrong["result"]["_meta"]["redflow/code"], "TOOL_INPUT_INVALID", "{wrong}");
    let failed = Modern::new(&sidecar).call("tools/call", call("test.shown", json!({"fail": true}))).await;
    assert_eq!(failed["result"]["isError"], true);
    let hidden = Modern::new(&sidecar).call("tools/call", call("test.hidden", json!({}))).await;
    assert_eq!(hidden["error"]["data"]["code"], "NOT_FOUND");
    let calls = sidecar.get("/api/tools/test.shown/calls").await.ok(200);
    assert_eq!(
        (calls["calls"].as_array().unwrap().len(), &calls["calls"][0]["by"]),
        (2, &json!("token:main"))
    );
}

#[tokio::test]
async fn runs_are_resources() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let started = sidecar.run(json!({"payload": "?"})).await;
    let run = started["runs"][0]["runId"].as_str().unwrap();
    let uri = format!("redflow://runs/{run}");
    let client = Modern::new(&sidecar);
    let list = client.call("resources/list", json!({})).await;
    assert_eq!(list["result"]["resources"][0]["uri"], uri);
    let read = client.call("resources/read", json!({"uri": uri})).await;
    let text: Value = serde_json::from_str(read["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&text["summary"]["runId"], &text["trace"]["ended"]), (&json!(run), &json!(true)));
    assert_eq!(text["cut"], false);
    let templates = client.call("resources/templates/list", json!({})).await;
    assert_eq!(templates["result"]["resourceTemplates"].as_array().unwrap().len(), 2);
    for (uri, code) in [
        ("redflow://runs/no-such-run", "RUN_UNKNOWN"),
        ("redflow://kb/none/a.md", "COLLECTION_UNKNOWN"),
        ("redflow://kb//", "REQUEST_INVALID"),
        ("file:///etc/passwd", "NOT_FOUND"),
    ] {
        let read = client.call("resources/read", json!({"uri": uri})).await;
        assert_eq!(read["error"]["data"]["code"], code, "{uri}: {read}");
    }
}

#[tokio::test]
async fn a_sidecar_stops_while_clients_wait() {
    let sidecar = TestSidecar::start(tool_flow("tool.slow")).await;
    let client = Legacy::open(&sidecar, TOKEN).await;
    let stream = sidecar.request("GET", "/mcp").token(TOKEN).header("accept", "text/event-stream");
    let (_stream, _) = read_until(&client.with_session(stream), "\r\n\r\n").await;
    let request = Modern::new(&sidecar).request("tools/call", slow_call());
    let (mut tcp, _) = read_until(&request, "notifications/progress").await;
    sidecar.begin_to_stop();
    let rest = read_more(&mut tcp, "STOPPING").await;
    assert!(rest.contains("STOPPING"), "{rest}");
    timeout(Duration::from_secs(20), sidecar.stop()).await.unwrap();
}

/// A client that has started the sidecar as a program.
struct StdioClient {
    lines: tokio::io::Lines<tokio::io::BufReader<tokio::io::ReadHalf<tokio::io::DuplexStream>>>,
    writer: tokio::io::WriteHalf<tokio::io::DuplexStream>,
    serving: tokio::task::JoinHandle<()>,
}

impl StdioClient {
    async fn start(flow: Value) -> Self {
        let (sidecar, _, dir) = Setup::default().build(Some(flow)).await;
        let (client, server) = tokio::io::duplex(1024 * 1024);
        let (reader, writer) = tokio::io::split(server);
        let serving = tokio::spawn(async move {
            sidecar.serve_mcp(reader, writer, CancellationToken::new()).await;
            drop(dir);
        });
        let (reader, writer) = tokio::io::split(client);
        Self { lines: tokio::io::BufReader::new(reader).lines(), writer, serving }
    }

    async fn send(&mut self, message: Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// The answer to a request, after the notifications before it.
    async fn answer(&mut self) -> (Vec<Value>, Value) {
        let mut notifications = Vec::new();
        loop {
            let line = timeout(PATIENCE, self.lines.next_line()).await.unwrap().unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message.get("id").is_some() {
                return (notifications, message);
            }
            notifications.push(message);
        }
    }
}

#[tokio::test]
async fn a_client_over_streams_lists_calls_and_ends_the_sidecar() {
    let mut client = StdioClient::start(tool_flow("calculator-tool")).await;
    let params =
        json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    client.send(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})).await;
    assert_eq!(client.answer().await.1["result"]["serverInfo"]["name"], "redflow");
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
    assert_eq!(names(&client.answer().await.1), ["agent__Counting"]);
    client.send(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": slow_call()})).await;
    let (notifications, answer) = client.answer().await;
    assert_eq!(answer["result"]["content"][0]["text"], "42");
    assert_eq!(notifications.len(), 2, "{notifications:?}");
    let StdioClient { lines, writer, serving } = client;
    drop((lines, writer));
    timeout(PATIENCE, serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_modern_client_over_streams_needs_no_handshake() {
    let mut client = StdioClient::start(plain_flow()).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    client
        .send(json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}))
        .await;
    assert!(
        client.answer().await.1["result"]["supportedVersions"].as_array().unwrap().contains(&json!(MODERN))
    );
    let call = json!({"name": "Counting", "arguments": {"input": "?"}, "_meta": meta});
    client.send(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})).await;
    assert_eq!(client.answer().await.1["result"]["content"][0]["text"], "42");
}
