//! Simulated histories of a runtime, made from a seed: calls of every class, crashes at any moment, cancels,
//! shutdowns, answers of people. Always: no stored step is lost, no at-most-once call is made twice, every
//! run ends, every journal replays.
//!
//! `REDFLOW_SEEDS=N` tries that many seeds, `REDFLOW_SEED=N` only that one.

use crate::kit::{
    EngineTest, Setup, agent, calculator, debug, final_answer, inject, model, node, tool_call, with,
};
use crate::test_store::{Fault, TestStore};
use redflow_contract::fact::ToolResult;
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_engine::EngineLimits;
use redflow_strategies::replay;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use tokio::time::sleep;

/// A small random number generator that never changes what a seed gives.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn luck(&mut self) -> f64 {
        self.below(1000) as f64 / 1000.0
    }
}

const CLASSES: [&str; 3] = ["read", "idempotent", "at_most_once"];

/// One agent for each class. It makes three calls and then answers. The result of the first one goes to
/// another agent too. Calls take time, and some never return.
fn flow(rng: &mut Rng) -> Value {
    let mut nodes = vec![inject(&CLASSES), calculator(), debug("d", "agentResult.traceId")];
    for (place, class) in CLASSES.into_iter().enumerate() {
        let (m, t) = (format!("m{place}"), format!("t{place}"));
        let calls = (0..3).map(|call| tool_call(&t, json!({"call": call}))).chain([final_answer("done")]);
        let results = if place == 0 { json!(["d", "next"]) } else { json!(["d"]) };
        let answers = if rng.below(2) == 0 { json!(["next4"]) } else { json!([]) };
        let wires = json!([[m], [t], [], results, answers]);
        nodes.push(with(agent(class, &m, &[]), json!({"wires": wires, "allowedTools": [t]})));
        let delays = json!({"delayMs": 1 + rng.below(400)});
        nodes.push(with(model(&m, calls.collect()), delays));
        nodes.push(with(
            node(&t, "tool.counting", json!([])),
            json!({"inputSchema": {"type": "object"}, "effect": class, "timeout": 600,
                   "delay": 1 + rng.below(500), "losesEvery": 2 + rng.below(8),
                   "onUnknown": if rng.below(5) == 0 { "fail" } else { "wait" }}),
        ));
    }
    for next in ["next", "next4"] {
        nodes.push(agent(next, "mn", &["d"]));
    }
    nodes.push(with(model("mn", json!([final_answer("heard")])), json!({"delayMs": 50})));
    Value::Array(nodes)
}

/// How a process of the simulation ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProcessEnd {
    Crash,
    AllRunsOver,
}

/// One process: it recovers, starts runs, and takes requests until it ends.
async fn process(test: &EngineTest, rng: &mut Rng, end: ProcessEnd) {
    let recover = async {
        let _ = test.engine.recover(&test.cancel).await;
    };
    let starts = async {
        if end == ProcessEnd::Crash {
            let _ = test.fire_unchecked().await;
        }
    };
    let people = async {
        loop {
            sleep(Duration::from_millis(20 + rng.below(500))).await;
            let runs = test.store.summaries();
            if end == ProcessEnd::AllRunsOver && runs.iter().all(|run| run.status.is_over() && run.delivered)
            {
                return;
            }
            let open: Vec<&RunSummary> = runs.iter().filter(|run| !run.status.is_over()).collect();
            if open.is_empty() {
                continue;
            }
            let run = open[usize::try_from(rng.below(open.len() as u64)).unwrap()];
            match (&run.waiting, rng.below(20)) {
                (Some(call), 0..15) => {
                    let result = match rng.below(3) {
                        0 => ToolResult::failed("it did not happen"),
                        number => ToolResult::ok(json!(number)),
                    };
                    let _ = test.engine.resolve(run.run_id.clone(), call.call_id.clone(), result).await;
                }
                (_, 15) => {
                    let _ = test.engine.cancel(run.run_id.clone(), "not needed".to_owned()).await;
                }
                _ => {}
            }
        }
    };
    tokio::select! {
        () = people => {}
        _ = async { tokio::join!(recover, starts, std::future::pending::<()>()) } => {}
    }
}

/// Checks what must hold after each crash and at the end.
fn check(
    seed: u64,
    store: &TestStore,
    counts: &HashMap<String, u32>,
    earlier: &mut BTreeMap<String, String>,
) {
    for (key, count) in counts {
        if key.starts_with("at_most_once") {
            assert_eq!(*count, 1, "seed {seed}: {key} was made {count} times");
        }
    }
    let now: BTreeMap<String, String> =
        store.runs().into_iter().map(|(run, journal, _)| (run.run_id.to_string(), journal)).collect();
    for (run, journal) in earlier.iter() {
        let later = now.get(run).unwrap_or_else(|| panic!("seed {seed}: {run} is lost"));
        assert!(later.starts_with(journal), "seed {seed}: {run} lost lines\n{journal}\n---\n{later}");
    }
    *earlier = now;
}

async fn simulate(seed: u64) -> (usize, usize) {
    let mut rng = Rng(seed);
    let flow = flow(&mut rng);
    let store = TestStore::new(Fault::None);
    let limits =
        EngineLimits { max_active: 1 + usize::try_from(rng.below(8)).unwrap(), ..EngineLimits::default() };
    let setup = Setup { limits, watches_runs: rng.below(2) == 0, ..Setup::default() };
    let mut earlier = BTreeMap::new();
    let counts = crate::doubles::new_call_counts();
    let crashes = 1 + rng.below(6);
    for _ in 0..crashes {
        let test = setup.restart(&flow, &store);
        let moment = Duration::from_millis(rng.below(3000));
        let outcome = tokio::time::timeout(moment, process(&test, &mut rng, ProcessEnd::Crash)).await;
        assert!(outcome.is_err());
        if rng.below(4) == 0 {
            // An orderly shutdown before the crash.
            test.engine.shutdown(Duration::from_millis(rng.below(300))).await;
        }
        test.kill().await;
        store.crash(|| rng.luck());
        check(seed, &store, &counts.lock().unwrap(), &mut earlier);
    }
    let test = setup.restart(&flow, &store);
    let end =
        tokio::time::timeout(Duration::from_secs(86_400), process(&test, &mut rng, ProcessEnd::AllRunsOver))
            .await;
    assert!(
        end.is_ok(),
        "seed {seed} hangs: {:?}",
        store.runs().iter().map(|run| (&run.0.run_id, &run.0.status, run.0.delivered)).collect::<Vec<_>>()
    );
    test.kill().await;
    check(seed, &store, &counts.lock().unwrap(), &mut earlier);
    let mut causes = std::collections::HashSet::new();
    for (run, journal, cause) in store.runs() {
        let replayed = replay(journal.as_bytes());
        assert!(replayed.equal, "seed {seed}: {:?} of {run:?}", replayed.difference);
        assert!(run.delivered && run.status != RunStatus::Waiting, "seed {seed}: {run:?}");
        assert!(cause.is_none_or(|cause| causes.insert(cause)), "seed {seed}: {run:?} began twice");
    }
    (store.runs().len(), counts.lock().unwrap().values().map(|count| *count as usize).sum())
}

// SECURITY: at-most-once
#[tokio::test(start_paused = true)]
async fn whatever_happens_nothing_is_lost_and_nothing_dangerous_done_twice() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("REDFLOW_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("REDFLOW_SEEDS").unwrap_or(20),
    };
    let (mut runs, mut calls, count) = (0, 0, seeds.end - seeds.start);
    for seed in seeds {
        let (more_runs, more_calls) = simulate(seed).await;
        runs += more_runs;
        calls += more_calls;
    }
    // For `cargo xtask faults`, which prints it.
    println!("FAULTS simulated seeds={count} runs={runs} calls={calls} lost=0 repeated=0 hung=0");
}
