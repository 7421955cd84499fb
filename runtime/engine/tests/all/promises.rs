//! What was promised to somebody holds: a cancel that was heard, a result that has not arrived everywhere, a
//! question that need not be asked.

use crate::kit::{
    Setup, World, agent, agent_with_tool, asks, calculator, debug, ends, inject, model, says, tool_double,
    with,
};
use crate::shelf::{Fault, Shelf};
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_contract::run::RunStatus;
use redflow_engine::{Engine, EngineLimits};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What is kept now takes five seconds.
fn slow() -> Setup {
    Setup { fault: Fault::Slow, ..Setup::default() }
}

/// One call of the tool `t`, then an answer.
fn one_call(tool: Value) -> Value {
    json!([
        inject(&["a"]),
        agent_with_tool("a", "m", &["d"]),
        model("m", json!([asks("t", json!({})), says("done")])),
        tool_double(tool),
        debug("d", "payload"),
    ])
}

/// Cancels the first run after so many seconds, and waits for the answer.
async fn cancel_after(world: &World, seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
    world.engine.cancel("run-1".into(), "enough".to_owned()).await.unwrap();
    assert_eq!(world.shelf.all()[0].0.status, RunStatus::Failed, "it is over when the answer comes");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_counts_while_the_run_comes_to_wait() {
    // The start is kept at 5 s, the intent at 10 s, that the outcome is unknown at 15 s.
    let flow = one_call(json!({"ownEffect": "at_most_once", "unknown": "the line went dead"}));
    let world = slow().world(&flow);
    let (reports, ()) = tokio::join!(world.fire(), cancel_after(&world, 12));
    assert_eq!(ends(&reports), ["run-1 a failed CANCELLED"]);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_counts_while_the_run_is_brought_back() {
    let tool = json!({"effect": "at_most_once", "hangs": "tool", "timeout": 90_000_000});
    let flow = one_call(tool);
    let shelf = slow().world(&flow).killed_after(12, true).await;
    let world = slow().world_over(&flow, &shelf);
    let (reports, ()) = tokio::join!(world.recover(), cancel_after(&world, 2));
    assert_eq!(ends(&reports), ["run-1 a failed CANCELLED"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_take_back_a_cancel() {
    let world = slow().world(&one_call(json!({"ownEffect": "idempotent"})));
    let stop = async {
        sleep(Duration::from_secs(8)).await;
        world.engine.shutdown(Duration::from_secs(60)).await;
    };
    let (reports, (), ()) = tokio::join!(world.fire(), cancel_after(&world, 7), stop);
    assert_eq!(ends(&reports), ["run-1 a failed CANCELLED"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_asks_nobody_about_a_call_it_can_still_make() {
    // The model answers after two seconds, the stop comes after one: the call is made all the same.
    let quick = one_call_after(2000, json!({"effect": "at_most_once"}));
    let hangs =
        one_call_after(2000, json!({"effect": "at_most_once", "hangs": "tool", "timeout": 90_000_000}));
    let world = World::new(&quick);
    let stop = async {
        sleep(Duration::from_secs(1)).await;
        world.engine.shutdown(Duration::from_secs(10)).await;
    };
    let (reports, ()) = tokio::join!(world.fire(), stop);
    assert_eq!(ends(&reports), ["run-1 a suspended"]);
    assert_eq!(world.watch.done(), ["built t", "tool t {}"]);
    let shelf = Arc::clone(&world.shelf);
    world.gone().await;
    let world = World::over(&quick, &shelf);
    assert_eq!(ends(&world.recover().await), ["run-1 a completed"]);
    assert_eq!(world.watch.done(), ["built t"], "it was made before");
    // A call that is under way when the time is over is a question after all.
    let world = World::new(&hangs);
    let stop = async {
        sleep(Duration::from_secs(1)).await;
        world.engine.shutdown(Duration::from_secs(10)).await;
    };
    let (reports, ()) = tokio::join!(world.fire(), stop);
    assert_eq!(ends(&reports), ["run-1 a suspended"]);
    let shelf = Arc::clone(&world.shelf);
    world.gone().await;
    assert_eq!(ends(&World::over(&hangs, &shelf).recover().await), ["run-1 a waiting run-1:1 t 1"]);
}

fn one_call_after(delay_ms: u64, tool: Value) -> Value {
    let mut flow = one_call(tool);
    flow[2]["delayMs"] = json!(delay_ms);
    flow
}

#[tokio::test(start_paused = true)]
async fn a_call_there_is_no_time_for_is_known_not_to_be_made() {
    // The intent is kept at 10 s, the stop comes at 7 s and lets nothing finish.
    let flow = one_call(json!({"effect": "at_most_once"}));
    let world = slow().world(&flow);
    let stop = async {
        sleep(Duration::from_secs(7)).await;
        world.engine.shutdown(Duration::ZERO).await;
    };
    let (reports, ()) = tokio::join!(world.fire(), stop);
    assert_eq!(ends(&reports), ["run-1 a suspended"]);
    assert_eq!(world.watch.done(), ["built t"]);
    let shelf = Arc::clone(&world.shelf);
    world.gone().await;
    let world = World::over(&flow, &shelf);
    assert_eq!(ends(&world.recover().await), ["run-1 a completed"], "nobody is asked");
    assert!(shelf.all()[0].1.contains("the runtime was stopped before the call was made"));
}

#[tokio::test(start_paused = true)]
async fn time_at_work_before_a_stop_counts() {
    let flow = json!([
        inject(&["a"]),
        with(agent("a", "m", &["d"]), json!({"timeout": 5000})),
        with(model("m", json!([says("done")])), json!({"delayMs": 60_000})),
        calculator(),
        debug("d", "payload.code"),
    ]);
    let shelf = Shelf::new(Fault::None);
    for life in 0..2 {
        let world = World::over(&flow, &shelf);
        let stop = async {
            sleep(Duration::from_secs(4)).await;
            world.engine.shutdown(Duration::ZERO).await;
        };
        if life == 0 {
            tokio::join!(world.fire(), stop);
        } else {
            tokio::join!(world.recover(), stop);
        }
        world.gone().await;
    }
    assert_eq!(shelf.all()[0].0.status, RunStatus::Failed, "eight seconds of five");
}

/// `a` feeds `b`; `c` only takes its time.
fn chain() -> Value {
    json!([
        inject(&["a"]),
        agent("a", "m", &["b"]),
        agent("b", "m", &["d"]),
        agent("c", "slow", &[]),
        model("m", json!([says("hi")])),
        with(model("slow", json!([says("hi")])), json!({"delayMs": 60_000})),
        calculator(),
        debug("d", "payload"),
    ])
}

/// `a` is over, and what it said has not reached `b`; perhaps `c` is at work as well.
async fn undelivered(also_c: bool) -> Arc<Shelf> {
    let world = Setup { fault: Fault::Start("run-2"), ..Setup::default() }.world(&chain());
    world.fire().await;
    let shelf = Arc::clone(&world.shelf);
    assert!(!shelf.all()[0].0.delivered);
    if also_c {
        let _ = tokio::time::timeout(Duration::from_secs(1), world.ask_of("c", json!(1))).await;
    }
    world.gone().await;
    shelf
}

fn has_run_of(shelf: &Shelf, agent: &str) -> bool {
    shelf.all().iter().any(|(run, ..)| run.agent.node_id.as_str() == agent)
}

#[tokio::test(start_paused = true)]
async fn a_result_has_arrived_when_it_has_arrived_everywhere() {
    let flow = json!([
        inject(&["a"]),
        agent("a", "m", &["b", "c"]),
        agent("b", "m", &["d"]),
        agent("c", "m", &["d"]),
        model("m", json!([says("hi")])),
        calculator(),
        debug("d", "payload"),
    ]);
    let world = Setup { fault: Fault::Start("run-2"), ..Setup::default() }.world(&flow);
    world.fire().await;
    let shelf = Arc::clone(&world.shelf);
    assert!(!has_run_of(&shelf, "b") && has_run_of(&shelf, "c") && !shelf.all()[0].0.delivered);
    world.gone().await;
    let mut ends = ends(&World::over(&flow, &shelf).recover().await);
    ends.sort_unstable();
    assert_eq!(ends, ["run-1 a completed", "run-4 b completed"], "and `c` is not begun again");
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_again_finds_room() {
    let shelf = undelivered(true).await;
    let limits = EngineLimits { max_active: 1, max_queued: 0, ..EngineLimits::default() };
    let world = Setup { limits, ..Setup::default() }.world_over(&chain(), &shelf);
    world.recover().await;
    assert!(has_run_of(&shelf, "b") && shelf.all()[0].0.delivered);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_of_what_is_sent_again_takes_nothing_away() {
    let shelf = undelivered(false).await;
    let world = World::over(&chain(), &shelf);
    world.cancel.cancel();
    world.recover().await;
    assert!(!has_run_of(&shelf, "b") && !shelf.all()[0].0.delivered);
    world.gone().await;
    World::over(&chain(), &shelf).recover().await;
    assert!(has_run_of(&shelf, "b") && shelf.all()[0].0.delivered);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_refused_sends_nothing() {
    let shelf = undelivered(false).await;
    let world = World::over(&chain(), &shelf);
    let refused = world.engine.cancel("run-1".into(), "x".to_owned()).await;
    assert_eq!(refused.unwrap_err().code, StoreCode::RunOver);
    sleep(Duration::from_secs(1)).await;
    assert!(!has_run_of(&shelf, "b") && !shelf.all()[0].0.delivered);
}

#[tokio::test(start_paused = true)]
async fn without_its_flow_a_result_waits() {
    let shelf = undelivered(false).await;
    let world = World::over(&chain(), &shelf);
    let alone = Engine::new(None, world.ports(), EngineLimits::default());
    assert_eq!(ends(&alone.resume(vec!["run-1".into()], &world.cancel).await), ["run-1 a completed"]);
    assert!(!shelf.all()[0].0.delivered);
    world.recover().await;
    assert!(has_run_of(&shelf, "b") && shelf.all()[0].0.delivered);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_on_its_way_is_not_sent_again() {
    let flow = json!([
        inject(&["a"]),
        agent("a", "m", &["b", "d"]),
        agent("b", "m", &[]),
        model("m", json!([says("hi")])),
        calculator(),
        debug("d", "payload"),
    ]);
    let world = slow().world(&flow);
    let again = async {
        sleep(Duration::from_secs(12)).await;
        world.engine.recover(&world.cancel).await.unwrap();
    };
    tokio::join!(world.fire(), again);
    assert_eq!(world.watch.shown(), ["d: \"hi\""]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_brought_back_has_the_place_of_its_agent() {
    let flow = json!([
        inject(&["a"]),
        agent("a", "m", &["d"]),
        with(model("m", json!([says("hi")])), json!({"delayMs": 10_000})),
        calculator(),
        debug("d", "payload"),
    ]);
    let shelf = World::new(&flow).killed_after(1, true).await;
    let limits = EngineLimits { max_active_per_agent: 1, ..EngineLimits::default() };
    let world = Setup { limits, ..Setup::default() }.world_over(&flow, &shelf);
    let begun = Instant::now();
    tokio::join!(world.engine.resume(vec!["run-1".into()], &world.cancel), world.ask(json!("x")));
    assert_eq!(begun.elapsed().as_secs(), 20, "one at a time");
}

/// Port 4 goes to `e`, and to an agent.
fn with_port_4(tool: Value) -> Value {
    let mut flow = one_call(tool);
    flow[1]["wires"] = json!([["m"], ["t"], [], ["d"], ["e", "b"]]);
    let nodes = flow.as_array_mut().unwrap();
    nodes.extend([
        debug("e", "agentResult.iteration"),
        with(agent("b", "mb", &[]), json!({"wires": [["mb"], ["calc"], [], []]})),
        model("mb", json!([says("heard")])),
        calculator(),
    ]);
    flow
}

#[tokio::test(start_paused = true)]
async fn an_answer_leaves_port_4_before_a_question_is_asked() {
    let flow = with_port_4(json!({"effect": "at_most_once", "hangs": "tool", "timeout": 90_000_000}));
    let world = World::new(&flow);
    let watch = Arc::clone(&world.watch);
    let shelf = world.killed_after(1, true).await;
    assert_eq!(watch.shown(), ["e: 1"]);
    // As if the process had died before it left: the run it set off is not there.
    shelf.forget("run-2");
    let world = World::over(&flow, &shelf);
    world.recover().await;
    assert_eq!(world.watch.shown(), ["e: 1"]);
    assert!(has_run_of(&shelf, "b"));
    assert_eq!(shelf.all()[0].0.status, RunStatus::Waiting);
}

#[tokio::test(start_paused = true)]
async fn the_last_answer_leaves_port_4_before_the_result_leaves_port_3() {
    // The result is kept at the fourth batch, and the process dies at once.
    let flow = with_port_4(json!({"effect": "read"}));
    let world = Setup { fault: Fault::Slow, ..Setup::default() }.world(&flow);
    let shelf = world.killed_after(22, true).await;
    let run = shelf.all().into_iter().find(|(run, ..)| run.run_id.as_str() == "run-1").unwrap().0;
    assert!(run.status.is_over() && !run.delivered, "{run:?}");
    let world = World::over(&flow, &shelf);
    world.recover().await;
    let shown = world.watch.shown();
    assert_eq!(shown.iter().filter(|line| *line == "e: 2").count(), 1, "{shown:?}");
    assert_eq!(shown.iter().filter(|line| *line == "d: \"done\"").count(), 1, "{shown:?}");
}
