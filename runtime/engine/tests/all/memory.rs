//! Memory: recalled before the first call, written after the last, and never worth a run.

use crate::kit::{
    World, actions, agent, asks, calculator, check, debug, ends, inject, model, model_double, node,
    only_message, prose, says, with,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// An agent that binds the memory `mem`; `settings` are the agent's own, `props` the memory's.
fn flow(replies: Value, settings: Value, props: Value) -> Value {
    json!([
        inject(&["a"]),
        with(with(agent("a", "m", &["d"]), json!({"memory": "mem", "timeout": 5000})), settings),
        model_double("m", replies, json!({})),
        calculator(),
        with(node("mem", "buffer-memory", json!([])), props),
        debug("d", "payload"),
    ])
}

const SAID: &str = "append mem t:default run-1 user: go | assistant: hi";

#[tokio::test(start_paused = true)]
async fn recalled_before_and_appended_after() {
    let turns = json!([{"role": "user", "content": "hello"}, {"role": "assistant", "content": "good day"}]);
    let world = World::new(&flow(json!([says("hi")]), json!({"debug": true}), json!({"turns": turns})));
    let message = only_message(&world.fire().await);
    assert_eq!(world.watch.done(), ["built m", "built mem", "recall mem t:default", "model m 1", SAID]);
    assert_eq!(message["envelope"]["memory"], json!({"sessionId": "t:default", "messages": turns}));
    let prompt = message["envelope"]["model"]["lastPrompt"].as_str().unwrap();
    assert!(prompt.ends_with("\n\nuser: hello\n\nassistant: good day\n\nuser: go"), "{prompt}");
    assert_eq!(actions(&message), ["model_response", "completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_failing_memory_costs_no_answer() {
    let failure = json!({"code": "MEMORY_ERROR", "message": "The store is away."});
    let rows = [
        (json!({"recallFails": failure}), ["memory_error", "model_response", "completed"], SAID),
        (json!({"appendFails": failure}), ["model_response", "memory_error", "completed"], SAID),
        (json!({"hangs": "append"}), ["model_response", "completed", ""], "dropped append mem"),
    ];
    for (props, expected, last) in rows {
        let world = World::new(&flow(json!([says("hi")]), json!({}), props.clone()));
        let reports = world.fire().await;
        assert_eq!(ends(&reports), ["run-1 a completed"], "{props}");
        let message = only_message(&reports);
        assert_eq!(message["payload"], "hi");
        let expected: Vec<&str> = expected.into_iter().filter(|action| !action.is_empty()).collect();
        assert_eq!(actions(&message), expected, "{props}");
        let events = message["envelope"]["observability"]["events"].as_array().unwrap();
        let errors: Vec<&Value> = events.iter().filter_map(|event| event.get("error")).collect();
        assert!(errors.iter().all(|error| **error == failure), "{errors:?}");
        assert_eq!(world.watch.done().last().unwrap(), last, "{props}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_memory_that_hangs_at_first_is_the_deadlines_business() {
    let world = World::new(&flow(json!([says("hi")]), json!({}), json!({"hangs": "recall"})));
    assert_eq!(ends(&world.fire().await), ["run-1 a failed TIMEOUT"]);
    let done = ["built m", "built mem", "recall mem t:default", "dropped recall mem"];
    assert_eq!(world.watch.done(), done);
}

#[tokio::test(start_paused = true)]
async fn only_a_final_answer_is_remembered() {
    let sum = asks("calculator", json!({"expression": "1"}));
    let stop = json!({"stopConditions": [{"type": "iteration_limit", "value": 1}]});
    let rows = [
        (json!([sum]), stop, "run-1 a stopped"),
        (json!([prose()]), json!({}), "run-1 a failed INVALID_JSON"),
        (json!([sum]), json!({"maxIterations": 1}), "run-1 a failed ITERATION_OVERFLOW"),
    ];
    for (replies, settings, end) in rows {
        let world = World::new(&flow(replies, settings, json!({})));
        assert_eq!(ends(&world.fire().await), [end]);
        let done = ["built m", "built mem", "recall mem t:default", "model m 1"];
        assert_eq!(world.watch.done(), done, "{end}");
    }
}

/// The agent's `sessionId`, then the message's, then the memory's, then `default`: always by tab.
#[tokio::test(start_paused = true)]
async fn whose_conversation_it_is() {
    let rows = [
        (json!({"sessionId": "desk"}), "msg", json!({"sessionId": "own"}), "t:desk"),
        (json!({"sessionId": "{{msg.topic}}-{{json.user}}"}), "msg", json!({}), "t:sums-Ada"),
        (json!({}), "msg", json!({"sessionId": "own"}), "t:msg"),
        (json!({}), "", json!({"sessionId": "own"}), "t:own"),
        (json!({}), "", json!({}), "t:default"),
    ];
    for (settings, sent, props, key) in rows {
        let mut flow = flow(json!([says("hi")]), settings.clone(), props.clone());
        flow[0]["props"].as_array_mut().unwrap().push(json!({"p": "sessionId", "v": sent, "vt": "str"}));
        let world = World::new(&flow);
        let message = only_message(&world.fire_with(json!({"user": "Ada"})).await);
        assert_eq!(message["envelope"]["memory"]["sessionId"], key, "{settings} {sent} {props}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_memory_keeps_two_tabs_apart() {
    let elsewhere = |node: Value| with(node, json!({"z": "u"}));
    let inner = |node: Value| with(node, json!({"z": "sf"}));
    let remembers = json!({"memory": "mem"});
    let flow = json!([
        inject(&["a", "b", "box"]),
        with(agent("a", "m", &[]), remembers.clone()),
        with(elsewhere(agent("b", "m", &[])), remembers.clone()),
        {"id": "sf", "type": "subflow", "name": "sf", "in": [{"wires": [{"id": "c"}]}], "out": []},
        with(inner(agent("c", "m", &[])), remembers),
        elsewhere(node("box", "subflow:sf", json!([]))),
        with(node("mem", "buffer-memory", json!([])), json!({"sessionId": "s"})),
        model("m", json!([says("hi")])),
        calculator(),
    ]);
    let completed = ["run-1 a completed", "run-2 b completed", "run-3 box-c completed"];
    let world = check(flow, &completed, &[]).await;
    let mut asked: Vec<String> =
        world.watch.done().into_iter().filter(|line| line.starts_with("recall")).collect();
    asked.sort_unstable();
    assert_eq!(asked, ["recall mem t:s", "recall mem u:s", "recall mem u:s"]);
}

/// An inject that asks for the conversation to be forgotten, with this payload.
fn clears(payload: Value) -> Value {
    let props = json!([{"p": "memory", "v": "clear", "vt": "str"}, {"p": "payload"}]);
    with(
        node("i", "inject", json!([["a"]])),
        json!({"props": props, "payload": payload, "payloadType": "str"}),
    )
}

#[tokio::test(start_paused = true)]
async fn a_message_can_begin_anew() {
    let turns = json!([{"role": "user", "content": "hello"}]);
    let mut flow = flow(json!([says("hi")]), json!({}), json!({"turns": turns}));
    flow[0] = clears(json!("go"));
    let world = World::new(&flow);
    let reports = world.fire().await;
    assert_eq!(ends(&reports), ["run-1 a completed"]);
    assert_eq!(world.watch.done(), ["built m", "built mem", "clear mem t:default", "model m 1", SAID]);
    let message = only_message(&reports);
    assert_eq!(message["envelope"]["memory"], json!({"sessionId": "t:default", "messages": []}));
    assert_eq!(message.get("memory"), None, "the next agent must not forget as well");
    let kinds: Vec<Value> =
        world.watch.run_events().iter().map(|event| json!(event.event)["type"].clone()).collect();
    assert_eq!(kinds[1], "memory_cleared");
}

#[tokio::test(start_paused = true)]
async fn a_message_without_a_payload_only_clears() {
    let mut flow = flow(json!([says("hi")]), json!({}), json!({}));
    flow[0] = clears(json!(""));
    let world = World::new(&flow);
    assert!(world.fire().await.is_empty());
    assert_eq!(world.watch.done(), ["built m", "built mem", "clear mem t:default"]);
    assert_eq!(world.watch.shown(), ["a forgot"]);
}

#[tokio::test(start_paused = true)]
async fn a_memory_that_cannot_forget_tells_the_catch_nodes() {
    let failure = json!({"code": "MEMORY_ERROR", "message": "The store is away."});
    for props in [json!({"clearFails": failure}), json!({"hangs": "clear"}), json!({"panics": "clear"})] {
        let mut flow = flow(json!([says("hi")]), json!({}), props.clone());
        flow[0] = clears(json!(""));
        let world = World::new(&flow);
        assert!(world.fire().await.is_empty());
        assert_eq!(world.watch.shown(), ["a uncaught MEMORY_ERROR #1"], "{props}");
    }
    // A run goes on without its history, and says so.
    let mut flow = flow(json!([says("hi")]), json!({}), json!({"clearFails": failure}));
    flow[0] = clears(json!("go"));
    let message = only_message(&World::new(&flow).fire().await);
    assert_eq!(actions(&message), ["memory_error", "model_response", "completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_clear_that_a_crash_interrupted_is_made_again() {
    let mut flow = flow(json!([says("hi")]), json!({}), json!({"hangs": "clear"}));
    flow[0] = clears(json!("go"));
    let shelf = World::new(&flow).killed_after(1, true).await;
    let world = World::over(&flow, &shelf);
    assert_eq!(ends(&world.recover().await), ["run-1 a completed"]);
    assert!(world.watch.done().contains(&"clear mem t:default".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_clear_that_hangs_can_be_cancelled() {
    let mut flow = flow(json!([says("hi")]), json!({}), json!({"hangs": "clear"}));
    flow[0] = clears(json!(""));
    let world = World::new(&flow);
    let cancel = async {
        // Long enough for the memory to be asked, and too short for it to be given up.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(world.watch.done().last().unwrap(), "clear mem t:default");
        world.cancel.cancel();
    };
    let (reports, ()) = tokio::join!(world.fire(), cancel);
    assert!(reports.is_empty());
    assert_eq!(world.watch.done().last().unwrap(), "dropped clear mem");
    assert_eq!(world.watch.shown(), ["a uncaught CANCELLED #1"]);
}

#[tokio::test(start_paused = true)]
async fn the_memorys_session_may_stand_in_its_options() {
    let world = World::new(&flow(json!([says("hi")]), json!({}), json!({"options": {"sessionId": "opt"}})));
    let message = only_message(&world.fire().await);
    assert_eq!(message["envelope"]["memory"]["sessionId"], "t:opt");
}
