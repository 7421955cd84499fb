//! `/api/mcp` and `/oauth/callback`: the MCP servers whose tools agents use.

use crate::kit::{Setup, TOKEN, TestSidecar, eventually, plain_flow, token};
use pretty_assertions::assert_eq;
use redflow_contract::Message;
use redflow_contract::api::{ApiError, Scope};
use redflow_contract::code::ApiCode;
use redflow_contract::digest::Digest;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::mcp::{
    McpConfinement, McpLogin, McpOrigin, McpPinRequest, McpServerDetail, McpServerList, McpServerState,
    McpServerSummary, McpTransport,
};
use redflow_contract::node::EffectClass;
use redflow_contract::tool::{ToolEntry, ToolOrigin, ToolState};
use redflow_ports::{
    BoxFuture, ContextSource, ContextSpan, McpAnswer, McpServers, ProvidedTool, Tool, ToolOutcome,
    ToolProvider,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// One server, `files`, with the tool `mcp.files.read`. Notes what it is asked for.
#[derive(Default)]
struct OneServer(Mutex<Vec<String>>);

impl OneServer {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn notes(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn summary() -> McpServerSummary {
        McpServerSummary {
            name: "files".to_owned(),
            key: "files".to_owned(),
            origin: McpOrigin::Manifest,
            transport: McpTransport::Stdio,
            target: "files-server".to_owned(),
            state: McpServerState::Ready,
            reason: None,
            code: None,
            protocol: Some("2026-07-28".to_owned()),
            server: None,
            tools: 1,
            changed: 0,
            since: None,
            confinement: Some(McpConfinement::of(Some(7), false)),
        }
    }

    fn answer<T: Send + 'static>(server: &str, value: T) -> McpAnswer<'static, T> {
        let unknown = || ApiError::new(ApiCode::NotFound, "There is no such MCP server.");
        Box::pin(std::future::ready(if server == "files" { Ok(value) } else { Err(unknown()) }))
    }

    fn detail(server: &str) -> McpAnswer<'static, McpServerDetail> {
        let detail = McpServerDetail {
            summary: Self::summary(),
            tools: Vec::new(),
            resources: Vec::new(),
            prompts: Vec::new(),
        };
        Self::answer(server, detail)
    }
}

/// Returns its input.
struct Echo;

impl Tool for Echo {
    fn effect(&self, _: &Message) -> EffectClass {
        EffectClass::Read
    }

    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async { ToolOutcome::Returned(ToolResult::ok(Value::Object(call.input.clone()))) })
    }
}

impl ToolProvider for OneServer {
    fn generation(&self) -> u64 {
        1
    }

    fn tools(&self) -> Vec<ProvidedTool> {
        let entry = json!({
            "id": "mcp.files.read", "name": "mcp__files__read", "origin": ToolOrigin::Mcp, "provider": "files",
            "description": "Reads.", "effect": "read", "timeoutMs": 1000, "retry": {"max": 0, "backoffMs": 500},
            "permissions": {"network": "none", "files": "none", "process": false, "secrets": []},
            "digest": Digest::ZERO, "state": ToolState::Ready,
        });
        let entry: ToolEntry = serde_json::from_value(entry).unwrap();
        vec![ProvidedTool { entry: Arc::new(entry), tool: Arc::new(Echo) }]
    }
}

impl ContextSource for OneServer {
    fn read<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<ContextSpan, String>> {
        Box::pin(std::future::ready(Err("no resources".to_owned())))
    }
}

impl McpServers for OneServer {
    fn define(
        &self,
        servers: &redflow_contract::mcp::McpServers,
        added: &[String],
        _: &dyn Fn(&str) -> Option<String>,
    ) {
        self.note(format!("define {} {}", servers.len(), added.len()));
    }

    fn connect_all(&self) {
        self.note("connect_all");
    }

    fn is_known(&self, server: &str) -> bool {
        server == "files"
    }

    fn list(&self) -> McpServerList {
        McpServerList { servers: vec![Self::summary()] }
    }

    fn show<'a>(&'a self, server: &'a str) -> McpAnswer<'a, McpServerDetail> {
        Self::detail(server)
    }

    fn connect<'a>(&'a self, server: &'a str) -> McpAnswer<'a, McpServerDetail> {
        self.note(format!("connect {server}"));
        Self::detail(server)
    }

    fn pin<'a>(&'a self, server: &'a str, request: McpPinRequest) -> McpAnswer<'a, McpServerDetail> {
        self.note(format!("pin {server} {}", request.tools.len()));
        Self::detail(server)
    }

    fn login<'a>(&'a self, server: &'a str, redirect: &'a str) -> McpAnswer<'a, McpLogin> {
        self.note(format!("login {redirect}"));
        Self::answer(server, McpLogin { url: "https://issuer.example/authorize".to_owned() })
    }

    fn finish_login<'a>(&'a self, callback: &'a str) -> McpAnswer<'a, String> {
        self.note(format!("finish {callback}"));
        if callback.contains("state=slow") {
            return Box::pin(std::future::pending());
        }
        let refused = || ApiError::new(ApiCode::McpFailed, format!("no sign-in has this state: {callback}"));
        let done = if callback.contains("state=right") { Ok("files".to_owned()) } else { Err(refused()) };
        Box::pin(std::future::ready(done))
    }

    fn logout<'a>(&'a self, server: &'a str) -> McpAnswer<'a, ()> {
        self.note(format!("logout {server}"));
        Self::answer(server, ())
    }

    fn prompt(&self, _: &str, _: &str) -> Option<Arc<str>> {
        None
    }

    fn wait<'a>(&'a self, _: &'a [String], _: &'a [(String, String)]) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        self.note("stop");
        Box::pin(std::future::ready(()))
    }
}

async fn with_servers() -> (TestSidecar, Arc<OneServer>) {
    let servers = Arc::new(OneServer::default());
    let setup = Setup { mcp: Some(servers.clone()), ..Setup::default() };
    (setup.start(Some(plain_flow())).await, servers)
}

#[tokio::test]
async fn without_mcp_there_are_no_servers() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    assert_eq!(sidecar.get("/api/mcp").await.ok(200), json!({"servers": []}));
    sidecar.get("/api/mcp/files").await.refused(404, "NOT_FOUND");
    for path in ["connect", "login"] {
        sidecar.post(&format!("/api/mcp/files/{path}"), json!({})).await.refused(404, "NOT_FOUND");
    }
    let callback = sidecar.request("GET", "/oauth/callback?code=c&state=right").send().await;
    assert_eq!(callback.status, 404);
}

#[tokio::test]
async fn servers_are_listed_connected_approved_and_signed_in_to() {
    let (sidecar, servers) = with_servers().await;
    assert_eq!(sidecar.get("/api/mcp").await.ok(200)["servers"][0]["name"], "files");
    assert_eq!(sidecar.get("/api/mcp/files").await.ok(200)["summary"]["state"], "ready");
    sidecar.get("/api/mcp/other").await.refused(404, "NOT_FOUND");
    sidecar.post("/api/mcp/files/connect", json!({})).await.ok(200);
    let pin = json!({"tools": {"read": Digest::ZERO}});
    sidecar.post("/api/mcp/files/pin", pin).await.ok(200);
    let login = sidecar.post("/api/mcp/files/login", json!({})).await.ok(200);
    assert_eq!(login, json!({"url": "https://issuer.example/authorize"}));
    let removed = sidecar.request("DELETE", "/api/mcp/files/login").token(TOKEN).send().await;
    assert_eq!(removed.status, 204);
    // The key of a server of a node has the place of its address.
    let path = "/api/mcp/docs%40a.example%3A8443%2Fv1%2Fmcp/connect";
    sidecar.post(path, json!({})).await.refused(404, "NOT_FOUND");
    let notes = servers.notes();
    let callback = format!("login http://{}/oauth/callback", sidecar.addr);
    let of_node = "connect docs@a.example:8443/v1/mcp";
    for wanted in ["connect_all", "connect files", "pin files 1", &callback, "logout files", of_node] {
        assert!(notes.iter().any(|note| note == wanted), "{wanted}: {notes:?}");
    }
    sidecar.stop().await;
    assert_eq!(servers.notes().last().map(String::as_str), Some("stop"));
}

#[tokio::test]
async fn a_changed_manifest_connects_to_its_servers() {
    let (sidecar, servers) = with_servers().await;
    let count = |what: &str| servers.notes().iter().filter(|note| note.as_str() == what).count();
    assert_eq!(count("connect_all"), 1);
    std::fs::write(
        sidecar.dir.path().join("tools.json"),
        r#"{"mcp": {"files": {"command": "files-server"}}}"#,
    )
    .unwrap();
    eventually("the manifest is read", || async { (count("connect_all") == 2).then_some(()) }).await;
    assert!(servers.notes().iter().any(|note| note == "define 1 0"), "{:?}", servers.notes());
}

#[tokio::test]
async fn each_route_needs_its_scope() {
    let servers = Arc::new(OneServer::default());
    let setup = Setup { mcp: Some(servers.clone()), ..Setup::default() };
    let tokens = [Scope::Read, Scope::Run, Scope::Deploy, Scope::Admin]
        .map(|scope| (scope, token(setup.dir.path(), scope.as_str(), &[scope], 1)));
    let sidecar = setup.start(Some(plain_flow())).await;
    for (method, path, needed) in [
        ("GET", "/api/mcp", Scope::Read),
        ("GET", "/api/mcp/files", Scope::Read),
        ("POST", "/api/mcp/files/connect", Scope::Deploy),
        ("POST", "/api/mcp/files/pin", Scope::Admin),
        ("POST", "/api/mcp/files/login", Scope::Admin),
        ("DELETE", "/api/mcp/files/login", Scope::Admin),
    ] {
        for (scope, token) in &tokens {
            let request = sidecar.request(method, path).token(token);
            let request = match path {
                "/api/mcp/files/pin" => request.json(json!({"tools": {}})),
                _ => request,
            };
            let reply = request.send().await;
            if scope.allows(needed) {
                assert!(reply.status < 300, "{method} {path}: {reply:?}");
            } else {
                reply.refused(403, "FORBIDDEN");
            }
        }
    }
}

#[tokio::test]
async fn the_callback_repeats_nothing_of_its_query() {
    let (sidecar, servers) = with_servers().await;
    let get = |query: &str| sidecar.request("GET", &format!("/oauth/callback{query}")).send();
    let done = get("?code=secret-code&state=right").await;
    assert_eq!((done.status, done.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(String::from_utf8_lossy(&done.body).contains("You are signed in"));
    let expected = format!("finish http://{}/oauth/callback?code=secret-code&state=right", sidecar.addr);
    assert_eq!(servers.notes().last(), Some(&expected));
    for query in [
        "?code=%3Cscript%3E&state=wrong",
        "",
        "?error=access_denied&error_description=%3Cb%3Ex",
        "?state=wrong",
    ] {
        let failed = get(query).await;
        assert_eq!(failed.status, 502, "{query}");
        let text = String::from_utf8_lossy(&failed.body).into_owned();
        assert!(text.contains("The sign-in has failed"), "{text}");
        for part in ["script", "wrong", "access_denied"] {
            assert!(!text.contains(part), "{text}");
        }
    }
    assert_eq!(get(&format!("?state=right{}", "x".repeat(9_000))).await.status, 400);
    // A program that only looks at the link does not spend its code.
    let before = servers.notes().len();
    let looked = sidecar.request("HEAD", "/oauth/callback?code=c&state=right").send().await;
    assert_eq!((looked.status, servers.notes().len()), (200, before));
}

#[tokio::test]
async fn tools_of_servers_are_listed_and_called() {
    let (sidecar, _servers) = with_servers().await;
    let list = sidecar.get("/api/tools").await.ok(200);
    let ids: Vec<&Value> = list["tools"].as_array().unwrap().iter().map(|tool| &tool["id"]).collect();
    assert_eq!(ids, ["builtin.calculator", "mcp.files.read"]);
    let called =
        sidecar.post("/api/tools/mcp.files.read/call", json!({"input": {"path": "a"}})).await.ok(200);
    assert_eq!((&called["success"], &called["output"]), (&json!(true), &json!({"path": "a"})));
    assert_eq!(sidecar.get("/api/tools/mcp.files.read/calls").await.ok(200)["calls"][0]["by"], "token:main");
}

/// The route needs no token, so strangers must not hold the sidecar by it.
#[tokio::test]
async fn few_sign_ins_end_at_the_same_time() {
    let (sidecar, servers) = with_servers().await;
    let get = |state: &str| sidecar.request("GET", &format!("/oauth/callback?code=c&state={state}"));
    let slow: Vec<_> = (0..4).map(|_| tokio::spawn(get("slow").send())).collect();
    let count = || servers.notes().iter().filter(|note| note.contains("state=slow")).count();
    eventually("four sign-ins are under way", || async { (count() == 4).then_some(()) }).await;
    get("right").send().await.refused(503, "TOO_MANY_CONNECTIONS");
    slow.iter().for_each(tokio::task::JoinHandle::abort);
    let freed = || async { (get("right").send().await.status == 200).then_some(()) };
    eventually("a client that has gone makes room", freed).await;
}

#[tokio::test]
async fn the_state_of_an_agent_has_its_servers_and_says_why_it_has_no_tools() {
    let servers = Arc::new(OneServer::default());
    let setup = Setup { mcp: Some(servers), ..Setup::default() };
    let mut flow = plain_flow();
    flow[2]["allowedTools"] = json!(["*"]);
    flow[2]["wires"][1].as_array_mut().unwrap().push(json!("shop"));
    let shop = json!({"id": "shop", "type": "registry-tool", "z": "tab", "ids": ["mcp.files.*"], "wires": [["agent"]]});
    flow.as_array_mut().unwrap().push(shop);
    let sidecar = setup.start(Some(flow.clone())).await;
    let state = sidecar.get("/api/agents/agent/state").await.ok(200);
    assert_eq!(state["mcpServers"][0]["name"], "files", "{state}");
    assert_eq!(
        (state["tools"].as_array().unwrap().len(), &state["toolsError"]),
        (2, &Value::Null),
        "{state}"
    );
    // An agent that uses no server has none.
    let plain = Setup::default().start(Some(plain_flow())).await;
    let state = plain.get("/api/agents/agent/state").await.ok(200);
    assert_eq!((&state["mcpServers"], &state["toolsError"]), (&Value::Null, &Value::Null));
    // A second node gives the agent the same tools again: its runs cannot begin.
    let again = json!({"id": "again", "type": "registry-tool", "z": "tab", "ids": ["mcp.files.read"], "wires": [["agent"]]});
    flow[2]["wires"][1].as_array_mut().unwrap().push(json!("again"));
    flow.as_array_mut().unwrap().push(again);
    let revision = sidecar.revision().await;
    sidecar.post("/api/deployment", json!({"flows": flow, "revision": revision})).await.ok(200);
    let state = sidecar.get("/api/agents/agent/state").await.ok(200);
    assert_eq!(state["tools"], json!([]), "{state}");
    assert_eq!(state["toolsError"]["code"], "CONFIG_INVALID", "{state}");
    assert_eq!(state["mcpServers"][0]["name"], "files");
}
