//! An agent over a real store: the engine, the scripted model and the calculator as they ship.
//!
//! Two doubles stop a run half-way: a model that hangs on demand, and a tool whose outcome is unknown.

use crate::Failure;
use redflow_contract::Message;
use redflow_contract::effect::{Ending, ToolCall};
use redflow_contract::fact::ModelAnswer;
use redflow_contract::flow::Profile;
use redflow_contract::id::InstanceId;
use redflow_contract::limits::{FlowLimits, RunLimits};
use redflow_contract::node::EffectClass;
use redflow_contract::run_error;
use redflow_engine::{
    Engine, EngineLimits, Ports, Registry, RunEnd, RunReport, Start, SystemClock, build_flow,
};
use redflow_flow::{CheckOptions, CheckedFlow, NodeIx, check_bytes};
use redflow_models::{ModelSettings, ScriptedModel};
use redflow_ports::{
    Adapters, BoxFuture, BuildError, ChatModel, ModelInfo, ModelRequest, NoMeter, NodeConfig, RunStore, Tool,
    ToolOutcome,
};
use redflow_testkit::NoEvents;
use serde_json::{Value, json};
use std::io::Write as _;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The work of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scenario {
    /// Tool calls before the final answer.
    pub(crate) tool_calls: usize,
    pub(crate) tool: ToolKind,
    /// Whether [`hang_at`] affects its model.
    pub(crate) may_hang: bool,
}

/// The effect of its tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolKind {
    /// The calculator, without an effect.
    Read,
    /// The calculator, but its node declares `at_most_once`.
    Once,
    /// The outcome stays unknown.
    Lost,
}

impl Scenario {
    pub(crate) fn new(tool_calls: usize, tool: ToolKind) -> Self {
        Self { tool_calls, tool, may_hang: false }
    }

    pub(crate) fn flow(self) -> Value {
        let node = |id: &str, kind: &str, wires: Value| json!({"id": id, "type": kind, "z": "t", "name": id, "x": 340, "y": 120, "wires": wires});
        let mut agent = node("agent", "agent-core", json!([["model"], ["tool"], [], ["show"], []]));
        agent["strategy"] = json!("react");
        agent["maxIterations"] = json!(self.tool_calls + 1);
        agent["allowedTools"] = json!(["calculator"]);
        agent["timeout"] = json!(3_600_000);
        let mut model =
            node("model", if self.may_hang { "model.hanging" } else { "scripted-model" }, json!([]));
        let call = json!({"action": "tool", "tool": "calculator", "input": {"expression": "(1203.50 + 17) * 0.19"}, "confidence": 0.8, "message": "First the tax on both items."});
        let answer = json!({"action": "final", "message": "The tax is 231.90.", "confidence": 0.93});
        let mut replies = vec![call; self.tool_calls];
        replies.push(answer);
        model["replies"] = Value::Array(replies);
        let lost = self.tool == ToolKind::Lost;
        let mut tool = node("tool", if lost { "tool.lost" } else { "calculator-tool" }, json!([]));
        match self.tool {
            ToolKind::Read => {}
            ToolKind::Once => tool["effect"] = json!("at_most_once"),
            ToolKind::Lost => {
                tool["toolName"] = json!("calculator");
                tool["inputSchema"] = json!({"type": "object"});
            }
        }
        let mut show = node("show", "debug", json!([]));
        show["complete"] = json!("payload");
        json!([{"id": "t", "type": "tab", "label": "Orders"}, agent, model, tool, show])
    }
}

fn checked(flow: &Value, adapters: &Adapters, env: Env) -> Result<CheckedFlow, Failure> {
    let options = CheckOptions {
        profile: Profile::Strict,
        limits: FlowLimits::default(),
        run_limits: RunLimits::default(),
        run_budget: Default::default(),
        instance: InstanceId::local(),
        provides_tools: &|_| false,
        can_run: &|type_name| adapters.can_run(type_name),
        env: &env,
    };
    let checked = check_bytes(flow.to_string().as_bytes(), &options)
        .map_err(|report| format!("the flow is refused: {report:?}"))?;
    if checked.report.ok { Ok(checked) } else { Err(format!("{:?}", checked.report).into()) }
}

/// The environment of a flow.
pub(crate) type Env = fn(&str) -> Option<String>;

fn no_env(_: &str) -> Option<String> {
    None
}

/// The adapters that ship, with these model settings.
pub(crate) fn shipped_adapters(models: ModelSettings) -> Adapters {
    let mut adapters = Adapters::default();
    redflow_models::register(&mut adapters, models);
    redflow_tools::register(&mut adapters, redflow_tools::ToolSettings::default());
    redflow_nodes::register(&mut adapters);
    adapters
}

fn adapters() -> Adapters {
    let mut adapters = shipped_adapters(ModelSettings::default());
    adapters.models.insert("model.hanging", Arc::new(HangingModel::build));
    adapters.tools.insert("tool.lost", Arc::new(|_| Ok(Arc::new(LostTool))));
    adapters
}

/// A runtime with one thread, as in the product.
pub(crate) fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Limits that allow `runs` runs at once, also of one agent.
pub(crate) fn limits_for(runs: usize) -> EngineLimits {
    EngineLimits {
        max_active: runs,
        max_active_per_agent: runs,
        max_queued: runs,
        max_queued_per_agent: runs,
        ..EngineLimits::default()
    }
}

/// Runs that are started together: far fewer than an engine accepts before a start waits.
pub(crate) const BATCH: u64 = 64;

/// An engine with one agent, in the current runtime.
pub(crate) struct World {
    engine: Engine,
    agent: NodeIx,
    cancel: CancellationToken,
}

impl World {
    pub(crate) fn new(
        scenario: Scenario,
        store: Arc<dyn RunStore>,
        limits: EngineLimits,
    ) -> Result<Arc<Self>, Failure> {
        Self::with_flow(&scenario.flow(), adapters(), no_env, store, limits)
    }

    /// The same for any flow with an agent `agent`.
    pub(crate) fn with_flow(
        flow: &Value,
        adapters: Adapters,
        env: Env,
        store: Arc<dyn RunStore>,
        limits: EngineLimits,
    ) -> Result<Arc<Self>, Failure> {
        Self::with_registry(flow, Arc::new(adapters), env, (store, Arc::default()), limits)
    }

    /// The same with tools of a registry.
    pub(crate) fn with_registry(
        flow: &Value,
        adapters: Arc<Adapters>,
        env: Env,
        (store, registry): (Arc<dyn RunStore>, Arc<Registry>),
        limits: EngineLimits,
    ) -> Result<Arc<Self>, Failure> {
        let checked = checked(flow, &adapters, env)?;
        let agent = checked.flow.find("agent").ok_or("the flow has no agent")?;
        let built = build_flow(checked, &adapters, redflow_strategies::strategies(), &env);
        let (clock, events) = (Arc::new(SystemClock), Arc::new(NoEvents));
        let (instance, source) = (InstanceId::local(), None);
        let ports = Ports {
            strategies: redflow_strategies::strategies().clone(),
            clock,
            events,
            store,
            adapters,
            instance,
            source,
            host: None,
            takes_requests: true,
            registry,
            principal: None,
            meter: Arc::new(NoMeter),
            env,
        };
        let engine = Engine::new(Some(built), ports, limits);
        Ok(Arc::new(Self { engine, agent, cancel: CancellationToken::new() }))
    }

    fn start(&self) -> Start {
        Start::Agent { node: self.agent, payload: json!("What is the tax on the order?") }
    }

    /// Drives `runs` runs to where they stop, `at_once` of them at a time.
    pub(crate) async fn drive(self: &Arc<Self>, runs: usize, at_once: usize) -> Result<(), Failure> {
        let started = Arc::new(AtomicU64::new(0));
        let mut drivers = JoinSet::new();
        for _ in 0..at_once {
            let (world, started) = (Arc::clone(self), Arc::clone(&started));
            drivers.spawn(async move {
                while started.fetch_add(1, Ordering::Relaxed) < runs as u64 {
                    let reports = world.engine.run(world.start(), &world.cancel).await;
                    check_ends(&reports)?;
                }
                Ok::<_, Failure>(())
            });
        }
        while let Some(driver) = drivers.join_next().await {
            driver??;
        }
        Ok(())
    }

    /// Starts runs and waits until the model of each hangs.
    pub(crate) async fn leave_hanging(&self, runs: u64) -> Result<(), Failure> {
        let mut started = 0;
        while started < runs {
            let some = BATCH.min(runs - started);
            self.start_runs(some)?;
            started += some;
            until(|| hanging() >= started).await;
        }
        Ok(())
    }

    /// Starts at most [`BATCH`] runs. Nothing waits for their reports, so only the engine holds memory for them.
    pub(crate) fn start_runs(&self, runs: u64) -> Result<(), Failure> {
        for _ in 0..runs {
            let report = pin!(self.engine.run(self.start(), &self.cancel));
            if report.poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                return Err("a run that should hang has ended".into());
            }
        }
        Ok(())
    }

    /// Starts a run with this payload. A task waits for its end.
    pub(crate) fn start_run_with(self: &Arc<Self>, payload: Value) {
        let world = Arc::clone(self);
        tokio::spawn(async move {
            let start = Start::Agent { node: world.agent, payload };
            let reports = world.engine.run(start, &world.cancel).await;
            let _ = writeln!(std::io::stderr(), "a run that should hang has ended: {reports:?}");
        });
    }

    /// Recovers all runs of the store, drives them to their end, and gives their number.
    pub(crate) async fn recover(&self) -> Result<usize, Failure> {
        let reports = self.engine.recover(&self.cancel).await?;
        check_ends(&reports)?;
        Ok(reports.len())
    }

    /// Recovers all runs of the store, until `runs` runs hang again.
    pub(crate) async fn recover_hanging(&self, runs: u64) -> Result<(), Failure> {
        tokio::select! {
            reports = self.engine.recover(&self.cancel) => {
                Err(format!("runs that should hang have ended: {}", reports?.len()).into())
            }
            () = until(|| hanging() >= runs) => Ok(()),
        }
    }
}

/// Waits until a condition holds.
pub(crate) async fn until(met: impl Fn() -> bool) {
    while !met() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn check_ends(reports: &[RunReport]) -> Result<(), Failure> {
    for RunReport { end, .. } in reports {
        match end {
            RunEnd::Finished { ending: Ending::Completed, .. } | RunEnd::Waiting(_) => {}
            other => return Err(format!("a run should have ended well, and is {other:?}").into()),
        }
    }
    if reports.is_empty() { Err("nothing was run".into()) } else { Ok(()) }
}

/// The iteration in which models hang; none at 0.
static HANG_AT: AtomicU32 = AtomicU32::new(0);
static HANGING: AtomicU64 = AtomicU64::new(0);

/// Models with `may_hang` hang in this iteration from now on.
pub(crate) fn hang_at(iteration: u32) {
    HANG_AT.store(iteration, Ordering::Relaxed);
}

/// The number of hanging calls.
fn hanging() -> u64 {
    HANGING.load(Ordering::Relaxed)
}

/// `model.hanging`: the scripted model, which hangs at the iteration of [`hang_at`].
struct HangingModel(Arc<dyn ChatModel>);

impl HangingModel {
    fn build(config: NodeConfig<'_>) -> Result<Arc<dyn ChatModel>, BuildError> {
        Ok(Arc::new(Self(ScriptedModel::build(config)?)))
    }
}

impl ChatModel for HangingModel {
    fn info(&self) -> &ModelInfo {
        self.0.info()
    }

    fn call<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelAnswer, run_error::Failure>> {
        if request.iteration == HANG_AT.load(Ordering::Relaxed) {
            HANGING.fetch_add(1, Ordering::Relaxed);
            return Box::pin(std::future::pending());
        }
        self.0.call(request)
    }
}

/// `tool.lost`: a call with an unknown outcome.
struct LostTool;

impl Tool for LostTool {
    fn effect(&self, _: &Message) -> EffectClass {
        EffectClass::AtMostOnce
    }

    fn call<'a>(&'a self, _: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        let reason = "the line went dead".to_owned();
        Box::pin(std::future::ready(ToolOutcome::Unknown { reason }))
    }
}

#[cfg(test)]
mod tests {
    use super::{Scenario, ToolKind, World, hang_at, limits_for, runtime};
    use redflow_contract::run::RunStatus;
    use redflow_store::{MemoryStore, RunFilter};
    use std::sync::Arc;

    fn statuses(store: &MemoryStore) -> Vec<RunStatus> {
        store.list(&RunFilter::default()).runs.into_iter().map(|run| run.status).collect()
    }

    #[test]
    fn runs_end_with_the_expected_status() {
        for (tool_calls, tool, status) in [
            (0, ToolKind::Read, RunStatus::Completed),
            (19, ToolKind::Read, RunStatus::Completed),
            (5, ToolKind::Once, RunStatus::Completed),
            (5, ToolKind::Lost, RunStatus::Waiting),
        ] {
            let store = Arc::new(MemoryStore::default());
            let driven = runtime().unwrap().block_on(async {
                let scenario = Scenario::new(tool_calls, tool);
                World::new(scenario, Arc::clone(&store) as _, limits_for(2)).unwrap().drive(3, 2).await
            });
            driven.unwrap();
            assert_eq!(statuses(&store), [status; 3], "{tool_calls} {tool:?}");
        }
    }

    #[test]
    fn hanging_runs_are_recovered() {
        let store = Arc::new(MemoryStore::default());
        let world = || {
            let scenario = Scenario { may_hang: true, ..Scenario::new(5, ToolKind::Read) };
            World::new(scenario, Arc::clone(&store) as _, limits_for(100)).unwrap()
        };
        hang_at(3);
        runtime().unwrap().block_on(async { world().leave_hanging(100).await }).unwrap();
        assert_eq!(statuses(&store), [RunStatus::Running; 100]);
        hang_at(0);
        let recovered = runtime().unwrap().block_on(async { world().recover().await });
        assert_eq!(recovered.unwrap(), 100);
        assert_eq!(statuses(&store), [RunStatus::Completed; 100]);
    }
}
