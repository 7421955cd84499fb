//! Kills and cut connections during runs. The tests count how often each thing was done.

use crate::kit::eventually;
use crate::kit::flow::{Flow, final_answer, tool_call};
use crate::kit::release_line::ReleaseLine;
use crate::kit::scene::{MODEL, Scene};
use crate::kit::witness::completion;
use crate::kit::{on_both_lines, on_the_newer_line};
use crate::non_json_values::{CHECK_VALUES, SET_VALUES};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

on_both_lines! {
    the_sidecar_is_killed_during_a_model_call
    the_sidecar_is_killed_during_a_tool_call
    the_connection_is_cut_repeatedly
    node_red_is_killed_during_an_at_most_once_call
    node_red_is_killed_during_a_repeatable_call
}

on_the_newer_line! {
    the_connection_stalls
    node_red_is_killed_during_a_model_call
    a_run_survives_a_restart_of_node_red
}

fn once(scene: &Scene) {
    let script = [tool_call("warmth", json!({"room": "hall"})), final_answer("Warm.")];
    scene.witness.set_answers(MODEL, script.each_ref().map(completion));
    scene.witness.set_answers("/warmth", [json!({"celsius": 20})]);
}

/// A flow whose messages hold values that JSON cannot.
fn with_values(flow: Flow, scene: &Scene) -> Flow {
    flow.change("ask", json!({"wires": [["put"]]}))
        .function("put", SET_VALUES, &["agent"])
        .change("result", json!({"func": CHECK_VALUES, "wires": [["looked"]]}))
        .without("result-post")
        .post_to(&scene.witness, "looked", "/results")
}

async fn the_sidecar_is_killed_during_a_model_call(line: ReleaseLine) {
    let mut scene = Scene::start(line).await;
    scene.deploy(&scene.with_tool("read")).await;
    scene.witness.set_answers(MODEL, [completion(&final_answer("Late."))]);
    scene.witness.hold(MODEL);
    scene.send_question().await;
    scene.witness.wait_for_bodies(MODEL, 1).await;
    scene.sidecar.kill();
    scene.sidecar.start();
    // The runtime repeats a model call without an answer.
    scene.witness.wait_for_bodies(MODEL, 2).await;
    scene.witness.release(MODEL);
    assert_eq!(scene.witness.wait_for_bodies("/results", 1).await[0]["payload"], "Late.");
    scene.witness.wait_for_bodies("/completed", 1).await;
    assert_eq!(scene.ask().await["payload"], "Late.");
    assert_eq!((scene.count_requests("/results"), scene.count_requests("/caught")), (2, 0));
    assert_eq!(scene.sidecar.runs().await.len(), 2);
}

async fn the_sidecar_is_killed_during_a_tool_call(line: ReleaseLine) {
    let mut scene = Scene::start(line).await;
    for (round, effect) in [(1, "read"), (2, "at_most_once"), (3, "idempotent")] {
        scene.deploy(&scene.with_tool(effect)).await;
        once(&scene);
        scene.witness.hold("/warmth");
        scene.send_question().await;
        scene.witness.wait_for_bodies("/warmth", round).await;
        scene.sidecar.kill();
        if effect == "at_most_once" {
            // The tool ends while no sidecar runs.
            scene.witness.release("/warmth");
            scene.sidecar.start();
        } else {
            scene.sidecar.start();
            scene.wait_for_connections(1).await;
            scene.witness.release("/warmth");
        }
        let results = scene.witness.wait_for_bodies("/results", round).await;
        assert_eq!(results[round - 1]["payload"], "Warm.", "{effect}: {results:#?}");
        // Node-RED kept running and remembers the call. So it never repeats it, whatever its effect class.
        assert_eq!(scene.count_requests("/warmth"), round, "{effect}");
        scene.witness.wait_for_bodies("/completed", round).await;
    }
    assert_eq!(scene.count_requests("/caught"), 0);
    assert_eq!(scene.sidecar.runs().await.len(), 3);
}

async fn the_connection_is_cut_repeatedly(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    scene.deploy(&scene.with_tool("at_most_once")).await;
    scene.wait_for_connections(1).await;
    let mut rounds = 0;
    // Cuts during the model call, during the tool call, and after it.
    for cuts in [[true, false, false], [false, true, false], [false, true, true], [true, true, true]] {
        rounds += 1;
        once(&scene);
        scene.witness.hold(MODEL);
        scene.witness.hold("/warmth");
        scene.send_question().await;
        let asked = scene.count_requests(MODEL);
        eventually("the model is asked", async || (scene.count_requests(MODEL) > asked).then_some(())).await;
        if cuts[0] {
            scene.sidecar.cable.cut();
        }
        scene.witness.release(MODEL);
        scene.witness.wait_for_bodies("/warmth", rounds).await;
        if cuts[1] {
            scene.sidecar.cable.cut();
        }
        scene.witness.release("/warmth");
        if cuts[2] {
            scene.sidecar.cable.cut();
        }
        let results = scene.witness.wait_for_bodies("/results", rounds).await;
        assert_eq!(results[rounds - 1]["payload"], "Warm.");
        scene.sidecar.cable.cut();
    }
    // Everything happened once. The last cut came after the results, so no result repeats.
    once(&scene);
    scene.ask().await;
    rounds += 1;
    scene.witness.wait_for_bodies("/completed", rounds).await;
    assert_eq!(
        (scene.count_requests("/warmth"), scene.count_requests(MODEL), scene.count_requests("/caught")),
        (rounds, 2 * rounds, 0)
    );
    assert_eq!(scene.count_requests("/answers"), 2 * rounds);
    assert!(scene.sidecar.cable.connection_count() >= 6, "{}", scene.sidecar.cable.connection_count());
}

async fn the_connection_stalls(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    scene.deploy(&scene.with_tool("at_most_once")).await;
    once(&scene);
    scene.witness.hold("/warmth");
    scene.send_question().await;
    scene.witness.wait_for_bodies("/warmth", 1).await;
    // The tool's result is sent and never arrives, and then the socket breaks.
    scene.sidecar.cable.stall();
    scene.witness.release("/warmth");
    eventually("the tool is done", async || (scene.count_requests("/warmth") == 1).then_some(())).await;
    scene.sidecar.cable.cut();
    scene.sidecar.cable.resume();
    assert_eq!(scene.witness.wait_for_bodies("/results", 1).await[0]["payload"], "Warm.");
    once(&scene);
    scene.ask().await;
    assert_eq!((scene.count_requests("/warmth"), scene.count_requests("/results")), (2, 2));
}

async fn node_red_is_killed_during_an_at_most_once_call(line: ReleaseLine) {
    let mut scene = Scene::start(line).await;
    scene.deploy(&with_values(scene.with_tool("at_most_once"), &scene)).await;
    once(&scene);
    scene.witness.hold("/warmth");
    scene.send_question().await;
    scene.witness.wait_for_bodies("/warmth", 1).await;
    scene.node_red.kill();
    scene.witness.release("/warmth");
    scene.node_red.start_again().await;
    // The outcome of the call is unknown, so a person must answer.
    let run = scene.wait_for_run("waiting").await;
    let status = scene.node_red.comms.wait_for_status("agent", |status| status["fill"] == "yellow").await;
    assert!(status["text"].as_str().unwrap().contains("warmth"), "{status}");
    let id = run["runId"].as_str().unwrap();
    let call = &run["waiting"]["callId"];
    let resolved = json!({"callId": call, "result": {"success": true, "output": {"celsius": 19}}});
    let reply = scene.sidecar.post(&format!("/api/runs/{id}/resolve"), resolved).await;
    assert!((200..300).contains(&reply.status), "{reply:?} {run:#}");
    let result = scene.witness.wait_for_bodies("/results", 1).await.remove(0);
    assert_eq!(result["payload"]["said"], "Warm.");
    assert_eq!(result["payload"]["lost"], json!([]), "{result:#}");
    assert_eq!(scene.count_requests("/warmth"), 1);
}

async fn node_red_is_killed_during_a_repeatable_call(line: ReleaseLine) {
    let mut scene = Scene::start(line).await;
    for (round, effect) in [(1, "read"), (2, "idempotent")] {
        scene.deploy(&with_values(scene.with_tool(effect), &scene)).await;
        once(&scene);
        scene.witness.hold("/warmth");
        scene.send_question().await;
        scene.witness.wait_for_bodies("/warmth", 2 * round - 1).await;
        scene.node_red.kill();
        scene.node_red.start_again().await;
        let calls = scene.witness.wait_for_bodies("/warmth", 2 * round).await;
        scene.witness.release("/warmth");
        let [.., first, second] = calls.as_slice() else { panic!("{calls:#?}") };
        assert_eq!(first["key"], second["key"], "{effect}");
        let results = scene.witness.wait_for_bodies("/results", round).await;
        let result = &results[round - 1];
        assert_eq!(result["payload"]["said"], "Warm.", "{effect}: {result:#}");
        assert_eq!(result["payload"]["lost"], json!([]), "{effect}: {result:#}");
    }
    assert_eq!(scene.count_requests("/caught"), 0);
}

async fn node_red_is_killed_during_a_model_call(line: ReleaseLine) {
    let mut scene = Scene::start(line).await;
    let flow = with_values(scene.with_tool("read"), &scene);
    scene.deploy(&flow).await;
    scene.witness.set_answers(MODEL, [completion(&final_answer("Late."))]);
    scene.witness.hold(MODEL);
    scene.send_question().await;
    scene.witness.wait_for_bodies(MODEL, 1).await;
    scene.node_red.kill();
    // The run ends while no Node-RED can take its result.
    scene.witness.release(MODEL);
    scene.wait_for_run("completed").await;
    scene.node_red.start_again().await;
    let result = scene.witness.wait_for_bodies("/results", 1).await.remove(0);
    assert_eq!((&result["payload"]["said"], &result["payload"]["lost"]), (&json!("Late."), &json!([])));
    // Node-RED takes the result once: another restart delivers nothing.
    eventually("everything is delivered", async || nothing_waits(&scene).await.then_some(())).await;
    scene.node_red.kill();
    scene.node_red.start_again().await;
    scene.ask().await;
    assert_eq!((scene.count_requests("/results"), scene.count_requests(MODEL)), (2, 2));
}

async fn nothing_waits(scene: &Scene) -> bool {
    let known = scene.sidecar.get("/api/instances").await;
    known["instances"].as_array().unwrap().iter().all(|one: &Value| one["waiting"] == 0)
}

async fn a_run_survives_a_restart_of_node_red(line: ReleaseLine) {
    let mut scene = Scene::start(line).await;
    scene.deploy(&with_values(scene.with_tool("read"), &scene)).await;
    scene.witness.set_answers(MODEL, [completion(&final_answer("Late."))]);
    scene.witness.hold(MODEL);
    scene.send_question().await;
    scene.witness.wait_for_bodies(MODEL, 1).await;
    // A stop removes no agent, so the run continues.
    scene.node_red.stop().await;
    scene.node_red.start_again().await;
    scene.wait_for_connections(1).await;
    scene.witness.release(MODEL);
    let result = scene.witness.wait_for_bodies("/results", 1).await.remove(0);
    assert_eq!(result["payload"]["said"], "Late.", "{result:#}");
    assert_eq!(scene.count_requests(MODEL), 1);
}
