//! From a resolved flow to agents with everything they bind, and every problem at once.

mod bindings;
mod chains;
mod config;
mod schema;
mod sink;
mod spec;
mod tools;
mod wires;
mod wording;

use crate::graph::{TooMuch, Walker};
use crate::raw::{RawFlow, Refusal};
use crate::resolve::{NodeIx, ResolvedFlow, resolve_flow};
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::flow::Profile;
use redflow_contract::id::{InstanceId, NodeSummary};
use redflow_contract::json::size_of;
use redflow_contract::limits::{FlowLimits, RunLimits};
use redflow_contract::plan::{AgentPlan, AgentSpec};
use redflow_contract::run_error::RunError;
use schema::SchemaStore;
use serde_json::{Map, Value};
use sink::Sink;
use std::sync::Arc;

/// How to check.
pub struct CheckOptions<'a> {
    /// How strictly an agent's configuration is read.
    pub profile: Profile,
    /// Bounds on the flow.
    pub limits: FlowLimits,
    /// Bounds on the runs of its agents.
    pub run_limits: RunLimits,
    /// The Node-RED instance the flow belongs to.
    pub instance: InstanceId,
    /// Whether this build can run a type.
    pub runs: &'a dyn Fn(&str) -> bool,
    /// The process environment, as far as flows may see it.
    pub env: &'a dyn Fn(&str) -> Option<String>,
}

/// A flow that was checked. It may hold refused agents: the rest runs.
#[derive(Debug)]
pub struct CheckedFlow {
    /// Every problem.
    pub report: CheckReport,
    /// The nodes.
    pub flow: ResolvedFlow,
    /// The agents, in the order of the file.
    pub agents: Vec<CheckedAgent>,
}

/// An agent and whether it may run.
#[derive(Debug)]
pub struct CheckedAgent {
    /// Its place in the flow.
    pub ix: NodeIx,
    /// The agent as people recognise it.
    pub node: NodeSummary,
    /// The inject nodes wired to it.
    pub injects: Vec<NodeIx>,
    /// Whether it may run.
    pub verdict: Verdict,
}

/// Whether an agent may run.
#[derive(Debug)]
pub enum Verdict {
    /// It may.
    Ready(Box<ReadyAgent>),
    /// It answers every message with this error.
    Refused {
        /// The error.
        error: RunError,
        /// The tools it would have had.
        tools: Vec<String>,
        /// What the checker found, as far as it was kept.
        problems: Vec<Diagnostic>,
    },
}

/// An agent that may run.
#[derive(Debug)]
pub struct ReadyAgent {
    /// What the machine works by.
    pub spec: Arc<AgentSpec>,
    /// What the journal keeps.
    pub plan: Arc<AgentPlan>,
    /// The model's place in the flow.
    pub model: NodeIx,
    /// The memory's place in the flow.
    pub memory: Option<NodeIx>,
    /// The tools the model may ask for.
    pub tools: Vec<ReadyTool>,
    /// The conversation its own `sessionId` names.
    pub session_id: Option<String>,
}

/// A tool of an agent that may run.
#[derive(Debug)]
pub struct ReadyTool {
    /// Its name.
    pub name: String,
    /// Its place in the flow.
    pub ix: NodeIx,
}

/// Reads, resolves and checks a flow file.
///
/// # Errors
/// A report of what refuses the whole flow.
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
        sink: Sink::new(&flow, options.limits.max_diagnostics),
        walker: Walker::new(&flow, options.limits.max_walk),
        schemas: SchemaStore::default(),
        tools: vec![None; flow.nodes.len()],
        configs: Vec::new(),
        sizes: flow.raw.nodes().iter().map(|node| node.props.values().map(size_of).sum()).collect(),
        bytes_left: options.limits.max_copied_bytes,
    };
    for problem in problems {
        checker.sink.add(problem, 0);
    }
    match checker.run() {
        Ok(agents) => {
            let report = checker.sink.finish();
            Ok(CheckedFlow { report, flow, agents })
        }
        Err(TooMuch::Walking) => Err(Refusal::because(&options.limits, hub_too_large(&options.limits))),
        Err(TooMuch::Copying) => Err(Refusal::because(&options.limits, copies_too_large(&options.limits))),
    }
}

struct Checker<'a> {
    flow: &'a ResolvedFlow,
    options: &'a CheckOptions<'a>,
    sink: Sink<'a>,
    walker: Walker<'a>,
    schemas: SchemaStore,
    /// What is known of each tool node, worked out once.
    tools: Vec<Option<Arc<tools::ToolInfo>>>,
    /// Each agent's settings, once its own properties are read.
    configs: Vec<(NodeIx, config::AgentConfig)>,
    /// What a copy of the properties of each node of the file takes.
    sizes: Vec<usize>,
    bytes_left: usize,
}

impl Checker<'_> {
    fn run(&mut self) -> Result<Vec<CheckedAgent>, TooMuch> {
        self.check_configs()?;
        let edges = self.check_wires()?;
        let mut agents = Vec::new();
        for (ix, config) in std::mem::take(&mut self.configs) {
            let bound = self.check_bindings(ix, &config, &edges);
            self.check_tools(ix, &config, &bound)?;
            agents.push((ix, config, bound));
        }
        self.check_chains(&edges, &agents)?;
        self.note_types_for_node_red();
        let injects = self.injects_of_agents()?;
        agents
            .into_iter()
            .map(|(ix, config, bound)| {
                let injects = injects.get(&ix).cloned().unwrap_or_default();
                self.build_agent(ix, config, &bound, injects)
            })
            .collect()
    }

    /// Accounts for bytes that are about to be copied.
    fn spend(&mut self, bytes: usize) -> Result<(), TooMuch> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(TooMuch::Copying)?;
        Ok(())
    }

    /// What a copy of a node's properties takes.
    fn size(&self, ix: NodeIx) -> usize {
        self.sizes[self.flow.nodes[ix].raw]
    }

    /// The place of a wire in the node's own `wires`; none if the wire is drawn elsewhere, as a subflow's are.
    fn wire_pointer(&self, ix: NodeIx, port: usize, place: usize) -> Option<String> {
        let wires = self.props(ix).get("wires")?;
        wires.get(port)?.get(place)?.is_string().then(|| format!("/wires/{port}/{place}"))
    }

    /// The node's name or id, for a sentence.
    fn label(&self, ix: NodeIx) -> String {
        label(self.flow, ix)
    }

    fn props(&self, ix: NodeIx) -> &Map<String, Value> {
        &self.flow.raw(ix).props
    }

    /// Says which nodes only Node-RED can run.
    fn note_types_for_node_red(&mut self) {
        for (ix, node) in self.flow.nodes.iter().enumerate() {
            let type_name = &self.flow.raw(ix).type_name;
            if node.is_virtual || (self.options.runs)(type_name) {
                continue;
            }
            self.sink.push(DiagnosticCode::NeedsNodeRed, ix, None, || {
                let message = match type_name.strip_prefix("subflow:") {
                    Some(id) => format!("the subflow `{id}` is not in this flow"),
                    None => format!("this build cannot run the type `{type_name}`"),
                };
                let help = "Run this flow beside Node-RED; alone, messages stop at this node.";
                Diagnostic::new(DiagnosticCode::NeedsNodeRed, message, help.to_owned())
            });
        }
    }
}

fn label(flow: &ResolvedFlow, ix: NodeIx) -> String {
    let name = flow.raw(ix).text("name").unwrap_or(flow.nodes[ix].id.as_str());
    format!("`{}`", name.chars().take(80).collect::<String>())
}

fn copies_too_large(limits: &FlowLimits) -> Diagnostic {
    let mut problem = Diagnostic::new(
        DiagnosticCode::FlowTooLarge,
        "subflows, variables or shared services of this flow multiply large properties".to_owned(),
        "Use smaller properties in what is used many times.".to_owned(),
    );
    problem.expected = Some(format!("at most {} bytes of copies", limits.max_copied_bytes));
    problem
}

fn hub_too_large(limits: &FlowLimits) -> Diagnostic {
    let mut problem = Diagnostic::new(
        DiagnosticCode::FlowTooLarge,
        "junctions, links and tool chains of this flow join too many nodes to too many others".to_owned(),
        "Wire agents and services directly, or split the flow.".to_owned(),
    );
    problem.expected = Some(format!("at most {} steps", limits.max_walk));
    problem
}
