//! Measurements: of every run and every call, also of calls that were given up.

use crate::kit::{
    EngineTest, agent_with_tool, build, debug, final_answer, inject, model_double, node, tool_call,
    tool_double, with,
};
use pretty_assertions::assert_eq;
use redflow_contract::effect::Ending;
use redflow_engine::{Engine, EngineLimits, Ports, Start};
use redflow_ports::{Measurement, Meter};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct MeterRecorder(Mutex<Vec<String>>);

impl Meter for MeterRecorder {
    fn record(&self, measurement: Measurement<'_>) {
        let text = match measurement {
            Measurement::RunStarted => "began".to_owned(),
            Measurement::RunReleased => "left".to_owned(),
            Measurement::RunEnded { agent, ending, iterations, .. } => match ending {
                Ending::Failed { code } => format!("{agent} failed {code} after {iterations}"),
                ending => format!("{agent} {ending:?} after {iterations}"),
            },
            Measurement::ModelCall { provider, model, failed, .. } if model != "m" => {
                format!("{provider} {model} {}", failed.map_or("answered", |code| code.as_str()))
            }
            Measurement::ModelCall { provider, failed, .. } => {
                format!("{provider} {}", failed.map_or("answered", |code| code.as_str()))
            }
            Measurement::ModelRetry { provider, .. } => format!("{provider} retried"),
            Measurement::ToolCall { tool, success, .. } => format!("{tool} {success}"),
            Measurement::MemoryCall { action, success, size, .. } => {
                format!("{} {success} {size:?}", action.as_str())
            }
            // The engine records no other measurement.
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

/// The measurements of one start.
async fn measurements(flow: &Value) -> Vec<String> {
    let recorder = Arc::new(MeterRecorder::default());
    let test = EngineTest::new(flow);
    let meter: Arc<dyn Meter> = Arc::<MeterRecorder>::clone(&recorder);
    let ports = Ports { meter, ..test.ports() };
    let engine = Engine::new(Some(build(flow)), ports, EngineLimits::default());
    engine.run(Start::Inject { node: 0, payload: None }, &test.cancel).await;
    std::mem::take(&mut *recorder.0.lock().unwrap())
}

#[tokio::test(start_paused = true)]
async fn measures_every_run_and_every_call() {
    let call = json!([tool_call("t", json!({"x": 1})), final_answer("done")]);
    let read = json!({"ownEffect": "read", "result": 1});
    let turns = json!({"turns": [{"role": "user", "content": "hello"}]});
    assert_eq!(
        measurements(&flow(call.clone(), json!({}), read.clone(), turns)).await,
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
        measurements(&flow(
            call.clone(),
            json!({"fails": failure}),
            read.clone(),
            json!({"recallFails": {"code": "MEMORY_ERROR", "message": "x"}})
        ))
        .await,
        ["began", "recall false None", "scripted RATE_LIMIT", "a failed RATE_LIMIT after 1", "left"]
    );
    assert_eq!(
        measurements(&flow(call.clone(), json!({"hangs": "model"}), read, json!({}))).await,
        ["began", "recall true Some((0, 0))", "scripted CANCELLED", "a failed TIMEOUT after 1", "left"]
    );
    let away = json!({"appendFails": {"code": "MEMORY_ERROR", "message": "x"}});
    assert_eq!(
        measurements(&flow(json!([final_answer("done")]), json!({}), json!({}), away)).await[3..],
        ["append false None", "a Completed after 1", "left"]
    );
    let mut refused = flow(call, json!({}), json!({}), json!({}));
    refused[1]["maxIterations"] = json!(0);
    assert_eq!(measurements(&refused).await, ["a failed CONFIG_INVALID after 0"]);
}

/// Each model that failed counts as a failed call, and the model that answered as the answer.
#[tokio::test(start_paused = true)]
async fn measures_every_model_of_a_call_that_fell_over() {
    let failure = json!({"fails": {"code": "RATE_LIMIT", "message": "slow"}});
    let replies = json!([tool_call("t", json!({})), final_answer("done")]);
    let mut flow = flow(replies.clone(), failure.clone(), json!({"result": 1}), json!({}));
    flow[1] = with(agent_with_tool("a", "m", &["d"]), json!({"fallbackModels": ["m2", "m3"]}));
    let nodes = flow.as_array_mut().unwrap();
    nodes.push(model_double("m2", replies.clone(), failure));
    nodes.push(model_double("m3", replies, json!({})));
    let expected = [
        "began",
        "scripted RATE_LIMIT",
        "scripted m2 RATE_LIMIT",
        "scripted m3 answered",
        "t true",
        "scripted m3 answered",
        "a Completed after 2",
        "left",
    ];
    assert_eq!(measurements(&flow).await, expected);
    // A model whose window is too small is not called.
    let too_long = json!({"fails": {"code": "CONTEXT_LENGTH", "message": "long"}, "window": 10});
    flow[2] = model_double("m", json!([final_answer("done")]), too_long);
    flow[6] = model_double("m2", json!([final_answer("done")]), json!({"window": 9}));
    flow[7] = model_double("m3", json!([final_answer("done")]), json!({"window": 11}));
    assert_eq!(measurements(&flow).await[1..3], ["scripted CONTEXT_LENGTH", "scripted m3 answered"]);
}
