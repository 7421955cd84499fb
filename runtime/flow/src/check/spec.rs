//! From a checked agent to what runs: the machine's spec and the journal's plan, or a refusal.

use super::bindings::Bindings;
use super::config::{AgentConfig, NODE_RED_KEYS};
use super::{CheckedAgent, Checker, ReadyAgent, ReadyTool, Verdict};
use crate::graph::TooMuch;
use crate::resolve::NodeIx;
use redflow_contract::code::{DiagnosticCode, RunErrorCode};
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::edge::Role;
use redflow_contract::id::NodeRef;
use redflow_contract::plan::{AgentPlan, AgentSpec, PlanNode, ToolSpec};
use redflow_contract::run_error::RunError;
use redflow_contract::secret::redact_property;
use std::collections::HashMap;
use std::sync::Arc;

/// Why an agent may not run, and the problems that say so.
type Refusal = (RunError, Vec<Diagnostic>);

/// Problems a refusal carries, at most.
const KEPT_PROBLEMS: usize = 20;

impl Checker<'_> {
    pub(super) fn build_agent(
        &mut self,
        ix: NodeIx,
        config: AgentConfig,
        bound: &Bindings,
        injects: Vec<NodeIx>,
    ) -> Result<CheckedAgent, TooMuch> {
        let verdict = match self.refusal(ix, bound)? {
            Some((error, problems)) => {
                let tools = config.allowed_tools.into_iter().flatten().map(|(_, name)| name).collect();
                Verdict::Refused { error, tools, problems }
            }
            None => match self.ready_agent(ix, config, bound)? {
                Some(ready) => Verdict::Ready(Box::new(ready)),
                None => {
                    let message = "the agent could not be built although no problem was found".to_owned();
                    let error = refused(RunErrorCode::Internal, message);
                    Verdict::Refused { error, tools: Vec::new(), problems: Vec::new() }
                }
            },
        };
        Ok(CheckedAgent { ix, node: self.flow.summary(ix), injects, verdict })
    }

    /// Why an agent may not run: errors of its own or of what it binds, or a type this build cannot run.
    fn refusal(&mut self, ix: NodeIx, bound: &Bindings) -> Result<Option<Refusal>, TooMuch> {
        let mut problems: Vec<Diagnostic> = Vec::new();
        for node in std::iter::once(ix).chain(bound.all()) {
            for problem in self.sink.errors_of(node) {
                if problems.len() < KEPT_PROBLEMS && !problems.contains(problem) {
                    problems.push(problem.clone());
                }
            }
        }
        if let Some(first) = problems.first() {
            let more = match problems.len() - 1 {
                0 => String::new(),
                count => format!(" (and {count} more)"),
            };
            let code = if problems.iter().all(|problem| is_config(problem.code)) {
                RunErrorCode::ConfigInvalid
            } else {
                RunErrorCode::EdgeRejected
            };
            let message = format!("the agent is refused: {}: {}{more}", first.code, first.message);
            return Ok(Some((refused(code, message), problems)));
        }
        let mut missing = None;
        for node in std::iter::once(ix).chain(bound.all()) {
            missing = if self.flow.nodes[node].kind.role == Role::Data {
                self.not_run_behind(ix, node)?
            } else {
                Some(node).filter(|node| !(self.options.runs)(&self.flow.raw(*node).type_name))
            };
            if missing.is_some() {
                break;
            }
        }
        let Some(missing) = missing else { return Ok(None) };
        let summary = self.flow.summary(missing);
        let message =
            format!("`{}` is of type `{}`, which this build cannot run", summary.id, summary.type_name);
        let help = "Run this flow beside Node-RED, or use a type this build runs.".to_owned();
        let mut problem = Diagnostic::new(DiagnosticCode::NeedsNodeRed, message.clone(), help);
        problem.node = Some(summary);
        Ok(Some((refused(RunErrorCode::NeedsNodeRed, message), vec![problem])))
    }

    /// A node of the flow that is a tool which this build cannot run.
    fn not_run_behind(&mut self, agent: NodeIx, tool: NodeIx) -> Result<Option<NodeIx>, TooMuch> {
        let (flow, runs) = (self.flow, self.options.runs);
        let cannot = |ix: NodeIx| !flow.nodes[ix].is_virtual && !runs(&flow.raw(ix).type_name);
        if cannot(tool) {
            return Ok(Some(tool));
        }
        let found = std::cell::Cell::new(None);
        let is_end = |ix: NodeIx| {
            let ends = ix != agent && !flow.nodes[ix].kind.role.is_checked() && cannot(ix);
            if ends {
                found.set(Some(ix));
            }
            ends
        };
        self.walker.comes_back(tool, &is_end)?;
        Ok(found.get())
    }

    fn ready_agent(
        &mut self,
        ix: NodeIx,
        config: AgentConfig,
        bound: &Bindings,
    ) -> Result<Option<ReadyAgent>, TooMuch> {
        let (Some(core), Some(model)) = (config.core, bound.models.first().copied()) else { return Ok(None) };
        let memory = bound.memories.first().copied();
        let mut by_name: HashMap<String, NodeIx> = HashMap::new();
        for tool in bound.tools.iter().copied() {
            by_name.insert(self.tool_info(tool)?.name.clone(), tool);
        }
        let (mut tools, mut ready_tools) = (Vec::new(), Vec::new());
        for (_, name) in config.allowed_tools.unwrap_or_default() {
            let Some(tool) = by_name.get(&name).copied() else { return Ok(None) };
            let info = self.tool_info(tool)?;
            self.spend(info.size)?;
            tools.push(ToolSpec {
                name: info.name.clone(),
                description: info.description.clone(),
                input_schema: info.input_schema.clone(),
                node: self.flow.nodes[tool].id.clone(),
                effect: info.effect,
                timeout_ms: info.timeout_ms,
                on_unknown: info.on_unknown,
            });
            ready_tools.push(ReadyTool { name, ix: tool });
        }
        let summary = self.flow.summary(ix);
        let spec = AgentSpec {
            agent: NodeRef { instance: self.options.instance.clone(), node_id: summary.id },
            type_name: summary.type_name,
            name: summary.name,
            max_iterations: core.max_iterations,
            tools,
            stop_conditions: core.stop_conditions,
            debug: core.debug,
            timeout_ms: config.timeout_ms,
            memory: memory.is_some(),
            model_response_wired: bound.model_response_wired,
            limits: self.options.run_limits,
        };
        let mut planned = Vec::new();
        for tool in &bound.tools {
            planned.push(self.plan_node(*tool)?);
        }
        let plan = AgentPlan {
            agent: self.plan_node(ix)?,
            model: self.plan_node(model)?,
            memory: memory.map(|memory| self.plan_node(memory)).transpose()?,
            tools: planned,
        };
        Ok(Some(ReadyAgent {
            spec: Arc::new(spec),
            plan: Arc::new(plan),
            model,
            memory,
            tools: ready_tools,
            session_id: config.session_id,
        }))
    }

    fn plan_node(&mut self, ix: NodeIx) -> Result<PlanNode, TooMuch> {
        self.spend(self.size(ix))?;
        let props = self.props(ix).iter().filter(|(key, _)| !NODE_RED_KEYS.contains(&key.as_str()));
        let config = props.map(|(key, value)| (key.clone(), redact_property(key, value))).collect();
        Ok(PlanNode { node: self.flow.summary(ix), config })
    }
}

fn refused(code: RunErrorCode, message: String) -> RunError {
    RunError { code, message, pointer: None, rule: None, iteration: 0 }
}

fn is_config(code: DiagnosticCode) -> bool {
    matches!(
        code,
        DiagnosticCode::ConfigInvalid | DiagnosticCode::ToolNameInvalid | DiagnosticCode::ToolNameDuplicate
    )
}
