//! Strategies: each compiles agents of its kind and makes their machines.

use crate::machine::Machine;
use redflow_contract::node::DEFAULT_STRATEGY;
use redflow_contract::plan::{AgentPlan, AgentSpec};
use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A compiled agent. All its runs share it. [`Strategy`] has an example.
pub trait Agent: Debug + Send + Sync {
    /// The spec that it was compiled from.
    fn spec(&self) -> &Arc<AgentSpec>;

    /// The version of its machine, which journals record. What a machine of one version does with given facts
    /// never changes.
    fn version(&self) -> u32;

    /// Makes a machine for one run. Its first fact must be the `run_started` of this agent.
    fn start(self: Arc<Self>) -> Box<dyn Machine>;
}

/// A kind of agent.
///
/// ```
/// # use redflow_contract::{effect::Effect, event::RunEvent, fact::Fact, limits::RunLimits};
/// # use redflow_contract::plan::{AgentPlan, AgentSpec};
/// # use redflow_machine::{Agent, CompileError, FeedError, Machine, Status, Strategies, Strategy};
/// # use std::sync::Arc;
/// # #[derive(Debug)] struct EchoMachine;
/// # impl Machine for EchoMachine {
/// #     fn feed(&mut self, _: Fact) -> Result<(), FeedError> { Err(FeedError::NotStarted) }
/// #     fn poll(&mut self) -> Option<Effect> { None }
/// #     fn status(&self) -> Status { Status::New }
/// #     fn tally(&self) -> redflow_contract::tally::RunTally { Default::default() }
/// #     fn set_observed(&mut self, _: bool) {}
/// #     fn take_events(&mut self) -> Vec<RunEvent> { Vec::new() }
/// # }
/// #[derive(Debug)]
/// struct EchoAgent(Arc<AgentSpec>);
///
/// impl Agent for EchoAgent {
///     fn spec(&self) -> &Arc<AgentSpec> { &self.0 }
///     fn version(&self) -> u32 { 1 }
///     fn start(self: Arc<Self>) -> Box<dyn Machine> { Box::new(EchoMachine) }
/// }
///
/// #[derive(Debug)]
/// struct Echo;
///
/// impl Strategy for Echo {
///     fn name(&self) -> &'static str { "echo" }
///     fn versions(&self) -> std::ops::RangeInclusive<u32> { 1..=1 }
///     fn compile(&self, spec: &Arc<AgentSpec>, _: u32) -> Result<Arc<dyn Agent>, CompileError> {
///         Ok(Arc::new(EchoAgent(Arc::clone(spec))))
///     }
///     fn contradiction(&self, _: &AgentPlan, _: &AgentSpec) -> Option<&'static str> { None }
/// }
///
/// # let spec = Arc::new(serde_json::from_value(serde_json::json!({
/// #     "agent": {"instance": "local", "nodeId": "a"}, "type": "echo-agent", "name": "", "strategy": "echo",
/// #     "maxIterations": 1, "tools": [], "stopConditions": [], "debug": false, "timeoutMs": 1,
/// #     "memory": false, "modelResponseWired": false, "limits": RunLimits::default(),
/// # }))?);
/// let strategies = Strategies::new([Arc::new(Echo) as Arc<dyn Strategy>]);
/// // The spec names the strategy: `echo`.
/// let agent = strategies.compile(&spec)?;
/// assert_eq!(agent.start().status(), Status::New);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Strategy: Debug + Send + Sync {
    /// The name that specs and journals have.
    fn name(&self) -> &'static str;

    /// The versions of its machines that this build has. New runs get the last one. The others replay and
    /// resume recorded runs.
    fn versions(&self) -> RangeInclusive<u32>;

    /// Compiles an agent whose machines have one of these versions.
    ///
    /// # Errors
    /// The first part of the spec that cannot be used.
    fn compile(&self, spec: &Arc<AgentSpec>, version: u32) -> Result<Arc<dyn Agent>, CompileError>;

    /// Names the first setting in which the plan of a journal and the spec of its first fact differ.
    fn contradiction(&self, plan: &AgentPlan, spec: &AgentSpec) -> Option<&'static str>;
}

/// Why an agent cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// A tool's schema cannot be used.
    #[error("the input schema of tool `{tool}` cannot be used: {reason}")]
    InputSchema {
        /// The tool's name.
        tool: String,
        /// Why the schema cannot be used.
        reason: String,
    },
    /// The schema of the agent's answer cannot be used.
    #[error("the `outputSchema` cannot be used: {0}")]
    OutputSchema(String),
    /// This build does not have the strategy of the agent.
    #[error("this build does not know the strategy `{0}`")]
    UnknownStrategy(String),
}

/// The strategies that a process knows.
#[derive(Debug, Clone)]
pub struct Strategies(Arc<[Arc<dyn Strategy>]>);

impl Strategies {
    /// A list of strategies. Of two with the same name the first one counts.
    #[must_use]
    pub fn new(strategies: impl IntoIterator<Item = Arc<dyn Strategy>>) -> Self {
        Self(strategies.into_iter().collect())
    }

    /// Finds a strategy. Without a name it is Agent Core's.
    #[must_use]
    pub fn find(&self, name: Option<&str>) -> Option<&dyn Strategy> {
        let name = name.unwrap_or(DEFAULT_STRATEGY);
        self.0.iter().find(|strategy| strategy.name() == name).map(|strategy| &**strategy)
    }

    /// Compiles an agent for new runs with its strategy.
    ///
    /// # Errors
    /// When this build does not have the strategy, or the strategy cannot use the spec.
    pub fn compile(&self, spec: &Arc<AgentSpec>) -> Result<Arc<dyn Agent>, CompileError> {
        let strategy = self.of_spec(spec)?;
        strategy.compile(spec, *strategy.versions().end())
    }

    /// Compiles the agent of a recorded run, whose machine has a version of the strategy.
    ///
    /// # Errors
    /// As [`Strategies::compile`].
    pub fn compile_version(
        &self,
        spec: &Arc<AgentSpec>,
        version: u32,
    ) -> Result<Arc<dyn Agent>, CompileError> {
        self.of_spec(spec)?.compile(spec, version)
    }

    fn of_spec(&self, spec: &AgentSpec) -> Result<&dyn Strategy, CompileError> {
        let name = spec.strategy.as_deref();
        let unknown = || CompileError::UnknownStrategy(name.unwrap_or(DEFAULT_STRATEGY).to_owned());
        self.find(name).ok_or_else(unknown)
    }
}
