//! Node-RED's Admin API: the whole flow, settings, and inject nodes.

use crate::client::{Reply, Request};
use crate::kit::{Setup, TOKEN, TestSidecar, eventually, flow, plain_flow};
use pretty_assertions::assert_eq;
use redflow_contract::flow::Profile;
use redflow_ports::{FlowStore as _, StoredFlow};
use redflow_store::FlowFile;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const SECRET: &str = "sk-a-secret-of-some-length";

fn v2(request: Request) -> Request {
    request.header("node-red-api-version", "v2")
}

async fn get(sidecar: &TestSidecar) -> Value {
    v2(sidecar.request("GET", "/flows").token(TOKEN)).send().await.ok(200)
}

async fn deploy(sidecar: &TestSidecar, body: Value) -> Reply {
    v2(sidecar.request("POST", "/flows").token(TOKEN)).json(body).send().await
}

async fn inject(sidecar: &TestSidecar, id: &str) -> Reply {
    sidecar.request("POST", &format!("/inject/{id}")).token(TOKEN).send().await
}

fn renamed(label: &str) -> Value {
    let mut nodes = plain_flow();
    nodes[0]["label"] = json!(label);
    nodes
}

/// The stored flow.
fn stored_flow(sidecar: &TestSidecar) -> StoredFlow {
    let dir = sidecar.dir.path();
    FlowFile::new(dir.join("flows.json"), dir.to_owned()).load().unwrap().unwrap()
}

#[tokio::test]
async fn serves_the_flow_in_two_api_versions() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let ask =
        |version: &str| sidecar.request("GET", "/flows").token(TOKEN).header("node-red-api-version", version);
    assert_eq!(sidecar.get("/flows").await.ok(200), plain_flow());
    assert_eq!(ask("v1").send().await.ok(200), plain_flow());
    let revision = sidecar.revision().await;
    let response = ask("v2").send().await;
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(response.ok(200), json!({"flows": plain_flow(), "rev": revision}));
    for version in ["v3", "", "V2", "2", "v1, v2", "v2\r\nnode-red-api-version: v2"] {
        ask(version).send().await.refused(400, "invalid_api_version");
        let posted = sidecar.request("POST", "/flows").token(TOKEN).header("node-red-api-version", version);
        posted.json(json!([])).send().await.refused(400, "invalid_api_version");
    }
    assert_eq!(sidecar.get("/flows/state").await.ok(200), json!({"state": "start"}));
}

#[tokio::test]
async fn responds_to_every_deployment_type_as_node_red_does() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let first = sidecar.request("POST", "/flows").token(TOKEN).json(renamed("v1")).send().await;
    assert_eq!((first.status, first.body.as_slice()), (204, &b""[..]));
    assert_eq!(sidecar.get("/flows").await.ok(200), renamed("v1"));
    for kind in ["full", "nodes", "flows"] {
        let made = json!({"flows": renamed(kind), "rev": sidecar.revision().await});
        let request =
            v2(sidecar.request("POST", "/flows").token(TOKEN)).header("node-red-deployment-type", kind);
        let answer = request.json(made).send().await.ok(200);
        assert_eq!(answer, json!({"rev": sidecar.revision().await}));
        assert_eq!(get(&sidecar).await["flows"], renamed(kind));
    }
    for kind in ["", "FULL", "all", "full, nodes", "full\r\nnode-red-deployment-type: full"] {
        let request =
            v2(sidecar.request("POST", "/flows").token(TOKEN)).header("node-red-deployment-type", kind);
        request.json(json!({"flows": []})).send().await.refused(400, "REQUEST_INVALID");
    }
    assert_eq!(get(&sidecar).await["flows"], renamed("flows"));
}

#[tokio::test]
async fn another_revision_is_a_conflict_and_no_revision_replaces_any_flow() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    for wrong in
        [json!("0f"), json!(""), json!(null), json!(5), json!({}), json!(sidecar.revision().await + " ")]
    {
        let answer = deploy(&sidecar, json!({"flows": [], "rev": wrong})).await;
        answer.refused(409, "version_mismatch");
    }
    assert_eq!(get(&sidecar).await["flows"], plain_flow());
    deploy(&sidecar, json!({"flows": renamed("forced")})).await.ok(200);
    assert_eq!(get(&sidecar).await["flows"], renamed("forced"));
}

#[tokio::test]
async fn one_of_concurrent_deploys_from_one_revision_wins() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let revision = sidecar.revision().await;
    let labels: Vec<String> = (0..8).map(|n| format!("tab {n}")).collect();
    let all = labels.iter().map(|label| deploy(&sidecar, json!({"flows": renamed(label), "rev": revision})));
    let answers = futures::future::join_all(all).await;
    let winners: Vec<usize> = (0..8).filter(|n| answers[*n].status == 200).collect();
    assert_eq!(winners.len(), 1, "{answers:?}");
    for (n, answer) in answers.iter().enumerate().filter(|(n, _)| *n != winners[0]) {
        assert_eq!(answer.status, 409, "{n}");
    }
    assert_eq!(get(&sidecar).await["flows"], renamed(&labels[winners[0]]));
}

#[tokio::test]
async fn reload_takes_the_stored_flow_and_ignores_the_body() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let file = sidecar.dir.path().join("flows.json");
    let reload =
        || sidecar.request("POST", "/flows").token(TOKEN).header("node-red-deployment-type", "reload");
    std::fs::write(&file, renamed("by hand").to_string()).unwrap();
    let answer = v2(reload()).send().await.ok(200);
    assert_eq!(answer, json!({"rev": sidecar.revision().await}));
    assert_eq!(get(&sidecar).await["flows"], renamed("by hand"));
    std::fs::write(&file, renamed("again").to_string()).unwrap();
    assert_eq!(reload().json(json!({"rev": "wrong", "flows": 5})).send().await.status, 204);
    assert_eq!(get(&sidecar).await["flows"], renamed("again"));
    // An invalid file changes nothing.
    std::fs::write(&file, "<html>").unwrap();
    let answer = v2(reload()).send().await;
    answer.refused(400, "FLOW_REFUSED");
    assert_eq!(answer.json()["report"]["diagnostics"][0]["code"], "FLOW_NOT_JSON");
    assert_eq!(get(&sidecar).await["flows"], renamed("again"));
    assert_eq!(std::fs::read(&file).unwrap(), b"<html>");
}

#[tokio::test]
async fn an_agent_with_errors_is_refused_and_the_rest_runs() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let mut nodes = plain_flow();
    nodes.as_array_mut().unwrap().extend([
        json!({"id": "bad", "type": "agent-core", "z": "tab", "maxIterations": "many", "wires": []}),
        json!({"id": "ask bad", "type": "inject", "z": "tab", "props": [{"p": "payload"}], "wires": [["bad"]]}),
    ]);
    // The strict route refuses the whole flow.
    let revision = sidecar.revision().await;
    let strict = sidecar.post("/api/deployment", json!({"flows": nodes, "revision": revision})).await;
    strict.refused(422, "FLOW_REFUSED");
    deploy(&sidecar, json!({"flows": nodes, "rev": revision})).await.ok(200);
    let agents = sidecar.get("/api/flows").await.ok(200)["flows"][0]["agents"].clone();
    let ready: Vec<_> = agents.as_array().unwrap().iter().map(|agent| agent["ready"].clone()).collect();
    assert_eq!(ready, [true, false], "{agents:#}");
    assert_eq!(sidecar.run(json!({"node": "ask"})).await["runs"][0]["status"], "completed");
    // The node fires. The error of its agent leaves the agent as a result.
    assert_eq!(inject(&sidecar, "ask%20bad").await.status, 200);
}

/// The UI sends deleted wires again.
#[tokio::test]
async fn reports_a_forbidden_wire_with_both_ends_and_its_port() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let mut nodes = plain_flow();
    nodes[2]["wires"] = json!([["model", "result"], ["calculator", "gone"], [], ["result"], []]);
    deploy(&sidecar, json!({"flows": nodes, "rev": sidecar.revision().await})).await.ok(200);
    assert_eq!(get(&sidecar).await["flows"], nodes);
    let problems = sidecar.get("/api/flows").await.ok(200)["flows"][0]["agents"][0]["problems"].clone();
    let found: BTreeSet<String> = problems
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| {
            let end = |end: &str| problem[end]["id"].as_str().unwrap_or("-").to_owned();
            format!("{} {}:{} {}", problem["code"], end("node"), problem["port"], end("target"))
        })
        .collect();
    // A missing node has no more than its id.
    let expected = ["\"EDGE_KIND_MISMATCH\" agent:0 result", "\"EDGE_TARGET_MISSING\" agent:1 -"];
    assert_eq!(found, expected.into_iter().map(str::to_owned).collect());
    assert!(problems.to_string().contains("gone"), "{problems:#}");
}

#[tokio::test]
async fn stores_credentials_and_never_returns_them() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let mut nodes = flow(json!([]), &[]);
    nodes[3] = json!({"id": "model", "type": "openai-model", "z": "tab", "model": "gpt-4o",
                      "baseURL": "http://127.0.0.1:9/v1", "wires": [["agent"]]});
    let expected = nodes.clone();
    let stored =
        |name: &str| stored_flow(&sidecar).credentials.get("model").and_then(|own| own.get(name).cloned());
    // In the node, in both versions; then as a mask, which changes nothing; then separate from the nodes.
    nodes[3]["credentials"] = json!({"apiKey": SECRET});
    let first = sidecar.request("POST", "/flows").token(TOKEN).json(nodes.clone()).send().await;
    assert_eq!(first.status, 204);
    assert_eq!(stored("apiKey"), Some(json!(SECRET)));
    nodes[3]["credentials"] = json!({"apiKey": "__PWRD__", "organization": SECRET});
    deploy(&sidecar, json!({"flows": nodes})).await.ok(200);
    assert_eq!((stored("apiKey"), stored("organization")), (Some(json!(SECRET)), Some(json!(SECRET))));
    let other = format!("{SECRET}-2");
    let separate = json!({"model": {"apiKey": other, "organization": ""}, "unknown": {"apiKey": "x"}});
    deploy(&sidecar, json!({"flows": expected, "credentials": separate})).await.ok(200);
    assert_eq!((stored("apiKey"), stored("organization")), (Some(json!(other)), None));
    deploy(&sidecar, json!({"flows": expected, "credentials": null})).await.ok(200);
    assert_eq!(stored("apiKey"), Some(json!(other)));
    // They stay when a tab is changed.
    let mut tab = sidecar.get("/flow/tab").await.ok(200);
    tab["label"] = json!("Renamed");
    sidecar.request("PUT", "/flow/tab").token(TOKEN).json(tab).send().await.ok(200);
    assert_eq!(stored("apiKey"), Some(json!(other)));
    // Invalid credentials are refused and not quoted.
    for odd in [json!(SECRET), json!([SECRET]), json!({"$": SECRET})] {
        let answer = deploy(&sidecar, json!({"flows": expected, "credentials": odd})).await;
        answer.refused(400, "BODY_INVALID");
        assert!(!String::from_utf8_lossy(&answer.body).contains(SECRET));
    }
    let answer = deploy(&sidecar, json!({"flows": expected, "credentials": {"model": SECRET}})).await;
    answer.refused(400, "FLOW_REFUSED");
    assert!(!String::from_utf8_lossy(&answer.body).contains(SECRET));
    for path in
        ["/flows", "/flow/tab", "/flow/global", "/nodes", "/settings", "/diagnostics", "/api/deployment"]
    {
        let answer = sidecar.get(path).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(
            answer.status == 200 && !text.contains(SECRET) && !text.contains("credentials"),
            "{path}: {text}"
        );
    }
}

#[tokio::test]
async fn accepts_and_returns_flows_as_redflow_writes_them() {
    let tab = json!({"id": "tab", "type": "tab", "label": "", "wires": [], "x": 0, "y": 0, "projectId": null,
                     "disabled": false, "info": ""});
    let fresh = json!({"id": "agent-core-1766000000000", "type": "agent-core", "name": "", "z": "tab"});
    let flows = [
        ("nothing", json!([])),
        ("a fresh agent", json!([tab, fresh])),
        ("no tab", json!([{"id": "n", "type": "debug", "z": "nowhere", "x": 1, "y": 2, "wires": []}])),
        ("no wires, no place", json!([tab, {"id": "n", "type": "inject", "z": "tab"}])),
        (
            "odd ids",
            json!([tab, {"id": "model.azure.openai-17 / \u{e9}\u{1f600}", "type": "debug", "z": "tab"}]),
        ),
        (
            "unknown types and properties",
            json!([tab, {"id": "n", "type": "ui_chart", "z": "tab", "any": {"thing": [1.5]}}]),
        ),
        (
            "wires to nowhere",
            json!([tab, {"id": "n", "type": "inject", "z": "tab", "wires": [["gone"], []]}]),
        ),
        (
            "an odd position",
            json!([tab, {"id": "n", "type": "debug", "z": "tab", "x": 447.779_479_326_186_8, "y": -1e-9}]),
        ),
    ];
    for profile in [Profile::Strict, Profile::Redflow] {
        let mut setup = Setup::default();
        setup.settings.profile = profile;
        let sidecar = setup.start(Some(plain_flow())).await;
        for (what, nodes) in &flows {
            let answer = deploy(&sidecar, json!({"flows": nodes, "rev": sidecar.revision().await})).await;
            assert_eq!(answer.status, 200, "{what}: {answer:?}");
            assert_eq!(get(&sidecar).await["flows"], *nodes, "{what}");
        }
    }
}

#[tokio::test]
async fn refuses_an_invalid_flow_with_a_code_and_changes_nothing() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let node = json!({"id": "n", "type": "debug"});
    let deep = (0..100).fold(json!(1), |value, _| json!([value]));
    let bodies = [
        (json!({"flows": [node, node]}), "FLOW_REFUSED", "DUPLICATE_ID"),
        (json!({"flows": [{"type": "debug"}]}), "FLOW_REFUSED", "DUPLICATE_ID"),
        (json!({"flows": [{"id": "n"}]}), "FLOW_REFUSED", "FLOW_SHAPE_UNKNOWN"),
        (json!({"flows": ["n"]}), "FLOW_REFUSED", "FLOW_SHAPE_UNKNOWN"),
        (json!({"flows": [{"id": "n", "type": "x", "deep": deep}]}), "BODY_INVALID", ""),
        (json!({"flows": {"nodes": []}}), "BODY_INVALID", ""),
        (json!({"flow": {"nodes": []}}), "BODY_INVALID", ""),
        (json!({}), "BODY_INVALID", ""),
        (json!([]), "BODY_INVALID", ""),
        (json!("text"), "BODY_INVALID", ""),
        (json!(null), "BODY_INVALID", ""),
    ];
    for (body, code, diagnostic) in bodies {
        let answer = deploy(&sidecar, body.clone()).await;
        answer.refused(400, code);
        let found = answer.json()["report"]["diagnostics"][0]["code"].clone();
        assert_eq!(found.as_str().unwrap_or_default(), diagnostic, "{body}");
    }
    for body in [json!({"flows": []}), json!({}), json!(5)] {
        let v1 = sidecar.request("POST", "/flows").token(TOKEN).json(body).send().await;
        v1.refused(400, "BODY_INVALID");
    }
    let raw = |kind: &'static str, text: &str| {
        sidecar.request("POST", "/flows").token(TOKEN).header("content-type", kind).bytes(text.as_bytes())
    };
    raw("application/json", r#"[{"id":"a","id":"b","type":"x"}]"#).send().await.refused(400, "BODY_INVALID");
    raw("application/json", "<html>no</html>").send().await.refused(400, "BODY_INVALID");
    raw("application/json", "[").send().await.refused(400, "BODY_INVALID");
    raw("application/json", "").send().await.refused(400, "BODY_INVALID");
    raw("text/html", "[]").send().await.refused(415, "CONTENT_TYPE_REFUSED");
    raw("application/x-www-form-urlencoded", "[]").send().await.refused(415, "CONTENT_TYPE_REFUSED");
    let huge = format!(r#"["{}"]"#, "x".repeat(41 * 1024 * 1024));
    raw("application/json", &huge).send().await.refused(413, "BODY_TOO_LARGE");
    assert_eq!(get(&sidecar).await["flows"], plain_flow());
    assert_eq!(sidecar.run(json!({"payload": "?"})).await["runs"][0]["status"], "completed");
}

#[tokio::test]
async fn returns_five_thousand_nodes_unchanged() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let mut nodes = plain_flow();
    nodes.as_array_mut().unwrap().extend((0..5000).map(|n| {
        json!({"id": format!("node {n}/\u{e9}.{n}"), "type": if n % 2 == 0 { "inject" } else { "debug" }, "z": "tab",
               "name": format!("Node {n}"), "x": n, "y": f64::from(n) / 3.0 + 0.25, "wires": [[format!("node {}/\u{e9}.{}", n + 1, n + 1)]]})
    }));
    nodes.as_array_mut().unwrap().last_mut().unwrap()["wires"] = json!([]);
    deploy(&sidecar, json!({"flows": nodes, "rev": sidecar.revision().await})).await.ok(200);
    assert!(get(&sidecar).await["flows"] == nodes, "not the same");
    assert_eq!(inject(&sidecar, "node%204998%2F%C3%A9.4998").await.status, 200);
    let dir = sidecar.stop().await;
    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    assert!(get(&sidecar).await["flows"] == nodes, "not the same");
}

#[tokio::test]
async fn fires_inject_nodes_only() {
    let mut nodes = plain_flow();
    nodes[1]["id"] = json!("ask.me / \u{fc}");
    nodes.as_array_mut().unwrap().extend([
        json!({"id": "off tab", "type": "tab", "disabled": true}),
        json!({"id": "on an off tab", "type": "inject", "z": "off tab", "wires": [["agent"]]}),
        json!({"id": "off", "type": "inject", "z": "tab", "d": true, "wires": [["agent"]]}),
        json!({"id": "alone", "type": "inject", "z": "tab", "wires": []}),
    ]);
    let sidecar = TestSidecar::start(nodes).await;
    let fired = inject(&sidecar, "ask.me%20%2F%20%C3%BC").await;
    assert_eq!((fired.status, fired.body.as_slice()), (200, &b"OK"[..]));
    assert_eq!(fired.header("content-type"), Some("text/plain; charset=utf-8"));
    // The run is stored before the response.
    assert_eq!(sidecar.get("/api/runs").await.ok(200)["runs"].as_array().unwrap().len(), 1);
    assert_eq!(inject(&sidecar, "alone").await.status, 200);
    // With a content type and no body, as the UI sends it, and with an empty object.
    let announced =
        sidecar.request("POST", "/inject/alone").token(TOKEN).header("content-type", "application/json");
    assert_eq!(announced.send().await.status, 200);
    assert_eq!(sidecar.post("/inject/alone", json!({})).await.status, 200);
    for id in ["unknown", "agent", "model", "result", "tab", "off", "on%20an%20off%20tab", "%2e%2e", "ask.me"]
    {
        inject(&sidecar, id).await.refused(404, "NOT_FOUND");
    }
    inject(&sidecar, "%ff").await.refused(400, "REQUEST_INVALID");
    sidecar.request("POST", "/admin/inject/alone").token(TOKEN).send().await.refused(404, "ROUTE_UNKNOWN");
    for body in [json!({"__user_inject_props__": [{"p": "payload"}]}), json!([1]), json!("x")] {
        sidecar.post("/inject/alone", body).await.refused(400, "BODY_INVALID");
    }
    eventually("the run is over", || async {
        let runs = sidecar.get("/api/runs?status=completed").await.ok(200)["runs"].clone();
        (runs.as_array().unwrap().len() == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn lists_the_node_types_of_this_build() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let sets = sidecar.get("/nodes").await.ok(200);
    let sets = sets.as_array().unwrap();
    let of = |id: &str| sets.iter().find(|set| set["id"] == id).cloned().unwrap_or_default();
    let version = sidecar.get("/health").await.ok(200)["version"].clone();
    assert_eq!(
        of("@redflow/runtime/agent-core"),
        json!({"id": "@redflow/runtime/agent-core", "name": "agent-core", "types": ["agent-core"], "enabled": true,
               "local": false, "user": false, "module": "@redflow/runtime", "version": version})
    );
    assert_eq!(of("node-red/inject")["types"], json!(["inject"]));
    assert_eq!(of("node-red/link")["types"], json!(["link in", "link out"]));
    assert_eq!(of("@redflow/runtime/model.azure.openai")["types"], json!(["model.azure.openai"]));
    let types: Vec<&str> = sets
        .iter()
        .flat_map(|set| set["types"].as_array().unwrap())
        .map(|name| name.as_str().unwrap())
        .collect();
    assert_eq!(types.len(), types.iter().collect::<BTreeSet<_>>().len(), "{types:?}");
    for never in ["function", "tab", "subflow", "knowledge-base-tool", "model.*", "tool.*", "*"] {
        assert!(!types.contains(&never), "{never}");
    }
}

#[tokio::test]
async fn settings_and_diagnostics_show_nothing_of_the_machine() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let settings = sidecar.get("/settings").await.ok(200);
    assert_eq!((settings["httpNodeRoot"].clone(), settings["version"].clone()), (json!("/"), json!("4.1.0")));
    assert_eq!(settings["redflow"]["version"], sidecar.get("/health").await.ok(200)["version"]);
    assert_eq!(settings["externalModules"]["palette"]["allowInstall"], false);
    let diagnostics = sidecar.get("/diagnostics").await.ok(200);
    assert_eq!(
        (diagnostics["report"].clone(), diagnostics["scope"].clone()),
        (json!("diagnostics"), json!("basic"))
    );
    assert_eq!(diagnostics["runtime"]["flows"], json!({"state": "start", "started": true}));
    assert_eq!(diagnostics["runtime"]["version"], settings["version"]);
    assert_eq!(diagnostics["runtime"]["modules"]["node-red"], settings["version"]);
    assert!(diagnostics["time"]["utc"].as_str().unwrap().ends_with('Z'), "{diagnostics}");
    let text = format!("{settings}{diagnostics}");
    let dir = sidecar.dir.path().to_str().unwrap();
    for never in [dir, TOKEN, env!("CARGO_MANIFEST_DIR"), "hostname"] {
        assert!(!text.contains(never), "{never}: {text}");
    }
}

#[tokio::test]
async fn callers_without_a_token_get_nothing() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let routes = [
        ("GET", "/flows"),
        ("POST", "/flows"),
        ("GET", "/flows/state"),
        ("GET", "/flow/tab"),
        ("POST", "/flow"),
        ("PUT", "/flow/tab"),
        ("DELETE", "/flow/tab"),
        ("GET", "/nodes"),
        ("GET", "/settings"),
        ("GET", "/diagnostics"),
        ("POST", "/inject/ask"),
    ];
    for (method, path) in routes {
        sidecar.request(method, path).json(json!([])).send().await.refused(401, "UNAUTHORIZED");
    }
    assert_eq!(sidecar.get("/flows").await.ok(200), plain_flow());
    assert_eq!(sidecar.get("/api/runs").await.ok(200)["runs"], json!([]));
}
