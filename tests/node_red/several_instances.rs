//! Several Node-REDs on one sidecar, and other modules that use our names.

use crate::kit::flow::{Flow, final_answer, tool_call};
use crate::kit::node_red::{NodeRed, Setup};
use crate::kit::release_line::ReleaseLine;
use crate::kit::scene::Scene;
use crate::kit::{on_both_lines, on_the_newer_line};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

on_both_lines! {
    works_beside_a_module_with_the_same_type
}

on_the_newer_line! {
    two_node_reds_share_a_sidecar
    a_second_node_red_with_the_same_name_is_refused
}

/// The same flow with the same ids, which posts its results to another path.
fn flow_named(scene: &Scene, name: &str) -> Flow {
    let script = [tool_call("where", json!({})), final_answer(name)];
    let code = format!("msg.payload = '{name}'; return msg;");
    let flow = scene.flow().standard_agent(&scene.witness, &["where"], &["where-tool"]).scripted(&script);
    flow.function_tool("where", &code)
        .change("result-post", json!({"url": scene.witness.url(&format!("/{name}"))}))
}

async fn two_node_reds_share_a_sidecar(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let other = NodeRed::start(ReleaseLine::Older).await;
    scene.deploy(&flow_named(&scene, "first")).await;
    other.deploy(&flow_named(&scene, "second").json()).await;
    scene.wait_for_connections(2).await;
    for count in 1..=3 {
        scene.send_question().await;
        other.admin.inject("ask").await;
        let (first, second) = tokio::join!(
            scene.witness.wait_for_bodies("/first", count),
            scene.witness.wait_for_bodies("/second", count)
        );
        assert!(first.iter().all(|result| result["payload"] == "first"), "{first:#?}");
        assert!(second.iter().all(|result| result["payload"] == "second"), "{second:#?}");
    }
    let runs = scene.sidecar.runs().await;
    let instances: std::collections::BTreeSet<String> =
        runs.iter().map(|run| run["agent"]["instance"].to_string()).collect();
    assert_eq!((runs.len(), instances.len()), (6, 2));
}

async fn a_second_node_red_with_the_same_name_is_refused(line: ReleaseLine) {
    let mut scene = Scene::start(line).await;
    let copied = json!({"instance": "copied"});
    scene.deploy(&flow_named(&scene, "first").change("runtime", copied.clone())).await;
    scene.wait_for_connections(1).await;
    let other = NodeRed::start(line).await;
    other.deploy(&flow_named(&scene, "second").change("runtime", copied).json()).await;
    let status = other.comms.wait_for_status("agent", |status| status["fill"] == "red").await;
    assert!(status["text"].as_str().unwrap().contains("INSTANCE_TAKEN"), "{status}");
    scene.send_question().await;
    scene.witness.wait_for_bodies("/first", 1).await;
    // The first one stops. Then the sidecar accepts the other.
    scene.node_red.stop().await;
    other.comms.wait_for_status("agent", |status| status["fill"] != "red").await;
    other.admin.inject("ask").await;
    assert_eq!(scene.witness.wait_for_bodies("/second", 1).await[0]["payload"], "second");
}

/// A minimal module with one of our types.
fn plugin(name: &'static str) -> Setup {
    let package = json!({"name": name, "version": "1.2.3", "node-red": {"nodes": {"agents": "agents.js"}}});
    let script = r#"module.exports = function (RED) {
        RED.nodes.registerType("agent-core", function (config) {
            RED.nodes.createNode(this, config);
            this.on("input", (msg, send, done) => { msg.payload = "of the plugin"; send([null, null, null, msg]); done(); });
        });
    };"#;
    let page = r#"<script type="text/javascript">RED.nodes.registerType("agent-core", {category: "x", defaults: {}, inputs: 1,
        outputs: 5});</script><script type="text/html" data-template-name="agent-core"></script>"#;
    let files = vec![
        ("package.json", package.to_string()),
        ("agents.js", script.to_owned()),
        ("agents.html", page.to_owned()),
    ];
    Setup { modules: vec![(name, files)], ..Setup::default() }
}

/// Node-RED loads modules by name, so the other module comes first or second.
async fn works_beside_a_module_with_the_same_type(line: ReleaseLine) {
    for name in ["0-redflow-plugin", "redflow-plugin"] {
        let node_red = NodeRed::start_with(line, plugin(name)).await;
        let log = node_red.log();
        let lines: Vec<&str> = log.lines().filter(|line| line.contains("agent-core")).collect();
        assert!(lines.iter().any(|line| line.contains(name)), "{name}: {log}");
        // All our other nodes are loaded.
        let sets = node_red.admin.sets("@redflow/node-red-bridge").await;
        let is_loaded = |name: &str| {
            sets.iter().any(|set| set["name"] == name && set.get("err").is_none() && set["enabled"] == true)
        };
        for name in ["redflow-runtime", "flow-tool", "openai-model", "chat-node"] {
            assert!(is_loaded(name), "{name}: {sets:#?}");
        }
        // One of the modules has the type, and its node works.
        let flow = Flow::bare()
            .inject("ask", "hello", "agent")
            .node("agent", "agent-core", json!([[], [], [], ["shown"], []]), json!({}))
            .node(
                "shown",
                "debug",
                json!([]),
                json!({"active": true, "complete": "payload", "targetType": "msg", "tosidebar": true}),
            );
        node_red.deploy(&flow.json()).await;
        let state: Value = node_red.admin.ask("GET", "/flows/state").await.ok(200);
        assert_eq!(state["state"], "start", "{name}");
        if name.starts_with('0') {
            node_red.admin.inject("ask").await;
            assert_eq!(node_red.comms.wait_for_debug("shown", 1).await[0]["msg"], "of the plugin");
        }
    }
}
