//! `redflow serve --node-red`: beside a Node-RED that has nothing of ours.

use crate::client::{Request, Socket};
use crate::kit::cable::Cable;
use crate::kit::flow::Flow;
use crate::kit::line::Line;
use crate::kit::node_red::{NodeRed, Setup};
use crate::kit::sidecar::{Sidecar, TOKEN};
use crate::kit::{PATIENCE, eventually, on_both_lines, on_the_newer_line};
use futures::StreamExt as _;
use redflow_contract::event::FlowEvent;
use redflow_contract::stream::{CURSOR_START, StreamEvent};
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

on_both_lines!(every_deploy_is_checked_and_nothing_runs_here the_redflow_ui_has_one_address);
on_the_newer_line!(tokens_go_where_they_belong an_address_that_is_none_is_told
    without_an_editor_it_is_looked_at_all_the_same);

/// The origin of the Redflow UI.
const UI: &str = "http://localhost:5173";

/// A token that Node-RED takes.
const NODE_RED_TOKEN: &str = "an-access-token-of-node-red";

async fn plain(line: Line, settings: &str) -> NodeRed {
    let setup = Setup { plain: true, settings: settings.to_owned(), ..Setup::default() };
    NodeRed::start_with(line, setup).await
}

/// A sidecar beside whatever is at the end of a cable.
async fn beside(cable: &Cable, redflow_ui: bool, env: Vec<(&'static str, String)>) -> Sidecar {
    let ui = if redflow_ui { format!("redflow_ui = {UI:?}\n") } else { String::new() };
    let mut sidecar = Sidecar::away_with(&format!("node_red = {:?}\n{ui}", cable.url())).await;
    sidecar.env = env;
    sidecar.come();
    sidecar
}

/// What is known of Node-RED, once it is as wanted.
async fn known(sidecar: &Sidecar, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    eventually(what, async || Some(sidecar.get("/api/beside").await).filter(&wanted)).await
}

async fn revision(node_red: &NodeRed) -> Value {
    node_red.admin.ask("GET", "/flows").await.ok(200)["rev"].clone()
}

/// A request of a page of the Redflow UI.
fn page(sidecar: &Sidecar, method: &str, path: &str) -> Request {
    Request::new(sidecar.addr(), method, path).header("origin", UI).header("node-red-api-version", "v2")
}

async fn every_deploy_is_checked_and_nothing_runs_here(line: Line) {
    let (mut node_red, cable) = (plain(line, "").await, Cable::new().await);
    // Node-RED comes later than the sidecar.
    let sidecar = beside(&cable, false, Vec::new()).await;
    let state = known(&sidecar, "that nobody is there", |state| state["error"].is_object()).await;
    assert_eq!(
        (&state["error"]["code"], &state["connected"]),
        (&json!("NODE_RED_UNREACHABLE"), &json!(false))
    );
    cable.lead_to(Some(node_red.addr()));
    let rev = revision(&node_red).await;
    let state = known(&sidecar, "an empty flow", |state| state["connected"] == true).await;
    assert_eq!((&state["revision"], &state["report"]["ok"], state.get("error")), (&rev, &json!(true), None));
    let version = state["version"].as_str().unwrap();
    assert!(version.starts_with(&format!("{}.", line.name())), "{version}");

    let lacking =
        Flow::bare().inject("ask", "hello", "agent").agent("agent", &[], json!([[], [], [], [], []]));
    node_red.deploy(&lacking.json()).await;
    let rev = revision(&node_red).await;
    let state = known(&sidecar, "the deploy", |state| state["revision"] == rev).await;
    let codes: Vec<&str> = state["report"]["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["code"].as_str().unwrap())
        .collect();
    assert!(state["report"]["ok"] == false && codes.contains(&"MODEL_MISSING"), "{codes:?}");
    assert!(sidecar.log().contains("MODEL_MISSING"), "{}", sidecar.log());
    // It is told to whoever follows the events, with numbers.
    let mut socket = Socket::open(sidecar.addr(), TOKEN).await;
    socket.subscribe(Some(CURSOR_START)).await;
    let is_it = |event: &StreamEvent| {
        matches!(event, StreamEvent::Flow { event: FlowEvent::Checked { source, revision, errors, .. }, .. }
            if *source == format!("{}/", cable.url()) && rev == **revision && *errors > 0)
    };
    socket.until(is_it).await;
    // Node-RED owns it: nothing of it runs here.
    let list = sidecar.get("/api/flows").await;
    assert_eq!((&list["flows"], sidecar.runs().await.len()), (&json!([]), 0));

    // A Node-RED that lacks a type does not start its flows; this one has all of them.
    node_red.deploy(&Flow::bare().json()).await;
    let rev = revision(&node_red).await;
    known(&sidecar, "a flow without an agent", |state| state["revision"] == rev).await;
    // What was deployed while nobody could listen is seen as soon as somebody can.
    cable.lead_to(None);
    cable.cut();
    known(&sidecar, "that it is gone", |state| state["connected"] == false && state["error"].is_object())
        .await;
    node_red.kill();
    node_red.start_again().await;
    node_red.deploy(&Flow::bare().inject("ask", "hello", "ask").json()).await;
    let rev = revision(&node_red).await;
    cable.lead_to(Some(node_red.addr()));
    let state =
        known(&sidecar, "the new flow", |state| state["revision"] == rev && state["connected"] == true).await;
    assert_eq!((&state["report"]["ok"], state.get("error")), (&json!(true), None));
    // Without --redflow-ui nothing goes on to it.
    let flows = sidecar.get("/flows").await;
    assert_eq!(flows, json!([]));
}

/// Answers with the headers that came, and with some that must not go back.
const ECHO: &str = "msg.payload = msg.req.headers;\
    msg.headers = {'set-cookie': 'a=b', 'location': '/elsewhere', 'x-other': 'c', 'content-type': 'application/json'};\
    return msg;";

async fn the_redflow_ui_has_one_address(line: Line) {
    let (node_red, cable) = (plain(line, "").await, Cable::new().await);
    cable.lead_to(Some(node_red.addr()));
    let sidecar = beside(&cable, true, vec![("NODE_RED_TOKEN", NODE_RED_TOKEN.to_owned())]).await;
    // It deploys, and is refused by Node-RED itself if it was not the first.
    let before = page(&sidecar, "GET", "/flows").send().await.ok(200);
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
    let deploy =
        || page(&sidecar, "POST", "/flows").header("node-red-deployment-type", "full").json(body.clone());
    let reply = deploy().send().await;
    assert_eq!(reply.header("access-control-allow-origin"), Some(UI), "{reply:?}");
    let rev = reply.ok(200)["rev"].clone();
    assert_eq!(rev, revision(&node_red).await);
    let refused = deploy().send().await;
    assert_eq!((refused.status, refused.json()["code"].clone()), (409, json!("version_mismatch")));
    let settings = page(&sidecar, "GET", "/settings").send().await.ok(200);
    assert!(settings["version"].as_str().unwrap().starts_with(line.name()), "{settings}");
    // Addresses that only Node-RED knows.
    let debug = page(&sidecar, "POST", "/debug/shown/enable").json(json!({})).send().await;
    assert_eq!(debug.status, 200, "{debug:?}");

    // What happens there is told here.
    let mut socket = Socket::try_open_at(sidecar.addr(), "/comms", &[("origin", UI)]).await.unwrap();
    let inject = page(&sidecar, "POST", "/inject/ask").send().await;
    assert_eq!((inject.status, inject.body.as_slice()), (200, b"OK".as_slice()));
    let told = async {
        loop {
            match socket.stream.next().await.unwrap().unwrap() {
                Message::Text(text) if text.contains(r#""msg":"hello""#) => return,
                _ => {}
            }
        }
    };
    timeout(PATIENCE, told).await.unwrap();

    // Of the headers only those go along that mean something to Node-RED, and of tokens only its own.
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
    let own = echo(page(&sidecar, "POST", "/echo").header("authorization", "Bearer for-node-red")).await;
    assert_eq!(
        (&own["authorization"], &own["accept-language"]),
        (&json!("Bearer for-node-red"), &json!("de"))
    );
    assert_eq!(own["host"], cable.addr.to_string());
    for name in ["cookie", "x-forwarded-for", "x-other", "origin", "referer"] {
        assert_eq!(own.get(name), None, "{own}");
    }
    let ours = echo(Request::new(sidecar.addr(), "POST", "/echo").token(TOKEN)).await;
    let nothing = echo(page(&sidecar, "POST", "/echo")).await;
    for headers in [ours, nothing] {
        assert_eq!(headers.get("authorization"), None, "{headers}");
        assert!(!headers.to_string().contains(NODE_RED_TOKEN), "{headers}");
    }

    // The rules of the door hold for what goes on, and what is ours stays ours.
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
    page(&sidecar, "GET", "/api/none").send().await.refused(404, "ROUTE_UNKNOWN");
    page(&sidecar, "GET", "/redflow/none").send().await.refused(404, "ROUTE_UNKNOWN");
    page(&sidecar, "GET", "/context/../flows").send().await.refused(400, "REQUEST_INVALID");
    let nobody = Socket::try_open_at(sidecar.addr(), "/comms", &[]).await.map(drop);
    nobody.unwrap_err().refused(401, "UNAUTHORIZED");
    let other = Socket::try_open_at(sidecar.addr(), "/other", &[("origin", UI)]).await.map(drop);
    other.unwrap_err().refused(400, "REQUEST_INVALID");

    // Nobody there: said with a code, and the socket ends.
    cable.lead_to(None);
    cable.cut();
    page(&sidecar, "GET", "/flows").send().await.refused(502, "NODE_RED_UNREACHABLE");
    timeout(PATIENCE, async { while socket.stream.next().await.is_some_and(|it| it.is_ok()) {} })
        .await
        .unwrap();
}

/// Whoever shows nothing may look; whoever shows the token may deploy.
fn with_users() -> String {
    format!(
        r#"adminAuth: {{
        type: "credentials", users: [],
        default: {{ permissions: ["flows.read", "settings.read", "status.read"] }},
        tokens: async (token) => token === "{NODE_RED_TOKEN}" ? {{ username: "test", permissions: "*" }} : null,
    }},"#
    )
}

async fn tokens_go_where_they_belong(line: Line) {
    let (node_red, cable) = (plain(line, &with_users()).await, Cable::new().await);
    cable.lead_to(Some(node_red.addr()));
    let rev = revision(&node_red).await;
    // One that may look without a token, one with the right one, one with a wrong one.
    let none = beside(&cable, false, Vec::new()).await;
    known(&none, "that it may look", |state| state["connected"] == true && state["revision"] == rev).await;
    let wrong = beside(&cable, false, vec![("NODE_RED_TOKEN", "a-wrong-one".to_owned())]).await;
    let state = known(&wrong, "a refusal", |state| state["error"]["code"] == "NODE_RED_REFUSED").await;
    assert_eq!(state["connected"], false, "{state}");
    assert!(!wrong.log().contains("a-wrong-one"), "{}", wrong.log());
    let right = beside(&cable, true, vec![("NODE_RED_TOKEN", NODE_RED_TOKEN.to_owned())]).await;
    known(&right, "that it is let in", |state| state["connected"] == true).await;
    assert!(!right.log().contains(NODE_RED_TOKEN), "{}", right.log());

    // The sidecar's token for Node-RED is not the page's: it deploys with its own, or not at all.
    let body = json!({"rev": rev, "flows": Flow::bare().json()});
    let deploy = || page(&right, "POST", "/flows").json(body.clone());
    assert_eq!(deploy().send().await.status, 401);
    let ours =
        Request::new(right.addr(), "POST", "/flows").header("node-red-api-version", "v2").json(body.clone());
    assert_eq!(ours.token(TOKEN).send().await.status, 401);
    let rev = deploy().token(NODE_RED_TOKEN).send().await.ok(200)["rev"].clone();
    // All who follow have heard of it.
    for sidecar in [&none, &right] {
        known(sidecar, "the deploy", |state| state["revision"] == rev).await;
    }
}

async fn an_address_that_is_none_is_told(line: Line) {
    let (node_red, cable) = (plain(line, "").await, Cable::new().await);
    cable.lead_to(Some(node_red.addr()));
    let elsewhere = format!("node_red = \"{}/admin\"\n", cable.url());
    let mut sidecar = Sidecar::away_with(&elsewhere).await;
    sidecar.come();
    let state = known(&sidecar, "that this is none", |state| state["error"].is_object()).await;
    assert_eq!(state["error"]["code"], "NODE_RED_UNREACHABLE", "{state}");
    assert!(state["error"]["message"].as_str().unwrap().contains("httpAdminRoot"), "{state}");
}

/// A process that ends with its test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn without_an_editor_it_is_looked_at_all_the_same(line: Line) {
    // The kit needs the editor's socket, so it is taken away after the first start.
    let without = "disableEditor: require('fs').existsSync(__dirname + '/no-editor'),";
    let mut node_red = plain(line, without).await;
    node_red.deploy(&Flow::bare().json()).await;
    let (rev, cable) = (revision(&node_red).await, Cable::new().await);
    cable.lead_to(Some(node_red.addr()));
    node_red.kill();
    let user = node_red.user();
    std::fs::write(user.join("no-editor"), "").unwrap();
    let mut command = Command::new(line.node());
    command.arg(line.program()).arg("--userDir").arg(user).arg("--settings").arg(user.join("settings.js"));
    command.env("TEST_PORT", node_red.addr().port().to_string()).stdin(Stdio::null()).stdout(Stdio::null());
    let _again = Ended(command.spawn().unwrap());
    let sidecar = beside(&cable, false, Vec::new()).await;
    let state = known(&sidecar, "the flow, without a socket", |state| {
        state["revision"] == rev && state["error"]["code"] == "NODE_RED_REFUSED"
    })
    .await;
    assert_eq!((&state["connected"], &state["report"]["ok"]), (&json!(false), &json!(true)));
    assert!(state["error"]["message"].as_str().unwrap().contains("disableEditor"), "{state}");
}
