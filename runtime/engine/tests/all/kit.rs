//! Short builders for flows, and an engine to run them in.

use crate::doubles;
use crate::recorder::EventRecorder;
use crate::test_store::{Fault, StorePort, TestStore};
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_contract::effect::Ending;
use redflow_contract::flow::Profile;
use redflow_contract::id::{InstanceId, Principal};
use redflow_contract::limits::{FlowLimits, RunLimits};
use redflow_contract::node::Budget;
use redflow_engine::{
    BuiltFlow, Engine, EngineLimits, Ports, Registry, RunEnd, RunReport, Start, StartError, StartKey,
    StartOrder, StartOutcome, build_flow,
};
use redflow_flow::{CheckOptions, CheckedFlow, NodeIx, Verdict, check_bytes};
use redflow_machine::{DifferenceKind, Strategies, Strategy, replay};
use redflow_ports::Adapters;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The limits and faults of a test.
pub(crate) struct Setup {
    pub(crate) limits: EngineLimits,
    pub(crate) run_limits: RunLimits,
    pub(crate) run_budget: Budget,
    pub(crate) fault: Fault,
    pub(crate) watches_runs: bool,
    /// The strategy of all agents; none for that of their node.
    pub(crate) strategy: Option<Arc<dyn Strategy>>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) principal: Option<Principal>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            limits: EngineLimits::default(),
            run_limits: RunLimits::default(),
            run_budget: Budget::default(),
            fault: Fault::None,
            watches_runs: true,
            strategy: None,
            registry: Arc::default(),
            principal: None,
        }
    }
}

/// What a crash does to batches that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Buffered {
    Survives,
    Lost,
}

/// An engine with a flow, its store, and a record of everything it does.
pub(crate) struct EngineTest {
    pub(crate) engine: Engine,
    nodes: HashMap<String, NodeIx>,
    pub(crate) recorder: Arc<EventRecorder>,
    pub(crate) store: Arc<TestStore>,
    pub(crate) cancel: CancellationToken,
    adapters: Arc<Adapters>,
    strategies: Strategies,
    pub(crate) registry: Arc<Registry>,
}

/// The process environment of all tests.
pub(crate) fn process_env(name: &str) -> Option<String> {
    (name == "HOME_TOWN").then(|| "Graz".to_owned())
}

/// The real adapters of this release, and the test doubles.
pub(crate) fn adapters() -> Adapters {
    let mut adapters = Adapters::default();
    redflow_models::register(&mut adapters, redflow_models::ModelSettings::default());
    redflow_tools::register(&mut adapters, redflow_tools::ToolSettings::default());
    redflow_nodes::register(&mut adapters);
    doubles::register(&mut adapters);
    adapters.images = Some(Arc::new(crate::images::Images));
    adapters
}

pub(crate) fn check_flow(
    flow: &Value,
    run_limits: RunLimits,
    run_budget: Budget,
    adapters: &Adapters,
    registry: &Registry,
) -> CheckedFlow {
    let instance = InstanceId::local();
    let options = CheckOptions {
        profile: Profile::Strict,
        limits: FlowLimits::default(),
        run_limits,
        run_budget,
        instance: InstanceId::local(),
        provides_tools: &|type_name| {
            adapters.tool_providers.contains_key(type_name)
                || registry.snapshot().operations(&instance, type_name).is_some()
        },
        can_run: &|type_name| adapters.can_run(type_name),
        env: &process_env,
    };
    check_bytes(flow.to_string().as_bytes(), &options).unwrap_or_else(|report| panic!("refused: {report:#?}"))
}

fn ports(
    recorder: &Arc<EventRecorder>,
    store: &Arc<TestStore>,
    adapters: &Arc<Adapters>,
    strategies: &Strategies,
) -> Ports {
    Ports {
        strategies: strategies.clone(),
        clock: Arc::clone(recorder) as _,
        events: Arc::clone(recorder) as _,
        store: Arc::new(StorePort(Arc::clone(store))),
        adapters: Arc::clone(adapters),
        meter: Arc::new(redflow_ports::NoMeter),
        instance: InstanceId::local(),
        source: Some("flow.json".into()),
        host: None,
        takes_requests: true,
        registry: Arc::default(),
        principal: None,
        env: process_env,
    }
}

impl Setup {
    pub(crate) fn start_engine(&self, flow: &Value) -> EngineTest {
        self.restart(flow, &TestStore::new(self.fault))
    }

    /// Starts an engine on the store of an earlier one.
    pub(crate) fn restart(&self, flow: &Value, store: &Arc<TestStore>) -> EngineTest {
        let recorder = EventRecorder::new(store.last_run_number());
        let recorder = if self.watches_runs { recorder } else { recorder.without_run_events() };
        let recorder = doubles::set_recorder(recorder);
        store.set_recorder(&recorder);
        let adapters = Arc::new(adapters());
        let registry = &self.registry;
        let mut checked = check_flow(flow, self.run_limits, self.run_budget, &adapters, registry);
        let strategies = match &self.strategy {
            Some(strategy) => {
                set_strategy(&mut checked, strategy.name());
                Strategies::new([Arc::clone(strategy)])
            }
            None => redflow_strategies::strategies().clone(),
        };
        let nodes =
            checked.flow.nodes.iter().enumerate().map(|(ix, node)| (node.id.to_string(), ix)).collect();
        let ports = Ports {
            registry: Arc::clone(registry),
            principal: self.principal.clone(),
            ..ports(&recorder, store, &adapters, &strategies)
        };
        let built = build_flow(checked, &adapters, &strategies, &process_env);
        let engine = Engine::new(Some(built), ports, self.limits);
        EngineTest {
            engine,
            nodes,
            recorder,
            store: Arc::clone(store),
            cancel: CancellationToken::new(),
            adapters,
            strategies,
            registry: Arc::clone(&self.registry),
        }
    }
}

/// Gives all agents of a flow this strategy.
fn set_strategy(checked: &mut CheckedFlow, name: &str) {
    for agent in &mut checked.agents {
        if let Verdict::Ready(ready) = &mut agent.verdict {
            Arc::make_mut(&mut ready.spec).strategy = Some(name.to_owned());
        }
    }
}

/// Builds a flow for a deploy.
pub(crate) fn build(flow: &Value) -> BuiltFlow {
    let adapters = adapters();
    let registry = Registry::default();
    let checked = check_flow(flow, RunLimits::default(), Budget::default(), &adapters, &registry);
    build_flow(checked, &adapters, redflow_strategies::strategies(), &process_env)
}

impl EngineTest {
    pub(crate) fn new(flow: &Value) -> Self {
        Setup::default().start_engine(flow)
    }

    /// Starts an engine on the store of an earlier one.
    pub(crate) fn restart(flow: &Value, store: &Arc<TestStore>) -> Self {
        Setup::default().restart(flow, store)
    }

    /// The ports for another engine with the same store and recorder.
    pub(crate) fn ports(&self) -> Ports {
        ports(&self.recorder, &self.store, &self.adapters, &self.strategies)
    }

    /// Fires the inject node `i`.
    pub(crate) async fn fire(&self) -> Vec<RunReport> {
        self.run(Start::Inject { node: self.nodes["i"], payload: None }).await
    }

    /// Fires the inject node `i` with another payload.
    pub(crate) async fn fire_with(&self, payload: Value) -> Vec<RunReport> {
        self.run(Start::Inject { node: self.nodes["i"], payload: Some(payload) }).await
    }

    /// Sends the agent `a` a payload.
    pub(crate) async fn send(&self, payload: Value) -> Vec<RunReport> {
        self.run(Start::Agent { node: self.nodes["a"], payload }).await
    }

    /// Fires `i` without a time limit and without a check of the journals.
    pub(crate) async fn fire_unchecked(&self) -> Vec<RunReport> {
        self.engine.run(Start::Inject { node: self.nodes["i"], payload: None }, &self.cancel).await
    }

    /// Sends an agent a payload.
    pub(crate) async fn send_to(&self, agent: &str, payload: Value) -> Vec<RunReport> {
        self.run(Start::Agent { node: self.nodes[agent], payload }).await
    }

    /// Starts a node and waits until its runs are stored.
    pub(crate) async fn start(&self, order: StartOrder) -> Result<StartOutcome, StartError> {
        let start = timeout(Duration::from_secs(86_400), self.engine.start(order, &self.cancel));
        start.await.unwrap_or_else(|_| panic!("hangs: {:#?}", self.recorder.calls_and_appends()))
    }

    /// Fires `i`, and crashes the process after some seconds. Returns what the crash leaves in the store.
    pub(crate) async fn crash_after(self, seconds: u64, buffered: Buffered) -> Arc<TestStore> {
        let _ = timeout(Duration::from_secs(seconds), self.fire()).await;
        let store = Arc::clone(&self.store);
        self.kill().await;
        store.crash(|| if buffered == Buffered::Survives { 1.0 } else { 0.0 });
        store
    }

    /// Ends the process with all its tasks.
    pub(crate) async fn kill(self) {
        drop(self);
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
    }

    /// Resumes the runs that an earlier process left.
    pub(crate) async fn recover(&self) -> Vec<RunReport> {
        let recovered = timeout(Duration::from_secs(86_400), self.engine.recover(&self.cancel));
        let reports = recovered.await.unwrap_or_else(|_| panic!("hangs")).unwrap();
        for report in &reports {
            self.check_journal(report);
        }
        reports
    }

    async fn run(&self, start: Start) -> Vec<RunReport> {
        // A day of the paused clock, so that a start that hangs fails the test.
        let run = timeout(Duration::from_secs(86_400), self.engine.run(start, &self.cancel));
        let reports = run.await.unwrap_or_else(|_| panic!("hangs: {:#?}", self.recorder.calls_and_appends()));
        for report in &reports {
            self.check_journal(report);
        }
        reports
    }

    /// Checks that the journal of a run agrees with its report.
    fn check_journal(&self, report: &RunReport) {
        let journal = self.store.journal(&report.run_id);
        let replayed = replay(journal.as_bytes(), &self.strategies);
        match &report.end {
            RunEnd::Finished { ending, .. } => {
                assert_eq!(replayed.difference, None, "{journal}");
                assert_eq!((replayed.equal, replayed.outcome), (true, Some(*ending)));
            }
            RunEnd::Refused { .. } => assert_eq!(journal, ""),
            RunEnd::Suspended { why: Some(error) } if error.code == StoreCode::DataCorrupt => {}
            RunEnd::Waiting(_) | RunEnd::Suspended { .. } => {
                let kind = replayed.difference.map(|difference| difference.what);
                // The test may have ended the run since.
                let sound = matches!(kind, None | Some(DifferenceKind::Incomplete));
                assert!(journal.is_empty() || sound, "{journal}");
            }
        }
    }
}

/// A start order.
pub(crate) fn order(node: Option<&str>, payload: Option<Value>, key: Option<&str>) -> StartOrder {
    StartOrder {
        node: node.map(Into::into),
        payload,
        key: key.map(|key| StartKey::Caller(key.to_owned())),
        ..StartOrder::default()
    }
}

/// How runs ended, one line each.
pub(crate) fn ends(reports: &[RunReport]) -> Vec<String> {
    let end = |report: &RunReport| match &report.end {
        RunEnd::Finished { ending: Ending::Completed, .. } => "completed".to_owned(),
        RunEnd::Finished { ending: Ending::Stopped, .. } => "stopped".to_owned(),
        RunEnd::Finished { ending: Ending::Failed { code }, .. } => format!("failed {code}"),
        RunEnd::Refused { error, .. } => format!("refused {}", error.code),
        RunEnd::Waiting(calls) => calls
            .iter()
            .map(|call| format!("waiting {} {} {}", call.call_id, call.tool, call.iteration))
            .collect::<Vec<_>>()
            .join(", "),
        RunEnd::Suspended { why: None } => "suspended".to_owned(),
        RunEnd::Suspended { why: Some(error) } => format!("suspended {error}"),
    };
    reports.iter().map(|report| format!("{} {} {}", report.run_id, report.agent.id, end(report))).collect()
}

/// The message of port 3 of the only run.
pub(crate) fn only_message(reports: &[RunReport]) -> Value {
    match reports {
        [RunReport { end: RunEnd::Finished { message, .. } | RunEnd::Refused { message, .. }, .. }] => {
            Value::Object((***message).clone())
        }
        _ => panic!("not one run with a message: {reports:#?}"),
    }
}

/// The names of the events in a message's envelope.
pub(crate) fn actions(message: &Value) -> Vec<String> {
    let events = message["envelope"]["observability"]["events"].as_array().unwrap();
    events.iter().map(|event| event["action"].as_str().unwrap().to_owned()).collect()
}

/// Fires `i` of a flow and compares the ends of its runs and the flow events, one line each.
pub(crate) async fn check(flow: Value, expected_ends: &[&str], expected_lines: &[&str]) -> EngineTest {
    let test = EngineTest::new(&flow);
    let reports = test.fire().await;
    assert_eq!(ends(&reports), expected_ends, "{flow}");
    assert_eq!(test.recorder.flow_lines(), expected_lines, "{flow}");
    test
}

/// A node on tab `t`.
pub(crate) fn node(id: &str, type_name: &str, wires: Value) -> Value {
    json!({"id": id, "type": type_name, "z": "t", "name": id, "x": 1, "y": 1, "wires": wires})
}

/// Adds properties to a node.
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

/// An agent with a model and the calculator `calc`; its results go to `results`.
pub(crate) fn agent(id: &str, model: &str, results: &[&str]) -> Value {
    let config = json!({"strategy": "react", "maxIterations": 5, "allowedTools": ["calculator"]});
    with(node(id, "agent-core", json!([[model], ["calc"], [], results])), config)
}

/// An agent whose only tool is `t`.
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

/// A model that misbehaves as its properties say.
pub(crate) fn model_double(id: &str, replies: Value, props: Value) -> Value {
    with(with(node(id, "model.double", json!([])), json!({"replies": replies})), props)
}

/// The tool `t`, which behaves as its properties say.
pub(crate) fn tool_double(props: Value) -> Value {
    let known = json!({"inputSchema": {"type": "object"}, "ownEffect": "read", "result": null});
    with(with(node("t", "tool.double", json!([])), known), props)
}

/// A debug node for one property of a message; `true` for all of it.
pub(crate) fn debug(id: &str, property: &str) -> Value {
    with(node(id, "debug", json!([])), json!({"complete": property}))
}

pub(crate) fn catch(id: &str, scope: Value, targets: &[&str]) -> Value {
    with(node(id, "catch", json!([targets])), json!({"scope": scope}))
}

/// A model answer that ends the run.
pub(crate) fn final_answer(message: &str) -> Value {
    json!({"action": "final", "message": message})
}

/// A model answer that calls a tool.
pub(crate) fn tool_call(tool: &str, input: Value) -> Value {
    json!({"action": "tool", "tool": tool, "input": input, "confidence": 0.5})
}

/// A model answer that fails the run with `INVALID_JSON`.
pub(crate) fn not_json() -> Value {
    json!("Let me think …")
}

/// Arrays nested in each other.
pub(crate) fn nested(levels: usize) -> Value {
    (1..levels).fold(json!([]), |inner, _| json!([inner]))
}
