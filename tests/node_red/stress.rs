//! Many messages at once, very large messages, and kills of both sides.

use crate::kit::flow::{Flow, final_answer, tool_call};
use crate::kit::release_line::ReleaseLine;
use crate::kit::scene::{MODEL, Scene};
use crate::kit::witness::completion;
use crate::kit::{eventually, on_both_lines, on_the_newer_line};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::collections::BTreeSet;

on_both_lines! {
    many_runs_survive_kills_and_cuts
}

on_the_newer_line! {
    no_at_most_once_call_repeats_after_kills_and_cuts
    both_processes_are_killed_during_a_tool_call
    the_sidecar_is_restarted_during_a_tool_call
    a_run_is_cancelled_if_its_agent_is_removed_while_the_sidecar_is_offline
    a_tool_call_survives_a_deploy
    refuses_messages_that_are_too_large_or_too_deep
    many_messages_at_once
}

/// Makes `ask` send `count` messages, each with a number.
fn burst(flow: Flow, count: usize) -> Flow {
    let code = format!(
        "for (let n = 0; n < {count}; n++) {{ node.send({{payload: 'How warm?', number: n}}); }} return null;"
    );
    flow.change("ask", json!({"wires": [["burst"]]})).function("burst", &code, &["agent"])
}

/// The numbers of the messages at a path.
fn numbers(scene: &Scene, path: &str) -> Vec<u64> {
    let mut numbers: Vec<u64> =
        scene.witness.requests(path).iter().map(|request| request.body["number"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

async fn many_runs_survive_kills_and_cuts(line: ReleaseLine) {
    let (scene, runs) = storm(line, "idempotent").await;
    assert!(runs.iter().all(|run| run["status"] == "completed"), "{runs:#?}");
    scene.witness.wait_for_bodies("/results", RUNS).await;
    scene.witness.wait_for_bodies("/completed", RUNS).await;
    let all: Vec<u64> = (0..RUNS as u64).collect();
    assert_eq!(numbers(&scene, "/results"), all);
    assert_eq!(numbers(&scene, "/completed"), all);
    // The calls may repeat, but Node-RED remembers that it made them.
    assert_eq!((scene.count_requests("/warmth"), scene.count_requests("/caught")), (2 * RUNS, 0));
    assert_eq!(scene.node_red.count_log_lines("REPLY_DROPPED"), 0);
}

async fn no_at_most_once_call_repeats_after_kills_and_cuts(line: ReleaseLine) {
    let (scene, runs) = storm(line, "at_most_once").await;
    // A call in transit during a kill was not made and waits for a person. All others were made once.
    let made = runs.iter().map(|run| match run["status"].as_str().unwrap() {
        "completed" => 2,
        "waiting" => run["waiting"]["iteration"].as_u64().unwrap() - 1,
        other => panic!("{other}: {run:#}"),
    });
    assert_eq!(made.sum::<u64>(), scene.count_requests("/warmth") as u64, "{runs:#?}");
    let completed = runs.iter().filter(|run| run["status"] == "completed").count();
    scene.witness.wait_for_bodies("/results", completed).await;
    assert_eq!(scene.count_requests("/caught"), 0);
}

/// The number of runs in a storm.
const RUNS: usize = 24;

/// Starts many runs with two calls each. After every few calls it cuts the cable or kills the sidecar. Gives the runs
/// when all of them have ended or wait, and checks that no call was made twice.
async fn storm(line: ReleaseLine, effect: &str) -> (Scene, Vec<Value>) {
    let mut scene = Scene::start(line).await;
    let script = [
        tool_call("warmth", json!({"room": "hall"})),
        tool_call("warmth", json!({"room": "attic"})),
        final_answer("Warm."),
    ];
    let flow = scene
        .flow()
        .standard_agent(&scene.witness, &["warmth"], &["warmth-tool"])
        .scripted(&script)
        .change("model", json!({"delayMs": 40}))
        .http_tool(&scene.witness, "warmth", effect);
    scene.deploy(&burst(flow, RUNS)).await;
    scene.wait_for_connections(1).await;
    scene.send_question().await;
    for (round, calls) in [4, 8, 12, 16, 20, 24].into_iter().enumerate() {
        eventually("more tool calls, or no active run", async || {
            (scene.count_requests("/warmth") >= calls || inactive_runs(&scene).await.is_some()).then_some(())
        })
        .await;
        if round % 2 == 0 {
            scene.sidecar.cable.cut();
        } else {
            scene.sidecar.kill();
            scene.sidecar.start();
        }
    }
    let runs = eventually("every run has ended or waits", async || inactive_runs(&scene).await).await;
    // Every call has its own key.
    let made = scene.witness.requests("/warmth");
    let keys: BTreeSet<String> = made.iter().map(|call| call.body["key"].to_string()).collect();
    assert_eq!(made.len(), keys.len());
    (scene, runs)
}

/// The runs of a storm, once all of them have ended or wait.
async fn inactive_runs(scene: &Scene) -> Option<Vec<Value>> {
    let runs = scene.sidecar.get("/api/runs?limit=100").await["runs"].as_array().unwrap().clone();
    let is_active = runs.iter().any(|run| run["status"] == "running" || run["status"] == "interrupted");
    (!is_active && runs.len() == RUNS).then_some(runs)
}

fn once(scene: &Scene) {
    let script = [tool_call("warmth", json!({"room": "hall"})), final_answer("Warm.")];
    scene.witness.set_answers(MODEL, script.each_ref().map(completion));
}

async fn both_processes_are_killed_during_a_tool_call(line: ReleaseLine) {
    let mut scene = Scene::start(line).await;
    for (round, effect) in [(1, "read"), (2, "at_most_once")] {
        scene.deploy(&scene.with_tool(effect)).await;
        once(&scene);
        scene.witness.hold("/warmth");
        scene.send_question().await;
        scene.witness.wait_for_bodies("/warmth", 2 * round - 1).await;
        scene.node_red.kill();
        scene.sidecar.kill();
        scene.sidecar.start();
        scene.node_red.start_again().await;
        if effect == "read" {
            scene.witness.wait_for_bodies("/warmth", 2).await;
            scene.witness.release("/warmth");
            assert_eq!(scene.witness.wait_for_bodies("/results", 1).await[0]["payload"], "Warm.");
        } else {
            // Neither process knows the outcome of the call.
            eventually("the run waits", async || {
                scene.sidecar.runs().await.into_iter().find(|run| run["status"] == "waiting")
            })
            .await;
            assert_eq!((scene.count_requests("/warmth"), scene.count_requests("/results")), (3, 1));
            scene.witness.release("/warmth");
        }
    }
}

async fn the_sidecar_is_restarted_during_a_tool_call(line: ReleaseLine) {
    let mut scene = Scene::start(line).await;
    scene.deploy(&scene.with_tool("at_most_once")).await;
    once(&scene);
    scene.witness.hold("/warmth");
    scene.send_question().await;
    scene.witness.wait_for_bodies("/warmth", 1).await;
    scene.sidecar.stop().await;
    scene.sidecar.start();
    scene.witness.release("/warmth");
    assert_eq!(scene.witness.wait_for_bodies("/results", 1).await[0]["payload"], "Warm.");
    assert_eq!(scene.count_requests("/warmth"), 1);
}

async fn a_run_is_cancelled_if_its_agent_is_removed_while_the_sidecar_is_offline(line: ReleaseLine) {
    let mut scene = Scene::start(line).await;
    let flow = scene.with_tool("read");
    scene.deploy(&flow).await;
    once(&scene);
    scene.witness.hold(MODEL);
    scene.send_question().await;
    scene.witness.wait_for_bodies(MODEL, 1).await;
    scene.sidecar.kill();
    scene.deploy(&flow.without_credentials().without("agent")).await;
    scene.sidecar.start();
    let run = scene.wait_for_run("failed").await;
    assert_eq!(run["code"], "CANCELLED", "{run:#}");
    assert_eq!((scene.count_requests(MODEL), scene.count_requests("/results")), (1, 0));
}

async fn a_tool_call_survives_a_deploy(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let flow = scene.with_tool("at_most_once");
    scene.deploy(&flow).await;
    // The deploy replaces the agent and keeps its tool.
    once(&scene);
    scene.witness.hold("/warmth");
    scene.send_question().await;
    scene.witness.wait_for_bodies("/warmth", 1).await;
    let renamed = flow.without_credentials().change("agent", json!({"name": "Other"}));
    scene.node_red.deploy_as("nodes", &renamed.json()).await;
    scene.witness.release("/warmth");
    assert_eq!(scene.witness.wait_for_bodies("/results", 1).await[0]["payload"], "Warm.");
    scene.witness.wait_for_bodies("/completed", 1).await;
    assert_eq!((scene.count_requests("/warmth"), scene.count_requests("/caught")), (1, 0));
}

async fn refuses_messages_that_are_too_large_or_too_deep(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let flow = scene.flow().standard_agent(&scene.witness, &[], &[]).scripted(&[final_answer("Here.")]);
    let flow = flow.change("ask", json!({"wires": [["make"]]}));
    let caught = |scene: &Scene, code: &str| {
        let last = scene.witness.requests("/caught").pop().unwrap().body;
        assert_eq!(last["error"]["code"], code, "{}", last["error"]);
    };
    let too_much = [
        "msg.extra = 'x'.repeat(40 * 1024 * 1024); return msg;",
        "let deep = {}; for (let n = 0; n < 1000; n++) { deep = {deep}; } msg.extra = deep; return msg;",
    ];
    for (round, code) in too_much.into_iter().enumerate() {
        // The Catch node posts the error only, without the large part.
        let flow = flow.clone().function("make", code, &["agent"]);
        let error_only = "return {payload: {error: msg.error}};";
        scene.deploy(&flow.change("caught", json!({"func": error_only}))).await;
        scene.send_question().await;
        scene.witness.wait_for_bodies("/caught", round + 1).await;
        caught(&scene, "CONTEXT_LENGTH");
    }
    // Values that cannot be read do no harm and do not reach the objects of other code.
    let odd = "Object.defineProperty(msg, 'trap', {enumerable: true, get() { throw new Error('no'); }});\
               msg.own = JSON.parse('{\"__proto__\": {\"polluted\": true}, \"constructor\": {\"prototype\": 1}}');\
               msg.bare = Object.create(null); msg.bare.x = 1; msg.holes = [1, , 3]; return msg;";
    let check = "return {payload: {said: msg.payload, polluted: ({}).polluted === true}};";
    let flow = flow.function("make", odd, &["agent"]).change("result", json!({"func": check}));
    scene.deploy(&flow).await;
    let before = scene.count_requests("/caught");
    scene.send_question().await;
    let outcome = eventually("an outcome", async || {
        scene
            .witness
            .requests("/results")
            .pop()
            .map(|request| request.body)
            .or_else(|| (scene.count_requests("/caught") > before).then(|| json!({"caught": true})))
    })
    .await;
    assert!(outcome["said"] == "Here." || outcome["caught"] == true, "{outcome}");
    assert_ne!(outcome["polluted"], true);
    assert_eq!(scene.sidecar.runs().await.len(), scene.count_requests("/results"));
}

async fn many_messages_at_once(line: ReleaseLine) {
    const MANY: usize = 150;
    let scene = Scene::start(line).await;
    let script = [tool_call("echo", json!({})), final_answer("Here.")];
    let flow = scene
        .flow()
        .standard_agent(&scene.witness, &["echo"], &["echo-tool"])
        .scripted(&script)
        .function_tool("echo", "msg.payload = 'ok'; return msg;");
    scene.deploy(&burst(flow.clone(), MANY)).await;
    scene.send_question().await;
    scene.witness.wait_for_bodies("/results", MANY).await;
    scene.witness.wait_for_bodies("/completed", MANY).await;
    assert_eq!(numbers(&scene, "/results"), (0..MANY as u64).collect::<Vec<_>>());
    assert_eq!(scene.count_requests("/caught"), 0);
    // Messages over the limit are refused at once, with a code.
    let few = burst(flow.without_credentials(), 20)
        .change("runtime", json!({"maxHeldRuns": 5}))
        .change("model", json!({"delayMs": 300}));
    scene.deploy(&few).await;
    scene.send_question().await;
    let refused: Vec<Value> = scene.witness.wait_for_bodies("/caught", 15).await;
    assert!(refused.iter().all(|one| one["error"]["code"] == "QUEUE_FULL"), "{refused:#?}");
    scene.witness.wait_for_bodies("/results", MANY + 5).await;
}
