//! Much at once, very large, and both sides dying.

use crate::kit::flow::{Flow, calls, says};
use crate::kit::line::Line;
use crate::kit::scene::{MODEL, Scene};
use crate::kit::witness::completion;
use crate::kit::{eventually, on_both_lines, on_the_newer_line};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::collections::BTreeSet;

on_both_lines! {
    a_storm
}

on_the_newer_line! {
    a_storm_over_calls_that_may_be_made_once
    both_die_while_a_tool_works
    the_sidecar_is_exchanged_while_a_tool_works
    an_agent_that_goes_while_the_sidecar_is_away
    a_deploy_while_a_tool_works
    messages_that_are_too_much
    many_at_once
}

/// Sends that many messages, each with a number.
fn burst(flow: Flow, count: usize) -> Flow {
    let code = format!(
        "for (let n = 0; n < {count}; n++) {{ node.send({{payload: 'How warm?', number: n}}); }} return null;"
    );
    flow.changed("ask", json!({"wires": [["burst"]]})).function("burst", &code, &["agent"])
}

/// The numbers of the messages that came to a path.
fn numbers(scene: &Scene, path: &str) -> Vec<u64> {
    let mut numbers: Vec<u64> =
        scene.witness.seen(path).iter().map(|seen| seen.body["number"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

async fn a_storm(line: Line) {
    let (scene, runs) = storm(line, "idempotent").await;
    assert!(runs.iter().all(|run| run["status"] == "completed"), "{runs:#?}");
    scene.witness.bodies("/results", RUNS).await;
    scene.witness.bodies("/completed", RUNS).await;
    let all: Vec<u64> = (0..RUNS as u64).collect();
    assert_eq!(numbers(&scene, "/results"), all);
    assert_eq!(numbers(&scene, "/completed"), all);
    // They could be made again, but Node-RED knows that it made them.
    assert_eq!((scene.count("/warmth"), scene.count("/caught")), (2 * RUNS, 0));
    assert_eq!(scene.node_red.logged("REPLY_DROPPED"), 0);
}

async fn a_storm_over_calls_that_may_be_made_once(line: Line) {
    let (scene, runs) = storm(line, "at_most_once").await;
    // A call that was on its way when the sidecar died waits for a person, and was not made. All others were, once.
    let made = runs.iter().map(|run| match run["status"].as_str().unwrap() {
        "completed" => 2,
        "waiting" => run["waiting"]["iteration"].as_u64().unwrap() - 1,
        other => panic!("{other}: {run:#}"),
    });
    assert_eq!(made.sum::<u64>(), scene.count("/warmth") as u64, "{runs:#?}");
    let completed = runs.iter().filter(|run| run["status"] == "completed").count();
    scene.witness.bodies("/results", completed).await;
    assert_eq!(scene.count("/caught"), 0);
}

/// Runs of a storm.
const RUNS: usize = 24;

/// Many runs with two calls each; whenever some more tools have worked, the cable is cut or the sidecar killed. Gives the
/// runs when all of them are over or wait. No call was made twice.
async fn storm(line: Line, effect: &str) -> (Scene, Vec<Value>) {
    let mut scene = Scene::start(line).await;
    let script =
        [calls("warmth", json!({"room": "hall"})), calls("warmth", json!({"room": "attic"})), says("Warm.")];
    let flow = scene
        .flow()
        .usual(&scene.witness, &["warmth"], &["warmth-tool"])
        .scripted(&script)
        .changed("model", json!({"delayMs": 40}))
        .asking_tool(&scene.witness, "warmth", effect);
    scene.deploy(&burst(flow, RUNS)).await;
    scene.connected(1).await;
    scene.ask().await;
    for (round, calls) in [4, 8, 12, 16, 20, 24].into_iter().enumerate() {
        eventually("tools work, or nothing does", async || {
            (scene.count("/warmth") >= calls || at_rest(&scene).await.is_some()).then_some(())
        })
        .await;
        if round % 2 == 0 {
            scene.sidecar.cable.cut();
        } else {
            scene.sidecar.kill();
            scene.sidecar.come();
        }
    }
    let runs = eventually("every run is over or waits", async || at_rest(&scene).await).await;
    // Every call has a key of its own.
    let made = scene.witness.seen("/warmth");
    let keys: BTreeSet<String> = made.iter().map(|call| call.body["key"].to_string()).collect();
    assert_eq!(made.len(), keys.len());
    (scene, runs)
}

/// The runs of a storm, once all of them are over or wait.
async fn at_rest(scene: &Scene) -> Option<Vec<Value>> {
    let runs = scene.sidecar.get("/api/runs?limit=100").await["runs"].as_array().unwrap().clone();
    let goes_on = runs.iter().any(|run| run["status"] == "running" || run["status"] == "interrupted");
    (!goes_on && runs.len() == RUNS).then_some(runs)
}

fn once(scene: &Scene) {
    let script = [calls("warmth", json!({"room": "hall"})), says("Warm.")];
    scene.witness.answers(MODEL, script.each_ref().map(completion));
}

async fn both_die_while_a_tool_works(line: Line) {
    let mut scene = Scene::start(line).await;
    for (round, effect) in [(1, "read"), (2, "at_most_once")] {
        scene.deploy(&scene.with_tool(effect)).await;
        once(&scene);
        scene.witness.hold("/warmth");
        scene.ask().await;
        scene.witness.bodies("/warmth", 2 * round - 1).await;
        scene.node_red.kill();
        scene.sidecar.kill();
        scene.sidecar.come();
        scene.node_red.start_again().await;
        if effect == "read" {
            scene.witness.bodies("/warmth", 2).await;
            scene.witness.let_go("/warmth");
            assert_eq!(scene.witness.bodies("/results", 1).await[0]["payload"], "Warm.");
        } else {
            // Neither knows whether it was done.
            eventually("the run waits", async || {
                scene.sidecar.runs().await.into_iter().find(|run| run["status"] == "waiting")
            })
            .await;
            assert_eq!((scene.count("/warmth"), scene.count("/results")), (3, 1));
            scene.witness.let_go("/warmth");
        }
    }
}

async fn the_sidecar_is_exchanged_while_a_tool_works(line: Line) {
    let mut scene = Scene::start(line).await;
    scene.deploy(&scene.with_tool("at_most_once")).await;
    once(&scene);
    scene.witness.hold("/warmth");
    scene.ask().await;
    scene.witness.bodies("/warmth", 1).await;
    scene.sidecar.stop().await;
    scene.sidecar.come();
    scene.witness.let_go("/warmth");
    assert_eq!(scene.witness.bodies("/results", 1).await[0]["payload"], "Warm.");
    assert_eq!(scene.count("/warmth"), 1);
}

async fn an_agent_that_goes_while_the_sidecar_is_away(line: Line) {
    let mut scene = Scene::start(line).await;
    let flow = scene.with_tool("read");
    scene.deploy(&flow).await;
    once(&scene);
    scene.witness.hold(MODEL);
    scene.ask().await;
    scene.witness.bodies(MODEL, 1).await;
    scene.sidecar.kill();
    scene.deploy(&flow.again().without("agent")).await;
    scene.sidecar.come();
    let run = scene.run_is("failed").await;
    assert_eq!(run["code"], "CANCELLED", "{run:#}");
    assert_eq!((scene.count(MODEL), scene.count("/results")), (1, 0));
}

async fn a_deploy_while_a_tool_works(line: Line) {
    let scene = Scene::start(line).await;
    let flow = scene.with_tool("at_most_once");
    scene.deploy(&flow).await;
    // The agent is made anew, its tool is left alone.
    once(&scene);
    scene.witness.hold("/warmth");
    scene.ask().await;
    scene.witness.bodies("/warmth", 1).await;
    let renamed = flow.again().changed("agent", json!({"name": "Other"}));
    scene.node_red.deploy_as("nodes", &renamed.json()).await;
    scene.witness.let_go("/warmth");
    assert_eq!(scene.witness.bodies("/results", 1).await[0]["payload"], "Warm.");
    scene.witness.bodies("/completed", 1).await;
    assert_eq!((scene.count("/warmth"), scene.count("/caught")), (1, 0));
}

async fn messages_that_are_too_much(line: Line) {
    let scene = Scene::start(line).await;
    let flow = scene.flow().usual(&scene.witness, &[], &[]).scripted(&[says("Here.")]);
    let flow = flow.changed("ask", json!({"wires": [["make"]]}));
    let caught = |scene: &Scene, code: &str| {
        let last = scene.witness.seen("/caught").pop().unwrap().body;
        assert_eq!(last["error"]["code"], code, "{}", last["error"]);
    };
    let too_much = [
        "msg.extra = 'x'.repeat(40 * 1024 * 1024); return msg;",
        "let deep = {}; for (let n = 0; n < 1000; n++) { deep = {deep}; } msg.extra = deep; return msg;",
    ];
    for (round, code) in too_much.into_iter().enumerate() {
        // What leaves it is told without what is too much.
        let flow = flow.clone().function("make", code, &["agent"]);
        let told = "return {payload: {error: msg.error}};";
        scene.deploy(&flow.changed("caught", json!({"func": told}))).await;
        scene.ask().await;
        scene.witness.bodies("/caught", round + 1).await;
        caught(&scene, "CONTEXT_LENGTH");
    }
    // What cannot be read does no harm, and nothing of it reaches the objects of others.
    let odd = "Object.defineProperty(msg, 'trap', {enumerable: true, get() { throw new Error('no'); }});\
               msg.own = JSON.parse('{\"__proto__\": {\"polluted\": true}, \"constructor\": {\"prototype\": 1}}');\
               msg.bare = Object.create(null); msg.bare.x = 1; msg.holes = [1, , 3]; return msg;";
    let look = "return {payload: {said: msg.payload, polluted: ({}).polluted === true}};";
    let flow = flow.function("make", odd, &["agent"]).changed("result", json!({"func": look}));
    scene.deploy(&flow).await;
    let before = scene.count("/caught");
    scene.ask().await;
    let told = eventually("an outcome", async || {
        scene
            .witness
            .seen("/results")
            .pop()
            .map(|seen| seen.body)
            .or_else(|| (scene.count("/caught") > before).then(|| json!({"caught": true})))
    })
    .await;
    assert!(told["said"] == "Here." || told["caught"] == true, "{told}");
    assert_ne!(told["polluted"], true);
    assert_eq!(scene.sidecar.runs().await.len(), scene.count("/results"));
}

async fn many_at_once(line: Line) {
    const MANY: usize = 150;
    let scene = Scene::start(line).await;
    let script = [calls("echo", json!({})), says("Here.")];
    let flow = scene
        .flow()
        .usual(&scene.witness, &["echo"], &["echo-tool"])
        .scripted(&script)
        .coded_tool("echo", "msg.payload = 'ok'; return msg;");
    scene.deploy(&burst(flow.clone(), MANY)).await;
    scene.ask().await;
    scene.witness.bodies("/results", MANY).await;
    scene.witness.bodies("/completed", MANY).await;
    assert_eq!(numbers(&scene, "/results"), (0..MANY as u64).collect::<Vec<_>>());
    assert_eq!(scene.count("/caught"), 0);
    // More than may be held are refused at once, with a code.
    let few = burst(flow.again(), 20)
        .changed("runtime", json!({"maxHeldRuns": 5}))
        .changed("model", json!({"delayMs": 300}));
    scene.deploy(&few).await;
    scene.ask().await;
    let refused: Vec<Value> = scene.witness.bodies("/caught", 15).await;
    assert!(refused.iter().all(|one| one["error"]["code"] == "QUEUE_FULL"), "{refused:#?}");
    scene.witness.bodies("/results", MANY + 5).await;
}
