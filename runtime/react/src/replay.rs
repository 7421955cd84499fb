//! Replays a journal: feeds its facts to the machine, and compares the effects with the recorded ones.
//!
//! Owns the comparison. Never does an effect and never trusts a line: a wrong line is a difference, not a
//! panic.

use crate::compile::{CompileError, CompiledAgent};
use crate::journal::{Recorder, effect_records};
use crate::journal_reader::{Journal, JournalReader, open_journal, unwritable};
use crate::machine::Machine;
use crate::plan_check::contradiction;
use crate::status::Status;
use crate::text::quote;
use redflow_contract::effect::{Effect, Ending};
use redflow_contract::event::RunEvent;
use redflow_contract::fact::Fact;
use redflow_contract::id::EffectId;
use redflow_contract::journal::JournalRecord;
use redflow_contract::node_config::EffectClass;
use redflow_contract::plan::{AgentPlan, AgentSpec};
use redflow_contract::replay::{Difference, DifferenceKind, ReplayReport};
use std::collections::VecDeque;
use std::sync::Arc;

/// Replays a journal file.
#[must_use]
pub fn replay(bytes: &[u8]) -> ReplayReport {
    run_replay(bytes, false).1
}

/// Replays a journal file. Also returns the events up to the first difference.
#[must_use]
pub fn replay_events(bytes: &[u8]) -> (Vec<RunEvent>, ReplayReport) {
    run_replay(bytes, true)
}

fn run_replay(bytes: &[u8], observed: bool) -> (Vec<RunEvent>, ReplayReport) {
    let mut compile = |spec: &Arc<AgentSpec>| CompiledAgent::compile(Arc::clone(spec));
    let mut replayer = Replayer::new(&mut compile, observed);
    let (run_id, difference) = match open_journal(bytes) {
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
    };
    (replayer.machine.as_mut().map(Machine::take_events).unwrap_or_default(), report)
}

/// A run at the end of its journal, ready to continue.
#[derive(Debug)]
pub struct ResumedRun {
    /// The machine, and the writer for the next lines.
    pub recorder: Recorder,
    /// The agent and everything it binds.
    pub plan: Box<AgentPlan>,
    /// The effects of the last fact. The journal does not tell which of them were done.
    pub effects: Vec<Effect>,
    /// The recorded effect class of the open tool call; none if no call is open or no class was recorded.
    pub class: Option<EffectClass>,
}

/// Compiles the agent of a run.
pub type Compile<'a> = &'a mut dyn FnMut(&Arc<AgentSpec>) -> Result<Arc<CompiledAgent>, CompileError>;

/// Resumes a run from its journal: feeds every fact to the machine and compares every digest. The journal may
/// end before the run does, but not within a step.
///
/// # Errors
/// The first difference.
pub fn resume(bytes: &[u8], compile: Compile<'_>) -> Result<ResumedRun, Difference> {
    let (journal, mut reader) = open_journal(bytes)?;
    let mut replayer = Replayer::new(compile, false);
    replayer.run(&journal, &mut reader)?;
    if !replayer.expected.is_empty() {
        return Err(replayer.incomplete(reader.line() + 1));
    }
    let Some(machine) = replayer.machine else {
        return Err(Difference::new(3, DifferenceKind::Incomplete, "The journal holds no fact."));
    };
    let recorder = Recorder::after(machine, reader.last());
    Ok(ResumedRun { recorder, plan: journal.plan, effects: replayer.last_effects, class: replayer.class })
}

fn fact_refused(line: usize, why: &dyn std::error::Error) -> Difference {
    Difference::new(line, DifferenceKind::Fact, format!("The machine does not take this fact: {why}."))
}

struct Replayer<'a> {
    compile: Compile<'a>,
    observed: bool,
    machine: Option<Machine>,
    /// The records that must come next.
    expected: VecDeque<JournalRecord>,
    /// The effects of the last fact.
    last_effects: Vec<Effect>,
    /// The recorded class of the last tool call.
    class: Option<EffectClass>,
    facts: usize,
    effects: usize,
    outcome: Option<Ending>,
}

impl<'a> Replayer<'a> {
    fn new(compile: Compile<'a>, observed: bool) -> Self {
        Self {
            compile,
            observed,
            machine: None,
            expected: VecDeque::new(),
            last_effects: Vec::new(),
            class: None,
            facts: 0,
            effects: 0,
            outcome: None,
        }
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
            && (*run_id != journal.run_id || spec.agent != journal.agent)
        {
            let message = "The header names another run or agent than the first fact.";
            return Err(Difference::new(line, DifferenceKind::Header, message));
        }
        if let Fact::RunStarted { spec, .. } = &fact
            && let Some(what) = contradiction(&journal.plan, spec)
        {
            let message = format!("The plan and the run's first fact contradict each other in {what}.");
            return Err(Difference::new(2, DifferenceKind::Plan, message));
        }
        let machine = self.machine_for(line, &fact)?;
        machine.feed(fact).map_err(|error| fact_refused(line, &error))?;
        let effects: Vec<Effect> = std::iter::from_fn(|| machine.poll()).collect();
        self.facts += 1;
        self.class = None;
        for effect in &effects {
            self.expected.extend(effect_records(effect, None).map_err(|_| unwritable(line))?);
        }
        self.last_effects = effects;
        Ok(())
    }

    /// The machine. The first fact gives its agent.
    fn machine_for(&mut self, line: usize, fact: &Fact) -> Result<&mut Machine, Difference> {
        if self.machine.is_none()
            && let Fact::RunStarted { spec, .. } = fact
        {
            let agent = (self.compile)(spec).map_err(|error| fact_refused(line, &error))?;
            self.machine = Some(Machine::new(agent).observed(self.observed));
        }
        self.machine.as_mut().ok_or_else(|| {
            Difference::new(line, DifferenceKind::Fact, "The first fact of a run must be run_started.")
        })
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
            JournalRecord::Effect { class, .. } => {
                self.effects += 1;
                self.class = self.class.or(*class);
            }
            // Only the end of a run has an output record.
            _ => self.outcome = self.machine.as_ref().and_then(ending),
        }
        Ok(())
    }

    /// The class that an effect must have: for a tool call, the class that its node declares. If the node
    /// declares none, or if none was recorded, the recorded one.
    fn expected_class(&self, id: EffectId, found: Option<EffectClass>) -> Option<EffectClass> {
        let Some(Effect::CallTool { call, .. }) = self.last_effects.iter().find(|effect| effect.id() == id)
        else {
            return None;
        };
        let agent = self.machine.as_ref().map(Machine::agent);
        let declared = agent.and_then(|agent| agent.tool(&call.tool)?.0.effect);
        found.and(declared.or(found))
    }

    fn incomplete(&self, line: usize) -> Difference {
        let message = match (self.expected.front(), self.machine.as_ref().map(Machine::status)) {
            (Some(expected), _) => format!("The journal ends where {} must follow.", describe(expected)),
            (None, Some(Status::WaitingOutcome { call_id, .. })) => {
                format!("The journal ends while the run waits for the outcome of call {call_id}.")
            }
            (None, Some(_)) => "The journal ends while the run waits for its next fact.".to_owned(),
            (None, None) => "The journal ends before the run's first fact.".to_owned(),
        };
        Difference::new(line, DifferenceKind::Incomplete, message)
    }
}

fn ending(machine: &Machine) -> Option<Ending> {
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
