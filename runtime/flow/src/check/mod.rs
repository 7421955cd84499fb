//! From a resolved flow to agents with everything they bind, and every problem at once.

mod bindings;
mod chains;
mod config;
mod schema;
mod sink;
mod spec;
mod tools;
mod wires;

use crate::graph::{WalkTooLong, Walker};
use crate::raw::RawFlow;
use crate::resolve::{NodeIx, ResolvedFlow, resolve_flow};
use redflow_contract::code::{DiagnosticCode, Severity};
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::flow::Profile;
use redflow_contract::id::{InstanceId, NodeSummary};
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
    let raw = RawFlow::parse(bytes, &options.limits).map_err(|problems| refused(problems, options))?;
    check_flow(raw, options)
}

/// Resolves and checks a flow.
///
/// # Errors
/// A report of what refuses the whole flow.
pub fn check_flow(raw: RawFlow, options: &CheckOptions<'_>) -> Result<CheckedFlow, CheckReport> {
    let (flow, problems) =
        resolve_flow(raw, &options.limits).map_err(|problems| refused(problems, options))?;
    let mut checker = Checker {
        flow: &flow,
        options,
        sink: Sink::new(&flow, options.limits.max_diagnostics),
        walker: Walker::new(&flow, options.limits.max_walk),
        schemas: SchemaStore::default(),
        tools: vec![None; flow.nodes.len()],
        configs: Vec::new(),
    };
    for problem in problems {
        checker.sink.add(problem, 0);
    }
    match checker.run() {
        Ok(agents) => {
            let report = checker.sink.finish();
            Ok(CheckedFlow { report, flow, agents })
        }
        Err(WalkTooLong) => Err(refused(vec![hub_too_large(options.limits.max_walk)], options)),
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
}

impl Checker<'_> {
    fn run(&mut self) -> Result<Vec<CheckedAgent>, WalkTooLong> {
        self.check_configs();
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
        Ok(agents
            .into_iter()
            .map(|(ix, config, bound)| {
                let injects = injects.get(&ix).cloned().unwrap_or_default();
                self.build_agent(ix, config, &bound, injects)
            })
            .collect())
    }

    /// The node's name or id, for a sentence.
    fn label(&self, ix: NodeIx) -> String {
        let node = self.flow.summary(ix);
        if node.name.is_empty() { format!("`{}`", node.id) } else { format!("`{}`", node.name) }
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

/// The report on a flow that is refused as a whole.
fn refused(mut diagnostics: Vec<Diagnostic>, options: &CheckOptions<'_>) -> CheckReport {
    let mut report = CheckReport::default();
    for extra in diagnostics.drain(options.limits.max_diagnostics.min(diagnostics.len())..) {
        *report.omitted.entry(extra.code.to_string()).or_default() += 1;
    }
    report.ok = !diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    report.diagnostics = diagnostics;
    report
}

fn hub_too_large(limit: usize) -> Diagnostic {
    let mut problem = Diagnostic::new(
        DiagnosticCode::FlowTooLarge,
        "junctions, links and tool chains of this flow join too many nodes to too many others".to_owned(),
        "Wire agents and services directly, or split the flow.".to_owned(),
    );
    problem.expected = Some(format!("at most {limit} steps"));
    problem
}
