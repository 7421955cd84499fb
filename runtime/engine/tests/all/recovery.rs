//! After a crash the next process continues a run, waits for a person, or ends the run with a code.

use crate::kit::{
    Buffered, EngineTest, agent, agent_with_tool, calculator, debug, ends, final_answer, inject, model,
    model_double, node, only_message, tool_call, tool_double, with,
};
use crate::test_store::TestStore;
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
        model("m", json!([tool_call("t", json!({"x": 1})), final_answer("done")])),
        tool_double(tool),
        debug("d", "payload"),
    ])
}

/// Recovers in a second process, in which the tool answers.
async fn recover_one_call(tool: Value, store: &Arc<TestStore>) -> (Vec<String>, EngineTest) {
    let test = EngineTest::restart(&one_call(tool), store);
    (ends(&test.recover().await), test)
}

#[tokio::test(start_paused = true)]
async fn repeats_calls_with_the_same_key() {
    for class in ["read", "idempotent"] {
        let tool = json!({"effect": class, "showsKey": true, "hangs": "tool", "timeout": 90_000_000});
        let test = EngineTest::new(&one_call(tool.clone()));
        let recorder = Arc::clone(&test.recorder);
        let store = test.crash_after(1, Buffered::Survives).await;
        let first = recorder.calls();
        assert_eq!(first.len(), 3, "{first:?}");
        let (ends, test) = recover_one_call(tool, &store).await;
        assert_eq!(ends, ["run-1 a completed"], "{class}");
        assert_eq!(test.recorder.calls(), first[..2]);
        assert_eq!(test.recorder.flow_lines(), ["d: \"done\""]);
    }
}

#[tokio::test(start_paused = true)]
async fn repeats_a_step_that_was_only_buffered() {
    // The crash loses the answer that calls a `read` tool, so the model is called again.
    let tool = json!({"effect": "read", "hangs": "tool", "timeout": 90_000_000});
    let store = EngineTest::new(&one_call(tool.clone())).crash_after(1, Buffered::Lost).await;
    let (ends, test) = recover_one_call(tool, &store).await;
    assert_eq!(ends, ["run-1 a completed"]);
    assert_eq!(test.recorder.calls(), ["built t", "tool t {\"x\":1}"]);
}

#[tokio::test(start_paused = true)]
async fn never_repeats_an_at_most_once_call() {
    let tool = json!({"effect": "at_most_once", "hangs": "tool", "timeout": 90_000_000});
    for buffered in [Buffered::Survives, Buffered::Lost] {
        let store = EngineTest::new(&one_call(tool.clone())).crash_after(1, buffered).await;
        let (ends, test) = recover_one_call(tool.clone(), &store).await;
        assert_eq!(ends, ["run-1 a waiting run-1:1 t 1"]);
        assert_eq!(test.recorder.calls(), ["built t"]);
        assert_eq!(test.recorder.flow_lines(), [] as [&str; 0], "nothing leaves port 3");
        // It waits for a person, however often the process restarts.
        test.kill().await;
        let (ends, test) = recover_one_call(tool.clone(), &store).await;
        assert_eq!((ends.len(), test.recorder.calls()), (0, vec!["built t".to_owned()]));
        assert_eq!(store.runs()[0].0.status, RunStatus::Waiting);
    }
}

#[tokio::test(start_paused = true)]
async fn fails_a_run_whose_tool_does_not_wait() {
    let tool =
        json!({"onUnknown": "fail", "ownEffect": "at_most_once", "hangs": "tool", "timeout": 90_000_000});
    let store = EngineTest::new(&one_call(tool.clone())).crash_after(1, Buffered::Survives).await;
    let test = EngineTest::restart(&one_call(tool), &store);
    let reports = test.recover().await;
    assert_eq!(ends(&reports), ["run-1 a failed TOOL_OUTCOME_UNKNOWN"]);
    let call = &only_message(&reports)["envelope"]["tools"]["history"][0];
    assert_eq!((&call["outcome"], &call["success"]), (&json!("unknown"), &json!(false)));
    assert_eq!(test.recorder.calls(), ["built t"]);
}

/// A run with a memory that hangs as `props` say.
fn with_memory(props: Value) -> Value {
    json!([
        inject(&["a"]),
        with(agent("a", "m", &["d"]), json!({"memory": "mem"})),
        model_double("m", json!([final_answer("hi")]), json!({})),
        calculator(),
        with(node("mem", "buffer-memory", json!([])), props),
        debug("d", "payload"),
    ])
}

#[tokio::test(start_paused = true)]
async fn repeats_model_and_memory_calls() {
    let append = "append mem t:default run-1 user: go | assistant: hi";
    let rows = [("recall", vec!["recall mem t:default", "model m 1", append]), ("append", vec![append])];
    for (hangs, expected) in rows {
        let store =
            EngineTest::new(&with_memory(json!({"hangs": hangs}))).crash_after(1, Buffered::Survives).await;
        let test = EngineTest::restart(&with_memory(json!({"hangs": hangs})), &store);
        assert_eq!(ends(&test.recover().await), ["run-1 a completed"]);
        let done: Vec<String> =
            test.recorder.calls().into_iter().filter(|line| !line.starts_with("built")).collect();
        assert_eq!(done, expected, "{hangs}");
        assert_eq!(test.recorder.flow_lines(), ["d: \"hi\""]);
    }
}

/// Two agents in a row; `second` is the model of the second one.
fn two_agents(second: Value) -> Value {
    json!([
        inject(&["a"]),
        agent("a", "m", &["j", "d"]),
        node("j", "junction", json!([["b"]])),
        agent("b", "m2", &["d"]),
        model("m", json!([final_answer("one")])),
        second,
        calculator(),
        debug("d", "payload"),
    ])
}

#[tokio::test(start_paused = true)]
async fn resends_an_undelivered_result_without_starting_a_run_twice() {
    let flow = two_agents(model_double("m2", json!([final_answer("two")]), json!({"hangs": "model"})));
    // The result of the first run was delivered, so only the second run continues.
    let store = EngineTest::new(&flow).crash_after(1, Buffered::Survives).await;
    assert_eq!(store.runs()[1].2.as_deref(), Some("run-1:2:b:1"));
    let test = EngineTest::restart(&flow, &store);
    assert_eq!(ends(&test.recover().await), ["run-2 b completed"]);
    assert_eq!(test.recorder.flow_lines(), ["d: \"two\""]);
    // The delivery was not stored: the result is sent again, but the run it set off exists already.
    let store = EngineTest::new(&flow).crash_after(1, Buffered::Lost).await;
    let test = EngineTest::restart(&flow, &store);
    assert_eq!(ends(&test.recover().await), ["run-1 a completed", "run-2 b completed"]);
    assert_eq!(test.recorder.flow_lines(), ["d: \"one\"", "d: \"two\""]);
    assert_eq!(store.runs().len(), 2);
    // Now all runs are over and delivered.
    test.kill().await;
    assert_eq!(ends(&EngineTest::restart(&flow, &store).recover().await), [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn resends_a_model_response_without_starting_a_run_twice() {
    let flow = json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &[]), json!({"wires": [["m"], ["t"], [], [], ["b"]]})),
        agent("b", "m2", &["d"]),
        model("m", json!([tool_call("t", json!({})), final_answer("done")])),
        model("m2", json!([final_answer("seen")])),
        tool_double(json!({"effect": "idempotent", "hangs": "tool", "timeout": 90_000_000})),
        calculator(),
        debug("d", "payload"),
    ]);
    let store = EngineTest::new(&flow).crash_after(1, Buffered::Survives).await;
    let test = EngineTest::restart(&flow, &store);
    // The first response is sent again, the second for the first time.
    assert_eq!(ends(&test.recover().await), ["run-1 a completed", "run-4 b completed"]);
    let causes: Vec<String> = store.runs().into_iter().filter_map(|(_, _, cause)| cause).collect();
    assert_eq!(causes, ["run-1:2:b:1", "run-1:5:b:1"]);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_counts_only_active_time() {
    let flow = json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &["d"]), json!({"timeout": 5000})),
        with(model("m", json!([tool_call("t", json!({})), final_answer("done")])), json!({"delayMs": 3000})),
        tool_double(json!({"ownEffect": "at_most_once", "unknown": "lost"})),
        debug("d", "payload.code"),
    ]);
    // The run works for three seconds. Then it waits for a person for a day, and its process stops.
    let test = EngineTest::new(&flow);
    assert_eq!(ends(&test.fire().await), ["run-1 a waiting run-1:1 t 1"]);
    let store = Arc::clone(&test.store);
    test.kill().await;
    advance(Duration::from_secs(86_400)).await;
    let test = EngineTest::restart(&flow, &store);
    let before = Instant::now();
    test.engine.resolve("run-1".into(), "run-1:1".into(), ok(json!(1))).await.unwrap();
    while store.runs()[0].0.status != RunStatus::Failed {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(before.elapsed().as_secs(), 2, "two seconds were left");
    assert_eq!(test.recorder.flow_lines(), ["a uncaught TIMEOUT #1", "d: \"TIMEOUT\""]);
}

fn ok(value: Value) -> redflow_contract::fact::ToolResult {
    redflow_contract::fact::ToolResult::ok(value)
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_uses_its_own_plan() {
    let flow = |answer: &str, result: u32| {
        json!([
            inject(&["a"]),
            agent_with_tool("a", "m", &["d"]),
            model("m", json!([tool_call("t", json!({})), final_answer(answer)])),
            tool_double(
                json!({"ownEffect": "read", "hangs": "tool", "result": result, "timeout": 90_000_000})
            ),
            debug("d", "payload"),
        ])
    };
    let store = EngineTest::new(&flow("as planned", 1)).crash_after(1, Buffered::Survives).await;
    let test = EngineTest::restart(&flow("changed", 2), &store);
    let reports = test.recover().await;
    assert_eq!(ends(&reports), ["run-1 a completed"]);
    assert_eq!(test.recorder.flow_lines(), ["d: \"as planned\""]);
    assert_eq!(only_message(&reports)["envelope"]["tools"]["history"][0]["output"], 1);
    assert_eq!(ends(&test.fire().await), ["run-2 a completed"]);
    assert_eq!(test.recorder.flow_lines(), ["d: \"as planned\"", "d: \"changed\""]);
}

/// The store after a crash at one second.
async fn crashed_store(flow: &Value) -> Arc<TestStore> {
    EngineTest::new(flow).crash_after(1, Buffered::Survives).await
}

#[tokio::test(start_paused = true)]
async fn resolves_a_call_without_the_secrets() {
    let flow = |key: Value| {
        json!([
            inject(&["a"]),
            agent_with_tool("a", "m", &["d"]),
            model_double("m", json!([tool_call("t", json!({})), final_answer("done")]), key),
            tool_double(json!({"ownEffect": "at_most_once", "hangs": "tool", "timeout": 90_000_000})),
            debug("d", "payload"),
        ])
    };
    let store = crashed_store(&flow(json!({"apiKey": "sk-1"}))).await;
    let test = EngineTest::restart(&flow(json!({})), &store);
    // The run was not recover_one_call yet: the resolve finds the interrupted call itself.
    test.engine.resolve("run-1".into(), "run-1:1".into(), ok(json!(1))).await.unwrap();
    assert!(store.runs()[0].1.contains("outcome_resolved"));
    assert_eq!(store.runs()[0].0.status, RunStatus::Interrupted);
    test.kill().await;
    let test = EngineTest::restart(&flow(json!({"apiKey": "sk-2"})), &store);
    assert_eq!(ends(&test.recover().await), ["run-1 a completed"]);
    assert_eq!(test.recorder.flow_lines(), ["d: \"done\""]);
}

#[tokio::test(start_paused = true)]
async fn takes_secrets_from_the_current_flow() {
    let flow = |key: Value| {
        json!([
            inject(&["a"]),
            agent("a", "m", &[]),
            model_double("m", json!([final_answer("hi")]), with(json!({"hangs": "model"}), key)),
            calculator(),
        ])
    };
    let store = EngineTest::new(&flow(json!({"apiKey": "sk-1"}))).crash_after(1, Buffered::Survives).await;
    assert!(!store.runs()[0].1.contains("sk-1"));
    // This flow does not have the secret, so the run stays suspended.
    let test = EngineTest::restart(&flow(json!({})), &store);
    let blocked = "run-1 a suspended RUN_BLOCKED: the run cannot continue with its plan: `m` cannot be built: \
                   the secret in `apiKey` is not recorded, and the flow does not have it";
    assert_eq!(ends(&test.recover().await), [blocked]);
    // A cancel needs no secrets.
    let other = crashed_store(&flow(json!({"apiKey": "sk-1"}))).await;
    let without = EngineTest::restart(&flow(json!({})), &other);
    without.engine.cancel("run-1".into(), "not needed".to_owned()).await.unwrap();
    assert_eq!(other.runs()[0].0.status, RunStatus::Failed);
    test.kill().await;
    let test = EngineTest::restart(&flow(json!({"apiKey": "sk-2"})), &store);
    assert_eq!(ends(&test.recover().await), ["run-1 a completed"]);
    assert_eq!(test.recorder.calls()[0], "built m with \"sk-2\"");
}

#[tokio::test(start_paused = true)]
async fn takes_a_shared_key_from_the_current_flow() {
    let flow = |key: &str| {
        let model = model_double("m", json!([final_answer("hi")]), json!({"hangs": "model", "keyNode": "k"}));
        json!([
            inject(&["a"]),
            agent("a", "m", &[]),
            with(model, json!({"type": "openai-model"})),
            calculator(),
            {"id": "k", "type": "openai-key", "credentials": {"apiKey": key}},
        ])
    };
    let store = crashed_store(&flow("sk-1")).await;
    assert!(!store.runs()[0].1.contains("sk-1"));
    let mut now = flow("sk-2");
    // Another plan, so that the services are built from the recorded one.
    now[2]["replies"] = json!([final_answer("another")]);
    let test = EngineTest::restart(&now, &store);
    assert_eq!(ends(&test.recover().await), ["run-1 a completed"]);
    assert_eq!(test.recorder.calls()[0], "built m with \"sk-2\"");
    assert_eq!(test.recorder.calls()[1], "built m with \"sk-2\"");
}

// SECURITY: former-address
#[tokio::test(start_paused = true)]
async fn sends_no_key_of_the_flow_to_a_former_address() {
    let flow = |address: &str, secret: &Value| {
        let props = with(json!({"hangs": "model", "baseURL": address}), secret.clone());
        let model = model_double("m", json!([final_answer("hi")]), props);
        json!([
            inject(&["a"]),
            agent("a", "m", &[]),
            with(model, json!({"type": "openai-model"})),
            calculator(),
            {"id": "k", "type": "openai-key", "credentials": {"apiKey": "sk-shared"}},
        ])
    };
    let secrets = [json!({"keyNode": "k"}), json!({"apiKey": "sk-own"})];
    for secret in &secrets {
        let store = crashed_store(&flow("http://former/v1", secret)).await;
        let test = EngineTest::restart(&flow("http://present/v1", secret), &store);
        let end = ends(&test.recover().await).remove(0);
        assert!(end.contains("RUN_BLOCKED") && end.contains("`m` cannot be built: its address"), "{end}");
        test.kill().await;
        // With the former address it continues.
        let mut back = flow("http://former/v1", secret);
        back[2]["replies"] = json!([final_answer("another")]);
        assert_eq!(
            ends(&EngineTest::restart(&back, &store).recover().await),
            ["run-1 a completed"],
            "{secret}"
        );
    }
    // Without a key there is nothing to send.
    let store = crashed_store(&flow("http://former/v1", &json!({}))).await;
    let test = EngineTest::restart(&flow("http://present/v1", &json!({})), &store);
    assert_eq!(ends(&test.recover().await), ["run-1 a completed"]);
}

// SECURITY: secret-place
#[tokio::test(start_paused = true)]
async fn puts_a_secret_back_only_where_it_was() {
    let flow = |props: Value, type_name: &str| {
        let mut flow = json!([
            inject(&["a"]),
            agent("a", "m", &[]),
            model_double("m", json!([final_answer("hi")]), with(json!({"hangs": "model"}), props)),
            calculator(),
        ]);
        flow[2]["type"] = json!(type_name);
        flow
    };
    let list = |keys: Value| json!({"headers": keys});
    let one = list(json!([{"token": "sk-1"}, {"token": "sk-2"}]));
    let rows = [
        // The list has the same length.
        (list(json!([{"token": "sk-3"}, {"token": "sk-4"}])), "model.double", None),
        // The list has another length, so items cannot be matched.
        (list(json!([{"token": "sk-2"}])), "model.double", Some("`headers.0.token`")),
        // The node has another type now.
        (one.clone(), "scripted-model", Some("`headers.0.token`")),
    ];
    for (now, type_name, blocked) in rows {
        let store = crashed_store(&flow(one.clone(), "model.double")).await;
        let end = ends(&EngineTest::restart(&flow(now, type_name), &store).recover().await).remove(0);
        match blocked {
            None => assert_eq!(end, "run-1 a completed"),
            Some(what) => assert!(end.contains("RUN_BLOCKED") && end.contains(what), "{end}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn resumes_a_run_without_a_flow() {
    let tool = json!({"effect": "idempotent", "hangs": "tool", "timeout": 90_000_000});
    let store = EngineTest::new(&one_call(tool.clone())).crash_after(1, Buffered::Survives).await;
    let test = EngineTest::restart(&one_call(tool), &store);
    let engine = Engine::new(None, test.ports(), EngineLimits::default());
    let reports = engine.resume(vec!["run-1".into()], &test.cancel).await;
    assert_eq!(ends(&reports), ["run-1 a completed"]);
    assert_eq!(test.recorder.flow_lines(), [] as [&str; 0]);
    assert!(!store.runs()[0].0.delivered, "its flow may be deployed later");
    let again = engine.resume(vec!["run-1".into(), "run-9".into()], &test.cancel).await;
    let unknown = "run-9  suspended RUN_UNKNOWN: there is no such run";
    assert_eq!(ends(&again), ["run-1 a completed", unknown]);
    test.recover().await;
    assert!(store.runs()[0].0.delivered);
    let again = engine.resume(vec!["run-1".into()], &test.cancel).await;
    assert_eq!(ends(&again), ["run-1  suspended RUN_OVER: the run is over already"]);
}

#[tokio::test(start_paused = true)]
async fn skips_a_damaged_run_and_resumes_the_others() {
    let flow = json!([
        inject(&["a", "b"]),
        agent("a", "m", &[]),
        agent("b", "m", &[]),
        model_double("m", json!([final_answer("hi")]), json!({"hangs": "model"})),
        calculator(),
    ]);
    let store = EngineTest::new(&flow).crash_after(1, Buffered::Survives).await;
    store.damage("run-1");
    let ends = ends(&EngineTest::restart(&flow, &store).recover().await);
    assert_eq!(ends[1], "run-2 b completed");
    let end = &ends[0];
    assert!(end.contains("suspended DATA_CORRUPT: the journal of the run is not what was written"), "{end}");
}
