//! Replays a journal: feeds its facts to the machine, and compares the effects with the recorded ones.
//!
//! Owns the comparison. Never does an effect and never trusts a line: a wrong line is a difference, not a
//! panic.

use crate::iteration::IterationRecord;
use crate::journal::{Recorder, effect_records};
use crate::journal_reader::{Journal, JournalReader, open_journal, unwritable};
use crate::machine::Machine;
use crate::open_effects::{OpenEffect, OpenEffects};
use crate::status::Status;
use crate::strategy::{Agent, CompileError, Strategies};
use crate::text::quote;
use crate::trace_fold::{FactOutline, Tracer};
use redflow_contract::Millis;
use redflow_contract::effect::{Effect, Ending};
use redflow_contract::event::RunEvent;
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::id::EffectId;
use redflow_contract::journal::JournalRecord;
use redflow_contract::node::EffectClass;
use redflow_contract::plan::{AgentPlan, AgentSpec};
use redflow_contract::replay::{CallRecord, Difference, DifferenceKind, ReplayReport};
use std::collections::VecDeque;
use std::sync::Arc;

/// Replays a journal file.
#[must_use]
pub fn replay(bytes: &[u8], strategies: &Strategies) -> ReplayReport {
    run_replay(bytes, strategies, Observe::Nothing).report
}

/// Replays a journal file. Also returns the events up to the first difference.
#[must_use]
pub fn replay_events(bytes: &[u8], strategies: &Strategies) -> (Vec<RunEvent>, ReplayReport) {
    let Replay { events, report, .. } = run_replay(bytes, strategies, Observe::Events);
    (events, report)
}

/// Replays many journals. It compiles equal agents once.
#[derive(Debug)]
pub struct Replays<'a> {
    strategies: &'a Strategies,
    /// The agents that were compiled last, with the versions of their machines.
    agents: VecDeque<(u32, Arc<dyn Agent>)>,
}

/// The compiled agents that are held.
const MAX_AGENTS: usize = 16;

impl<'a> Replays<'a> {
    /// Replays with these strategies.
    #[must_use]
    pub fn new(strategies: &'a Strategies) -> Self {
        Self { strategies, agents: VecDeque::new() }
    }

    /// Replays a journal file.
    pub fn replay(&mut self, bytes: &[u8]) -> ReplayReport {
        let Self { strategies, agents } = self;
        let mut compile = |spec: &Arc<AgentSpec>, version| {
            let known = agents.iter().find(|(known, agent)| *known == version && **agent.spec() == **spec);
            if let Some((_, agent)) = known {
                return Ok(Arc::clone(agent));
            }
            let agent = strategies.compile_version(spec, version)?;
            agents.truncate(MAX_AGENTS - 1);
            agents.push_front((version, Arc::clone(&agent)));
            Ok(agent)
        };
        replay_compiled(bytes, strategies, &mut compile, Observe::Nothing).report
    }
}

/// What a replay finds.
pub(crate) struct Replay {
    /// The events up to the first difference.
    pub(crate) events: Vec<RunEvent>,
    /// The tool calls up to the first difference.
    pub(crate) calls: Vec<CallRecord>,
    /// The observed iteration, if the journal has it.
    pub(crate) record: Option<IterationRecord>,
    /// The steps up to the first difference, if they are observed.
    pub(crate) trace: Tracer,
    pub(crate) report: ReplayReport,
}

/// What a replay collects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Observe {
    Nothing,
    /// The events and the tool calls.
    Events,
    /// The events, the tool calls, and the model call of this iteration.
    Iteration(u32),
    /// The steps of the trace.
    Trace,
}

pub(crate) fn run_replay(bytes: &[u8], strategies: &Strategies, observe: Observe) -> Replay {
    let mut compile = |spec: &Arc<AgentSpec>, version| strategies.compile_version(spec, version);
    replay_compiled(bytes, strategies, &mut compile, observe)
}

fn replay_compiled(bytes: &[u8], strategies: &Strategies, compile: Compile<'_>, observe: Observe) -> Replay {
    let mut replayer = Replayer::new(strategies, compile, observe);
    let (run_id, difference) = match open_journal(bytes, strategies) {
        Ok((journal, mut reader)) => {
            let difference =
                replayer.run(&journal, &mut reader).and_then(|()| replayer.check_complete(&reader)).err();
            (Some(journal.run_id), difference)
        }
        Err(difference) => (None, Some(difference)),
    };
    let report = ReplayReport {
        equal: difference.is_none(),
        complete: replayer.outcome.is_some(),
        run_id,
        facts: replayer.facts,
        effects: replayer.effects,
        outcome: replayer.outcome,
        difference,
        problem: None,
    };
    let events = replayer.machine.as_mut().map(|machine| machine.take_events()).unwrap_or_default();
    let calls = replayer.calls.into_iter().map(|(_, call)| call).collect();
    Replay { events, calls, record: replayer.record, trace: replayer.trace, report }
}

/// A run at the end of its journal, ready to continue.
#[derive(Debug)]
pub struct ResumedRun {
    /// The machine, and the writer for the next lines.
    pub recorder: Recorder,
    /// The agent and everything it binds.
    pub plan: Box<AgentPlan>,
    /// The effects that no fact has answered, in the order of their numbers.
    pub open: Vec<OpenEffect>,
    /// The effects of the last fact that need no answer. The journal does not tell whether they were done.
    pub unanswerable: Vec<Effect>,
}

/// Compiles the agent of a run, whose machine has this version.
pub type Compile<'a> = &'a mut dyn FnMut(&Arc<AgentSpec>, u32) -> Result<Arc<dyn Agent>, CompileError>;

/// Resumes a run from its journal: feeds every fact to the machine and compares every digest. The journal may
/// end before the run does, but not within a step.
///
/// # Errors
/// The first difference.
pub fn resume(bytes: &[u8], strategies: &Strategies, compile: Compile<'_>) -> Result<ResumedRun, Difference> {
    let (journal, mut reader) = open_journal(bytes, strategies)?;
    let mut replayer = Replayer::new(strategies, compile, Observe::Nothing);
    replayer.run(&journal, &mut reader)?;
    if !replayer.expected.is_empty() {
        return Err(replayer.incomplete(reader.line() + 1));
    }
    let (Some(agent), Some(machine)) = (replayer.agent, replayer.machine) else {
        return Err(Difference::new(3, DifferenceKind::Incomplete, "The journal holds no fact."));
    };
    let recorder = Recorder::after(agent, machine, reader.last());
    let (open, unanswerable) = (replayer.open.into_vec(), replayer.unanswerable);
    Ok(ResumedRun { recorder, plan: journal.plan, open, unanswerable })
}

fn fact_refused(line: usize, why: &dyn std::error::Error) -> Difference {
    Difference::new(line, DifferenceKind::Fact, format!("The machine does not take this fact: {why}."))
}

struct Replayer<'a> {
    strategies: &'a Strategies,
    compile: Compile<'a>,
    observe: Observe,
    agent: Option<Arc<dyn Agent>>,
    machine: Option<Box<dyn Machine>>,
    /// The records that must come next.
    expected: VecDeque<JournalRecord>,
    open: OpenEffects,
    /// The effects of the last fact that need no answer.
    unanswerable: Vec<Effect>,
    calls: Vec<(EffectId, CallRecord)>,
    record: Option<IterationRecord>,
    trace: Tracer,
    /// The time of the last fact.
    at: Millis,
    facts: usize,
    effects: usize,
    outcome: Option<Ending>,
}

impl<'a> Replayer<'a> {
    fn new(strategies: &'a Strategies, compile: Compile<'a>, observe: Observe) -> Self {
        Self {
            strategies,
            compile,
            observe,
            agent: None,
            machine: None,
            expected: VecDeque::new(),
            open: OpenEffects::default(),
            unanswerable: Vec::new(),
            calls: Vec::new(),
            record: None,
            trace: Tracer::default(),
            at: 0,
            facts: 0,
            effects: 0,
            outcome: None,
        }
    }

    fn is_observed(&self) -> bool {
        self.observe != Observe::Nothing
    }

    fn run(&mut self, journal: &Journal, reader: &mut JournalReader<'_>) -> Result<(), Difference> {
        while let Some(record) = reader.next_record()? {
            let line = reader.line();
            if self.outcome.is_some() {
                let message = format!("The run is over, but the journal goes on with {}.", describe(&record));
                return Err(Difference::new(line, DifferenceKind::Extra, message));
            }
            match record {
                JournalRecord::Fact { fact } => self.fact(journal, line, *fact)?,
                record => self.compare(line, &record)?,
            }
        }
        Ok(())
    }

    fn check_complete(&self, reader: &JournalReader<'_>) -> Result<(), Difference> {
        if self.outcome.is_some() { Ok(()) } else { Err(self.incomplete(reader.line() + 1)) }
    }

    fn fact(&mut self, journal: &Journal, line: usize, fact: Fact) -> Result<(), Difference> {
        if let Some(expected) = self.expected.front() {
            let message =
                format!("The journal goes on with a fact where {} must follow.", describe(expected));
            return Err(Difference::new(line, DifferenceKind::Effect, message)
                .between(format!("fact {}", fact.name()), describe_with_digest(expected)));
        }
        if let Fact::RunStarted { run_id, spec, .. } = &fact
            && (*run_id != journal.run_id || spec.agent != journal.agent || spec.strategy != journal.strategy)
        {
            let message = "The header names another run or agent than the first fact.";
            return Err(Difference::new(line, DifferenceKind::Header, message));
        }
        if let Fact::RunStarted { spec, .. } = &fact
            && let Some(strategy) = self.strategies.find(spec.strategy.as_deref())
            && let Some(what) = strategy.contradiction(&journal.plan, spec)
        {
            let message = format!("The plan and the run's first fact contradict each other in {what}.");
            return Err(Difference::new(2, DifferenceKind::Plan, message));
        }
        self.at = fact.at();
        let answered = if self.is_observed() { answered_call(&fact) } else { None };
        if let Some(record) = &mut self.record {
            record.add_fact(&fact);
        }
        let answers = fact.effect();
        let outline = (self.observe == Observe::Trace).then(|| FactOutline::new(&fact));
        let machine = self.machine_for(journal.machine, line, &fact)?;
        machine.feed(fact).map_err(|error| fact_refused(line, &error))?;
        let effects: Vec<Effect> = std::iter::from_fn(|| machine.poll()).collect();
        if let Some(outline) = outline {
            let events = machine.take_events();
            self.trace.add(outline, &events, &effects);
        }
        self.facts += 1;
        if let Some(id) = answers {
            self.open.close(id);
        }
        if let Some((id, result, tries)) = answered
            && let Some((_, call)) = self.calls.iter_mut().find(|(effect, _)| *effect == id)
        {
            call.result = Some(result);
            call.tries = tries;
            call.duration_ms = call.started_at.map(|started| self.at.saturating_sub(started));
        }
        self.unanswerable.clear();
        for effect in effects {
            if let Observe::Iteration(wanted) = self.observe {
                IterationRecord::add_effect(&mut self.record, wanted, self.at, &effect);
            }
            self.expected.extend(effect_records(&effect, None).map_err(|_| unwritable(line))?);
            if effect.needs_answer() { self.open.open(effect) } else { self.unanswerable.push(effect) }
        }
        Ok(())
    }

    /// The machine. The first fact gives its agent.
    fn machine_for(
        &mut self,
        version: u32,
        line: usize,
        fact: &Fact,
    ) -> Result<&mut dyn Machine, Difference> {
        if self.machine.is_none()
            && let Fact::RunStarted { spec, .. } = fact
        {
            let agent = (self.compile)(spec, version).map_err(|error| fact_refused(line, &error))?;
            let mut machine = Arc::clone(&agent).start();
            machine.set_observed(self.is_observed());
            (self.agent, self.machine) = (Some(agent), Some(machine));
        }
        match &mut self.machine {
            Some(machine) => Ok(&mut **machine),
            None => {
                let message = "The first fact of a run must be run_started.";
                Err(Difference::new(line, DifferenceKind::Fact, message))
            }
        }
    }

    fn compare(&mut self, line: usize, record: &JournalRecord) -> Result<(), Difference> {
        let what = match record {
            JournalRecord::Effect { .. } => DifferenceKind::Effect,
            JournalRecord::Output { .. } => DifferenceKind::Output,
            JournalRecord::Header { .. } => DifferenceKind::Header,
            JournalRecord::Plan { .. } | JournalRecord::Fact { .. } => DifferenceKind::Plan,
        };
        let Some(mut expected) = self.expected.pop_front() else {
            let message =
                format!("The machine waits for a fact, but the journal goes on with {}.", describe(record));
            return Err(Difference::new(line, what, message));
        };
        // The engine determined the class. The machine knows only what the node declares.
        if let (JournalRecord::Effect { id, class: found, .. }, JournalRecord::Effect { class, .. }) =
            (record, &mut expected)
        {
            *class = self.expected_class(*id, *found);
        }
        if *record != expected {
            let message = format!(
                "The journal has {}, but the replay gives {}.",
                describe(record),
                describe_expected(&expected, record)
            );
            return Err(Difference::new(line, what, message)
                .between(describe_with_digest(record), describe_with_digest(&expected)));
        }
        match record {
            JournalRecord::Effect { id, class, .. } => {
                self.effects += 1;
                self.add_recorded(*id, *class);
            }
            // Only the end of a run has an output record.
            _ => {
                self.outcome = self.machine.as_deref().and_then(ending);
                self.open.clear();
            }
        }
        Ok(())
    }

    /// The class that an effect must have: for a tool call, the class that its node declares. If the node
    /// declares none, or if none was recorded, the recorded one.
    fn expected_class(&self, id: EffectId, found: Option<EffectClass>) -> Option<EffectClass> {
        let Effect::CallTool { call, .. } = &self.open.find(id)?.effect else { return None };
        let tools = self.agent.as_ref().map(|agent| &agent.spec().tools);
        let declared = tools.and_then(|tools| tools.iter().find(|tool| tool.name == call.tool)?.effect);
        found.and(declared.or(found))
    }

    /// Notes the recorded class of an open effect, and its call.
    fn add_recorded(&mut self, id: EffectId, class: Option<EffectClass>) {
        let is_observed = self.is_observed();
        let Some(open) = self.open.find_mut(id) else { return };
        open.class = class;
        if let (true, Effect::CallTool { call, .. }) = (is_observed, &open.effect) {
            let tools = self.agent.as_ref().map(|agent| &agent.spec().tools);
            let record = CallRecord {
                iteration: call.iteration,
                call_id: call.call_id.clone(),
                tool: call.tool.clone(),
                input: call.input.clone(),
                result: None,
                id: tools.and_then(|tools| tools.iter().find(|tool| tool.name == call.tool)?.id.clone()),
                effect: class,
                started_at: Some(self.at),
                duration_ms: None,
                tries: None,
            };
            self.calls.push((id, record));
        }
    }

    fn incomplete(&self, line: usize) -> Difference {
        let message = match (self.expected.front(), self.machine.as_ref().map(|machine| machine.status())) {
            (Some(expected), _) => format!("The journal ends where {} must follow.", describe(expected)),
            (None, Some(Status::Waiting(questions))) => {
                let calls: Vec<&str> =
                    questions.iter().map(|question| question.call.call_id.as_str()).collect();
                let calls = calls.join(", ");
                format!("The journal ends while the run waits for the outcome of call {calls}.")
            }
            (None, Some(_)) => "The journal ends while the run waits for its next fact.".to_owned(),
            (None, None) => "The journal ends before the run's first fact.".to_owned(),
        };
        Difference::new(line, DifferenceKind::Incomplete, message)
    }
}

/// The call that a fact answers, its result, and how often the tool was tried.
fn answered_call(fact: &Fact) -> Option<(EffectId, ToolResult, Option<u32>)> {
    // Only the journal has the data of images.
    let without_images = |result: &ToolResult| ToolResult { images: Vec::new(), ..result.clone() };
    match fact {
        Fact::ToolReturned { effect, result, tries, .. } => {
            Some((*effect, without_images(result), Some(*tries)))
        }
        Fact::OutcomeResolved { effect, result, .. } => Some((*effect, without_images(result), None)),
        _ => None,
    }
}

fn ending(machine: &dyn Machine) -> Option<Ending> {
    match machine.status() {
        Status::Finished(ending) => Some(ending),
        _ => None,
    }
}

/// Names a record in a sentence.
fn describe(record: &JournalRecord) -> String {
    match record {
        JournalRecord::Effect { id, effect, class, .. } => {
            let class = class.map(class_suffix).unwrap_or_default();
            format!("effect {id} ({}{class})", quote(effect))
        }
        JournalRecord::Output { .. } => "an output".to_owned(),
        record => format!("a {}", record.name()),
    }
}

fn class_suffix(class: EffectClass) -> &'static str {
    match class {
        EffectClass::Read => ", read",
        EffectClass::Idempotent => ", idempotent",
        EffectClass::AtMostOnce => ", at_most_once",
    }
}

/// Names the expected record, or `another one` if both have the same name.
fn describe_expected(expected: &JournalRecord, recorded: &JournalRecord) -> String {
    let name = describe(expected);
    if name == describe(recorded) { "another one".to_owned() } else { name }
}

/// Names a record with its digest.
fn describe_with_digest(record: &JournalRecord) -> String {
    match record {
        JournalRecord::Effect { digest, .. } | JournalRecord::Output { digest } => {
            format!("{} {digest}", describe(record))
        }
        record => describe(record),
    }
}
