//! `redflow serve --node-red`: an attached Node-RED, without the palette.

use crate::client::{Request, Socket};
use crate::kit::cable::Cable;
use crate::kit::flow::Flow;
use crate::kit::node_red::{NodeRed, Setup};
use crate::kit::release_line::ReleaseLine;
use crate::kit::sidecar::{Sidecar, TOKEN};
use crate::kit::{TIME_LIMIT, eventually, on_both_lines, on_the_newer_line};
use futures::StreamExt as _;
use redflow_contract::event::FlowEvent;
use redflow_contract::stream::{CURSOR_START, StreamEvent};
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

on_both_lines!(checks_every_deploy_and_runs_nothing the_redflow_ui_reaches_node_red_through_the_sidecar);
on_the_newer_line!(each_token_goes_only_to_its_own_server reports_an_address_without_node_red
    checks_flows_of_a_node_red_without_an_editor);

/// The origin of the Redflow UI.
const UI: &str = "http://localhost:5173";

/// A token that Node-RED accepts.
const NODE_RED_TOKEN: &str = "an-access-token-of-node-red";

/// Whether the sidecar passes requests of the Redflow UI on to Node-RED.
enum UiProxy {
    On,
    Off,
}

async fn without_palette(line: ReleaseLine, settings: &str) -> NodeRed {
    let setup = Setup { without_palette: true, settings: settings.to_owned(), ..Setup::default() };
    NodeRed::start_with(line, setup).await
}

/// A sidecar that is attached to the Node-RED behind a cable.
async fn attach(cable: &Cable, proxy: UiProxy, env: Vec<(&'static str, String)>) -> Sidecar {
    let ui = match proxy {
        UiProxy::On => format!("redflow_ui = {UI:?}\n"),
        UiProxy::Off => String::new(),
    };
    let mut sidecar = Sidecar::with_config(&format!("node_red = {:?}\n{ui}", cable.url())).await;
    sidecar.env = env;
    sidecar.start();
    sidecar
}

/// Waits until the state of the attached Node-RED matches, and gives it.
async fn wait_for_state(sidecar: &Sidecar, what: &str, is_expected: impl Fn(&Value) -> bool) -> Value {
    eventually(what, async || Some(sidecar.get("/api/beside").await).filter(&is_expected)).await
}

async fn revision(node_red: &NodeRed) -> Value {
    node_red.admin.ask("GET", "/flows").await.ok(200)["rev"].clone()
}

/// A request of a page of the Redflow UI.
fn page_request(sidecar: &Sidecar, method: &str, path: &str) -> Request {
    Request::new(sidecar.addr(), method, path).header("origin", UI).header("node-red-api-version", "v2")
}

async fn checks_every_deploy_and_runs_nothing(line: ReleaseLine) {
    let (mut node_red, cable) = (without_palette(line, "").await, Cable::new().await);
    // Node-RED starts later than the sidecar.
    let sidecar = attach(&cable, UiProxy::Off, Vec::new()).await;
    let state = wait_for_state(&sidecar, "no Node-RED", |state| state["error"].is_object()).await;
    assert_eq!(
        (&state["error"]["code"], &state["connected"]),
        (&json!("NODE_RED_UNREACHABLE"), &json!(false))
    );
    cable.connect_to(Some(node_red.addr()));
    let rev = revision(&node_red).await;
    let state = wait_for_state(&sidecar, "an empty flow", |state| state["connected"] == true).await;
    assert_eq!((&state["revision"], &state["report"]["ok"], state.get("error")), (&rev, &json!(true), None));
    let version = state["version"].as_str().unwrap();
    assert!(version.starts_with(&format!("{}.", line.name())), "{version}");

    let lacking =
        Flow::bare().inject("ask", "hello", "agent").agent("agent", &[], json!([[], [], [], [], []]));
    node_red.deploy(&lacking.json()).await;
    let rev = revision(&node_red).await;
    let state = wait_for_state(&sidecar, "the deploy", |state| state["revision"] == rev).await;
    let codes: Vec<&str> = state["report"]["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["code"].as_str().unwrap())
        .collect();
    assert!(state["report"]["ok"] == false && codes.contains(&"MODEL_MISSING"), "{codes:?}");
    assert!(sidecar.log().contains("MODEL_MISSING"), "{}", sidecar.log());
    // Subscribers get an event with the counts.
    let mut socket = Socket::open(sidecar.addr(), TOKEN).await;
    socket.subscribe(Some(CURSOR_START)).await;
    let is_checked = |event: &StreamEvent| {
        matches!(event, StreamEvent::Flow { event: FlowEvent::Checked { source, revision, errors, .. }, .. }
            if *source == format!("{}/", cable.url()) && rev == **revision && *errors > 0)
    };
    socket.until(is_checked).await;
    // The sidecar runs nothing of this flow, because Node-RED owns it.
    let list = sidecar.get("/api/flows").await;
    assert_eq!((&list["flows"], sidecar.runs().await.len()), (&json!([]), 0));

    // Node-RED does not start flows with an unknown type. This flow has none.
    node_red.deploy(&Flow::bare().json()).await;
    let rev = revision(&node_red).await;
    wait_for_state(&sidecar, "a flow without an agent", |state| state["revision"] == rev).await;
    // The sidecar finds a deploy that it missed as soon as it is connected again.
    cable.connect_to(None);
    cable.cut();
    wait_for_state(&sidecar, "a lost connection", |state| {
        state["connected"] == false && state["error"].is_object()
    })
    .await;
    node_red.kill();
    node_red.start_again().await;
    node_red.deploy(&Flow::bare().inject("ask", "hello", "ask").json()).await;
    let rev = revision(&node_red).await;
    cable.connect_to(Some(node_red.addr()));
    let state = wait_for_state(&sidecar, "the new flow", |state| {
        state["revision"] == rev && state["connected"] == true
    })
    .await;
    assert_eq!((&state["report"]["ok"], state.get("error")), (&json!(true), None));
    // Without --redflow-ui the sidecar passes no request on.
    let flows = sidecar.get("/flows").await;
    assert_eq!(flows, json!([]));
}

/// Responds with the headers of the request, and with some that must not reach the page.
const ECHO: &str = "msg.payload = msg.req.headers;\
    msg.headers = {'set-cookie': 'a=b', 'location': '/elsewhere', 'x-other': 'c', 'content-type': 'application/json'};\
    return msg;";

// SECURITY: forwarded-requests
async fn the_redflow_ui_reaches_node_red_through_the_sidecar(line: ReleaseLine) {
    let (node_red, cable) = (without_palette(line, "").await, Cable::new().await);
    cable.connect_to(Some(node_red.addr()));
    let sidecar = attach(&cable, UiProxy::On, vec![("NODE_RED_TOKEN", NODE_RED_TOKEN.to_owned())]).await;
    // The page deploys. Node-RED itself refuses a deploy of an old revision.
    let before = page_request(&sidecar, "GET", "/flows").send().await.ok(200);
    let flow = Flow::bare()
        .inject("ask", "hello", "shown")
        .node(
            "shown",
            "debug",
            json!([]),
            json!({"active": true, "complete": "payload", "targetType": "msg", "tosidebar": true}),
        )
        .node("in", "http in", json!([["echo"]]), json!({"url": "/echo", "method": "post"}))
        .function("echo", ECHO, &["out"])
        .node("out", "http response", json!([]), json!({"statusCode": "207"}));
    let body = json!({"rev": before["rev"], "flows": flow.json()});
    let deploy = || {
        page_request(&sidecar, "POST", "/flows").header("node-red-deployment-type", "full").json(body.clone())
    };
    let reply = deploy().send().await;
    assert_eq!(reply.header("access-control-allow-origin"), Some(UI), "{reply:?}");
    let rev = reply.ok(200)["rev"].clone();
    assert_eq!(rev, revision(&node_red).await);
    let refused = deploy().send().await;
    assert_eq!((refused.status, refused.json()["code"].clone()), (409, json!("version_mismatch")));
    let settings = page_request(&sidecar, "GET", "/settings").send().await.ok(200);
    assert!(settings["version"].as_str().unwrap().starts_with(line.name()), "{settings}");
    // A path that only Node-RED knows.
    let debug = page_request(&sidecar, "POST", "/debug/shown/enable").json(json!({})).send().await;
    assert_eq!(debug.status, 200, "{debug:?}");

    // Messages of Node-RED's `/comms` arrive at the page.
    let mut socket = Socket::try_open_at(sidecar.addr(), "/comms", &[("origin", UI)]).await.unwrap();
    let inject = page_request(&sidecar, "POST", "/inject/ask").send().await;
    assert_eq!((inject.status, inject.body.as_slice()), (200, b"OK".as_slice()));
    let received = async {
        loop {
            match socket.stream.next().await.unwrap().unwrap() {
                Message::Text(text) if text.contains(r#""msg":"hello""#) => return,
                _ => {}
            }
        }
    };
    timeout(TIME_LIMIT, received).await.unwrap();

    // The sidecar passes on only headers that Node-RED uses, and only tokens of Node-RED.
    let echo = |request: Request| async {
        let reply = request
            .header("cookie", "redflow=a-session; other=1")
            .header("x-forwarded-for", "10.0.0.1")
            .header("x-other", "1")
            .header("accept-language", "de")
            .json(json!({}))
            .send()
            .await;
        for name in ["set-cookie", "location", "x-other"] {
            assert_eq!(reply.header(name), None, "{reply:?}");
        }
        assert!(reply.header("content-security-policy").unwrap().contains("default-src 'none'"));
        reply.ok(207)
    };
    let own =
        echo(page_request(&sidecar, "POST", "/echo").header("authorization", "Bearer for-node-red")).await;
    assert_eq!(
        (&own["authorization"], &own["accept-language"]),
        (&json!("Bearer for-node-red"), &json!("de"))
    );
    assert_eq!(own["host"], cable.addr.to_string());
    for name in ["cookie", "x-forwarded-for", "x-other", "origin", "referer"] {
        assert_eq!(own.get(name), None, "{own}");
    }
    let ours = echo(Request::new(sidecar.addr(), "POST", "/echo").token(TOKEN)).await;
    let nothing = echo(page_request(&sidecar, "POST", "/echo")).await;
    for headers in [ours, nothing] {
        assert_eq!(headers.get("authorization"), None, "{headers}");
        assert!(!headers.to_string().contains(NODE_RED_TOKEN), "{headers}");
    }

    // Requests that are passed on need access too, and the sidecar keeps its own paths.
    let at = |path: &str| Request::new(sidecar.addr(), "GET", path);
    at("/flows").send().await.refused(401, "UNAUTHORIZED");
    at("/flows").token("another-token-than-ours").send().await.refused(401, "UNAUTHORIZED");
    at("/flows").header("origin", "http://localhost:5174").send().await.refused(403, "ORIGIN_REFUSED");
    at("/flows")
        .header("origin", UI)
        .header("host", "evil.example")
        .send()
        .await
        .refused(403, "HOST_REFUSED");
    at("/comms").send().await.refused(400, "REQUEST_INVALID");
    page_request(&sidecar, "GET", "/api/none").send().await.refused(404, "ROUTE_UNKNOWN");
    page_request(&sidecar, "GET", "/redflow/none").send().await.refused(404, "ROUTE_UNKNOWN");
    page_request(&sidecar, "GET", "/context/../flows").send().await.refused(400, "REQUEST_INVALID");
    let without_origin = Socket::try_open_at(sidecar.addr(), "/comms", &[]).await.map(drop);
    without_origin.unwrap_err().refused(401, "UNAUTHORIZED");
    let other = Socket::try_open_at(sidecar.addr(), "/other", &[("origin", UI)]).await.map(drop);
    other.unwrap_err().refused(400, "REQUEST_INVALID");

    // Without Node-RED the response has a code, and the socket ends.
    cable.connect_to(None);
    cable.cut();
    page_request(&sidecar, "GET", "/flows").send().await.refused(502, "NODE_RED_UNREACHABLE");
    timeout(TIME_LIMIT, async { while socket.stream.next().await.is_some_and(|it| it.is_ok()) {} })
        .await
        .unwrap();
}

/// Requests without a token may read. Requests with the token may deploy.
fn with_users() -> String {
    format!(
        r#"adminAuth: {{
        type: "credentials", users: [],
        default: {{ permissions: ["flows.read", "settings.read", "status.read"] }},
        tokens: async (token) => token === "{NODE_RED_TOKEN}" ? {{ username: "test", permissions: "*" }} : null,
    }},"#
    )
}

// SECURITY: forwarded-requests
async fn each_token_goes_only_to_its_own_server(line: ReleaseLine) {
    let (node_red, cable) = (without_palette(line, &with_users()).await, Cable::new().await);
    cable.connect_to(Some(node_red.addr()));
    let rev = revision(&node_red).await;
    // Three sidecars: without a token, with a wrong one, and with the right one.
    let none = attach(&cable, UiProxy::Off, Vec::new()).await;
    wait_for_state(&none, "read access", |state| state["connected"] == true && state["revision"] == rev)
        .await;
    let wrong = attach(&cable, UiProxy::Off, vec![("NODE_RED_TOKEN", "a-wrong-one".to_owned())]).await;
    let state =
        wait_for_state(&wrong, "a refusal", |state| state["error"]["code"] == "NODE_RED_REFUSED").await;
    assert_eq!(state["connected"], false, "{state}");
    assert!(!wrong.log().contains("a-wrong-one"), "{}", wrong.log());
    let right = attach(&cable, UiProxy::On, vec![("NODE_RED_TOKEN", NODE_RED_TOKEN.to_owned())]).await;
    wait_for_state(&right, "a connection", |state| state["connected"] == true).await;
    assert!(!right.log().contains(NODE_RED_TOKEN), "{}", right.log());

    // A page cannot use the sidecar's token for Node-RED. It needs its own to deploy.
    let body = json!({"rev": rev, "flows": Flow::bare().json()});
    let deploy = || page_request(&right, "POST", "/flows").json(body.clone());
    assert_eq!(deploy().send().await.status, 401);
    let ours =
        Request::new(right.addr(), "POST", "/flows").header("node-red-api-version", "v2").json(body.clone());
    assert_eq!(ours.token(TOKEN).send().await.status, 401);
    let rev = deploy().token(NODE_RED_TOKEN).send().await.ok(200)["rev"].clone();
    // Both sidecars notice the deploy.
    for sidecar in [&none, &right] {
        wait_for_state(sidecar, "the deploy", |state| state["revision"] == rev).await;
    }
}

async fn reports_an_address_without_node_red(line: ReleaseLine) {
    let (node_red, cable) = (without_palette(line, "").await, Cable::new().await);
    cable.connect_to(Some(node_red.addr()));
    let elsewhere = format!("node_red = \"{}/admin\"\n", cable.url());
    let mut sidecar = Sidecar::with_config(&elsewhere).await;
    sidecar.start();
    let state = wait_for_state(&sidecar, "an error", |state| state["error"].is_object()).await;
    assert_eq!(state["error"]["code"], "NODE_RED_UNREACHABLE", "{state}");
    assert!(state["error"]["message"].as_str().unwrap().contains("httpAdminRoot"), "{state}");
}

/// A process. Drop kills it.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn checks_flows_of_a_node_red_without_an_editor(line: ReleaseLine) {
    // The kit needs the editor's socket, so only the second start disables the editor.
    let without = "disableEditor: require('fs').existsSync(__dirname + '/no-editor'),";
    let mut node_red = without_palette(line, without).await;
    node_red.deploy(&Flow::bare().json()).await;
    let (rev, cable) = (revision(&node_red).await, Cable::new().await);
    cable.connect_to(Some(node_red.addr()));
    node_red.kill();
    let user = node_red.user();
    std::fs::write(user.join("no-editor"), "").unwrap();
    let mut command = Command::new(line.node());
    command.arg(line.program()).arg("--userDir").arg(user).arg("--settings").arg(user.join("settings.js"));
    command.env("TEST_PORT", node_red.addr().port().to_string()).stdin(Stdio::null()).stdout(Stdio::null());
    let _again = KillOnDrop(command.spawn().unwrap());
    let sidecar = attach(&cable, UiProxy::Off, Vec::new()).await;
    let state = wait_for_state(&sidecar, "the flow, without a socket", |state| {
        state["revision"] == rev && state["error"]["code"] == "NODE_RED_REFUSED"
    })
    .await;
    assert_eq!((&state["connected"], &state["report"]["ok"]), (&json!(false), &json!(true)));
    assert!(state["error"]["message"].as_str().unwrap().contains("disableEditor"), "{state}");
}
