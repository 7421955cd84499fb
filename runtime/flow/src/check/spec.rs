//! Builds the result for each agent: the machine's spec and the journal's plan, or a refusal.

use super::bindings::Bindings;
use super::config::{AgentConfig, NODE_RED_KEYS};
use super::tools::tool_keys;
use super::{CheckedAgent, Checker, ReadyAgent, ReadyTool, Verdict};
use crate::resolved::NodeIx;
use crate::wire_search::LimitExceeded;
use redflow_contract::code::{DiagnosticCode, RunErrorCode};
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::edge::Role;
use redflow_contract::id::NodeRef;
use redflow_contract::node;
use redflow_contract::node::DEFAULT_STRATEGY;
use redflow_contract::phrases;
use redflow_contract::plan::{AgentPlan, AgentSpec, PlanNode, ToolSpec};
use redflow_contract::run_error::RunError;
use redflow_contract::secret::redact_property;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Why an agent cannot run.
struct AgentRefusal {
    error: RunError,
    problems: Vec<Diagnostic>,
}

/// The most problems of a refusal.
const MAX_PROBLEMS: usize = 20;

impl Checker<'_> {
    pub(super) fn build_agent(
        &mut self,
        ix: NodeIx,
        config: AgentConfig,
        bound: &Bindings,
        injects: Vec<NodeIx>,
    ) -> Result<CheckedAgent, LimitExceeded> {
        let verdict = match self.refusal(ix, bound)? {
            Some(AgentRefusal { error, problems }) => {
                let tools = config.allowed_tools.into_iter().flatten().map(|(_, name)| name).collect();
                Verdict::Refused { error, tools, problems }
            }
            None => match self.ready_agent(ix, config, bound)? {
                Some(ready) => Verdict::Ready(Box::new(ready)),
                None => {
                    let message = "the agent could not be built although no problem was found".to_owned();
                    let error = refusal_error(RunErrorCode::Internal, message);
                    Verdict::Refused { error, tools: Vec::new(), problems: Vec::new() }
                }
            },
        };
        let models = bound.models.iter().chain(&bound.fallback_models).copied().collect();
        let (node, memories) = (self.flow.summary(ix), bound.memories.clone());
        Ok(CheckedAgent { ix, node, injects, models, memories, verdict })
    }

    /// Finds why an agent cannot run: an error of its own or of a service, or a type that this build cannot
    /// run.
    fn refusal(&mut self, ix: NodeIx, bound: &Bindings) -> Result<Option<AgentRefusal>, LimitExceeded> {
        let mut problems: Vec<Diagnostic> = Vec::new();
        for node in std::iter::once(ix).chain(bound.all()) {
            for problem in self.diagnostics.errors_of(node) {
                if problems.len() < MAX_PROBLEMS && !problems.contains(problem) {
                    problems.push(problem.clone());
                }
            }
        }
        if let Some(first) = problems.first() {
            let more = match problems.len() - 1 {
                0 => String::new(),
                count => format!(" (and {count} more)"),
            };
            let code = if problems.iter().all(|problem| is_config_code(problem.code)) {
                RunErrorCode::ConfigInvalid
            } else {
                RunErrorCode::EdgeRejected
            };
            let message =
                format!("the agent is refused: {}: {}{more}. {}", first.code, first.message, first.help);
            return Ok(Some(AgentRefusal { error: refusal_error(code, message), problems }));
        }
        let mut unsupported = None;
        for node in std::iter::once(ix).chain(bound.all()) {
            unsupported = if self.flow.nodes[node].kind.role == Role::Data {
                self.unsupported_node_of_tool(ix, node)?
            } else {
                Some(node).filter(|node| !(self.options.can_run)(&self.flow.raw(*node).type_name))
            };
            if unsupported.is_some() {
                break;
            }
        }
        let Some(unsupported) = unsupported else { return Ok(None) };
        let summary = self.flow.summary(unsupported);
        let message = phrases::service_not_run(summary.id.as_str(), &summary.type_name);
        let help = phrases::service_not_run_help();
        let mut problem = Diagnostic::new(DiagnosticCode::NeedsNodeRed, message, help);
        problem.node = Some(summary);
        let error = refusal_error(RunErrorCode::NeedsNodeRed, problem.message.clone());
        Ok(Some(AgentRefusal { error, problems: vec![problem] }))
    }

    /// Finds a node of a flow tool that this build cannot run.
    fn unsupported_node_of_tool(
        &mut self,
        agent: NodeIx,
        tool: NodeIx,
    ) -> Result<Option<NodeIx>, LimitExceeded> {
        let (flow, runs) = (self.flow, self.options.can_run);
        let is_unsupported = |ix: NodeIx| !flow.nodes[ix].is_virtual && !runs(&flow.raw(ix).type_name);
        if is_unsupported(tool) {
            return Ok(Some(tool));
        }
        let found = std::cell::Cell::new(None);
        let is_end = |ix: NodeIx| {
            let ends = ix != agent && !flow.nodes[ix].kind.role.is_checked() && is_unsupported(ix);
            if ends {
                found.set(Some(ix));
            }
            ends
        };
        self.wire_search.reaches(tool, &is_end)?;
        Ok(found.get())
    }

    fn ready_agent(
        &mut self,
        ix: NodeIx,
        config: AgentConfig,
        bound: &Bindings,
    ) -> Result<Option<ReadyAgent>, LimitExceeded> {
        let (Some(settings), Some(model)) = (config.settings, bound.models.first().copied()) else {
            return Ok(None);
        };
        let memory = bound.memories.first().copied();
        let (providers, own): (Vec<NodeIx>, Vec<NodeIx>) =
            bound.tools.iter().partition(|tool| self.is_provider(**tool));
        let providers = providers.into_iter().map(|provider| self.read_provider(provider));
        let providers = providers.collect::<Result<Vec<_>, _>>()?;
        let (mut tools, mut ready_tools) = (Vec::new(), Vec::new());
        let allowed: Vec<NodeIx> = match &config.allowed_tools {
            Some(patterns) => {
                let mut by_key: HashMap<String, Vec<NodeIx>> = HashMap::new();
                for tool in own {
                    let name = self.tool_info(tool)?.name.clone();
                    for key in tool_keys(&self.flow.raw(tool).type_name, &name) {
                        by_key.entry(key).or_default().push(tool);
                    }
                }
                let mut known = HashSet::new();
                let named =
                    patterns.iter().flat_map(|(_, pattern)| by_key.remove(pattern).unwrap_or_default());
                named.filter(|tool| known.insert(*tool)).collect()
            }
            // An AI Agent may call every tool that it binds.
            None => own,
        };
        for tool in allowed {
            let info = self.tool_info(tool)?;
            self.count_bytes(info.size)?;
            let node = self.flow.nodes[tool].id.clone();
            let (name, description) = (info.name.clone(), info.description.clone());
            tools.push(ToolSpec {
                effect: info.effect,
                timeout_ms: info.timeout_ms,
                on_unknown: info.on_unknown,
                strict: info.strict,
                ..ToolSpec::of_node(name, description, info.input_schema.clone(), node)
            });
            ready_tools.push(ReadyTool { name: info.name.clone(), ix: tool });
        }
        let summary = self.flow.summary(ix);
        // Specs leave out the name of Agent Core's strategy, as the first journals do.
        let strategy = node::find(&summary.type_name).strategy;
        let spec = AgentSpec {
            agent: NodeRef { instance: self.options.instance.clone(), node_id: summary.id },
            type_name: summary.type_name,
            name: summary.name,
            strategy: strategy.filter(|name| *name != DEFAULT_STRATEGY).map(str::to_owned),
            converse: settings.converse,
            budget: config.budget.unwrap_or_default().lower(self.options.run_budget),
            max_iterations: settings.max_iterations,
            tools,
            stop_conditions: settings.stop_conditions,
            debug: settings.debug,
            timeout_ms: config.timeout_ms,
            memory: memory.is_some(),
            model_response_wired: bound.model_response_wired,
            limits: self.options.run_limits,
        };
        let mut planned = Vec::new();
        for tool in &bound.tools {
            planned.push(self.plan_node(*tool)?);
        }
        let fallback_models = bound.fallback_models.clone();
        let planned_models = fallback_models.iter().map(|model| self.plan_node(*model));
        let planned_models = planned_models.collect::<Result<Vec<_>, _>>()?;
        let planned_services = bound.named.iter().map(|service| self.plan_node(*service));
        let planned_services = planned_services.collect::<Result<Vec<_>, _>>()?;
        let plan = AgentPlan {
            agent: self.plan_node(ix)?,
            model: self.plan_node(model)?,
            fallback_models: planned_models,
            memory: memory.map(|memory| self.plan_node(memory)).transpose()?,
            tools: planned,
            services: planned_services,
        };
        Ok(Some(ReadyAgent {
            spec: Arc::new(spec),
            plan: Arc::new(plan),
            model,
            fallback_models,
            stream_wired: bound.stream_wired,
            memory,
            tools: ready_tools,
            providers,
            allowed_tools: config
                .allowed_tools
                .map(|names| names.into_iter().map(|(_, name)| name).collect()),
            session_id: config.session_id,
            input: config.input,
        }))
    }

    fn plan_node(&mut self, ix: NodeIx) -> Result<PlanNode, LimitExceeded> {
        self.count_bytes(self.size(ix))?;
        let props = self.props(ix).iter().filter(|(key, _)| !NODE_RED_KEYS.contains(&key.as_str()));
        let config = props.map(|(key, value)| (key.clone(), redact_property(key, value))).collect();
        Ok(PlanNode { node: self.flow.summary(ix), config })
    }
}

fn refusal_error(code: RunErrorCode, message: String) -> RunError {
    RunError { code, message, pointer: None, rule: None, iteration: 0 }
}

fn is_config_code(code: DiagnosticCode) -> bool {
    matches!(
        code,
        DiagnosticCode::ConfigInvalid
            | DiagnosticCode::ToolNameInvalid
            | DiagnosticCode::ToolNameDuplicate
            | DiagnosticCode::CredentialUnbound
    )
}
