//! Starts by the id of a node, acknowledged when their runs are kept; and keys that begin one run at most.

use crate::kit::{
    Setup, World, agent, agent_with_tool, asks, built, calculator, debug, ends, inject, model, model_double,
    node, order, says, tool_double, with,
};
use crate::shelf::{Fault, Shelf};
use pretty_assertions::assert_eq;
use redflow_contract::code::{RunErrorCode, StoreCode};
use redflow_contract::id::{NodeSummary, RunId};
use redflow_contract::run::RunStatus;
use redflow_engine::{Engine, EngineLimits, RunEnd, StartError, StartOutcome};
use redflow_store::{MemoryStore, Store};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The runs of a start, in a few words.
fn runs(started: &StartOutcome) -> Vec<String> {
    started
        .runs
        .iter()
        .map(|(run, NodeSummary { id, type_name, .. })| format!("{run} {id} {type_name}"))
        .collect()
}

fn refused(started: &StartOutcome) -> Vec<String> {
    ends(&started.refused)
}

/// `a`, which takes a minute, feeds `b`.
fn slow_chain() -> Value {
    json!([
        inject(&["a"]),
        agent("a", "m", &["b", "d"]),
        agent("b", "m", &["d"]),
        with(model("m", json!([says("hi")])), json!({"delayMs": 60_000})),
        calculator(),
        debug("d", "payload"),
    ])
}

#[tokio::test(start_paused = true)]
async fn a_start_is_told_when_its_run_is_kept_and_not_later() {
    let world = World::new(&slow_chain());
    let began = tokio::time::Instant::now();
    let started = world.order(order(Some("a"), Some(json!("go")), None)).await.unwrap();
    assert_eq!((runs(&started), refused(&started)), (vec!["run-1 a agent-core".to_owned()], vec![]));
    assert_eq!(began.elapsed(), Duration::ZERO, "nobody waits for the model");
    // It is there, also if the process dies now and is unlucky.
    assert_eq!(world.shelf.all()[0].0.run_id, RunId::from("run-1"));
    let reports = started.rest.await.unwrap();
    assert_eq!(ends(&reports), ["run-1 a completed", "run-2 b completed"]);
    assert_eq!(world.watch.shown(), ["d: \"hi\"", "d: \"hi\""]);
}

#[tokio::test(start_paused = true)]
async fn what_was_told_outlives_the_process() {
    let world = World::new(&slow_chain());
    let started = world.order(order(None, None, None)).await.unwrap();
    let shelf = Arc::clone(&world.shelf);
    world.gone().await;
    shelf.crash(|| 0.0);
    let world = World::over(&slow_chain(), &shelf);
    assert_eq!(ends(&world.recover().await), ["run-1 a completed", "run-2 b completed"]);
    drop(started);
}

#[tokio::test(start_paused = true)]
async fn it_takes_as_long_as_the_disk() {
    let world = Setup { fault: Fault::Slow, ..Setup::default() }.world(&slow_chain());
    let start = world.order(order(Some("a"), Some(json!(1)), None));
    tokio::pin!(start);
    assert!(timeout(Duration::from_millis(4_900), &mut start).await.is_err(), "it is not on the disk yet");
    assert_eq!(runs(&start.await.unwrap()), ["run-1 a agent-core"]);
}

#[tokio::test(start_paused = true)]
async fn a_start_is_told_of_every_run_in_order() {
    let flow = json!([
        inject(&["j", "refused", "b", "d"]),
        node("j", "junction", json!([["a"]])),
        agent("a", "m", &["b"]),
        agent("b", "m", &[]),
        with(agent("refused", "m", &["c"]), json!({"strategy": "cot"})),
        agent("c", "m", &[]),
        with(model("m", json!([says("hi")])), json!({"delayMs": 1_000})),
        calculator(),
        debug("d", "payload"),
    ]);
    let world = World::new(&flow);
    let started = world.order(order(Some("i"), None, None)).await.unwrap();
    // What the refused one says reaches `c` at once; what `a` says in a second is another matter.
    let direct = ["run-2 b agent-core", "run-3 a agent-core", "run-4 c agent-core"];
    assert_eq!(runs(&started), direct);
    assert_eq!(refused(&started), ["run-1 refused refused CONFIG_INVALID"]);
    let all = [
        "run-1 refused refused CONFIG_INVALID",
        "run-2 b completed",
        "run-3 a completed",
        "run-4 c completed",
        "run-5 b completed",
    ];
    assert_eq!(ends(&started.rest.await.unwrap()), all);
}

#[tokio::test(start_paused = true)]
async fn an_inject_that_reaches_no_agent_begins_none() {
    let flow = json!([
        inject(&["d"]),
        debug("d", "payload"),
        agent("a", "m", &[]),
        model("m", json!([says("hi")])),
        calculator(),
    ]);
    let world = World::new(&flow);
    let started = world.order(order(Some("i"), Some(json!({"n": 1})), None)).await.unwrap();
    assert_eq!((runs(&started), refused(&started)), (vec![], vec![]));
    assert_eq!(world.watch.shown(), ["d: {\"n\":1}"], "and its message is through");
    assert_eq!(ends(&started.rest.await.unwrap()), [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_kept_is_refused() {
    let world = Setup { fault: Fault::Batch(1), ..Setup::default() }.world(&slow_chain());
    for key in [None, Some("k")] {
        let started = world.order(order(Some("a"), Some(json!(1)), key)).await.unwrap();
        let [report] = started.refused.as_slice() else { panic!("{started:?}") };
        assert!(started.runs.is_empty());
        let RunEnd::Refused { error, .. } = &report.end else { panic!("{report:?}") };
        assert_eq!(error.code, RunErrorCode::JournalFailed);
        // What it says goes on to `b`, which cannot be kept either.
        assert_eq!(started.rest.await.unwrap().len(), 2);
    }
    let limits = EngineLimits { max_active: 0, max_queued: 0, ..EngineLimits::default() };
    let world = Setup { limits, ..Setup::default() }.world(&slow_chain());
    let started = world.order(order(Some("a"), Some(json!(1)), Some("k"))).await.unwrap();
    assert_eq!(refused(&started), ["run-1 a refused QUEUE_FULL", "run-2 b refused QUEUE_FULL"]);
}

/// Two agents with an inject each, one with two, one with none, and a chain.
fn crossroads() -> Value {
    let inject = |id: &str, to: &str| with(inject(&[to]), json!({"id": id}));
    json!([
        inject("i1", "a"),
        inject("i2", "b"),
        inject("i3", "b"),
        agent("a", "m", &[]),
        agent("b", "m", &[]),
        with(agent("c", "m", &["d"]), json!({"name": "C\u{1b}[1m"})),
        model("m", json!([says("hi")])),
        calculator(),
        debug("d", "payload"),
    ])
}

#[tokio::test(start_paused = true)]
async fn which_node_is_meant() {
    let world = World::new(&crossroads());
    let go = || Some(json!("go"));
    for (node, payload, expected) in [
        (Some("a"), None, "run-1 a agent-core"),
        (Some("a"), go(), "run-2 a agent-core"),
        (Some("i2"), None, "run-3 b agent-core"),
        (Some("i3"), go(), "run-4 b agent-core"),
        (Some("c"), Some(Value::Null), "run-5 c agent-core"),
    ] {
        assert_eq!(runs(&world.order(order(node, payload, None)).await.unwrap()), [expected]);
    }
    let list = "\nthe agents of the flow, by id:\n  a  agent-core a\n  b  agent-core b\n  c  agent-core C\u{fffd}[1m";
    let injects = "\nthe inject nodes, by id:\n  i2  inject i\n  i3  inject i";
    let not = |text: String| StartError::NotStartable(text);
    let rows = [
        (
            Some("x\u{7}"),
            None,
            StartError::NodeUnknown(format!("there is no node `x\u{fffd}` in the flow{list}")),
        ),
        (
            Some("d"),
            None,
            not(format!("`d` is a debug node: only an agent or an inject node can be started{list}")),
        ),
        (
            Some("m"),
            go(),
            not(format!(
                "`m` is a scripted-model node: only an agent or an inject node can be started{list}"
            )),
        ),
        (Some("c"), None, not("no inject node is wired to the agent: give it a payload".to_owned())),
        (
            Some("b"),
            None,
            not(format!(
                "several inject nodes are wired to the agent: start one of them, or give the agent a payload{injects}"
            )),
        ),
        (None, go(), not(format!("the flow has several agents: name one of them{list}"))),
    ];
    for (node, payload, expected) in rows {
        assert_eq!(world.order(order(node, payload, None)).await.unwrap_err(), expected);
    }
    // Without a name: the only agent, or the only one that is fired.
    for (flow, expected) in [
        (json!([agent("a", "m", &[]), model("m", json!([says("hi")])), calculator()]), "run-1 a agent-core"),
        (slow_chain(), "run-1 a agent-core"),
    ] {
        let world = World::new(&flow);
        assert_eq!(runs(&world.order(order(None, go(), None)).await.unwrap()), [expected]);
    }
    let none = World::new(&json!([inject(&[])])).order(order(None, go(), None)).await.unwrap_err();
    assert_eq!(none, not("there is no agent in the flow".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_flow_may_come_later_and_go_on_changing() {
    let world = World::new(&slow_chain());
    let engine = Engine::new(None, world.ports(), EngineLimits::default());
    let go = |node: &str| engine.start(order(Some(node), Some(json!(1)), None), &world.cancel);
    assert_eq!(go("a").await.unwrap_err(), StartError::NoFlow);
    engine.deploy(built(&slow_chain())).await;
    let first = go("a").await.unwrap();
    engine.deploy(built(&crossroads())).await;
    // The node is looked for in the flow of the moment.
    assert_eq!(runs(&go("c").await.unwrap()), ["run-2 c agent-core"]);
    engine.deploy(built(&slow_chain())).await;
    assert!(matches!(go("c").await.unwrap_err(), StartError::NodeUnknown(_)));
    assert_eq!(ends(&first.rest.await.unwrap())[0], "run-1 a completed");
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_stops_starts_nothing() {
    let world = World::new(&slow_chain());
    let stop = world.engine.shutdown(Duration::from_secs(1));
    let start = async {
        sleep(Duration::from_millis(1)).await;
        world.order(order(Some("a"), Some(json!(1)), None)).await.unwrap_err()
    };
    assert_eq!(tokio::join!(stop, start).1, StartError::Stopping);
    assert_eq!(world.shelf.all().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_recovery_is_no_hindrance() {
    let shelf = World::new(&slow_chain()).killed_after(1, true).await;
    let world = World::over(&slow_chain(), &shelf);
    let (back, started) = tokio::join!(world.recover(), world.order(order(Some("a"), Some(json!(1)), None)));
    assert_eq!(ends(&back)[0], "run-1 a completed");
    assert_eq!(ends(&started.unwrap().rest.await.unwrap())[0], "run-2 a completed");
}

#[tokio::test(start_paused = true)]
async fn a_key_begins_one_run() {
    let world = World::new(&slow_chain());
    let keyed =
        |node: &'static str, key: &'static str| world.order(order(Some(node), Some(json!(1)), Some(key)));
    assert_eq!(runs(&keyed("a", "k:1").await.unwrap()), ["run-1 a agent-core"]);
    // Again, while it is at work; also for another agent: the key is what counts.
    let again = keyed("b", "k:1").await.unwrap();
    assert_eq!((runs(&again), refused(&again)), (vec!["run-1 a agent-core".to_owned()], vec![]));
    assert_eq!(again.rest.await.unwrap().len(), 0);
    assert_eq!(runs(&keyed("a", "k:2").await.unwrap()), ["run-2 a agent-core"]);
    assert_eq!(world.shelf.all()[0].2.as_deref(), Some("api:k:1"));
    // Also after it is over, after a crash, and when there is no room for another.
    sleep(Duration::from_secs(3_600)).await;
    let shelf = Arc::clone(&world.shelf);
    world.gone().await;
    shelf.crash(|| 0.0);
    let limits = EngineLimits { max_active: 0, max_queued: 0, ..EngineLimits::default() };
    let world = Setup { limits, ..Setup::default() }.world_over(&slow_chain(), &shelf);
    let again = world.order(order(Some("a"), Some(json!(1)), Some("k:1"))).await.unwrap();
    assert_eq!(runs(&again), ["run-1 a agent-core"]);
    assert_eq!(shelf.all()[0].0.status, RunStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn two_starts_with_one_key_at_once_begin_one_run() {
    for fault in [Fault::None, Fault::Slow] {
        let world = Setup { fault, ..Setup::default() }.world(&slow_chain());
        let keyed = || world.order(order(Some("a"), Some(json!(1)), Some("k")));
        let (first, second, third) = tokio::join!(keyed(), keyed(), keyed());
        let told: Vec<String> =
            [first, second, third].iter().flat_map(|one| runs(one.as_ref().unwrap())).collect();
        assert_eq!(told, ["run-1 a agent-core"; 3]);
        assert_eq!(world.shelf.all().len(), 1);
        assert_eq!(world.watch.shown(), [] as [&str; 0], "nothing is refused");
    }
}

#[tokio::test(start_paused = true)]
async fn the_key_is_of_the_first_agent_alone() {
    // Refused, because there is no room, it says so to `b`; the run of `b` is not what was asked for.
    let limits = EngineLimits { max_active_per_agent: 1, max_queued_per_agent: 0, ..EngineLimits::default() };
    let world = Setup { limits, ..Setup::default() }.world(&slow_chain());
    world.order(order(Some("a"), Some(json!(1)), None)).await.unwrap();
    let started = world.order(order(Some("a"), Some(json!(1)), Some("k"))).await.unwrap();
    assert_eq!((refused(&started).len(), runs(&started)), (1, vec!["run-3 b agent-core".to_owned()]));
    assert!(world.shelf.all().iter().all(|(.., cause)| cause.is_none()), "{:?}", world.shelf.all());
}

#[tokio::test(start_paused = true)]
async fn a_key_is_only_for_an_agent_with_a_payload() {
    let world = World::new(&slow_chain());
    for (node, payload) in [(Some("i"), None), (Some("i"), Some(json!(1))), (Some("a"), None), (None, None)] {
        let refused = world.order(order(node, payload, Some("k"))).await.unwrap_err();
        assert!(matches!(&refused, StartError::NotStartable(text) if text.contains("key")), "{refused}");
    }
    assert_eq!(world.shelf.all().len(), 0);
    let world = Setup { fault: Fault::Causes, ..Setup::default() }.world(&slow_chain());
    let unknown = world.order(order(Some("a"), Some(json!(1)), Some("k"))).await.unwrap_err();
    assert!(matches!(unknown, StartError::Store(error) if error.code == StoreCode::DataUnusable));
}

/// An engine over a real store.
fn over(store: Arc<dyn redflow_ports::RunStore>) -> (World, Engine) {
    let flow = json!([
        agent_with_tool("a", "m", &[]),
        model_double("m", json!([asks("t", json!({})), says("done")]), json!({})),
        tool_double(json!({"ownEffect": "at_most_once", "unknown": "lost"})),
    ]);
    let world = World::over(&flow, &Shelf::new(Fault::None));
    let ports =
        redflow_engine::Ports { store, clock: Arc::new(redflow_engine::SystemClock), ..world.ports() };
    let engine = Engine::new(Some(built(&flow)), ports, EngineLimits::default());
    (world, engine)
}

async fn one_of_many(engine: &Engine, world: &World) -> RunId {
    let keyed = || engine.start(order(Some("a"), Some(json!(1)), Some("k")), &world.cancel);
    let started = futures::future::join_all((0..20).map(|_| keyed())).await;
    let mut told: Vec<RunId> =
        started.into_iter().flat_map(|one| one.unwrap().runs).map(|(run, _)| run).collect();
    assert_eq!(told.len(), 20);
    told.dedup();
    assert_eq!(told.len(), 1, "{told:?}");
    told.remove(0)
}

#[tokio::test]
async fn the_real_stores_keep_one_run_of_a_key() {
    let (world, engine) = over(Arc::new(MemoryStore::keeping(10)));
    let first = one_of_many(&engine, &world).await;
    assert_eq!(one_of_many(&engine, &world).await, first);
    let folder = tempfile::tempdir().unwrap();
    let mut found = Vec::new();
    for _ in 0..2 {
        let store = Arc::new(Store::open(folder.path()).unwrap());
        let (world, engine) = over(Arc::clone(&store) as _);
        found.push(one_of_many(&engine, &world).await);
        drop(engine);
        while Arc::strong_count(&store) > 1 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(found[0], found[1]);
}
