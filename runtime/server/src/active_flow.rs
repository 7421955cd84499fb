//! The active flow: its data for responses, and the way from a document to a running flow.
//!
//! Owns the revision of a flow. Never writes a file.

use crate::deployed_models::deployed_models;
use crate::keyed_models::{KeyedModels, keyed_models};
use crate::mcp::exposed_nodes::ExposedNodes;
use crate::mcp_uses::McpUses;
use crate::redflow_ui::stored_items::StoredItems;
use crate::service_notices::{NoticingServices, add_service_notices};
use crate::settings::Settings;
use redflow_contract::api::{AgentState, FlowList, FlowSummary};
use redflow_contract::catalogue::lookup;
use redflow_contract::code::{DiagnosticCode, Severity};
use redflow_contract::deployed_model::DeployedModelList;
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::digest::Digest;
use redflow_contract::edge::Role;
use redflow_contract::flow::Profile;
use redflow_contract::id::{InstanceId, NodeId, NodeSummary};
use redflow_contract::phrases;
use redflow_contract::scrub::Scrubber;
use redflow_engine::{BuiltAgent, BuiltFlow, FlowTool, Registry, build_flow};
use redflow_flow::{CheckOptions, CheckedAgent, CheckedFlow, RawFlow, ResolvedFlow, Verdict, check_flow};
use redflow_ports::{Adapters, BuildError, Credentials, Memory, StoredFlow};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Hex digits of a revision.
const REVISION_DIGITS: usize = 32;

/// The deployed flow, as requests read it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ActiveFlow {
    pub(crate) list: Arc<FlowList>,
    /// The nodes as a JSON array, without credentials.
    pub(crate) nodes: Arc<str>,
    pub(crate) credentials: Arc<Credentials>,
    pub(crate) report: Arc<CheckReport>,
    /// The enabled chat nodes, each with an agent that its messages reach.
    pub(crate) chats: Arc<HashMap<NodeId, Option<NodeSummary>>>,
    /// The enabled inject nodes.
    pub(crate) injects: Arc<HashSet<NodeId>>,
    pub(crate) is_empty: bool,
    pub(crate) tools: Arc<FlowTools>,
    pub(crate) keyed_models: Arc<KeyedModels>,
    pub(crate) models: Arc<DeployedModelList>,
}

/// The tools of a flow, for calls outside its runs.
#[derive(Default)]
pub(crate) struct FlowTools {
    /// The tools that are nodes of their own, sorted by id.
    pub(crate) own: Vec<FlowTool>,
    /// The agents that may run.
    pub(crate) agents: HashMap<NodeId, Arc<BuiltAgent>>,
    /// The memories of these agents, each once.
    pub(crate) memories: Vec<(NodeSummary, Arc<dyn Memory>)>,
    /// The agents that may not run, each with its memory, if no other agent uses that.
    pub(crate) unbuilt_memories: Vec<(NodeSummary, NodeSummary)>,
    /// Removes the secrets of the flow.
    pub(crate) scrubber: Arc<Scrubber>,
    /// What MCP clients see of the flow.
    pub(crate) exposed: ExposedNodes,
    /// The MCP servers that its agents use.
    pub(crate) mcp_uses: McpUses,
}

impl FlowTools {
    /// `bound` holds the agents of the flow, each with the memory that it binds.
    fn new(
        built: &BuiltFlow,
        bound: Vec<(NodeSummary, NodeSummary)>,
        exposed: ExposedNodes,
        mcp_uses: McpUses,
    ) -> Self {
        let agents = built.agents().map(|(id, agent)| (id.clone(), Arc::clone(agent))).collect();
        let memories = built.memories().to_vec();
        let is_built = |memory: &NodeSummary| memories.iter().any(|(known, _)| known.id == memory.id);
        let unbuilt_memories = bound.into_iter().filter(|(_, memory)| !is_built(memory)).collect();
        let scrubber = Arc::clone(built.scrubber());
        Self { own: built.tools(), agents, memories, unbuilt_memories, scrubber, exposed, mcp_uses }
    }
}

impl ActiveFlow {
    pub(crate) fn revision(&self) -> &str {
        &self.list.revision
    }

    pub(crate) fn agents(&self) -> impl Iterator<Item = &AgentState> {
        self.list.flows.iter().flat_map(|flow| &flow.agents)
    }
}

/// A flow that is ready to be activated.
pub(crate) struct PreparedFlow {
    pub(crate) active: ActiveFlow,
    pub(crate) built: BuiltFlow,
    pub(crate) stored: StoredFlow,
}

/// Checks and builds the flows of one instance.
#[derive(Clone)]
pub(crate) struct FlowBuilder {
    pub(crate) adapters: Arc<Adapters>,
    pub(crate) env: fn(&str) -> Option<String>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) registry: Arc<Registry>,
    /// Holds credentials from the Redflow UI. Only the flow of the sidecar itself gets them.
    pub(crate) stored_items: Arc<StoredItems>,
    /// The instance that owns the flows: the sidecar itself or a Node-RED.
    pub(crate) instance: InstanceId,
}

impl FlowBuilder {
    /// A builder for the flow of a Node-RED, which runs all nodes outside its agents itself.
    pub(crate) fn for_instance(&self, instance: InstanceId, adapters: Arc<Adapters>) -> Self {
        Self { adapters, instance, ..self.clone() }
    }

    fn can_run(&self, type_name: &str) -> bool {
        let has_host = self.adapters.flow_tools.is_some();
        self.adapters.can_run(type_name)
            || has_host && matches!(lookup(type_name).role, Role::Data | Role::Chat)
    }

    pub(crate) fn check(&self, raw: RawFlow, profile: Profile) -> Result<CheckedFlow, CheckReport> {
        let options = CheckOptions {
            profile,
            limits: self.settings.flow_limits,
            run_limits: self.settings.run_limits,
            run_budget: self.settings.run_budget,
            instance: self.instance.clone(),
            provides_tools: &|type_name| {
                self.adapters.tool_providers.contains_key(type_name)
                    || self.registry.snapshot().operations(&self.instance, type_name).is_some()
            },
            can_run: &|type_name| self.can_run(type_name),
            env: &self.env,
        };
        check_flow(raw, &options)
    }

    /// Checks and builds a flow, to report the problems that a deploy of it would have. `stored` holds the credentials
    /// of nodes that bring none. The built flow never runs; there is none if the whole flow is refused.
    pub(crate) fn try_build(
        &self,
        mut raw: RawFlow,
        profile: Profile,
        stored: &Credentials,
    ) -> (CheckReport, Option<BuiltFlow>) {
        let merged =
            (self.instance == InstanceId::local()).then(|| self.stored_items.merge_credentials(&raw, stored));
        raw.add_missing_credentials(merged.as_ref().unwrap_or(stored));
        let checked = match self.check(raw, profile) {
            Ok(checked) => checked,
            Err(report) => return (report, None),
        };
        let mut report = checked.report.clone();
        // A deploy logs what builders have to say. A check of every change in an editor does not.
        let silent = tracing::subscriber::NoSubscriber::new();
        let built = tracing::subscriber::with_default(silent, || self.build(checked));
        add_build_problems(&mut report, built.build_errors(), self.settings.flow_limits.max_diagnostics);
        (report, Some(built))
    }

    fn build(&self, checked: CheckedFlow) -> BuiltFlow {
        build_flow(checked, &self.adapters, redflow_strategies::strategies(), &self.env)
    }

    /// Adds what the services of a flow have to say to its report.
    pub(crate) async fn add_notices(&self, prepared: &mut PreparedFlow) {
        let services = NoticingServices::new(&prepared.built, self.registry.mcp());
        let limit = self.settings.flow_limits.max_diagnostics;
        let report = Arc::make_mut(&mut prepared.active.report);
        add_service_notices(report, services, &self.instance, limit).await;
    }

    /// Checks and builds a flow. `before` holds the credentials that its nodes already have. An agent with
    /// errors is refused, the rest runs.
    ///
    /// # Errors
    /// When the whole flow is refused.
    pub(crate) fn prepare(&self, raw: RawFlow, before: &Credentials) -> Result<PreparedFlow, CheckReport> {
        let mut raw = raw.into_array();
        raw.extract_plain_keys(None);
        let credentials = raw.take_credentials(before);
        let mut json = raw.to_json();
        let nodes = serde_json::to_string(&json).unwrap_or_default();
        let pretty = serde_json::to_vec_pretty(&json).unwrap_or_default();
        // Programs write the keys of a node in any order, so the order does not count.
        json.iter_mut().for_each(serde_json::Value::sort_all_objects);
        let sorted = serde_json::to_vec(&json).unwrap_or_default();
        let revision = Digest::of(&sorted).to_hex().chars().take(REVISION_DIGITS).collect();
        drop((json, sorted));
        let mut flows = tabs(&raw);
        if self.instance == InstanceId::local() {
            raw.insert_credentials(&self.stored_items.merge_credentials(&raw, &credentials));
        } else {
            raw.insert_credentials(&credentials);
        }
        let checked = self.check(raw, self.settings.profile)?;
        let report = Arc::new(checked.report.clone());
        let agents = agent_states(&checked);
        let injects = Arc::new(inject_nodes(&checked.flow));
        let keyed_models = Arc::new(keyed_models(&checked.flow, &self.env));
        let models = Arc::new(deployed_models(&checked, &self.instance, &self.adapters, &self.env));
        let is_empty = checked.flow.nodes.is_empty() && flows.is_empty();
        let (memories, exposed) = (bound_memories(&checked), ExposedNodes::new(&checked));
        let mcp_uses = McpUses::new(&checked, &self.env);
        let built = self.build(checked);
        let build_errors: HashMap<&NodeId, &BuildError> =
            built.build_errors().iter().map(|(agent, error)| (&agent.id, error)).collect();
        let mut tab_index: HashMap<String, usize> =
            flows.iter().enumerate().map(|(index, flow)| (flow.id.to_string(), index)).collect();
        for (tab, mut state) in agents {
            if let Some(error) = build_errors.get(&state.node.id) {
                state.ready = false;
                state.problems.insert(0, build_problem(&state.node, error));
            }
            let index = *tab_index.entry(tab).or_insert_with_key(|tab| {
                // The agent is on no tab and names none.
                flows.push(unnamed_tab(tab, 0));
                flows.len() - 1
            });
            flows[index].agents.push(state);
        }
        let active = ActiveFlow {
            list: Arc::new(FlowList { revision, flows }),
            nodes: nodes.into(),
            credentials: Arc::new(credentials.clone()),
            report,
            chats: Arc::new(built.chat_nodes().map(|(chat, agent)| (chat.clone(), agent)).collect()),
            injects,
            is_empty,
            tools: Arc::new(FlowTools::new(&built, memories, exposed, mcp_uses)),
            keyed_models,
            models,
        };
        Ok(PreparedFlow { active, built, stored: StoredFlow { flows: pretty, credentials } })
    }
}

/// The problem of an agent that passes the checker, but whose model, memory or tool cannot be built.
fn build_problem(agent: &NodeSummary, error: &BuildError) -> Diagnostic {
    let problem = match error.missing_key {
        Some(variable) => Diagnostic::new(
            DiagnosticCode::ModelKeyMissing,
            phrases::model_key_missing(&error.label),
            match &error.shared_key {
                Some(key) => phrases::model_key_missing_shared_help(key, variable),
                None => phrases::model_key_missing_help(variable),
            },
        ),
        None => {
            let message = phrases::build_failed(&error.label, &error.reason);
            Diagnostic::new(DiagnosticCode::ConfigInvalid, message, phrases::build_failed_help())
        }
    };
    let target = (error.node.id != agent.id).then(|| agent.clone());
    Diagnostic { node: Some(NodeSummary::clone(&error.node)), target, ..problem }
}

/// Adds what cannot be built to the errors of a report, up to its limit.
pub(crate) fn add_build_problems(
    report: &mut CheckReport,
    errors: &[(NodeSummary, BuildError)],
    limit: usize,
) {
    let place = report.diagnostics.partition_point(|problem| problem.severity == Severity::Error);
    let problems = errors.iter().map(|(agent, error)| build_problem(agent, error));
    let mut problems: Vec<Diagnostic> = problems.take(limit).collect();
    report.ok &= problems.is_empty();
    problems.append(&mut report.diagnostics.split_off(place));
    report.diagnostics.append(&mut problems);
    let rest = report.diagnostics.split_off(report.diagnostics.len().min(limit));
    let unbuilt = errors.iter().skip(limit).map(|(agent, error)| build_problem(agent, error).code);
    for code in rest.iter().map(|problem| problem.code).chain(unbuilt) {
        *report.omitted.entry(code.to_string()).or_default() += 1;
    }
}

fn tabs(raw: &RawFlow) -> Vec<FlowSummary> {
    let mut node_counts: HashMap<&str, u32> = HashMap::new();
    for tab in raw.nodes().iter().filter_map(|node| node.text("z")) {
        *node_counts.entry(tab).or_default() += 1;
    }
    let is_tab = |type_name: &str| type_name == "tab" || type_name == "subflow";
    let mut flows = Vec::new();
    for node in raw.nodes().iter().filter(|node| is_tab(&node.type_name)) {
        flows.push(FlowSummary {
            type_name: node.type_name.clone(),
            label: node.summary().name,
            disabled: node.flag("disabled"),
            ..unnamed_tab(node.id.as_str(), node_counts.remove(node.id.as_str()).unwrap_or_default())
        });
    }
    // An export of single nodes names their tab and does not contain it.
    let mut rest: Vec<(&str, u32)> = node_counts.into_iter().collect();
    rest.sort_unstable();
    flows.extend(rest.into_iter().map(|(id, nodes)| unnamed_tab(id, nodes)));
    flows
}

/// A tab of which only the id is known.
fn unnamed_tab(id: &str, nodes: u32) -> FlowSummary {
    let (id, type_name) = (NodeId::from(id), "tab".to_owned());
    FlowSummary { id, type_name, label: String::new(), disabled: false, nodes, agents: Vec::new() }
}

fn inject_nodes(flow: &ResolvedFlow) -> HashSet<NodeId> {
    let is_inject = |ix: &usize| !flow.nodes[*ix].is_virtual && flow.raw(*ix).type_name == "inject";
    (0..flow.nodes.len()).filter(is_inject).map(|ix| flow.nodes[ix].id.clone()).collect()
}

/// The agents that bind a memory, each with that memory.
fn bound_memories(checked: &CheckedFlow) -> Vec<(NodeSummary, NodeSummary)> {
    let memories = |agent: &CheckedAgent| {
        let bound = agent.memories.iter().map(|memory| (agent.node.clone(), checked.flow.summary(*memory)));
        bound.collect::<Vec<_>>()
    };
    checked.agents.iter().flat_map(memories).collect()
}

/// The agents, each with the id of its tab.
fn agent_states(checked: &CheckedFlow) -> Vec<(String, AgentState)> {
    let state = |agent: &CheckedAgent| {
        let (ready, problems, memory) = match &agent.verdict {
            Verdict::Ready(ready) => {
                (true, Vec::new(), ready.plan.memory.as_ref().map(|memory| memory.node.clone()))
            }
            Verdict::Refused { problems, .. } => (false, problems.clone(), None),
        };
        let tab = checked.flow.tab_of(agent.ix).to_owned();
        (tab, AgentState { node: agent.node.clone(), ready, problems, memory })
    };
    checked.agents.iter().map(state).collect()
}

#[cfg(test)]
mod tests {
    use super::{add_build_problems, build_problem};
    use redflow_contract::code::DiagnosticCode;
    use redflow_contract::diagnostic::{CheckReport, Diagnostic};
    use redflow_contract::id::{NodeId, NodeSummary};
    use redflow_ports::BuildError;

    fn node(id: &str) -> NodeSummary {
        NodeSummary { id: NodeId::from(id), type_name: "t".to_owned(), name: String::new() }
    }

    #[test]
    fn build_problems_follow_the_errors_up_to_the_limit() {
        let problem = |code| Diagnostic::new(code, String::new(), String::new());
        let known = [DiagnosticCode::EdgeSelf, DiagnosticCode::SessionShared].map(problem);
        let no_key = BuildError { missing_key: Some("KEY"), ..BuildError::new(&node("m"), "") };
        let errors = vec![
            (node("a"), no_key.clone()),
            (node("b"), no_key),
            (node("c"), BuildError::new(&node("c"), "")),
        ];
        let codes = |limit: usize| {
            let mut report = CheckReport { ok: true, diagnostics: known.to_vec(), ..CheckReport::default() };
            add_build_problems(&mut report, &errors, limit);
            assert!(!report.ok);
            let codes: Vec<&str> = report.diagnostics.iter().map(|problem| problem.code.as_str()).collect();
            (codes.join(" "), report.omitted.values().sum::<u32>())
        };
        let all = "EDGE_SELF MODEL_KEY_MISSING MODEL_KEY_MISSING CONFIG_INVALID SESSION_SHARED";
        assert_eq!(codes(10), (all.to_owned(), 0));
        assert_eq!(codes(2), ("EDGE_SELF MODEL_KEY_MISSING".to_owned(), 3));
        // An agent that cannot be built itself is one end, not two.
        assert_eq!(build_problem(&errors[2].0, &errors[2].1).target, None);
    }
}
