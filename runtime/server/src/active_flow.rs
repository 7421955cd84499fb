//! The flow in force: checked, built, and what is told of it.
//!
//! Owns the way from a document to something that runs, and its revision. Never writes anything.

use crate::redflow_ui::stored::Stored;
use crate::settings::Settings;
use redflow_contract::api::{AgentState, FlowList, FlowSummary};
use redflow_contract::catalogue::lookup;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::digest::Digest;
use redflow_contract::edge::Role;
use redflow_contract::flow::Profile;
use redflow_contract::id::{InstanceId, NodeId};
use redflow_contract::run_error::RunError;
use redflow_engine::{BuiltFlow, build_flow};
use redflow_flow::{CheckOptions, CheckedAgent, CheckedFlow, RawFlow, ResolvedFlow, Verdict, check_flow};
use redflow_ports::{Adapters, Credentials, StoredFlow};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Hex digits of a revision.
const REVISION: usize = 32;

/// What is told of the flow in force.
#[derive(Clone)]
pub(crate) struct ActiveFlow {
    pub(crate) list: Arc<FlowList>,
    /// The nodes as a JSON array, without credentials.
    pub(crate) nodes: Arc<str>,
    pub(crate) credentials: Arc<Credentials>,
    pub(crate) report: Arc<CheckReport>,
    /// The chat nodes that run.
    pub(crate) chats: Arc<HashSet<NodeId>>,
    /// The inject nodes that run: none that is switched off.
    pub(crate) injects: Arc<HashSet<NodeId>>,
    pub(crate) is_empty: bool,
}

impl ActiveFlow {
    pub(crate) fn revision(&self) -> &str {
        &self.list.revision
    }
}

/// A flow that can be put in force.
pub(crate) struct Prepared {
    pub(crate) told: ActiveFlow,
    pub(crate) built: BuiltFlow,
    pub(crate) shelved: StoredFlow,
}

/// What a flow is checked and built with.
#[derive(Clone)]
pub(crate) struct FlowBuilder {
    pub(crate) adapters: Arc<Adapters>,
    pub(crate) env: fn(&str) -> Option<String>,
    pub(crate) settings: Arc<Settings>,
    /// What the Redflow UI stores: credentials among it. Only for the flow of the sidecar itself.
    pub(crate) stored: Arc<Stored>,
    /// Whose flows they are.
    pub(crate) instance: InstanceId,
}

impl FlowBuilder {
    /// The same for the flow of a Node-RED, which runs what has no part in an agent itself.
    pub(crate) fn of(&self, instance: InstanceId, adapters: Arc<Adapters>) -> Self {
        Self { adapters, instance, ..self.clone() }
    }

    fn runs(&self, type_name: &str) -> bool {
        let elsewhere = self.adapters.flow_tools.is_some();
        self.adapters.runs(type_name)
            || elsewhere && matches!(lookup(type_name).role, Role::Data | Role::Chat)
    }

    /// Checks a flow.
    pub(crate) fn check(&self, raw: RawFlow, profile: Profile) -> Result<CheckedFlow, CheckReport> {
        let options = CheckOptions {
            profile,
            limits: self.settings.flow_limits,
            run_limits: self.settings.run_limits,
            instance: self.instance.clone(),
            runs: &|type_name| self.runs(type_name),
            env: &self.env,
        };
        check_flow(raw, &options)
    }

    /// Makes a flow ready, with what its nodes have of credentials. An agent with errors is refused, the rest runs.
    ///
    /// # Errors
    /// When the whole flow is refused.
    pub(crate) fn prepare(&self, raw: RawFlow, before: &Credentials) -> Result<Prepared, CheckReport> {
        let mut raw = raw.into_array();
        raw.extract_plain_keys(None);
        let credentials = raw.take_credentials(before);
        let json = raw.to_json();
        let nodes = serde_json::to_string(&json).unwrap_or_default();
        let pretty = serde_json::to_vec_pretty(&json).unwrap_or_default();
        let revision = Digest::of(nodes.as_bytes()).to_hex().chars().take(REVISION).collect();
        drop(json);
        let mut flows = tabs(&raw);
        if self.instance == InstanceId::local() {
            raw.insert_credentials(&self.stored.credentials(&raw, &credentials));
        } else {
            raw.insert_credentials(&credentials);
        }
        let checked = self.check(raw, self.settings.profile)?;
        let report = Arc::new(checked.report.clone());
        let agents = states(&checked);
        let injects = Arc::new(injects(&checked.flow));
        let is_empty = checked.flow.nodes.is_empty() && flows.is_empty();
        let built = build_flow(checked, &self.adapters, &self.env);
        let mut places: HashMap<String, usize> =
            flows.iter().enumerate().map(|(place, flow)| (flow.id.to_string(), place)).collect();
        for (tab, mut state) in agents {
            if let Some(error) = built.refusal(&state.node.id) {
                state.ready = false;
                if state.problems.is_empty() {
                    state.problems = vec![unbuilt(&state, error)];
                }
            }
            let place = *places.entry(tab).or_insert_with_key(|tab| {
                // Neither a tab nor the id of one.
                flows.push(unnamed(tab, 0));
                flows.len() - 1
            });
            flows[place].agents.push(state);
        }
        let told = ActiveFlow {
            list: Arc::new(FlowList { revision, flows }),
            nodes: nodes.into(),
            credentials: Arc::new(credentials.clone()),
            report,
            chats: Arc::new(built.chat_nodes().cloned().collect()),
            injects,
            is_empty,
        };
        Ok(Prepared { told, built, shelved: StoredFlow { flows: pretty, credentials } })
    }
}

/// An agent whose properties the checker takes, and whose model, memory or tool cannot be made of its.
fn unbuilt(state: &AgentState, error: &RunError) -> Diagnostic {
    let help = "Correct the node the message names, and deploy again.".to_owned();
    let message = error.message.clone();
    Diagnostic {
        node: Some(state.node.clone()),
        ..Diagnostic::new(DiagnosticCode::ConfigInvalid, message, help)
    }
}

fn tabs(raw: &RawFlow) -> Vec<FlowSummary> {
    let mut on_it: HashMap<&str, u32> = HashMap::new();
    for tab in raw.nodes().iter().filter_map(|node| node.text("z")) {
        *on_it.entry(tab).or_default() += 1;
    }
    let is_tab = |type_name: &str| type_name == "tab" || type_name == "subflow";
    let mut flows = Vec::new();
    for node in raw.nodes().iter().filter(|node| is_tab(&node.type_name)) {
        flows.push(FlowSummary {
            type_name: node.type_name.clone(),
            label: node.summary().name,
            disabled: node.flag("disabled"),
            ..unnamed(node.id.as_str(), on_it.remove(node.id.as_str()).unwrap_or_default())
        });
    }
    // An export of some nodes has the id of their tab and not the tab.
    let mut rest: Vec<(&str, u32)> = on_it.into_iter().collect();
    rest.sort_unstable();
    flows.extend(rest.into_iter().map(|(id, nodes)| unnamed(id, nodes)));
    flows
}

/// A tab of which only the id is known.
fn unnamed(id: &str, nodes: u32) -> FlowSummary {
    let (id, type_name) = (NodeId::from(id), "tab".to_owned());
    FlowSummary { id, type_name, label: String::new(), disabled: false, nodes, agents: Vec::new() }
}

fn injects(flow: &ResolvedFlow) -> HashSet<NodeId> {
    let is_inject = |ix: &usize| !flow.nodes[*ix].is_virtual && flow.raw(*ix).type_name == "inject";
    (0..flow.nodes.len()).filter(is_inject).map(|ix| flow.nodes[ix].id.clone()).collect()
}

/// The agents with the tab each is on.
fn states(checked: &CheckedFlow) -> Vec<(String, AgentState)> {
    let state = |agent: &CheckedAgent| {
        let (ready, problems) = match &agent.verdict {
            Verdict::Ready(_) => (true, Vec::new()),
            Verdict::Refused { problems, .. } => (false, problems.clone()),
        };
        let tab = checked.flow.tab_of(agent.ix).to_owned();
        (tab, AgentState { node: agent.node.clone(), ready, problems })
    };
    checked.agents.iter().map(state).collect()
}
