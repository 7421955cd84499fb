//! Deploys while runs are resumed, while they work, and before the first flow.

use crate::kit::{
    Buffered, EngineTest, agent, agent_with_tool, build, calculator, debug, ends, final_answer, inject,
    model, tool_call, tool_double, with,
};
use pretty_assertions::assert_eq;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::InstanceId;
use redflow_contract::run::RunStatus;
use redflow_engine::{Engine, EngineLimits, Ports};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// The run waits for the outcome of a call, and its next answer takes a minute.
fn waiting_flow(answer: &str) -> Value {
    json!([
        inject(&["a"]),
        agent_with_tool("a", "m", &["d"]),
        with(
            model("m", json!([tool_call("t", json!({})), final_answer(answer)])),
            json!({"delayMs": 60_000})
        ),
        tool_double(json!({"ownEffect": "at_most_once", "unknown": "lost"})),
        debug("d", "payload"),
    ])
}

fn flow_without_a() -> Value {
    json!([agent("b", "m", &[]), model("m", json!([final_answer("hi")])), calculator()])
}

async fn fire_and_resolve(test: &EngineTest) {
    test.fire().await;
    test.engine.resolve("run-1".into(), "run-1:1".into(), ToolResult::ok(json!(1))).await.unwrap();
}

fn status(test: &EngineTest) -> RunStatus {
    test.store.runs()[0].0.status
}

#[tokio::test(start_paused = true)]
async fn a_resolved_run_continues_after_a_deploy() {
    let test = EngineTest::new(&waiting_flow("as planned"));
    fire_and_resolve(&test).await;
    test.engine.deploy(build(&waiting_flow("changed"))).await;
    sleep(Duration::from_secs(120)).await;
    assert_eq!(status(&test), RunStatus::Completed);
    assert_eq!(test.recorder.flow_lines(), ["d: \"as planned\""]);
}

#[tokio::test(start_paused = true)]
async fn a_resolved_run_is_cancelled_when_its_agent_is_removed() {
    let test = EngineTest::new(&waiting_flow("never"));
    fire_and_resolve(&test).await;
    test.engine.deploy(build(&flow_without_a())).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(status(&test), RunStatus::Failed);
    assert!(test.store.runs()[0].0.delivered && test.store.runs()[0].1.contains("its agent was removed"));
}

/// An agent whose model takes a minute.
fn slow_flow() -> Value {
    json!([
        inject(&["a"]),
        agent("a", "m", &["d"]),
        with(model("m", json!([final_answer("hi")])), json!({"delayMs": 60_000})),
        calculator(),
        debug("d", "payload"),
    ])
}

#[tokio::test(start_paused = true)]
async fn a_flow_deployed_during_recovery_gets_the_results() {
    let store = EngineTest::new(&slow_flow()).crash_after(1, Buffered::Survives).await;
    let test = EngineTest::restart(&slow_flow(), &store);
    let engine = Engine::new(None, test.ports(), EngineLimits::default());
    let deploy = async {
        sleep(Duration::from_secs(1)).await;
        engine.deploy(build(&slow_flow())).await;
    };
    let (back, ()) = tokio::join!(engine.recover(&test.cancel), deploy);
    assert_eq!(ends(&back.unwrap()), ["run-1 a completed"]);
    assert_eq!(test.recorder.flow_lines(), ["d: \"hi\""]);
    assert!(store.runs()[0].0.delivered);
}

#[tokio::test(start_paused = true)]
async fn deploys_during_recovery_do_not_disturb_runs() {
    let store = EngineTest::new(&slow_flow()).crash_after(1, Buffered::Survives).await;
    let test = EngineTest::restart(&slow_flow(), &store);
    let deploys = async {
        for _ in 0..10 {
            test.engine.deploy(build(&slow_flow())).await;
            sleep(Duration::from_secs(3)).await;
        }
    };
    let (back, ()) = tokio::join!(test.recover(), deploys);
    assert_eq!(ends(&back), ["run-1 a completed"]);
    assert_eq!(test.recorder.flow_lines(), ["d: \"hi\""]);
}

#[tokio::test(start_paused = true)]
async fn ignores_runs_of_another_instance_or_file() {
    let elsewhere: [fn(&mut Ports); 3] = [
        |ports| ports.instance = InstanceId::from("flow_without_a".to_owned()),
        |ports| ports.source = Some("flow_without_a.json".into()),
        |ports| ports.source = None,
    ];
    for change in elsewhere {
        let store = EngineTest::new(&slow_flow()).crash_after(1, Buffered::Survives).await;
        let test = EngineTest::restart(&slow_flow(), &store);
        let mut ports = test.ports();
        change(&mut ports);
        let engine = Engine::new(None, ports, EngineLimits::default());
        let deploy = async {
            sleep(Duration::from_secs(1)).await;
            engine.deploy(build(&flow_without_a())).await;
        };
        let (back, ()) = tokio::join!(engine.recover(&test.cancel), deploy);
        assert_eq!(ends(&back.unwrap()), [""; 0]);
        // The run is untouched, and the engine with its flow resumes it.
        assert_eq!(ends(&test.recover().await), ["run-1 a completed"]);
    }
}
