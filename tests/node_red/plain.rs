//! The kit itself, against a Node-RED without anything of ours.

use crate::kit::flow::Flow;
use crate::kit::line::Line;
use crate::kit::node_red::{NodeRed, Setup};
use crate::kit::on_both_lines;
use crate::kit::witness::Witness;
use serde_json::json;

on_both_lines!(a_flow_runs_and_is_seen_from_outside);

async fn a_flow_runs_and_is_seen_from_outside(line: Line) {
    let witness = Witness::start().await;
    let setup = Setup { plain: true, ..Setup::default() };
    let mut node_red = NodeRed::start_with(line, setup).await;
    let settings = node_red.admin.ask("GET", "/settings").await.ok(200);
    assert!(settings["version"].as_str().unwrap().starts_with(&format!("{}.", line.name())), "{settings}");
    let flow = Flow::bare()
        .inject("ask", "hello", "mark")
        .function("mark", "node.status({text: 'busy'}); return msg;", &["shown", "asked"])
        .node(
            "shown",
            "debug",
            json!([]),
            json!({"active": true, "complete": "payload", "targetType": "msg", "tosidebar": true}),
        )
        .post("asked", &witness.url("/asked"), &["told"])
        .told(&witness, "told", "/told");
    node_red.deploy(&flow.json()).await;
    witness.answers("/asked", [json!({"number": 7})]);
    witness.hold("/asked");
    node_red.admin.inject("ask").await;
    assert_eq!(witness.bodies("/asked", 1).await, [json!("hello")]);
    assert_eq!(witness.seen("/told").len(), 0);
    witness.let_go("/asked");
    assert_eq!(witness.bodies("/told", 1).await[0]["payload"], json!({"number": 7}));
    assert_eq!(node_red.comms.debug("shown", 1).await[0]["msg"], "hello");
    node_red.comms.status("mark", |status| status["text"] == "busy").await;
    // It keeps its flows when it is killed, and when it is asked to stop.
    node_red.kill();
    node_red.start_again().await;
    node_red.admin.inject("ask").await;
    witness.bodies("/told", 2).await;
    node_red.stop().await;
    node_red.start_again().await;
    node_red.admin.inject("ask").await;
    witness.bodies("/told", 3).await;
}
