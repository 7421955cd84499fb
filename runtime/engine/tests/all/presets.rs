//! Agents for one thing from end to end, with the scripted model.

use crate::kit::{Buffered, EngineTest, debug, ends, inject, model, node, only_message, with};
use pretty_assertions::assert_eq;
use redflow_contract::event::{FlowEvent, RunEventKind};
use serde_json::{Value, json};
use std::sync::Arc;

fn finish(result: &Value) -> Value {
    json!({"toolCalls": [{"name": "finish_step", "arguments": {"result": result}}]})
}

fn flow(type_name: &str, props: Value, replies: Value) -> Value {
    let agent = with(node("a", type_name, json!([["d"], ["s"]])), json!({"model": "m"}));
    json!([
        inject(&["a"]),
        with(agent, props),
        model("m", replies),
        node("calc", "calculator-tool", json!([])),
        debug("d", "payload"),
        debug("s", "true"),
    ])
}

/// The texts on the stream port.
fn streamed(test: &EngineTest) -> Vec<String> {
    let text = |event: FlowEvent| match event {
        FlowEvent::Debug { node, value, .. }
            if node.id.as_str() == "s" && value["stream"]["type"] == "text" =>
        {
            Some(value["payload"].as_str().unwrap().to_owned())
        }
        _ => None,
    };
    test.recorder.flow_events().into_iter().filter_map(text).collect()
}

#[tokio::test(start_paused = true)]
async fn each_preset_gives_its_result() {
    let number = json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]});
    let calculation = json!({"toolCalls": [{"name": "calculator", "arguments": {"expression": "2+2"}}]});
    let summary = json!("Hi.");
    for (type_name, props, replies, payload) in [
        (
            "ai-simple-agent",
            json!({"tools": ["calc"], "objective": "Add: {{json}}", "outputSchema": number}),
            json!([calculation, finish(&json!({"n": 4}))]),
            json!({"n": 4}),
        ),
        ("ai-simple-agent", json!({}), json!(["It is 4."]), json!("It is 4.")),
        (
            "ai-extractor",
            json!({"outputSchema": number.to_string()}),
            json!(["It is 4.", {"result": {}}, "```json\n{\"result\": {\"n\": 4}}\n```"]),
            json!({"n": 4}),
        ),
        (
            "ai-classifier",
            json!({"categories": r#"["bug", {"name": "praise", "description": "Thanks."}]"#}),
            json!([{"result": "other"}, {"result": "praise"}]),
            json!("praise"),
        ),
        (
            "ai-classifier",
            json!({"categories": ["bug", "praise"], "options": {"multiple": true}}),
            json!([{"result": ["praise"]}]),
            json!(["praise"]),
        ),
        ("ai-summarizer", json!({"text": "Some words."}), json!(["much too long", "Hi."]), summary.clone()),
        // A model may give its result by the finishing tool even if it is not on the list.
        ("ai-summarizer", json!({"text": "Some words."}), json!([finish(&summary)]), summary),
    ] {
        let test = EngineTest::new(&flow(type_name, props, replies));
        let reports = test.fire().await;
        assert_eq!(ends(&reports), ["run-1 a completed"], "{type_name}");
        assert_eq!(only_message(&reports)["payload"], payload);
        // The result comes on the stream port too, as text.
        let text = payload.as_str().map_or_else(|| payload.to_string(), str::to_owned);
        let streamed = streamed(&test);
        assert_eq!(streamed.last(), Some(&text), "{type_name}");
        // JSON that only holds the result does not.
        assert!(streamed.iter().all(|text| !text.contains("\"result\"")), "{streamed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_bad_end_has_its_code() {
    let categories = json!({"categories": ["bug", "praise"]});
    let long = json!({"text": "word ".repeat(2_000), "maxTokenLimit": 1_000});
    for (type_name, props, replies, end) in [
        ("ai-classifier", categories.clone(), json!([{"result": "other"}]), "OUTPUT_INVALID"),
        ("ai-classifier", categories, json!(["Praise."]), "OUTPUT_INVALID"),
        ("ai-summarizer", json!({}), json!(["longer than the text"]), "OUTPUT_INVALID"),
        ("ai-summarizer", long, json!(["short"]), "CONTEXT_LENGTH"),
    ] {
        let test = EngineTest::new(&flow(type_name, props, replies));
        assert_eq!(ends(&test.fire().await), [format!("run-1 a failed {end}")], "{type_name}");
    }
}

/// An agent whose third call makes its conversation long. The text of a reply is its summary too.
fn long_conversation(delay_ms: u64) -> Value {
    let call = |number: u32, tokens: u64| {
        json!({
            "toolCalls": [{"name": "calculator", "arguments": {"expression": format!("{number}+1")}}],
            "text": format!("Step {number}."),
            "usage": {"inputTokens": tokens, "outputTokens": 1},
        })
    };
    let last = json!({"toolCalls": [{"name": "finish_step", "arguments": {"result": "done"}}], "text": "S."});
    let props = json!({"tools": ["calc"], "maxTokenLimit": 1_000});
    let replies = json!([call(1, 100), call(2, 200), call(3, 800), last]);
    let mut flow = flow("ai-simple-agent", props, replies);
    flow[2]["delayMs"] = json!(delay_ms);
    flow
}

#[tokio::test(start_paused = true)]
async fn old_messages_are_summed_up_on_the_way() {
    let test = EngineTest::new(&long_conversation(0));
    let reports = test.fire().await;
    assert_eq!(ends(&reports), ["run-1 a completed"]);
    let message = only_message(&reports);
    assert_eq!((&message["payload"], &message["agentResult"]["iterations"]), (&json!("done"), &json!(4)));
    let events = test.recorder.run_events();
    let summaries = events
        .iter()
        .filter(|event| matches!(event.event, RunEventKind::Summarised { iteration: 4, messages: 2, .. }));
    assert_eq!(summaries.count(), 1, "{events:?}");
    // The summary is not streamed.
    let streamed = streamed(&test);
    assert_eq!(streamed.iter().filter(|text| *text == "S.").count(), 1, "{streamed:?}");
    assert_eq!(streamed.last().map(String::as_str), Some("done"));
}

#[tokio::test(start_paused = true)]
async fn a_crash_during_a_summary_repeats_it() {
    // Three steps of ten seconds, then the summary, then the last step.
    let flow = long_conversation(10_000);
    let store = EngineTest::new(&flow).crash_after(35, Buffered::Survives).await;
    let test = EngineTest::restart(&flow, &Arc::clone(&store));
    let reports = test.recover().await;
    assert_eq!(ends(&reports), ["run-1 a completed"]);
    assert_eq!(only_message(&reports)["payload"], "done");
    let journal = store.journal(&reports[0].run_id);
    // Four steps and one summary, each asked once and answered once.
    assert_eq!(journal.matches("\"model_answered\"").count(), 5, "{journal}");
}
