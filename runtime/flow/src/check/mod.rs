//! Checks a resolved flow: finds the agents with everything they bind, and every problem at once.

mod ai_agent;
mod bindings;
mod collector;
mod config;
mod config_texts;
mod flow_tools;
mod http_request;
mod key_node;
mod knowledge_base;
mod model_price;
mod named_services;
mod presets;
pub(crate) mod schema;

mod spec;
mod texts;
mod tools;
mod unknown_property;
mod wires;

use crate::raw::RawFlow;
use crate::report::single_problem;
use crate::resolve::resolve_flow;
use crate::resolved::{NodeIx, ResolvedFlow};
use crate::wire_search::{LimitExceeded, WireSearch};
use collector::DiagnosticCollector;
use redflow_contract::catalogue::lookup;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::flow::Profile;
use redflow_contract::id::{InstanceId, NodeSummary};
use redflow_contract::input::InputTemplates;
use redflow_contract::json::size_of;
use redflow_contract::limits::{FlowLimits, RunLimits};
use redflow_contract::node::{Budget, OnUnknown};
use redflow_contract::phrases;
use redflow_contract::plan::{AgentPlan, AgentSpec};
use redflow_contract::run_error::RunError;
use schema::SchemaStore;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The options of a check.
pub struct CheckOptions<'a> {
    /// How strictly an agent's configuration is read.
    pub profile: Profile,
    /// Limits on the flow.
    pub limits: FlowLimits,
    /// Limits on the runs of its agents.
    pub run_limits: RunLimits,
    /// What one run may spend, however much its agent allows.
    pub run_budget: Budget,
    /// The Node-RED that owns the flow.
    pub instance: InstanceId,
    /// Whether this build can run a node type.
    pub can_run: &'a dyn Fn(&str) -> bool,
    /// Whether nodes of a type provide several tools: operations, or tools of an adapter.
    pub provides_tools: &'a dyn Fn(&str) -> bool,
    /// The process environment, as far as flows may see it.
    pub env: &'a dyn Fn(&str) -> Option<String>,
}

/// A checked flow. It may contain refused agents; the rest can run.
#[derive(Debug)]
pub struct CheckedFlow {
    /// Every problem of the flow.
    pub report: CheckReport,
    /// The resolved nodes and wires.
    pub flow: ResolvedFlow,
    /// The agents, in the order of the file.
    pub agents: Vec<CheckedAgent>,
}

/// An agent, and whether it can run.
#[derive(Debug)]
pub struct CheckedAgent {
    /// Its index in the flow.
    pub ix: NodeIx,
    /// The id, type and name of the agent.
    pub node: NodeSummary,
    /// The inject nodes that are wired to it.
    pub injects: Vec<NodeIx>,
    /// The models that it binds, then its fallback models, also of an agent that cannot run.
    pub models: Vec<NodeIx>,
    /// The memories that it binds, also of an agent that cannot run.
    pub memories: Vec<NodeIx>,
    /// Whether it can run, and with what.
    pub verdict: Verdict,
}

/// Whether an agent can run.
#[derive(Debug)]
pub enum Verdict {
    /// It can run.
    Ready(Box<ReadyAgent>),
    /// It cannot run, and answers every message with an error.
    Refused {
        /// The error for every message.
        error: RunError,
        /// The names in its `allowedTools`.
        tools: Vec<String>,
        /// The problems that refuse it; the first 20.
        problems: Vec<Diagnostic>,
    },
}

/// An agent that can run.
#[derive(Debug)]
pub struct ReadyAgent {
    /// The agent as the machine uses it.
    pub spec: Arc<AgentSpec>,
    /// The agent as the journal records it.
    pub plan: Arc<AgentPlan>,
    /// The index of the model in the flow.
    pub model: NodeIx,
    /// The indexes of the fallback models, in their order.
    pub fallback_models: Vec<NodeIx>,
    /// Whether the stream port has a wire.
    pub stream_wired: bool,
    /// The index of the memory in the flow; none if it binds none.
    pub memory: Option<NodeIx>,
    /// The tools that the model may call.
    pub tools: Vec<ReadyTool>,
    /// The nodes that provide further tools, which are known as a run begins.
    pub providers: Vec<ReadyProvider>,
    /// The tools that the model may call: ids, names or patterns. None for all that are bound.
    pub allowed_tools: Option<Vec<String>>,
    /// Its own `sessionId`; none if it has none.
    pub session_id: Option<String>,
    /// What it says about the user, the time and the tags of a message.
    pub input: InputTemplates,
}

/// A node that provides several tools.
#[derive(Debug)]
pub struct ReadyProvider {
    /// The index of the node in the flow.
    pub ix: NodeIx,
    /// The tools of the registry that it binds; none if it provides tools of its own.
    pub ids: Option<Vec<String>>,
    /// The name that its tools begin with instead of its type; none if it has none.
    pub tool_name: Option<String>,
    /// What happens if the outcome of a call is unknown.
    pub on_unknown: OnUnknown,
}

/// A tool of an agent that can run.
#[derive(Debug)]
pub struct ReadyTool {
    /// The name that the model calls it by.
    pub name: String,
    /// The index of its node in the flow.
    pub ix: NodeIx,
}

/// Reads, resolves and checks a flow file.
///
/// # Errors
/// A report of what refuses the whole flow.
///
/// ```
/// use redflow_contract::{code::DiagnosticCode, flow::Profile, id::InstanceId};
/// use redflow_flow::{CheckOptions, Verdict, check_bytes};
///
/// let options = CheckOptions {
///     profile: Profile::Strict,
///     limits: Default::default(),
///     run_limits: Default::default(),
///     run_budget: Default::default(),
///     instance: InstanceId::local(),
///     can_run: &|type_name| ["agent-core", "calculator-tool"].contains(&type_name),
///     provides_tools: &|_| false,
///     env: &|_| None,
/// };
/// // An agent with a tool, but without a model.
/// let file = br#"[{"id": "t", "type": "tab"},
///     {"id": "a", "type": "agent-core", "z": "t", "strategy": "react", "maxIterations": 3, "debug": false,
///         "allowedTools": ["calculator"], "stopConditions": [], "wires": [[], ["c"], [], [], []]},
///     {"id": "c", "type": "calculator-tool", "z": "t", "wires": [["a"]]}]"#;
/// let checked = check_bytes(file, &options).expect("a flow");
/// assert!(matches!(checked.agents[0].verdict, Verdict::Refused { .. }));
/// assert_eq!(checked.report.diagnostics[0].code, DiagnosticCode::ModelMissing);
/// ```
pub fn check_bytes(bytes: &[u8], options: &CheckOptions<'_>) -> Result<CheckedFlow, CheckReport> {
    check_flow(RawFlow::parse(bytes, &options.limits)?, options)
}

/// Resolves and checks a flow.
///
/// # Errors
/// A report of what refuses the whole flow.
pub fn check_flow(raw: RawFlow, options: &CheckOptions<'_>) -> Result<CheckedFlow, CheckReport> {
    let (flow, problems) = resolve_flow(raw, &options.limits)?;
    let mut checker = Checker {
        flow: &flow,
        options,
        diagnostics: DiagnosticCollector::new(&flow, options.limits.max_diagnostics),
        wire_search: WireSearch::new(&flow, options.limits.max_steps),
        schemas: SchemaStore::default(),
        tools: vec![None; flow.nodes.len()],
        configs: Vec::new(),
        sizes: flow.raw.nodes().iter().map(|node| node.props.values().map(size_of).sum()).collect(),
        bytes_left: options.limits.max_copied_bytes,
        disabled_services: disabled_services(&flow),
    };
    for problem in problems {
        checker.diagnostics.add(problem, 0);
    }
    match checker.run() {
        Ok(agents) => {
            let report = checker.diagnostics.finish();
            Ok(CheckedFlow { report, flow, agents })
        }
        Err(LimitExceeded::Steps) => Err(single_problem(&options.limits, hub_too_large(&options.limits))),
        Err(LimitExceeded::CopiedBytes) => {
            Err(single_problem(&options.limits, copies_too_large(&options.limits)))
        }
    }
}

struct Checker<'a> {
    flow: &'a ResolvedFlow,
    options: &'a CheckOptions<'a>,
    diagnostics: DiagnosticCollector<'a>,
    wire_search: WireSearch<'a>,
    schemas: SchemaStore,
    /// What each tool node declares, read once.
    tools: Vec<Option<Arc<tools::ToolInfo>>>,
    /// The settings of each agent whose properties were read.
    configs: Vec<(NodeIx, config::AgentConfig)>,
    /// The bytes of a copy of the properties of each node of the file.
    sizes: Vec<usize>,
    bytes_left: usize,
    /// The places of disabled models, memories and tools in the file; the first [`MAX_DISABLED_SERVICES`].
    disabled_services: Vec<usize>,
}

impl Checker<'_> {
    fn run(&mut self) -> Result<Vec<CheckedAgent>, LimitExceeded> {
        self.check_configs()?;
        let edges = self.check_wires()?;
        let named = self.check_named_services();
        let mut agents = Vec::new();
        for (ix, config) in std::mem::take(&mut self.configs) {
            let mut bound = self.check_bindings(ix, &config, &edges, &named);
            self.remove_tools_of_reader(ix, &config, &mut bound)?;
            self.check_tools(ix, &config, &bound)?;
            agents.push((ix, config, bound));
        }
        self.check_flow_tools(&edges, &agents)?;
        self.report_types_for_node_red();
        let injects = self.injects_of_agents()?;
        agents
            .into_iter()
            .map(|(ix, config, bound)| {
                let injects = injects.get(&ix).cloned().unwrap_or_default();
                self.build_agent(ix, config, &bound, injects)
            })
            .collect()
    }

    /// Counts bytes that are about to be copied.
    fn count_bytes(&mut self, bytes: usize) -> Result<(), LimitExceeded> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(LimitExceeded::CopiedBytes)?;
        Ok(())
    }

    /// The bytes of a copy of a node's properties.
    fn size(&self, ix: NodeIx) -> usize {
        self.sizes[self.flow.nodes[ix].raw]
    }

    /// JSON pointer to a wire in the node's own `wires`; none if another node has the wire, as in a subflow.
    fn wire_pointer(&self, ix: NodeIx, port: usize, place: usize) -> Option<String> {
        let wires = self.props(ix).get("wires")?;
        wires.get(port)?.get(place)?.is_string().then(|| format!("/wires/{port}/{place}"))
    }

    /// The name or id of a node, for a sentence.
    fn label(&self, ix: NodeIx) -> String {
        label(self.flow, ix)
    }

    fn props(&self, ix: NodeIx) -> &Map<String, Value> {
        &self.flow.raw(ix).props
    }

    /// Reports the nodes that only Node-RED can run.
    fn report_types_for_node_red(&mut self) {
        for (ix, node) in self.flow.nodes.iter().enumerate() {
            let type_name = &self.flow.raw(ix).type_name;
            if node.is_virtual || (self.options.can_run)(type_name) {
                continue;
            }
            self.diagnostics.push(DiagnosticCode::NeedsNodeRed, ix, None, || {
                let message = match type_name.strip_prefix("subflow:") {
                    Some(id) => phrases::subflow_missing(id),
                    None => phrases::type_not_run(type_name),
                };
                Diagnostic::new(DiagnosticCode::NeedsNodeRed, message, phrases::type_not_run_help())
            });
        }
    }
}

fn label(flow: &ResolvedFlow, ix: NodeIx) -> String {
    let name = flow.raw(ix).text("name").unwrap_or(flow.nodes[ix].id.as_str());
    format!("`{}`", name.chars().take(LABEL_CHARS).collect::<String>())
}

/// The most characters of a node's name in a sentence.
const LABEL_CHARS: usize = 80;

/// The most disabled services that agents without a service are compared with.
const MAX_DISABLED_SERVICES: usize = 1_000;

fn disabled_services(flow: &ResolvedFlow) -> Vec<usize> {
    let nodes = flow.raw.nodes().iter().enumerate();
    let disabled = nodes.filter(|(_, node)| {
        flow.disabled.contains(node.id.as_str()) && lookup(&node.type_name).role.is_service()
    });
    disabled.map(|(place, _)| place).take(MAX_DISABLED_SERVICES).collect()
}

fn copies_too_large(limits: &FlowLimits) -> Diagnostic {
    let mut problem = Diagnostic::new(
        DiagnosticCode::FlowTooLarge,
        phrases::copies_too_large(),
        phrases::copies_too_large_help(),
    );
    problem.expected = Some(format!("at most {} bytes of copies", limits.max_copied_bytes));
    problem
}

fn hub_too_large(limits: &FlowLimits) -> Diagnostic {
    let mut problem = Diagnostic::new(
        DiagnosticCode::FlowTooLarge,
        phrases::hub_too_large(),
        phrases::hub_too_large_help(),
    );
    problem.expected = Some(format!("at most {} steps", limits.max_steps));
    problem
}
