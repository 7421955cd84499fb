//! Flows that are bad tools, and tools that are wired badly: each has an outcome with a code that can be seen.

use crate::answers::said_last;
use crate::kit::flow::{Flow, calls, says};
use crate::kit::line::Line;
use crate::kit::scene::{MODEL, Scene};
use crate::kit::witness::completion;
use crate::kit::{eventually, on_both_lines, on_the_newer_line};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

on_both_lines! {
    flows_that_are_bad_tools
}

on_the_newer_line! {
    a_tool_that_comes_too_late
    a_tool_that_may_work_once_and_never_returns
    an_ordinary_node_is_a_tool
    two_agents_share_a_tool
    two_agents_share_an_ordinary_node
    two_tools_of_one_name
    a_stale_reply_begins_nothing
}

/// An agent whose one tool is this code.
fn flow(scene: &Scene, code: &str, timeout: u32) -> Flow {
    scene
        .flow()
        .usual(&scene.witness, &["bad"], &["bad-tool"])
        .live(&scene.witness)
        .coded_tool("bad", code)
        .changed("bad-tool", json!({"timeout": timeout}))
}

fn script(scene: &Scene) {
    let script = [calls("bad", json!({})), says("Went on.")];
    scene.witness.answers(MODEL, script.each_ref().map(completion));
}

/// Asks; what the model was told of its tool, and the result.
async fn told(scene: &Scene) -> (String, Value) {
    let before = scene.count(MODEL);
    let result = scene.answer().await;
    let asked = scene.witness.bodies(MODEL, before + 2).await;
    (said_last(&asked[before + 1]), result)
}

async fn flows_that_are_bad_tools(line: Line) {
    let scene = Scene::start(line).await;
    let cases = [
        // What it does, and what the model is told.
        ("throw new Error('the pipe is broken');", 30_000, "the pipe is broken"),
        ("msg.error = 'nobody is home'; return msg;", 30_000, "nobody is home"),
        ("msg.payload = 'x'.repeat(20 * 1024 * 1024); return msg;", 30_000, "the limit is"),
        ("return null;", 300, "300 ms"),
        ("const all = {name: 'round'}; all.self = all; msg.payload = all; return msg;", 30_000, "round"),
        ("msg.payload = undefined; return msg;", 30_000, "null"),
        // Node-RED itself gives it the id it came with.
        ("return {payload: 'found by its id'};", 30_000, "found by its id"),
        ("node.send(RED.util.cloneMessage(msg)); msg.payload = 'twice'; return msg;", 30_000, ""),
    ];
    for (code, timeout, words) in cases {
        scene.deploy(&flow(&scene, code, timeout)).await;
        script(&scene);
        let (told, result) = told(&scene).await;
        assert!(told.contains(words), "{code}: {told}");
        assert!(told.len() < 100_000, "{code}: {}", told.len());
        assert_eq!(result["payload"], "Went on.", "{code}");
    }
    // One that says in no way which call it answers.
    let rules =
        json!([{"t": "delete", "p": "_msgid", "pt": "msg"}, {"t": "delete", "p": "_agentCore", "pt": "msg"}]);
    let flow = flow(&scene, "return msg;", 300).changed("bad-body", json!({"wires": [["strip"]]})).node(
        "strip",
        "change",
        json!([["bad-return"]]),
        json!({"rules": rules}),
    );
    scene.deploy(&flow).await;
    script(&scene);
    let (told, result) = told(&scene).await;
    assert!(told.contains("300 ms"), "{told}");
    assert_eq!(result["payload"], "Went on.");
    // That one, and the second of two.
    eventually("both are said", async || (scene.node_red.logged("REPLY_DROPPED") >= 2).then_some(())).await;
    assert_eq!(scene.node_red.logged("REPLY_DROPPED"), 2);
    assert_eq!(scene.count("/caught"), 0);
}

async fn a_tool_that_comes_too_late(line: Line) {
    let scene = Scene::start(line).await;
    scene.deploy(&scene.with_tool("read").changed("warmth-tool", json!({"timeout": 200}))).await;
    let script = [calls("warmth", json!({"room": "hall"})), says("Went on.")];
    scene.witness.answers(MODEL, script.each_ref().map(completion));
    scene.witness.hold("/warmth");
    assert_eq!(scene.answer().await["payload"], "Went on.");
    scene.witness.let_go("/warmth");
    eventually("it is dropped", async || (scene.node_red.logged("REPLY_DROPPED") == 1).then_some(())).await;
    assert_eq!(scene.sidecar.runs().await.len(), 1);
}

async fn a_tool_that_may_work_once_and_never_returns(line: Line) {
    let scene = Scene::start(line).await;
    let flow = flow(&scene, "return null;", 200).changed("bad-tool", json!({"effect": "at_most_once"}));
    scene.deploy(&flow).await;
    script(&scene);
    scene.ask().await;
    let run = scene.run_is("waiting").await;
    assert_eq!(run["waiting"]["tool"], "bad", "{run:#}");
    scene.node_red.comms.status("agent", |status| status["fill"] == "yellow").await;
    let id = run["runId"].as_str().unwrap();
    let failed = json!({"callId": run["waiting"]["callId"], "result": {"success": false, "error": "nothing was done"}});
    let reply = scene.sidecar.post(&format!("/api/runs/{id}/resolve"), failed).await;
    assert!((200..300).contains(&reply.status), "{reply:?}");
    assert_eq!(scene.witness.bodies("/results", 1).await[0]["payload"], "Went on.");
    assert!(said_last(&scene.witness.bodies(MODEL, 2).await[1]).contains("nothing was done"));
}

async fn an_ordinary_node_is_a_tool(line: Line) {
    let scene = Scene::start(line).await;
    let schema = json!({"type": "object", "properties": {"room": {"type": "string"}}}).to_string();
    let code = "msg.payload = {told: 'of ' + msg.payload.room}; return msg;";
    let flow = scene
        .flow()
        .usual(&scene.witness, &["room"], &["room"])
        .live(&scene.witness)
        .function("room", code, &["agent"])
        .changed(
            "room",
            json!({"name": "room", "effect": "read", "description": "A room.", "inputSchema": schema}),
        );
    scene.deploy(&flow).await;
    let script = [calls("room", json!({"room": "hall"})), says("Went on.")];
    scene.witness.answers(MODEL, script.each_ref().map(completion));
    let (told, result) = told(&scene).await;
    assert!(told.contains("of hall"), "{told}");
    assert_eq!(result["payload"], "Went on.");
    assert_eq!(scene.sidecar.runs().await.len(), 1);
}

async fn two_agents_share_a_tool(line: Line) {
    let scene = Scene::start(line).await;
    let flow = scene
        .with_tool("read")
        .inject("ask-other", "And here?", "other")
        .agent("other", &["warmth"], json!([["other-model"], ["warmth-tool"], [], ["other-result"], []]))
        .node(
            "other-model",
            "scripted-model",
            json!([["other"]]),
            json!({"replies": [calls("warmth", json!({"room": "attic"})), says("Attic.")]}),
        )
        .told(&scene.witness, "other-result", "/other-results");
    scene.deploy(&flow).await;
    let script = [calls("warmth", json!({"room": "hall"})), says("Hall.")];
    scene.witness.answers(MODEL, script.each_ref().map(completion));
    scene.witness.hold("/warmth");
    scene.ask().await;
    scene.node_red.admin.inject("ask-other").await;
    let asked = scene.witness.bodies("/warmth", 2).await;
    assert_ne!(asked[0]["key"], asked[1]["key"]);
    scene.witness.let_go("/warmth");
    assert_eq!(scene.witness.bodies("/results", 1).await[0]["payload"], "Hall.");
    assert_eq!(scene.witness.bodies("/other-results", 1).await[0]["payload"], "Attic.");
    assert_eq!(scene.node_red.logged("REPLY_DROPPED"), 0);
}

/// One of them uses it by a junction and a link. It answers both, each time; what is for the other one begins nothing and
/// is no mistake.
async fn two_agents_share_an_ordinary_node(line: Line) {
    let scene = Scene::start(line).await;
    let script = [calls("room", json!({"room": "hall"})), says("Found.")];
    let flow = scene
        .flow()
        .usual(&scene.witness, &["room"], &["room"])
        .scripted(&script)
        .function("room", "msg.payload = 'here'; return msg;", &["other", "agent"])
        .changed("room", json!({"name": "room", "effect": "read", "description": "A room."}))
        .agent("other", &["room"], json!([["other-model"], ["bend"], [], ["other-result"], []]))
        .node("other-model", "scripted-model", json!([["other"]]), json!({"replies": script}))
        .node("bend", "junction", json!([["out"]]), json!({}))
        .node("out", "link out", json!([]), json!({"links": ["in"], "mode": "link"}))
        .node("in", "link in", json!([["room"]]), json!({"links": ["out"]}))
        .inject("ask-other", "And here?", "other")
        .told(&scene.witness, "other-result", "/other-results");
    scene.deploy(&flow).await;
    assert_eq!(scene.answer().await["payload"], "Found.");
    scene.node_red.admin.inject("ask-other").await;
    assert_eq!(scene.witness.bodies("/other-results", 1).await[0]["payload"], "Found.");
    assert_eq!(
        (scene.sidecar.runs().await.len(), scene.count("/results"), scene.count("/caught")),
        (2, 1, 0)
    );
    assert_eq!((scene.node_red.logged("EDGE_REJECTED"), scene.node_red.logged("REPLY_DROPPED")), (0, 0));
}

async fn two_tools_of_one_name(line: Line) {
    let scene = Scene::start(line).await;
    let flow = scene
        .flow()
        .usual(&scene.witness, &["bad"], &["bad-tool", "twin"])
        .scripted(&[says("Never.")])
        .coded_tool("bad", "return msg;")
        .flow_tool("twin", "bad", "read", &["bad-return"]);
    scene.deploy(&flow).await;
    let shown = scene.node_red.comms.status("agent", |status| status["fill"] == "red").await;
    assert!(shown["text"].as_str().unwrap().contains("bad"), "{shown}");
    eventually("the log has it", async || (scene.node_red.logged("TOOL_NAME_DUPLICATE") > 0).then_some(()))
        .await;
    scene.ask().await;
    let caught = scene.witness.bodies("/caught", 1).await.remove(0);
    assert!(caught["error"]["code"].is_string(), "{caught:#}");
    assert_eq!(scene.sidecar.runs().await.len(), 0);
    // Mended, it works.
    let mended = flow
        .again()
        .changed("twin", json!({"toolName": "good"}))
        .changed("agent", json!({"allowedTools": ["bad", "good"]}));
    scene.deploy(&mended).await;
    assert_eq!(scene.answer().await["payload"], "Never.");
}

async fn a_stale_reply_begins_nothing(line: Line) {
    let scene = Scene::start(line).await;
    // What comes to an agent as the reply of a tool is never a question.
    let code = "msg._agentCore = {type: 'tool_request', traceId: 'x', callId: 'call_of_yesterday', iteration: 1}; return msg;";
    let flow = scene
        .flow()
        .usual(&scene.witness, &[], &[])
        .scripted(&[says("Here.")])
        .inject("stale", "Old.", "forge")
        .function("forge", code, &["agent"]);
    scene.deploy(&flow).await;
    scene.node_red.admin.inject("stale").await;
    eventually("it is dropped", async || (scene.node_red.logged("REPLY_DROPPED") == 1).then_some(())).await;
    scene.answer().await;
    assert_eq!((scene.count("/results"), scene.sidecar.runs().await.len()), (1, 1));
}
