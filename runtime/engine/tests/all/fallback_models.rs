//! Fallback models: the next one answers when a model cannot, and stays for the run, also for a resumed one.

use crate::kit::{
    Buffered, EngineTest, agent_with_tool, ends, final_answer, inject, model_double, tool_call, tool_double,
    with,
};
use pretty_assertions::assert_eq;
use redflow_contract::event::RunEventKind;
use serde_json::{Value, json};

fn flow(fallback_models: Value, tool: Value) -> Value {
    let replies = json!([tool_call("t", json!({})), final_answer("done")]);
    let failure = json!({"fails": {"code": "PROVIDER_UNAVAILABLE", "message": "offline"}});
    json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &[]), json!({"fallbackModels": fallback_models})),
        model_double("m", replies.clone(), failure),
        model_double("m2", replies, json!({})),
        tool_double(tool),
    ])
}

fn model_calls(test: &EngineTest) -> Vec<String> {
    test.recorder.calls().into_iter().filter(|call| call.starts_with("model ")).collect()
}

#[tokio::test(start_paused = true)]
async fn the_next_model_answers_and_stays() {
    let test = EngineTest::new(&flow(json!(["m2"]), json!({})));
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    assert_eq!(model_calls(&test), ["model m 1", "model m2 1", "model m2 2"]);
    let fell_over = test.recorder.run_events().into_iter().filter_map(|event| match event.event {
        RunEventKind::ModelFellOver { iteration, model, code } => Some(format!("{iteration} {model} {code}")),
        _ => None,
    });
    assert_eq!(fell_over.collect::<Vec<_>>(), ["1 m PROVIDER_UNAVAILABLE"]);
    let test = EngineTest::new(&flow(json!([]), json!({})));
    assert_eq!(ends(&test.fire().await), ["run-1 a failed PROVIDER_UNAVAILABLE"]);
}

/// By default, a run has less time than a call of a model may take.
#[tokio::test(start_paused = true)]
async fn a_hanging_model_falls_over_before_the_run_ends() {
    let mut flow = flow(json!(["m2"]), json!({}));
    flow[2] = model_double("m", json!([final_answer("done")]), json!({"hangs": "model"}));
    let test = EngineTest::new(&flow);
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    assert_eq!(model_calls(&test), ["model m 1", "model m2 1", "model m2 2"]);
}

/// The run goes on with the models of its plan, whatever the flow has now.
#[tokio::test(start_paused = true)]
async fn a_resumed_run_has_the_fallback_models_of_its_plan() {
    let before = flow(json!(["m2"]), json!({"hangs": "tool"}));
    for now in [before.clone(), flow(json!([]), json!({}))] {
        let store = EngineTest::new(&before).crash_after(10, Buffered::Survives).await;
        let test = EngineTest::restart(&now, &store);
        assert_eq!(ends(&test.recover().await), ["run-1 a completed"]);
        assert_eq!(model_calls(&test), ["model m2 2"]);
    }
}
