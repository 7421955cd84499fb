//! What is counted and timed: every run and every call, also those that were given up.

use crate::kit::{
    World, agent_with_tool, asks, built, debug, inject, model_double, node, says, tool_double, with,
};
use pretty_assertions::assert_eq;
use redflow_contract::effect::Ending;
use redflow_engine::{Engine, EngineLimits, Ports, Start};
use redflow_ports::{Measurement, Meter};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Counted(Mutex<Vec<String>>);

impl Meter for Counted {
    fn record(&self, measure: Measurement<'_>) {
        let text = match measure {
            Measurement::RunBegan => "began".to_owned(),
            Measurement::RunLeft => "left".to_owned(),
            Measurement::RunEnded { agent, ending, iterations, .. } => match ending {
                Ending::Failed { code } => format!("{agent} failed {code} after {iterations}"),
                ending => format!("{agent} {ending:?} after {iterations}"),
            },
            Measurement::ModelCall { provider, failed, .. } => {
                format!("{provider} {}", failed.map_or("answered", |code| code.as_str()))
            }
            Measurement::ModelRetry { provider, .. } => format!("{provider} again"),
            Measurement::ToolCall { tool, success, .. } => format!("{tool} {success}"),
            Measurement::MemoryCall { action, success, size, .. } => {
                format!("{} {success} {size:?}", action.as_str())
            }
            // Nothing the engine does.
            _ => return,
        };
        self.0.lock().unwrap().push(text);
    }
}

fn flow(replies: Value, model: Value, tool: Value, memory: Value) -> Value {
    json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &["d"]), json!({"memory": "mem", "timeout": 1000})),
        model_double("m", replies, model),
        tool_double(tool),
        with(node("mem", "buffer-memory", json!([])), memory),
        debug("d", "payload"),
    ])
}

/// What is counted when the flow is started once.
async fn counted(flow: &Value) -> Vec<String> {
    let counted = Arc::new(Counted::default());
    let world = World::new(flow);
    let meter: Arc<dyn Meter> = Arc::<Counted>::clone(&counted);
    let ports = Ports { meter, ..world.ports() };
    let engine = Engine::new(Some(built(flow)), ports, EngineLimits::default());
    engine.run(Start::Inject { node: 0, payload: None }, &world.cancel).await;
    std::mem::take(&mut *counted.0.lock().unwrap())
}

#[tokio::test(start_paused = true)]
async fn every_run_and_every_call() {
    let call = json!([asks("t", json!({"x": 1})), says("done")]);
    let read = json!({"ownEffect": "read", "result": 1});
    let turns = json!({"turns": [{"role": "user", "content": "hello"}]});
    assert_eq!(
        counted(&flow(call.clone(), json!({}), read.clone(), turns)).await,
        [
            "began",
            "recall true Some((1, 5))",
            "scripted answered",
            "t true",
            "scripted answered",
            "append true Some((2, 6))",
            "a Completed after 2",
            "left",
        ]
    );
    let failure = json!({"code": "RATE_LIMIT", "message": "slow"});
    assert_eq!(
        counted(&flow(
            call.clone(),
            json!({"fails": failure}),
            read.clone(),
            json!({"recallFails": {"code": "MEMORY_ERROR", "message": "x"}})
        ))
        .await,
        ["began", "recall false None", "scripted RATE_LIMIT", "a failed RATE_LIMIT after 1", "left"]
    );
    assert_eq!(
        counted(&flow(call.clone(), json!({"hangs": "model"}), read, json!({}))).await,
        ["began", "recall true Some((0, 0))", "scripted CANCELLED", "a failed TIMEOUT after 1", "left"]
    );
    let away = json!({"appendFails": {"code": "MEMORY_ERROR", "message": "x"}});
    assert_eq!(
        counted(&flow(json!([says("done")]), json!({}), json!({}), away)).await[3..],
        ["append false None", "a Completed after 1", "left"]
    );
    let mut refused = flow(call, json!({}), json!({}), json!({}));
    refused[1]["maxIterations"] = json!(0);
    assert_eq!(counted(&refused).await, ["a failed CONFIG_INVALID after 0"]);
}
