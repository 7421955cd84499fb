//! Writes the journal of a run, line by line.
//!
//! Owns the order of the lines and their digests. Never stores anything: it returns the lines to the engine,
//! before their effects are done.

use crate::machine::Machine;
use crate::status::FeedError;
use crate::strategy::Agent;
use redflow_contract::CONTRACT_VERSION;
use redflow_contract::digest::Digest;
use redflow_contract::effect::{Effect, ToolCall};
use redflow_contract::event::RunEvent;
use redflow_contract::fact::Fact;
use redflow_contract::id::RunId;
use redflow_contract::journal::{JournalRecord, plan_line};
use redflow_contract::node::EffectClass;
use redflow_contract::plan::EncodedPlan;
use serde::Serialize;
use std::sync::Arc;

/// The run that started this one. Empty for a run that a message started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParentRun {
    /// The id of that run.
    pub parent_run_id: Option<RunId>,
    /// The step of that run.
    pub step_id: Option<String>,
}

/// The capacity for a line. Most lines fit, so that they are written without a copy.
const LINE_BYTES: usize = 512;

/// Turns records into lines, each with the digest of the one before.
#[derive(Debug, Clone)]
pub struct JournalWriter {
    prev: Digest,
}

/// A line that borrows its record. It has the same text as the contract's `JournalLine`.
#[derive(Serialize)]
struct Line<'a, R> {
    prev: &'a Digest,
    record: R,
}

/// Borrows the fact, because it is too large to copy into a `JournalRecord`.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "fact")]
struct FactRecord<'a> {
    fact: &'a Fact,
}

/// Gives the effect class of a tool call before it is made.
pub type Classify<'a> = &'a dyn Fn(&ToolCall) -> EffectClass;

impl Default for JournalWriter {
    fn default() -> Self {
        Self::after(Digest::ZERO)
    }
}

impl JournalWriter {
    /// Makes a writer that continues after a line with this digest.
    #[must_use]
    pub fn after(prev: Digest) -> Self {
        Self { prev }
    }

    /// The digest of the last line.
    #[must_use]
    pub fn last(&self) -> Digest {
        self.prev
    }

    /// Writes the line of a record, without a line feed.
    ///
    /// # Errors
    /// When the record cannot be written as JSON.
    pub fn line(&mut self, record: &JournalRecord) -> Result<String, serde_json::Error> {
        let line = self.encode(record)?;
        self.commit(&line);
        Ok(line)
    }

    /// Writes the second line of a journal.
    pub fn plan(&mut self, plan: &EncodedPlan) -> String {
        let line = plan_line(&self.prev, plan.json());
        self.commit(&line);
        line
    }

    fn encode<R: Serialize>(&self, record: &R) -> Result<String, serde_json::Error> {
        let mut line = Vec::with_capacity(LINE_BYTES);
        serde_json::to_writer(&mut line, &Line { prev: &self.prev, record })?;
        // serde_json writes UTF-8.
        String::from_utf8(line).map_err(serde::ser::Error::custom)
    }

    fn commit(&mut self, line: &str) {
        self.prev = Digest::of(line.as_bytes());
    }
}

/// A machine with its journal. The engine uses it, so that every fact is recorded.
#[derive(Debug)]
pub struct Recorder {
    agent: Arc<dyn Agent>,
    machine: Box<dyn Machine>,
    writer: JournalWriter,
}

/// The result of one fact.
#[derive(Debug)]
pub struct Step {
    /// Lines for the journal, in order and without line feeds.
    pub lines: Vec<String>,
    /// The effects to do, in order, once the lines are stored as durably as the effects require.
    pub effects: Vec<Effect>,
    /// The events for observers; empty unless the machine is observed.
    pub events: Vec<RunEvent>,
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The fact does not fit. Nothing has changed, and there is nothing to store.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// A record cannot be written as JSON. The run cannot continue.
    #[error("a journal record cannot be written as JSON")]
    Encode(#[from] serde_json::Error),
}

impl Recorder {
    /// Makes a recorder for a new run.
    #[must_use]
    pub fn new(agent: Arc<dyn Agent>) -> Self {
        let machine = Arc::clone(&agent).start();
        Self { agent, machine, writer: JournalWriter::default() }
    }

    /// Starts the run. The first two lines are the header and the plan.
    ///
    /// # Errors
    /// When the fact is not the `run_started` of this agent.
    pub fn start(
        &mut self,
        plan: &EncodedPlan,
        parent: ParentRun,
        fact: Fact,
        classify: Classify<'_>,
    ) -> Result<Step, StepError> {
        let Fact::RunStarted { run_id, .. } = &fact else { return Err(FeedError::NotStarted.into()) };
        let header = JournalRecord::Header {
            contract: CONTRACT_VERSION,
            machine: self.agent.version(),
            strategy: self.agent.spec().strategy.clone(),
            run_id: run_id.clone(),
            agent: self.agent.spec().agent.clone(),
            plan_digest: plan.digest(),
            parent_run_id: parent.parent_run_id,
            step_id: parent.step_id,
        };
        let mut lines = vec![self.writer.line(&header)?, self.writer.plan(plan)];
        let mut step = self.step(fact, classify)?;
        lines.append(&mut step.lines);
        Ok(Step { lines, ..step })
    }

    /// Feeds one fact, polls all effects, and writes the lines of both.
    ///
    /// # Errors
    /// When the fact does not fit. Then nothing has changed.
    pub fn step(&mut self, fact: Fact, classify: Classify<'_>) -> Result<Step, StepError> {
        let line = self.writer.encode(&FactRecord { fact: &fact })?;
        self.machine.feed(fact)?;
        self.writer.commit(&line);
        let mut lines = vec![line];
        // Nearly every step has one effect, and a waiting run holds the list.
        let mut effects = Vec::with_capacity(1);
        while let Some(effect) = self.machine.poll() {
            let class = match &effect {
                Effect::CallTool { call, .. } => Some(classify(call)),
                _ => None,
            };
            for record in effect_records(&effect, class)? {
                lines.push(self.writer.line(&record)?);
            }
            effects.push(effect);
        }
        Ok(Step { lines, effects, events: self.machine.take_events() })
    }

    /// Makes a recorder that continues after the last line of a journal.
    pub(crate) fn after(agent: Arc<dyn Agent>, machine: Box<dyn Machine>, last: Digest) -> Self {
        Self { agent, machine, writer: JournalWriter::after(last) }
    }

    /// Sets whether the machine makes events from now on.
    #[must_use]
    pub fn observed(mut self, observed: bool) -> Self {
        self.machine.set_observed(observed);
        self
    }

    /// The agent of the run.
    #[must_use]
    pub fn agent(&self) -> &Arc<dyn Agent> {
        &self.agent
    }

    /// The machine inside.
    #[must_use]
    pub fn machine(&self) -> &dyn Machine {
        &*self.machine
    }
}

/// The records of an effect. The last effect of a run also has an output record.
pub(crate) fn effect_records(
    effect: &Effect,
    class: Option<EffectClass>,
) -> Result<Vec<JournalRecord>, serde_json::Error> {
    let (id, name, digest) = (effect.id(), effect.name(), Digest::of_json(effect)?);
    let mut records = vec![JournalRecord::Effect { id, effect: name.into(), class, digest }];
    if let Effect::Finish { message, .. } = effect {
        records.push(JournalRecord::Output { digest: Digest::of_json(message)? });
    }
    Ok(records)
}
