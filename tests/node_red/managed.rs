//! A sidecar that Node-RED starts itself.

use crate::built::redflow;
use crate::kit::flow::{Flow, says};
use crate::kit::line::Line;
use crate::kit::node_red::NodeRed;
use crate::kit::scene::MODEL;
use crate::kit::witness::{Witness, completion};
use crate::kit::{eventually, on_both_lines, on_the_newer_line};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::process::Command;

on_both_lines! {
    it_is_started_restarted_and_stopped
}

on_the_newer_line! {
    it_leaves_no_orphan
    a_binary_that_is_not_there
}

fn flow(witness: &Witness) -> Flow {
    let runtime = json!({"mode": "managed", "binary": redflow().to_str().unwrap(), "url": ""});
    Flow::bare().runtime(runtime).usual(witness, &[], &[]).live(witness)
}

/// The processes of ours that a process has started and that still run.
fn children(of: u32) -> Vec<u32> {
    let stat = |id: u32| std::fs::read_to_string(format!("/proc/{id}/stat")).ok();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| {
        // Its name is in parentheses; then its state and its parent.
        let Some(stat) = stat(*id) else { return false };
        let Some((name, rest)) = stat.rsplit_once(')') else { return false };
        let mut words = rest.split_whitespace();
        let (state, parent) = (words.next(), words.next().and_then(|parent| parent.parse::<u32>().ok()));
        name.ends_with("(redflow") && state != Some("Z") && parent == Some(of)
    })
    .collect()
}

fn runs(id: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{id}/stat"))
        .is_ok_and(|stat| stat.contains("(redflow)") && !stat.contains(") Z "))
}

/// The sidecar that it has started.
pub(crate) async fn child(node_red: &NodeRed) -> u32 {
    eventually("a sidecar of its own", async || {
        let children = children(node_red.process());
        assert!(children.len() <= 1, "{children:?}");
        children.first().copied()
    })
    .await
}

async fn it_is_started_restarted_and_stopped(line: Line) {
    let witness = Witness::start().await;
    let mut node_red = NodeRed::start(line).await;
    witness.answers(MODEL, [completion(&says("Of my own."))]);
    node_red.deploy(&flow(&witness).json()).await;
    node_red.admin.inject("ask").await;
    assert_eq!(witness.bodies("/results", 1).await[0]["payload"], "Of my own.");
    let first = child(&node_red).await;
    // Its log can be read.
    let log = node_red.admin.ask("GET", "/redflow/runtimes/runtime/log").await;
    assert_eq!(log.status, 200, "{log:?}");
    assert!(String::from_utf8_lossy(&log.body).contains("listening on"), "{log:?}");
    // It is killed in the middle of a run, and the run goes on in the next one.
    witness.hold(MODEL);
    node_red.admin.inject("ask").await;
    witness.bodies(MODEL, 2).await;
    assert!(Command::new("kill").args(["-KILL", &first.to_string()]).status().unwrap().success());
    witness.bodies(MODEL, 3).await;
    witness.let_go(MODEL);
    witness.bodies("/results", 2).await;
    let second = child(&node_red).await;
    assert_ne!(first, second);
    // A deploy that does not touch it leaves it alone.
    let renamed = flow(&witness).again().changed("agent", json!({"name": "Other"}));
    node_red.deploy(&renamed.json()).await;
    node_red.admin.inject("ask").await;
    witness.bodies("/results", 3).await;
    assert_eq!(child(&node_red).await, second);
    node_red.stop().await;
    eventually("its sidecar has stopped", async || (!runs(second)).then_some(())).await;
    // With the same data, it comes again.
    node_red.start_again().await;
    node_red.admin.inject("ask").await;
    witness.bodies("/results", 4).await;
    // When its node goes, so does it.
    let third = child(&node_red).await;
    node_red.deploy(&Flow::bare().json()).await;
    eventually("its sidecar has stopped", async || (!runs(third)).then_some(())).await;
}

async fn it_leaves_no_orphan(line: Line) {
    let witness = Witness::start().await;
    let mut node_red = NodeRed::start(line).await;
    witness.answers(MODEL, [completion(&says("Of my own."))]);
    node_red.deploy(&flow(&witness).json()).await;
    node_red.admin.inject("ask").await;
    witness.bodies("/results", 1).await;
    let sidecar = child(&node_red).await;
    node_red.kill();
    eventually("its sidecar has stopped", async || (!runs(sidecar)).then_some(())).await;
    // What it held is free.
    node_red.start_again().await;
    node_red.admin.inject("ask").await;
    witness.bodies("/results", 2).await;
}

async fn a_binary_that_is_not_there(line: Line) {
    let witness = Witness::start().await;
    let node_red = NodeRed::start(line).await;
    let missing = json!({"binary": "/nowhere/redflow", "queueSeconds": 1});
    node_red.deploy(&flow(&witness).changed("runtime", missing).json()).await;
    let says_so =
        |status: &Value| status["text"].as_str().is_some_and(|text| text.contains("/nowhere/redflow"));
    let shown = node_red.comms.status("agent", says_so).await;
    assert_eq!(shown["fill"], "red", "{shown}");
    assert!(node_red.logged("/nowhere/redflow") > 0);
    node_red.admin.inject("ask").await;
    let caught = witness.bodies("/caught", 1).await.remove(0);
    assert_eq!(caught["error"]["code"], "RUNTIME_UNREACHABLE", "{caught:#}");
}
