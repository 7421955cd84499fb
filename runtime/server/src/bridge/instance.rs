//! One Node-RED: the engine that runs its agents, its flow, and its session.
//!
//! Owns what happens when it deploys. Its flow and credentials are in memory only; Node-RED sends them again
//! to a sidecar that does not have them.

use super::engine_parts::EngineParts;
use super::host::{NodeRedHost, adapters};
use super::memory_health::MemoryHealth;
use super::observer::BridgeObserver;
use super::session::BridgeSession;
use crate::active_flow::{FlowBuilder, FlowTools, PreparedFlow, add_build_problems};
use crate::keyed_models::KeyedModels;
use crate::response::Problem;
use crate::work_slots::WorkSlots;
use redflow_contract::Message;
use redflow_contract::api::{AgentState, ApiError};
use redflow_contract::bridge::{BridgeMessage, InstanceState};
use redflow_contract::deployed_model::DeployedModelList;
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::event::FlowEvent;
use redflow_contract::id::{InstanceId, NodeId, Principal};
use redflow_engine::{Engine, Ports};
use redflow_flow::{RawFlow, check_node_tools};
use redflow_ports::{Credentials, EventSink as _, RunReader, RunStore};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Refused agents that are logged one by one.
const MAX_LOGGED: usize = 100;

/// What `/api/instances` shows of a Node-RED, apart from its session.
#[derive(Clone, Default)]
struct InstanceInfo {
    node_red: String,
    bridge: String,
    revision: Option<String>,
    agents: Vec<AgentState>,
    tools: Arc<FlowTools>,
    keyed_models: Arc<KeyedModels>,
    models: Arc<DeployedModelList>,
    flow: Option<DeployedFlow>,
}

/// The flow of a Node-RED, as it was deployed.
#[derive(Clone)]
pub(crate) struct DeployedFlow {
    /// The nodes as a JSON array, without credentials.
    pub(crate) nodes: Arc<str>,
    pub(crate) report: Arc<CheckReport>,
}

pub(crate) struct Instance {
    pub(crate) id: InstanceId,
    pub(super) engine: Engine,
    pub(super) session: Arc<BridgeSession>,
    pub(super) store: Arc<dyn RunStore>,
    pub(super) run_reader: Arc<dyn RunReader>,
    pub(super) work_slots: Arc<WorkSlots>,
    observer: Arc<BridgeObserver>,
    pub(super) memory_health: MemoryHealth,
    flow_builder: FlowBuilder,
    info: Mutex<InstanceInfo>,
    /// Held during a deploy, so that there is one at a time. Holds whether earlier runs were recovered.
    recovered: tokio::sync::Mutex<bool>,
}

impl Instance {
    pub(super) fn new(id: InstanceId, engine_parts: &EngineParts) -> Self {
        let EngineParts { clock, store, run_reader, meter, hub, agent_counts, flow_builder, work_slots } =
            engine_parts;
        // The id of the session must be unique, but need not be secret.
        let session = Arc::new(BridgeSession::new(clock.run_id().to_string()));
        let memory_failed = Arc::new(Notify::new());
        let observer = Arc::new(BridgeObserver {
            hub: Arc::clone(hub),
            clock: Arc::clone(clock),
            session: Arc::clone(&session),
            memory_failed: Arc::clone(&memory_failed),
            agent_counts: Arc::clone(agent_counts),
        });
        let adapters = Arc::new(adapters(&flow_builder.adapters, &session));
        let flow_builder = flow_builder.for_instance(id.clone(), adapters);
        let ports = Ports {
            strategies: redflow_strategies::strategies().clone(),
            clock: Arc::clone(clock),
            events: observer.clone(),
            store: Arc::clone(store),
            adapters: Arc::clone(&flow_builder.adapters),
            instance: id.clone(),
            source: Some(Arc::from(format!("node-red:{id}"))),
            host: Some(Arc::new(NodeRedHost { session: Arc::clone(&session) })),
            takes_requests: false,
            registry: Arc::clone(&flow_builder.registry),
            principal: Some(Principal::from(format!("node-red:{id}"))),
            meter: Arc::clone(meter),
            env: flow_builder.env,
        };
        Self {
            id,
            engine: Engine::new(None, ports, flow_builder.settings.engine_limits),
            memory_health: MemoryHealth::new(Arc::clone(&session), memory_failed),
            session,
            store: Arc::clone(store),
            run_reader: Arc::clone(run_reader),
            work_slots: Arc::clone(work_slots),
            observer,
            flow_builder,
            info: Mutex::default(),
            recovered: tokio::sync::Mutex::new(false),
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.session.is_connected()
    }

    /// Sets the versions that `hello` names.
    pub(super) fn set_versions(&self, node_red: String, bridge: String) {
        let mut info = self.info();
        (info.node_red, info.bridge) = (node_red, bridge);
    }

    pub(crate) fn state(&self) -> InstanceState {
        let info = self.info().clone();
        let (waiting, open_calls) = self.session.counts();
        InstanceState {
            instance: self.id.clone(),
            connected: self.is_connected(),
            node_red: info.node_red,
            bridge: info.bridge,
            revision: info.revision,
            agents: info.agents,
            waiting: saturated(waiting),
            open_calls: saturated(open_calls),
        }
    }

    /// The engine that runs its agents.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The tools of its flow.
    pub(crate) fn tools(&self) -> Arc<FlowTools> {
        Arc::clone(&self.info().tools)
    }

    /// The models of its flow that have keys.
    pub(crate) fn keyed_models(&self) -> Arc<KeyedModels> {
        Arc::clone(&self.info().keyed_models)
    }

    pub(crate) fn models(&self) -> Arc<DeployedModelList> {
        Arc::clone(&self.info().models)
    }

    /// Its flow; none if it has sent none.
    pub(crate) fn flow(&self) -> Option<DeployedFlow> {
        self.info().flow.clone()
    }

    fn info(&self) -> MutexGuard<'_, InstanceInfo> {
        self.info.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deploys the flow of Node-RED and gives the reply. An agent with errors is refused, the rest runs.
    pub(super) async fn deploy(
        self: &Arc<Self>,
        revision: String,
        flows: Vec<Value>,
        credentials: BTreeMap<NodeId, BTreeMap<String, String>>,
        node_tools: Option<Message>,
    ) -> BridgeMessage {
        let mut recovered = self.recovered.lock().await;
        let (flow_builder, id) = (self.flow_builder.clone(), self.id.clone());
        let prepare = move || {
            let raw = RawFlow::from_value(Value::Array(flows), &flow_builder.settings.flow_limits)
                .map_err(Problem::flow_refused)?;
            // Before the check, which asks which node types have operations.
            let (tools, problems) = check_node_tools(&Value::Object(node_tools.unwrap_or_default()));
            flow_builder.registry.set_node_tools(&id, tools);
            let prepared = flow_builder.prepare(raw, &to_credentials(credentials));
            Ok((prepared.map_err(Problem::flow_refused)?, problems))
        };
        let prepared = self.work_slots.run_deploy(prepare).await.and_then(|prepared| prepared);
        let (mut prepared, problems) = match prepared {
            Ok(prepared) => prepared,
            Err(problem) => {
                let ApiError { code, message, .. } = &*problem.0;
                let (instance, code) = (self.id.as_str(), code.as_str());
                tracing::warn!(instance, code, "refused the flow of Node-RED: {message}");
                return BridgeMessage::FlowsRefused { seq: 0, revision, error: *problem.0 };
            }
        };
        self.flow_builder.add_notices(&mut prepared).await;
        let PreparedFlow { active, built, .. } = prepared;
        let mut report = CheckReport::clone(&active.report);
        let limit = self.flow_builder.settings.flow_limits.max_diagnostics;
        add_build_problems(&mut report, built.build_errors(), limit);
        // Node-RED fires its inject nodes itself. These are the schedules of memories.
        self.engine.begin_schedules().await;
        self.engine.deploy(built).await;
        let agents: Vec<AgentState> = active.agents().cloned().collect();
        self.memory_health.watch(&agents, &active.tools.agents);
        self.report_deploy(&revision, &agents);
        {
            let mut info = self.info();
            (info.revision, info.agents) = (Some(revision.clone()), agents.clone());
            info.tools = Arc::clone(&active.tools);
            info.keyed_models = Arc::clone(&active.keyed_models);
            info.models = active.models;
            info.flow = Some(DeployedFlow { nodes: active.nodes, report: Arc::new(report.clone()) });
        }
        if !std::mem::replace(&mut *recovered, true) {
            self.recover();
            tokio::spawn(Arc::clone(self).query_waiting_calls());
        }
        self.report_node_tools(&problems);
        report.ok &= problems.is_empty();
        report.diagnostics.splice(0..0, problems.into_iter().map(of_package));
        BridgeMessage::Deployed { seq: 0, revision, agents, report }
    }

    /// Logs the refused agents, and appends the event of the deploy.
    fn report_deploy(&self, revision: &str, agents: &[AgentState]) {
        let refused = agents.iter().filter(|agent| !agent.ready);
        for agent in refused.clone().take(MAX_LOGGED) {
            let code = agent.problems.first().map_or("", |problem| problem.code.as_str());
            let (instance, agent) = (self.id.as_str(), agent.node.id.as_str());
            tracing::warn!(instance, agent, code, "refused an agent; see /api/instances for the reason");
        }
        let (revision, refused) = (revision.to_owned(), saturated(refused.count()));
        let (agents, instance) = (saturated(agents.len()), Some(self.id.clone()));
        self.append_event(&FlowEvent::Deployed { revision, agents, refused, instance });
    }

    /// Logs what is wrong with the operations in the packages of Node-RED.
    fn report_node_tools(&self, problems: &[Diagnostic]) {
        for problem in problems.iter().take(MAX_LOGGED) {
            let (instance, code) = (self.id.as_str(), problem.code.as_str());
            let place = problem.pointer.as_deref().unwrap_or_default();
            tracing::warn!(
                instance,
                code,
                place,
                "left out an operation of a node package: {}",
                problem.message
            );
        }
    }

    pub(super) fn append_event(&self, event: &FlowEvent) {
        self.observer.flow_event(event);
    }

    /// Resumes earlier runs, and sends results again that have not arrived.
    pub(super) fn recover(self: &Arc<Self>) {
        let own = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = own.engine.recover(&CancellationToken::new()).await {
                let (instance, code) = (own.id.as_str(), error.code.as_str());
                tracing::error!(instance, code, "could not recover runs: {}", error.message);
            }
        });
    }
}

/// Says that a problem is one of a node package, for Node-RED's log.
fn of_package(problem: Diagnostic) -> Diagnostic {
    let message = format!("`redflow.tools` of a node package: {}", problem.message);
    Diagnostic { message, ..problem }
}

fn to_credentials(credentials: BTreeMap<NodeId, BTreeMap<String, String>>) -> Credentials {
    let to_message = |values: BTreeMap<String, String>| -> Message {
        values.into_iter().map(|(name, value)| (name, Value::from(value))).collect()
    };
    credentials.into_iter().map(|(node, values)| (node, to_message(values))).collect()
}

fn saturated(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
