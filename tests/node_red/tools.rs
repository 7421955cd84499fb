//! Flow tools that fail, and tools with wrong wires. Each case has a visible outcome with a code.

use crate::agent_results::last_message;
use crate::kit::flow::{Flow, final_answer, tool_call};
use crate::kit::release_line::ReleaseLine;
use crate::kit::scene::{MODEL, Scene};
use crate::kit::witness::completion;
use crate::kit::{eventually, on_both_lines, on_the_newer_line};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

on_both_lines! {
    reports_bad_flow_tools_to_the_model
}

on_the_newer_line! {
    drops_the_late_result_of_a_tool
    an_at_most_once_tool_without_a_result_asks_a_person
    an_ordinary_node_works_as_a_tool
    two_agents_share_a_tool
    two_agents_share_an_ordinary_node
    refuses_two_tools_with_one_name
    a_stale_reply_starts_no_run
}

/// An agent whose one tool is this code.
fn flow(scene: &Scene, code: &str, timeout: u32) -> Flow {
    scene
        .flow()
        .standard_agent(&scene.witness, &["bad"], &["bad-tool"])
        .live(&scene.witness)
        .function_tool("bad", code)
        .change("bad-tool", json!({"timeout": timeout}))
}

fn script(scene: &Scene) {
    let script = [tool_call("bad", json!({})), final_answer("Went on.")];
    scene.witness.set_answers(MODEL, script.each_ref().map(completion));
}

/// Asks, and gives the tool result that the model got, and the result of the run.
async fn ask_with_tool(scene: &Scene) -> (String, Value) {
    let before = scene.count_requests(MODEL);
    let result = scene.ask().await;
    let asked = scene.witness.wait_for_bodies(MODEL, before + 2).await;
    (last_message(&asked[before + 1]), result)
}

async fn reports_bad_flow_tools_to_the_model(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let cases = [
        // The code, the timeout, and the text that the model gets.
        ("throw new Error('the pipe is broken');", 30_000, "the pipe is broken"),
        ("msg.error = 'nobody is home'; return msg;", 30_000, "nobody is home"),
        ("msg.payload = 'x'.repeat(20 * 1024 * 1024); return msg;", 30_000, "the limit is"),
        ("return null;", 300, "300 ms"),
        ("const all = {name: 'round'}; all.self = all; msg.payload = all; return msg;", 30_000, "round"),
        ("msg.payload = undefined; return msg;", 30_000, "null"),
        // Node-RED itself copies the message id.
        ("return {payload: 'found by its id'};", 30_000, "found by its id"),
        ("node.send(RED.util.cloneMessage(msg)); msg.payload = 'twice'; return msg;", 30_000, ""),
    ];
    for (code, timeout, words) in cases {
        scene.deploy(&flow(&scene, code, timeout)).await;
        script(&scene);
        let (tool_result, result) = ask_with_tool(&scene).await;
        assert!(tool_result.contains(words), "{code}: {tool_result}");
        assert!(tool_result.len() < 100_000, "{code}: {}", tool_result.len());
        assert_eq!(result["payload"], "Went on.", "{code}");
    }
    // A reply that names no call.
    let rules =
        json!([{"t": "delete", "p": "_msgid", "pt": "msg"}, {"t": "delete", "p": "_agentCore", "pt": "msg"}]);
    let flow = flow(&scene, "return msg;", 300).change("bad-body", json!({"wires": [["strip"]]})).node(
        "strip",
        "change",
        json!([["bad-return"]]),
        json!({"rules": rules}),
    );
    scene.deploy(&flow).await;
    script(&scene);
    let (tool_result, result) = ask_with_tool(&scene).await;
    assert!(tool_result.contains("300 ms"), "{tool_result}");
    assert_eq!(result["payload"], "Went on.");
    // This reply, and the second of two.
    eventually("both in the log", async || {
        (scene.node_red.count_log_lines("REPLY_DROPPED") >= 2).then_some(())
    })
    .await;
    assert_eq!(scene.node_red.count_log_lines("REPLY_DROPPED"), 2);
    assert_eq!(scene.count_requests("/caught"), 0);
}

async fn drops_the_late_result_of_a_tool(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    scene.deploy(&scene.with_tool("read").change("warmth-tool", json!({"timeout": 200}))).await;
    let script = [tool_call("warmth", json!({"room": "hall"})), final_answer("Went on.")];
    scene.witness.set_answers(MODEL, script.each_ref().map(completion));
    scene.witness.hold("/warmth");
    assert_eq!(scene.ask().await["payload"], "Went on.");
    scene.witness.release("/warmth");
    eventually("a dropped reply", async || {
        (scene.node_red.count_log_lines("REPLY_DROPPED") == 1).then_some(())
    })
    .await;
    assert_eq!(scene.sidecar.runs().await.len(), 1);
}

async fn an_at_most_once_tool_without_a_result_asks_a_person(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let flow = flow(&scene, "return null;", 200).change("bad-tool", json!({"effect": "at_most_once"}));
    scene.deploy(&flow).await;
    script(&scene);
    scene.send_question().await;
    let run = scene.wait_for_run("waiting").await;
    assert_eq!(run["waiting"]["tool"], "bad", "{run:#}");
    scene.node_red.comms.wait_for_status("agent", |status| status["fill"] == "yellow").await;
    let id = run["runId"].as_str().unwrap();
    let failed = json!({"callId": run["waiting"]["callId"], "result": {"success": false, "error": "nothing was done"}});
    let reply = scene.sidecar.post(&format!("/api/runs/{id}/resolve"), failed).await;
    assert!((200..300).contains(&reply.status), "{reply:?}");
    assert_eq!(scene.witness.wait_for_bodies("/results", 1).await[0]["payload"], "Went on.");
    assert!(last_message(&scene.witness.wait_for_bodies(MODEL, 2).await[1]).contains("nothing was done"));
}

async fn an_ordinary_node_works_as_a_tool(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let schema = json!({"type": "object", "properties": {"room": {"type": "string"}}}).to_string();
    let code = "msg.payload = {told: 'of ' + msg.payload.room}; return msg;";
    let flow = scene
        .flow()
        .standard_agent(&scene.witness, &["room"], &["room"])
        .live(&scene.witness)
        .function("room", code, &["agent"])
        .change(
            "room",
            json!({"name": "room", "effect": "read", "description": "A room.", "inputSchema": schema}),
        );
    scene.deploy(&flow).await;
    let script = [tool_call("room", json!({"room": "hall"})), final_answer("Went on.")];
    scene.witness.set_answers(MODEL, script.each_ref().map(completion));
    let (tool_result, result) = ask_with_tool(&scene).await;
    assert!(tool_result.contains("of hall"), "{tool_result}");
    assert_eq!(result["payload"], "Went on.");
    assert_eq!(scene.sidecar.runs().await.len(), 1);
}

async fn two_agents_share_a_tool(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let flow = scene
        .with_tool("read")
        .inject("ask-other", "And here?", "other")
        .agent("other", &["warmth"], json!([["other-model"], ["warmth-tool"], [], ["other-result"], []]))
        .node(
            "other-model",
            "scripted-model",
            json!([["other"]]),
            json!({"replies": [tool_call("warmth", json!({"room": "attic"})), final_answer("Attic.")]}),
        )
        .post_to(&scene.witness, "other-result", "/other-results");
    scene.deploy(&flow).await;
    let script = [tool_call("warmth", json!({"room": "hall"})), final_answer("Hall.")];
    scene.witness.set_answers(MODEL, script.each_ref().map(completion));
    scene.witness.hold("/warmth");
    scene.send_question().await;
    scene.node_red.admin.inject("ask-other").await;
    let asked = scene.witness.wait_for_bodies("/warmth", 2).await;
    assert_ne!(asked[0]["key"], asked[1]["key"]);
    scene.witness.release("/warmth");
    assert_eq!(scene.witness.wait_for_bodies("/results", 1).await[0]["payload"], "Hall.");
    assert_eq!(scene.witness.wait_for_bodies("/other-results", 1).await[0]["payload"], "Attic.");
    assert_eq!(scene.node_red.count_log_lines("REPLY_DROPPED"), 0);
}

/// One agent reaches the node through a junction and a link. The node replies to both each time. A reply for the other
/// agent starts no run and is no error.
async fn two_agents_share_an_ordinary_node(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let script = [tool_call("room", json!({"room": "hall"})), final_answer("Found.")];
    let flow = scene
        .flow()
        .standard_agent(&scene.witness, &["room"], &["room"])
        .scripted(&script)
        .function("room", "msg.payload = 'here'; return msg;", &["other", "agent"])
        .change("room", json!({"name": "room", "effect": "read", "description": "A room."}))
        .agent("other", &["room"], json!([["other-model"], ["bend"], [], ["other-result"], []]))
        .node("other-model", "scripted-model", json!([["other"]]), json!({"replies": script}))
        .node("bend", "junction", json!([["out"]]), json!({}))
        .node("out", "link out", json!([]), json!({"links": ["in"], "mode": "link"}))
        .node("in", "link in", json!([["room"]]), json!({"links": ["out"]}))
        .inject("ask-other", "And here?", "other")
        .post_to(&scene.witness, "other-result", "/other-results");
    scene.deploy(&flow).await;
    assert_eq!(scene.ask().await["payload"], "Found.");
    scene.node_red.admin.inject("ask-other").await;
    assert_eq!(scene.witness.wait_for_bodies("/other-results", 1).await[0]["payload"], "Found.");
    assert_eq!(
        (scene.sidecar.runs().await.len(), scene.count_requests("/results"), scene.count_requests("/caught")),
        (2, 1, 0)
    );
    assert_eq!(
        (scene.node_red.count_log_lines("EDGE_REJECTED"), scene.node_red.count_log_lines("REPLY_DROPPED")),
        (0, 0)
    );
}

async fn refuses_two_tools_with_one_name(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let flow = scene
        .flow()
        .standard_agent(&scene.witness, &["bad"], &["bad-tool", "twin"])
        .scripted(&[final_answer("Never.")])
        .function_tool("bad", "return msg;")
        .flow_tool("twin", "bad", "read", &["bad-return"]);
    scene.deploy(&flow).await;
    let status = scene.node_red.comms.wait_for_status("agent", |status| status["fill"] == "red").await;
    // A status is short; the log has the whole sentence.
    assert!(status["text"].as_str().unwrap().starts_with("the tools "), "{status}");
    eventually("the name in the log", async || {
        let log = scene.node_red.log();
        log.lines().any(|line| line.contains("TOOL_NAME_DUPLICATE") && line.contains("`bad`")).then_some(())
    })
    .await;
    scene.send_question().await;
    let caught = scene.witness.wait_for_bodies("/caught", 1).await.remove(0);
    assert!(caught["error"]["code"].is_string(), "{caught:#}");
    assert_eq!(scene.sidecar.runs().await.len(), 0);
    // With another name it works.
    let fixed = flow
        .without_credentials()
        .change("twin", json!({"toolName": "good"}))
        .change("agent", json!({"allowedTools": ["bad", "good"]}));
    scene.deploy(&fixed).await;
    assert_eq!(scene.ask().await["payload"], "Never.");
}

async fn a_stale_reply_starts_no_run(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    // A tool's reply to an agent never starts a run.
    let code = "msg._agentCore = {type: 'tool_request', traceId: 'x', callId: 'call_of_yesterday', iteration: 1}; return msg;";
    let flow = scene
        .flow()
        .standard_agent(&scene.witness, &[], &[])
        .scripted(&[final_answer("Here.")])
        .inject("stale", "Old.", "forge")
        .function("forge", code, &["agent"]);
    scene.deploy(&flow).await;
    scene.node_red.admin.inject("stale").await;
    eventually("a dropped reply", async || {
        (scene.node_red.count_log_lines("REPLY_DROPPED") == 1).then_some(())
    })
    .await;
    scene.ask().await;
    assert_eq!((scene.count_requests("/results"), scene.sidecar.runs().await.len()), (1, 1));
}
