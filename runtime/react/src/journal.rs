//! Writing the journal of a run, line by line.
//!
//! Owns the order of the lines and the chain between them. Never stores anything: it gives lines to whoever
//! keeps them, and gives them before the effects they speak of are done.

use crate::MACHINE_VERSION;
use crate::compile::CompiledAgent;
use crate::machine::{FeedError, Machine};
use redflow_contract::CONTRACT_VERSION;
use redflow_contract::digest::Digest;
use redflow_contract::effect::Effect;
use redflow_contract::event::RunEvent;
use redflow_contract::fact::Fact;
use redflow_contract::id::RunId;
use redflow_contract::journal::JournalRecord;
use redflow_contract::plan::AgentPlan;
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;

/// A plan as its journals have it. Encoded once per deploy, written by every run.
#[derive(Debug, Clone)]
pub struct EncodedPlan {
    json: Box<RawValue>,
    digest: Digest,
}

impl EncodedPlan {
    /// Encodes a plan.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn new(plan: &AgentPlan) -> Result<Self, serde_json::Error> {
        let json = serde_json::value::to_raw_value(plan)?;
        let digest = Digest::of(json.get().as_bytes());
        Ok(Self { json, digest })
    }

    /// The digest a header names it by.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Its JSON.
    #[must_use]
    pub fn json(&self) -> &str {
        self.json.get()
    }
}

/// The run that started this one, if one did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The run.
    pub parent_run_id: Option<RunId>,
    /// The step of that run.
    pub step_id: Option<String>,
}

/// Turns records into lines, each chained to the one before.
#[derive(Debug, Clone)]
pub struct JournalWriter {
    prev: Digest,
}

/// A line that borrows what it records; the same text as the contract's `JournalLine`.
#[derive(Serialize)]
struct Line<'a, R> {
    prev: &'a Digest,
    record: R,
}

/// The records that are too large to be copied into a `JournalRecord`.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum LargeRecord<'a> {
    Plan { plan: &'a RawValue },
    Fact { fact: &'a Fact },
}

impl Default for JournalWriter {
    fn default() -> Self {
        Self::after(Digest::ZERO)
    }
}

impl JournalWriter {
    /// Goes on after a line with this digest.
    #[must_use]
    pub fn after(prev: Digest) -> Self {
        Self { prev }
    }

    /// The digest of the last line.
    #[must_use]
    pub fn last(&self) -> Digest {
        self.prev
    }

    /// The line of a record, without a line feed.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn line(&mut self, record: &JournalRecord) -> Result<String, serde_json::Error> {
        let line = self.encode(record)?;
        self.commit(&line);
        Ok(line)
    }

    /// The second line of a journal.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn plan(&mut self, plan: &EncodedPlan) -> Result<String, serde_json::Error> {
        let line = self.encode(&LargeRecord::Plan { plan: &plan.json })?;
        self.commit(&line);
        Ok(line)
    }

    fn encode<R: Serialize>(&self, record: &R) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Line { prev: &self.prev, record })
    }

    fn commit(&mut self, line: &str) {
        self.prev = Digest::of(line.as_bytes());
    }
}

/// A machine with its journal: what a driver drives, so that no fact goes unrecorded.
#[derive(Debug)]
pub struct Recorder {
    machine: Machine,
    writer: JournalWriter,
}

/// What one fact led to.
#[derive(Debug)]
pub struct Step {
    /// Lines for the journal, in order and without line feeds.
    pub lines: Vec<String>,
    /// What to do now, in order, once the lines are kept as safely as the effects ask for.
    pub effects: Vec<Effect>,
    /// What observers see; empty unless the machine is observed.
    pub events: Vec<RunEvent>,
}

/// Why a step was not taken.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The fact does not fit. Nothing has changed and nothing is to be written.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// A record cannot be written as JSON. The run cannot go on.
    #[error("a journal record cannot be written as JSON")]
    Encode(#[from] serde_json::Error),
}

impl Recorder {
    /// Starts a run: the lines begin with the header and the plan.
    ///
    /// # Errors
    /// When the fact is not the `run_started` of this agent.
    pub fn start(
        agent: Arc<CompiledAgent>,
        observed: bool,
        plan: &EncodedPlan,
        origin: Origin,
        fact: Fact,
    ) -> Result<(Self, Step), StepError> {
        let Fact::RunStarted { run_id, .. } = &fact else { return Err(FeedError::NotStarted.into()) };
        let header = JournalRecord::Header {
            contract: CONTRACT_VERSION,
            machine: MACHINE_VERSION,
            run_id: run_id.clone(),
            agent: agent.spec().agent.clone(),
            plan_digest: plan.digest(),
            parent_run_id: origin.parent_run_id,
            step_id: origin.step_id,
        };
        let mut writer = JournalWriter::default();
        let mut lines = vec![writer.line(&header)?, writer.plan(plan)?];
        let mut recorder = Self { machine: Machine::new(agent).observed(observed), writer };
        let mut step = recorder.step(fact)?;
        lines.append(&mut step.lines);
        Ok((recorder, Step { lines, ..step }))
    }

    /// Feeds one fact, polls until there is no more, and writes both down.
    ///
    /// # Errors
    /// When the fact does not fit; then nothing has changed.
    pub fn step(&mut self, fact: Fact) -> Result<Step, StepError> {
        let line = self.writer.encode(&LargeRecord::Fact { fact: &fact })?;
        self.machine.feed(fact)?;
        self.writer.commit(&line);
        let mut lines = vec![line];
        let mut effects = Vec::new();
        while let Some(effect) = self.machine.poll() {
            for record in effect_records(&effect)? {
                lines.push(self.writer.line(&record)?);
            }
            effects.push(effect);
        }
        Ok(Step { lines, effects, events: self.machine.take_events() })
    }

    /// The machine.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }
}

/// What a journal records of an effect; of the last one the output too.
pub(crate) fn effect_records(effect: &Effect) -> Result<Vec<JournalRecord>, serde_json::Error> {
    let name = effect.name().to_owned();
    let mut records =
        vec![JournalRecord::Effect { id: effect.id(), effect: name, digest: Digest::of_json(effect)? }];
    if let Effect::Finish { message, .. } = effect {
        records.push(JournalRecord::Output { digest: Digest::of_json(message)? });
    }
    Ok(records)
}
