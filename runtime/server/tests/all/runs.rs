//! Runs: started, listed, shown, ended, answered, replayed.

use crate::kit::{Setup, TOKEN, World, calling, eventually, plain};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

fn id(run: &Value) -> &str {
    run["runId"].as_str().unwrap()
}

#[tokio::test]
async fn a_run_is_started_and_waited_for_or_not() {
    let world = World::with(calling("calculator-tool")).await;
    let ended = world.run(json!({"node": "agent", "payload": "?"})).await;
    assert_eq!(ended["runs"][0]["status"], "completed");
    assert_eq!(ended["runs"][0]["result"]["payload"], "42");
    assert_eq!(ended["runs"][0]["agent"]["name"], "Counting");
    // An inject has a payload of its own, and so has the agent behind it.
    for body in [json!({"node": "ask"}), json!({}), json!({"node": "agent"}), json!({"payload": null})] {
        let started = world.post("/api/runs", body).await.ok(202);
        assert_eq!(started["runs"].as_array().unwrap().len(), 1, "{started}");
        let path = format!("/api/runs/{}", id(&started["runs"][0]));
        eventually("the run ends", || async {
            (world.get(&path).await.ok(200)["summary"]["status"] == "completed").then_some(())
        })
        .await;
    }
    world.post("/api/runs", json!({"node": "nobody"})).await.refused(404, "NOT_FOUND");
    world.post("/api/runs", json!({"node": "model", "payload": 1})).await.refused(422, "NODE_NOT_STARTABLE");
}

#[tokio::test]
async fn nothing_can_be_started_without_a_flow() {
    let world = Setup::default().start(None).await;
    world.post("/api/runs", json!({"payload": 1})).await.refused(422, "NODE_NOT_STARTABLE");
}

#[tokio::test]
async fn the_same_key_starts_one_run_also_after_a_restart() {
    let world = World::with(plain()).await;
    let start = |world: &World, key: &str| {
        let request = world.request("POST", "/api/runs").token(TOKEN).header("idempotency-key", key);
        request.json(json!({"node": "agent", "payload": "?"})).send()
    };
    let answers = futures::future::join_all((0..8).map(|_| start(&world, "order 7"))).await;
    let first = answers[0].json()["runs"][0]["runId"].clone();
    for answer in answers {
        assert_eq!(answer.ok(202)["runs"][0]["runId"], first);
    }
    let other = start(&world, "order 8").await.ok(202);
    assert_ne!(other["runs"][0]["runId"], first);
    let dir = world.stop().await;
    let world = Setup { dir, ..Setup::default() }.start(None).await;
    assert_eq!(start(&world, "order 7").await.ok(202)["runs"][0]["runId"], first);
    let waited = world.request("POST", "/api/runs").token(TOKEN).header("idempotency-key", "order 7");
    let waited = waited.json(json!({"node": "agent", "payload": "?", "wait": true})).send().await.ok(200);
    assert_eq!(
        (waited["runs"][0]["runId"].clone(), waited["runs"][0]["status"].clone()),
        (first, json!("completed"))
    );
    assert_eq!(waited["runs"][0]["result"]["payload"], "42");
    assert_eq!(world.get("/api/runs").await.ok(200)["runs"].as_array().unwrap().len(), 2);
    for key in ["", &"k".repeat(201), "\u{e9}"] {
        start(&world, key).await.refused(400, "REQUEST_INVALID");
    }
}

#[tokio::test]
async fn runs_are_listed_page_by_page() {
    let world = World::with(plain()).await;
    for _ in 0..5 {
        world.run(json!({"payload": "?"})).await;
    }
    let all = world.get("/api/runs").await.ok(200);
    assert_eq!(all["runs"].as_array().unwrap().len(), 5);
    assert_eq!(all.get("next"), None);
    let (mut seen, mut path) = (Vec::new(), "/api/runs?limit=2&status=completed,failed".to_owned());
    loop {
        let page = world.get(&path).await.ok(200);
        seen.extend(page["runs"].as_array().unwrap().clone());
        let Some(next) = page.get("next") else { break };
        path = format!("/api/runs?limit=2&status=completed,failed&before={}", next.as_str().unwrap());
    }
    assert_eq!(Value::from(seen), all["runs"]);
    assert_eq!(world.get("/api/runs?status=waiting").await.ok(200)["runs"], json!([]));
    let count = async |query: &str| {
        world.get(&format!("/api/runs?{query}")).await.ok(200)["runs"].as_array().unwrap().len()
    };
    for (query, runs) in [
        ("agent=agent", 5),
        ("agent=agent&instance=local&limit=2", 2),
        ("agent=agent&status=failed", 0),
        ("agent=agen", 0),
        ("agent=%00%27%25", 0),
        ("agent=agent&instance=elsewhere", 0),
        ("instance=local", 5),
        ("instance=", 0),
    ] {
        assert_eq!(count(query).await, runs, "{query}");
    }
    for wrong in ["limit=0", "limit=1001", "limit=x", "status=lost", "other=1"] {
        world.get(&format!("/api/runs?{wrong}")).await.refused(400, "REQUEST_INVALID");
    }
}

#[tokio::test]
async fn a_run_is_shown_exported_and_replayed() {
    let world = World::with(calling("calculator-tool")).await;
    let run = world.run(json!({"payload": "?"})).await["runs"][0]["runId"].as_str().unwrap().to_owned();
    let shown = world.get(&format!("/api/runs/{run}")).await.ok(200);
    assert_eq!(shown["summary"]["status"], "completed");
    assert_eq!(shown["calls"][0]["input"], json!({"expression": "6 * 7"}));
    assert_eq!(shown["calls"][0]["result"]["output"]["result"], 42);
    assert_eq!(shown["result"]["payload"], "42");
    let journal = world.get(&format!("/api/runs/{run}/journal")).await;
    assert_eq!((journal.status, journal.header("content-type")), (200, Some("application/jsonl")));
    assert!(redflow_react::replay(&journal.body).equal);
    let proved = world.request("POST", &format!("/api/runs/{run}/replay")).token(TOKEN).send().await.ok(200);
    assert_eq!((proved["equal"].clone(), proved["complete"].clone()), (json!(true), json!(true)));
    for path in ["", "/journal", "/events"] {
        world.get(&format!("/api/runs/nobody{path}")).await.refused(404, "RUN_UNKNOWN");
    }
    world.post("/api/runs/nobody/cancel", json!({})).await.refused(404, "RUN_UNKNOWN");
    world.request("POST", "/api/runs/nobody/replay").token(TOKEN).send().await.refused(404, "RUN_UNKNOWN");
}

#[tokio::test]
async fn a_run_is_cancelled_once() {
    let world = World::with(calling("tool.slow")).await;
    let started = world.post("/api/runs", json!({"payload": "?"})).await.ok(202);
    let path = format!("/api/runs/{}", id(&started["runs"][0]));
    let ended = world.post(&format!("{path}/cancel"), json!({"reason": "no longer needed"})).await.ok(200);
    assert_eq!((ended["status"].clone(), ended["code"].clone()), (json!("failed"), json!("CANCELLED")));
    let shown = world.get(&path).await.ok(200);
    assert!(shown["result"]["error"]["message"].as_str().unwrap().contains("no longer needed"));
    world.post(&format!("{path}/cancel"), json!({})).await.refused(409, "RUN_OVER");
    let long = json!({"reason": "x".repeat(1001)});
    world.post(&format!("{path}/cancel"), long).await.refused(400, "REQUEST_INVALID");
}

#[tokio::test]
async fn a_run_that_waits_is_answered_and_goes_on() {
    let world = World::with(calling("tool.lost")).await;
    let waiting = world.run(json!({"payload": "?"})).await["runs"][0].clone();
    assert_eq!(waiting["status"], "waiting");
    let path = format!("/api/runs/{}", id(&waiting));
    let call = waiting["waiting"]["callId"].clone();
    let answer = json!({"callId": "another", "result": {"success": true, "output": 42}});
    world.post(&format!("{path}/resolve"), answer).await.refused(409, "RUN_NOT_WAITING");
    let answer = json!({"callId": call, "result": {"success": true, "output": "x".repeat(300_000)}});
    world.post(&format!("{path}/resolve"), answer).await.refused(422, "RESULT_INVALID");
    let answer = json!({"callId": call, "result": {"success": true, "output": 42}});
    world.post(&format!("{path}/resolve"), answer).await.ok(200);
    let shown = eventually("the run ends", || async {
        let shown = world.get(&path).await.ok(200);
        (shown["summary"]["status"] == "completed").then_some(shown)
    })
    .await;
    assert_eq!(shown["calls"][0]["result"]["output"], 42);
}

#[tokio::test]
async fn what_was_interrupted_goes_on_with_the_next_sidecar() {
    let mut nodes = calling("calculator-tool");
    nodes[3]["delayMs"] = json!(400);
    let world = Setup::default().start(Some(nodes)).await;
    let started = world.post("/api/runs", json!({"payload": "?"})).await.ok(202);
    let path = format!("/api/runs/{}", id(&started["runs"][0]));
    let dir = world.stop().await;
    let world = Setup { dir, ..Setup::default() }.start(None).await;
    let shown = eventually("the run ends", || async {
        let shown = world.get(&path).await.ok(200);
        (shown["summary"]["status"] == "completed").then_some(shown)
    })
    .await;
    assert_eq!(shown["result"]["payload"], "42");
    let seqs: Vec<u64> =
        shown["events"].as_array().unwrap().iter().map(|one| one["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn health_is_open_and_metrics_are_not() {
    let world = World::with(plain()).await;
    for path in ["/health", "/health/live"] {
        let health = world.request("GET", path).send().await.ok(200);
        assert_eq!(health["live"], true);
    }
    eventually("it is ready", || async {
        (world.request("GET", "/health/ready").send().await.status == 200).then_some(())
    })
    .await;
    world.request("GET", "/metrics").send().await.refused(401, "UNAUTHORIZED");
    let metrics = world.get("/metrics").await;
    assert_eq!((metrics.status, metrics.body.as_slice()), (200, b"# EOF\n".as_slice()));
}

#[tokio::test]
async fn who_waits_for_a_run_is_answered_when_the_sidecar_stops() {
    let mut setup = Setup::default();
    // Longer than anybody here waits.
    setup.settings.drain = crate::client::PATIENCE * 4;
    let world = setup.start(Some(calling("tool.slow"))).await;
    let wait = world.post("/api/runs", json!({"payload": "?", "wait": true}));
    let stop = async {
        eventually("the run is at its tool", || async {
            let runs = world.get("/api/runs").await.ok(200);
            let run = runs["runs"][0]["runId"].as_str()?.to_owned();
            let events = world.get(&format!("/api/runs/{run}/events")).await.ok(200);
            (events.as_array()?.last()?["event"]["type"] == "tool_called").then_some(())
        })
        .await;
        world.begin_to_stop();
    };
    let (answer, ()) = tokio::join!(wait, stop);
    assert_eq!(answer.ok(202)["runs"][0]["status"], "running");
}
