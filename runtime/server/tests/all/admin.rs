//! Node-RED's Admin API: the whole flow, what this is, and inject nodes.

use crate::client::{Reply, Request};
use crate::kit::{Setup, TOKEN, World, eventually, flow, plain};
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

async fn get(world: &World) -> Value {
    v2(world.request("GET", "/flows").token(TOKEN)).send().await.ok(200)
}

async fn deploy(world: &World, body: Value) -> Reply {
    v2(world.request("POST", "/flows").token(TOKEN)).json(body).send().await
}

async fn inject(world: &World, id: &str) -> Reply {
    world.request("POST", &format!("/inject/{id}")).token(TOKEN).send().await
}

fn renamed(label: &str) -> Value {
    let mut nodes = plain();
    nodes[0]["label"] = json!(label);
    nodes
}

/// What is on the shelf.
fn shelved(world: &World) -> StoredFlow {
    let dir = world.dir.path();
    FlowFile::new(dir.join("flows.json"), dir.to_owned()).load().unwrap().unwrap()
}

#[tokio::test]
async fn the_flow_comes_in_both_versions_and_in_no_third() {
    let world = World::with(plain()).await;
    let ask =
        |version: &str| world.request("GET", "/flows").token(TOKEN).header("node-red-api-version", version);
    assert_eq!(world.get("/flows").await.ok(200), plain());
    assert_eq!(ask("v1").send().await.ok(200), plain());
    let revision = world.revision().await;
    let told = ask("v2").send().await;
    assert_eq!(told.header("content-type"), Some("application/json"));
    assert_eq!(told.ok(200), json!({"flows": plain(), "rev": revision}));
    for version in ["v3", "", "V2", "2", "v1, v2", "v2\r\nnode-red-api-version: v2"] {
        ask(version).send().await.refused(400, "invalid_api_version");
        let posted = world.request("POST", "/flows").token(TOKEN).header("node-red-api-version", version);
        posted.json(json!([])).send().await.refused(400, "invalid_api_version");
    }
    assert_eq!(world.get("/flows/state").await.ok(200), json!({"state": "start"}));
}

#[tokio::test]
async fn a_deploy_is_answered_as_node_red_does_whatever_its_type() {
    let world = World::with(plain()).await;
    let first = world.request("POST", "/flows").token(TOKEN).json(renamed("v1")).send().await;
    assert_eq!((first.status, first.body.as_slice()), (204, &b""[..]));
    assert_eq!(world.get("/flows").await.ok(200), renamed("v1"));
    for kind in ["full", "nodes", "flows"] {
        let made = json!({"flows": renamed(kind), "rev": world.revision().await});
        let request =
            v2(world.request("POST", "/flows").token(TOKEN)).header("node-red-deployment-type", kind);
        let answer = request.json(made).send().await.ok(200);
        assert_eq!(answer, json!({"rev": world.revision().await}));
        assert_eq!(get(&world).await["flows"], renamed(kind));
    }
    for kind in ["", "FULL", "all", "full, nodes", "full\r\nnode-red-deployment-type: full"] {
        let request =
            v2(world.request("POST", "/flows").token(TOKEN)).header("node-red-deployment-type", kind);
        request.json(json!({"flows": []})).send().await.refused(400, "REQUEST_INVALID");
    }
    assert_eq!(get(&world).await["flows"], renamed("flows"));
}

#[tokio::test]
async fn another_revision_is_a_conflict_and_none_is_force() {
    let world = World::with(plain()).await;
    for wrong in
        [json!("0f"), json!(""), json!(null), json!(5), json!({}), json!(world.revision().await + " ")]
    {
        let answer = deploy(&world, json!({"flows": [], "rev": wrong})).await;
        answer.refused(409, "version_mismatch");
    }
    assert_eq!(get(&world).await["flows"], plain());
    deploy(&world, json!({"flows": renamed("forced")})).await.ok(200);
    assert_eq!(get(&world).await["flows"], renamed("forced"));
}

#[tokio::test]
async fn of_two_deploys_from_the_same_revision_one_wins() {
    let world = World::with(plain()).await;
    let revision = world.revision().await;
    let labels: Vec<String> = (0..8).map(|n| format!("tab {n}")).collect();
    let all = labels.iter().map(|label| deploy(&world, json!({"flows": renamed(label), "rev": revision})));
    let answers = futures::future::join_all(all).await;
    let won: Vec<usize> = (0..8).filter(|n| answers[*n].status == 200).collect();
    assert_eq!(won.len(), 1, "{answers:?}");
    for (n, answer) in answers.iter().enumerate().filter(|(n, _)| *n != won[0]) {
        assert_eq!(answer.status, 409, "{n}");
    }
    assert_eq!(get(&world).await["flows"], renamed(&labels[won[0]]));
}

#[tokio::test]
async fn reload_takes_the_flow_from_the_shelf_and_ignores_the_body() {
    let world = World::with(plain()).await;
    let file = world.dir.path().join("flows.json");
    let reload = || world.request("POST", "/flows").token(TOKEN).header("node-red-deployment-type", "reload");
    std::fs::write(&file, renamed("by hand").to_string()).unwrap();
    let answer = v2(reload()).send().await.ok(200);
    assert_eq!(answer, json!({"rev": world.revision().await}));
    assert_eq!(get(&world).await["flows"], renamed("by hand"));
    std::fs::write(&file, renamed("again").to_string()).unwrap();
    assert_eq!(reload().json(json!({"rev": "wrong", "flows": 5})).send().await.status, 204);
    assert_eq!(get(&world).await["flows"], renamed("again"));
    // A file that is none changes nothing.
    std::fs::write(&file, "<html>").unwrap();
    let answer = v2(reload()).send().await;
    answer.refused(400, "FLOW_REFUSED");
    assert_eq!(answer.json()["report"]["diagnostics"][0]["code"], "FLOW_NOT_JSON");
    assert_eq!(get(&world).await["flows"], renamed("again"));
    assert_eq!(std::fs::read(&file).unwrap(), b"<html>");
}

#[tokio::test]
async fn an_agent_with_errors_is_refused_and_the_rest_runs() {
    let world = World::with(plain()).await;
    let mut nodes = plain();
    nodes.as_array_mut().unwrap().extend([
        json!({"id": "bad", "type": "agent-core", "z": "tab", "maxIterations": "many", "wires": []}),
        json!({"id": "ask bad", "type": "inject", "z": "tab", "props": [{"p": "payload"}], "wires": [["bad"]]}),
    ]);
    // The strict way refuses all of it.
    let revision = world.revision().await;
    let strict = world.post("/api/deployment", json!({"flows": nodes, "revision": revision})).await;
    strict.refused(422, "FLOW_REFUSED");
    deploy(&world, json!({"flows": nodes, "rev": revision})).await.ok(200);
    let agents = world.get("/api/flows").await.ok(200)["flows"][0]["agents"].clone();
    let ready: Vec<_> = agents.as_array().unwrap().iter().map(|agent| agent["ready"].clone()).collect();
    assert_eq!(ready, [true, false], "{agents:#}");
    assert_eq!(world.run(json!({"node": "ask"})).await["runs"][0]["status"], "completed");
    // It fires; that its agent is refused is told where answers go.
    assert_eq!(inject(&world, "ask%20bad").await.status, 200);
}

/// The UI posts wires again that were deleted.
#[tokio::test]
async fn a_wire_that_may_not_be_is_told_of_with_both_ends_and_its_port() {
    let world = World::with(plain()).await;
    let mut nodes = plain();
    nodes[2]["wires"] = json!([["model", "result"], ["calculator", "gone"], [], ["result"], []]);
    deploy(&world, json!({"flows": nodes, "rev": world.revision().await})).await.ok(200);
    assert_eq!(get(&world).await["flows"], nodes);
    let problems = world.get("/api/flows").await.ok(200)["flows"][0]["agents"][0]["problems"].clone();
    let told: BTreeSet<String> = problems
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| {
            let end = |end: &str| problem[end]["id"].as_str().unwrap_or("-").to_owned();
            format!("{} {}:{} {}", problem["code"], end("node"), problem["port"], end("target"))
        })
        .collect();
    // A node that is not there has no more than its id.
    let expected = ["\"EDGE_KIND_MISMATCH\" agent:0 result", "\"EDGE_TARGET_MISSING\" agent:1 -"];
    assert_eq!(told, expected.into_iter().map(str::to_owned).collect());
    assert!(problems.to_string().contains("gone"), "{problems:#}");
}

#[tokio::test]
async fn credentials_go_in_and_stay_in() {
    let world = World::with(plain()).await;
    let mut nodes = flow(json!([]), &[]);
    nodes[3] = json!({"id": "model", "type": "openai-model", "z": "tab", "model": "gpt-4o",
                      "baseURL": "http://127.0.0.1:9/v1", "wires": [["agent"]]});
    let expected = nodes.clone();
    let kept = |name: &str| shelved(&world).credentials.get("model").and_then(|own| own.get(name).cloned());
    // With the node, in either version; then the mask, which changes nothing; then beside the nodes.
    nodes[3]["credentials"] = json!({"apiKey": SECRET});
    let first = world.request("POST", "/flows").token(TOKEN).json(nodes.clone()).send().await;
    assert_eq!(first.status, 204);
    assert_eq!(kept("apiKey"), Some(json!(SECRET)));
    nodes[3]["credentials"] = json!({"apiKey": "__PWRD__", "organization": SECRET});
    deploy(&world, json!({"flows": nodes})).await.ok(200);
    assert_eq!((kept("apiKey"), kept("organization")), (Some(json!(SECRET)), Some(json!(SECRET))));
    let other = format!("{SECRET}-2");
    let beside = json!({"model": {"apiKey": other, "organization": ""}, "nobody": {"apiKey": "x"}});
    deploy(&world, json!({"flows": expected, "credentials": beside})).await.ok(200);
    assert_eq!((kept("apiKey"), kept("organization")), (Some(json!(other)), None));
    deploy(&world, json!({"flows": expected, "credentials": null})).await.ok(200);
    assert_eq!(kept("apiKey"), Some(json!(other)));
    // By way of a tab too, and they stay when a tab is changed.
    let mut tab = world.get("/flow/tab").await.ok(200);
    tab["label"] = json!("Renamed");
    world.request("PUT", "/flow/tab").token(TOKEN).json(tab).send().await.ok(200);
    assert_eq!(kept("apiKey"), Some(json!(other)));
    // What cannot be kept is refused, and not quoted.
    for odd in [json!(SECRET), json!([SECRET]), json!({"$": SECRET})] {
        let answer = deploy(&world, json!({"flows": expected, "credentials": odd})).await;
        answer.refused(400, "BODY_INVALID");
        assert!(!String::from_utf8_lossy(&answer.body).contains(SECRET));
    }
    let answer = deploy(&world, json!({"flows": expected, "credentials": {"model": SECRET}})).await;
    answer.refused(400, "FLOW_REFUSED");
    assert!(!String::from_utf8_lossy(&answer.body).contains(SECRET));
    for path in
        ["/flows", "/flow/tab", "/flow/global", "/nodes", "/settings", "/diagnostics", "/api/deployment"]
    {
        let answer = world.get(path).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(
            answer.status == 200 && !text.contains(SECRET) && !text.contains("credentials"),
            "{path}: {text}"
        );
    }
}

/// As the UI and its scripts write flows.
#[tokio::test]
async fn what_redflow_leaves_out_or_adds_is_taken_and_survives() {
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
        let world = setup.start(Some(plain())).await;
        for (what, nodes) in &flows {
            let answer = deploy(&world, json!({"flows": nodes, "rev": world.revision().await})).await;
            assert_eq!(answer.status, 200, "{what}: {answer:?}");
            assert_eq!(get(&world).await["flows"], *nodes, "{what}");
        }
    }
}

#[tokio::test]
async fn what_is_no_flow_is_refused_with_a_code_and_changes_nothing() {
    let world = World::with(plain()).await;
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
        let answer = deploy(&world, body.clone()).await;
        answer.refused(400, code);
        let found = answer.json()["report"]["diagnostics"][0]["code"].clone();
        assert_eq!(found.as_str().unwrap_or_default(), diagnostic, "{body}");
    }
    for body in [json!({"flows": []}), json!({}), json!(5)] {
        let v1 = world.request("POST", "/flows").token(TOKEN).json(body).send().await;
        v1.refused(400, "BODY_INVALID");
    }
    let raw = |kind: &'static str, text: &str| {
        world.request("POST", "/flows").token(TOKEN).header("content-type", kind).bytes(text.as_bytes())
    };
    raw("application/json", r#"[{"id":"a","id":"b","type":"x"}]"#).send().await.refused(400, "BODY_INVALID");
    raw("application/json", "<html>no</html>").send().await.refused(400, "BODY_INVALID");
    raw("application/json", "[").send().await.refused(400, "BODY_INVALID");
    raw("application/json", "").send().await.refused(400, "BODY_INVALID");
    raw("text/html", "[]").send().await.refused(415, "CONTENT_TYPE_REFUSED");
    raw("application/x-www-form-urlencoded", "[]").send().await.refused(415, "CONTENT_TYPE_REFUSED");
    let huge = format!(r#"["{}"]"#, "x".repeat(41 * 1024 * 1024));
    raw("application/json", &huge).send().await.refused(413, "BODY_TOO_LARGE");
    assert_eq!(get(&world).await["flows"], plain());
    assert_eq!(world.run(json!({"payload": "?"})).await["runs"][0]["status"], "completed");
}

#[tokio::test]
async fn five_thousand_nodes_come_back_as_they_went_in() {
    let world = World::with(plain()).await;
    let mut nodes = plain();
    nodes.as_array_mut().unwrap().extend((0..5000).map(|n| {
        json!({"id": format!("node {n}/\u{e9}.{n}"), "type": if n % 2 == 0 { "inject" } else { "debug" }, "z": "tab",
               "name": format!("Node {n}"), "x": n, "y": f64::from(n) / 3.0 + 0.25, "wires": [[format!("node {}/\u{e9}.{}", n + 1, n + 1)]]})
    }));
    nodes.as_array_mut().unwrap().last_mut().unwrap()["wires"] = json!([]);
    deploy(&world, json!({"flows": nodes, "rev": world.revision().await})).await.ok(200);
    assert!(get(&world).await["flows"] == nodes, "not the same");
    assert_eq!(inject(&world, "node%204998%2F%C3%A9.4998").await.status, 200);
    let dir = world.stop().await;
    let world = Setup { dir, ..Setup::default() }.start(None).await;
    assert!(get(&world).await["flows"] == nodes, "not the same");
}

#[tokio::test]
async fn an_inject_node_is_fired_and_nothing_else() {
    let mut nodes = plain();
    nodes[1]["id"] = json!("ask.me / \u{fc}");
    nodes.as_array_mut().unwrap().extend([
        json!({"id": "off tab", "type": "tab", "disabled": true}),
        json!({"id": "on an off tab", "type": "inject", "z": "off tab", "wires": [["agent"]]}),
        json!({"id": "off", "type": "inject", "z": "tab", "d": true, "wires": [["agent"]]}),
        json!({"id": "alone", "type": "inject", "z": "tab", "wires": []}),
    ]);
    let world = World::with(nodes).await;
    let fired = inject(&world, "ask.me%20%2F%20%C3%BC").await;
    assert_eq!((fired.status, fired.body.as_slice()), (200, &b"OK"[..]));
    assert_eq!(fired.header("content-type"), Some("text/plain; charset=utf-8"));
    // It is kept by the time it is answered.
    assert_eq!(world.get("/api/runs").await.ok(200)["runs"].as_array().unwrap().len(), 1);
    assert_eq!(inject(&world, "alone").await.status, 200);
    // As the UI sends it, and as others do.
    let announced =
        world.request("POST", "/inject/alone").token(TOKEN).header("content-type", "application/json");
    assert_eq!(announced.send().await.status, 200);
    assert_eq!(world.post("/inject/alone", json!({})).await.status, 200);
    for id in ["nobody", "agent", "model", "result", "tab", "off", "on%20an%20off%20tab", "%2e%2e", "ask.me"]
    {
        inject(&world, id).await.refused(404, "NOT_FOUND");
    }
    inject(&world, "%ff").await.refused(400, "REQUEST_INVALID");
    world.request("POST", "/admin/inject/alone").token(TOKEN).send().await.refused(404, "ROUTE_UNKNOWN");
    for body in [json!({"__user_inject_props__": [{"p": "payload"}]}), json!([1]), json!("x")] {
        world.post("/inject/alone", body).await.refused(400, "BODY_INVALID");
    }
    eventually("the run is over", || async {
        let runs = world.get("/api/runs?status=completed").await.ok(200)["runs"].clone();
        (runs.as_array().unwrap().len() == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn node_sets_are_those_this_build_runs() {
    let world = World::with(plain()).await;
    let sets = world.get("/nodes").await.ok(200);
    let sets = sets.as_array().unwrap();
    let of = |id: &str| sets.iter().find(|set| set["id"] == id).cloned().unwrap_or_default();
    let version = world.get("/health").await.ok(200)["version"].clone();
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
    for never in ["function", "tab", "subflow", "http-request-tool", "model.*", "tool.*", "*"] {
        assert!(!types.contains(&never), "{never}");
    }
}

#[tokio::test]
async fn settings_and_diagnostics_say_what_is_so_and_nothing_of_the_machine() {
    let world = World::with(plain()).await;
    let settings = world.get("/settings").await.ok(200);
    assert_eq!((settings["httpNodeRoot"].clone(), settings["version"].clone()), (json!("/"), json!("4.1.0")));
    assert_eq!(settings["redflow"]["version"], world.get("/health").await.ok(200)["version"]);
    assert_eq!(settings["externalModules"]["palette"]["allowInstall"], false);
    let told = world.get("/diagnostics").await.ok(200);
    assert_eq!((told["report"].clone(), told["scope"].clone()), (json!("diagnostics"), json!("basic")));
    assert_eq!(told["runtime"]["flows"], json!({"state": "start", "started": true}));
    assert_eq!(told["runtime"]["version"], settings["version"]);
    assert_eq!(told["runtime"]["modules"]["node-red"], settings["version"]);
    assert!(told["time"]["utc"].as_str().unwrap().ends_with('Z'), "{told}");
    let text = format!("{settings}{told}");
    let dir = world.dir.path().to_str().unwrap();
    for never in [dir, TOKEN, env!("CARGO_MANIFEST_DIR"), "hostname"] {
        assert!(!text.contains(never), "{never}: {text}");
    }
}

#[tokio::test]
async fn strangers_get_nothing() {
    let world = World::with(plain()).await;
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
        world.request(method, path).json(json!([])).send().await.refused(401, "UNAUTHORIZED");
    }
    assert_eq!(world.get("/flows").await.ok(200), plain());
    assert_eq!(world.get("/api/runs").await.ok(200)["runs"], json!([]));
}
