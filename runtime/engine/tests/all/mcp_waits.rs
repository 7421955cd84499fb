//! Messages wait until the tools of their agents are known: in order, not for long, and not after a cancel or a stop.

use crate::doubles::provider;
use crate::kit::{
    EngineTest, Setup, agent_with_tool, build, debug, ends, final_answer, inject, model, node, only_message,
    order, with,
};
use crate::mcp::{ai_flow, servers, setup, tool_ids};
use crate::mcp_double::{McpDouble, mcp_tool};
use crate::registry::{define, first_fact, flow, manifest, tool};
use pretty_assertions::assert_eq;
use redflow_engine::RunReport;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The payloads of runs, in the order in which the runs began.
fn payloads(test: &EngineTest, runs: usize) -> Vec<Value> {
    (1..=runs)
        .map(|run| first_fact(test, &format!("run-{run}"))["fact"]["message"]["payload"].clone())
        .collect()
}

/// Connects the servers after some seconds.
async fn connect_after(mcp: &Arc<McpDouble>, seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
    mcp.set_tools(vec![mcp_tool("mcp.files.read", json!("read"))]);
    mcp.set_ready(true);
}

async fn send(test: &EngineTest, after_ms: u64, payload: &str) -> Vec<RunReport> {
    sleep(Duration::from_millis(after_ms)).await;
    test.start(order(Some("a"), Some(json!(payload)), None)).await.unwrap().reports.await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn runs_begin_in_order_when_the_servers_are_connected() {
    for ids in [json!(["mcp.files.*"]), json!(["*"]), json!(["mcp__files__read"])] {
        let mcp = McpDouble::new(false);
        let test = setup(&mcp).start_engine(&ai_flow("You help.", Some(ids.clone())));
        let (one, two, three, ()) = tokio::join!(
            send(&test, 0, "one"),
            send(&test, 1_000, "two"),
            send(&test, 2_999, "three"),
            connect_after(&mcp, 3)
        );
        for reports in [one, two, three] {
            assert!(ends(&reports)[0].ends_with("a completed"), "{reports:#?}");
        }
        assert_eq!(payloads(&test, 3), ["one", "two", "three"], "{ids}");
        assert_eq!(tool_ids(&test, "run-1"), ["mcp.files.read"], "{ids}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connected_server_is_not_waited_for() {
    let mcp = servers();
    let test = setup(&mcp).start_engine(&ai_flow("You help.", Some(json!(["mcp.files.*"]))));
    let before = Instant::now();
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_a_server_waits_for_nothing() {
    let mcp = McpDouble::new(false);
    let test = setup(&mcp).start_engine(&ai_flow("You help.", Some(json!(["weather.*"]))));
    define(&test.registry, &manifest(&[tool("weather.current", json!({}))]));
    let before = Instant::now();
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    let test = setup(&mcp).start_engine(&ai_flow("You help.", None));
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    assert_eq!((before.elapsed(), mcp.state().waits.len()), (Duration::ZERO, 0));
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_in_time_and_the_run_gets_what_is_there() {
    // (ids, system prompt, end)
    let rows = [
        (Some(json!(["mcp.files.*"])), "You help.", "completed"),
        (Some(json!(["mcp.files.read"])), "You help.", "refused TOOL_UNAVAILABLE"),
        (None, "mcp:docs/review", "refused MCP_UNAVAILABLE"),
    ];
    for (ids, prompt, end) in rows {
        let mcp = McpDouble::new(false);
        let test = setup(&mcp).start_engine(&ai_flow(prompt, ids));
        let before = Instant::now();
        assert_eq!(ends(&test.fire().await), [format!("run-1 a {end}")]);
        assert_eq!(before.elapsed(), Duration::from_secs(60), "{prompt}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_is_waited_for() {
    let mcp = McpDouble::new(false);
    let test = setup(&mcp).start_engine(&ai_flow("mcp:docs/review", None));
    let connects = async {
        sleep(Duration::from_secs(2)).await;
        mcp.set_prompt("docs", "review", "You review texts.");
        mcp.set_ready(true);
    };
    let (reports, ()) = tokio::join!(test.fire(), connects);
    assert_eq!(ends(&reports), ["run-1 a completed"]);
    let prompt = ("docs".to_owned(), "review".to_owned());
    assert_eq!(mcp.state().waits, [(Vec::new(), vec![prompt])]);
    // What was read is not waited for again.
    mcp.set_ready(false);
    let before = Instant::now();
    assert_eq!(ends(&test.fire().await), ["run-2 a completed"]);
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_is_not_ready_is_waited_for() {
    let flow = json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &["d"]), json!({"allowedTools": ["many.*"]})),
        model("m", json!([final_answer("done")])),
        with(node("t", "tool.provider", json!([])), json!({"name": ""})),
        debug("d", "payload"),
    ]);
    let test = Setup::default().start_engine(&flow);
    provider().set_ready(false);
    let connects = async {
        sleep(Duration::from_secs(4)).await;
        define(&test.registry, &manifest(&[tool("many.one", json!({}))]));
        provider().set(test.registry.snapshot().tools().to_vec());
        provider().set_ready(true);
    };
    let before = Instant::now();
    let (reports, ()) = tokio::join!(test.fire(), connects);
    assert_eq!(ends(&reports), ["run-1 a completed"]);
    assert_eq!(
        (before.elapsed(), tool_ids(&test, "run-1")),
        (Duration::from_secs(4), vec!["many.one".to_owned()])
    );
}

/// A cancel ends the wait of its own message only.
#[tokio::test(start_paused = true)]
async fn a_cancel_ends_the_wait_and_begins_no_run() {
    let mcp = McpDouble::new(false);
    let test = setup(&mcp).start_engine(&ai_flow("You help.", Some(json!(["mcp.files.*"]))));
    let cancels = async {
        sleep(Duration::from_secs(1)).await;
        test.cancel.cancel();
    };
    let other = tokio_util::sync::CancellationToken::new();
    let other_start = async {
        let start = order(Some("a"), Some(json!("other")), None);
        let outcome = test.engine.start(start, &other).await.unwrap();
        outcome.reports.await.unwrap()
    };
    let cancelled = async {
        let before = Instant::now();
        let reports = test.fire_unchecked().await;
        (reports.len(), before.elapsed())
    };
    let (cancelled, (), reports, ()) = tokio::join!(cancelled, cancels, other_start, connect_after(&mcp, 3));
    assert_eq!(cancelled, (0, Duration::from_secs(1)));
    assert_eq!(ends(&reports), ["run-1 a completed"]);
    assert_eq!(payloads(&test, 1), ["other"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_wait_and_refuses_the_message() {
    let mcp = McpDouble::new(false);
    let test = setup(&mcp).start_engine(&ai_flow("You help.", Some(json!(["mcp.files.*"]))));
    let stops = async {
        sleep(Duration::from_secs(1)).await;
        test.engine.shutdown(Duration::from_secs(5)).await;
    };
    let before = Instant::now();
    let (reports, ()) = tokio::join!(test.fire(), stops);
    assert_eq!(ends(&reports), ["run-1 a refused MCP_UNAVAILABLE"]);
    assert!(only_message(&reports).to_string().contains("Send the message again."));
    assert_eq!(before.elapsed(), Duration::from_secs(1));
}

/// The result of a run that waits at the next agent when the engine stops is sent again by the next process.
#[tokio::test(start_paused = true)]
async fn a_stop_keeps_the_message_of_another_run() {
    let mut flow = ai_flow("You help.", Some(json!(["mcp.files.*"])));
    flow[0] = inject(&["b"]);
    let first = with(node("b", "ai-agent", json!([["a"], []])), json!({"model": "n"}));
    flow.as_array_mut().unwrap().extend([first, model("n", json!(["on"]))]);
    let mcp = McpDouble::new(false);
    let test = setup(&mcp).start_engine(&flow);
    let stops = async {
        sleep(Duration::from_secs(1)).await;
        test.engine.shutdown(Duration::from_secs(5)).await;
    };
    let (reports, ()) = tokio::join!(test.fire(), stops);
    assert_eq!(ends(&reports), ["run-1 b completed"]);
    let restarted = setup(&servers()).restart(&flow, &test.store);
    let reports = restarted.recover().await;
    assert_eq!(ends(&reports), ["run-1 b completed", "run-2 a completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_waits_goes_to_the_agent_of_the_new_flow() {
    let mcp = McpDouble::new(false);
    let flow = ai_flow("You help.", Some(json!(["mcp.files.*"])));
    let test = setup(&mcp).start_engine(&flow);
    let mut changed = flow.clone();
    changed[1]["systemPrompt"] = json!("You advise.");
    // The agent has another place in the new flow.
    changed.as_array_mut().unwrap().insert(0, debug("first", "payload"));
    let deploys = async {
        sleep(Duration::from_secs(1)).await;
        test.engine.deploy(build(&changed)).await;
    };
    let (reports, (), ()) = tokio::join!(test.fire(), deploys, connect_after(&mcp, 3));
    assert_eq!(ends(&reports), ["run-1 a completed"]);
    let spec = first_fact(&test, "run-1")["fact"]["spec"].clone();
    assert_eq!(spec["converse"]["systemPrompt"], "You advise.");
    // Without its agent the message ends.
    mcp.set_ready(false);
    let removes = async {
        sleep(Duration::from_secs(1)).await;
        test.engine.deploy(build(&json!([inject(&[])]))).await;
    };
    let sent = send(&test, 0, "gone");
    let (reports, ()) = tokio::join!(sent, removes);
    assert_eq!(ends(&reports), [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn only_so_many_messages_wait() {
    let mcp = McpDouble::new(false);
    let mut setup = setup(&mcp);
    setup.limits.max_queued_per_agent = 2;
    let test = setup.start_engine(&flow(json!(["mcp.files.*"]), &[]));
    let sends = (0..4).map(|number| send(&test, number, "go"));
    let (reports, ()) = tokio::join!(futures::future::join_all(sends), connect_after(&mcp, 3));
    let found: Vec<String> =
        reports.iter().map(|reports| ends(reports)[0].split_once(' ').unwrap().1.to_owned()).collect();
    assert_eq!(found, ["a completed", "a completed", "a refused QUEUE_FULL", "a refused QUEUE_FULL"]);
}
