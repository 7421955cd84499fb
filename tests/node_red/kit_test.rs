//! Tests the kit with a Node-RED without the palette.

use crate::kit::flow::Flow;
use crate::kit::node_red::{NodeRed, Setup};
use crate::kit::on_both_lines;
use crate::kit::release_line::ReleaseLine;
use crate::kit::witness::Witness;
use serde_json::json;

on_both_lines!(the_kit_works_with_a_node_red_without_the_palette);

async fn the_kit_works_with_a_node_red_without_the_palette(line: ReleaseLine) {
    let witness = Witness::start().await;
    let setup = Setup { without_palette: true, ..Setup::default() };
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
        .post("asked", &witness.url("/asked"), &["posted"])
        .post_to(&witness, "posted", "/posted");
    node_red.deploy(&flow.json()).await;
    witness.set_answers("/asked", [json!({"number": 7})]);
    witness.hold("/asked");
    node_red.admin.inject("ask").await;
    assert_eq!(witness.wait_for_bodies("/asked", 1).await, [json!("hello")]);
    assert_eq!(witness.requests("/posted").len(), 0);
    witness.release("/asked");
    assert_eq!(witness.wait_for_bodies("/posted", 1).await[0]["payload"], json!({"number": 7}));
    assert_eq!(node_red.comms.wait_for_debug("shown", 1).await[0]["msg"], "hello");
    node_red.comms.wait_for_status("mark", |status| status["text"] == "busy").await;
    // Its flows survive a kill and a stop.
    node_red.kill();
    node_red.start_again().await;
    node_red.admin.inject("ask").await;
    witness.wait_for_bodies("/posted", 2).await;
    node_red.stop().await;
    node_red.start_again().await;
    node_red.admin.inject("ask").await;
    witness.wait_for_bodies("/posted", 3).await;
}
