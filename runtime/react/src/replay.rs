//! Replay: the facts of a journal through the real machine, compared with what the journal says was done.
//!
//! Owns the comparison. Never does an effect, and never trusts a line: anything wrong is a difference with
//! its line, not a panic.

use crate::compile::CompiledAgent;
use crate::journal::effect_records;
use crate::machine::{Machine, Status};
use crate::plan_check::contradiction;
use crate::read::{Difference, DifferenceKind, Journal, JournalReader, open_journal, unwritable};
use redflow_contract::effect::Ending;
use redflow_contract::fact::Fact;
use redflow_contract::id::RunId;
use redflow_contract::journal::JournalRecord;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::Arc;

/// What came of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayReport {
    /// Whether the machine did again exactly what the journal says.
    pub equal: bool,
    /// Whether the journal holds the run's end.
    pub complete: bool,
    /// The run, if the header could be read.
    pub run_id: Option<RunId>,
    /// How many facts were replayed.
    pub facts: usize,
    /// How many effects were compared and equal.
    pub effects: usize,
    /// How the run ended, if it did.
    pub outcome: Option<Ending>,
    /// The first difference.
    pub difference: Option<Difference>,
}

/// Replays a journal file.
#[must_use]
pub fn replay(bytes: &[u8]) -> ReplayReport {
    let mut replayer = Replayer::default();
    let (run_id, difference) = match open_journal(bytes) {
        Ok((journal, reader)) => {
            let difference = replayer.run(&journal, reader).err();
            (Some(journal.run_id), difference)
        }
        Err(difference) => (None, Some(difference)),
    };
    ReplayReport {
        equal: difference.is_none(),
        complete: replayer.outcome.is_some(),
        run_id,
        facts: replayer.facts,
        effects: replayer.effects,
        outcome: replayer.outcome,
        difference,
    }
}

/// The machine as the facts of a journal leave it, with the effects of the last fact still to be polled.
/// Which of those were done before a crash is for the driver to know.
///
/// # Errors
/// The first fact the machine does not take.
pub fn fold(journal: Journal) -> Result<Machine, Difference> {
    let mut machine = None;
    for (index, record) in journal.records.into_iter().enumerate() {
        // Header and plan are lines 1 and 2.
        let line = index + 3;
        if let JournalRecord::Fact { fact } = record {
            let machine = machine_for(&mut machine, line, &fact)?;
            while machine.poll().is_some() {}
            machine.feed(*fact).map_err(|error| refused(line, &error))?;
        }
    }
    machine.ok_or_else(|| Difference::new(3, DifferenceKind::Incomplete, "The journal holds no fact."))
}

fn refused(line: usize, why: &dyn std::error::Error) -> Difference {
    Difference::new(line, DifferenceKind::Fact, format!("The machine does not take this fact: {why}."))
}

/// The machine, made from the agent in the first fact.
fn machine_for<'a>(
    machine: &'a mut Option<Machine>,
    line: usize,
    fact: &Fact,
) -> Result<&'a mut Machine, Difference> {
    if machine.is_none()
        && let Fact::RunStarted { spec, .. } = fact
    {
        let agent = CompiledAgent::compile(Arc::clone(spec)).map_err(|error| refused(line, &error))?;
        *machine = Some(Machine::new(agent));
    }
    machine.as_mut().ok_or_else(|| {
        Difference::new(line, DifferenceKind::Fact, "The first fact of a run must be run_started.")
    })
}

#[derive(Default)]
struct Replayer {
    machine: Option<Machine>,
    /// What the journal must say next.
    expected: VecDeque<JournalRecord>,
    facts: usize,
    effects: usize,
    outcome: Option<Ending>,
}

impl Replayer {
    fn run(&mut self, journal: &Journal, mut reader: JournalReader<'_>) -> Result<(), Difference> {
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
        let machine = machine_for(&mut self.machine, line, &fact)?;
        machine.feed(fact).map_err(|error| refused(line, &error))?;
        self.facts += 1;
        while let Some(effect) = machine.poll() {
            self.expected.extend(effect_records(&effect).map_err(|_| unwritable(line))?);
        }
        Ok(())
    }

    fn compare(&mut self, line: usize, record: &JournalRecord) -> Result<(), Difference> {
        let what = match record {
            JournalRecord::Effect { .. } => DifferenceKind::Effect,
            JournalRecord::Output { .. } => DifferenceKind::Output,
            JournalRecord::Header { .. } => DifferenceKind::Header,
            JournalRecord::Plan { .. } | JournalRecord::Fact { .. } => DifferenceKind::Plan,
        };
        let Some(expected) = self.expected.pop_front() else {
            let message =
                format!("The machine waits for a fact, but the journal goes on with {}.", a(record));
            return Err(Difference::new(line, what, message));
        };
        if *record != expected {
            let message =
                format!("The journal has {}, but the replay gives {}.", a(record), other(&expected, record));
            return Err(Difference::new(line, what, message).between(short(record), short(&expected)));
        }
        match record {
            JournalRecord::Effect { .. } => self.effects += 1,
            // Nothing but the end of a run is expected to give an output.
            _ => self.outcome = self.machine.as_ref().and_then(ending),
        }
        Ok(())
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
        JournalRecord::Effect { id, effect, .. } => {
            format!("effect {id} ({})", crate::wording::quoted(effect))
        }
        JournalRecord::Output { .. } => "an output".to_owned(),
        record => format!("a {}", record.name()),
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
