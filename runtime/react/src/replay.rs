//! Replay: the facts of a journal through the real machine, compared with what the journal says was done.
//!
//! Owns the comparison. Never does an effect, and never trusts a line: anything wrong is a difference with
//! its line, not a panic.

use crate::compile::{CompileError, CompiledAgent};
use crate::journal::{Recorder, effect_records};
use crate::machine::{Machine, Status};
use crate::plan_check::contradiction;
use crate::read::{Journal, JournalReader, open_journal, unwritable};
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
    replay_events(bytes, false).1
}

/// Replays a journal file, and gives the events of the run as far as it is sound.
#[must_use]
pub fn replay_events(bytes: &[u8], watched: bool) -> (Vec<RunEvent>, ReplayReport) {
    let mut compile = |spec: &Arc<AgentSpec>| CompiledAgent::compile(Arc::clone(spec));
    let mut replayer = Replayer::new(&mut compile, watched);
    let (run_id, difference) = match open_journal(bytes) {
        Ok((journal, mut reader)) => {
            let difference = replayer.run(&journal, &mut reader).and_then(|()| replayer.whole(&reader)).err();
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

/// A run as its journal leaves it, ready to go on.
#[derive(Debug)]
pub struct ResumedRun {
    /// The machine, and the journal's end to write after.
    pub recorder: Recorder,
    /// What the run runs.
    pub plan: Box<AgentPlan>,
    /// What the last fact led to. Which of it was done is for the driver to find out.
    pub effects: Vec<Effect>,
    /// What the driver knew of the open tool call before it made it, if there is one and it was written down.
    pub class: Option<EffectClass>,
}

/// Makes the machine for the agent of a run.
pub type Compile<'a> = &'a mut dyn FnMut(&Arc<AgentSpec>) -> Result<Arc<CompiledAgent>, CompileError>;

/// Brings a run back from its journal: every fact through the machine, every digest compared. The journal may
/// end before the run does, but not in the middle of a step.
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
    Ok(ResumedRun { recorder, plan: journal.plan, effects: replayer.last, class: replayer.class })
}

fn refused(line: usize, why: &dyn std::error::Error) -> Difference {
    Difference::new(line, DifferenceKind::Fact, format!("The machine does not take this fact: {why}."))
}

struct Replayer<'a> {
    compile: Compile<'a>,
    watched: bool,
    machine: Option<Machine>,
    /// What the journal must say next.
    expected: VecDeque<JournalRecord>,
    /// What the last fact led to.
    last: Vec<Effect>,
    /// The class recorded with the last tool call.
    class: Option<EffectClass>,
    facts: usize,
    effects: usize,
    outcome: Option<Ending>,
}

impl<'a> Replayer<'a> {
    fn new(compile: Compile<'a>, watched: bool) -> Self {
        Self {
            compile,
            watched,
            machine: None,
            expected: VecDeque::new(),
            last: Vec::new(),
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
                let message = format!("The run is over, but the journal goes on with {}.", a(&record));
                return Err(Difference::new(line, DifferenceKind::Extra, message));
            }
            match record {
                JournalRecord::Fact { fact } => self.fact(journal, line, *fact)?,
                record => self.compare(line, &record)?,
            }
        }
        Ok(())
    }

    fn whole(&self, reader: &JournalReader<'_>) -> Result<(), Difference> {
        if self.outcome.is_some() { Ok(()) } else { Err(self.incomplete(reader.line() + 1)) }
    }

    fn fact(&mut self, journal: &Journal, line: usize, fact: Fact) -> Result<(), Difference> {
        if let Some(expected) = self.expected.front() {
            let message = format!("The journal goes on with a fact where {} must follow.", a(expected));
            return Err(Difference::new(line, DifferenceKind::Effect, message)
                .between(format!("fact {}", fact.name()), short(expected)));
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
        machine.feed(fact).map_err(|error| refused(line, &error))?;
        let effects: Vec<Effect> = std::iter::from_fn(|| machine.poll()).collect();
        self.facts += 1;
        self.class = None;
        for effect in &effects {
            self.expected.extend(effect_records(effect, None).map_err(|_| unwritable(line))?);
        }
        self.last = effects;
        Ok(())
    }

    /// The machine, made from the agent in the first fact.
    fn machine_for(&mut self, line: usize, fact: &Fact) -> Result<&mut Machine, Difference> {
        if self.machine.is_none()
            && let Fact::RunStarted { spec, .. } = fact
        {
            let agent = (self.compile)(spec).map_err(|error| refused(line, &error))?;
            self.machine = Some(Machine::new(agent).observed(self.watched));
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
                format!("The machine waits for a fact, but the journal goes on with {}.", a(record));
            return Err(Difference::new(line, what, message));
        };
        // The driver judged the call; the machine can only say where that is against what the node declares.
        if let (JournalRecord::Effect { id, class: found, .. }, JournalRecord::Effect { class, .. }) =
            (record, &mut expected)
        {
            *class = self.right_class(*id, *found);
        }
        if *record != expected {
            let message =
                format!("The journal has {}, but the replay gives {}.", a(record), other(&expected, record));
            return Err(Difference::new(line, what, message).between(short(record), short(&expected)));
        }
        match record {
            JournalRecord::Effect { class, .. } => {
                self.effects += 1;
                self.class = self.class.or(*class);
            }
            // Nothing but the end of a run is expected to give an output.
            _ => self.outcome = self.machine.as_ref().and_then(ending),
        }
        Ok(())
    }

    /// The class an effect should be recorded with: of a tool call what its node declares; if that says
    /// nothing, or nothing was recorded, the recorded one.
    fn right_class(&self, id: EffectId, found: Option<EffectClass>) -> Option<EffectClass> {
        let Some(Effect::CallTool { call, .. }) = self.last.iter().find(|effect| effect.id() == id) else {
            return None;
        };
        let agent = self.machine.as_ref().map(Machine::agent);
        let declared = agent.and_then(|agent| agent.tool(&call.tool)?.0.effect);
        found.and(declared.or(found))
    }

    fn incomplete(&self, line: usize) -> Difference {
        let message = match (self.expected.front(), self.machine.as_ref().map(Machine::status)) {
            (Some(expected), _) => format!("The journal ends where {} must follow.", a(expected)),
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

/// A record as a sentence names it.
fn a(record: &JournalRecord) -> String {
    match record {
        JournalRecord::Effect { id, effect, class, .. } => {
            let class = class.map(class_name).unwrap_or_default();
            format!("effect {id} ({}{class})", crate::wording::quoted(effect))
        }
        JournalRecord::Output { .. } => "an output".to_owned(),
        record => format!("a {}", record.name()),
    }
}

fn class_name(class: EffectClass) -> &'static str {
    match class {
        EffectClass::Read => ", read",
        EffectClass::Idempotent => ", idempotent",
        EffectClass::AtMostOnce => ", at_most_once",
    }
}

/// What the replay has instead, told apart from what the journal has.
fn other(expected: &JournalRecord, recorded: &JournalRecord) -> String {
    let name = a(expected);
    if name == a(recorded) { "another one".to_owned() } else { name }
}

/// A record in short, with its digest.
fn short(record: &JournalRecord) -> String {
    match record {
        JournalRecord::Effect { digest, .. } | JournalRecord::Output { digest } => {
            format!("{} {digest}", a(record))
        }
        record => a(record),
    }
}
