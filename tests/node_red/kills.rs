//! Kills and cuts in the middle of runs, and how often things were done in the end.

use crate::kit::eventually;
use crate::kit::flow::{Flow, calls, says};
use crate::kit::line::Line;
use crate::kit::scene::{MODEL, Scene};
use crate::kit::witness::completion;
use crate::kit::{on_both_lines, on_the_newer_line};
use crate::values::{LOOK, PUT};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

on_both_lines! {
    the_sidecar_dies_while_a_model_thinks
    the_sidecar_dies_while_a_tool_works
    the_cable_is_cut_again_and_again
    node_red_dies_while_a_tool_works_that_may_work_once
    node_red_dies_while_a_tool_works_that_may_work_again
}

on_the_newer_line! {
    the_cable_is_silent
    node_red_dies_while_a_model_thinks
    node_red_stops_and_starts_again
}

fn once(scene: &Scene) {
    let script = [calls("warmth", json!({"room": "hall"})), says("Warm.")];
    scene.witness.answers(MODEL, script.each_ref().map(completion));
    scene.witness.answers("/warmth", [json!({"celsius": 20})]);
}

/// The usual agent, whose messages hold what JSON cannot.
fn with_values(flow: Flow, scene: &Scene) -> Flow {
    flow.changed("ask", json!({"wires": [["put"]]}))
        .function("put", PUT, &["agent"])
        .changed("result", json!({"func": LOOK, "wires": [["looked"]]}))
        .without("result-post")
        .told(&scene.witness, "looked", "/results")
}

async fn the_sidecar_dies_while_a_model_thinks(line: Line) {
    let mut scene = Scene::start(line).await;
    scene.deploy(&scene.with_tool("read")).await;
    scene.witness.answers(MODEL, [completion(&says("Late."))]);
    scene.witness.hold(MODEL);
    scene.ask().await;
    scene.witness.bodies(MODEL, 1).await;
    scene.sidecar.kill();
    scene.sidecar.come();
    // A question to a model may be asked again; whose answer never came is.
    scene.witness.bodies(MODEL, 2).await;
    scene.witness.let_go(MODEL);
    assert_eq!(scene.witness.bodies("/results", 1).await[0]["payload"], "Late.");
    scene.witness.bodies("/completed", 1).await;
    assert_eq!(scene.answer().await["payload"], "Late.");
    assert_eq!((scene.count("/results"), scene.count("/caught")), (2, 0));
    assert_eq!(scene.sidecar.runs().await.len(), 2);
}

async fn the_sidecar_dies_while_a_tool_works(line: Line) {
    let mut scene = Scene::start(line).await;
    for (round, effect) in [(1, "read"), (2, "at_most_once"), (3, "idempotent")] {
        scene.deploy(&scene.with_tool(effect)).await;
        once(&scene);
        scene.witness.hold("/warmth");
        scene.ask().await;
        scene.witness.bodies("/warmth", round).await;
        scene.sidecar.kill();
        if effect == "at_most_once" {
            // The tool is done while nobody is there to be told.
            scene.witness.let_go("/warmth");
            scene.sidecar.come();
        } else {
            scene.sidecar.come();
            scene.connected(1).await;
            scene.witness.let_go("/warmth");
        }
        let results = scene.witness.bodies("/results", round).await;
        assert_eq!(results[round - 1]["payload"], "Warm.", "{effect}: {results:#?}");
        // Node-RED was there all the time and knows that it was at it: never again, whatever the tool may do.
        assert_eq!(scene.count("/warmth"), round, "{effect}");
        scene.witness.bodies("/completed", round).await;
    }
    assert_eq!(scene.count("/caught"), 0);
    assert_eq!(scene.sidecar.runs().await.len(), 3);
}

async fn the_cable_is_cut_again_and_again(line: Line) {
    let scene = Scene::start(line).await;
    scene.deploy(&scene.with_tool("at_most_once")).await;
    scene.connected(1).await;
    let mut rounds = 0;
    // While the model thinks; while the tool works, which is done after; while the tool works, and once more.
    for cuts in [[true, false, false], [false, true, false], [false, true, true], [true, true, true]] {
        rounds += 1;
        once(&scene);
        scene.witness.hold(MODEL);
        scene.witness.hold("/warmth");
        scene.ask().await;
        let asked = scene.count(MODEL);
        eventually("the model is asked", async || (scene.count(MODEL) > asked).then_some(())).await;
        if cuts[0] {
            scene.sidecar.cable.cut();
        }
        scene.witness.let_go(MODEL);
        scene.witness.bodies("/warmth", rounds).await;
        if cuts[1] {
            scene.sidecar.cable.cut();
        }
        scene.witness.let_go("/warmth");
        if cuts[2] {
            scene.sidecar.cable.cut();
        }
        let results = scene.witness.bodies("/results", rounds).await;
        assert_eq!(results[rounds - 1]["payload"], "Warm.");
        scene.sidecar.cable.cut();
    }
    // Everything once: the last cut came after the results, so nothing of them comes again.
    once(&scene);
    scene.answer().await;
    rounds += 1;
    scene.witness.bodies("/completed", rounds).await;
    assert_eq!((scene.count("/warmth"), scene.count(MODEL), scene.count("/caught")), (rounds, 2 * rounds, 0));
    assert_eq!(scene.count("/answers"), 2 * rounds);
    assert!(scene.sidecar.cable.made() >= 6, "{}", scene.sidecar.cable.made());
}

async fn the_cable_is_silent(line: Line) {
    let scene = Scene::start(line).await;
    scene.deploy(&scene.with_tool("at_most_once")).await;
    once(&scene);
    scene.witness.hold("/warmth");
    scene.ask().await;
    scene.witness.bodies("/warmth", 1).await;
    // The result of the tool is written, and never arrives: the socket breaks after that.
    scene.sidecar.cable.stall();
    scene.witness.let_go("/warmth");
    eventually("the tool is done", async || (scene.count("/warmth") == 1).then_some(())).await;
    scene.sidecar.cable.cut();
    scene.sidecar.cable.flow_again();
    assert_eq!(scene.witness.bodies("/results", 1).await[0]["payload"], "Warm.");
    once(&scene);
    scene.answer().await;
    assert_eq!((scene.count("/warmth"), scene.count("/results")), (2, 2));
}

async fn node_red_dies_while_a_tool_works_that_may_work_once(line: Line) {
    let mut scene = Scene::start(line).await;
    scene.deploy(&with_values(scene.with_tool("at_most_once"), &scene)).await;
    once(&scene);
    scene.witness.hold("/warmth");
    scene.ask().await;
    scene.witness.bodies("/warmth", 1).await;
    scene.node_red.kill();
    scene.witness.let_go("/warmth");
    scene.node_red.start_again().await;
    // Nobody knows whether the tool did it: a person has to say.
    let run = scene.run_is("waiting").await;
    let shown = scene.node_red.comms.status("agent", |status| status["fill"] == "yellow").await;
    assert!(shown["text"].as_str().unwrap().contains("warmth"), "{shown}");
    let id = run["runId"].as_str().unwrap();
    let call = &run["waiting"]["callId"];
    let resolved = json!({"callId": call, "result": {"success": true, "output": {"celsius": 19}}});
    let reply = scene.sidecar.post(&format!("/api/runs/{id}/resolve"), resolved).await;
    assert!((200..300).contains(&reply.status), "{reply:?} {run:#}");
    let result = scene.witness.bodies("/results", 1).await.remove(0);
    assert_eq!(result["payload"]["said"], "Warm.");
    assert_eq!(result["payload"]["lost"], json!([]), "{result:#}");
    assert_eq!(scene.count("/warmth"), 1);
}

async fn node_red_dies_while_a_tool_works_that_may_work_again(line: Line) {
    let mut scene = Scene::start(line).await;
    for (round, effect) in [(1, "read"), (2, "idempotent")] {
        scene.deploy(&with_values(scene.with_tool(effect), &scene)).await;
        once(&scene);
        scene.witness.hold("/warmth");
        scene.ask().await;
        scene.witness.bodies("/warmth", 2 * round - 1).await;
        scene.node_red.kill();
        scene.node_red.start_again().await;
        let calls = scene.witness.bodies("/warmth", 2 * round).await;
        scene.witness.let_go("/warmth");
        let [.., first, second] = calls.as_slice() else { panic!("{calls:#?}") };
        assert_eq!(first["key"], second["key"], "{effect}");
        let results = scene.witness.bodies("/results", round).await;
        let result = &results[round - 1];
        assert_eq!(result["payload"]["said"], "Warm.", "{effect}: {result:#}");
        assert_eq!(result["payload"]["lost"], json!([]), "{effect}: {result:#}");
    }
    assert_eq!(scene.count("/caught"), 0);
}

async fn node_red_dies_while_a_model_thinks(line: Line) {
    let mut scene = Scene::start(line).await;
    let flow = with_values(scene.with_tool("read"), &scene);
    scene.deploy(&flow).await;
    scene.witness.answers(MODEL, [completion(&says("Late."))]);
    scene.witness.hold(MODEL);
    scene.ask().await;
    scene.witness.bodies(MODEL, 1).await;
    scene.node_red.kill();
    // The run ends while nobody is there to take its result.
    scene.witness.let_go(MODEL);
    scene.run_is("completed").await;
    scene.node_red.start_again().await;
    let result = scene.witness.bodies("/results", 1).await.remove(0);
    assert_eq!((&result["payload"]["said"], &result["payload"]["lost"]), (&json!("Late."), &json!([])));
    // Taken once: another restart brings nothing.
    eventually("everything is taken", async || nothing_waits(&scene).await.then_some(())).await;
    scene.node_red.kill();
    scene.node_red.start_again().await;
    scene.answer().await;
    assert_eq!((scene.count("/results"), scene.count(MODEL)), (2, 2));
}

async fn nothing_waits(scene: &Scene) -> bool {
    let known = scene.sidecar.get("/api/instances").await;
    known["instances"].as_array().unwrap().iter().all(|one: &Value| one["waiting"] == 0)
}

async fn node_red_stops_and_starts_again(line: Line) {
    let mut scene = Scene::start(line).await;
    scene.deploy(&with_values(scene.with_tool("read"), &scene)).await;
    scene.witness.answers(MODEL, [completion(&says("Late."))]);
    scene.witness.hold(MODEL);
    scene.ask().await;
    scene.witness.bodies(MODEL, 1).await;
    // A stop is no removal: the run goes on.
    scene.node_red.stop().await;
    scene.node_red.start_again().await;
    scene.connected(1).await;
    scene.witness.let_go(MODEL);
    let result = scene.witness.bodies("/results", 1).await.remove(0);
    assert_eq!(result["payload"]["said"], "Late.", "{result:#}");
    assert_eq!(scene.count(MODEL), 1);
}
