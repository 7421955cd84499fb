//! Flows: deployed, refused, raced, kept.

use crate::kit::{Setup, World, calling, flow, plain};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

#[tokio::test]
async fn a_flow_is_deployed_told_and_kept() {
    let world = Setup::default().start(None).await;
    let empty = world.get("/api/flows").await.ok(200);
    assert_eq!(empty["flows"], json!([]));
    // The first one needs no revision.
    let first = world.post("/api/deployment", json!({"flows": plain()})).await.ok(200);
    assert_eq!(first["report"]["ok"], true);
    let list = world.get("/api/flows").await.ok(200);
    assert_eq!(list["revision"], first["revision"]);
    assert_eq!(list["flows"][0]["label"], "Home");
    assert_eq!(list["flows"][0]["nodes"], 5);
    assert_eq!(list["flows"][0]["agents"][0]["node"]["name"], "Counting");
    assert_eq!(list["flows"][0]["agents"][0]["ready"], true);
    let whole = world.get("/api/deployment").await.ok(200);
    assert_eq!(whole, json!({"revision": first["revision"], "flows": plain()}));
    let one = world.get("/api/flows/tab").await.ok(200);
    assert_eq!(one["flows"].as_array().unwrap().len(), 6);
    assert_eq!(one["flows"][0]["id"], "tab");
    world.get("/api/flows/other").await.refused(404, "NOT_FOUND");
    world.get("/api/flows/agent").await.refused(404, "NOT_FOUND");

    let dir = world.stop().await;
    let again = Setup { dir, ..Setup::default() }.start(None).await;
    assert_eq!(again.get("/api/deployment").await.ok(200), whole);
    assert_eq!(again.run(json!({"payload": "?"})).await["runs"][0]["result"]["payload"], "42");
}

#[tokio::test]
async fn a_deploy_names_what_it_was_made_from() {
    let world = World::with(plain()).await;
    let before = world.revision().await;
    let other = calling("calculator-tool");
    for body in [
        json!({"flows": other}),
        json!({"flows": other, "revision": "from the past"}),
        json!({"flows": other, "revision": ""}),
    ] {
        let answer = world.post("/api/deployment", body).await;
        answer.refused(409, "REVISION_CONFLICT");
        assert_eq!(answer.json()["revision"], Value::from(before.clone()));
    }
    let after = world.post("/api/deployment", json!({"flows": other, "revision": before})).await.ok(200);
    assert_ne!(after["revision"], Value::from(before.clone()));
    world
        .post("/api/deployment", json!({"flows": plain(), "revision": before}))
        .await
        .refused(409, "REVISION_CONFLICT");
    let forced = world.post("/api/deployment", json!({"flows": plain(), "force": true})).await.ok(200);
    assert_eq!(forced["revision"], Value::from(before));
}

#[tokio::test]
async fn of_deploys_that_race_one_wins() {
    let world = World::with(plain()).await;
    let revision = world.revision().await;
    let deploy = |name: usize| {
        let mut nodes = plain();
        nodes[0]["label"] = json!(format!("Home {name}"));
        world.post("/api/deployment", json!({"flows": nodes, "revision": revision}))
    };
    let answers = futures::future::join_all((0..8).map(deploy)).await;
    let won: Vec<_> = answers.iter().filter(|answer| answer.status == 200).collect();
    assert_eq!(won.len(), 1);
    assert_eq!(world.revision().await, won[0].json()["revision"]);
    assert!(answers.iter().all(|answer| answer.status == 200 || answer.code() == "REVISION_CONFLICT"));
}

#[tokio::test]
async fn a_flow_with_errors_is_refused_with_all_of_them_and_changes_nothing() {
    let world = World::with(plain()).await;
    let revision = world.revision().await;
    let mut bad = plain();
    bad[2]["maxIterations"] = json!("many");
    bad[2]["wires"] = json!([[], [], [], ["result"], []]);
    bad[3]["wires"] = json!([]);
    let answer = world.post("/api/deployment", json!({"flows": bad, "revision": revision})).await;
    answer.refused(422, "FLOW_REFUSED");
    let report = &answer.json()["report"];
    let codes: Vec<&str> =
        report["diagnostics"].as_array().unwrap().iter().map(|one| one["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"MODEL_MISSING") && codes.contains(&"CONFIG_INVALID"), "{codes:?}");
    let checked = world.post("/api/flows/check", json!({"flows": bad})).await.ok(200);
    assert_eq!(checked, *report);
    for document in [json!(5), json!({"a": 1}), json!([{"id": "x"}])] {
        let body = json!({"flows": document, "revision": revision});
        world.post("/api/deployment", body).await.refused(422, "FLOW_REFUSED");
    }
    assert_eq!(world.revision().await, revision);
    assert_eq!(world.run(json!({"payload": "?"})).await["runs"][0]["status"], "completed");
}

#[tokio::test]
async fn a_file_with_one_bad_agent_loads_and_that_agent_is_refused() {
    let mut nodes = plain();
    nodes[2]["maxIterations"] = json!("many");
    let world = World::with(nodes).await;
    let agent = &world.get("/api/flows").await.ok(200)["flows"][0]["agents"][0];
    assert_eq!(agent["ready"], false);
    assert_eq!(agent["problems"][0]["code"], "CONFIG_INVALID");
    let started = world.post("/api/runs", json!({"payload": "?"})).await.ok(202);
    assert_eq!(started["runs"][0]["refused"]["code"], "CONFIG_INVALID");
}

#[tokio::test]
async fn a_tab_may_be_called_as_a_route_is() {
    let world = World::with(json!([{"id": "check", "type": "tab", "label": "Odd"}])).await;
    assert_eq!(world.get("/api/flows/check").await.ok(200)["flows"][0]["label"], "Odd");
}

#[tokio::test]
async fn agents_without_a_tab_are_told_of_too() {
    // As an export of some nodes is, and as nobody's export is.
    for (z, nodes) in [(json!("tab"), 5), (json!(null), 0)] {
        let mut some = plain().as_array().unwrap()[1..].to_vec();
        for node in &mut some {
            node["z"] = z.clone();
        }
        let world = World::with(Value::from(some)).await;
        let flows = world.get("/api/flows").await.ok(200)["flows"].clone();
        assert_eq!(flows.as_array().unwrap().len(), 1, "{flows}");
        assert_eq!(
            (flows[0]["id"].clone(), flows[0]["nodes"].clone()),
            (json!(z.as_str().unwrap_or("")), json!(nodes))
        );
        assert_eq!(flows[0]["agents"][0]["node"]["id"], "agent");
    }
}

#[tokio::test]
async fn a_profile_can_be_named_for_a_check() {
    let world = World::with(plain()).await;
    let mut fresh = plain();
    fresh[2].as_object_mut().unwrap().remove("maxIterations");
    let strict = world.post("/api/flows/check", json!({"flows": fresh})).await.ok(200);
    let mild = world.post("/api/flows/check", json!({"flows": fresh, "profile": "redflow"})).await.ok(200);
    assert_eq!((strict["ok"].clone(), mild["ok"].clone()), (json!(false), json!(true)));
}

#[tokio::test]
async fn runs_go_on_over_a_deploy_and_end_when_their_agent_is_gone() {
    let world = World::with(calling("tool.slow")).await;
    let run = world.post("/api/runs", json!({"payload": "?"})).await.ok(202)["runs"][0]["runId"].clone();
    let path = format!("/api/runs/{}", run.as_str().unwrap());
    let mut other = calling("tool.slow");
    other[0]["label"] = json!("Renamed");
    world.post("/api/deployment", json!({"flows": other, "revision": world.revision().await})).await.ok(200);
    assert_eq!(world.get(&path).await.ok(200)["summary"]["status"], "running");
    let gone = json!([{"id": "tab", "type": "tab"}]);
    world.post("/api/deployment", json!({"flows": gone, "revision": world.revision().await})).await.ok(200);
    let ended = crate::kit::eventually("the run ends", || async {
        let summary = world.get(&path).await.ok(200)["summary"].clone();
        (summary["status"] == "failed").then_some(summary)
    })
    .await;
    assert_eq!(ended["code"], "CANCELLED");
}

#[tokio::test]
async fn injects_fire_by_themselves() {
    let mut nodes = flow(json!([{"action": "final", "message": "42"}]), &[]);
    nodes[1]["once"] = json!(true);
    nodes[1]["onceDelay"] = json!(0.01);
    let world = World::with(nodes).await;
    crate::kit::eventually("the agent ran", || async {
        let runs = world.get("/api/runs?status=completed").await.ok(200);
        (runs["runs"].as_array().unwrap().len() == 1).then_some(())
    })
    .await;
}
