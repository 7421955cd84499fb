//! Runs that held a process are not resumed by the next start.

use crate::kit::{Setup, TestSidecar, eventually, tool_flow};
use redflow_ports::RunStore as _;
use redflow_store::Store;
use serde_json::{Value, json};

/// Starts a run that calls a tool which takes an hour. Gives its id.
async fn start_slow_run(sidecar: &TestSidecar) -> String {
    let started = sidecar.post("/api/runs", json!({"node": "agent", "payload": "x"})).await.ok(202);
    let run = started["runs"][0]["runId"].as_str().unwrap().to_owned();
    eventually("the tool is called", || async {
        let detail = sidecar.get(&format!("/api/runs/{run}")).await.ok(200);
        detail["events"].to_string().contains("tool_called").then_some(())
    })
    .await;
    run
}

async fn summary(sidecar: &TestSidecar, run: &str) -> Value {
    sidecar.get(&format!("/api/runs/{run}")).await.ok(200)["summary"].clone()
}

// SECURITY: hung-run
#[tokio::test]
async fn a_start_leaves_a_hung_run_alone_and_resumes_the_others() {
    let sidecar = TestSidecar::start(tool_flow("tool.slow")).await;
    let (hung, other) = (start_slow_run(&sidecar).await, start_slow_run(&sidecar).await);
    let dir = sidecar.stop().await;
    // What the watchdog does before the process is killed. Closing the store writes the note.
    Store::open(dir.path()).unwrap().mark_hung(&hung.as_str().into(), true);
    let setup = Setup { dir: dir.clone(), ..Setup::default() };
    let sidecar = setup.start(None).await;
    eventually("the other run is resumed", || async {
        (summary(&sidecar, &other).await["status"] == "running").then_some(())
    })
    .await;
    let left = summary(&sidecar, &hung).await;
    assert_eq!((&left["status"], &left["hung"]), (&json!("interrupted"), &json!(true)), "RUN_HUNG: {left}");
    assert!(summary(&sidecar, &other).await.get("hung").is_none());
    // A person can end it without another process.
    sidecar.post(&format!("/api/runs/{hung}/cancel"), json!({})).await.ok(200);
    let ended = summary(&sidecar, &hung).await;
    assert_eq!((&ended["status"], ended.get("hung")), (&json!("failed"), None));
    let dir = sidecar.stop().await;

    // A computation that ends after all removes the note.
    let store = Store::open(dir.path()).unwrap();
    store.mark_hung(&other.as_str().into(), true);
    store.mark_hung(&other.as_str().into(), false);
    drop(store);
    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    eventually("the run is resumed", || async {
        (summary(&sidecar, &other).await["status"] == "running").then_some(())
    })
    .await;
}
