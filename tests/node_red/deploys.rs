//! Deploys in the middle of runs.

use crate::kit::eventually;
use crate::kit::flow::says;
use crate::kit::line::Line;
use crate::kit::on_both_lines;
use crate::kit::scene::{MODEL, Scene};
use crate::kit::witness::completion;
use pretty_assertions::assert_eq;
use serde_json::json;

on_both_lines! {
    a_run_outlives_a_deploy_that_keeps_its_agent
    a_run_ends_with_its_agent
}

async fn a_run_outlives_a_deploy_that_keeps_its_agent(line: Line) {
    let scene = Scene::start(line).await;
    let flow = scene.flow().usual(&scene.witness, &[], &[]).live(&scene.witness);
    scene.deploy(&flow).await;
    scene.witness.answers(MODEL, [completion(&says("Done."))]);
    // Of the full kind, all nodes are made anew; of the other, only the agent, which has another name.
    for (round, kind) in [(1, "full"), (2, "nodes")] {
        scene.witness.hold(MODEL);
        scene.ask().await;
        scene.witness.bodies(MODEL, round).await;
        let renamed = flow.clone().again().changed("agent", json!({"name": format!("Agent {round}")}));
        scene.node_red.deploy_as(kind, &renamed.json()).await;
        scene.witness.let_go(MODEL);
        let results = scene.witness.bodies("/results", round).await;
        assert_eq!(results[round - 1]["payload"], "Done.");
        scene.witness.bodies("/completed", round).await;
    }
    assert_eq!(scene.witness.seen(MODEL).len(), 2);
    assert_eq!(scene.count("/caught"), 0);
    assert_eq!(scene.sidecar.runs().await.len(), 2);
}

async fn a_run_ends_with_its_agent(line: Line) {
    let scene = Scene::start(line).await;
    let flow = scene.flow().usual(&scene.witness, &[], &[]).live(&scene.witness);
    scene.deploy(&flow).await;
    scene.witness.hold(MODEL);
    scene.ask().await;
    scene.witness.bodies(MODEL, 1).await;
    scene.node_red.deploy_as("nodes", &flow.clone().again().without("agent").json()).await;
    let run = scene.run_is("failed").await;
    assert_eq!(run["code"], "CANCELLED", "{run:#}");
    // It comes back, and has nothing to do with that run.
    scene.witness.let_go(MODEL);
    scene.witness.answers(MODEL, [completion(&says("Anew."))]);
    scene.node_red.deploy_as("nodes", &flow.again().json()).await;
    assert_eq!(scene.answer().await["payload"], "Anew.");
    let runs = eventually("both runs", async || {
        let runs = scene.sidecar.runs().await;
        (runs.len() == 2).then_some(runs)
    });
    assert_eq!(runs.await.iter().filter(|run| run["status"] == "completed").count(), 1);
}
