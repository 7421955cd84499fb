//! What comes of a message to an agent.

use crate::kit::flow::{calls, says};
use crate::kit::line::Line;
use crate::kit::on_both_lines;
use crate::kit::scene::{MODEL, Scene};
use crate::kit::witness::completion;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

on_both_lines! {
    a_tool_of_the_sidecar
    a_flow_is_a_tool
    an_error_reaches_catch_nodes
}

async fn a_tool_of_the_sidecar(line: Line) {
    let scene = Scene::start(line).await;
    let script = [calls("calculator", json!({"expression": "6 * 7"})), says("It is 42.")];
    let flow = scene.flow().usual(&scene.witness, &[], &[]).scripted(&script);
    let flow =
        flow.changed("ask", json!({"props": [{"p": "payload"}, {"p": "mark", "v": "kept", "vt": "str"}]}));
    scene.deploy(&flow).await;
    scene.ask().await;
    let result = scene.witness.bodies("/results", 1).await.remove(0);
    assert_eq!(result["payload"], "It is 42.");
    assert_eq!(result["mark"], "kept");
    assert_eq!(
        (&result["agentResult"]["completed"], &result["agentResult"]["iterations"]),
        (&json!(true), &json!(2))
    );
    assert_eq!(result.get("error"), None);
    // One message per answer of the model, then Complete.
    let answers = scene.witness.bodies("/answers", 2).await;
    assert!(answers.iter().all(|answer| answer["mark"] == "kept"), "{answers:#?}");
    assert_eq!(scene.witness.bodies("/completed", 1).await[0]["payload"], "It is 42.");
    let shown =
        scene.node_red.comms.status("agent", |status| status["text"] == "done after 2 iterations").await;
    assert_eq!((&shown["fill"], &shown["shape"]), (&json!("green"), &json!("dot")));
    scene.answer().await;
    scene.witness.bodies("/answers", 4).await;
    scene.witness.bodies("/completed", 2).await;
    assert_eq!(scene.count("/caught"), 0);
}

async fn a_flow_is_a_tool(line: Line) {
    let scene = Scene::start(line).await;
    scene.deploy(&scene.with_tool("read")).await;
    let script = [calls("warmth", json!({"room": "kitchen"})), says("Quite warm.")];
    scene.witness.answers(MODEL, script.each_ref().map(completion));
    scene.witness.answers("/warmth", [json!({"celsius": 21.5})]);
    scene.witness.hold("/warmth");
    scene.ask().await;
    let call = scene.witness.bodies("/warmth", 1).await.remove(0);
    assert_eq!(call["input"], json!({"room": "kitchen"}));
    assert!(call["key"].as_str().is_some_and(|key| key.len() >= 32), "{call}");
    scene.node_red.comms.status("agent", |status| status["text"] == "iteration 1: warmth").await;
    scene.witness.let_go("/warmth");
    let result = scene.witness.bodies("/results", 1).await.remove(0);
    assert_eq!(result["payload"], "Quite warm.");
    // The model was told what the tool gave.
    let asked = scene.witness.bodies(MODEL, 2).await;
    assert!(said_last(&asked[1]).contains("21.5"), "{:#}", asked[1]);
    assert_eq!(scene.count("/warmth"), 1);
    assert!(!result.as_object().unwrap().keys().any(|key| key.starts_with("_redflow")), "{result}");
}

/// The last message that a model was sent.
pub(crate) fn said_last(request: &Value) -> String {
    let last = request["messages"].as_array().and_then(|all| all.last());
    last.map(|last| last["content"].to_string()).unwrap_or_default()
}

async fn an_error_reaches_catch_nodes(line: Line) {
    let scene = Scene::start(line).await;
    let script = [calls("no-such-tool", json!({}))];
    let flow = scene.flow().usual(&scene.witness, &[], &[]).scripted(&script);
    scene.deploy(&flow).await;
    scene.ask().await;
    let caught = scene.witness.bodies("/caught", 1).await.remove(0);
    assert_eq!(caught["error"]["code"], "TOOL_NOT_ALLOWED", "{caught:#}");
    assert_eq!(caught["error"]["source"]["id"], "agent");
    assert!(!caught["error"]["message"].as_str().unwrap().is_empty());
    assert_eq!(caught["agentResult"]["completed"], false);
    let result = scene.witness.bodies("/results", 1).await.remove(0);
    assert_eq!(result["error"]["code"], "TOOL_NOT_ALLOWED");
    let shown = scene.node_red.comms.status("agent", |status| status["fill"] == "red").await;
    assert!(shown["text"].as_str().unwrap().starts_with("TOOL_NOT_ALLOWED"), "{shown}");
    // It is as ready as before.
    scene.ask().await;
    scene.witness.bodies("/caught", 2).await;
    scene.witness.bodies("/results", 2).await;
    assert_eq!(scene.count("/completed"), 0);
}
