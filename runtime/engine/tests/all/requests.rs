//! What is asked of runs while they are at work, while they wait, and by other processes; and what a new flow
//! does to them.

use crate::kit::{
    World, agent, agent_with_tool, asks, built, calculator, debug, ends, inject, model, model_double, says,
    tool_double, with,
};
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_contract::fact::ToolResult;
use redflow_contract::run::{RunRequest, RunStatus};
use redflow_ports::StoreError;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// A run that waits for the outcome of a call.
fn parking() -> Value {
    json!([
        inject(&["a"]),
        agent_with_tool("a", "m", &["d"]),
        model("m", json!([asks("t", json!({})), says("done")])),
        tool_double(json!({"ownEffect": "at_most_once", "unknown": "the line went dead"})),
        debug("d", "envelope.tools.history"),
    ])
}

async fn parked() -> World {
    let world = World::new(&parking());
    assert_eq!(ends(&world.fire().await), ["run-1 a waiting run-1:1 t 1"]);
    world
}

/// Until nothing moves any more.
async fn settled(world: &World) {
    sleep(Duration::from_secs(60)).await;
    assert!(world.shelf.all().iter().all(|(run, ..)| run.status.is_over()), "{:?}", world.shelf.all());
}

fn code(answer: Result<(), StoreError>) -> StoreCode {
    answer.unwrap_err().code
}

#[tokio::test(start_paused = true)]
async fn someone_says_what_happened() {
    let rows = [
        (ToolResult::ok(json!({"paid": true})), json!({"success": true, "output": {"paid": true}})),
        (ToolResult::ok(Value::Null), json!({"success": true, "output": null})),
        (ToolResult::failed("no"), json!({"success": false, "output": null, "error": "no"})),
    ];
    for (result, expected) in rows {
        let world = parked().await;
        world.engine.resolve("run-1".into(), "run-1:1".into(), result).await.unwrap();
        settled(&world).await;
        assert_eq!(world.watch.done(), ["built t", "tool t {}"], "it is not made again");
        let shown = world.watch.shown().pop().unwrap();
        let history: Value = serde_json::from_str(shown.strip_prefix("d: ").unwrap()).unwrap();
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(history[0][key], *value, "{shown}");
        }
        assert_eq!(world.shelf.all()[0].0.status, RunStatus::Completed);
        // The same thing a second time comes too late.
        let again = world.engine.resolve("run-1".into(), "run-1:1".into(), ToolResult::ok(json!(1))).await;
        assert_eq!(code(again), StoreCode::RunOver);
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_said() {
    let world = parked().await;
    let ok = || ToolResult::ok(json!(1));
    let rows = [
        ("run-9", "run-9:1", ok(), StoreCode::RunUnknown),
        ("run-1", "run-1:2", ok(), StoreCode::RunNotWaiting),
        ("run-1", "run-1:1", ToolResult::ok(json!("x".repeat(262_144))), StoreCode::ResultInvalid),
        ("run-1", "run-1:1", ToolResult::ok(crate::kit::nested(101)), StoreCode::ResultInvalid),
    ];
    for (run, call, result, expected) in rows {
        assert_eq!(code(world.engine.resolve(run.into(), call.into(), result).await), expected);
    }
    assert_eq!(world.shelf.all()[0].0.status, RunStatus::Waiting, "nothing has changed");
    // A run at work waits for nothing.
    let busy = World::new(&json!([
        inject(&["a"]),
        agent("a", "m", &[]),
        with(model("m", json!([says("hi")])), json!({"delayMs": 1000})),
        calculator(),
    ]));
    let ask = async {
        sleep(Duration::from_millis(100)).await;
        code(busy.engine.resolve("run-1".into(), "run-1:1".into(), ok()).await)
    };
    assert_eq!(tokio::join!(busy.fire(), ask).1, StoreCode::RunNotWaiting);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_can_be_cancelled() {
    let world = parked().await;
    world.engine.cancel("run-1".into(), "enough".to_owned()).await.unwrap();
    settled(&world).await;
    let shown = world.watch.shown();
    assert!(shown.iter().any(|line| line == "a uncaught CANCELLED #1"), "{shown:?}");
    assert!(shown.iter().any(|line| line.contains("\"outcome\":\"unknown\"")), "{shown:?}");
    assert_eq!(code(world.engine.cancel("run-1".into(), String::new()).await), StoreCode::RunOver);
    assert_eq!(code(world.engine.cancel("run-7".into(), String::new()).await), StoreCode::RunUnknown);
}

#[tokio::test(start_paused = true)]
async fn other_processes_may_ask() {
    let world = parked().await;
    let resolve = |call: &str| RunRequest::Resolve { call_id: call.into(), result: ToolResult::ok(json!(1)) };
    world.shelf.ask(1, "run-1", resolve("run-1:5"));
    world.shelf.ask(2, "run-5", RunRequest::Cancel { reason: String::new() });
    sleep(Duration::from_secs(1)).await;
    world.shelf.ask(3, "run-1", resolve("run-1:1"));
    settled(&world).await;
    world.shelf.ask(4, "run-1", RunRequest::Cancel { reason: String::new() });
    sleep(Duration::from_secs(1)).await;
    let mut answers = world.shelf.answers();
    answers.sort_unstable();
    let expected = [
        (1, Some(StoreCode::RunNotWaiting)),
        (2, Some(StoreCode::RunUnknown)),
        (3, None),
        (4, Some(StoreCode::RunOver)),
    ];
    assert_eq!(answers, expected);
    assert_eq!(world.shelf.all()[0].0.status, RunStatus::Completed);
}

/// Agents `a` and `b`, whose runs hang, and `p`, whose run waits.
fn three(with_b: bool) -> Value {
    let mut nodes = vec![
        inject(&["a", "b", "p"]),
        agent("a", "m", &[]),
        agent_with_tool("p", "asking", &[]),
        model("asking", json!([asks("t", json!({})), says("done")])),
        tool_double(json!({"ownEffect": "at_most_once", "unknown": "the line went dead"})),
        model_double("m", json!([says("hi")]), json!({"hangs": "model"})),
        calculator(),
    ];
    if with_b {
        nodes.push(agent("b", "m", &[]));
    } else {
        nodes.retain(|node| node["id"] != "p");
        nodes[0]["wires"] = json!([["a"]]);
    }
    Value::Array(nodes)
}

#[tokio::test(start_paused = true)]
async fn a_new_flow_cancels_only_what_it_no_longer_has() {
    let world = World::new(&three(true));
    let deploys = async {
        sleep(Duration::from_secs(1)).await;
        // The same agents again: nothing happens to their runs.
        world.engine.deploy(built(&three(true))).await;
        sleep(Duration::from_secs(1)).await;
        let statuses: Vec<RunStatus> = world.shelf.all().iter().map(|(run, ..)| run.status).collect();
        assert_eq!(statuses, [RunStatus::Interrupted, RunStatus::Interrupted, RunStatus::Waiting]);
        // Without `b`, which is at work, and without `p`, which waits.
        world.engine.deploy(built(&three(false))).await;
        sleep(Duration::from_secs(1)).await;
        world.engine.cancel("run-1".into(), String::new()).await.unwrap();
    };
    let (reports, ()) = tokio::join!(world.fire(), deploys);
    let expected = ["run-1 a failed CANCELLED", "run-2 b failed CANCELLED", "run-3 p waiting run-3:1 t 1"];
    assert_eq!(ends(&reports), expected);
    sleep(Duration::from_secs(1)).await;
    let journal = world.shelf.journal(&"run-3".into());
    assert!(journal.contains("its agent was removed from the flow"), "{journal}");
    assert!(world.shelf.all().iter().all(|(run, ..)| run.status.is_over() && run.delivered));
}

#[tokio::test(start_paused = true)]
async fn a_recovery_cancels_what_the_flow_no_longer_has() {
    let shelf = World::new(&three(true)).killed_after(1, true).await;
    let world = World::over(&three(false), &shelf);
    let mut ends = ends(&world.recover().await);
    ends.sort_unstable();
    assert_eq!(ends, ["run-1 a completed", "run-2 b failed CANCELLED", "run-3 p failed CANCELLED"]);
}

#[tokio::test(start_paused = true)]
async fn a_result_of_an_agent_that_is_gone_waits_for_nobody() {
    // Over, and not delivered: without a flow there is nowhere to send to.
    let shelf = World::new(&three(true)).killed_after(1, true).await;
    let alone = World::over(&three(true), &shelf);
    let engine = redflow_engine::Engine::new(None, alone.ports(), redflow_engine::EngineLimits::default());
    engine.resume(vec!["run-2".into()], &alone.cancel).await;
    let of_b = |shelf: &crate::shelf::Shelf| shelf.all()[1].0.clone();
    assert!(of_b(&shelf).status.is_over() && !of_b(&shelf).delivered);
    // To another instance it may mean something yet.
    let mut ports = alone.ports();
    ports.instance = redflow_contract::id::InstanceId::from("other".to_owned());
    let other = redflow_engine::Engine::new(
        Some(built(&three(false))),
        ports,
        redflow_engine::EngineLimits::default(),
    );
    other.recover(&alone.cancel).await.unwrap();
    assert!(!of_b(&shelf).delivered && shelf.all()[2].0.status == RunStatus::Waiting);
    let world = World::over(&three(false), &shelf);
    world.recover().await;
    assert!(of_b(&shelf).delivered && shelf.all()[2].0.status == RunStatus::Failed);
}
