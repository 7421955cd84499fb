//! So many runs at once and no more; a fair turn for each agent; and a stop that loses nothing.

use crate::kit::{
    Setup, World, agent, asks, calculator, debug, ends, inject, model, model_double, node, says, with,
};
use pretty_assertions::assert_eq;
use redflow_engine::EngineLimits;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

fn slow(delay_ms: u64) -> Value {
    with(model("m", json!([says("hi")])), json!({"delayMs": delay_ms}))
}

/// An inject node that reaches `a` so often and `b` once, each run a second long.
fn flow(often: usize) -> Value {
    let names: Vec<String> = (0..=often).map(|number| format!("j{number}")).collect();
    let agent_of = |number: usize| if number < often { "a" } else { "b" };
    let junction = |(number, name): (usize, &String)| node(name, "junction", json!([[agent_of(number)]]));
    let mut nodes: Vec<Value> = names.iter().enumerate().map(junction).collect();
    let targets: Vec<&str> = names.iter().map(String::as_str).collect();
    nodes.extend([
        inject(&targets),
        agent("a", "m", &["d"]),
        agent("b", "m", &["d"]),
        slow(1000),
        calculator(),
        debug("d", "agentResult.traceId"),
    ]);
    Value::Array(nodes)
}

fn limited(limits: EngineLimits, flow: &Value) -> World {
    Setup { limits, ..Setup::default() }.world(flow)
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time_and_each_agent_in_turn() {
    let world = limited(EngineLimits { max_active: 1, ..EngineLimits::default() }, &flow(4));
    let before = Instant::now();
    let reports = world.fire().await;
    assert_eq!(before.elapsed(), Duration::from_secs(5));
    assert_eq!(reports.len(), 5);
    // The fifth message came last, but its agent waits for its first turn.
    let order = ["d: \"run-1\"", "d: \"run-2\"", "d: \"run-5\"", "d: \"run-3\"", "d: \"run-4\""];
    assert_eq!(world.watch.shown(), order);
}

#[tokio::test(start_paused = true)]
async fn an_agent_has_no_more_than_its_share() {
    let limits = EngineLimits { max_active_per_agent: 2, ..EngineLimits::default() };
    let world = limited(limits, &flow(4));
    let before = Instant::now();
    assert_eq!(world.fire().await.len(), 5);
    assert_eq!(before.elapsed(), Duration::from_secs(2), "two and two of `a`, beside them `b`");
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_says_so() {
    let own = EngineLimits { max_active: 1, max_queued_per_agent: 2, ..EngineLimits::default() };
    let all = EngineLimits { max_active: 1, max_queued: 2, ..EngineLimits::default() };
    for (limits, refused) in [(own, 2), (all, 3)] {
        let world = limited(limits, &flow(5));
        let reports = world.fire().await;
        let full = ends(&reports).into_iter().filter(|end| end.ends_with("refused QUEUE_FULL")).count();
        assert_eq!((reports.len(), full), (6, refused));
        let shown = world.watch.shown();
        assert_eq!(shown.iter().filter(|line| *line == "a uncaught QUEUE_FULL #1").count(), 2);
        // Nothing of a refused message is kept.
        assert_eq!(world.shelf.all().len(), 6 - refused);
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_does_not_count_the_wait_for_a_place() {
    let mut slow = flow(2);
    for node in slow.as_array_mut().unwrap() {
        if node["type"] == "agent-core" {
            node["timeout"] = json!(1500);
        }
    }
    let world = limited(EngineLimits { max_active: 1, ..EngineLimits::default() }, &slow);
    let ends = ends(&world.fire().await);
    assert!(ends.len() == 3 && ends.iter().all(|end| end.ends_with("completed")), "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_its_place_can_be_cancelled() {
    let world = limited(EngineLimits { max_active: 1, ..EngineLimits::default() }, &flow(1));
    let cancel = async {
        sleep(Duration::from_millis(500)).await;
        world.engine.cancel("run-2".into(), "not needed".to_owned()).await.unwrap();
    };
    let (reports, ()) = tokio::join!(world.fire(), cancel);
    assert_eq!(ends(&reports), ["run-1 a completed", "run-2 b failed CANCELLED"]);
    assert_eq!(world.watch.shown()[0], "b uncaught CANCELLED #1", "at once, not when its turn comes");
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_runs_finish_what_they_are_at() {
    let flow = |delay: u64| {
        let asks = asks("calculator", json!({"expression": "1+1"}));
        let slow = with(model("m", json!([asks, says("done")])), json!({"delayMs": delay}));
        json!([inject(&["a"]), agent("a", "m", &["d"]), slow, calculator(), debug("d", "payload")])
    };
    for (delay, waited, facts) in [(3000, 2, 2), (60_000, 10, 1)] {
        let world = World::new(&flow(delay));
        let stop = async {
            sleep(Duration::from_secs(1)).await;
            let before = Instant::now();
            world.engine.shutdown(Duration::from_secs(10)).await;
            assert_eq!(before.elapsed(), Duration::from_secs(waited));
        };
        let (reports, ()) = tokio::join!(world.fire(), stop);
        assert_eq!(ends(&reports), ["run-1 a suspended"]);
        let journal = world.shelf.journal(&"run-1".into());
        assert_eq!(journal.matches("\"kind\":\"fact\"").count(), facts, "{journal}");
        // Nothing can be asked of it any more.
        assert_eq!(ends(&world.fire().await), [] as [&str; 0]);
        assert!(world.engine.cancel("run-1".into(), String::new()).await.is_err());
        let shelf = Arc::clone(&world.shelf);
        world.gone().await;
        let world = World::over(&flow(delay), &shelf);
        assert_eq!(ends(&world.recover().await), ["run-1 a completed"]);
        assert_eq!(world.watch.shown(), ["d: \"done\""]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_runs_with_cancels_all_end() {
    let flow = json!([
        inject(&["a"]),
        with(agent("a", "m", &[]), json!({"timeout": 50_000})),
        with(model("m", json!([says("hi")])), json!({"delayMs": 1000})),
        model_double("stuck", json!([says("never")]), json!({"hangs": "model"})),
        agent("b", "stuck", &[]),
        calculator(),
    ]);
    let limits = EngineLimits { max_active: 20_000, max_active_per_agent: 20_000, ..EngineLimits::default() };
    let world = Setup { limits, watches_runs: false, ..Setup::default() }.world(&flow);
    let starts = (0..1_000).map(|number| {
        let world = &world;
        async move {
            let agent = if number % 10 == 0 { "b" } else { "a" };
            let reports = world.ask_of(agent, json!(number)).await;
            ends(&reports)[0].rsplit_once(' ').unwrap().1.to_owned()
        }
    });
    let cancels = async {
        sleep(Duration::from_millis(500)).await;
        let mut cancelled = 0;
        for (place, (run, ..)) in world.shelf.all().into_iter().enumerate() {
            // Every dead one, and every seventh of all.
            if run.name == "b" || place % 7 == 0 {
                cancelled += 1;
                world.engine.cancel(run.run_id, "enough".to_owned()).await.unwrap();
            }
        }
        cancelled
    };
    let (ends, cancelled) = tokio::join!(futures::future::join_all(starts), cancels);
    let count = |end: &str| ends.iter().filter(|found| *found == end).count();
    assert_eq!((count("CANCELLED"), count("completed")), (cancelled, 1_000 - cancelled));
    assert!(world.shelf.all().iter().all(|(run, ..)| run.status.is_over() && run.delivered));
}
