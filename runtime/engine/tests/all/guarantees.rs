//! Guarantees: no cancel is lost, every result is delivered, and no needless question is asked.

use crate::kit::{
    Buffered, EngineTest, Setup, agent, agent_with_tool, calculator, debug, ends, final_answer, inject,
    model, tool_call, tool_double, with,
};
use crate::test_store::{Fault, TestStore};
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_contract::run::RunStatus;
use redflow_engine::{Engine, EngineLimits};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A synced batch takes five seconds.
fn slow_store() -> Setup {
    Setup { fault: Fault::Slow, ..Setup::default() }
}

/// One call of the tool `t`, then an answer.
fn one_call(tool: Value) -> Value {
    json!([
        inject(&["a"]),
        agent_with_tool("a", "m", &["d"]),
        model("m", json!([tool_call("t", json!({})), final_answer("done")])),
        tool_double(tool),
        debug("d", "payload"),
    ])
}

/// Cancels the first run after some seconds, and waits for the answer.
async fn cancel_after(test: &EngineTest, seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
    test.engine.cancel("run-1".into(), "enough".to_owned()).await.unwrap();
    assert_eq!(test.store.runs()[0].0.status, RunStatus::Failed, "it is over when the answer comes");
}

#[tokio::test(start_paused = true)]
async fn cancels_a_run_that_starts_to_wait() {
    // The start is stored at 5 s, the intent at 10 s, the unknown outcome at 15 s.
    let flow = one_call(json!({"ownEffect": "at_most_once", "unknown": "the line went dead"}));
    let test = slow_store().start_engine(&flow);
    let (reports, ()) = tokio::join!(test.fire(), cancel_after(&test, 12));
    assert_eq!(ends(&reports), ["run-1 a failed CANCELLED"]);
}

#[tokio::test(start_paused = true)]
async fn cancels_a_run_during_its_resume() {
    let tool = json!({"effect": "at_most_once", "hangs": "tool", "timeout": 90_000_000});
    let flow = one_call(tool);
    let store = slow_store().start_engine(&flow).crash_after(12, Buffered::Survives).await;
    let test = slow_store().restart(&flow, &store);
    let (reports, ()) = tokio::join!(test.recover(), cancel_after(&test, 2));
    assert_eq!(ends(&reports), ["run-1 a failed CANCELLED"]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_undo_a_cancel() {
    let test = slow_store().start_engine(&one_call(json!({"ownEffect": "idempotent"})));
    let stop = async {
        sleep(Duration::from_secs(8)).await;
        test.engine.shutdown(Duration::from_secs(60)).await;
    };
    let (reports, (), ()) = tokio::join!(test.fire(), cancel_after(&test, 7), stop);
    assert_eq!(ends(&reports), ["run-1 a failed CANCELLED"]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_still_makes_a_stored_at_most_once_call() {
    // The shutdown comes after one second, the model's answer after two: the call is still made.
    let quick = one_call_after(2000, json!({"effect": "at_most_once"}));
    let hangs =
        one_call_after(2000, json!({"effect": "at_most_once", "hangs": "tool", "timeout": 90_000_000}));
    let test = EngineTest::new(&quick);
    let stop = async {
        sleep(Duration::from_secs(1)).await;
        test.engine.shutdown(Duration::from_secs(10)).await;
    };
    let (reports, ()) = tokio::join!(test.fire(), stop);
    assert_eq!(ends(&reports), ["run-1 a suspended"]);
    assert_eq!(test.recorder.calls(), ["built t", "tool t {}"]);
    let store = Arc::clone(&test.store);
    test.kill().await;
    let test = EngineTest::restart(&quick, &store);
    assert_eq!(ends(&test.recover().await), ["run-1 a completed"]);
    assert_eq!(test.recorder.calls(), ["built t"], "it was made before");
    // A call that is open when the drain time ends waits for a person's answer.
    let test = EngineTest::new(&hangs);
    let stop = async {
        sleep(Duration::from_secs(1)).await;
        test.engine.shutdown(Duration::from_secs(10)).await;
    };
    let (reports, ()) = tokio::join!(test.fire(), stop);
    assert_eq!(ends(&reports), ["run-1 a suspended"]);
    let store = Arc::clone(&test.store);
    test.kill().await;
    assert_eq!(ends(&EngineTest::restart(&hangs, &store).recover().await), ["run-1 a waiting run-1:1 t 1"]);
}

fn one_call_after(delay_ms: u64, tool: Value) -> Value {
    let mut flow = one_call(tool);
    flow[2]["delayMs"] = json!(delay_ms);
    flow
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_records_a_call_it_did_not_make() {
    // The intent is stored at 10 s. The shutdown comes at 7 s and lets nothing finish.
    let flow = one_call(json!({"effect": "at_most_once"}));
    let test = slow_store().start_engine(&flow);
    let stop = async {
        sleep(Duration::from_secs(7)).await;
        test.engine.shutdown(Duration::ZERO).await;
    };
    let (reports, ()) = tokio::join!(test.fire(), stop);
    assert_eq!(ends(&reports), ["run-1 a suspended"]);
    assert_eq!(test.recorder.calls(), ["built t"]);
    let store = Arc::clone(&test.store);
    test.kill().await;
    let test = EngineTest::restart(&flow, &store);
    assert_eq!(ends(&test.recover().await), ["run-1 a completed"], "no person has to answer");
    assert!(store.runs()[0].1.contains("the runtime was stopped before the call was made"));
}

#[tokio::test(start_paused = true)]
async fn counts_active_time_before_a_shutdown() {
    let flow = json!([
        inject(&["a"]),
        with(agent("a", "m", &["d"]), json!({"timeout": 5000})),
        with(model("m", json!([final_answer("done")])), json!({"delayMs": 60_000})),
        calculator(),
        debug("d", "payload.code"),
    ]);
    let store = TestStore::new(Fault::None);
    for life in 0..2 {
        let test = EngineTest::restart(&flow, &store);
        let stop = async {
            sleep(Duration::from_secs(4)).await;
            test.engine.shutdown(Duration::ZERO).await;
        };
        if life == 0 {
            tokio::join!(test.fire(), stop);
        } else {
            tokio::join!(test.recover(), stop);
        }
        test.kill().await;
    }
    assert_eq!(
        store.runs()[0].0.status,
        RunStatus::Failed,
        "it worked for eight seconds, and the limit is five"
    );
}

/// `a` feeds `b`; `c` is slow_store.
fn cascade_flow() -> Value {
    json!([
        inject(&["a"]),
        agent("a", "m", &["b"]),
        agent("b", "m", &["d"]),
        agent("c", "slow", &[]),
        model("m", json!([final_answer("hi")])),
        with(model("slow", json!([final_answer("hi")])), json!({"delayMs": 60_000})),
        calculator(),
        debug("d", "payload"),
    ])
}

/// Whether another agent works while the result of `a` is undelivered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OtherRun {
    None,
    OfC,
}

/// A store in which `a` is over, and its result has not reached `b`.
async fn undelivered_result(other: OtherRun) -> Arc<TestStore> {
    let test = Setup { fault: Fault::Start("run-2"), ..Setup::default() }.start_engine(&cascade_flow());
    test.fire().await;
    let store = Arc::clone(&test.store);
    assert!(!store.runs()[0].0.delivered);
    if other == OtherRun::OfC {
        let _ = tokio::time::timeout(Duration::from_secs(1), test.send_to("c", json!(1))).await;
    }
    test.kill().await;
    store
}

fn has_run_of(store: &TestStore, agent: &str) -> bool {
    store.runs().iter().any(|(run, ..)| run.agent.node_id.as_str() == agent)
}

#[tokio::test(start_paused = true)]
async fn a_result_is_delivered_when_all_its_messages_arrived() {
    let flow = json!([
        inject(&["a"]),
        agent("a", "m", &["b", "c"]),
        agent("b", "m", &["d"]),
        agent("c", "m", &["d"]),
        model("m", json!([final_answer("hi")])),
        calculator(),
        debug("d", "payload"),
    ]);
    let test = Setup { fault: Fault::Start("run-2"), ..Setup::default() }.start_engine(&flow);
    test.fire().await;
    let store = Arc::clone(&test.store);
    assert!(!has_run_of(&store, "b") && has_run_of(&store, "c") && !store.runs()[0].0.delivered);
    test.kill().await;
    let mut ends = ends(&EngineTest::restart(&flow, &store).recover().await);
    ends.sort_unstable();
    assert_eq!(ends, ["run-1 a completed", "run-4 b completed"], "`c` does not begin again");
}

#[tokio::test(start_paused = true)]
async fn a_resent_result_ignores_the_queue_limit() {
    let store = undelivered_result(OtherRun::OfC).await;
    let limits = EngineLimits { max_active: 1, max_queued: 0, ..EngineLimits::default() };
    let test = Setup { limits, ..Setup::default() }.restart(&cascade_flow(), &store);
    test.recover().await;
    assert!(has_run_of(&store, "b") && store.runs()[0].0.delivered);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_recovery_keeps_results_undelivered() {
    let store = undelivered_result(OtherRun::None).await;
    let test = EngineTest::restart(&cascade_flow(), &store);
    test.cancel.cancel();
    test.recover().await;
    assert!(!has_run_of(&store, "b") && !store.runs()[0].0.delivered);
    test.kill().await;
    EngineTest::restart(&cascade_flow(), &store).recover().await;
    assert!(has_run_of(&store, "b") && store.runs()[0].0.delivered);
}

#[tokio::test(start_paused = true)]
async fn a_refused_cancel_sends_no_result() {
    let store = undelivered_result(OtherRun::None).await;
    let test = EngineTest::restart(&cascade_flow(), &store);
    let refused = test.engine.cancel("run-1".into(), "x".to_owned()).await;
    assert_eq!(refused.unwrap_err().code, StoreCode::RunOver);
    sleep(Duration::from_secs(1)).await;
    assert!(!has_run_of(&store, "b") && !store.runs()[0].0.delivered);
}

#[tokio::test(start_paused = true)]
async fn a_result_without_its_flow_stays_undelivered() {
    let store = undelivered_result(OtherRun::None).await;
    let test = EngineTest::restart(&cascade_flow(), &store);
    let alone = Engine::new(None, test.ports(), EngineLimits::default());
    assert_eq!(ends(&alone.resume(vec!["run-1".into()], &test.cancel).await), ["run-1 a completed"]);
    assert!(!store.runs()[0].0.delivered);
    test.recover().await;
    assert!(has_run_of(&store, "b") && store.runs()[0].0.delivered);
}

#[tokio::test(start_paused = true)]
async fn does_not_resend_a_result_in_flight() {
    let flow = json!([
        inject(&["a"]),
        agent("a", "m", &["b", "d"]),
        agent("b", "m", &[]),
        model("m", json!([final_answer("hi")])),
        calculator(),
        debug("d", "payload"),
    ]);
    let test = slow_store().start_engine(&flow);
    let again = async {
        sleep(Duration::from_secs(12)).await;
        test.engine.recover(&test.cancel).await.unwrap();
    };
    tokio::join!(test.fire(), again);
    assert_eq!(test.recorder.flow_lines(), ["d: \"hi\""]);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_takes_a_slot_of_its_agent() {
    let flow = json!([
        inject(&["a"]),
        agent("a", "m", &["d"]),
        with(model("m", json!([final_answer("hi")])), json!({"delayMs": 10_000})),
        calculator(),
        debug("d", "payload"),
    ]);
    let store = EngineTest::new(&flow).crash_after(1, Buffered::Survives).await;
    let limits = EngineLimits { max_active_per_agent: 1, ..EngineLimits::default() };
    let test = Setup { limits, ..Setup::default() }.restart(&flow, &store);
    let started = Instant::now();
    tokio::join!(test.engine.resume(vec!["run-1".into()], &test.cancel), test.send(json!("x")));
    assert_eq!(started.elapsed().as_secs(), 20, "one at a time");
}

/// Port 4 goes to `e`, and to an agent.
fn with_port_4(tool: Value) -> Value {
    let mut flow = one_call(tool);
    flow[1]["wires"] = json!([["m"], ["t"], [], ["d"], ["e", "b"]]);
    let nodes = flow.as_array_mut().unwrap();
    nodes.extend([
        debug("e", "agentResult.iteration"),
        with(agent("b", "mb", &[]), json!({"wires": [["mb"], ["calc"], [], []]})),
        model("mb", json!([final_answer("heard")])),
        calculator(),
    ]);
    flow
}

#[tokio::test(start_paused = true)]
async fn resends_a_model_response_before_the_run_waits() {
    let flow = with_port_4(json!({"effect": "at_most_once", "hangs": "tool", "timeout": 90_000_000}));
    let test = EngineTest::new(&flow);
    let recorder = Arc::clone(&test.recorder);
    let store = test.crash_after(1, Buffered::Survives).await;
    assert_eq!(recorder.flow_lines(), ["e: 1"]);
    // As if the process had died before the response left: the run it set off does not exist.
    store.remove_run("run-2");
    let test = EngineTest::restart(&flow, &store);
    test.recover().await;
    assert_eq!(test.recorder.flow_lines(), ["e: 1"]);
    assert!(has_run_of(&store, "b"));
    assert_eq!(store.runs()[0].0.status, RunStatus::Waiting);
}

#[tokio::test(start_paused = true)]
async fn resends_the_last_model_response_before_the_result() {
    // The fourth batch stores the result, and the process dies at once.
    let flow = with_port_4(json!({"effect": "read"}));
    let test = Setup { fault: Fault::Slow, ..Setup::default() }.start_engine(&flow);
    let store = test.crash_after(22, Buffered::Survives).await;
    let run = store.runs().into_iter().find(|(run, ..)| run.run_id.as_str() == "run-1").unwrap().0;
    assert!(run.status.is_over() && !run.delivered, "{run:?}");
    let test = EngineTest::restart(&flow, &store);
    test.recover().await;
    let lines = test.recorder.flow_lines();
    assert_eq!(lines.iter().filter(|line| *line == "e: 2").count(), 1, "{lines:?}");
    assert_eq!(lines.iter().filter(|line| *line == "d: \"done\"").count(), 1, "{lines:?}");
}
