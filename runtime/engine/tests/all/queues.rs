//! Slots and queues of runs: limits, fair turns for agents, and shutdowns that lose nothing.

use crate::kit::{
    EngineTest, Setup, agent, calculator, debug, ends, final_answer, inject, model, model_double, node,
    tool_call, with,
};
use pretty_assertions::assert_eq;
use redflow_engine::EngineLimits;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

fn slow_model(delay_ms: u64) -> Value {
    with(model("m", json!([final_answer("hi")])), json!({"delayMs": delay_ms}))
}

/// An inject node that reaches `a` several times and `b` once; each run takes a second.
fn flow(messages_to_a: usize) -> Value {
    let names: Vec<String> = (0..=messages_to_a).map(|number| format!("j{number}")).collect();
    let agent_of = |number: usize| if number < messages_to_a { "a" } else { "b" };
    let junction = |(number, name): (usize, &String)| node(name, "junction", json!([[agent_of(number)]]));
    let mut nodes: Vec<Value> = names.iter().enumerate().map(junction).collect();
    let targets: Vec<&str> = names.iter().map(String::as_str).collect();
    nodes.extend([
        inject(&targets),
        agent("a", "m", &["d"]),
        agent("b", "m", &["d"]),
        slow_model(1000),
        calculator(),
        debug("d", "agentResult.traceId"),
    ]);
    Value::Array(nodes)
}

fn with_limits(limits: EngineLimits, flow: &Value) -> EngineTest {
    Setup { limits, ..Setup::default() }.start_engine(flow)
}

#[tokio::test(start_paused = true)]
async fn agents_take_turns_for_slots() {
    let test = with_limits(EngineLimits { max_active: 1, ..EngineLimits::default() }, &flow(4));
    let before = Instant::now();
    let reports = test.fire().await;
    assert_eq!(before.elapsed(), Duration::from_secs(5));
    assert_eq!(reports.len(), 5);
    // The fifth message came last, but its agent had no turn yet.
    let order = ["d: \"run-1\"", "d: \"run-2\"", "d: \"run-5\"", "d: \"run-3\"", "d: \"run-4\""];
    assert_eq!(test.recorder.flow_lines(), order);
}

#[tokio::test(start_paused = true)]
async fn limits_the_slots_of_one_agent() {
    let limits = EngineLimits { max_active_per_agent: 2, ..EngineLimits::default() };
    let test = with_limits(limits, &flow(4));
    let before = Instant::now();
    assert_eq!(test.fire().await.len(), 5);
    assert_eq!(before.elapsed(), Duration::from_secs(2), "two runs of `a` at a time, and `b` beside them");
}

// SECURITY: run-limits
#[tokio::test(start_paused = true)]
async fn refuses_runs_when_the_queue_is_full() {
    let own = EngineLimits { max_active: 1, max_queued_per_agent: 2, ..EngineLimits::default() };
    let all = EngineLimits { max_active: 1, max_queued: 2, ..EngineLimits::default() };
    for (limits, refused) in [(own, 2), (all, 3)] {
        let test = with_limits(limits, &flow(5));
        let reports = test.fire().await;
        let full = ends(&reports).into_iter().filter(|end| end.ends_with("refused QUEUE_FULL")).count();
        assert_eq!((reports.len(), full), (6, refused));
        let lines = test.recorder.flow_lines();
        assert_eq!(lines.iter().filter(|line| *line == "a uncaught QUEUE_FULL #1").count(), 2);
        // The store gets nothing of a refused message.
        assert_eq!(test.store.runs().len(), 6 - refused);
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_does_not_count_the_wait_for_a_slot() {
    let mut flow = flow(2);
    for node in flow.as_array_mut().unwrap() {
        if node["type"] == "agent-core" {
            node["timeout"] = json!(1500);
        }
    }
    let test = with_limits(EngineLimits { max_active: 1, ..EngineLimits::default() }, &flow);
    let ends = ends(&test.fire().await);
    assert!(ends.len() == 3 && ends.iter().all(|end| end.ends_with("completed")), "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn cancels_a_run_that_waits_for_a_slot() {
    let test = with_limits(EngineLimits { max_active: 1, ..EngineLimits::default() }, &flow(1));
    let cancel = async {
        sleep(Duration::from_millis(500)).await;
        test.engine.cancel("run-2".into(), "not needed".to_owned()).await.unwrap();
    };
    let (reports, ()) = tokio::join!(test.fire(), cancel);
    assert_eq!(ends(&reports), ["run-1 a completed", "run-2 b failed CANCELLED"]);
    assert_eq!(test.recorder.flow_lines()[0], "b uncaught CANCELLED #1", "at once, not when its turn comes");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_lets_runs_finish_their_effect() {
    let flow = |delay: u64| {
        let call = tool_call("calculator", json!({"expression": "1+1"}));
        let model = with(model("m", json!([call, final_answer("done")])), json!({"delayMs": delay}));
        json!([inject(&["a"]), agent("a", "m", &["d"]), model, calculator(), debug("d", "payload")])
    };
    for (delay, waited, facts) in [(3000, 2, 2), (60_000, 10, 1)] {
        let test = EngineTest::new(&flow(delay));
        let stop = async {
            sleep(Duration::from_secs(1)).await;
            let before = Instant::now();
            test.engine.shutdown(Duration::from_secs(10)).await;
            assert_eq!(before.elapsed(), Duration::from_secs(waited));
        };
        let (reports, ()) = tokio::join!(test.fire(), stop);
        assert_eq!(ends(&reports), ["run-1 a suspended"]);
        let journal = test.store.journal(&"run-1".into());
        assert_eq!(journal.matches("\"kind\":\"fact\"").count(), facts, "{journal}");
        // The engine takes no more commands.
        assert_eq!(ends(&test.fire().await), [] as [&str; 0]);
        assert!(test.engine.cancel("run-1".into(), String::new()).await.is_err());
        let store = Arc::clone(&test.store);
        test.kill().await;
        let test = EngineTest::restart(&flow(delay), &store);
        assert_eq!(ends(&test.recover().await), ["run-1 a completed"]);
        assert_eq!(test.recorder.flow_lines(), ["d: \"done\""]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_runs_with_cancels_all_end() {
    let flow = json!([
        inject(&["a"]),
        with(agent("a", "m", &[]), json!({"timeout": 50_000})),
        with(model("m", json!([final_answer("hi")])), json!({"delayMs": 1000})),
        model_double("stuck", json!([final_answer("never")]), json!({"hangs": "model"})),
        agent("b", "stuck", &[]),
        calculator(),
    ]);
    let limits = EngineLimits { max_active: 20_000, max_active_per_agent: 20_000, ..EngineLimits::default() };
    let test = Setup { limits, watches_runs: false, ..Setup::default() }.start_engine(&flow);
    let starts = (0..1_000).map(|number| {
        let test = &test;
        async move {
            let agent = if number % 10 == 0 { "b" } else { "a" };
            let reports = test.send_to(agent, json!(number)).await;
            ends(&reports)[0].rsplit_once(' ').unwrap().1.to_owned()
        }
    });
    let cancels = async {
        sleep(Duration::from_millis(500)).await;
        let mut cancelled = 0;
        for (place, (run, ..)) in test.store.runs().into_iter().enumerate() {
            // Every run that hangs, and every seventh of all.
            if run.name == "b" || place % 7 == 0 {
                cancelled += 1;
                test.engine.cancel(run.run_id, "enough".to_owned()).await.unwrap();
            }
        }
        cancelled
    };
    let (ends, cancelled) = tokio::join!(futures::future::join_all(starts), cancels);
    let count = |end: &str| ends.iter().filter(|found| *found == end).count();
    assert_eq!((count("CANCELLED"), count("completed")), (cancelled, 1_000 - cancelled));
    assert!(test.store.runs().iter().all(|(run, ..)| run.status.is_over() && run.delivered));
}
