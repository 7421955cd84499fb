//! Requests about runs: cancel and resolve, also by other processes, and cancels by a deploy.

use crate::kit::{
    Buffered, EngineTest, agent, agent_with_tool, build, calculator, debug, ends, final_answer, inject,
    model, model_double, tool_call, tool_double, with,
};
use crate::test_store::StorePort;
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_contract::fact::ToolResult;
use redflow_contract::run::{RunRequest, RunStatus};
use redflow_ports::{RunStore as _, StoreError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// A run that waits for the outcome of a call.
fn waiting_flow() -> Value {
    json!([
        inject(&["a"]),
        agent_with_tool("a", "m", &["d"]),
        model("m", json!([tool_call("t", json!({})), final_answer("done")])),
        tool_double(json!({"ownEffect": "at_most_once", "unknown": "the line went dead"})),
        debug("d", "envelope.tools.history"),
    ])
}

async fn waiting_run() -> EngineTest {
    let test = EngineTest::new(&waiting_flow());
    assert_eq!(ends(&test.fire().await), ["run-1 a waiting run-1:1 t 1"]);
    test
}

/// Waits a minute and checks that all runs are over.
async fn wait_until_over(test: &EngineTest) {
    sleep(Duration::from_secs(60)).await;
    assert!(test.store.runs().iter().all(|(run, ..)| run.status.is_over()), "{:?}", test.store.runs());
}

fn code(answer: Result<(), StoreError>) -> StoreCode {
    answer.unwrap_err().code
}

#[tokio::test(start_paused = true)]
async fn resolves_a_waiting_call() {
    let rows = [
        (ToolResult::ok(json!({"paid": true})), json!({"success": true, "output": {"paid": true}})),
        (ToolResult::ok(Value::Null), json!({"success": true, "output": null})),
        (ToolResult::failed("no"), json!({"success": false, "output": null, "error": "no"})),
    ];
    for (result, expected) in rows {
        let test = waiting_run().await;
        test.engine.resolve("run-1".into(), "run-1:1".into(), result).await.unwrap();
        wait_until_over(&test).await;
        assert_eq!(test.recorder.calls(), ["built t", "tool t {}"], "it is not made again");
        let lines = test.recorder.flow_lines().pop().unwrap();
        let history: Value = serde_json::from_str(lines.strip_prefix("d: ").unwrap()).unwrap();
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(history[0][key], *value, "{lines}");
        }
        assert_eq!(test.store.runs()[0].0.status, RunStatus::Completed);
        // A second answer comes too late.
        let again = test.engine.resolve("run-1".into(), "run-1:1".into(), ToolResult::ok(json!(1))).await;
        assert_eq!(code(again), StoreCode::RunOver);
    }
}

#[tokio::test(start_paused = true)]
async fn refuses_invalid_answers() {
    let test = waiting_run().await;
    let ok = || ToolResult::ok(json!(1));
    let rows = [
        ("run-9", "run-9:1", ok(), StoreCode::RunUnknown),
        ("run-1", "run-1:2", ok(), StoreCode::RunNotWaiting),
        ("run-1", "run-1:1", ToolResult::ok(json!("x".repeat(262_144))), StoreCode::ResultInvalid),
        ("run-1", "run-1:1", ToolResult::ok(crate::kit::nested(101)), StoreCode::ResultInvalid),
    ];
    for (run, call, result, expected) in rows {
        assert_eq!(code(test.engine.resolve(run.into(), call.into(), result).await), expected);
    }
    assert_eq!(test.store.runs()[0].0.status, RunStatus::Waiting, "nothing has changed");
    // A run that works waits for no answer.
    let busy = EngineTest::new(&json!([
        inject(&["a"]),
        agent("a", "m", &[]),
        with(model("m", json!([final_answer("hi")])), json!({"delayMs": 1000})),
        calculator(),
    ]));
    let ask = async {
        sleep(Duration::from_millis(100)).await;
        code(busy.engine.resolve("run-1".into(), "run-1:1".into(), ok()).await)
    };
    assert_eq!(tokio::join!(busy.fire(), ask).1, StoreCode::RunNotWaiting);
}

#[tokio::test(start_paused = true)]
async fn cancels_a_waiting_run() {
    let test = waiting_run().await;
    test.engine.cancel("run-1".into(), "enough".to_owned()).await.unwrap();
    wait_until_over(&test).await;
    let lines = test.recorder.flow_lines();
    assert!(lines.iter().any(|line| line == "a uncaught CANCELLED #1"), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("\"outcome\":\"unknown\"")), "{lines:?}");
    assert_eq!(code(test.engine.cancel("run-1".into(), String::new()).await), StoreCode::RunOver);
    assert_eq!(code(test.engine.cancel("run-7".into(), String::new()).await), StoreCode::RunUnknown);
}

#[tokio::test(start_paused = true)]
async fn takes_requests_of_other_processes() {
    let test = waiting_run().await;
    let resolve = |call: &str| RunRequest::Resolve { call_id: call.into(), result: ToolResult::ok(json!(1)) };
    test.store.add_request(1, "run-1", resolve("run-1:5"));
    test.store.add_request(2, "run-5", RunRequest::Cancel { reason: String::new() });
    sleep(Duration::from_secs(1)).await;
    test.store.add_request(3, "run-1", resolve("run-1:1"));
    wait_until_over(&test).await;
    test.store.add_request(4, "run-1", RunRequest::Cancel { reason: String::new() });
    sleep(Duration::from_secs(1)).await;
    let mut answers = test.store.answers();
    answers.sort_unstable();
    let expected = [
        (1, Some(StoreCode::RunNotWaiting)),
        (2, Some(StoreCode::RunUnknown)),
        (3, None),
        (4, Some(StoreCode::RunOver)),
    ];
    assert_eq!(answers, expected);
    assert_eq!(test.store.runs()[0].0.status, RunStatus::Completed);
}

/// Agents `a` and `b`, whose runs hang, and `p`, whose run waits.
fn three_agents() -> Value {
    json!([
        inject(&["a", "b", "p"]),
        agent("a", "m", &[]),
        agent_with_tool("p", "asking", &[]),
        model("asking", json!([tool_call("t", json!({})), final_answer("done")])),
        tool_double(json!({"ownEffect": "at_most_once", "unknown": "the line went dead"})),
        model_double("m", json!([final_answer("hi")]), json!({"hangs": "model"})),
        calculator(),
        agent("b", "m", &[]),
    ])
}

/// The same flow without `b` and `p`.
fn only_agent_a() -> Value {
    let mut flow = three_agents();
    flow[0]["wires"] = json!([["a"]]);
    flow.as_array_mut().unwrap().retain(|node| node["id"] != "b" && node["id"] != "p");
    flow
}

#[tokio::test(start_paused = true)]
async fn a_deploy_cancels_only_runs_of_removed_agents() {
    let test = EngineTest::new(&three_agents());
    let deploys = async {
        sleep(Duration::from_secs(1)).await;
        // The new flow has the same agents, so their runs continue.
        test.engine.deploy(build(&three_agents())).await;
        sleep(Duration::from_secs(1)).await;
        let statuses: Vec<RunStatus> = test.store.runs().iter().map(|(run, ..)| run.status).collect();
        assert_eq!(statuses, [RunStatus::Interrupted, RunStatus::Interrupted, RunStatus::Waiting]);
        // The new flow has neither `b`, which works, nor `p`, which waits.
        test.engine.deploy(build(&only_agent_a())).await;
        sleep(Duration::from_secs(1)).await;
        test.engine.cancel("run-1".into(), String::new()).await.unwrap();
    };
    let (reports, ()) = tokio::join!(test.fire(), deploys);
    let expected = ["run-1 a failed CANCELLED", "run-2 b failed CANCELLED", "run-3 p waiting run-3:1 t 1"];
    assert_eq!(ends(&reports), expected);
    sleep(Duration::from_secs(1)).await;
    let journal = test.store.journal(&"run-3".into());
    assert!(journal.contains("its agent was removed from the flow"), "{journal}");
    assert!(test.store.runs().iter().all(|(run, ..)| run.status.is_over() && run.delivered));
}

#[tokio::test(start_paused = true)]
async fn a_run_of_a_removed_agent_that_hung_is_left_alone() {
    let store = EngineTest::new(&three_agents()).crash_after(1, Buffered::Survives).await;
    for run in ["run-2", "run-3"] {
        StorePort(Arc::clone(&store)).mark_hung(&run.into(), true);
    }
    let before = store.loads();
    let test = EngineTest::restart(&only_agent_a(), &store);
    assert_eq!(ends(&test.recover().await), ["run-1 a completed"]);
    test.engine.deploy(build(&only_agent_a())).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(store.loads(), before + 1, "only the first run is replayed");
}

#[tokio::test(start_paused = true)]
async fn a_recovery_cancels_runs_of_removed_agents() {
    let store = EngineTest::new(&three_agents()).crash_after(1, Buffered::Survives).await;
    let test = EngineTest::restart(&only_agent_a(), &store);
    let mut ends = ends(&test.recover().await);
    ends.sort_unstable();
    assert_eq!(ends, ["run-1 a completed", "run-2 b failed CANCELLED", "run-3 p failed CANCELLED"]);
}

#[tokio::test(start_paused = true)]
async fn a_result_of_a_removed_agent_counts_as_delivered() {
    // The run ends without a flow, so its result is not delivered.
    let store = EngineTest::new(&three_agents()).crash_after(1, Buffered::Survives).await;
    let alone = EngineTest::restart(&three_agents(), &store);
    let engine = redflow_engine::Engine::new(None, alone.ports(), redflow_engine::EngineLimits::default());
    engine.resume(vec!["run-2".into()], &alone.cancel).await;
    let run_of_b = |store: &crate::test_store::TestStore| store.runs()[1].0.clone();
    assert!(run_of_b(&store).status.is_over() && !run_of_b(&store).delivered);
    // An engine of another instance leaves the result alone.
    let mut ports = alone.ports();
    ports.instance = redflow_contract::id::InstanceId::from("other".to_owned());
    let other = redflow_engine::Engine::new(
        Some(build(&only_agent_a())),
        ports,
        redflow_engine::EngineLimits::default(),
    );
    other.recover(&alone.cancel).await.unwrap();
    assert!(!run_of_b(&store).delivered && store.runs()[2].0.status == RunStatus::Waiting);
    let test = EngineTest::restart(&only_agent_a(), &store);
    test.recover().await;
    assert!(run_of_b(&store).delivered && store.runs()[2].0.status == RunStatus::Failed);
}
