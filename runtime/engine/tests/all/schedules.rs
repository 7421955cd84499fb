//! Inject nodes that fire by themselves, on a clock that is moved by hand.

use crate::kit::{World, agent, built, calculator, debug, inject, model, node, says, with};
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::event::FlowEvent;
use redflow_engine::{Engine, EngineLimits};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// An inject node with a debug node, and one that nobody fires.
fn ticking(schedule: Value) -> Value {
    json!([
        with(inject(&["d"]), schedule),
        debug("d", "payload"),
        with(inject(&["d"]), json!({"id": "still"}))
    ])
}

/// How many messages were shown.
fn shown(world: &World) -> usize {
    world.watch.shown().len()
}

/// Lets seconds pass, and gives how often something was shown meanwhile.
async fn pass(world: &World, seconds: u64) -> usize {
    let before = shown(world);
    sleep(Duration::from_secs(seconds)).await;
    shown(world) - before
}

async fn ticks(schedule: Value, seconds: u64) -> usize {
    let world = World::new(&ticking(schedule));
    world.engine.begin_schedules().await;
    pass(&world, seconds).await
}

#[tokio::test(start_paused = true)]
async fn nothing_fires_by_itself_unless_it_is_asked_for() {
    let world = World::new(&ticking(json!({"once": true, "repeat": 1, "crontab": "* * * * *"})));
    assert_eq!(pass(&world, 300).await, 0);
    world.engine.deploy(built(&ticking(json!({"once": true, "repeat": 1})))).await;
    assert_eq!(pass(&world, 300).await, 0);
    world.engine.begin_schedules().await;
    // Once and 299 times; the first after a tenth of a second, and what was before is not made up.
    assert_eq!(pass(&world, 300).await, 300);
}

#[tokio::test(start_paused = true)]
async fn once_every_so_often_and_by_the_clock() {
    assert_eq!(ticks(json!({"once": true}), 1_000).await, 1);
    assert_eq!(ticks(json!({"once": true, "onceDelay": 30}), 29).await, 0);
    assert_eq!(ticks(json!({"once": true, "onceDelay": 30}), 31).await, 1);
    assert_eq!(ticks(json!({"repeat": "0.6"}), 100).await, 166);
    // It is 20 seconds past the minute.
    assert_eq!(ticks(json!({"crontab": "* * * * *"}), 39).await, 0);
    assert_eq!(ticks(json!({"crontab": "* * * * *"}), 161).await, 3);
    assert_eq!(ticks(json!({"crontab": "*/10 * * * * *"}), 101).await, 10);
    assert_eq!(ticks(json!({"crontab": "0 * * * *"}), 3 * 3_600).await, 3);
    assert_eq!(ticks(json!({"crontab": "0 0 * * *"}), 3 * 86_400).await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_tick_begins_runs_like_any_other_message() {
    let flow = json!([
        with(inject(&["a"]), json!({"repeat": 60})),
        agent("a", "m", &["d"]),
        model("m", json!([says("hi")])),
        calculator(),
        debug("d", "payload"),
    ]);
    let world = World::new(&flow);
    world.engine.begin_schedules().await;
    sleep(Duration::from_secs(185)).await;
    assert_eq!(world.watch.shown(), ["d: \"hi\""; 3]);
    assert!(world.shelf.summaries().iter().all(|run| run.status.is_over() && run.delivered));
    // It can still be fired by hand.
    assert_eq!(world.fire().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_new_flow_keeps_the_timers_that_are_the_same() {
    let flow = |schedule: Value, text: &str| {
        let mut flow = ticking(with(schedule, json!({"payload": text})));
        flow[0]["payload"] = json!(text);
        flow
    };
    let every_minute = || json!({"once": true, "repeat": 60});
    let world = World::new(&flow(every_minute(), "one"));
    world.engine.begin_schedules().await;
    assert_eq!(pass(&world, 50).await, 1);
    // What it says has changed, and not when: no second `once`, and the minute goes on.
    world.engine.deploy(built(&flow(every_minute(), "two"))).await;
    assert_eq!(pass(&world, 9).await, 0);
    assert_eq!(pass(&world, 2).await, 1);
    assert_eq!(world.watch.shown(), ["d: \"one\"", "d: \"two\""]);
    // Now it is another schedule.
    world.engine.deploy(built(&flow(json!({"once": true, "repeat": 30}), "three"))).await;
    assert_eq!(pass(&world, 29).await, 1);
    assert_eq!(pass(&world, 2).await, 1);
    // And none at all, and then the first again.
    world.engine.deploy(built(&flow(json!({}), "four"))).await;
    assert_eq!(pass(&world, 1_000).await, 0);
    world.engine.deploy(built(&json!([]))).await;
    world.engine.deploy(built(&flow(every_minute(), "five"))).await;
    assert_eq!(pass(&world, 1).await, 1);
}

#[tokio::test(start_paused = true)]
async fn an_engine_without_a_flow_waits_for_one() {
    let world = World::new(&ticking(json!({})));
    let engine = Engine::new(None, world.ports(), EngineLimits::default());
    engine.begin_schedules().await;
    engine.deploy(built(&ticking(json!({"once": true})))).await;
    assert_eq!(pass(&world, 1).await, 1);
}

#[tokio::test(start_paused = true)]
async fn subflow_instances_have_timers_of_their_own() {
    let wire = |id: &str| json!({"wires": [{"id": id, "port": 0}]});
    let flow = json!([
        {"id": "s", "type": "subflow", "name": "s", "in": [], "out": [wire("i")], "env": [{"name": "EVERY", "type": "num", "value": "10"}]},
        with(inject(&[]), json!({"z": "s", "repeat": "${EVERY}"})),
        node("one", "subflow:s", json!([["d"]])),
        with(node("two", "subflow:s", json!([["d"]])), json!({"env": [{"name": "EVERY", "type": "num", "value": "20"}]})),
        debug("d", "payload"),
    ]);
    let world = World::new(&flow);
    world.engine.begin_schedules().await;
    assert_eq!(pass(&world, 101).await, 10 + 5);
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_cannot_be_used_is_told_of_and_the_node_still_fires_by_hand() {
    for (schedule, what) in [
        (json!({"crontab": "every day"}), "`crontab` is no cron expression"),
        (json!({"crontab": "0 0 30 2 *"}), "`crontab` names a time that never comes"),
        (json!({"repeat": "often"}), "`repeat` is no positive number"),
        (json!({"repeat": -1}), "`repeat` is no positive number"),
        (json!({"repeat": 2_147_484}), "`repeat` is longer than 2147483 seconds"),
    ] {
        let world = World::new(&ticking(schedule.clone()));
        world.engine.begin_schedules().await;
        world.engine.deploy(built(&ticking(schedule.clone()))).await;
        let events = world.watch.flow_events();
        let [FlowEvent::Uncaught { node, error }] = events.as_slice() else {
            panic!("{schedule}: {events:?}")
        };
        assert_eq!((node.id.as_str(), error.code), ("i", RunErrorCode::ConfigInvalid));
        assert!(error.message.contains(what), "{}", error.message);
        assert_eq!(pass(&world, 86_400).await, 0);
        world.fire().await;
        assert_eq!(shown(&world), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn there_is_an_end_to_timers() {
    let mut nodes: Vec<Value> = (0..1_001)
        .map(|number| with(inject(&["d"]), json!({"id": format!("i{number}"), "once": true})))
        .collect();
    nodes.push(debug("d", "payload"));
    let world = World::new(&Value::Array(nodes));
    world.engine.begin_schedules().await;
    assert_eq!(world.watch.shown(), ["i1000 uncaught CONFIG_INVALID #1"]);
    assert_eq!(pass(&world, 1).await, 1_000);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_stops_fires_nothing() {
    let flow = json!([
        with(inject(&["a"]), json!({"repeat": 1})),
        agent("a", "m", &[]),
        with(model("m", json!([says("hi")])), json!({"delayMs": 60_000})),
        calculator(),
    ]);
    let world = World::new(&flow);
    world.engine.begin_schedules().await;
    sleep(Duration::from_millis(1_500)).await;
    world.engine.shutdown(Duration::from_secs(30)).await;
    assert_eq!(world.shelf.all().len(), 1);
}
