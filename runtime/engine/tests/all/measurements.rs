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
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

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
    let failing = json!({"appendFails": {"code": "MEMORY_ERROR", "message": "x"}});
    assert_eq!(
        measurements(&flow(json!([final_answer("done")]), json!({}), json!({}), failing)).await[3..],
        ["append false None", "a Completed after 1", "left"]
    );
    let mut refused = flow(call, json!({}), json!({}), json!({}));
    refused[1]["maxIterations"] = json!(0);
    assert_eq!(measurements(&refused).await, ["a failed CONFIG_INVALID after 0"]);
}

/// Records the messages and the spans of this thread, each with its level.
#[derive(Default)]
struct LogRecorder(Mutex<Vec<String>>);

struct MessageRecorder<'a>(&'a LogRecorder, Level);

impl Visit for MessageRecorder<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0.0.lock().unwrap().push(format!("{} {value:?}", self.1));
        }
    }
}

impl Subscriber for LogRecorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("redflow_engine")
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let metadata = span.metadata();
        self.0.lock().unwrap().push(format!("{} span {}", metadata.level(), metadata.name()));
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut MessageRecorder(self, *event.metadata().level()));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A sidecar logs `info`: nothing of a run that completes, and one line of a run that fails.
#[tokio::test(start_paused = true)]
async fn only_a_failed_run_has_a_line_in_the_log_of_a_sidecar() {
    let log = Arc::new(LogRecorder::default());
    let _guard = tracing::subscriber::set_default(Arc::clone(&log));
    let lines = || std::mem::take(&mut *log.0.lock().unwrap());
    let call = json!([tool_call("t", json!({"x": 1})), final_answer("done")]);
    measurements(&flow(call.clone(), json!({}), json!({}), json!({}))).await;
    let completed = lines();
    assert_eq!(completed[0], "INFO span run");
    assert!(completed[1..].iter().all(|line| line.starts_with("DEBUG ")), "{completed:?}");
    assert_eq!(completed.last().unwrap(), "DEBUG a run ended");
    let failure = json!({"fails": {"code": "RATE_LIMIT", "message": "slow"}});
    measurements(&flow(call, failure, json!({}), json!({}))).await;
    let failed = lines();
    let info: Vec<&String> = failed.iter().filter(|line| line.starts_with("INFO ")).collect();
    assert_eq!(info, ["INFO span run", "INFO a run failed"]);
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
