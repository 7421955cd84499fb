//! Replays of runs run on other threads, few at once, and a stop does not wait for them.

use crate::doubles::new_call_counts;
use crate::kit::{EngineTest, ends};
use crate::several_effects::{FanOutStrategy, flow, setup};
use crate::test_store::{Fault, TestStore};
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_contract::id::RunId;
use redflow_contract::plan::{AgentPlan, AgentSpec};
use redflow_engine::{Engine, EngineLimits, Ports};
use redflow_machine::{Agent, CompileError, Strategies, Strategy};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// A strategy that compiles nothing before the test lets it.
#[derive(Debug)]
struct GatedStrategy(Mutex<Receiver<()>>);

impl Strategy for GatedStrategy {
    fn name(&self) -> &'static str {
        FanOutStrategy.name()
    }

    fn versions(&self) -> std::ops::RangeInclusive<u32> {
        FanOutStrategy.versions()
    }

    fn compile(&self, spec: &Arc<AgentSpec>, version: u32) -> Result<Arc<dyn Agent>, CompileError> {
        let opened = self.0.lock().unwrap().recv_timeout(Duration::from_secs(20));
        if opened == Err(RecvTimeoutError::Timeout) {
            return Err(CompileError::UnknownStrategy("the replay holds the engine".to_owned()));
        }
        FanOutStrategy.compile(spec, version)
    }

    fn contradiction(&self, plan: &AgentPlan, spec: &AgentSpec) -> Option<&'static str> {
        FanOutStrategy.contradiction(plan, spec)
    }
}

/// Leaves this many runs in the middle of their work. Gives also an engine that replays none of them before
/// the gate opens.
async fn gated_engine(runs: usize) -> (EngineTest, Engine, Sender<()>) {
    new_call_counts();
    let store = TestStore::new(Fault::None);
    let test = setup(Fault::None).restart(&flow(1_000), &store);
    let stop = async {
        sleep(Duration::from_millis(5)).await;
        test.engine.shutdown(Duration::ZERO).await;
    };
    tokio::join!(futures::future::join_all((0..runs).map(|_| test.fire_unchecked())), stop);
    let (gate, opened) = channel();
    let strategies = Strategies::new([Arc::new(GatedStrategy(Mutex::new(opened))) as _]);
    let ports = Ports { strategies, ..test.ports() };
    (test, Engine::new(None, ports, EngineLimits::default()), gate)
}

async fn wait_for_replays(engine: &Engine, count: usize) {
    while engine.computations().len() < count {
        tokio::task::yield_now().await;
    }
}

fn run_ids(count: usize) -> Vec<RunId> {
    (1..=count).map(|number| format!("run-{number}").as_str().into()).collect()
}

// SECURITY: loop-free
#[tokio::test(start_paused = true)]
async fn a_long_replay_does_not_hold_the_engine() {
    let (test, engine, gate) = gated_engine(1).await;
    let meanwhile = async {
        wait_for_replays(&engine, 1).await;
        // The engine takes a command while it replays.
        engine.begin_schedules().await;
        assert_eq!(engine.computations().len(), 1);
        drop(gate);
    };
    let (reports, ()) = tokio::join!(engine.resume(run_ids(1), &test.cancel), meanwhile);
    assert_eq!(ends(&reports), ["run-1 a waiting run-1:4 t2 1, waiting run-1:5 t3 1"]);
    assert!(engine.computations().is_empty());
}

// SECURITY: hung-run
#[tokio::test]
async fn a_run_is_loaded_when_it_can_be_replayed() {
    let (test, engine, gate) = gated_engine(6).await;
    let meanwhile = async {
        wait_for_replays(&engine, 2).await;
        engine.begin_schedules().await;
        assert_eq!(test.store.loads(), 2, "the others wait, and their journals are not in memory");
        drop(gate);
    };
    let (reports, ()) = tokio::join!(engine.resume(run_ids(6), &test.cancel), meanwhile);
    assert_eq!((reports.len(), test.store.loads()), (6, 6));
}

// SECURITY: hung-run
#[tokio::test]
async fn a_stop_does_not_wait_for_replays() {
    let (test, engine, gate) = gated_engine(4).await;
    let before: Vec<String> = run_ids(4).iter().map(|run| test.store.journal(run)).collect();
    let stop = async {
        wait_for_replays(&engine, 2).await;
        engine.shutdown(Duration::ZERO).await;
    };
    let cancel = |run: &'static str| engine.cancel(run.into(), "enough".to_owned());
    let all = async {
        // The first two runs are replayed. One is cancelled meanwhile, and one has yet to be loaded.
        tokio::join!(engine.resume(run_ids(3), &test.cancel), cancel("run-1"), cancel("run-4"), stop)
    };
    let (reports, first, last, ()) = timeout(Duration::from_secs(10), all).await.unwrap();
    assert_eq!(ends(&reports), ["run-1 a suspended", "run-2 a suspended", "run-3 a suspended"]);
    for answer in [first, last] {
        assert_eq!(answer.unwrap_err().code, StoreCode::RunBlocked);
    }
    let after: Vec<String> = run_ids(4).iter().map(|run| test.store.journal(run)).collect();
    assert_eq!(after, before, "the runs stay as they were");
    drop(gate);
}
