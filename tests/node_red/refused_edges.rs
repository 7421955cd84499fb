//! Messages from one agent to another, over refused wires and over valid ones.

use crate::editor_api::{RUNTIME, errors, runs};
use crate::kit::flow::{Flow, final_answer, tool_call};
use crate::kit::node_red::NodeRed;
use crate::kit::release_line::ReleaseLine;
use crate::kit::scene::Scene;
use crate::kit::{eventually, on_both_lines, on_the_newer_line};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

on_both_lines! {
    rejects_a_message_on_a_refused_wire
    an_agent_works_in_the_tool_of_another
}

on_the_newer_line! {
    rejects_a_tool_message_that_reaches_another_agent
    an_agent_handles_the_error_of_a_tool
    rejects_a_message_on_a_refused_wire_behind_a_junction
    rejects_messages_of_a_catch_node_to_refused_agents
}

/// Agent `agent` with a tool, and agent `other` with a calculator. Errors of `other` are posted to `/rejected`.
fn two_agents(scene: &Scene) -> Flow {
    let script = [tool_call("where", json!({})), final_answer("Found.")];
    scene
        .flow()
        .standard_agent(&scene.witness, &["where"], &["where-tool"])
        .scripted(&script)
        .function_tool("where", "msg.payload = 'here'; return msg;")
        .agent("other", &["calculator"], json!([["other-model"], ["calc"], [], ["strange"], []]))
        .node(
            "other-model",
            "scripted-model",
            json!([["other"]]),
            json!({"replies": [final_answer("Never.")]}),
        )
        .node("calc", "calculator-tool", json!([["other"]]), json!({}))
        .post_to(&scene.witness, "strange", "/strange")
        .node("other-catch", "catch", json!([["rejected"]]), json!({"scope": ["other"], "uncaught": false}))
        .post_to(&scene.witness, "rejected", "/rejected")
}

/// Checks that `other` rejected one message with this text, and that nothing else happened.
async fn check_rejected(scene: &Scene, words: &str) {
    let posted = scene.witness.wait_for_bodies("/rejected", 1).await;
    let message = posted[0]["error"]["message"].as_str().unwrap();
    assert_eq!(
        (&posted[0]["error"]["code"], &posted[0]["payload"]),
        (&json!("EDGE_REJECTED"), &json!("here")),
        "{posted:#?}"
    );
    assert!(message.contains(words), "{message}");
    let errors = errors(&scene.node_red, "other").await;
    assert_eq!(
        (errors.len(), &errors[0]["code"], &errors[0]["message"]),
        (1, &json!("EDGE_REJECTED"), &json!(message))
    );
    assert_eq!(runs(&scene.node_red, "?agent=other").await, Vec::<Value>::new());
    assert_eq!((scene.count_requests("/strange"), scene.count_requests("/caught")), (0, 0));
}

async fn rejects_a_message_on_a_refused_wire(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let flow = two_agents(&scene);
    let wrong = flow.clone().change("where-body", json!({"wires": [["where-return", "other"]]}));
    scene.deploy(&wrong).await;
    scene.node_red.comms.wait_for_status("other", |status| status["fill"] == "red").await;
    // The valid agent and its tool work.
    assert_eq!(scene.ask().await["payload"], "Found.");
    check_rejected(&scene, "EDGE_FOREIGN_REPLY").await;
    // Without the wrong wire, the agent accepts messages over a valid one.
    scene.deploy(&flow.without_credentials().inject("other-ask", "Hello?", "other")).await;
    scene.node_red.comms.wait_for_status("other", |status| status["fill"] != "red").await;
    scene.node_red.admin.inject("other-ask").await;
    assert_eq!(scene.witness.wait_for_bodies("/strange", 1).await[0]["payload"], "Never.");
}

/// The calls of an agent's newest run, with their results.
async fn calls_of(node_red: &NodeRed, agent: &str) -> Vec<Value> {
    let run = runs(node_red, &format!("?agent={agent}&limit=1")).await.remove(0);
    let path = format!("{RUNTIME}/runs/{}", run["runId"].as_str().unwrap());
    let detail = node_red.admin.ask("GET", &path).await.ok(200);
    detail["calls"].as_array().unwrap().clone()
}

/// If the checker accepts it, an agent may be part of the tool of another one. Its result is the tool's result.
async fn an_agent_works_in_the_tool_of_another(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let script = [tool_call("where", json!({"room": "hall"})), final_answer("Found.")];
    let other = [tool_call("look", json!({})), final_answer("In the hall.")];
    // `route` gets messages from elsewhere too, so it belongs to no tool alone.
    let flow = scene
        .flow()
        .standard_agent(&scene.witness, &["where"], &["where-tool"])
        .scripted(&script)
        .flow_tool("where-tool", "where", "at_most_once", &["route"])
        .function("route", "return [msg, null];", &[])
        .change("route", json!({"outputs": 2, "wires": [["other"], ["where-return"]]}))
        .inject("elsewhere", "Hello?", "route")
        .node("where-return", "flow-tool-return", json!([]), json!({}))
        .agent(
            "other",
            &["look"],
            json!([["other-model"], ["look-tool"], [], ["strange", "where-return"], []]),
        )
        .node("other-model", "scripted-model", json!([["other"]]), json!({"replies": other}))
        .function_tool("look", "msg.payload = 'a coat'; return msg;")
        .post_to(&scene.witness, "strange", "/strange");
    scene.deploy(&flow).await;
    assert_eq!(scene.ask().await["payload"], "Found.");
    let posted = scene.witness.wait_for_bodies("/strange", 1).await;
    assert_eq!(posted[0]["payload"], "In the hall.", "{posted:#?}");
    let (own, others) = (calls_of(&scene.node_red, "agent").await, calls_of(&scene.node_red, "other").await);
    assert_eq!((own.len(), &own[0]["result"]["output"]), (1, &json!("In the hall.")), "{own:#?}");
    assert_eq!((others.len(), &others[0]["result"]["output"]), (1, &json!("a coat")), "{others:#?}");
    // If it fails, the tool fails with the same message, and no run waits for a person.
    let fails = flow.without_credentials().change("other-model", json!({"replies": ["no JSON at all"]}));
    scene.deploy(&fails).await;
    assert_eq!(scene.ask().await["payload"], "Found.");
    let own = calls_of(&scene.node_red, "agent").await;
    let reason = scene.witness.wait_for_bodies("/strange", 2).await[1]["error"]["message"].clone();
    assert_eq!(own[0]["result"]["success"], false, "{own:#?}");
    assert!(own[0]["result"].to_string().contains(reason.as_str().unwrap()), "{reason} {own:#?}");
    assert_eq!(
        (scene.node_red.count_log_lines("EDGE_REJECTED"), scene.node_red.count_log_lines("REPLY_DROPPED")),
        (0, 0)
    );
}

/// An agent behind a Catch node for all nodes handles the error of another agent's tool.
async fn an_agent_handles_the_error_of_a_tool(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let flow = two_agents(&scene)
        .change("where-body", json!({"func": "throw new Error('the pipe is broken');"}))
        .change("other-model", json!({"replies": [final_answer("Look elsewhere.")]}))
        .change("other", json!({"wires": [["other-model"], ["calc"], [], ["strange", "where-return"], []]}))
        .node("all", "catch", json!([["other"]]), json!({"scope": null, "uncaught": false}));
    scene.deploy(&flow).await;
    assert_eq!(scene.ask().await["payload"], "Found.");
    let own = calls_of(&scene.node_red, "agent").await;
    assert_eq!(own[0]["result"]["output"], "Look elsewhere.", "{own:#?}");
    assert_eq!(runs(&scene.node_red, "?agent=other").await.len(), 1);
    assert_eq!(
        (
            scene.count_requests("/strange"),
            scene.count_requests("/rejected"),
            scene.count_requests("/caught")
        ),
        (1, 0, 0)
    );
    assert_eq!(scene.node_red.count_log_lines("EDGE_REJECTED"), 0);
}

/// The last wire of a link does not show the origin of a message. So the message reaches the agent, which rejects it.
async fn rejects_a_tool_message_that_reaches_another_agent(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let link = |links: &str, mode: &str| json!({"links": [links], "mode": mode});
    let flow = two_agents(&scene)
        .change("where-body", json!({"wires": [["out"]]}))
        .node("out", "link out", json!([]), link("in", "link"))
        .node("in", "link in", json!([["other", "where-return"]]), link("out", "link"));
    scene.deploy(&flow).await;
    assert_eq!(scene.ask().await["payload"], "Found.");
    let posted = scene.witness.wait_for_bodies("/rejected", 1).await;
    let error = &posted[0]["error"];
    assert_eq!(error["code"], "EDGE_REJECTED", "{posted:#?}");
    assert!(error["message"].as_str().unwrap().contains("EDGE_FOREIGN_REPLY"), "{posted:#?}");
    assert_eq!(scene.witness.wait_for_bodies("/strange", 1).await[0]["error"]["code"], "EDGE_REJECTED");
    assert_eq!(runs(&scene.node_red, "?agent=other").await, Vec::<Value>::new());
    assert_eq!((errors(&scene.node_red, "other").await.len(), scene.count_requests("/caught")), (1, 0));
}

/// Here no single wire is refused, so the checker refuses the whole agent.
async fn rejects_a_message_on_a_refused_wire_behind_a_junction(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let flow = scene
        .flow()
        .standard_agent(&scene.witness, &[], &[])
        .scripted(&[final_answer("Fixed.")])
        .change("agent", json!({"wires": [["model"], ["calc"], [], ["result", "round"], []]}))
        .node("round", "junction", json!([["agent"]]), json!({}));
    scene.deploy(&flow).await;
    scene.node_red.comms.wait_for_status("agent", |status| status["fill"] == "red").await;
    scene.send_question().await;
    // The message leaves port 3 with its error, returns to the agent, and stops.
    let kept = eventually("both errors", async || {
        let errors = errors(&scene.node_red, "agent").await;
        (errors.len() == 2).then_some(errors)
    })
    .await;
    let messages: Vec<&str> = kept.iter().map(|one| one["message"].as_str().unwrap()).collect();
    assert!(messages[0].contains("refused already") && messages[1].contains("EDGE_SELF"), "{kept:#?}");
    // A second question gives the first one enough time.
    scene.send_question().await;
    let caught = scene.witness.wait_for_bodies("/caught", 2).await;
    assert!(caught.iter().all(|one| one["error"]["code"] == "EDGE_REJECTED"), "{caught:#?}");
    assert_eq!(
        (scene.sidecar.runs().await.len(), scene.witness.wait_for_bodies("/results", 2).await.len()),
        (0, 2)
    );
    // The fixed agent accepts a message that it rejected before: a flow may have kept it for a retry.
    let error = "msg.error = {code: 'EDGE_REJECTED', message: 'no', source: {id: 'agent', type: 'agent-core', count: 1}};";
    let fixed = flow
        .without_credentials()
        .without("round")
        .change("agent", json!({"wires": [["model"], ["calc"], [], ["result"], []]}))
        .inject("again", "Once more.", "retry")
        .function("retry", &format!("{error} return msg;"), &["agent"]);
    scene.deploy(&fixed).await;
    scene.node_red.admin.inject("again").await;
    assert_eq!(scene.witness.wait_for_bodies("/results", 3).await[2]["payload"], "Fixed.");
    assert_eq!(scene.count_requests("/caught"), 2);
}

/// Refused agents do not send a message to each other forever.
async fn rejects_messages_of_a_catch_node_to_refused_agents(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let flow = two_agents(&scene).without("model").without("other-model").node(
        "all",
        "catch",
        json!([["agent", "other"]]),
        json!({"scope": null, "uncaught": false}),
    );
    scene.deploy(&flow).await;
    scene.node_red.comms.wait_for_status("agent", |status| status["fill"] == "red").await;
    let node_red = &scene.node_red;
    // A second question gives the first one enough time.
    for count in 1..=2 {
        scene.send_question().await;
        scene.witness.wait_for_bodies("/caught", count).await;
        eventually("all errors", async || {
            let counts = [errors(node_red, "agent").await.len(), errors(node_red, "other").await.len()];
            assert!(counts[0] <= 2 * count && counts[1] <= count, "{counts:?}");
            (counts == [2 * count, count]).then_some(())
        })
        .await;
    }
    assert_eq!(
        (
            scene.count_requests("/caught"),
            scene.count_requests("/rejected"),
            scene.count_requests("/results")
        ),
        (2, 0, 2)
    );
    assert_eq!(scene.sidecar.runs().await.len(), 0);
}
