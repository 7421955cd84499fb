//! The results of a message to an agent.

use crate::kit::flow::{final_answer, tool_call};
use crate::kit::on_both_lines;
use crate::kit::release_line::ReleaseLine;
use crate::kit::scene::{MODEL, Scene};
use crate::kit::witness::completion;
use crate::redis_server::RedisServer;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

on_both_lines! {
    an_agent_uses_a_tool_of_the_sidecar
    an_agent_uses_a_flow_tool
    an_ai_agent_streams_its_answer_and_calls_tools_in_parallel
    an_error_reaches_catch_nodes
}

async fn an_agent_uses_a_tool_of_the_sidecar(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let script = [tool_call("calculator", json!({"expression": "6 * 7"})), final_answer("It is 42.")];
    let flow = scene.flow().standard_agent(&scene.witness, &[], &[]).scripted(&script);
    let flow =
        flow.change("ask", json!({"props": [{"p": "payload"}, {"p": "mark", "v": "kept", "vt": "str"}]}));
    scene.deploy(&flow).await;
    scene.send_question().await;
    let result = scene.witness.wait_for_bodies("/results", 1).await.remove(0);
    assert_eq!(result["payload"], "It is 42.");
    assert_eq!(result["mark"], "kept");
    assert_eq!(
        (&result["agentResult"]["completed"], &result["agentResult"]["iterations"]),
        (&json!(true), &json!(2))
    );
    assert_eq!(result.get("error"), None);
    // One message per answer of the model, then Complete.
    let answers = scene.witness.wait_for_bodies("/answers", 2).await;
    assert!(answers.iter().all(|answer| answer["mark"] == "kept"), "{answers:#?}");
    assert_eq!(scene.witness.wait_for_bodies("/completed", 1).await[0]["payload"], "It is 42.");
    let status = scene
        .node_red
        .comms
        .wait_for_status("agent", |status| status["text"] == "done after 2 iterations")
        .await;
    assert_eq!((&status["fill"], &status["shape"]), (&json!("green"), &json!("dot")));
    scene.ask().await;
    scene.witness.wait_for_bodies("/answers", 4).await;
    scene.witness.wait_for_bodies("/completed", 2).await;
    assert_eq!(scene.count_requests("/caught"), 0);
}

async fn an_agent_uses_a_flow_tool(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    scene.deploy(&scene.with_tool("read")).await;
    let script = [tool_call("warmth", json!({"room": "kitchen"})), final_answer("Quite warm.")];
    scene.witness.set_answers(MODEL, script.each_ref().map(completion));
    scene.witness.set_answers("/warmth", [json!({"celsius": 21.5})]);
    scene.witness.hold("/warmth");
    scene.send_question().await;
    let call = scene.witness.wait_for_bodies("/warmth", 1).await.remove(0);
    assert_eq!(call["input"], json!({"room": "kitchen"}));
    assert!(call["key"].as_str().is_some_and(|key| key.len() >= 32), "{call}");
    scene.node_red.comms.wait_for_status("agent", |status| status["text"] == "iteration 1: warmth").await;
    scene.witness.release("/warmth");
    let result = scene.witness.wait_for_bodies("/results", 1).await.remove(0);
    assert_eq!(result["payload"], "Quite warm.");
    // The model got the result of the tool.
    let asked = scene.witness.wait_for_bodies(MODEL, 2).await;
    assert!(last_message(&asked[1]).contains("21.5"), "{:#}", asked[1]);
    assert_eq!(scene.count_requests("/warmth"), 1);
    assert!(!result.as_object().unwrap().keys().any(|key| key.starts_with("_redflow")), "{result}");
}

/// The last message in a request to a model.
pub(crate) fn last_message(request: &Value) -> String {
    let last = request["messages"].as_array().and_then(|all| all.last());
    last.map(|last| last["content"].to_string()).unwrap_or_default()
}

async fn an_error_reaches_catch_nodes(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let script = [tool_call("no-such-tool", json!({}))];
    let flow = scene.flow().standard_agent(&scene.witness, &[], &[]).scripted(&script);
    scene.deploy(&flow).await;
    scene.send_question().await;
    let caught = scene.witness.wait_for_bodies("/caught", 1).await.remove(0);
    assert_eq!(caught["error"]["code"], "TOOL_NOT_ALLOWED", "{caught:#}");
    assert_eq!(caught["error"]["source"]["id"], "agent");
    assert!(!caught["error"]["message"].as_str().unwrap().is_empty());
    assert_eq!(caught["agentResult"]["completed"], false);
    let result = scene.witness.wait_for_bodies("/results", 1).await.remove(0);
    assert_eq!(result["error"]["code"], "TOOL_NOT_ALLOWED");
    let status = scene.node_red.comms.wait_for_status("agent", |status| status["fill"] == "red").await;
    assert!(status["text"].as_str().unwrap().starts_with("TOOL_NOT_ALLOWED"), "{status}");
    // It still accepts messages.
    scene.send_question().await;
    scene.witness.wait_for_bodies("/caught", 2).await;
    scene.witness.wait_for_bodies("/results", 2).await;
    assert_eq!(scene.count_requests("/completed"), 0);
}

/// The tools of the sidecar and of Node-RED are bound by wires, and one more by a property.
async fn an_ai_agent_streams_its_answer_and_calls_tools_in_parallel(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let text = "It is warm in both rooms, and the sum is right. ".repeat(20);
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let calls = [
        call("warmth", json!({"room": "kitchen"})),
        call("warmth", json!({"room": "hall"})),
        call("calculator", json!({"expression": "6 * 7"})),
    ];
    let replies = [json!({"toolCalls": calls}), json!(text)];
    let agent = json!({"runtime": "runtime", "systemPrompt": "Be brief.", "tools": ["warmth-tool"]});
    let flow = scene
        .flow()
        .inject("ask", "How warm is it?", "agent")
        .node("agent", "ai-agent", json!([["result"], ["piece"]]), agent)
        .post_to(&scene.witness, "result", "/results")
        .post_to(&scene.witness, "piece", "/pieces")
        .scripted(&replies)
        .calculator()
        .http_tool(&scene.witness, "warmth", "read")
        // This wire binds the tool too, and brings no reply.
        .change("warmth-tool", json!({"wires": [["warmth-wrap", "agent"]]}));
    scene.deploy(&flow).await;
    scene.witness.set_answers("/warmth", [json!({"celsius": 21}), json!({"celsius": 19})]);
    // Both calls of the flow tool are open before one of them returns.
    scene.witness.hold("/warmth");
    scene.send_question().await;
    let rooms = scene.witness.wait_for_bodies("/warmth", 2).await;
    assert_ne!(rooms[0]["input"], rooms[1]["input"]);
    scene.witness.release("/warmth");
    let result = scene.witness.wait_for_bodies("/results", 1).await.remove(0);
    assert_eq!(result["payload"], text);
    assert_eq!(result["agentResult"]["iterations"], 2);
    let history = result["envelope"]["tools"]["history"].as_array().unwrap();
    assert!(history[..2].iter().all(|call| call["output"]["celsius"].is_number()), "{history:#?}");
    let ended = |pieces: &[Value]| pieces.iter().any(|piece| piece["stream"]["type"] == "end");
    let mut pieces = crate::kit::eventually("the end of the stream".to_owned(), async || {
        let pieces: Vec<Value> =
            scene.witness.requests("/pieces").iter().map(|request| request.body.clone()).collect();
        ended(&pieces).then_some(pieces)
    })
    .await;
    // Each piece is a request of its own, so they may arrive in any order.
    pieces.sort_by_key(|piece| piece["stream"]["seq"].as_u64());
    let last =
        pieces.iter().filter(|piece| piece["stream"]["type"] == "text" && piece["stream"]["iteration"] == 2);
    let joined: String = last.clone().map(|piece| piece["payload"].as_str().unwrap()).collect();
    assert_eq!(joined, text);
    assert!(last.count() > 1, "{pieces:#?}");
    assert!(pieces.iter().all(|piece| piece["_msgid"] == result["_msgid"]), "{pieces:#?}");
}

/// The agent runs on, so its runs do not show it: its status and its errors do, before the first message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shows_a_memory_that_is_down_until_it_is_back() {
    let mut scene = Scene::start(ReleaseLine::Newer).await;
    let mut redis = RedisServer::start();
    redis.kill();
    let agent = json!({"name": "Clerk", "memory": "talks", "sessionId": "s"});
    let flow = scene
        .flow()
        .standard_agent(&scene.witness, &[], &[])
        .scripted(&[final_answer("Here.")])
        .change("agent", agent)
        .node("talks", "redis-memory", json!([[]]), redis.props(&json!({"name": "Talks"})));
    scene.deploy(&flow).await;
    let errors = async || {
        scene.node_red.admin.ask("GET", "/redflow/agents/agent/errors").await.ok(200)["errors"].clone()
    };
    let is_yellow = |status: &Value| {
        status["fill"] == "yellow"
            && status["text"].as_str().is_some_and(|text| text.starts_with("Redis cannot be reached"))
    };
    scene.node_red.comms.wait_for_status("agent", is_yellow).await;
    let message = "Redis cannot be reached: the agent runs without its memory `Talks`";
    let listed = errors().await;
    assert_eq!((&listed[0]["code"], &listed[0]["message"]), (&json!("MEMORY_ERROR"), &json!(message)));
    assert_eq!(
        (&listed[0]["phrase"]["key"], listed.as_array().map(Vec::len)),
        (&json!("memory_fails"), Some(1))
    );
    scene.ask().await;
    scene.node_red.comms.wait_for_status("agent", is_yellow).await;
    redis.restart();
    let is_done = |status: &Value| status["fill"] == "green";
    scene.node_red.comms.wait_for_status("agent", is_done).await;
    assert_eq!(errors().await, json!([]));
    // It goes down while no message comes, and a run finds it. A new sidecar finds it as well.
    redis.kill();
    scene.ask().await;
    scene.node_red.comms.wait_for_status("agent", is_yellow).await;
    scene.sidecar.kill();
    scene.sidecar.start();
    scene.node_red.comms.wait_for_status("agent", |status| status["fill"] == "grey").await;
    scene.node_red.comms.wait_for_status("agent", is_yellow).await;
    // Without the memory nothing is missing.
    scene.deploy(&flow.change("agent", json!({"memory": ""})).without("talks")).await;
    scene.node_red.comms.wait_for_status("agent", |status| status["fill"] != "yellow").await;
    assert_eq!(errors().await, json!([]));
}
