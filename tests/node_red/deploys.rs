//! Deploys during runs.

use crate::kit::eventually;
use crate::kit::flow::final_answer;
use crate::kit::on_both_lines;
use crate::kit::release_line::ReleaseLine;
use crate::kit::scene::{MODEL, Scene};
use crate::kit::witness::completion;
use pretty_assertions::assert_eq;
use serde_json::json;

on_both_lines! {
    a_run_survives_a_deploy_that_keeps_its_agent
    cancels_the_run_when_its_agent_is_removed
}

async fn a_run_survives_a_deploy_that_keeps_its_agent(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let flow = scene.flow().standard_agent(&scene.witness, &[], &[]).live(&scene.witness);
    scene.deploy(&flow).await;
    scene.witness.set_answers(MODEL, [completion(&final_answer("Done."))]);
    // A full deploy replaces all nodes; the other one only the renamed agent.
    for (round, kind) in [(1, "full"), (2, "nodes")] {
        scene.witness.hold(MODEL);
        scene.send_question().await;
        scene.witness.wait_for_bodies(MODEL, round).await;
        let renamed =
            flow.clone().without_credentials().change("agent", json!({"name": format!("Agent {round}")}));
        scene.node_red.deploy_as(kind, &renamed.json()).await;
        scene.witness.release(MODEL);
        let results = scene.witness.wait_for_bodies("/results", round).await;
        assert_eq!(results[round - 1]["payload"], "Done.");
        scene.witness.wait_for_bodies("/completed", round).await;
    }
    assert_eq!(scene.witness.requests(MODEL).len(), 2);
    assert_eq!(scene.count_requests("/caught"), 0);
    assert_eq!(scene.sidecar.runs().await.len(), 2);
}

async fn cancels_the_run_when_its_agent_is_removed(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let flow = scene.flow().standard_agent(&scene.witness, &[], &[]).live(&scene.witness);
    scene.deploy(&flow).await;
    scene.witness.hold(MODEL);
    scene.send_question().await;
    scene.witness.wait_for_bodies(MODEL, 1).await;
    scene.node_red.deploy_as("nodes", &flow.clone().without_credentials().without("agent").json()).await;
    let run = scene.wait_for_run("failed").await;
    assert_eq!(run["code"], "CANCELLED", "{run:#}");
    // The agent is deployed again, and the old run stays cancelled.
    scene.witness.release(MODEL);
    scene.witness.set_answers(MODEL, [completion(&final_answer("Anew."))]);
    scene.node_red.deploy_as("nodes", &flow.without_credentials().json()).await;
    assert_eq!(scene.ask().await["payload"], "Anew.");
    let runs = eventually("both runs", async || {
        let runs = scene.sidecar.runs().await;
        (runs.len() == 2).then_some(runs)
    });
    assert_eq!(runs.await.iter().filter(|run| run["status"] == "completed").count(), 1);
}
