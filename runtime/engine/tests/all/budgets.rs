//! Budgets: the calls that a run may no longer make, however it was interrupted.

use crate::doubles::new_call_counts;
use crate::kit::{
    Buffered, EngineTest, Setup, agent_with_tool, ends, final_answer, inject, model_double, only_message,
    tool_call, tool_double,
};
use crate::several_effects::{self, FanOutStrategy, check_finished, finish};
use crate::test_store::{Fault, TestStore};
use pretty_assertions::assert_eq;
use redflow_contract::event::RunEventKind;
use redflow_contract::node::Budget;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// An agent that calls its tool twice before it answers. Each answer of the model has 100 tokens and costs 0.25.
fn flow(usage: &Value, tool: Value) -> Value {
    let replies =
        json!([tool_call("t", json!({})), tool_call("t", json!({"again": 1})), final_answer("done")]);
    let model = model_double("m", replies, json!({"usage": usage}));
    json!([inject(&["a"]), agent_with_tool("a", "m", &[]), model, tool_double(tool)])
}

fn priced() -> Value {
    json!({"inputTokens": 60, "outputTokens": 40, "cost": 0.25})
}

fn setup(budget: Value) -> Setup {
    Setup { run_budget: serde_json::from_value(budget).unwrap(), ..Setup::default() }
}

/// The budget events of a run, one line each.
fn budget_lines(test: &EngineTest) -> Vec<String> {
    let line = |kind: RunEventKind| match kind {
        RunEventKind::BudgetLow { budget, limit, spent } => {
            Some(format!("low {} {spent}/{limit}", budget.as_str()))
        }
        RunEventKind::BudgetReached { budget, limit, spent } => {
            Some(format!("reached {} {spent}/{limit}", budget.as_str()))
        }
        _ => None,
    };
    test.recorder.run_events().into_iter().filter_map(|event| line(event.event)).collect()
}

#[tokio::test(start_paused = true)]
async fn refuses_the_call_after_each_limit() {
    // The budget, its events, and the calls that were made.
    let rows = [
        (json!({"tokens": 150}), vec!["low tokens 200/150", "reached tokens 200/150"], (2, 1)),
        (json!({"tokens": 200}), vec!["low tokens 200/200", "reached tokens 200/200"], (2, 1)),
        (json!({"tokens": 110}), vec!["low tokens 100/110", "reached tokens 200/110"], (2, 1)),
        (json!({"cost": 0.2}), vec!["low cost 0.25/0.2", "reached cost 0.25/0.2"], (1, 0)),
        (json!({"modelCalls": 1}), vec!["low modelCalls 1/1", "reached modelCalls 1/1"], (1, 1)),
        (json!({"modelCalls": 2}), vec!["low modelCalls 2/2", "reached modelCalls 2/2"], (2, 2)),
        (json!({"toolCalls": 1}), vec!["low toolCalls 1/1", "reached toolCalls 1/1"], (2, 1)),
        (json!({"toolCalls": 0}), vec!["low toolCalls 0/0", "reached toolCalls 0/0"], (1, 0)),
    ];
    for (budget, events, calls) in rows {
        let rule = budget.as_object().unwrap().keys().next().unwrap().clone();
        let test = setup(budget.clone()).start_engine(&flow(&priced(), json!({})));
        let reports = test.fire().await;
        assert_eq!(ends(&reports), ["run-1 a failed BUDGET_EXCEEDED"], "{budget}");
        let message = only_message(&reports);
        assert_eq!(message["error"]["rule"], json!(rule), "{message}");
        assert_eq!(budget_lines(&test), events, "{budget}");
        let made = test.recorder.calls();
        let count = |name: &str| made.iter().filter(|call| call.starts_with(name)).count();
        assert_eq!((count("model "), count("tool ")), calls, "{budget}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_within_its_budget_only_reports_that_it_is_low() {
    let budget = json!({"tokens": 375, "cost": 1, "modelCalls": 3, "toolCalls": 2});
    let test = setup(budget).start_engine(&flow(&priced(), json!({})));
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    assert_eq!(budget_lines(&test), ["low toolCalls 2/2", "low modelCalls 3/3", "low tokens 300/375"]);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_goes_on_counting() {
    let setup = setup(json!({"modelCalls": 2}));
    let flow = flow(&priced(), json!({"hangs": "tool"}));
    let store = setup.start_engine(&flow).crash_after(10, Buffered::Survives).await;
    let test = setup.restart(&flow, &store);
    assert_eq!(ends(&test.recover().await), ["run-1 a failed BUDGET_EXCEEDED"]);
    let models = test.recorder.calls().iter().filter(|call| call.starts_with("model ")).count();
    assert_eq!(models, 1, "one call before the crash, one after it");
}

/// The first calls of a group are made, and the rest is refused. No person is asked about a refused call.
#[tokio::test(start_paused = true)]
async fn refuses_the_last_calls_of_a_group() {
    let run_budget = Budget { tool_calls: Some(3), ..Budget::default() };
    for moment in 0..60 {
        let counts = new_call_counts();
        let setup = Setup {
            run_budget,
            strategy: Some(Arc::new(FanOutStrategy)),
            ..several_effects::setup(Fault::None)
        };
        let (flow, store) = (several_effects::flow(1_000), TestStore::new(Fault::None));
        let test = setup.restart(&flow, &store);
        let _ = timeout(Duration::from_millis(moment), test.fire_unchecked()).await;
        test.kill().await;
        store.crash(|| 0.0);
        let questions = finish(&setup, &flow, &store).await;
        let counts = counts.lock().unwrap();
        check_finished(&format!("killed after {moment} ms"), &store, &counts, questions);
        assert!(questions <= 1, "killed after {moment} ms");
        let dangerous = counts.keys().filter(|key| key.starts_with("at_most_once")).count();
        assert!(dangerous <= 1, "killed after {moment} ms: {counts:?}");
        for (_, journal, _) in store.runs() {
            assert_eq!(journal.matches(r#""type":"budget_reached""#).count(), 1, "{journal}");
        }
    }
    // A crash before the refusal is stored.
    let counts = new_call_counts();
    let setup = Setup { run_budget, ..several_effects::setup(Fault::HangBefore(2)) };
    let (flow, store) = (several_effects::flow(1_000), TestStore::new(Fault::HangBefore(2)));
    let test = setup.restart(&flow, &store);
    let _ = timeout(Duration::from_secs(10), test.fire_unchecked()).await;
    test.kill().await;
    store.crash(|| 0.0);
    let questions = finish(&setup, &flow, &store).await;
    assert_eq!(questions, 1, "of the call that may have been made");
    assert_eq!(counts.lock().unwrap().len(), 3, "the refused call was never made");
}

#[tokio::test(start_paused = true)]
async fn a_budget_of_cost_needs_a_price() {
    let free = json!({"inputTokens": 60, "outputTokens": 40});
    for (is_live, advice) in [
        (
            true,
            "set `inputPrice` and `outputPrice` at its node, or add it to `[prices]` in the configuration",
        ),
        (false, "add `usage.cost` to its replies"),
    ] {
        let mut flow = flow(&free, json!({}));
        if is_live {
            flow[2]["live"] = json!(true);
        }
        let reports = setup(json!({"cost": 1})).start_engine(&flow).fire().await;
        assert_eq!(ends(&reports), ["run-1 a refused CONFIG_INVALID"]);
        let text = only_message(&reports)["error"]["message"].as_str().unwrap().to_owned();
        let expected = format!("the model `m` has no known price: {advice}, or limit `tokens` instead");
        assert!(text.contains(&expected), "{text}");
    }
}
