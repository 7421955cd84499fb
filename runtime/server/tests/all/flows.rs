//! Flows: deploys, refusals, concurrent deploys and storage.

use crate::kit::{Setup, TestSidecar, flow, plain_flow, tool_flow};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

#[tokio::test]
async fn deploys_lists_and_stores_a_flow() {
    let sidecar = Setup::default().start(None).await;
    let empty = sidecar.get("/api/flows").await.ok(200);
    assert_eq!(empty["flows"], json!([]));
    // The first one needs no revision.
    let first = sidecar.post("/api/deployment", json!({"flows": plain_flow()})).await.ok(200);
    assert_eq!(first["report"]["ok"], true);
    let list = sidecar.get("/api/flows").await.ok(200);
    assert_eq!(list["revision"], first["revision"]);
    assert_eq!(list["flows"][0]["label"], "Home");
    assert_eq!(list["flows"][0]["nodes"], 5);
    assert_eq!(list["flows"][0]["agents"][0]["node"]["name"], "Counting");
    assert_eq!(list["flows"][0]["agents"][0]["ready"], true);
    let whole = sidecar.get("/api/deployment").await.ok(200);
    assert_eq!(whole, json!({"revision": first["revision"], "flows": plain_flow()}));
    let one = sidecar.get("/api/flows/tab").await.ok(200);
    assert_eq!(one["flows"].as_array().unwrap().len(), 6);
    assert_eq!(one["flows"][0]["id"], "tab");
    sidecar.get("/api/flows/other").await.refused(404, "NOT_FOUND");
    sidecar.get("/api/flows/agent").await.refused(404, "NOT_FOUND");

    let dir = sidecar.stop().await;
    let restarted = Setup { dir, ..Setup::default() }.start(None).await;
    assert_eq!(restarted.get("/api/deployment").await.ok(200), whole);
    assert_eq!(restarted.run(json!({"payload": "?"})).await["runs"][0]["result"]["payload"], "42");
}

// SECURITY: deploy-race
#[tokio::test]
async fn a_deploy_must_name_its_base_revision() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let before = sidecar.revision().await;
    let other = tool_flow("calculator-tool");
    for body in [
        json!({"flows": other}),
        json!({"flows": other, "revision": "from the past"}),
        json!({"flows": other, "revision": ""}),
    ] {
        let answer = sidecar.post("/api/deployment", body).await;
        answer.refused(409, "REVISION_CONFLICT");
        assert_eq!(answer.json()["revision"], Value::from(before.clone()));
    }
    let after = sidecar.post("/api/deployment", json!({"flows": other, "revision": before})).await.ok(200);
    assert_ne!(after["revision"], Value::from(before.clone()));
    sidecar
        .post("/api/deployment", json!({"flows": plain_flow(), "revision": before}))
        .await
        .refused(409, "REVISION_CONFLICT");
    let forced = sidecar.post("/api/deployment", json!({"flows": plain_flow(), "force": true})).await.ok(200);
    assert_eq!(forced["revision"], Value::from(before));
}

/// Other programs write the keys of a node in another order.
#[tokio::test]
async fn the_order_of_keys_does_not_change_the_revision() {
    fn reversed(value: Value) -> Value {
        match value {
            Value::Object(map) => map.into_iter().rev().map(|(key, value)| (key, reversed(value))).collect(),
            Value::Array(items) => items.into_iter().map(reversed).collect(),
            other => other,
        }
    }
    let sidecar = TestSidecar::start(plain_flow()).await;
    let before = sidecar.revision().await;
    let other = reversed(plain_flow());
    assert_ne!(other.to_string(), plain_flow().to_string());
    let after = sidecar.post("/api/deployment", json!({"flows": other, "revision": before})).await.ok(200);
    assert_eq!(after["revision"], Value::from(before));
}

// SECURITY: deploy-race
#[tokio::test]
async fn one_of_concurrent_deploys_wins() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let revision = sidecar.revision().await;
    let deploy = |name: usize| {
        let mut nodes = plain_flow();
        nodes[0]["label"] = json!(format!("Home {name}"));
        sidecar.post("/api/deployment", json!({"flows": nodes, "revision": revision}))
    };
    let answers = futures::future::join_all((0..8).map(deploy)).await;
    let winners: Vec<_> = answers.iter().filter(|answer| answer.status == 200).collect();
    assert_eq!(winners.len(), 1);
    assert_eq!(sidecar.revision().await, winners[0].json()["revision"]);
    assert!(answers.iter().all(|answer| answer.status == 200 || answer.code() == "REVISION_CONFLICT"));
}

#[tokio::test]
async fn refuses_a_flow_with_all_its_errors_and_changes_nothing() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let revision = sidecar.revision().await;
    let mut bad = plain_flow();
    bad[2]["maxIterations"] = json!("many");
    bad[2]["wires"] = json!([[], [], [], ["result"], []]);
    bad[3]["wires"] = json!([]);
    let answer = sidecar.post("/api/deployment", json!({"flows": bad, "revision": revision})).await;
    answer.refused(422, "FLOW_REFUSED");
    let report = &answer.json()["report"];
    let codes: Vec<&str> =
        report["diagnostics"].as_array().unwrap().iter().map(|one| one["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"MODEL_MISSING") && codes.contains(&"CONFIG_INVALID"), "{codes:?}");
    let checked = sidecar.post("/api/flows/check", json!({"flows": bad})).await.ok(200);
    assert_eq!(checked, *report);
    for document in [json!(5), json!({"a": 1}), json!([{"id": "x"}])] {
        let body = json!({"flows": document, "revision": revision});
        sidecar.post("/api/deployment", body).await.refused(422, "FLOW_REFUSED");
    }
    assert_eq!(sidecar.revision().await, revision);
    assert_eq!(sidecar.run(json!({"payload": "?"})).await["runs"][0]["status"], "completed");
}

#[tokio::test]
async fn loads_a_file_and_refuses_its_bad_agent() {
    let mut nodes = plain_flow();
    nodes[2]["maxIterations"] = json!("many");
    let sidecar = TestSidecar::start(nodes).await;
    let agent = &sidecar.get("/api/flows").await.ok(200)["flows"][0]["agents"][0];
    assert_eq!(agent["ready"], false);
    assert_eq!(agent["problems"][0]["code"], "CONFIG_INVALID");
    let started = sidecar.post("/api/runs", json!({"payload": "?"})).await.ok(202);
    assert_eq!(started["runs"][0]["refused"]["code"], "CONFIG_INVALID");
}

#[tokio::test]
async fn serves_a_tab_whose_id_is_a_route() {
    let sidecar = TestSidecar::start(json!([{"id": "check", "type": "tab", "label": "Odd"}])).await;
    assert_eq!(sidecar.get("/api/flows/check").await.ok(200)["flows"][0]["label"], "Odd");
}

#[tokio::test]
async fn lists_agents_without_a_tab() {
    // As in an export of some nodes, and without any tab.
    for (z, nodes) in [(json!("tab"), 5), (json!(null), 0)] {
        let mut some = plain_flow().as_array().unwrap()[1..].to_vec();
        for node in &mut some {
            node["z"] = z.clone();
        }
        let sidecar = TestSidecar::start(Value::from(some)).await;
        let flows = sidecar.get("/api/flows").await.ok(200)["flows"].clone();
        assert_eq!(flows.as_array().unwrap().len(), 1, "{flows}");
        assert_eq!(
            (flows[0]["id"].clone(), flows[0]["nodes"].clone()),
            (json!(z.as_str().unwrap_or("")), json!(nodes))
        );
        assert_eq!(flows[0]["agents"][0]["node"]["id"], "agent");
    }
}

#[tokio::test]
async fn checks_with_a_given_profile() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let mut fresh = plain_flow();
    fresh[2].as_object_mut().unwrap().remove("maxIterations");
    let strict = sidecar.post("/api/flows/check", json!({"flows": fresh})).await.ok(200);
    let mild = sidecar.post("/api/flows/check", json!({"flows": fresh, "profile": "redflow"})).await.ok(200);
    assert_eq!((strict["ok"].clone(), mild["ok"].clone()), (json!(false), json!(true)));
}

#[tokio::test]
async fn draws_the_active_flow_by_tabs() {
    let mut flow = plain_flow();
    flow[3]["x"] = json!(200);
    flow[3]["y"] = json!(80);
    let nodes = flow.as_array_mut().unwrap();
    nodes.push(json!({"id": "second", "type": "tab", "label": "Second"}));
    nodes.push(
        json!({"id": "alone", "type": "agent-core", "z": "second", "strategy": "react", "maxIterations": 5,
        "allowedTools": ["sums"], "stopConditions": [], "debug": false, "wires": [["key"], ["sums"], [], [], []]}),
    );
    nodes.push(
        json!({"id": "sums", "type": "calculator-tool", "z": "second", "toolName": "sums", "wires": [["alone"]]}),
    );
    nodes.push(
        json!({"id": "key", "type": "openai-model", "z": "second", "model": "gpt", "wires": [["alone"]]}),
    );
    let sidecar = TestSidecar::start(flow).await;
    let graph = sidecar.get("/api/flows/graph").await.ok(200);
    let tabs: Vec<(&Value, &Value)> =
        graph["tabs"].as_array().unwrap().iter().map(|tab| (&tab["id"], &tab["isDrawn"])).collect();
    assert_eq!(tabs, [(&json!("tab"), &json!(true)), (&json!("second"), &json!(false))]);
    assert_eq!((&graph["nodes"][2]["id"], &graph["nodes"][2]["x"]), (&json!("model"), &json!(200.0)));
    let model = json!({"from": "agent", "port": 0, "to": "model", "kind": "model"});
    assert!(graph["wires"].as_array().unwrap().contains(&model), "{graph}");
    assert_eq!((&graph["omitted"], &graph["omittedParts"]), (&json!(0), &json!(0)));
    // A missing key is known only when the model is built.
    let second = sidecar.get("/api/flows/graph?tab=second&instance=local").await.ok(200);
    let problem = &second["diagnostics"][0];
    assert_eq!(
        (&problem["code"], &problem["node"]["id"]),
        (&json!("MODEL_KEY_MISSING"), &json!("key")),
        "{second}"
    );
    for unknown in ["tab=none", "tab=", "tab=%00", "instance=elsewhere", "instance="] {
        sidecar.get(&format!("/api/flows/graph?{unknown}")).await.refused(404, "NOT_FOUND");
    }
    sidecar.get("/api/flows/graph?more=1").await.refused(400, "REQUEST_INVALID");
    let empty = Setup::default().start(None).await;
    assert_eq!(empty.get("/api/flows/graph").await.ok(200)["tabs"], json!([]));
}

#[tokio::test]
async fn a_check_draws_the_flow_if_asked() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let check = async |body: Value| sidecar.post("/api/flows/check", body).await;
    let flows = tool_flow("calculator-tool");
    assert_eq!(check(json!({"flows": flows})).await.ok(200).get("graph"), None);
    let answer = check(json!({"flows": flows, "graph": true})).await.ok(200);
    assert_eq!((&answer["ok"], answer["graph"]["nodes"].as_array().unwrap().len()), (&json!(true), 5));
    let named = check(json!({"flows": flows, "graph": true, "tab": "tab"})).await.ok(200);
    assert_eq!(named["graph"], answer["graph"]);
    check(json!({"flows": flows, "graph": true, "tab": "none"})).await.refused(404, "NOT_FOUND");
    check(json!({"flows": flows, "graph": 1})).await.refused(400, "BODY_INVALID");
    // A missing key is known only when the model is built.
    let mut keyless = flows.clone();
    keyless[3] =
        json!({"id": "model", "type": "openai-model", "z": "tab", "model": "gpt-x", "wires": [["agent"]]});
    let answer = check(json!({"flows": keyless, "graph": true})).await.ok(200);
    assert_eq!(answer["graph"]["diagnostics"][0]["node"]["id"], "model", "{answer}");
    // What refuses the whole flow leaves nothing to draw.
    for refused in [json!([{"id": "a", "type": "tab"}, {"id": "a", "type": "tab"}]), json!(7), json!([7])] {
        let answer = check(json!({"flows": refused, "graph": true})).await.ok(200);
        assert_eq!((&answer["ok"], answer.get("graph")), (&json!(false), None), "{answer}");
    }
}

#[tokio::test]
async fn runs_survive_a_deploy_unless_their_agent_is_removed() {
    let sidecar = TestSidecar::start(tool_flow("tool.slow")).await;
    let run = sidecar.post("/api/runs", json!({"payload": "?"})).await.ok(202)["runs"][0]["runId"].clone();
    let path = format!("/api/runs/{}", run.as_str().unwrap());
    let mut other = tool_flow("tool.slow");
    other[0]["label"] = json!("Renamed");
    sidecar
        .post("/api/deployment", json!({"flows": other, "revision": sidecar.revision().await}))
        .await
        .ok(200);
    assert_eq!(sidecar.get(&path).await.ok(200)["summary"]["status"], "running");
    let gone = json!([{"id": "tab", "type": "tab"}]);
    sidecar
        .post("/api/deployment", json!({"flows": gone, "revision": sidecar.revision().await}))
        .await
        .ok(200);
    let ended = crate::kit::eventually("the run ends", || async {
        let summary = sidecar.get(&path).await.ok(200)["summary"].clone();
        (summary["status"] == "failed").then_some(summary)
    })
    .await;
    assert_eq!(ended["code"], "CANCELLED");
}

#[tokio::test]
async fn inject_nodes_fire_on_their_schedule() {
    let mut nodes = flow(json!([{"action": "final", "message": "42"}]), &[]);
    nodes[1]["once"] = json!(true);
    nodes[1]["onceDelay"] = json!(0.01);
    let sidecar = TestSidecar::start(nodes).await;
    crate::kit::eventually("the agent ran", || async {
        let runs = sidecar.get("/api/runs?status=completed").await.ok(200);
        (runs["runs"].as_array().unwrap().len() == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_deploy_has_the_notices_of_its_tools() {
    let sidecar = TestSidecar::start(tool_flow("tool.noticed")).await;
    let request = json!({"flows": tool_flow("tool.noticed"), "force": true});
    let deployed = sidecar.post("/api/deployment", request).await.ok(200);
    assert_eq!(deployed["report"]["ok"], true, "a notice refuses nothing");
    let notice = deployed["report"]["diagnostics"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&notice["code"], &notice["severity"], &notice["node"]["id"], &notice["message"]),
        (&json!("COLLECTION_UNKNOWN"), &json!("warning"), &json!("act"), &json!("nothing is there"))
    );
    // A tool that never answers does not hold up a deploy.
    let request = json!({"flows": tool_flow("tool.silent"), "force": true});
    let deployed = sidecar.post("/api/deployment", request).await.ok(200);
    assert!(!deployed["report"].to_string().contains("COLLECTION_UNKNOWN"), "{deployed}");
}
