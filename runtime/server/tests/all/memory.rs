//! What is forgotten, in which order, and what cannot be asked.

use crate::kit::{TestSidecar, eventually, tool_flow};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

fn memory(agent: &str) -> Value {
    json!({"id": format!("memory of {agent}"), "type": "buffer-memory", "z": "tab", "wires": [[agent]]})
}

/// A run that goes on during the forget must not be stored after what it appends was removed.
#[tokio::test]
async fn runs_are_forgotten_before_long_memories() {
    let sidecar = TestSidecar::start(tool_flow("calculator-tool")).await;
    let run = sidecar.run(json!({"payload": "?"})).await["runs"][0]["runId"].clone();
    let request = json!({"owner": {"source": run}, "runs": true});
    // Its result is delivered a little later.
    let answer = eventually("the run is forgotten", || async {
        let answer = sidecar.post("/api/memory/forget", request.clone()).await.ok(200);
        (answer["forgotten"]["runs"] == 1).then_some(answer)
    });
    assert_eq!(answer.await["problems"], json!(["Stored runs: 0"]));
}

#[tokio::test]
async fn memories_of_agents_that_cannot_run_are_named() {
    let mut nodes = tool_flow("calculator-tool");
    let all = nodes.as_array_mut().unwrap();
    all[2]["wires"][2] = json!(["memory of agent"]);
    let mut no_model = all[2].clone();
    no_model["id"] = json!("no model");
    no_model["name"] = json!("No model");
    no_model["wires"] = json!([[], ["act"], ["memory of no model"], [], []]);
    let mut no_key = all[2].clone();
    no_key["id"] = json!("no key");
    no_key["name"] = json!("No key");
    no_key["wires"] = json!([["keyed"], ["act"], ["memory of no key"], [], []]);
    // An agent without a memory is no problem.
    let mut without = no_model.clone();
    without["id"] = json!("without");
    without["wires"] = json!([[], ["act"], [], [], []]);
    let keyed =
        json!({"id": "keyed", "type": "openai-model", "z": "tab", "model": "gpt-4o", "wires": [["no key"]]});
    all.extend([no_model, no_key, without, keyed, memory("agent"), memory("no model"), memory("no key")]);
    let sidecar = TestSidecar::start(nodes).await;
    let answer = sidecar.post("/api/memory/forget", json!({"owner": {"user": "ada"}})).await.ok(200);
    let problem = |id: &str, agent: &str| {
        format!(
            "The memory `memory of {id}`: its agent `{agent}` cannot run, so it was not asked; fix the agent, then \
             forget again"
        )
    };
    let expected = json!([problem("no model", "No model"), problem("no key", "No key"), "Stored runs: 0"]);
    assert_eq!(answer["problems"], expected, "{answer}");
}

#[tokio::test]
async fn the_body_of_a_review_is_bounded() {
    let sidecar = TestSidecar::start(tool_flow("calculator-tool")).await;
    let review = |bytes: usize| {
        let mut body = json!({"memory": "t/none", "keys": [""], "decision": "approve"});
        let rest = body.to_string().len();
        body["keys"][0] = json!("k".repeat(bytes - rest));
        sidecar.post("/api/memory/review", body)
    };
    review(1024 * 1024).await.refused(404, "COLLECTION_UNKNOWN");
    review(1024 * 1024 + 1).await.refused(413, "BODY_TOO_LARGE");
}
