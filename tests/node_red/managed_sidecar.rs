//! A sidecar that Node-RED starts itself.

use crate::kit::flow::{Flow, final_answer};
use crate::kit::node_red::NodeRed;
use crate::kit::release_line::ReleaseLine;
use crate::kit::scene::MODEL;
use crate::kit::witness::{Witness, completion};
use crate::kit::{eventually, on_both_lines, on_the_newer_line};
use pretty_assertions::assert_eq;
use redflow_testkit::redflow_binary;
use serde_json::{Value, json};
use std::process::Command;

on_both_lines! {
    starts_restarts_and_stops_the_sidecar
}

on_the_newer_line! {
    the_sidecar_ends_when_node_red_is_killed
    reports_a_missing_binary
    private_hosts_reach_the_sidecar
}

fn flow(witness: &Witness) -> Flow {
    let runtime =
        json!({"mode": "managed", "binary": redflow_binary().unwrap().to_str().unwrap(), "url": ""});
    Flow::bare().runtime(runtime).standard_agent(witness, &[], &[]).live(witness)
}

/// The running sidecars that a process has started.
fn children(of: u32) -> Vec<u32> {
    let stat = |id: u32| std::fs::read_to_string(format!("/proc/{id}/stat")).ok();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| {
        // The name is in parentheses, then come state and parent.
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

/// The process id of the sidecar of a Node-RED.
pub(crate) async fn sidecar_of(node_red: &NodeRed) -> u32 {
    eventually("a managed sidecar", async || {
        let children = children(node_red.process());
        assert!(children.len() <= 1, "{children:?}");
        children.first().copied()
    })
    .await
}

async fn starts_restarts_and_stops_the_sidecar(line: ReleaseLine) {
    let witness = Witness::start().await;
    let mut node_red = NodeRed::start(line).await;
    witness.set_answers(MODEL, [completion(&final_answer("Of my own."))]);
    node_red.deploy(&flow(&witness).json()).await;
    node_red.admin.inject("ask").await;
    assert_eq!(witness.wait_for_bodies("/results", 1).await[0]["payload"], "Of my own.");
    let first = sidecar_of(&node_red).await;
    // The editor can read its log.
    let log = node_red.admin.ask("GET", "/redflow/runtimes/runtime/log").await;
    assert_eq!(log.status, 200, "{log:?}");
    assert!(String::from_utf8_lossy(&log.body).contains("listening on"), "{log:?}");
    // After a kill during a run, the next sidecar resumes the run.
    witness.hold(MODEL);
    node_red.admin.inject("ask").await;
    witness.wait_for_bodies(MODEL, 2).await;
    assert!(Command::new("kill").args(["-KILL", &first.to_string()]).status().unwrap().success());
    witness.wait_for_bodies(MODEL, 3).await;
    witness.release(MODEL);
    witness.wait_for_bodies("/results", 2).await;
    let second = sidecar_of(&node_red).await;
    assert_ne!(first, second);
    // A deploy that does not change the runtime node keeps the sidecar.
    let renamed = flow(&witness).without_credentials().change("agent", json!({"name": "Other"}));
    node_red.deploy(&renamed.json()).await;
    node_red.admin.inject("ask").await;
    witness.wait_for_bodies("/results", 3).await;
    assert_eq!(sidecar_of(&node_red).await, second);
    node_red.stop().await;
    eventually("its sidecar has stopped", async || (!runs(second)).then_some(())).await;
    // The next start uses the same data.
    node_red.start_again().await;
    node_red.admin.inject("ask").await;
    witness.wait_for_bodies("/results", 4).await;
    // The sidecar stops when its runtime node is removed.
    let third = sidecar_of(&node_red).await;
    node_red.deploy(&Flow::bare().json()).await;
    eventually("its sidecar has stopped", async || (!runs(third)).then_some(())).await;
}

async fn the_sidecar_ends_when_node_red_is_killed(line: ReleaseLine) {
    let witness = Witness::start().await;
    let mut node_red = NodeRed::start(line).await;
    witness.set_answers(MODEL, [completion(&final_answer("Of my own."))]);
    node_red.deploy(&flow(&witness).json()).await;
    node_red.admin.inject("ask").await;
    witness.wait_for_bodies("/results", 1).await;
    let sidecar = sidecar_of(&node_red).await;
    node_red.kill();
    eventually("its sidecar has stopped", async || (!runs(sidecar)).then_some(())).await;
    // The data directory is not locked any more.
    node_red.start_again().await;
    node_red.admin.inject("ask").await;
    witness.wait_for_bodies("/results", 2).await;
}

async fn reports_a_missing_binary(line: ReleaseLine) {
    let witness = Witness::start().await;
    let node_red = NodeRed::start(line).await;
    let missing = json!({"binary": "/nowhere/redflow", "queueSeconds": 1});
    node_red.deploy(&flow(&witness).change("runtime", missing).json()).await;
    let names_it =
        |status: &Value| status["text"].as_str().is_some_and(|text| text.contains("/nowhere/redflow"));
    let status = node_red.comms.wait_for_status("agent", names_it).await;
    assert_eq!(status["fill"], "red", "{status}");
    // Once, in its own words.
    assert_eq!(
        node_red.count_log_lines("[error] [redflow-runtime] there is no program /nowhere/redflow."),
        1
    );
    node_red.admin.inject("ask").await;
    let caught = witness.wait_for_bodies("/caught", 1).await.remove(0);
    assert_eq!(caught["error"]["code"], "RUNTIME_UNREACHABLE", "{caught:#}");
    assert!(caught["error"]["message"].as_str().unwrap().contains("/nowhere/redflow"), "{caught:#}");
    assert_eq!(node_red.count_log_lines("[redflow-runtime] there is no program"), 1);
}

/// The sidecar is started again with other private hosts, and refuses one that is none.
async fn private_hosts_reach_the_sidecar(line: ReleaseLine) {
    let witness = Witness::start().await;
    let node_red = NodeRed::start(line).await;
    witness.set_answers(MODEL, [completion(&final_answer("Of my own."))]);
    let with = |hosts: &str| flow(&witness).change("runtime", json!({"allowPrivate": hosts}));
    let options = async |id: u32| {
        let command = std::fs::read(format!("/proc/{id}/cmdline")).unwrap();
        let words: Vec<String> =
            command.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        words.into_iter().filter(|word| word.starts_with("--allow-private")).collect::<Vec<_>>()
    };
    node_red.deploy(&with("nas.lan:8123, [::1]:80").json()).await;
    node_red.admin.inject("ask").await;
    witness.wait_for_bodies("/results", 1).await;
    let first = sidecar_of(&node_red).await;
    assert_eq!(options(first).await, ["--allow-private=nas.lan:8123", "--allow-private=[::1]:80"]);
    node_red.deploy(&with("").without_credentials().json()).await;
    node_red.admin.inject("ask").await;
    witness.wait_for_bodies("/results", 2).await;
    let second = sidecar_of(&node_red).await;
    assert_ne!(first, second);
    assert!(options(second).await.is_empty());
    node_red.deploy(&with("nas.lan").without_credentials().json()).await;
    eventually("the reason in the log", async || {
        (node_red.count_log_lines("the port is missing") > 0).then_some(())
    })
    .await;
}
