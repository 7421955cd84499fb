//! Agents that another agent's messages come to: by wires that are refused, and by those that are not.

use crate::editor_api::{RUNTIME, errors, runs};
use crate::kit::flow::{Flow, calls, says};
use crate::kit::line::Line;
use crate::kit::node_red::NodeRed;
use crate::kit::scene::Scene;
use crate::kit::{eventually, on_both_lines, on_the_newer_line};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

on_both_lines! {
    a_message_on_a_refused_wire
    an_agent_in_the_tool_of_another
}

on_the_newer_line! {
    a_tool_message_that_comes_round_to_another_agent
    an_agent_that_catches_what_a_tool_throws
    a_refused_wire_behind_a_junction
    refused_agents_behind_a_catch_of_everything
}

/// Agent `agent` with a tool, and agent `other` with a calculator. What goes wrong at `other` is told at `/rejected`.
fn two_agents(scene: &Scene) -> Flow {
    let script = [calls("where", json!({})), says("Found.")];
    scene
        .flow()
        .usual(&scene.witness, &["where"], &["where-tool"])
        .scripted(&script)
        .coded_tool("where", "msg.payload = 'here'; return msg;")
        .agent("other", &["calculator"], json!([["other-model"], ["calc"], [], ["strange"], []]))
        .node("other-model", "scripted-model", json!([["other"]]), json!({"replies": [says("Never.")]}))
        .node("calc", "calculator-tool", json!([["other"]]), json!({}))
        .told(&scene.witness, "strange", "/strange")
        .node("other-catch", "catch", json!([["rejected"]]), json!({"scope": ["other"], "uncaught": false}))
        .told(&scene.witness, "rejected", "/rejected")
}

/// What was rejected at `other`, with its words, once; and that nothing else has come of it.
async fn rejected(scene: &Scene, words: &str) {
    let told = scene.witness.bodies("/rejected", 1).await;
    let message = told[0]["error"]["message"].as_str().unwrap();
    assert_eq!(
        (&told[0]["error"]["code"], &told[0]["payload"]),
        (&json!("EDGE_REJECTED"), &json!("here")),
        "{told:#?}"
    );
    assert!(message.contains(words), "{message}");
    let kept = errors(&scene.node_red, "other").await;
    assert_eq!(
        (kept.len(), &kept[0]["code"], &kept[0]["message"]),
        (1, &json!("EDGE_REJECTED"), &json!(message))
    );
    assert_eq!(runs(&scene.node_red, "?agent=other").await, Vec::<Value>::new());
    assert_eq!((scene.count("/strange"), scene.count("/caught")), (0, 0));
}

async fn a_message_on_a_refused_wire(line: Line) {
    let scene = Scene::start(line).await;
    let flow = two_agents(&scene);
    let wrong = flow.clone().changed("where-body", json!({"wires": [["where-return", "other"]]}));
    scene.deploy(&wrong).await;
    scene.node_red.comms.status("other", |status| status["fill"] == "red").await;
    // The agent that does nothing wrong works, and its tool too.
    assert_eq!(scene.answer().await["payload"], "Found.");
    rejected(&scene, "EDGE_FOREIGN_REPLY").await;
    // The wire is gone: what comes by a right one is taken.
    scene.deploy(&flow.again().inject("other-ask", "Hello?", "other")).await;
    scene.node_red.comms.status("other", |status| status["fill"] != "red").await;
    scene.node_red.admin.inject("other-ask").await;
    assert_eq!(scene.witness.bodies("/strange", 1).await[0]["payload"], "Never.");
}

/// What an agent's newest run called, and what came of it.
async fn calls_of(node_red: &NodeRed, agent: &str) -> Vec<Value> {
    let run = runs(node_red, &format!("?agent={agent}&limit=1")).await.remove(0);
    let path = format!("{RUNTIME}/runs/{}", run["runId"].as_str().unwrap());
    let shown = node_red.admin.ask("GET", &path).await.ok(200);
    shown["calls"].as_array().unwrap().clone()
}

/// Where the checker takes it, an agent may be part of a tool of another one: it is asked, and its result is the tool's.
async fn an_agent_in_the_tool_of_another(line: Line) {
    let scene = Scene::start(line).await;
    let script = [calls("where", json!({"room": "hall"})), says("Found.")];
    let other = [calls("look", json!({})), says("In the hall.")];
    // Messages come to `route` from elsewhere too, so it is nobody's tool alone.
    let flow = scene
        .flow()
        .usual(&scene.witness, &["where"], &["where-tool"])
        .scripted(&script)
        .flow_tool("where-tool", "where", "at_most_once", &["route"])
        .function("route", "return [msg, null];", &[])
        .changed("route", json!({"outputs": 2, "wires": [["other"], ["where-return"]]}))
        .inject("elsewhere", "Hello?", "route")
        .node("where-return", "flow-tool-return", json!([]), json!({}))
        .agent(
            "other",
            &["look"],
            json!([["other-model"], ["look-tool"], [], ["strange", "where-return"], []]),
        )
        .node("other-model", "scripted-model", json!([["other"]]), json!({"replies": other}))
        .coded_tool("look", "msg.payload = 'a coat'; return msg;")
        .told(&scene.witness, "strange", "/strange");
    scene.deploy(&flow).await;
    assert_eq!(scene.answer().await["payload"], "Found.");
    let told = scene.witness.bodies("/strange", 1).await;
    assert_eq!(told[0]["payload"], "In the hall.", "{told:#?}");
    let (own, others) = (calls_of(&scene.node_red, "agent").await, calls_of(&scene.node_red, "other").await);
    assert_eq!((own.len(), &own[0]["result"]["output"]), (1, &json!("In the hall.")), "{own:#?}");
    assert_eq!((others.len(), &others[0]["result"]["output"]), (1, &json!("a coat")), "{others:#?}");
    // If it fails, so does the tool, in its words; nothing is left that a person would have to clear up.
    let fails = flow.again().changed("other-model", json!({"replies": ["no JSON at all"]}));
    scene.deploy(&fails).await;
    assert_eq!(scene.answer().await["payload"], "Found.");
    let own = calls_of(&scene.node_red, "agent").await;
    let why = scene.witness.bodies("/strange", 2).await[1]["error"]["message"].clone();
    assert_eq!(own[0]["result"]["success"], false, "{own:#?}");
    assert!(own[0]["result"].to_string().contains(why.as_str().unwrap()), "{why} {own:#?}");
    assert_eq!((scene.node_red.logged("EDGE_REJECTED"), scene.node_red.logged("REPLY_DROPPED")), (0, 0));
}

/// An agent behind a Catch node of everything is asked what to do when the tool of another one fails.
async fn an_agent_that_catches_what_a_tool_throws(line: Line) {
    let scene = Scene::start(line).await;
    let flow = two_agents(&scene)
        .changed("where-body", json!({"func": "throw new Error('the pipe is broken');"}))
        .changed("other-model", json!({"replies": [says("Look elsewhere.")]}))
        .changed("other", json!({"wires": [["other-model"], ["calc"], [], ["strange", "where-return"], []]}))
        .node("all", "catch", json!([["other"]]), json!({"scope": null, "uncaught": false}));
    scene.deploy(&flow).await;
    assert_eq!(scene.answer().await["payload"], "Found.");
    let own = calls_of(&scene.node_red, "agent").await;
    assert_eq!(own[0]["result"]["output"], "Look elsewhere.", "{own:#?}");
    assert_eq!(runs(&scene.node_red, "?agent=other").await.len(), 1);
    assert_eq!((scene.count("/strange"), scene.count("/rejected"), scene.count("/caught")), (1, 0, 0));
    assert_eq!(scene.node_red.logged("EDGE_REJECTED"), 0);
}

/// By a link, whose last wire says nothing of where a message comes from: it gets to the agent, which is refused.
async fn a_tool_message_that_comes_round_to_another_agent(line: Line) {
    let scene = Scene::start(line).await;
    let link = |links: &str, mode: &str| json!({"links": [links], "mode": mode});
    let flow = two_agents(&scene)
        .changed("where-body", json!({"wires": [["out"]]}))
        .node("out", "link out", json!([]), link("in", "link"))
        .node("in", "link in", json!([["other", "where-return"]]), link("out", "link"));
    scene.deploy(&flow).await;
    assert_eq!(scene.answer().await["payload"], "Found.");
    let told = scene.witness.bodies("/rejected", 1).await;
    let error = &told[0]["error"];
    assert_eq!(error["code"], "EDGE_REJECTED", "{told:#?}");
    assert!(error["message"].as_str().unwrap().contains("EDGE_FOREIGN_REPLY"), "{told:#?}");
    assert_eq!(scene.witness.bodies("/strange", 1).await[0]["error"]["code"], "EDGE_REJECTED");
    assert_eq!(runs(&scene.node_red, "?agent=other").await, Vec::<Value>::new());
    assert_eq!((errors(&scene.node_red, "other").await.len(), scene.count("/caught")), (1, 0));
}

/// No wire of it is refused by itself: then it is the agent that is refused, as a whole.
async fn a_refused_wire_behind_a_junction(line: Line) {
    let scene = Scene::start(line).await;
    let flow = scene
        .flow()
        .usual(&scene.witness, &[], &[])
        .scripted(&[says("Mended.")])
        .changed("agent", json!({"wires": [["model"], ["calc"], [], ["result", "round"], []]}))
        .node("round", "junction", json!([["agent"]]), json!({}));
    scene.deploy(&flow).await;
    scene.node_red.comms.status("agent", |status| status["fill"] == "red").await;
    scene.ask().await;
    // It leaves by port 3 with its error, comes round, and goes no further.
    let kept = eventually("both are kept", async || {
        let kept = errors(&scene.node_red, "agent").await;
        (kept.len() == 2).then_some(kept)
    })
    .await;
    let said: Vec<&str> = kept.iter().map(|one| one["message"].as_str().unwrap()).collect();
    assert!(said[0].contains("refused already") && said[1].contains("EDGE_SELF"), "{kept:#?}");
    // Another one does the same, so that the first has had all the time it needs.
    scene.ask().await;
    let caught = scene.witness.bodies("/caught", 2).await;
    assert!(caught.iter().all(|one| one["error"]["code"] == "EDGE_REJECTED"), "{caught:#?}");
    assert_eq!((scene.sidecar.runs().await.len(), scene.witness.bodies("/results", 2).await.len()), (0, 2));
    // Mended, it takes what it has refused: somebody may have kept it to try again.
    let error = "msg.error = {code: 'EDGE_REJECTED', message: 'no', source: {id: 'agent', type: 'agent-core', count: 1}};";
    let mended = flow
        .again()
        .without("round")
        .changed("agent", json!({"wires": [["model"], ["calc"], [], ["result"], []]}))
        .inject("again", "Once more.", "retry")
        .function("retry", &format!("{error} return msg;"), &["agent"]);
    scene.deploy(&mended).await;
    scene.node_red.admin.inject("again").await;
    assert_eq!(scene.witness.bodies("/results", 3).await[2]["payload"], "Mended.");
    assert_eq!(scene.count("/caught"), 2);
}

/// Agents that are refused do not pass a message on to each other for ever.
async fn refused_agents_behind_a_catch_of_everything(line: Line) {
    let scene = Scene::start(line).await;
    let flow = two_agents(&scene).without("model").without("other-model").node(
        "all",
        "catch",
        json!([["agent", "other"]]),
        json!({"scope": null, "uncaught": false}),
    );
    scene.deploy(&flow).await;
    scene.node_red.comms.status("agent", |status| status["fill"] == "red").await;
    let node_red = &scene.node_red;
    // Asked twice, so that the first has had all the time it needs.
    for asked in 1..=2 {
        scene.ask().await;
        scene.witness.bodies("/caught", asked).await;
        eventually("all is kept", async || {
            let kept = [errors(node_red, "agent").await.len(), errors(node_red, "other").await.len()];
            assert!(kept[0] <= 2 * asked && kept[1] <= asked, "{kept:?}");
            (kept == [2 * asked, asked]).then_some(())
        })
        .await;
    }
    assert_eq!((scene.count("/caught"), scene.count("/rejected"), scene.count("/results")), (2, 0, 2));
    assert_eq!(scene.sidecar.runs().await.len(), 0);
}
