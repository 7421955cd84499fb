//! Sources of tool results are bounded and hold no secret, also if a person gives them.

use crate::kit::{
    EngineTest, agent_with_tool, debug, ends, final_answer, inject, model_double, only_message, tool_call,
    tool_double, with,
};
use pretty_assertions::assert_eq;
use redflow_contract::fact::ToolResult;
use redflow_contract::source::Source;
use serde_json::{Value, json};

const KEY: &str = "sk-very-secret-key";

fn flow(tool: Value) -> Value {
    let replies = json!([tool_call("t", json!({})), final_answer("done")]);
    json!([
        inject(&["a"]),
        agent_with_tool("a", "m", &["d"]),
        model_double("m", replies, json!({"apiKey": KEY})),
        tool_double(with(json!({"ownEffect": "at_most_once", "result": 1}), tool)),
        debug("d", "envelope.provenance"),
    ])
}

fn source(reference: &str) -> Value {
    json!({"kind": "knowledge", "ref": reference, "trust": "external"})
}

/// More sources than a result may have. The key stands where the second name is cut.
fn too_many() -> Vec<Value> {
    let long = format!("{}{KEY}{}", "x".repeat(500), "y".repeat(500));
    let mut sources = vec![source(&format!("web/?key={KEY}#1")), source(&long)];
    sources.extend((2..100).map(|n| source(&format!("{n}"))));
    sources
}

#[tokio::test(start_paused = true)]
async fn a_tool_gives_at_most_64_sources_without_secrets() {
    let test = EngineTest::new(&flow(json!({"sources": too_many()})));
    let reports = test.fire().await;
    assert_eq!(ends(&reports), ["run-1 a completed"]);
    let provenance = &only_message(&reports)["envelope"]["provenance"];
    let mut expected =
        vec![source("web/?key=[redacted]#1"), source(&format!("{}[redacted…", "x".repeat(500)))];
    expected.extend((2..64).map(|n| source(&format!("{n}"))));
    assert_eq!(*provenance, json!(expected));
    let journal = test.store.journal(&"run-1".into());
    // The plan holds the properties of the double.
    let facts: String = journal.lines().filter(|line| !line.contains("\"kind\":\"plan\"")).collect();
    assert!(!facts.contains("sk-very") && !facts.contains("\"99\""), "{facts}");
    assert!(!format!("{:?}", test.recorder.run_events()).contains("sk-very"));
}

#[tokio::test(start_paused = true)]
async fn a_person_gives_at_most_64_sources() {
    for (success, count) in [(true, 64), (false, 0)] {
        let test = EngineTest::new(&flow(json!({"unknown": "the line went dead"})));
        assert_eq!(ends(&test.fire().await), ["run-1 a waiting run-1:1 t 1"]);
        let sources: Vec<Source> = serde_json::from_value(json!(too_many())).unwrap();
        let result = if success { ToolResult::ok(json!(1)) } else { ToolResult::failed("no") };
        let result = ToolResult { sources, ..result };
        test.engine.resolve("run-1".into(), "run-1:1".into(), result).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        let journal = test.store.journal(&"run-1".into());
        let resolved = journal.lines().find(|line| line.contains("\"outcome_resolved\"")).unwrap();
        assert_eq!(resolved.matches("\"ref\":").count(), count);
    }
}
