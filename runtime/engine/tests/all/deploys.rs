//! A new flow at any time: while runs are brought back, while they are at work, when there was no flow before.

use crate::kit::{
    World, agent, agent_with_tool, asks, built, calculator, debug, ends, inject, model, says, tool_double,
    with,
};
use pretty_assertions::assert_eq;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::InstanceId;
use redflow_contract::run::RunStatus;
use redflow_engine::{Engine, EngineLimits, Ports};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// A run that waits for a call, and after that takes a minute to answer.
fn waiting(says_what: &str) -> Value {
    json!([
        inject(&["a"]),
        agent_with_tool("a", "m", &["d"]),
        with(model("m", json!([asks("t", json!({})), says(says_what)])), json!({"delayMs": 60_000})),
        tool_double(json!({"ownEffect": "at_most_once", "unknown": "lost"})),
        debug("d", "payload"),
    ])
}

/// A flow without `a`.
fn other() -> Value {
    json!([agent("b", "m", &[]), model("m", json!([says("hi")])), calculator()])
}

async fn resolved(world: &World) {
    world.fire().await;
    world.engine.resolve("run-1".into(), "run-1:1".into(), ToolResult::ok(json!(1))).await.unwrap();
}

fn status(world: &World) -> RunStatus {
    world.shelf.all()[0].0.status
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_answered_goes_on_through_a_deploy() {
    let world = World::new(&waiting("as planned"));
    resolved(&world).await;
    world.engine.deploy(built(&waiting("changed"))).await;
    sleep(Duration::from_secs(120)).await;
    assert_eq!(status(&world), RunStatus::Completed);
    assert_eq!(world.watch.shown(), ["d: \"as planned\""]);
}

#[tokio::test(start_paused = true)]
async fn and_ends_when_its_agent_is_gone() {
    let world = World::new(&waiting("never"));
    resolved(&world).await;
    world.engine.deploy(built(&other())).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(status(&world), RunStatus::Failed);
    assert!(world.shelf.all()[0].0.delivered && world.shelf.all()[0].1.contains("its agent was removed"));
}

/// `a`, whose model takes a minute, left by a process that died.
fn slow() -> Value {
    json!([
        inject(&["a"]),
        agent("a", "m", &["d"]),
        with(model("m", json!([says("hi")])), json!({"delayMs": 60_000})),
        calculator(),
        debug("d", "payload"),
    ])
}

#[tokio::test(start_paused = true)]
async fn a_flow_that_comes_after_the_runs_takes_their_results() {
    let shelf = World::new(&slow()).killed_after(1, true).await;
    let world = World::over(&slow(), &shelf);
    let engine = Engine::new(None, world.ports(), EngineLimits::default());
    let deploy = async {
        sleep(Duration::from_secs(1)).await;
        engine.deploy(built(&slow())).await;
    };
    let (back, ()) = tokio::join!(engine.recover(&world.cancel), deploy);
    assert_eq!(ends(&back.unwrap()), ["run-1 a completed"]);
    assert_eq!(world.watch.shown(), ["d: \"hi\""]);
    assert!(shelf.all()[0].0.delivered);
}

#[tokio::test(start_paused = true)]
async fn a_deploy_while_runs_are_brought_back_harms_none() {
    let shelf = World::new(&slow()).killed_after(1, true).await;
    let world = World::over(&slow(), &shelf);
    let deploys = async {
        for _ in 0..10 {
            world.engine.deploy(built(&slow())).await;
            sleep(Duration::from_secs(3)).await;
        }
    };
    let (back, ()) = tokio::join!(world.recover(), deploys);
    assert_eq!(ends(&back), ["run-1 a completed"]);
    assert_eq!(world.watch.shown(), ["d: \"hi\""]);
}

#[tokio::test(start_paused = true)]
async fn runs_of_another_instance_or_file_are_none_of_its_business() {
    let elsewhere: [fn(&mut Ports); 3] = [
        |ports| ports.instance = InstanceId::from("other".to_owned()),
        |ports| ports.source = Some("other.json".into()),
        |ports| ports.source = None,
    ];
    for change in elsewhere {
        let shelf = World::new(&slow()).killed_after(1, true).await;
        let world = World::over(&slow(), &shelf);
        let mut ports = world.ports();
        change(&mut ports);
        let engine = Engine::new(None, ports, EngineLimits::default());
        let deploy = async {
            sleep(Duration::from_secs(1)).await;
            engine.deploy(built(&other())).await;
        };
        let (back, ()) = tokio::join!(engine.recover(&world.cancel), deploy);
        assert_eq!(ends(&back.unwrap()), [""; 0]);
        // Neither ended nor gone on with: it is there for whoever has its flow.
        assert_eq!(ends(&world.recover().await), ["run-1 a completed"]);
    }
}
