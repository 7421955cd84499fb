//! Whole lives of a runtime, made up from a seed: runs of every class, crashes at any moment, cancels, stops,
//! people who answer. Whatever happens: nothing that was kept is lost, no dangerous call is made twice, every
//! run comes to rest, every journal replays.
//!
//! `REDFLOW_SEEDS=N` tries so many seeds, `REDFLOW_SEED=N` only that one.

use crate::kit::{Setup, World, agent, asks, calculator, debug, inject, model, node, says, with};
use crate::shelf::{Fault, Shelf};
use redflow_contract::fact::ToolResult;
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_engine::EngineLimits;
use redflow_react::replay;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use tokio::time::sleep;

/// A small generator: what a seed gives is the same for ever.
pub(crate) struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn luck(&mut self) -> f64 {
        self.below(1000) as f64 / 1000.0
    }
}

const CLASSES: [&str; 3] = ["read", "idempotent", "at_most_once"];

/// One agent of each class, which makes three calls and then answers; the first one's result goes to another
/// agent as well. Calls take their time, some are lost, some fail.
fn flow(dice: &mut Dice) -> Value {
    let mut nodes = vec![inject(&CLASSES), calculator(), debug("d", "agentResult.traceId")];
    for (place, class) in CLASSES.into_iter().enumerate() {
        let (m, t) = (format!("m{place}"), format!("t{place}"));
        let calls = (0..3).map(|call| asks(&t, json!({"call": call}))).chain([says("done")]);
        let results = if place == 0 { json!(["d", "next"]) } else { json!(["d"]) };
        let answers = if dice.below(2) == 0 { json!(["next4"]) } else { json!([]) };
        let wires = json!([[m], [t], [], results, answers]);
        nodes.push(with(agent(class, &m, &[]), json!({"wires": wires, "allowedTools": [t]})));
        let delays = json!({"delayMs": 1 + dice.below(400)});
        nodes.push(with(model(&m, calls.collect()), delays));
        nodes.push(with(
            node(&t, "tool.world", json!([])),
            json!({"inputSchema": {"type": "object"}, "effect": class, "timeout": 600,
                   "delay": 1 + dice.below(500), "losesEvery": 2 + dice.below(8),
                   "onUnknown": if dice.below(5) == 0 { "fail" } else { "wait" }}),
        ));
    }
    for next in ["next", "next4"] {
        nodes.push(agent(next, "mn", &["d"]));
    }
    nodes.push(with(model("mn", json!([says("heard")])), json!({"delayMs": 50})));
    Value::Array(nodes)
}

/// One process: it recovers, starts something, is asked things, and ends in one way or another.
async fn process(world: &World, dice: &mut Dice, last: bool) {
    let recover = async {
        let _ = world.engine.recover(&world.cancel).await;
    };
    let starts = async {
        if !last {
            let _ = world.engine_fire().await;
        }
    };
    let people = async {
        loop {
            sleep(Duration::from_millis(20 + dice.below(500))).await;
            let runs = world.shelf.summaries();
            if last && runs.iter().all(|run| run.status.is_over() && run.delivered) {
                return;
            }
            let open: Vec<&RunSummary> = runs.iter().filter(|run| !run.status.is_over()).collect();
            if open.is_empty() {
                continue;
            }
            let run = open[usize::try_from(dice.below(open.len() as u64)).unwrap()];
            match (&run.waiting, dice.below(20)) {
                (Some(call), 0..15) => {
                    let result = match dice.below(3) {
                        0 => ToolResult::failed("it did not happen"),
                        number => ToolResult::ok(json!(number)),
                    };
                    let _ = world.engine.resolve(run.run_id.clone(), call.call_id.clone(), result).await;
                }
                (_, 15) => {
                    let _ = world.engine.cancel(run.run_id.clone(), "not needed".to_owned()).await;
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

/// What must hold after any crash, and at the end of all days.
fn check(seed: u64, shelf: &Shelf, made: &HashMap<String, u32>, kept: &mut BTreeMap<String, String>) {
    for (key, count) in made {
        if key.starts_with("at_most_once") {
            assert_eq!(*count, 1, "seed {seed}: {key} was made {count} times");
        }
    }
    let now: BTreeMap<String, String> =
        shelf.all().into_iter().map(|(run, journal, _)| (run.run_id.to_string(), journal)).collect();
    for (run, journal) in kept.iter() {
        let later = now.get(run).unwrap_or_else(|| panic!("seed {seed}: {run} is lost"));
        assert!(later.starts_with(journal), "seed {seed}: {run} lost lines\n{journal}\n---\n{later}");
    }
    *kept = now;
}

async fn life(seed: u64) -> (usize, usize) {
    let mut dice = Dice(seed);
    let flow = flow(&mut dice);
    let shelf = Shelf::new(Fault::None);
    let limits =
        EngineLimits { max_active: 1 + usize::try_from(dice.below(8)).unwrap(), ..EngineLimits::default() };
    let setup = Setup { limits, watches_runs: dice.below(2) == 0, ..Setup::default() };
    let mut kept = BTreeMap::new();
    let made = crate::doubles::new_world();
    let crashes = 1 + dice.below(6);
    for _ in 0..crashes {
        let world = setup.world_over(&flow, &shelf);
        let moment = Duration::from_millis(dice.below(3000));
        let lived = tokio::time::timeout(moment, process(&world, &mut dice, false)).await;
        assert!(lived.is_err());
        if dice.below(4) == 0 {
            // A proper stop.
            world.engine.shutdown(Duration::from_millis(dice.below(300))).await;
        }
        world.gone().await;
        shelf.crash(|| dice.luck());
        check(seed, &shelf, &made.lock().unwrap(), &mut kept);
    }
    let world = setup.world_over(&flow, &shelf);
    let end = tokio::time::timeout(Duration::from_secs(86_400), process(&world, &mut dice, true)).await;
    assert!(
        end.is_ok(),
        "seed {seed} hangs: {:?}",
        shelf.all().iter().map(|run| (&run.0.run_id, &run.0.status, run.0.delivered)).collect::<Vec<_>>()
    );
    world.gone().await;
    check(seed, &shelf, &made.lock().unwrap(), &mut kept);
    let mut causes = std::collections::HashSet::new();
    for (run, journal, cause) in shelf.all() {
        let replayed = replay(journal.as_bytes());
        assert!(replayed.equal, "seed {seed}: {:?} of {run:?}", replayed.difference);
        assert!(run.delivered && run.status != RunStatus::Waiting, "seed {seed}: {run:?}");
        assert!(cause.is_none_or(|cause| causes.insert(cause)), "seed {seed}: {run:?} began twice");
    }
    (shelf.all().len(), made.lock().unwrap().values().map(|count| *count as usize).sum())
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_nothing_is_lost_and_nothing_dangerous_done_twice() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("REDFLOW_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("REDFLOW_SEEDS").unwrap_or(20),
    };
    let (mut runs, mut calls, count) = (0, 0, seeds.end - seeds.start);
    for seed in seeds {
        let (more_runs, more_calls) = life(seed).await;
        runs += more_runs;
        calls += more_calls;
    }
    // For `cargo xtask faults`, which prints it.
    println!("FAULTS simulated seeds={count} runs={runs} calls={calls} lost=0 repeated=0 hung=0");
}
