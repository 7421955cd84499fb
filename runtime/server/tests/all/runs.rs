//! Runs: starts, lists, details, cancels, resolves and replays.

use crate::kit::{Setup, TOKEN, TestSidecar, eventually, plain_flow, tool_flow};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

fn id(run: &Value) -> &str {
    run["runId"].as_str().unwrap()
}

#[tokio::test]
async fn starts_runs_with_and_without_waiting() {
    let sidecar = TestSidecar::start(tool_flow("calculator-tool")).await;
    let ended = sidecar.run(json!({"node": "agent", "payload": "?"})).await;
    assert_eq!(ended["runs"][0]["status"], "completed");
    assert_eq!(ended["runs"][0]["result"]["payload"], "42");
    assert_eq!(ended["runs"][0]["agent"]["name"], "Counting");
    // An inject node has its own payload.
    for body in [json!({"node": "ask"}), json!({}), json!({"node": "agent"}), json!({"payload": null})] {
        let started = sidecar.post("/api/runs", body).await.ok(202);
        assert_eq!(started["runs"].as_array().unwrap().len(), 1, "{started}");
        let path = format!("/api/runs/{}", id(&started["runs"][0]));
        eventually("the run ends", || async {
            (sidecar.get(&path).await.ok(200)["summary"]["status"] == "completed").then_some(())
        })
        .await;
    }
    sidecar.post("/api/runs", json!({"node": "unknown"})).await.refused(404, "NOT_FOUND");
    sidecar
        .post("/api/runs", json!({"node": "model", "payload": 1}))
        .await
        .refused(422, "NODE_NOT_STARTABLE");
}

#[tokio::test]
async fn nothing_can_be_started_without_a_flow() {
    let sidecar = Setup::default().start(None).await;
    sidecar.post("/api/runs", json!({"payload": 1})).await.refused(422, "NODE_NOT_STARTABLE");
}

#[tokio::test]
async fn the_same_key_starts_one_run_even_after_a_restart() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let start = |sidecar: &TestSidecar, key: &str| {
        let request = sidecar.request("POST", "/api/runs").token(TOKEN).header("idempotency-key", key);
        request.json(json!({"node": "agent", "payload": "?"})).send()
    };
    let answers = futures::future::join_all((0..8).map(|_| start(&sidecar, "order 7"))).await;
    let first = answers[0].json()["runs"][0]["runId"].clone();
    for answer in answers {
        assert_eq!(answer.ok(202)["runs"][0]["runId"], first);
    }
    let other = start(&sidecar, "order 8").await.ok(202);
    assert_ne!(other["runs"][0]["runId"], first);
    let dir = sidecar.stop().await;
    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    assert_eq!(start(&sidecar, "order 7").await.ok(202)["runs"][0]["runId"], first);
    let waited = sidecar.request("POST", "/api/runs").token(TOKEN).header("idempotency-key", "order 7");
    let waited = waited.json(json!({"node": "agent", "payload": "?", "wait": true})).send().await.ok(200);
    assert_eq!(
        (waited["runs"][0]["runId"].clone(), waited["runs"][0]["status"].clone()),
        (first, json!("completed"))
    );
    assert_eq!(waited["runs"][0]["result"]["payload"], "42");
    assert_eq!(sidecar.get("/api/runs").await.ok(200)["runs"].as_array().unwrap().len(), 2);
    let request = sidecar.request("POST", "/api/runs").token(TOKEN).header("idempotency-key", "order 7");
    let other = request.json(json!({"node": "agent", "payload": "s3cret?"})).send().await;
    other.refused(409, "IDEMPOTENCY_KEY_REUSED");
    let message = other.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("`payload`") && !message.contains("s3cret"), "{message}");
    for key in ["", &"k".repeat(201), "\u{e9}"] {
        start(&sidecar, key).await.refused(400, "REQUEST_INVALID");
    }
}

#[tokio::test]
async fn lists_runs_page_by_page() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    for _ in 0..5 {
        sidecar.run(json!({"payload": "?"})).await;
    }
    let all = sidecar.get("/api/runs").await.ok(200);
    assert_eq!(all["runs"].as_array().unwrap().len(), 5);
    assert_eq!(all.get("next"), None);
    let (mut seen, mut path) = (Vec::new(), "/api/runs?limit=2&status=completed,failed".to_owned());
    loop {
        let page = sidecar.get(&path).await.ok(200);
        seen.extend(page["runs"].as_array().unwrap().clone());
        let Some(next) = page.get("next") else { break };
        path = format!("/api/runs?limit=2&status=completed,failed&before={}", next.as_str().unwrap());
    }
    assert_eq!(Value::from(seen), all["runs"]);
    assert_eq!(sidecar.get("/api/runs?status=waiting").await.ok(200)["runs"], json!([]));
    let count = async |query: &str| {
        sidecar.get(&format!("/api/runs?{query}")).await.ok(200)["runs"].as_array().unwrap().len()
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
        sidecar.get(&format!("/api/runs?{wrong}")).await.refused(400, "REQUEST_INVALID");
    }
}

#[tokio::test]
async fn shows_exports_and_replays_a_run() {
    let sidecar = TestSidecar::start(tool_flow("calculator-tool")).await;
    let run = sidecar.run(json!({"payload": "?"})).await["runs"][0]["runId"].as_str().unwrap().to_owned();
    let detail = sidecar.get(&format!("/api/runs/{run}")).await.ok(200);
    assert_eq!(detail["summary"]["status"], "completed");
    assert_eq!(detail["calls"][0]["input"], json!({"expression": "6 * 7"}));
    assert_eq!(detail["calls"][0]["result"]["output"]["result"], 42);
    assert_eq!(detail["result"]["payload"], "42");
    let journal = sidecar.get(&format!("/api/runs/{run}/journal")).await;
    assert_eq!((journal.status, journal.header("content-type")), (200, Some("application/jsonl")));
    assert!(redflow_strategies::replay(&journal.body).equal);
    let report =
        sidecar.request("POST", &format!("/api/runs/{run}/replay")).token(TOKEN).send().await.ok(200);
    assert_eq!((report["equal"].clone(), report["complete"].clone()), (json!(true), json!(true)));
    for path in ["", "?only=summary", "/journal", "/journal?from=1", "/events", "/iterations/1", "/trace"] {
        sidecar.get(&format!("/api/runs/unknown{path}")).await.refused(404, "RUN_UNKNOWN");
    }
    sidecar.post("/api/runs/unknown/cancel", json!({})).await.refused(404, "RUN_UNKNOWN");
    sidecar.request("POST", "/api/runs/unknown/replay").token(TOKEN).send().await.refused(404, "RUN_UNKNOWN");
}

/// Lists need no journal for it.
#[tokio::test]
async fn a_list_shows_what_runs_used_and_who_started_them() {
    let sidecar = TestSidecar::start(tool_flow("calculator-tool")).await;
    sidecar.run(json!({"payload": "?"})).await;
    let run = sidecar.get("/api/runs").await.ok(200)["runs"][0].clone();
    assert_eq!((&run["tally"]["iterations"], &run["tally"]["toolCalls"]), (&json!(2), &json!(1)), "{run}");
    assert!(run["tally"]["inputTokens"].as_u64().unwrap() > 0, "{run}");
    let events = sidecar.get(&format!("/api/runs/{}/events", id(&run))).await.ok(200);
    let events = events.as_array().unwrap();
    assert_eq!(events.last().unwrap()["event"]["tally"], run["tally"]);
    assert_eq!(events[0]["event"]["by"], run["by"]);
    assert!(run["by"].as_str().unwrap().starts_with("token:"), "{run}");
}

#[tokio::test]
async fn a_run_is_cancelled_once() {
    let sidecar = TestSidecar::start(tool_flow("tool.slow")).await;
    let started = sidecar.post("/api/runs", json!({"payload": "?"})).await.ok(202);
    let path = format!("/api/runs/{}", id(&started["runs"][0]));
    let ended = sidecar.post(&format!("{path}/cancel"), json!({"reason": "no longer needed"})).await.ok(200);
    assert_eq!((ended["status"].clone(), ended["code"].clone()), (json!("failed"), json!("CANCELLED")));
    let detail = sidecar.get(&path).await.ok(200);
    assert!(detail["result"]["error"]["message"].as_str().unwrap().contains("no longer needed"));
    sidecar.post(&format!("{path}/cancel"), json!({})).await.refused(409, "RUN_OVER");
    let long = json!({"reason": "x".repeat(1001)});
    sidecar.post(&format!("{path}/cancel"), long).await.refused(400, "REQUEST_INVALID");
}

#[tokio::test]
async fn a_resolved_run_goes_on() {
    let sidecar = TestSidecar::start(tool_flow("tool.lost")).await;
    let waiting = sidecar.run(json!({"payload": "?"})).await["runs"][0].clone();
    assert_eq!(waiting["status"], "waiting");
    let path = format!("/api/runs/{}", id(&waiting));
    let call = waiting["waiting"]["callId"].clone();
    let answer = json!({"callId": "another", "result": {"success": true, "output": 42}});
    sidecar.post(&format!("{path}/resolve"), answer).await.refused(409, "RUN_NOT_WAITING");
    let answer = json!({"callId": call, "result": {"success": true, "output": "x".repeat(300_000)}});
    sidecar.post(&format!("{path}/resolve"), answer).await.refused(422, "RESULT_INVALID");
    let answer = json!({"callId": call, "result": {"success": true, "output": 42}});
    sidecar.post(&format!("{path}/resolve"), answer).await.ok(200);
    let detail = eventually("the run ends", || async {
        let detail = sidecar.get(&path).await.ok(200);
        (detail["summary"]["status"] == "completed").then_some(detail)
    })
    .await;
    assert_eq!(detail["calls"][0]["result"]["output"], 42);
}

/// Three parallel calls with unknown outcomes: the API shows all questions, and takes the answers in any order
/// and at once.
#[tokio::test]
async fn several_questions_are_answered_one_by_one_or_at_once() {
    let calls = json!({"toolCalls": [{"name": "calc"}, {"name": "calc", "arguments": {"n": 2}},
                                     {"name": "calc", "arguments": {"n": 3}}]});
    let nodes = json!([
        {"id": "t", "type": "tab"},
        {"id": "agent", "z": "t", "type": "ai-agent", "name": "", "model": "m", "tools": ["calc"], "wires": [[], []]},
        {"id": "m", "z": "t", "type": "scripted-model", "name": "", "replies": [calls, "done"], "wires": []},
        {"id": "calc", "z": "t", "type": "tool.lost", "name": "calc", "wires": []},
    ]);
    let sidecar = TestSidecar::start(nodes).await;
    let waiting = sidecar.run(json!({"payload": "?"})).await["runs"][0].clone();
    assert_eq!(waiting["status"], "waiting", "{waiting}");
    let path = format!("/api/runs/{}", id(&waiting));
    let summary = sidecar.get(&path).await.ok(200)["summary"].clone();
    let questions: Vec<Value> =
        summary["questions"].as_array().unwrap().iter().map(|call| call["callId"].clone()).collect();
    assert_eq!((questions.len(), &summary["waiting"]["callId"]), (3, &questions[0]));
    let resolve_path = format!("{path}/resolve");
    let resolve = |call: &Value, output: u32| {
        sidecar.post(&resolve_path, json!({"callId": call, "result": {"success": true, "output": output}}))
    };
    let after = resolve(&questions[1], 2).await.ok(200);
    assert_eq!((&after["status"], after["questions"].as_array().unwrap().len()), (&json!("waiting"), 2));
    resolve(&questions[1], 2).await.refused(409, "RUN_NOT_WAITING");
    let (third, first) = tokio::join!(resolve(&questions[2], 3), resolve(&questions[0], 1));
    third.ok(200);
    first.ok(200);
    let detail = eventually("the run ends", || async {
        let detail = sidecar.get(&path).await.ok(200);
        (detail["summary"]["status"] == "completed").then_some(detail)
    })
    .await;
    let outputs: Vec<&Value> =
        detail["calls"].as_array().unwrap().iter().map(|call| &call["result"]["output"]).collect();
    assert_eq!(outputs, [&json!(1), &json!(2), &json!(3)]);
    assert_eq!(detail["calls"][2]["callId"], questions[2]);
}

#[tokio::test]
async fn the_next_sidecar_resumes_interrupted_runs() {
    let mut nodes = tool_flow("calculator-tool");
    nodes[3]["delayMs"] = json!(400);
    let sidecar = Setup::default().start(Some(nodes)).await;
    let started = sidecar.post("/api/runs", json!({"payload": "?"})).await.ok(202);
    let path = format!("/api/runs/{}", id(&started["runs"][0]));
    let dir = sidecar.stop().await;
    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    let detail = eventually("the run ends", || async {
        let detail = sidecar.get(&path).await.ok(200);
        (detail["summary"]["status"] == "completed").then_some(detail)
    })
    .await;
    assert_eq!(detail["result"]["payload"], "42");
    let seqs: Vec<u64> =
        detail["events"].as_array().unwrap().iter().map(|one| one["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn health_is_public_and_metrics_are_not() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    for path in ["/health", "/health/live"] {
        let health = sidecar.request("GET", path).send().await.ok(200);
        assert_eq!(health["live"], true);
    }
    eventually("it is ready", || async {
        (sidecar.request("GET", "/health/ready").send().await.status == 200).then_some(())
    })
    .await;
    sidecar.request("GET", "/metrics").send().await.refused(401, "UNAUTHORIZED");
    let metrics = sidecar.get("/metrics").await;
    assert_eq!((metrics.status, metrics.body.as_slice()), (200, b"# EOF\n".as_slice()));
}

#[tokio::test]
async fn responds_to_waiting_clients_when_the_sidecar_stops() {
    let mut setup = Setup::default();
    // Longer than any wait in this test.
    setup.settings.drain_timeout = crate::client::PATIENCE * 4;
    let sidecar = setup.start(Some(tool_flow("tool.slow"))).await;
    let wait = sidecar.post("/api/runs", json!({"payload": "?", "wait": true}));
    let stop = async {
        eventually("the run is at its tool", || async {
            let runs = sidecar.get("/api/runs").await.ok(200);
            let run = runs["runs"][0]["runId"].as_str()?.to_owned();
            let events = sidecar.get(&format!("/api/runs/{run}/events")).await.ok(200);
            (events.as_array()?.last()?["event"]["type"] == "tool_called").then_some(())
        })
        .await;
        sidecar.begin_to_stop();
    };
    let (answer, ()) = tokio::join!(wait, stop);
    assert_eq!(answer.ok(202)["runs"][0]["status"], "running");
}
