//! Memories that work after runs, and what they know about a message.

use crate::kit::{
    Buffered, EngineTest, agent, agent_with_tool, build, calculator, debug, ends, final_answer, inject,
    model, model_double, node, only_message, tool_call, tool_double, with,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// An agent with the long memory `mem`, which names `short` and the model `m2`.
fn flow(settings: Value, props: Value) -> Value {
    let named = json!({"shortMemory": "short", "model": "m2", "maintains": true});
    json!([
        inject(&["a"]),
        with(with(agent("a", "m", &["d"]), json!({"memory": "mem"})), settings),
        model_double("m", json!([final_answer("hi"), final_answer("hi"), final_answer("hi")]), json!({})),
        model_double("m2", json!([final_answer("two")]), json!({})),
        calculator(),
        with(with(node("mem", "long-memory", json!([])), named), props),
        node("short", "buffer-memory", json!([])),
        debug("d", "payload"),
    ])
}

fn maintenance_calls(test: &EngineTest) -> Vec<String> {
    let mut calls = test.recorder.calls();
    calls.retain(|call| call.starts_with("maintain") || call.starts_with("dropped maintain"));
    calls
}

#[tokio::test(start_paused = true)]
async fn a_memory_is_built_with_the_services_that_it_names() {
    let test = EngineTest::new(&flow(json!({}), json!({})));
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    let built = ["built m", "built short", "built m2", "built mem", "in flow t"];
    assert_eq!(test.recorder.calls()[..5], built);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_builds_them_from_its_plan() {
    let mut flow = flow(json!({}), json!({"hangs": "append"}));
    let store = EngineTest::new(&flow).crash_after(5, Buffered::Survives).await;
    // The flow has changed since: the agent now has another memory.
    flow[1]["memory"] = json!("short");
    let test = EngineTest::restart(&flow, &store);
    assert_eq!(ends(&test.recover().await), ["run-1 a completed"]);
    let calls = test.recorder.calls();
    let of_plan = calls.iter().position(|call| call == "built mem").unwrap();
    assert_eq!(calls[of_plan - 2..=of_plan + 1], ["built short", "built m2", "built mem", "in flow t"]);
    assert_eq!(maintenance_calls(&test), ["maintain mem t:default Turn"]);
}

/// Inside a subflow instance ids begin with that of the instance. An id that only ends alike is another node.
#[tokio::test(start_paused = true)]
async fn a_resumed_run_does_not_mix_up_ids_that_end_alike() {
    let flow = flow(json!({}), json!({"hangs": "append"})).to_string().replace("\"mem\"", "\"long-short\"");
    let flow: Value = serde_json::from_str(&flow).unwrap();
    let store = EngineTest::new(&flow).crash_after(5, Buffered::Survives).await;
    let mut changed = flow;
    changed[1]["memory"] = json!("short");
    let test = EngineTest::restart(&changed, &store);
    assert_eq!(ends(&test.recover().await), ["run-1 a completed"]);
    assert_eq!(maintenance_calls(&test), ["maintain long-short t:default Turn"]);
}

#[tokio::test(start_paused = true)]
async fn no_run_waits_for_the_work_of_its_memory() {
    let test = EngineTest::new(&flow(json!({}), json!({"maintenanceSeconds": 100})));
    let before = tokio::time::Instant::now();
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    assert!(before.elapsed() < Duration::from_secs(50), "the memory works for 100 s");
    test.fire().await;
    assert_eq!(maintenance_calls(&test), ["maintain mem t:default Turn"], "one conversation is in work once");
    sleep(Duration::from_secs(250)).await;
    let twice = ["maintain mem t:default Turn", "maintained t:default"].repeat(2);
    assert_eq!(maintenance_calls(&test), twice);
    assert_eq!(
        test.recorder.flow_lines().iter().filter(|line| line.starts_with("mem")).collect::<Vec<_>>(),
        ["mem consolidated +1", "mem consolidated +1"]
    );
}

#[tokio::test(start_paused = true)]
async fn two_memories_work_at_the_same_time() {
    let test =
        EngineTest::new(&flow(json!({"sessionId": "{{json.user}}"}), json!({"maintenanceSeconds": 100})));
    for user in ["a", "b", "c"] {
        test.fire_with(json!({"user": user})).await;
    }
    assert_eq!(maintenance_calls(&test), ["maintain mem t:a Turn", "maintain mem t:b Turn"]);
    sleep(Duration::from_secs(101)).await;
    assert_eq!(maintenance_calls(&test)[4..], ["maintain mem t:c Turn"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_asks_the_memory_to_consolidate() {
    let mut asks = flow(json!({}), json!({}));
    asks[0]["props"].as_array_mut().unwrap().push(json!({"p": "memory", "v": "consolidate", "vt": "str"}));
    let test = EngineTest::new(&asks);
    let message = only_message(&test.fire().await);
    assert_eq!(message["payload"], "hi", "the run goes on as usual");
    assert_eq!(maintenance_calls(&test), ["maintain mem t:default Request"]);
    // Without a payload no run begins.
    assert_eq!(test.fire_with(json!("")).await.len(), 0);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(
        maintenance_calls(&test),
        ["maintain mem t:default Request", "maintain mem t:default Request"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_memory_works_when_a_conversation_is_idle() {
    let test = EngineTest::new(&flow(json!({}), json!({"idleSeconds": 600})));
    test.fire().await;
    sleep(Duration::from_secs(500)).await;
    test.fire().await;
    sleep(Duration::from_secs(500)).await;
    let turns = ["maintain mem t:default Turn", "maintain mem t:default Turn"];
    assert_eq!(maintenance_calls(&test), turns, "the second turn has set the timer anew");
    sleep(Duration::from_secs(200)).await;
    assert_eq!(maintenance_calls(&test)[2..], ["maintain mem t:default Time"]);
    sleep(Duration::from_secs(5_000)).await;
    assert_eq!(maintenance_calls(&test).len(), 3, "once");
}

#[tokio::test(start_paused = true)]
async fn a_memory_works_by_its_schedule_and_after_a_deploy() {
    let test = EngineTest::new(&flow(json!({}), json!({"schedule": "0 * * * *", "idleSeconds": 60})));
    test.engine.begin_schedules().await;
    sleep(Duration::from_secs(3_600)).await;
    assert_eq!(
        maintenance_calls(&test),
        ["maintain mem all Time", "maintain mem all Time"],
        "when idle, and by the schedule"
    );
    test.engine.deploy(build(&flow(json!({}), json!({"schedule": "never", "idleSeconds": 60})))).await;
    sleep(Duration::from_secs(7_200)).await;
    assert_eq!(maintenance_calls(&test).len(), 3, "an earlier process may have left turns");
    let problem = "mem uncaught CONFIG_INVALID #1";
    assert!(test.recorder.flow_lines().iter().any(|line| line == problem));
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_the_work_is_reported() {
    let failure = json!({"code": "MEMORY_ERROR", "message": "The model is offline."});
    let rows = [
        (json!({"maintenanceFails": failure}), "mem consolidated +1 The model is offline."),
        (json!({"panics": "maintain"}), "mem consolidated +0 the memory crashed while it worked"),
        (json!({"hangs": "maintain"}), "mem consolidated +0 the memory did not end its work in time"),
    ];
    for (props, expected) in rows {
        let test = EngineTest::new(&flow(json!({}), props));
        assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
        sleep(Duration::from_secs(601)).await;
        let lines = test.recorder.flow_lines();
        assert!(lines.iter().any(|line| line == expected), "{lines:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_the_work_as_long_as_it_may() {
    for (drain, expected) in [(200, "maintained t:default"), (50, "maintain mem t:default Turn")] {
        let test = EngineTest::new(&flow(json!({}), json!({"maintenanceSeconds": 100})));
        test.fire().await;
        let before = tokio::time::Instant::now();
        test.engine.shutdown(Duration::from_secs(drain)).await;
        assert_eq!(before.elapsed().as_secs(), drain.min(100));
        assert_eq!(maintenance_calls(&test).last().unwrap(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_memory_knows_whose_message_it_is() {
    let source = json!({"kind": "memory", "ref": "t/mem#1", "trust": "user"});
    let settings =
        json!({"userId": "{{json.user}}", "inputTime": "{{json.at}}", "inputTags": "bug, {{msg.topic}}"});
    let test = EngineTest::new(&flow(settings, json!({"sources": [source]})));
    let payload = json!({"user": "Ada", "at": "2026-11-17T08:00:00Z", "text": "it is broken"});
    let message = only_message(&test.fire_with(payload).await);
    let of_memory: Vec<String> =
        test.recorder.calls().into_iter().filter(|call| call.contains(" of ")).collect();
    let text = r#"{"user":"Ada","at":"2026-11-17T08:00:00Z","text":"it is broken"}"#;
    let tags = r#"["bug", "sums"]"#;
    assert_eq!(
        of_memory,
        [
            format!("recall mem t:default of Ada {tags} at 1794902400000: {text}"),
            format!(
                "append mem t:default of Ada {tags} at 1794902400000 after 1 run-1 user: {text} | assistant: hi"
            ),
        ]
    );
    assert_eq!(
        message["envelope"]["provenance"],
        json!([source]),
        "what was recalled is named in the result"
    );
}

/// The calls of memories, with whose message it is.
fn users(test: &EngineTest) -> Vec<String> {
    let calls = test.recorder.calls().into_iter().filter(|call| call.contains(" of "));
    calls.map(|call| call.split(" [").next().unwrap().to_owned()).collect()
}

/// Two agents with a memory; `b` names no user, and `c` names another one.
fn readers() -> [Value; 6] {
    let of_memory = |id: &str, model: &str| with(agent(id, model, &["d"]), json!({"memory": "mem"}));
    [
        of_memory("b", "mb"),
        with(of_memory("c", "mc"), json!({"userId": "Eve", "sessionId": "c"})),
        model("mb", json!([final_answer("read")])),
        model("mc", json!([final_answer("read")])),
        node("mem", "buffer-memory", json!([])),
        calculator(),
    ]
}

/// The words of a user go on with the messages of a run: another memory must know whose they are, or they could not be
/// forgotten.
#[tokio::test(start_paused = true)]
async fn a_run_that_another_run_has_started_has_its_user() {
    let expected = [
        "recall mem t:default of Ada",
        "append mem t:default of Ada",
        "recall mem t:c of Eve",
        "append mem t:c of Eve",
    ];
    let settings = json!({"userId": "{{json.user}}"});
    let by_wire = json!([
        inject(&["a"]),
        with(agent("a", "m", &["b", "c"]), settings.clone()),
        model("m", json!([final_answer("hi")])),
        debug("d", "payload"),
    ]);
    let by_resumed_run = json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &["b", "c"]), settings.clone()),
        model("m", json!([tool_call("t", json!({"x": 1})), final_answer("hi")])),
        tool_double(json!({"effect": "read", "hangs": "tool", "timeout": 90_000_000})),
        debug("d", "payload"),
    ]);
    // The run is refused, and its message has the words all the same.
    let by_refused_run = json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &["b", "c"]), settings.clone()),
        model("m", json!([final_answer("hi")])),
        with(node("t", "registry-tool", json!([])), json!({"ids": ["weather.now"]})),
        debug("d", "payload"),
    ]);
    let by_flow_tool = json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &["d"]), settings),
        model("m", json!([tool_call("t", json!({"x": 1})), final_answer("hi")])),
        with(node("t", "node.double", json!([["b", "c", "a"]])), json!({"effect": "read"})),
        // Else only calls reach the tool, and what it sends to an agent is a reply.
        with(inject(&["t"]), json!({"id": "other"})),
        debug("d", "payload"),
    ]);
    let ways = [
        ("wire", by_wire),
        ("resumed run", by_resumed_run),
        ("flow tool", by_flow_tool),
        ("refused run", by_refused_run),
    ];
    for (way, mut flow) in ways {
        flow.as_array_mut().unwrap().extend(readers());
        let payload = json!({"user": "Ada"});
        let mut test = EngineTest::new(&flow);
        if way == "resumed run" {
            flow[0]["payload"] = json!(payload.to_string());
            flow[0]["payloadType"] = json!("json");
            let store = EngineTest::new(&flow).crash_after(1, Buffered::Survives).await;
            test = EngineTest::restart(&flow, &store);
            let ended = ends(&test.recover().await);
            assert_eq!(ended.len(), 3, "{ended:?}");
        } else {
            let ended = ends(&test.fire_with(payload).await);
            let is_expected = |end: &String| {
                end.ends_with("completed")
                    || (way == "refused run" && end.ends_with("a refused TOOL_UNAVAILABLE"))
            };
            assert!(ended.iter().all(is_expected), "{way}: {ended:?}");
        }
        let mut users = users(&test);
        users.sort_by_key(|call| call.contains("Eve"));
        assert_eq!(users, expected, "{way}");
    }
}
