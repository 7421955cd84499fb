//! The requests of the editor to the palette module, and their permissions.

use crate::kit::flow::{Flow, final_answer, tool_call};
use crate::kit::node_red::{NodeRed, Setup};
use crate::kit::release_line::ReleaseLine;
use crate::kit::scene::Scene;
use crate::kit::{eventually, on_both_lines, on_the_newer_line};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

on_both_lines! {
    lists_shows_and_cancels_runs
}

on_the_newer_line! {
    checks_the_flow_of_the_editor
    a_person_answers_a_waiting_run
    checks_the_permissions_of_users
    hides_the_runs_of_another_node_red
    answers_while_the_sidecar_is_offline
}

pub(crate) const RUNTIME: &str = "/redflow/runtimes/runtime";

/// Waits until the only runtime has this state, and gives it.
async fn runtime(node_red: &NodeRed, state: &str) -> Value {
    eventually(format!("a runtime that is {state}"), async || {
        let list = node_red.admin.ask("GET", "/redflow/runtimes").await.ok(200);
        list["runtimes"].as_array()?.iter().find(|one| one["state"]["is"] == state).cloned()
    })
    .await
}

/// The runs in the editor's list.
pub(crate) async fn runs(node_red: &NodeRed, query: &str) -> Vec<Value> {
    let list = node_red.admin.ask("GET", &format!("{RUNTIME}/runs{query}")).await.ok(200);
    list["runs"].as_array().unwrap().clone()
}

async fn wait_for_run(node_red: &NodeRed, status: &str) -> String {
    eventually(format!("a run that is {status}"), async || {
        let reply = node_red.admin.ask("GET", &format!("{RUNTIME}/runs?status={status}")).await;
        // The palette may still connect after a deploy.
        if reply.status == 503 {
            reply.refused(503, "RUNTIME_UNREACHABLE");
            return None;
        }
        let list = reply.ok(200);
        list["runs"].as_array().unwrap().first().map(|run| run["runId"].as_str().unwrap().to_owned())
    })
    .await
}

pub(crate) async fn errors(node_red: &NodeRed, agent: &str) -> Vec<Value> {
    let response = node_red.admin.ask("GET", &format!("/redflow/agents/{agent}/errors")).await.ok(200);
    response["errors"].as_array().unwrap().clone()
}

async fn lists_shows_and_cancels_runs(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let script = [tool_call("warmth", json!({"room": "hall"})), final_answer("Warm.")];
    let flow = scene
        .flow()
        .standard_agent(&scene.witness, &["warmth"], &["warmth-tool"])
        .scripted(&script)
        .http_tool(&scene.witness, "warmth", "read")
        .change("runtime", json!({"name": "Home"}));
    scene.deploy(&flow).await;
    let (admin, node_red) = (scene.node_red.admin, &scene.node_red);
    let view = runtime(node_red, "connected").await;
    assert_eq!(
        (&view["name"], &view["mode"], &view["address"], &view["waiting"]),
        (&json!("Home"), &json!("remote"), &json!(scene.sidecar.url()), &json!(0))
    );
    assert!(view["state"]["version"].is_string(), "{view}");
    scene.ask().await;
    let completed = wait_for_run(node_red, "completed").await;
    assert_eq!(runs(node_red, "?agent=agent&limit=1").await[0]["runId"], completed);
    assert_eq!(runs(node_red, "?agent=nobody").await, Vec::<Value>::new());
    let detail = admin.ask("GET", &format!("{RUNTIME}/runs/{completed}")).await;
    assert_eq!(detail.header("cache-control"), Some("no-store"));
    let detail = detail.ok(200);
    assert_eq!(
        (&detail["summary"]["runId"], detail["calls"].as_array().unwrap().len()),
        (&json!(completed), 1)
    );
    let events = admin.ask("GET", &format!("{RUNTIME}/runs/{completed}/events?after=0")).await.ok(200);
    let events = events.as_array().unwrap();
    assert_eq!(Some(events), detail["events"].as_array());
    let last = events.last().unwrap()["seq"].as_u64().unwrap();
    let rest = |after: u64| async move {
        admin.ask("GET", &format!("{RUNTIME}/runs/{completed}/events?after={after}")).await.ok(200)
    };
    assert_eq!(rest(last - 1).await, json!([events.last().unwrap()]));
    // Cancel a run that is active. The message that started it fails.
    scene.witness.hold("/warmth");
    scene.send_question().await;
    scene.witness.wait_for_bodies("/warmth", 2).await;
    let active = wait_for_run(node_red, "running").await;
    let cancel = admin.request("POST", &format!("{RUNTIME}/runs/{active}/cancel"));
    let cancelled = cancel.json(json!({"reason": "by hand"})).send().await.ok(200);
    assert_eq!(cancelled["runId"], active);
    let caught = scene.witness.wait_for_bodies("/caught", 1).await;
    assert_eq!(caught[0]["error"]["code"], "CANCELLED", "{caught:#?}");
    assert_eq!(wait_for_run(node_red, "failed").await, active);
    // The sidecar stores this run, so the palette keeps no error of it. The tool's late reply is one.
    assert_eq!(errors(node_red, "agent").await, Vec::<Value>::new());
    scene.witness.release("/warmth");
    // Invalid requests, and unknown runs and codes.
    let refused = [
        ("GET", "/runs/unknown", 404, "RUN_UNKNOWN"),
        ("GET", "/runs/..%2f..%2fmetrics", 404, "RUN_UNKNOWN"),
        ("GET", "/runs?limit=0", 400, "REQUEST_INVALID"),
        ("GET", "/runs?status=lost", 400, "REQUEST_INVALID"),
        ("GET", "/codes/NO_SUCH_CODE", 404, "NOT_FOUND"),
    ];
    for (method, path, status, code) in refused {
        admin.ask(method, &format!("{RUNTIME}{path}")).await.refused(status, code);
    }
    admin.ask("GET", "/redflow/runtimes/nobody/runs").await.refused(404, "NOT_FOUND");
    let form = admin.request("POST", &format!("{RUNTIME}/runs/{active}/cancel"));
    let form = form.header("content-type", "text/plain").bytes(b"{}".to_vec());
    form.send().await.refused(415, "CONTENT_TYPE_REFUSED");
    let over = admin.request("POST", &format!("{RUNTIME}/runs/{active}/cancel")).json(json!({}));
    over.send().await.refused(409, "RUN_OVER");
    let page = admin.ask("GET", &format!("{RUNTIME}/codes/CANCELLED")).await.ok(200);
    assert!(page["page"].as_str().unwrap().contains("# CANCELLED"), "{page}");
    assert_eq!(admin.ask("GET", &format!("{RUNTIME}/log")).await.ok(200), json!({"lines": []}));
}

async fn checks_the_flow_of_the_editor(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let flow = scene.flow().standard_agent(&scene.witness, &[], &[]).scripted(&[final_answer("Hello.")]);
    scene.deploy(&flow).await;
    runtime(&scene.node_red, "connected").await;
    let check = |flow: Flow| {
        let request = scene.node_red.admin.request("POST", &format!("{RUNTIME}/check"));
        request.json(json!({"flows": flow.json()})).send()
    };
    assert_eq!(check(flow.clone()).await.ok(200), json!({"ok": true, "diagnostics": []}));
    let wrong = check(flow.clone().without("model")).await.ok(200);
    let found: Vec<_> =
        wrong["diagnostics"].as_array().unwrap().iter().map(|one| one["code"].clone()).collect();
    assert_eq!((&wrong["ok"], found.contains(&json!("MODEL_MISSING"))), (&json!(false), true), "{wrong:#}");
    // A check does not change the active flow.
    assert_eq!(scene.ask().await["payload"], "Hello.");
    // A malformed flow gives diagnostics, not a failed request.
    let hostile = flow.node(
        "odd",
        "function",
        json!([null, ["agent", 7, null], "x"]),
        json!({"env": 7, "func": "s3cret"}),
    );
    check(hostile).await.ok(200);
    assert_eq!(scene.sidecar.places_containing("s3cret"), Vec::<String>::new());
}

async fn a_person_answers_a_waiting_run(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let script = [tool_call("pay", json!({})), final_answer("Paid.")];
    // A node behind the first one fails, so the tool may already have acted.
    let flow = scene
        .flow()
        .standard_agent(&scene.witness, &["pay"], &["pay-tool"])
        .scripted(&script)
        .flow_tool("pay-tool", "pay", "at_most_once", &["first"])
        .function("first", "return msg;", &["second"])
        .function("second", "throw new Error('the line is dead');", &["back"])
        .node("back", "flow-tool-return", json!([]), json!({}));
    scene.deploy(&flow).await;
    scene.send_question().await;
    let run = wait_for_run(&scene.node_red, "waiting").await;
    let call = runs(&scene.node_red, "").await[0]["waiting"]["callId"].clone();
    let answer = |body: Value| {
        let request = scene.node_red.admin.request("POST", &format!("{RUNTIME}/runs/{run}/resolve"));
        request.json(body).send()
    };
    answer(json!({"callId": call})).await.refused(400, "BODY_INVALID");
    let done = json!({"callId": call, "result": {"success": true, "output": {"receipt": 17}}});
    assert_eq!(answer(done.clone()).await.ok(200)["runId"], run);
    assert_eq!(scene.witness.wait_for_bodies("/results", 1).await[0]["payload"], "Paid.");
    assert!(answer(done).await.status >= 400);
}

/// Tokens of two users: one may only read, the other may do everything. Every user may deploy.
const USERS: &str = "adminAuth: { type: 'credentials', users: [],
    default: { permissions: ['flows.read', 'flows.write', 'inject.write', 'status.read', 'settings.read'] },
    tokens: (token) => Promise.resolve(
        token === 'reader' ? { username: 'reader', permissions: 'read' } :
        token === 'writer' ? { username: 'writer', permissions: '*' } : null) },";

async fn checks_the_permissions_of_users(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let setup = Setup { settings: USERS.to_owned(), ..Setup::default() };
    let node_red = NodeRed::start_with(line, setup).await;
    let script = [tool_call("warmth", json!({})), final_answer("Warm.")];
    let flow = scene
        .flow()
        .standard_agent(&scene.witness, &["warmth"], &["warmth-tool"])
        .scripted(&script)
        .http_tool(&scene.witness, "warmth", "read");
    scene.witness.hold("/warmth");
    node_red.deploy(&flow.json()).await;
    node_red.admin.inject("ask").await;
    scene.witness.wait_for_bodies("/warmth", 1).await;
    let run = scene.sidecar.runs().await[0]["runId"].as_str().unwrap().to_owned();
    let ask = |user: Option<&'static str>, method: &'static str, path: String, body: Option<Value>| {
        let request = node_red.admin.request(method, &path);
        let request = user.into_iter().fold(request, |request, user| request.token(user));
        body.into_iter().fold(request, |request, body| request.json(body)).send()
    };
    let run_path = format!("{RUNTIME}/runs/{run}");
    let flows = json!({"flows": []});
    let rows = [
        ("GET", "/redflow/runtimes".to_owned(), None, true),
        ("GET", "/redflow/agents/agent/errors".to_owned(), None, true),
        ("GET", format!("{RUNTIME}/log"), None, true),
        ("GET", format!("{RUNTIME}/codes/CANCELLED"), None, true),
        ("GET", format!("{RUNTIME}/runs"), None, true),
        ("GET", run_path.clone(), None, true),
        ("GET", format!("{run_path}/events"), None, true),
        ("POST", format!("{RUNTIME}/check"), Some(flows), true),
        ("POST", format!("{run_path}/resolve"), Some(json!({})), false),
        ("POST", format!("{run_path}/cancel"), Some(json!({})), false),
    ];
    for (method, path, body, may_read) in rows {
        for user in [None, Some("stranger")] {
            assert_eq!(ask(user, method, path.clone(), body.clone()).await.status, 401, "{user:?} {path}");
        }
        let answer = ask(Some("reader"), method, path.clone(), body.clone()).await;
        assert_eq!(answer.status, if may_read { 200 } else { 401 }, "{path}: {answer:?}");
    }
    assert_eq!(scene.sidecar.runs().await[0]["status"], "running");
    ask(Some("writer"), "POST", format!("{run_path}/cancel"), Some(json!({}))).await.ok(200);
    scene.witness.wait_for_bodies("/caught", 1).await;
    scene.witness.release("/warmth");
}

async fn hides_the_runs_of_another_node_red(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let other = NodeRed::start(line).await;
    let script = [tool_call("warmth", json!({})), final_answer("Warm.")];
    let flow = scene
        .flow()
        .standard_agent(&scene.witness, &["warmth"], &["warmth-tool"])
        .scripted(&script)
        .http_tool(&scene.witness, "warmth", "read");
    scene.deploy(&flow).await;
    other.deploy(&flow.json()).await;
    scene.wait_for_connections(2).await;
    scene.witness.hold("/warmth");
    scene.send_question().await;
    scene.witness.wait_for_bodies("/warmth", 1).await;
    let run = wait_for_run(&scene.node_red, "running").await;
    runtime(&other, "connected").await;
    assert_eq!(runs(&other, "").await, Vec::<Value>::new());
    let path = format!("{RUNTIME}/runs/{run}");
    for end in ["", "/events", "/events?after=1000"] {
        other.admin.ask("GET", &format!("{path}{end}")).await.refused(404, "RUN_UNKNOWN");
    }
    for verb in ["cancel", "resolve"] {
        let request = other.admin.request("POST", &format!("{path}/{verb}")).json(json!({}));
        request.send().await.refused(404, "RUN_UNKNOWN");
    }
    scene.witness.release("/warmth");
    assert_eq!(scene.witness.wait_for_bodies("/results", 1).await[0]["payload"], "Warm.");
}

async fn answers_while_the_sidecar_is_offline(line: ReleaseLine) {
    let mut scene = Scene::start(line).await;
    let flow = scene.flow().standard_agent(&scene.witness, &[], &[]).scripted(&[final_answer("At last.")]);
    scene.deploy(&flow.change("runtime", json!({"maxQueued": 1}))).await;
    runtime(&scene.node_red, "connected").await;
    scene.ask().await;
    let run = wait_for_run(&scene.node_red, "completed").await;
    let notices = || scene.node_red.comms.messages("redflow/runtimes");
    // A notice waits for further changes, so the run may end before it arrives.
    let before =
        eventually("a first notice", async || Some(notices().len()).filter(|count| *count > 0)).await;
    assert!(notices().iter().all(|notice| *notice == json!({})), "{:?}", notices());
    scene.sidecar.kill();
    let view = runtime(&scene.node_red, "offline").await;
    assert!(!view["state"]["reason"].as_str().unwrap().is_empty(), "{view}");
    let notices = || scene.node_red.comms.messages("redflow/runtimes").len();
    eventually("a notice", async || (notices() > before).then_some(())).await;
    for path in [
        "/runs".to_owned(),
        format!("/runs/{run}"),
        format!("/runs/{run}/events"),
        "/codes/TIMEOUT".to_owned(),
    ] {
        let answer = scene.node_red.admin.ask("GET", &format!("{RUNTIME}{path}")).await;
        answer.refused(503, "RUNTIME_UNREACHABLE");
    }
    for path in [format!("/runs/{run}/cancel"), "/check".to_owned()] {
        let request = scene.node_red.admin.request("POST", &format!("{RUNTIME}{path}"));
        request.json(json!({"flows": []})).send().await.refused(503, "RUNTIME_UNREACHABLE");
    }
    // One message waits. The next one is refused, and the editor can read that error.
    scene.send_question().await;
    scene.send_question().await;
    let caught = scene.witness.wait_for_bodies("/caught", 1).await;
    assert_eq!(caught[0]["error"]["code"], "QUEUE_FULL", "{caught:#?}");
    assert_eq!(runtime(&scene.node_red, "offline").await["waiting"], 1);
    let errors = errors(&scene.node_red, "agent").await;
    assert_eq!((errors.len(), &errors[0]["code"]), (1, &json!("QUEUE_FULL")), "{errors:#?}");
    scene.sidecar.start();
    assert_eq!(runtime(&scene.node_red, "connected").await["waiting"], 0);
    scene.witness.wait_for_bodies("/results", 2).await;
    assert_eq!(runs(&scene.node_red, "").await.len(), 2);
}
