//! Secrets the runtime knows do not come back as facts, whoever echoes them.

use crate::kit::{
    World, agent_with_tool, asks, debug, ends, inject, model_double, node, only_message, says, tool_double,
    with,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

const KEY: &str = "sk-very-secret-key";

/// A model with a key, a tool with another, a memory with a third; `tool` says what the tool does.
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

/// Everything that is kept and seen of it.
async fn traces(flow: &Value) -> (String, Vec<String>, Value) {
    let world = World::new(flow);
    let reports = world.fire().await;
    let journals: String = reports.iter().map(|report| world.shelf.journal(&report.run_id)).collect();
    // The plan has what these doubles are told to say, as the flow has it.
    let journals: String = journals.lines().filter(|line| !line.contains("\"kind\":\"plan\"")).collect();
    let events = format!("{:?} {:?}", world.watch.run_events(), world.watch.flow_events());
    (journals + &events, ends(&reports), json!(only_message(&reports)))
}

#[tokio::test(start_paused = true)]
async fn whoever_echoes_a_secret_it_does_not_become_a_fact() {
    let call = json!([asks("t", json!({"x": 1})), says("done")]);
    let failure = |text: String| json!({"code": "MODEL_ERROR", "message": text});
    let rows = [
        flow(
            call.clone(),
            json!({}),
            json!({"result": {"headers": [format!("Bearer {KEY}")], "p": "tool-password"}}),
            json!({}),
        ),
        flow(call.clone(), json!({}), json!({"error": format!("401 for {KEY}")}), json!({})),
        flow(call.clone(), json!({}), json!({"unknown": format!("lost {KEY}")}), json!({})),
        flow(json!([says(&format!("the key is {KEY}"))]), json!({}), json!({"result": 1}), json!({})),
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
        let (traces, _, message) = traces(&row).await;
        for secret in [KEY, "tool-password"] {
            assert!(!traces.contains(secret) && !message.to_string().contains(secret), "{row}");
        }
        assert!(traces.contains("[redacted]"), "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_secret_comes_back_as_it_is() {
    let call = json!([asks("t", json!({"x": 1})), says("done")]);
    let row = flow(call, json!({}), json!({"result": {"promptTokens": 5, "text": "sk-very"}}), json!({}));
    let (_, ends, message) = traces(&row).await;
    assert_eq!(ends, ["run-1 a completed"]);
    assert_eq!(
        message["envelope"]["tools"]["history"][0]["output"],
        json!({"promptTokens": 5, "text": "sk-very"})
    );
}

/// Another agent's key, in the hands of a tool of this one, after a restart and a deploy.
#[tokio::test(start_paused = true)]
async fn a_run_that_goes_on_knows_the_secrets_of_the_whole_flow() {
    let call = json!([asks("t", json!({"x": 1})), says("done")]);
    let mut first = flow(call, json!({"hangs": "model"}), json!({"result": "other-agents-key"}), json!({}));
    let other = [
        with(
            node("b", "agent-core", json!([["m2"], ["t"], [], []])),
            json!({"strategy": "react", "maxIterations": 5, "allowedTools": ["t"]}),
        ),
        model_double("m2", json!([says("hi")]), json!({"credentials": {"apiKey": "other-agents-key"}})),
    ];
    first.as_array_mut().unwrap().extend(other);
    let shelf = World::new(&first).killed_after(1, true).await;
    let mut second = first.clone();
    second[1]["maxIterations"] = json!(7);
    let world = World::over(&second, &shelf);
    let reports = world.recover().await;
    assert_eq!(ends(&reports), ["run-1 a completed"]);
    let output = &only_message(&reports)["envelope"]["tools"]["history"][0]["output"];
    assert_eq!(*output, json!("[redacted]"));
}
