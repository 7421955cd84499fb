//! What runs have used and what they have started, over HTTP.

use crate::kit::{TestSidecar, eventually, plain_flow, tool_flow};
use pretty_assertions::assert_eq;
use redflow_contract::day::Day;
use serde_json::{Value, json};

fn id(run: &Value) -> &str {
    run["runId"].as_str().unwrap()
}

/// Sums come from the last transaction of each run, so they are there as soon as the run has ended.
#[tokio::test]
async fn sums_are_read_by_agent_model_tool_and_code() {
    let mut flow = tool_flow("calculator-tool");
    let broken = json!([
        {"id": "broken", "type": "agent-core", "z": "tab", "name": "Broken", "strategy": "react", "maxIterations": 5,
         "allowedTools": ["act"], "stopConditions": [], "wires": [["empty"], ["act"], [], [], []]},
        {"id": "empty", "type": "scripted-model", "z": "tab", "replies": ["no action"], "wires": [["broken"]]},
    ]);
    flow.as_array_mut().unwrap().extend(broken.as_array().unwrap().clone());
    let sidecar = TestSidecar::start(flow).await;
    for agent in ["agent", "agent", "broken"] {
        sidecar.run(json!({"node": agent, "payload": "?"})).await;
    }
    let tally = |run: &Value, name: &str| run["tally"][name].as_u64().unwrap();
    let runs = sidecar.get("/api/runs").await.ok(200)["runs"].as_array().unwrap().clone();
    let stats = async |by: &str| sidecar.get(&format!("/api/stats?by={by}")).await.ok(200);

    let agents = stats("agent").await;
    let today = agents["to"].as_str().unwrap();
    assert_eq!(Day::parse(agents["from"].as_str().unwrap()).unwrap().0, Day::parse(today).unwrap().0 - 13);
    let keys = agents["keys"].as_array().unwrap();
    assert_eq!(keys[0], json!({"key": "agent", "instance": "local", "name": "Counting"}));
    assert_eq!(keys[1]["name"], "Broken");
    let row = &agents["rows"][0];
    assert_eq!(
        (&row["day"], &row["runs"], &row["failed"]),
        (&json!(today), &json!(2), &json!(0)),
        "{agents}"
    );
    assert_eq!(row["calls"], 4);
    let of_agent = || runs.iter().filter(|run| run["agent"]["nodeId"] == "agent");
    assert_eq!(row["inputTokens"], of_agent().map(|run| tally(run, "inputTokens")).sum::<u64>());
    assert_eq!(row["outputTokens"], of_agent().map(|run| tally(run, "outputTokens")).sum::<u64>());
    assert_eq!((&agents["rows"][1]["runs"], &agents["rows"][1]["failed"]), (&json!(1), &json!(1)));

    let models = stats("model").await;
    assert_eq!(models["rows"][0]["calls"], 5, "{models}");
    let tools = stats("tool").await;
    assert_eq!(tools["keys"], json!([{"key": "act"}]));
    assert_eq!((&tools["rows"][0]["calls"], &tools["rows"][0]["failed"]), (&json!(2), &json!(0)), "{tools}");
    let codes = stats("code").await;
    assert_eq!(codes["keys"], json!([{"key": "INVALID_JSON"}]));
    assert_eq!(codes["rows"][0]["failed"], 1, "{codes}");
    let empty = sidecar.get("/api/stats?by=agent&from=2001-01-01&to=2001-02-01").await.ok(200);
    assert_eq!((&empty["keys"], &empty["rows"]), (&json!([]), &json!([])));
    assert_eq!(empty["from"], "2001-01-01");
}

#[tokio::test]
async fn a_bad_period_is_refused() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    for (wrong, reason) in [
        ("", "`by` is missing"),
        ("by=day", "`by` must be"),
        ("by=agent&from=2026-02-30", "`from` must be a day such as"),
        ("by=agent&to=yesterday", "`to` must be a day such as"),
        ("by=agent&from=2026-03-02&to=2026-03-01", "must not be after"),
        ("by=agent&from=2024-01-01&to=2025-02-04", "more than 400 days"),
        ("by=agent&limit=5", "no parameter `limit`"),
    ] {
        let answer = sidecar.get(&format!("/api/stats?{wrong}")).await;
        answer.refused(400, "REQUEST_INVALID");
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(reason), "{wrong}: {message}");
    }
    sidecar.get("/api/stats?by=agent&from=2024-01-01&to=2025-02-03").await.ok(200);
}

#[tokio::test]
async fn lists_are_filtered_by_period_code_id_and_parent() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let run = sidecar.run(json!({"payload": "?"})).await["runs"][0]["runId"].as_str().unwrap().to_owned();
    let started = sidecar.get("/api/runs").await.ok(200)["runs"][0]["startedAt"].as_u64().unwrap();
    let (prefix, later) = (&run[..8], started + 1);
    for (query, runs) in [
        (format!("since={started}&until={later}"), 1),
        (format!("since={later}"), 0),
        (format!("until={started}"), 0),
        (format!("prefix={prefix}"), 1),
        (format!("prefix={run}&roots=true&since=0"), 1),
        ("prefix=zzz".to_owned(), 0),
        ("prefix=%25".to_owned(), 0),
        ("roots=true".to_owned(), 1),
        ("roots=false".to_owned(), 1),
        ("code=TIMEOUT".to_owned(), 0),
    ] {
        let page = sidecar.get(&format!("/api/runs?{query}")).await.ok(200);
        assert_eq!(page["runs"].as_array().unwrap().len(), runs, "{query}");
        assert_eq!((page.get("next"), page.get("searchedTo")), (None, None), "{query}");
    }
    for wrong in [
        "since=yesterday",
        "since=-1",
        "until=1e9",
        "until=99999999999999999999",
        "since=5&until=5",
        "code=NO_SUCH",
        "code=",
        "prefix=",
        "roots=1",
        "roots=",
    ] {
        sidecar.get(&format!("/api/runs?{wrong}")).await.refused(400, "REQUEST_INVALID");
    }
    let long = format!("/api/runs?prefix={}", "x".repeat(65));
    sidecar.get(&long).await.refused(400, "REQUEST_INVALID");
}

/// The result of one agent starts another: that run is its child.
#[tokio::test]
async fn a_tree_has_the_runs_that_a_run_has_started() {
    let mut flow = plain_flow();
    let nodes = flow.as_array_mut().unwrap();
    nodes[2]["wires"][3] = json!(["next", "other"]);
    for (next, model) in [("next", "second"), ("other", "third")] {
        nodes.push(json!({
            "id": next, "type": "agent-core", "z": "tab", "strategy": "react", "maxIterations": 5,
            "allowedTools": ["calculator"], "stopConditions": [], "wires": [[model], ["calculator"], [], [], []],
        }));
        let replies = json!([{"action": "final", "message": "heard"}]);
        nodes.push(json!({
            "id": model, "type": "scripted-model", "z": "tab", "replies": replies, "wires": [[next]],
        }));
    }
    let sidecar = TestSidecar::start(flow).await;
    let top = sidecar.run(json!({"node": "agent", "payload": "?"})).await["runs"][0].clone();
    assert_eq!(top["status"], "completed", "{top}");
    let path = format!("/api/runs/{}/tree", id(&top));
    let tree = eventually("both children end", || async {
        let tree = sidecar.get(&path).await.ok(200);
        let runs = tree["runs"].as_array().unwrap();
        let over = runs.iter().filter(|run| run["run"]["status"] == "completed").count();
        (over == 2).then_some(tree)
    })
    .await;
    assert_eq!(tree.get("next"), None);
    for run in tree["runs"].as_array().unwrap() {
        assert_eq!((&run["run"]["parent"], &run["depth"]), (&top["runId"], &json!(1)), "{run}");
    }
    let first = sidecar.get(&format!("{path}?limit=1")).await.ok(200);
    assert_eq!((&first["runs"][0], &first["next"]), (&tree["runs"][0], &tree["runs"][0]["run"]["runId"]));
    let after = first["next"].as_str().unwrap();
    let second = sidecar.get(&format!("{path}?limit=1&after={after}")).await.ok(200);
    assert_eq!((&second["runs"][0], second.get("next")), (&tree["runs"][1], None));
    let roots = sidecar.get("/api/runs?roots=true").await.ok(200)["runs"].clone();
    let root = &roots.as_array().unwrap()[0];
    assert_eq!(
        (roots.as_array().unwrap().len(), &root["runId"], &root["children"]),
        (1, &top["runId"], &json!(2))
    );

    sidecar.get("/api/runs/unknown/tree").await.refused(404, "RUN_UNKNOWN");
    for wrong in ["limit=0", "limit=501", "limit=x", "before=1"] {
        sidecar.get(&format!("{path}?{wrong}")).await.refused(400, "REQUEST_INVALID");
    }
}
