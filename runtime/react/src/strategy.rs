//! Agent Core as a strategy among others.

use crate::MACHINE_VERSION;
use crate::compile::CompiledAgent;
use crate::machine::ReactMachine;
use crate::plan_check::contradiction;
use redflow_contract::node::DEFAULT_STRATEGY;
use redflow_contract::plan::{AgentPlan, AgentSpec};
use redflow_machine::{Agent, CompileError, Machine, Strategy};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Agent Core's strategy.
#[derive(Debug)]
pub struct React;

impl Strategy for React {
    fn name(&self) -> &'static str {
        DEFAULT_STRATEGY
    }

    fn versions(&self) -> RangeInclusive<u32> {
        1..=MACHINE_VERSION
    }

    fn compile(&self, spec: &Arc<AgentSpec>, version: u32) -> Result<Arc<dyn Agent>, CompileError> {
        let agent: Arc<dyn Agent> = CompiledAgent::compile_version(Arc::clone(spec), version)?;
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
        Box::new(ReactMachine::new(self))
    }
}
