//! Flows in a few words, and a world to run them in.

use crate::doubles;
use crate::watch::{JournalFault, Journals, Watch};
use pretty_assertions::assert_eq;
use redflow_contract::effect::Ending;
use redflow_contract::flow::Profile;
use redflow_contract::id::InstanceId;
use redflow_contract::limits::{FlowLimits, RunLimits};
use redflow_engine::{Engine, EngineLimits, Ports, RunEnd, RunReport, Start, build_flow};
use redflow_flow::{CheckOptions, CheckedFlow, NodeIx, check_bytes};
use redflow_ports::Adapters;
use redflow_react::{DifferenceKind, replay};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// What a world is like.
pub(crate) struct Setup {
    pub(crate) limits: EngineLimits,
    pub(crate) run_limits: RunLimits,
    pub(crate) fault: JournalFault,
    pub(crate) watches_runs: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            limits: EngineLimits::default(),
            run_limits: RunLimits::default(),
            fault: JournalFault::None,
            watches_runs: true,
        }
    }
}

/// A flow that runs, and everything that is seen of it.
pub(crate) struct World {
    engine: Engine,
    nodes: HashMap<String, NodeIx>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) cancel: CancellationToken,
}

/// The process environment of these tests.
fn process_env(name: &str) -> Option<String> {
    (name == "HOME_TOWN").then(|| "Graz".to_owned())
}

/// The real model, tool and nodes of this release, and the doubles.
fn adapters() -> Adapters {
    let mut adapters = Adapters::default();
    redflow_models::register(&mut adapters);
    redflow_tools::register(&mut adapters);
    redflow_nodes::register(&mut adapters);
    doubles::register(&mut adapters);
    adapters
}

fn checked(flow: &Value, run_limits: RunLimits, adapters: &Adapters) -> CheckedFlow {
    let options = CheckOptions {
        profile: Profile::Strict,
        limits: FlowLimits::default(),
        run_limits,
        instance: InstanceId::local(),
        runs: &|type_name| adapters.runs(type_name),
        env: &process_env,
    };
    check_bytes(flow.to_string().as_bytes(), &options).unwrap_or_else(|report| panic!("refused: {report:#?}"))
}

impl Setup {
    pub(crate) fn world(&self, flow: &Value) -> World {
        let watch = doubles::watch_with(self.fault, self.watches_runs);
        let adapters = adapters();
        let checked = checked(flow, self.run_limits, &adapters);
        let nodes =
            checked.flow.nodes.iter().enumerate().map(|(ix, node)| (node.id.to_string(), ix)).collect();
        let ports = Ports {
            clock: Arc::clone(&watch) as _,
            events: Arc::clone(&watch) as _,
            journals: Arc::new(Journals(Arc::clone(&watch))),
            env: process_env,
        };
        let engine = Engine::new(build_flow(checked, &adapters, &process_env), ports, self.limits);
        World { engine, nodes, watch, cancel: CancellationToken::new() }
    }
}

impl World {
    pub(crate) fn new(flow: &Value) -> Self {
        Setup::default().world(flow)
    }

    /// Fires the inject node `i`.
    pub(crate) async fn fire(&self) -> Vec<RunReport> {
        self.start(Start::Inject { node: self.nodes["i"], payload: None }).await
    }

    /// Fires the inject node `i` with another payload.
    pub(crate) async fn fire_with(&self, payload: Value) -> Vec<RunReport> {
        self.start(Start::Inject { node: self.nodes["i"], payload: Some(payload) }).await
    }

    /// Sends the agent `a` a payload.
    pub(crate) async fn ask(&self, payload: Value) -> Vec<RunReport> {
        self.start(Start::Agent { node: self.nodes["a"], payload }).await
    }

    async fn start(&self, start: Start) -> Vec<RunReport> {
        // A day of the paused clock: what would hang for ever fails instead.
        let run = timeout(Duration::from_secs(86_400), self.engine.run(start, &self.cancel));
        let reports = run.await.unwrap_or_else(|_| panic!("hangs: {:#?}", self.watch.done_and_kept()));
        for report in &reports {
            self.check_journal(report);
        }
        reports
    }

    /// Whatever becomes of a run, its journal says the same.
    fn check_journal(&self, report: &RunReport) {
        let journal = self.watch.journal(&report.run_id);
        let replayed = replay(journal.as_bytes());
        match &report.end {
            RunEnd::Finished { ending, .. } => {
                assert_eq!(replayed.difference, None, "{journal}");
                assert_eq!((replayed.equal, replayed.outcome), (true, Some(*ending)));
            }
            RunEnd::Refused { .. } => assert_eq!(journal, ""),
            RunEnd::Waiting { .. } | RunEnd::Aborted { .. } => {
                let kind = replayed.difference.map(|difference| difference.what);
                assert!(journal.is_empty() || kind == Some(DifferenceKind::Incomplete), "{journal}");
            }
        }
    }
}

/// How runs ended, a line each.
pub(crate) fn ends(reports: &[RunReport]) -> Vec<String> {
    let end = |report: &RunReport| match &report.end {
        RunEnd::Finished { ending: Ending::Completed, .. } => "completed".to_owned(),
        RunEnd::Finished { ending: Ending::Stopped, .. } => "stopped".to_owned(),
        RunEnd::Finished { ending: Ending::Failed { code }, .. } => format!("failed {code}"),
        RunEnd::Refused { error, .. } => format!("refused {}", error.code),
        RunEnd::Waiting { call_id, tool, iteration } => format!("waiting {call_id} {tool} {iteration}"),
        RunEnd::Aborted { message } => format!("aborted: {}", message["error"]["message"]),
    };
    reports.iter().map(|report| format!("{} {} {}", report.run_id, report.agent.id, end(report))).collect()
}

/// The message that left port 3 of the only run.
pub(crate) fn only_message(reports: &[RunReport]) -> Value {
    match reports {
        [
            RunReport {
                end:
                    RunEnd::Finished { message, .. }
                    | RunEnd::Refused { message, .. }
                    | RunEnd::Aborted { message },
                ..
            },
        ] => Value::Object(message.clone()),
        _ => panic!("not one run with a message: {reports:#?}"),
    }
}

/// The names of the events in a message's envelope.
pub(crate) fn actions(message: &Value) -> Vec<String> {
    let events = message["envelope"]["observability"]["events"].as_array().unwrap();
    events.iter().map(|event| event["action"].as_str().unwrap().to_owned()).collect()
}

/// Fires `i` of a flow and compares how its runs ended and what was shown, in a few words each.
pub(crate) async fn check(flow: Value, expected_ends: &[&str], expected_shown: &[&str]) -> World {
    let world = World::new(&flow);
    let reports = world.fire().await;
    assert_eq!(ends(&reports), expected_ends, "{flow}");
    assert_eq!(world.watch.shown(), expected_shown, "{flow}");
    world
}

/// A node with a place on tab `t`.
pub(crate) fn node(id: &str, type_name: &str, wires: Value) -> Value {
    json!({"id": id, "type": type_name, "z": "t", "name": id, "x": 1, "y": 1, "wires": wires})
}

pub(crate) fn with(mut node: Value, extra: Value) -> Value {
    for (key, value) in extra.as_object().unwrap() {
        node[key] = value.clone();
    }
    node
}

/// An inject node `i` that sends `{topic: "sums", payload: "go"}`.
pub(crate) fn inject(targets: &[&str]) -> Value {
    let props = json!([{"p": "topic", "v": "sums", "vt": "str"}, {"p": "payload"}]);
    with(
        node("i", "inject", json!([targets])),
        json!({"props": props, "payload": "go", "payloadType": "str"}),
    )
}

/// An agent that binds a model and the calculator `calc`; results go to `results`.
pub(crate) fn agent(id: &str, model: &str, results: &[&str]) -> Value {
    let config = json!({"strategy": "react", "maxIterations": 5, "allowedTools": ["calculator"]});
    with(node(id, "agent-core", json!([[model], ["calc"], [], results])), config)
}

/// An agent that binds the tool `t` and no other.
pub(crate) fn agent_with_tool(id: &str, model: &str, results: &[&str]) -> Value {
    let wires = json!([[model], ["t"], [], results]);
    with(agent(id, model, results), json!({"wires": wires, "allowedTools": ["t"]}))
}

pub(crate) fn calculator() -> Value {
    node("calc", "calculator-tool", json!([]))
}

/// The real scripted model.
pub(crate) fn model(id: &str, replies: Value) -> Value {
    with(node(id, "scripted-model", json!([])), json!({"replies": replies}))
}

/// A model that misbehaves as `props` say.
pub(crate) fn model_double(id: &str, replies: Value, props: Value) -> Value {
    with(with(node(id, "model.double", json!([])), json!({"replies": replies})), props)
}

/// The tool `t`, which behaves as `props` say.
pub(crate) fn tool_double(props: Value) -> Value {
    let known = json!({"inputSchema": {"type": "object"}, "ownEffect": "read", "result": null});
    with(with(node("t", "tool.double", json!([])), known), props)
}

/// Shows one property of a message, `true` for all of it.
pub(crate) fn debug(id: &str, shows: &str) -> Value {
    with(node(id, "debug", json!([])), json!({"complete": shows}))
}

pub(crate) fn catch(id: &str, scope: Value, targets: &[&str]) -> Value {
    with(node(id, "catch", json!([targets])), json!({"scope": scope}))
}

/// The model answers for good.
pub(crate) fn says(message: &str) -> Value {
    json!({"action": "final", "message": message})
}

/// The model asks for a tool.
pub(crate) fn asks(tool: &str, input: Value) -> Value {
    json!({"action": "tool", "tool": tool, "input": input, "confidence": 0.5})
}

/// What no strict machine takes: the run fails with `INVALID_JSON`.
pub(crate) fn prose() -> Value {
    json!("Let me think …")
}

/// An array in an array in an array …
pub(crate) fn nested(levels: usize) -> Value {
    (1..levels).fold(json!([]), |inner, _| json!([inner]))
}
