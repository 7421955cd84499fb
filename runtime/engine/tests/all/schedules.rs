//! Schedules of inject nodes, on a paused clock.

use crate::kit::{EngineTest, agent, build, calculator, debug, final_answer, inject, model, node, with};
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::event::FlowEvent;
use redflow_engine::{Engine, EngineLimits};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// An inject node with a schedule, one without, and a debug node.
fn scheduled_flow(schedule: Value) -> Value {
    json!([
        with(inject(&["d"]), schedule),
        debug("d", "payload"),
        with(inject(&["d"]), json!({"id": "still"}))
    ])
}

/// The number of messages that the debug node got.
fn message_count(test: &EngineTest) -> usize {
    test.recorder.flow_lines().len()
}

/// Lets time pass; returns how many messages the debug node got meanwhile.
async fn messages_during(test: &EngineTest, seconds: u64) -> usize {
    let before = message_count(test);
    sleep(Duration::from_secs(seconds)).await;
    message_count(test) - before
}

async fn firings(schedule: Value, seconds: u64) -> usize {
    let test = EngineTest::new(&scheduled_flow(schedule));
    test.engine.begin_schedules().await;
    messages_during(&test, seconds).await
}

#[tokio::test(start_paused = true)]
async fn schedules_fire_only_after_begin() {
    let test = EngineTest::new(&scheduled_flow(json!({"once": true, "repeat": 1, "crontab": "* * * * *"})));
    assert_eq!(messages_during(&test, 300).await, 0);
    test.engine.deploy(build(&scheduled_flow(json!({"once": true, "repeat": 1})))).await;
    assert_eq!(messages_during(&test, 300).await, 0);
    test.engine.begin_schedules().await;
    // Once after a tenth of a second, then 299 times. Firings before `begin` are skipped.
    assert_eq!(messages_during(&test, 300).await, 300);
}

#[tokio::test(start_paused = true)]
async fn fires_once_at_intervals_and_by_crontab() {
    assert_eq!(firings(json!({"once": true}), 1_000).await, 1);
    assert_eq!(firings(json!({"once": true, "onceDelay": 30}), 29).await, 0);
    assert_eq!(firings(json!({"once": true, "onceDelay": 30}), 31).await, 1);
    assert_eq!(firings(json!({"repeat": "0.6"}), 100).await, 166);
    // The test starts 20 seconds past the minute.
    assert_eq!(firings(json!({"crontab": "* * * * *"}), 39).await, 0);
    assert_eq!(firings(json!({"crontab": "* * * * *"}), 161).await, 3);
    assert_eq!(firings(json!({"crontab": "*/10 * * * * *"}), 101).await, 10);
    assert_eq!(firings(json!({"crontab": "0 * * * *"}), 3 * 3_600).await, 3);
    assert_eq!(firings(json!({"crontab": "0 0 * * *"}), 3 * 86_400).await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_scheduled_message_begins_a_run() {
    let flow = json!([
        with(inject(&["a"]), json!({"repeat": 60})),
        agent("a", "m", &["d"]),
        model("m", json!([final_answer("hi")])),
        calculator(),
        debug("d", "payload"),
    ]);
    let test = EngineTest::new(&flow);
    test.engine.begin_schedules().await;
    sleep(Duration::from_secs(185)).await;
    assert_eq!(test.recorder.flow_lines(), ["d: \"hi\""; 3]);
    assert!(test.store.summaries().iter().all(|run| run.status.is_over() && run.delivered));
    // The node can still be fired by hand.
    assert_eq!(test.fire().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deploy_keeps_unchanged_timers() {
    let flow = |schedule: Value, text: &str| {
        let mut flow = scheduled_flow(with(schedule, json!({"payload": text})));
        flow[0]["payload"] = json!(text);
        flow
    };
    let every_minute = || json!({"once": true, "repeat": 60});
    let test = EngineTest::new(&flow(every_minute(), "one"));
    test.engine.begin_schedules().await;
    assert_eq!(messages_during(&test, 50).await, 1);
    // The payload has changed, but not the schedule: the timer continues and `once` is not repeated.
    test.engine.deploy(build(&flow(every_minute(), "two"))).await;
    assert_eq!(messages_during(&test, 9).await, 0);
    assert_eq!(messages_during(&test, 2).await, 1);
    assert_eq!(test.recorder.flow_lines(), ["d: \"one\"", "d: \"two\""]);
    // Now the schedule is another one.
    test.engine.deploy(build(&flow(json!({"once": true, "repeat": 30}), "three"))).await;
    assert_eq!(messages_during(&test, 29).await, 1);
    assert_eq!(messages_during(&test, 2).await, 1);
    // Then there is none, and then the first one again.
    test.engine.deploy(build(&flow(json!({}), "four"))).await;
    assert_eq!(messages_during(&test, 1_000).await, 0);
    test.engine.deploy(build(&json!([]))).await;
    test.engine.deploy(build(&flow(every_minute(), "five"))).await;
    assert_eq!(messages_during(&test, 1).await, 1);
}

#[tokio::test(start_paused = true)]
async fn schedules_can_begin_before_the_first_deploy() {
    let test = EngineTest::new(&scheduled_flow(json!({})));
    let engine = Engine::new(None, test.ports(), EngineLimits::default());
    engine.begin_schedules().await;
    engine.deploy(build(&scheduled_flow(json!({"once": true})))).await;
    assert_eq!(messages_during(&test, 1).await, 1);
}

#[tokio::test(start_paused = true)]
async fn each_subflow_instance_has_its_own_timer() {
    let wire = |id: &str| json!({"wires": [{"id": id, "port": 0}]});
    let flow = json!([
        {"id": "s", "type": "subflow", "name": "s", "in": [], "out": [wire("i")], "env": [{"name": "EVERY", "type": "num", "value": "10"}]},
        with(inject(&[]), json!({"z": "s", "repeat": "${EVERY}"})),
        node("one", "subflow:s", json!([["d"]])),
        with(node("two", "subflow:s", json!([["d"]])), json!({"env": [{"name": "EVERY", "type": "num", "value": "20"}]})),
        debug("d", "payload"),
    ]);
    let test = EngineTest::new(&flow);
    test.engine.begin_schedules().await;
    assert_eq!(messages_during(&test, 101).await, 10 + 5);
}

#[tokio::test(start_paused = true)]
async fn reports_an_unusable_schedule_and_still_fires_by_hand() {
    for (schedule, problem) in [
        (json!({"crontab": "every day"}), "`crontab` is not a cron expression"),
        (json!({"crontab": "0 0 30 2 *"}), "`crontab` names a time that never comes"),
        (json!({"repeat": "often"}), "`repeat` is not a positive number"),
        (json!({"repeat": -1}), "`repeat` is not a positive number"),
        (json!({"repeat": 2_147_484}), "`repeat` is longer than 2147483 seconds"),
    ] {
        let test = EngineTest::new(&scheduled_flow(schedule.clone()));
        test.engine.begin_schedules().await;
        test.engine.deploy(build(&scheduled_flow(schedule.clone()))).await;
        let events = test.recorder.flow_events();
        let [FlowEvent::Uncaught { node, error }] = events.as_slice() else {
            panic!("{schedule}: {events:?}")
        };
        assert_eq!((node.id.as_str(), error.code), ("i", RunErrorCode::ConfigInvalid));
        assert!(error.message.contains(problem), "{}", error.message);
        assert_eq!(messages_during(&test, 86_400).await, 0);
        test.fire().await;
        assert_eq!(message_count(&test), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn limits_the_number_of_timers() {
    let mut nodes: Vec<Value> = (0..1_001)
        .map(|number| with(inject(&["d"]), json!({"id": format!("i{number}"), "once": true})))
        .collect();
    nodes.push(debug("d", "payload"));
    let test = EngineTest::new(&Value::Array(nodes));
    test.engine.begin_schedules().await;
    assert_eq!(test.recorder.flow_lines(), ["i1000 uncaught CONFIG_INVALID #1"]);
    assert_eq!(messages_during(&test, 1).await, 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_stopping_engine_fires_nothing() {
    let flow = json!([
        with(inject(&["a"]), json!({"repeat": 1})),
        agent("a", "m", &[]),
        with(model("m", json!([final_answer("hi")])), json!({"delayMs": 60_000})),
        calculator(),
    ]);
    let test = EngineTest::new(&flow);
    test.engine.begin_schedules().await;
    sleep(Duration::from_millis(1_500)).await;
    test.engine.shutdown(Duration::from_secs(30)).await;
    assert_eq!(test.store.runs().len(), 1);
}
