//! Secrets of the flow never become facts, whichever service returns them.

use crate::kit::{
    Buffered, EngineTest, agent_with_tool, debug, ends, final_answer, inject, model_double, node,
    only_message, tool_call, tool_double, with,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

const KEY: &str = "sk-very-secret-key";
/// The key after `ada:`, in base64 without the shared characters.
const BASE64: &str = "NrLXZlcnktc2VjcmV0LWtle";
const PERCENT: &str = "sk%2Dvery%2dsecret%2Dkey";

/// A model and a memory with secrets; the other arguments are properties of the services.
fn flow(replies: Value, model: Value, tool: Value, memory: Value) -> Value {
    json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &["d"]), json!({"memory": "mem"})),
        model_double("m", replies, with(json!({"apiKey": KEY}), model)),
        tool_double(with(json!({"ownEffect": "at_most_once", "onUnknown": "fail"}), tool)),
        with(
            node("mem", "buffer-memory", json!([])),
            with(json!({"credentials": {"password": "tool-password"}}), memory)
        ),
        debug("d", "payload"),
    ])
}

/// The journals and events of a start, the ends of its runs, and its message.
async fn all_output(flow: &Value) -> (String, Vec<String>, Value) {
    let test = EngineTest::new(flow);
    let reports = test.fire().await;
    let journals: String = reports.iter().map(|report| test.store.journal(&report.run_id)).collect();
    // The plan holds the properties of the doubles, which name the secrets they return.
    let journals: String = journals.lines().filter(|line| !line.contains("\"kind\":\"plan\"")).collect();
    let events = format!("{:?} {:?}", test.recorder.run_events(), test.recorder.flow_events());
    (journals + &events, ends(&reports), json!(only_message(&reports)))
}

// SECURITY: secret-echo
#[tokio::test(start_paused = true)]
async fn removes_echoed_secrets_before_they_become_facts() {
    let call = json!([tool_call("t", json!({"x": 1})), final_answer("done")]);
    let failure = |text: String| json!({"code": "MODEL_ERROR", "message": text});
    let rows = [
        flow(
            call.clone(),
            json!({}),
            json!({"result": {"headers": [format!("Bearer {KEY}")], "p": "tool-password"}}),
            json!({}),
        ),
        flow(call.clone(), json!({}), json!({"error": format!("401 for {KEY}")}), json!({})),
        // `Basic` with the key as password, and a URL with it.
        flow(
            call.clone(),
            json!({}),
            json!({"result": [format!("Basic YWRhOn{BASE64}"), format!("?key={PERCENT}")]}),
            json!({}),
        ),
        flow(call.clone(), json!({}), json!({"unknown": format!("lost {KEY}")}), json!({})),
        flow(json!([final_answer(&format!("the key is {KEY}"))]), json!({}), json!({"result": 1}), json!({})),
        flow(
            call.clone(),
            json!({"fails": failure(format!("wrong key {KEY}"))}),
            json!({"result": 1}),
            json!({}),
        ),
        flow(
            call.clone(),
            json!({}),
            json!({"result": 1}),
            json!({"turns": [{"role": "user", "content": KEY}]}),
        ),
        flow(call, json!({}), json!({"result": 1}), json!({"recallFails": failure(format!("AUTH {KEY}"))})),
    ];
    for row in rows {
        let (all_output, _, message) = all_output(&row).await;
        for secret in [KEY, "tool-password", BASE64, PERCENT] {
            assert!(!all_output.contains(secret) && !message.to_string().contains(secret), "{row}");
        }
        assert!(all_output.contains("[redacted]"), "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn keeps_results_without_secrets_unchanged() {
    let call = json!([tool_call("t", json!({"x": 1})), final_answer("done")]);
    let row = flow(call, json!({}), json!({"result": {"promptTokens": 5, "text": "sk-very"}}), json!({}));
    let (_, ends, message) = all_output(&row).await;
    assert_eq!(ends, ["run-1 a completed"]);
    assert_eq!(
        message["envelope"]["tools"]["history"][0]["output"],
        json!({"promptTokens": 5, "text": "sk-very"})
    );
}

/// A tool of one agent returns the key of another agent, after a restart and a deploy.
#[tokio::test(start_paused = true)]
async fn a_resumed_run_removes_all_secrets_of_the_flow() {
    let call = json!([tool_call("t", json!({"x": 1})), final_answer("done")]);
    let mut first = flow(call, json!({"hangs": "model"}), json!({"result": "other-agents-key"}), json!({}));
    let other = [
        with(
            node("b", "agent-core", json!([["m2"], ["t"], [], []])),
            json!({"strategy": "react", "maxIterations": 5, "allowedTools": ["t"]}),
        ),
        model_double(
            "m2",
            json!([final_answer("hi")]),
            json!({"credentials": {"apiKey": "other-agents-key"}}),
        ),
    ];
    first.as_array_mut().unwrap().extend(other);
    let store = EngineTest::new(&first).crash_after(1, Buffered::Survives).await;
    let mut second = first.clone();
    second[1]["maxIterations"] = json!(7);
    let test = EngineTest::restart(&second, &store);
    let reports = test.recover().await;
    assert_eq!(ends(&reports), ["run-1 a completed"]);
    let output = &only_message(&reports)["envelope"]["tools"]["history"][0]["output"];
    assert_eq!(*output, json!("[redacted]"));
}
