//! One Node-RED: the engine that runs its agents, the flow it has, and the link to it.
//!
//! Owns what happens when it deploys. Its flow and its credentials are kept in memory only: it sends them again whenever
//! they are not known here.

use super::EngineParts;
use super::host::{NodeRed, adapters};
use super::observer::BridgeObserver;
use super::session::BridgeSession;
use crate::active_flow::{FlowBuilder, Prepared};
use crate::deploy::refused;
use crate::sidecar::blocking;
use redflow_contract::Message;
use redflow_contract::api::{AgentState, ApiError};
use redflow_contract::bridge::{BridgeMessage, InstanceState};
use redflow_contract::diagnostic::CheckReport;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::{InstanceId, NodeId};
use redflow_engine::{Engine, Ports};
use redflow_flow::RawFlow;
use redflow_ports::{Credentials, EventSink as _, RunReader};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// What is told of it.
#[derive(Debug, Clone, Default)]
struct Told {
    node_red: String,
    bridge: String,
    revision: Option<String>,
    agents: Vec<AgentState>,
}

pub(crate) struct Instance {
    pub(super) id: InstanceId,
    pub(super) engine: Engine,
    pub(super) link: Arc<BridgeSession>,
    pub(super) catalogue: Arc<dyn RunReader>,
    sink: Arc<BridgeObserver>,
    flow_builder: FlowBuilder,
    told: Mutex<Told>,
    /// One deploy at a time; whether runs of an earlier time were brought back.
    recovered: tokio::sync::Mutex<bool>,
}

impl Instance {
    pub(super) fn new(id: InstanceId, engine_parts: &EngineParts) -> Self {
        let EngineParts { clock, store, catalogue, meter, hub, flow_builder } = engine_parts;
        // A name that no other process gives: it need not be secret.
        let link = Arc::new(BridgeSession::new(clock.run_id().to_string()));
        let sink = Arc::new(BridgeObserver {
            hub: Arc::clone(hub),
            clock: Arc::clone(clock),
            link: Arc::clone(&link),
        });
        let flow_builder = flow_builder.of(id.clone(), Arc::new(adapters(&flow_builder.adapters, &link)));
        let ports = Ports {
            clock: Arc::clone(clock),
            events: sink.clone(),
            store: Arc::clone(store),
            adapters: Arc::clone(&flow_builder.adapters),
            instance: id.clone(),
            source: Some(Arc::from(format!("node-red:{id}"))),
            host: Some(Arc::new(NodeRed { link: Arc::clone(&link) })),
            listens: false,
            meter: Arc::clone(meter),
            env: flow_builder.env,
        };
        let engine = Engine::new(None, ports, flow_builder.settings.engine_limits);
        let (told, recovered) = (Mutex::default(), tokio::sync::Mutex::new(false));
        Self { id, engine, link, catalogue: Arc::clone(catalogue), sink, flow_builder, told, recovered }
    }

    /// Whether it is away, so that another one may have its place.
    pub(super) fn is_idle(&self) -> bool {
        !self.link.is_connected()
    }

    pub(super) fn introduce(&self, node_red: String, bridge: String) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        (told.node_red, told.bridge) = (node_red, bridge);
    }

    pub(super) fn state(&self) -> InstanceState {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (waiting, open_calls) = self.link.counts();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        InstanceState {
            instance: self.id.clone(),
            connected: self.link.is_connected(),
            node_red: told.node_red,
            bridge: told.bridge,
            revision: told.revision,
            agents: told.agents,
            waiting: count(waiting),
            open_calls: count(open_calls),
        }
    }

    /// Puts the flow of Node-RED in force. An agent with errors is refused, the rest runs. Gives what Node-RED is told.
    pub(super) async fn deploy(
        self: &Arc<Self>,
        revision: String,
        flows: Vec<Value>,
        credentials: BTreeMap<NodeId, BTreeMap<String, String>>,
    ) -> BridgeMessage {
        let mut recovered = self.recovered.lock().await;
        let flow_builder = self.flow_builder.clone();
        let prepare = move || {
            let raw = RawFlow::from_value(Value::Array(flows), &flow_builder.settings.flow_limits)
                .map_err(refused)?;
            flow_builder.prepare(raw, &given(credentials)).map_err(refused)
        };
        let prepared = blocking(prepare).await.and_then(|prepared| prepared);
        let Prepared { told, built, .. } = match prepared {
            Ok(prepared) => prepared,
            Err(problem) => {
                let ApiError { code, message, .. } = &*problem.0;
                tracing::warn!(
                    instance = self.id.as_str(),
                    code = code.as_str(),
                    "Node-RED's flow is refused: {message}"
                );
                return BridgeMessage::FlowsRefused { seq: 0, revision, error: *problem.0 };
            }
        };
        self.engine.deploy(built).await;
        let agents: Vec<AgentState> = told.list.flows.iter().flat_map(|flow| flow.agents.clone()).collect();
        self.tell_deployed(&revision, &agents);
        {
            let mut own = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            (own.revision, own.agents) = (Some(revision.clone()), agents.clone());
        }
        if !std::mem::replace(&mut *recovered, true) {
            self.recover();
            tokio::spawn(Arc::clone(self).ask_again());
        }
        let report = CheckReport::clone(&told.report);
        BridgeMessage::Deployed { seq: 0, revision, agents, report }
    }

    fn tell_deployed(&self, revision: &str, agents: &[AgentState]) {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let refused = agents.iter().filter(|agent| !agent.ready);
        for agent in refused.clone().take(100) {
            let code = agent.problems.first().map_or("", |problem| problem.code.as_str());
            let (instance, agent) = (self.id.as_str(), agent.node.id.as_str());
            tracing::warn!(instance, agent, code, "an agent is refused; /api/instances says why");
        }
        let (revision, refused) = (revision.to_owned(), count(refused.count()));
        let (agents, instance) = (count(agents.len()), Some(self.id.clone()));
        self.sink.flow_event(&FlowEvent::Deployed { revision, agents, refused, instance });
    }

    /// Tells everybody who looks at events.
    pub(super) fn told(&self, event: &FlowEvent) {
        self.sink.flow_event(event);
    }

    /// Brings runs of an earlier time back, and sends results that have not arrived.
    pub(super) fn recover(self: &Arc<Self>) {
        let own = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = own.engine.recover(&CancellationToken::new()).await {
                let (instance, code) = (own.id.as_str(), error.code.as_str());
                tracing::error!(instance, code, "runs could not be brought back: {}", error.message);
            }
        });
    }
}

fn given(credentials: BTreeMap<NodeId, BTreeMap<String, String>>) -> Credentials {
    let own = |values: BTreeMap<String, String>| -> Message {
        values.into_iter().map(|(name, value)| (name, Value::from(value))).collect()
    };
    credentials.into_iter().map(|(node, values)| (node, own(values))).collect()
}
