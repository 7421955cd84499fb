//! AI Agent as a strategy among others.

use crate::MACHINE_VERSION;
use crate::compile::CompiledAgent;
use crate::plan_check::contradiction;
use crate::run::Run;
use redflow_contract::node::CONVERSE_STRATEGY;
use redflow_contract::plan::{AgentPlan, AgentSpec};
use redflow_machine::{Agent, AgentMachine, CompileError, FirstFact, Machine, StartRun, Strategy};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// AI Agent's strategy.
#[derive(Debug)]
pub struct Converse;

impl Strategy for Converse {
    fn name(&self) -> &'static str {
        CONVERSE_STRATEGY
    }

    fn versions(&self) -> RangeInclusive<u32> {
        1..=MACHINE_VERSION
    }

    fn compile(&self, spec: &Arc<AgentSpec>, version: u32) -> Result<Arc<dyn Agent>, CompileError> {
        let agent: Arc<dyn Agent> = CompiledAgent::compile(Arc::clone(spec), version)?;
        Ok(agent)
    }

    fn contradiction(&self, plan: &AgentPlan, spec: &AgentSpec) -> Option<&'static str> {
        contradiction(plan, spec)
    }
}

impl Agent for CompiledAgent {
    fn spec(&self) -> &Arc<AgentSpec> {
        CompiledAgent::spec(self)
    }

    fn version(&self) -> u32 {
        CompiledAgent::version(self)
    }

    fn start(self: Arc<Self>) -> Box<dyn Machine> {
        Box::new(AgentMachine::new(self))
    }
}

impl StartRun for CompiledAgent {
    type Run = Run;

    fn start_run(self: Arc<Self>, first: FirstFact, observed: bool) -> Run {
        Run::start(self, first, observed)
    }
}
