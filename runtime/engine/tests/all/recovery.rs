//! A process stops anywhere; the next one goes on, asks a person, or ends the run with a code.

use crate::kit::{
    World, agent, agent_with_tool, asks, calculator, debug, ends, inject, model, model_double, node,
    only_message, says, tool_double, with,
};
use crate::shelf::Shelf;
use pretty_assertions::assert_eq;
use redflow_contract::run::RunStatus;
use redflow_engine::{Engine, EngineLimits};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, advance};

/// One call of the tool `t`, then an answer.
fn one_call(tool: Value) -> Value {
    json!([
        inject(&["a"]),
        agent_with_tool("a", "m", &["d"]),
        model("m", json!([asks("t", json!({"x": 1})), says("done")])),
        tool_double(tool),
        debug("d", "payload"),
    ])
}

/// The next process, where the tool answers.
async fn recovered(tool: Value, shelf: &Arc<Shelf>) -> (Vec<String>, World) {
    let world = World::over(&one_call(tool), shelf);
    (ends(&world.recover().await), world)
}

#[tokio::test(start_paused = true)]
async fn calls_that_may_be_repeated_are_made_again_with_the_same_key() {
    for class in ["read", "idempotent"] {
        let tool = json!({"effect": class, "showsKey": true, "hangs": "tool", "timeout": 90_000_000});
        let world = World::new(&one_call(tool.clone()));
        let watch = Arc::clone(&world.watch);
        let shelf = world.killed_after(1, true).await;
        let first = watch.done();
        assert_eq!(first.len(), 3, "{first:?}");
        let (ends, world) = recovered(tool, &shelf).await;
        assert_eq!(ends, ["run-1 a completed"], "{class}");
        assert_eq!(world.watch.done(), first[..2]);
        assert_eq!(world.watch.shown(), ["d: \"done\""]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_to_be_kept_only_soon_is_done_again() {
    // The answer that asks for a `read` tool is lost with the process: the model is asked again.
    let tool = json!({"effect": "read", "hangs": "tool", "timeout": 90_000_000});
    let shelf = World::new(&one_call(tool.clone())).killed_after(1, false).await;
    let (ends, world) = recovered(tool, &shelf).await;
    assert_eq!(ends, ["run-1 a completed"]);
    assert_eq!(world.watch.done(), ["built t", "tool t {\"x\":1}"]);
}

#[tokio::test(start_paused = true)]
async fn a_dangerous_call_is_never_made_again() {
    let tool = json!({"effect": "at_most_once", "hangs": "tool", "timeout": 90_000_000});
    for lucky in [true, false] {
        let shelf = World::new(&one_call(tool.clone())).killed_after(1, lucky).await;
        let (ends, world) = recovered(tool.clone(), &shelf).await;
        assert_eq!(ends, ["run-1 a waiting run-1:1 t 1"]);
        assert_eq!(world.watch.done(), ["built t"]);
        assert_eq!(world.watch.shown(), [] as [&str; 0], "nothing leaves port 3");
        // However often the process starts: it waits for a person.
        world.gone().await;
        let (ends, world) = recovered(tool.clone(), &shelf).await;
        assert_eq!((ends.len(), world.watch.done()), (0, vec!["built t".to_owned()]));
        assert_eq!(shelf.all()[0].0.status, RunStatus::Waiting);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_need_not_wait_ends() {
    let tool =
        json!({"onUnknown": "fail", "ownEffect": "at_most_once", "hangs": "tool", "timeout": 90_000_000});
    let shelf = World::new(&one_call(tool.clone())).killed_after(1, true).await;
    let world = World::over(&one_call(tool), &shelf);
    let reports = world.recover().await;
    assert_eq!(ends(&reports), ["run-1 a failed TOOL_OUTCOME_UNKNOWN"]);
    let call = &only_message(&reports)["envelope"]["tools"]["history"][0];
    assert_eq!((&call["outcome"], &call["success"]), (&json!("unknown"), &json!(false)));
    assert_eq!(world.watch.done(), ["built t"]);
}

/// A run with a memory that hangs where `props` say.
fn with_memory(props: Value) -> Value {
    json!([
        inject(&["a"]),
        with(agent("a", "m", &["d"]), json!({"memory": "mem"})),
        model_double("m", json!([says("hi")]), json!({})),
        calculator(),
        with(node("mem", "buffer-memory", json!([])), props),
        debug("d", "payload"),
    ])
}

#[tokio::test(start_paused = true)]
async fn model_and_memory_are_asked_again() {
    let append = "append mem t:default run-1 user: go | assistant: hi";
    let rows = [("recall", vec!["recall mem t:default", "model m 1", append]), ("append", vec![append])];
    for (hangs, expected) in rows {
        let shelf = World::new(&with_memory(json!({"hangs": hangs}))).killed_after(1, true).await;
        let world = World::over(&with_memory(json!({"hangs": hangs})), &shelf);
        assert_eq!(ends(&world.recover().await), ["run-1 a completed"]);
        let done: Vec<String> =
            world.watch.done().into_iter().filter(|line| !line.starts_with("built")).collect();
        assert_eq!(done, expected, "{hangs}");
        assert_eq!(world.watch.shown(), ["d: \"hi\""]);
    }
}

/// Two agents in a row, and what they say.
fn two_agents(second: Value) -> Value {
    json!([
        inject(&["a"]),
        agent("a", "m", &["j", "d"]),
        node("j", "junction", json!([["b"]])),
        agent("b", "m2", &["d"]),
        model("m", json!([says("one")])),
        second,
        calculator(),
        debug("d", "payload"),
    ])
}

#[tokio::test(start_paused = true)]
async fn a_result_that_has_not_arrived_is_sent_again_and_starts_nothing_twice() {
    let flow = two_agents(model_double("m2", json!([says("two")]), json!({"hangs": "model"})));
    // Everything of the first run has arrived: it is the second that goes on, and only it.
    let shelf = World::new(&flow).killed_after(1, true).await;
    assert_eq!(shelf.all()[1].2.as_deref(), Some("run-1:2:b:1"));
    let world = World::over(&flow, &shelf);
    assert_eq!(ends(&world.recover().await), ["run-2 b completed"]);
    assert_eq!(world.watch.shown(), ["d: \"two\""]);
    // That it has arrived was not kept: it is sent again, but the run it set off is there already.
    let shelf = World::new(&flow).killed_after(1, false).await;
    let world = World::over(&flow, &shelf);
    assert_eq!(ends(&world.recover().await), ["run-1 a completed", "run-2 b completed"]);
    assert_eq!(world.watch.shown(), ["d: \"one\"", "d: \"two\""]);
    assert_eq!(shelf.all().len(), 2);
    // Now all is over, and stays so.
    world.gone().await;
    assert_eq!(ends(&World::over(&flow, &shelf).recover().await), [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_on_port_4_starts_nothing_twice() {
    let flow = json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &[]), json!({"wires": [["m"], ["t"], [], [], ["b"]]})),
        agent("b", "m2", &["d"]),
        model("m", json!([asks("t", json!({})), says("done")])),
        model("m2", json!([says("seen")])),
        tool_double(json!({"effect": "idempotent", "hangs": "tool", "timeout": 90_000_000})),
        calculator(),
        debug("d", "payload"),
    ]);
    let shelf = World::new(&flow).killed_after(1, true).await;
    let world = World::over(&flow, &shelf);
    // The first answer leaves again, the second for the first time.
    assert_eq!(ends(&world.recover().await), ["run-1 a completed", "run-4 b completed"]);
    let causes: Vec<String> = shelf.all().into_iter().filter_map(|(_, _, cause)| cause).collect();
    assert_eq!(causes, ["run-1:2:b:1", "run-1:5:b:1"]);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_counts_only_what_was_worked() {
    let flow = json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &["d"]), json!({"timeout": 5000})),
        with(model("m", json!([asks("t", json!({})), says("done")])), json!({"delayMs": 3000})),
        tool_double(json!({"ownEffect": "at_most_once", "unknown": "lost"})),
        debug("d", "payload.code"),
    ]);
    // Three seconds are worked; then it waits for a person for a day, and its process stops.
    let world = World::new(&flow);
    assert_eq!(ends(&world.fire().await), ["run-1 a waiting run-1:1 t 1"]);
    let shelf = Arc::clone(&world.shelf);
    world.gone().await;
    advance(Duration::from_secs(86_400)).await;
    let world = World::over(&flow, &shelf);
    let before = Instant::now();
    world.engine.resolve("run-1".into(), "run-1:1".into(), ok(json!(1))).await.unwrap();
    while shelf.all()[0].0.status != RunStatus::Failed {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(before.elapsed().as_secs(), 2, "two seconds were left");
    assert_eq!(world.watch.shown(), ["a uncaught TIMEOUT #1", "d: \"TIMEOUT\""]);
}

fn ok(value: Value) -> redflow_contract::fact::ToolResult {
    redflow_contract::fact::ToolResult::ok(value)
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_as_it_was_planned() {
    let flow = |says_what: &str, result: u32| {
        json!([
            inject(&["a"]),
            agent_with_tool("a", "m", &["d"]),
            model("m", json!([asks("t", json!({})), says(says_what)])),
            tool_double(
                json!({"ownEffect": "read", "hangs": "tool", "result": result, "timeout": 90_000_000})
            ),
            debug("d", "payload"),
        ])
    };
    let shelf = World::new(&flow("as planned", 1)).killed_after(1, true).await;
    let world = World::over(&flow("changed", 2), &shelf);
    let reports = world.recover().await;
    assert_eq!(ends(&reports), ["run-1 a completed"]);
    assert_eq!(world.watch.shown(), ["d: \"as planned\""]);
    assert_eq!(only_message(&reports)["envelope"]["tools"]["history"][0]["output"], 1);
    assert_eq!(ends(&world.fire().await), ["run-2 a completed"]);
    assert_eq!(world.watch.shown(), ["d: \"as planned\"", "d: \"changed\""]);
}

/// What a crash leaves after a second.
async fn shelf_of(flow: &Value) -> Arc<Shelf> {
    World::new(flow).killed_after(1, true).await
}

#[tokio::test(start_paused = true)]
async fn an_answer_takes_no_secrets() {
    let flow = |key: Value| {
        json!([
            inject(&["a"]),
            agent_with_tool("a", "m", &["d"]),
            model_double("m", json!([asks("t", json!({})), says("done")]), key),
            tool_double(json!({"ownEffect": "at_most_once", "hangs": "tool", "timeout": 90_000_000})),
            debug("d", "payload"),
        ])
    };
    let shelf = shelf_of(&flow(json!({"apiKey": "sk-1"}))).await;
    let world = World::over(&flow(json!({})), &shelf);
    // Nobody has recovered it yet: that it waits is found out on the way.
    world.engine.resolve("run-1".into(), "run-1:1".into(), ok(json!(1))).await.unwrap();
    assert!(shelf.all()[0].1.contains("outcome_resolved"));
    assert_eq!(shelf.all()[0].0.status, RunStatus::Interrupted);
    world.gone().await;
    let world = World::over(&flow(json!({"apiKey": "sk-2"})), &shelf);
    assert_eq!(ends(&world.recover().await), ["run-1 a completed"]);
    assert_eq!(world.watch.shown(), ["d: \"done\""]);
}

#[tokio::test(start_paused = true)]
async fn secrets_come_from_the_flow_of_today() {
    let flow = |key: Value| {
        json!([
            inject(&["a"]),
            agent("a", "m", &[]),
            model_double("m", json!([says("hi")]), with(json!({"hangs": "model"}), key)),
            calculator(),
        ])
    };
    let shelf = World::new(&flow(json!({"apiKey": "sk-1"}))).killed_after(1, true).await;
    assert!(!shelf.all()[0].1.contains("sk-1"));
    // A flow that does not have it any more: the run waits for one that does.
    let world = World::over(&flow(json!({})), &shelf);
    let blocked = "run-1 a suspended RUN_BLOCKED: the run cannot go on as it was planned: `m` cannot be built: \
                   the secret in `apiKey` is not recorded, and the flow does not have it";
    assert_eq!(ends(&world.recover().await), [blocked]);
    // To end it takes no secrets.
    let other = shelf_of(&flow(json!({"apiKey": "sk-1"}))).await;
    let without = World::over(&flow(json!({})), &other);
    without.engine.cancel("run-1".into(), "not needed".to_owned()).await.unwrap();
    assert_eq!(other.all()[0].0.status, RunStatus::Failed);
    world.gone().await;
    let world = World::over(&flow(json!({"apiKey": "sk-2"})), &shelf);
    assert_eq!(ends(&world.recover().await), ["run-1 a completed"]);
    assert_eq!(world.watch.done()[0], "built m with \"sk-2\"");
}

#[tokio::test(start_paused = true)]
async fn a_secret_goes_only_where_it_was() {
    let flow = |props: Value, type_name: &str| {
        let mut flow = json!([
            inject(&["a"]),
            agent("a", "m", &[]),
            model_double("m", json!([says("hi")]), with(json!({"hangs": "model"}), props)),
            calculator(),
        ]);
        flow[2]["type"] = json!(type_name);
        flow
    };
    let list = |keys: Value| json!({"headers": keys});
    let one = list(json!([{"token": "sk-1"}, {"token": "sk-2"}]));
    let rows = [
        // The same again.
        (list(json!([{"token": "sk-3"}, {"token": "sk-4"}])), "model.double", None),
        // Which of the two is the one that is left?
        (list(json!([{"token": "sk-2"}])), "model.double", Some("`headers.0.token`")),
        // Another node has taken its id.
        (one.clone(), "scripted-model", Some("`headers.0.token`")),
    ];
    for (now, type_name, blocked) in rows {
        let shelf = shelf_of(&flow(one.clone(), "model.double")).await;
        let end = ends(&World::over(&flow(now, type_name), &shelf).recover().await).remove(0);
        match blocked {
            None => assert_eq!(end, "run-1 a completed"),
            Some(what) => assert!(end.contains("RUN_BLOCKED") && end.contains(what), "{end}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_flow_the_plan_is_enough() {
    let tool = json!({"effect": "idempotent", "hangs": "tool", "timeout": 90_000_000});
    let shelf = World::new(&one_call(tool.clone())).killed_after(1, true).await;
    let world = World::over(&one_call(tool), &shelf);
    let engine = Engine::new(None, world.ports(), EngineLimits::default());
    let reports = engine.resume(vec!["run-1".into()], &world.cancel).await;
    assert_eq!(ends(&reports), ["run-1 a completed"]);
    assert_eq!(world.watch.shown(), [] as [&str; 0]);
    assert!(!shelf.all()[0].0.delivered, "its flow may come yet");
    let again = engine.resume(vec!["run-1".into(), "run-9".into()], &world.cancel).await;
    let unknown = "run-9  suspended RUN_UNKNOWN: there is no such run";
    assert_eq!(ends(&again), ["run-1 a completed", unknown]);
    world.recover().await;
    assert!(shelf.all()[0].0.delivered);
    let again = engine.resume(vec!["run-1".into()], &world.cancel).await;
    assert_eq!(ends(&again), ["run-1  suspended RUN_OVER: the run is over already"]);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_run_is_left_alone_and_the_others_go_on() {
    let flow = json!([
        inject(&["a", "b"]),
        agent("a", "m", &[]),
        agent("b", "m", &[]),
        model_double("m", json!([says("hi")]), json!({"hangs": "model"})),
        calculator(),
    ]);
    let shelf = World::new(&flow).killed_after(1, true).await;
    shelf.damage("run-1");
    let ends = ends(&World::over(&flow, &shelf).recover().await);
    assert_eq!(ends[1], "run-2 b completed");
    let end = &ends[0];
    assert!(end.contains("suspended DATA_CORRUPT: the journal of the run is not what was written"), "{end}");
}
