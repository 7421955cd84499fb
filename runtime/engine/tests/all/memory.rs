//! Memory: recalled before the first call, appended after the last. Its failure does not fail a run.

use crate::kit::{
    Buffered, EngineTest, actions, agent, calculator, check, debug, ends, final_answer, inject, model,
    model_double, node, not_json, only_message, tool_call, with,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// An agent with the memory `mem`; `settings` are properties of the agent, `props` of the memory.
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

const APPENDED: &str = "append mem t:default run-1 user: go | assistant: hi";

#[tokio::test(start_paused = true)]
async fn recalls_before_the_first_call_and_appends_after_the_last() {
    let turns = json!([{"role": "user", "content": "hello"}, {"role": "assistant", "content": "good day"}]);
    let test =
        EngineTest::new(&flow(json!([final_answer("hi")]), json!({"debug": true}), json!({"turns": turns})));
    let message = only_message(&test.fire().await);
    assert_eq!(
        test.recorder.calls(),
        ["built m", "built mem", "recall mem t:default", "model m 1", APPENDED]
    );
    assert_eq!(message["envelope"]["memory"], json!({"sessionId": "t:default", "messages": turns}));
    let prompt = message["envelope"]["model"]["lastPrompt"].as_str().unwrap();
    assert!(prompt.ends_with("\n\nuser: hello\n\nassistant: good day\n\nuser: go"), "{prompt}");
    assert_eq!(actions(&message), ["model_response", "completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_failing_memory_does_not_fail_the_run() {
    let failure = json!({"code": "MEMORY_ERROR", "message": "The store is offline."});
    let rows = [
        (json!({"recallFails": failure}), ["memory_error", "model_response", "completed"], APPENDED),
        (json!({"appendFails": failure}), ["model_response", "memory_error", "completed"], APPENDED),
        (json!({"hangs": "append"}), ["model_response", "completed", ""], "dropped append mem"),
    ];
    for (props, expected, last) in rows {
        let test = EngineTest::new(&flow(json!([final_answer("hi")]), json!({}), props.clone()));
        let reports = test.fire().await;
        assert_eq!(ends(&reports), ["run-1 a completed"], "{props}");
        let message = only_message(&reports);
        assert_eq!(message["payload"], "hi");
        let expected: Vec<&str> = expected.into_iter().filter(|action| !action.is_empty()).collect();
        assert_eq!(actions(&message), expected, "{props}");
        let events = message["envelope"]["observability"]["events"].as_array().unwrap();
        let errors: Vec<&Value> = events.iter().filter_map(|event| event.get("error")).collect();
        assert!(errors.iter().all(|error| **error == failure), "{errors:?}");
        assert_eq!(test.recorder.calls().last().unwrap(), last, "{props}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hanging_recall_ends_at_the_deadline() {
    let test = EngineTest::new(&flow(json!([final_answer("hi")]), json!({}), json!({"hangs": "recall"})));
    assert_eq!(ends(&test.fire().await), ["run-1 a failed TIMEOUT"]);
    let done = ["built m", "built mem", "recall mem t:default", "dropped recall mem"];
    assert_eq!(test.recorder.calls(), done);
}

#[tokio::test(start_paused = true)]
async fn appends_only_final_answers() {
    let sum = tool_call("calculator", json!({"expression": "1"}));
    let stop = json!({"stopConditions": [{"type": "iteration_limit", "value": 1}]});
    let rows = [
        (json!([sum]), stop, "run-1 a stopped"),
        (json!([not_json()]), json!({}), "run-1 a failed INVALID_JSON"),
        (json!([sum]), json!({"maxIterations": 1}), "run-1 a failed ITERATION_OVERFLOW"),
    ];
    for (replies, settings, end) in rows {
        let test = EngineTest::new(&flow(replies, settings, json!({})));
        assert_eq!(ends(&test.fire().await), [end]);
        let done = ["built m", "built mem", "recall mem t:default", "model m 1"];
        assert_eq!(test.recorder.calls(), done, "{end}");
    }
}

/// The `sessionId` of the agent wins, then of the message, then of the memory, then `default`; the tab is
/// always part of it.
#[tokio::test(start_paused = true)]
async fn chooses_the_session_by_agent_message_and_memory() {
    let rows = [
        (json!({"sessionId": "desk"}), "msg", json!({"sessionId": "own"}), "t:desk"),
        (json!({"sessionId": "{{msg.topic}}-{{json.user}}"}), "msg", json!({}), "t:sums-Ada"),
        (json!({}), "msg", json!({"sessionId": "own"}), "t:msg"),
        (json!({}), "", json!({"sessionId": "own"}), "t:own"),
        (json!({}), "", json!({}), "t:default"),
    ];
    for (settings, sent, props, key) in rows {
        let mut flow = flow(json!([final_answer("hi")]), settings.clone(), props.clone());
        flow[0]["props"].as_array_mut().unwrap().push(json!({"p": "sessionId", "v": sent, "vt": "str"}));
        let test = EngineTest::new(&flow);
        let message = only_message(&test.fire_with(json!({"user": "Ada"})).await);
        assert_eq!(message["envelope"]["memory"]["sessionId"], key, "{settings} {sent} {props}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_memory_separates_tabs() {
    let elsewhere = |node: Value| with(node, json!({"z": "u"}));
    let inner = |node: Value| with(node, json!({"z": "sf"}));
    let with_memory = json!({"memory": "mem"});
    let flow = json!([
        inject(&["a", "b", "box"]),
        with(agent("a", "m", &[]), with_memory.clone()),
        with(elsewhere(agent("b", "m", &[])), with_memory.clone()),
        {"id": "sf", "type": "subflow", "name": "sf", "in": [{"wires": [{"id": "c"}]}], "out": []},
        with(inner(agent("c", "m", &[])), with_memory),
        elsewhere(node("box", "subflow:sf", json!([]))),
        with(node("mem", "buffer-memory", json!([])), json!({"sessionId": "s"})),
        model("m", json!([final_answer("hi")])),
        calculator(),
    ]);
    let completed = ["run-1 a completed", "run-2 b completed", "run-3 box-c completed"];
    let test = check(flow, &completed, &[]).await;
    let mut recalls: Vec<String> =
        test.recorder.calls().into_iter().filter(|line| line.starts_with("recall")).collect();
    recalls.sort_unstable();
    assert_eq!(recalls, ["recall mem t:s", "recall mem u:s", "recall mem u:s"]);
}

/// An inject node that clears the memory, with this payload.
fn clear_inject(payload: Value) -> Value {
    let props = json!([{"p": "memory", "v": "clear", "vt": "str"}, {"p": "payload"}]);
    with(
        node("i", "inject", json!([["a"]])),
        json!({"props": props, "payload": payload, "payloadType": "str"}),
    )
}

#[tokio::test(start_paused = true)]
async fn a_message_can_clear_the_memory_and_start_a_run() {
    let turns = json!([{"role": "user", "content": "hello"}]);
    let mut flow = flow(json!([final_answer("hi")]), json!({}), json!({"turns": turns}));
    flow[0] = clear_inject(json!("go"));
    let test = EngineTest::new(&flow);
    let reports = test.fire().await;
    assert_eq!(ends(&reports), ["run-1 a completed"]);
    assert_eq!(test.recorder.calls(), ["built m", "built mem", "clear mem t:default", "model m 1", APPENDED]);
    let message = only_message(&reports);
    assert_eq!(message["envelope"]["memory"], json!({"sessionId": "t:default", "messages": []}));
    assert_eq!(message.get("memory"), None, "the next agent must not clear its memory too");
    let kinds: Vec<Value> =
        test.recorder.run_events().iter().map(|event| json!(event.event)["type"].clone()).collect();
    assert_eq!(kinds[1], "memory_cleared");
}

#[tokio::test(start_paused = true)]
async fn a_message_without_a_payload_only_clears_the_memory() {
    let mut flow = flow(json!([final_answer("hi")]), json!({}), json!({}));
    flow[0] = clear_inject(json!(""));
    let test = EngineTest::new(&flow);
    assert!(test.fire().await.is_empty());
    assert_eq!(test.recorder.calls(), ["built m", "built mem", "clear mem t:default"]);
    assert_eq!(test.recorder.flow_lines(), ["a memory cleared"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_clear_goes_to_the_catch_nodes() {
    let failure = json!({"code": "MEMORY_ERROR", "message": "The store is offline."});
    for props in [json!({"clearFails": failure}), json!({"hangs": "clear"}), json!({"panics": "clear"})] {
        let mut flow = flow(json!([final_answer("hi")]), json!({}), props.clone());
        flow[0] = clear_inject(json!(""));
        let test = EngineTest::new(&flow);
        assert!(test.fire().await.is_empty());
        assert_eq!(test.recorder.flow_lines(), ["a uncaught MEMORY_ERROR #1"], "{props}");
    }
    // A run continues without its history and reports the error.
    let mut flow = flow(json!([final_answer("hi")]), json!({}), json!({"clearFails": failure}));
    flow[0] = clear_inject(json!("go"));
    let message = only_message(&EngineTest::new(&flow).fire().await);
    assert_eq!(actions(&message), ["memory_error", "model_response", "completed"]);
}

#[tokio::test(start_paused = true)]
async fn repeats_a_clear_after_a_crash() {
    let mut flow = flow(json!([final_answer("hi")]), json!({}), json!({"hangs": "clear"}));
    flow[0] = clear_inject(json!("go"));
    let store = EngineTest::new(&flow).crash_after(1, Buffered::Survives).await;
    let test = EngineTest::restart(&flow, &store);
    assert_eq!(ends(&test.recover().await), ["run-1 a completed"]);
    assert!(test.recorder.calls().contains(&"clear mem t:default".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn cancels_a_hanging_clear() {
    let mut flow = flow(json!([final_answer("hi")]), json!({}), json!({"hangs": "clear"}));
    flow[0] = clear_inject(json!(""));
    let test = EngineTest::new(&flow);
    let cancel = async {
        // Long enough for the call of the memory, and shorter than its time limit.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(test.recorder.calls().last().unwrap(), "clear mem t:default");
        test.cancel.cancel();
    };
    let (reports, ()) = tokio::join!(test.fire(), cancel);
    assert!(reports.is_empty());
    assert_eq!(test.recorder.calls().last().unwrap(), "dropped clear mem");
    assert_eq!(test.recorder.flow_lines(), ["a uncaught CANCELLED #1"]);
}

#[tokio::test(start_paused = true)]
async fn reads_the_session_from_the_options_of_the_memory() {
    let test = EngineTest::new(&flow(
        json!([final_answer("hi")]),
        json!({}),
        json!({"options": {"sessionId": "opt"}}),
    ));
    let message = only_message(&test.fire().await);
    assert_eq!(message["envelope"]["memory"]["sessionId"], "t:opt");
}
