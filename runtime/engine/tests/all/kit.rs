//! Flows in a few words, and a world to run them in.

use crate::doubles;
use crate::shelf::{Fault, Shelf, Shelves};
use crate::watch::Watch;
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_contract::effect::Ending;
use redflow_contract::flow::Profile;
use redflow_contract::id::InstanceId;
use redflow_contract::limits::{FlowLimits, RunLimits};
use redflow_engine::{
    BuiltFlow, Engine, EngineLimits, Ports, RunEnd, RunReport, Start, StartError, StartOrder, StartOutcome,
    build_flow,
};
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
    pub(crate) fault: Fault,
    pub(crate) watches_runs: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            limits: EngineLimits::default(),
            run_limits: RunLimits::default(),
            fault: Fault::None,
            watches_runs: true,
        }
    }
}

/// A flow that runs, and everything that is seen of it.
pub(crate) struct World {
    pub(crate) engine: Engine,
    nodes: HashMap<String, NodeIx>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) cancel: CancellationToken,
    adapters: Arc<Adapters>,
}

/// The process environment of these tests.
pub(crate) fn process_env(name: &str) -> Option<String> {
    (name == "HOME_TOWN").then(|| "Graz".to_owned())
}

/// The real model, tool and nodes of this release, and the doubles.
pub(crate) fn adapters() -> Adapters {
    let mut adapters = Adapters::default();
    redflow_models::register(&mut adapters, redflow_models::ModelSettings::default());
    redflow_tools::register(&mut adapters);
    redflow_nodes::register(&mut adapters);
    doubles::register(&mut adapters);
    adapters
}

pub(crate) fn checked(flow: &Value, run_limits: RunLimits, adapters: &Adapters) -> CheckedFlow {
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

fn ports(watch: &Arc<Watch>, shelf: &Arc<Shelf>, adapters: &Arc<Adapters>) -> Ports {
    Ports {
        clock: Arc::clone(watch) as _,
        events: Arc::clone(watch) as _,
        store: Arc::new(Shelves(Arc::clone(shelf))),
        adapters: Arc::clone(adapters),
        meter: Arc::new(redflow_ports::NoMeter),
        instance: InstanceId::local(),
        source: Some("flow.json".into()),
        host: None,
        listens: true,
        env: process_env,
    }
}

impl Setup {
    pub(crate) fn world(&self, flow: &Value) -> World {
        self.world_over(flow, &Shelf::new(self.fault))
    }

    /// A world that finds runs of an earlier one.
    pub(crate) fn world_over(&self, flow: &Value, shelf: &Arc<Shelf>) -> World {
        let watch = doubles::watch_with(self.watches_runs, shelf.begun());
        shelf.tell(&watch);
        let adapters = Arc::new(adapters());
        let checked = checked(flow, self.run_limits, &adapters);
        let nodes =
            checked.flow.nodes.iter().enumerate().map(|(ix, node)| (node.id.to_string(), ix)).collect();
        let ports = ports(&watch, shelf, &adapters);
        let engine = Engine::new(Some(build_flow(checked, &adapters, &process_env)), ports, self.limits);
        World { engine, nodes, watch, shelf: Arc::clone(shelf), cancel: CancellationToken::new(), adapters }
    }
}

/// A flow as it is deployed into a running engine.
pub(crate) fn built(flow: &Value) -> BuiltFlow {
    let adapters = adapters();
    build_flow(checked(flow, RunLimits::default(), &adapters), &adapters, &process_env)
}

impl World {
    pub(crate) fn new(flow: &Value) -> Self {
        Setup::default().world(flow)
    }

    /// A process that finds the runs of an earlier one.
    pub(crate) fn over(flow: &Value, shelf: &Arc<Shelf>) -> Self {
        Setup::default().world_over(flow, shelf)
    }

    /// What another engine needs to live in this world.
    pub(crate) fn ports(&self) -> Ports {
        ports(&self.watch, &self.shelf, &self.adapters)
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

    /// Fires `i` and cares for nothing.
    pub(crate) async fn engine_fire(&self) -> Vec<RunReport> {
        self.engine.run(Start::Inject { node: self.nodes["i"], payload: None }, &self.cancel).await
    }

    /// Sends an agent a payload.
    pub(crate) async fn ask_of(&self, agent: &str, payload: Value) -> Vec<RunReport> {
        self.start(Start::Agent { node: self.nodes[agent], payload }).await
    }

    /// Starts something, and waits until its runs are kept.
    pub(crate) async fn order(&self, order: StartOrder) -> Result<StartOutcome, StartError> {
        let start = timeout(Duration::from_secs(86_400), self.engine.start(order, &self.cancel));
        start.await.unwrap_or_else(|_| panic!("hangs: {:#?}", self.watch.done_and_kept()))
    }

    /// Does something for so many seconds, then the process is gone. Gives what a crash leaves of its runs,
    /// with everything that was to be kept only soon, or with nothing of it.
    pub(crate) async fn killed_after(self, seconds: u64, lucky: bool) -> Arc<Shelf> {
        let _ = timeout(Duration::from_secs(seconds), self.fire()).await;
        let shelf = Arc::clone(&self.shelf);
        self.gone().await;
        shelf.crash(|| if lucky { 1.0 } else { 0.0 });
        shelf
    }

    /// The process stops, with all its tasks.
    pub(crate) async fn gone(self) {
        drop(self);
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
    }

    /// Brings back what an earlier process left.
    pub(crate) async fn recover(&self) -> Vec<RunReport> {
        let recovered = timeout(Duration::from_secs(86_400), self.engine.recover(&self.cancel));
        let reports = recovered.await.unwrap_or_else(|_| panic!("hangs")).unwrap();
        for report in &reports {
            self.check_journal(report);
        }
        reports
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
        let journal = self.shelf.journal(&report.run_id);
        let replayed = replay(journal.as_bytes());
        match &report.end {
            RunEnd::Finished { ending, .. } => {
                assert_eq!(replayed.difference, None, "{journal}");
                assert_eq!((replayed.equal, replayed.outcome), (true, Some(*ending)));
            }
            RunEnd::Refused { .. } => assert_eq!(journal, ""),
            RunEnd::Suspended { why: Some(error) } if error.code == StoreCode::DataCorrupt => {}
            RunEnd::Waiting(_) | RunEnd::Suspended { .. } => {
                let kind = replayed.difference.map(|difference| difference.what);
                // Somebody may have ended it since.
                let sound = matches!(kind, None | Some(DifferenceKind::Incomplete));
                assert!(journal.is_empty() || sound, "{journal}");
            }
        }
    }
}

/// An order to start a node.
pub(crate) fn order(node: Option<&str>, payload: Option<Value>, key: Option<&str>) -> StartOrder {
    StartOrder { node: node.map(Into::into), payload, key: key.map(str::to_owned), ..StartOrder::default() }
}

/// How runs ended, a line each.
pub(crate) fn ends(reports: &[RunReport]) -> Vec<String> {
    let end = |report: &RunReport| match &report.end {
        RunEnd::Finished { ending: Ending::Completed, .. } => "completed".to_owned(),
        RunEnd::Finished { ending: Ending::Stopped, .. } => "stopped".to_owned(),
        RunEnd::Finished { ending: Ending::Failed { code }, .. } => format!("failed {code}"),
        RunEnd::Refused { error, .. } => format!("refused {}", error.code),
        RunEnd::Waiting(call) => format!("waiting {} {} {}", call.call_id, call.tool, call.iteration),
        RunEnd::Suspended { why: None } => "suspended".to_owned(),
        RunEnd::Suspended { why: Some(error) } => format!("suspended {error}"),
    };
    reports.iter().map(|report| format!("{} {} {}", report.run_id, report.agent.id, end(report))).collect()
}

/// The message that left port 3 of the only run.
pub(crate) fn only_message(reports: &[RunReport]) -> Value {
    match reports {
        [RunReport { end: RunEnd::Finished { message, .. } | RunEnd::Refused { message, .. }, .. }] => {
            Value::Object((**message).clone())
        }
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
