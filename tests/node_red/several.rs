//! Several Node-REDs, and other modules that want the same names.

use crate::kit::flow::{Flow, calls, says};
use crate::kit::line::Line;
use crate::kit::node_red::{NodeRed, Setup};
use crate::kit::scene::Scene;
use crate::kit::{on_both_lines, on_the_newer_line};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

on_both_lines! {
    a_type_that_somebody_else_has
}

on_the_newer_line! {
    two_on_one_sidecar
    two_of_one_name
}

/// The same flow, with the same ids, whose results are told elsewhere.
fn of(scene: &Scene, name: &str) -> Flow {
    let script = [calls("where", json!({})), says(name)];
    let code = format!("msg.payload = '{name}'; return msg;");
    let flow = scene.flow().usual(&scene.witness, &["where"], &["where-tool"]).scripted(&script);
    flow.coded_tool("where", &code)
        .changed("result-post", json!({"url": scene.witness.url(&format!("/{name}"))}))
}

async fn two_on_one_sidecar(line: Line) {
    let scene = Scene::start(line).await;
    let other = NodeRed::start(Line::Older).await;
    scene.deploy(&of(&scene, "first")).await;
    other.deploy(&of(&scene, "second").json()).await;
    scene.connected(2).await;
    for count in 1..=3 {
        scene.ask().await;
        other.admin.inject("ask").await;
        let (first, second) =
            tokio::join!(scene.witness.bodies("/first", count), scene.witness.bodies("/second", count));
        assert!(first.iter().all(|result| result["payload"] == "first"), "{first:#?}");
        assert!(second.iter().all(|result| result["payload"] == "second"), "{second:#?}");
    }
    let runs = scene.sidecar.runs().await;
    let instances: std::collections::BTreeSet<String> =
        runs.iter().map(|run| run["agent"]["instance"].to_string()).collect();
    assert_eq!((runs.len(), instances.len()), (6, 2));
}

async fn two_of_one_name(line: Line) {
    let mut scene = Scene::start(line).await;
    let copied = json!({"instance": "copied"});
    scene.deploy(&of(&scene, "first").changed("runtime", copied.clone())).await;
    scene.connected(1).await;
    let other = NodeRed::start(line).await;
    other.deploy(&of(&scene, "second").changed("runtime", copied).json()).await;
    let shown = other.comms.status("agent", |status| status["fill"] == "red").await;
    assert!(shown["text"].as_str().unwrap().contains("INSTANCE_TAKEN"), "{shown}");
    scene.ask().await;
    scene.witness.bodies("/first", 1).await;
    // The first one goes; the other is let in then.
    scene.node_red.stop().await;
    other.comms.status("agent", |status| status["fill"] != "red").await;
    other.admin.inject("ask").await;
    assert_eq!(scene.witness.bodies("/second", 1).await[0]["payload"], "second");
}

/// A module as small as one can be that has a type of ours.
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

/// Whichever of both comes first, by their names.
async fn a_type_that_somebody_else_has(line: Line) {
    for name in ["0-redflow-plugin", "redflow-plugin"] {
        let node_red = NodeRed::start_with(line, plugin(name)).await;
        let log = node_red.log();
        let said: Vec<&str> = log.lines().filter(|line| line.contains("agent-core")).collect();
        assert!(said.iter().any(|line| line.contains(name)), "{name}: {log}");
        // Everything else of ours is there.
        let sets = node_red.admin.sets("@redflow/node-red-bridge").await;
        let well = |name: &str| {
            sets.iter().any(|set| set["name"] == name && set.get("err").is_none() && set["enabled"] == true)
        };
        for name in ["redflow-runtime", "flow-tool", "openai-model", "chat-node"] {
            assert!(well(name), "{name}: {sets:#?}");
        }
        // There is one who has the type, and it works.
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
            assert_eq!(node_red.comms.debug("shown", 1).await[0]["msg"], "of the plugin");
        }
    }
}
