//! Reads a journal, and trusts nothing in it.
//!
//! Owns the rules of a valid journal: every line is exactly what the writer writes, and contains the digest
//! of the line before. The header comes first, then the plan that it names. `replay` compares the content
//! with the machine.

use crate::strategy::Strategies;
use crate::text::quote;
use redflow_contract::CONTRACT_VERSION;
use redflow_contract::digest::Digest;
use redflow_contract::id::{NodeRef, RunId};
use redflow_contract::journal::{JournalLine, JournalRecord};
use redflow_contract::node::DEFAULT_STRATEGY;
use redflow_contract::plan::AgentPlan;
use redflow_contract::replay::{Difference, DifferenceKind};
use serde::Serialize;
use serde_json::Value;
use std::ops::RangeInclusive;

/// The longest line that is read, in bytes.
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// The most lines that are read. A run of 20 iterations writes about a hundred.
pub const MAX_LINES: usize = 100_000;

/// Reads one line. None if it is no line of a journal. Other crates call this, because each crate that reads the type
/// itself would add its own copy of the reader to the program.
#[must_use]
pub fn read_line(text: &[u8]) -> Option<JournalLine> {
    serde_json::from_slice(text).ok()
}

/// A journal that follows the rules. Only a replay tells whether the machine agrees with it.
#[derive(Debug)]
pub struct Journal {
    /// The id of the run.
    pub run_id: RunId,
    /// The version of its machine.
    pub machine: u32,
    /// The strategy of its machine; none for Agent Core's.
    pub strategy: Option<String>,
    /// The agent of the run.
    pub agent: NodeRef,
    /// The run that started this one; none if none did.
    pub parent_run_id: Option<RunId>,
    /// The step of that run; none if none did.
    pub step_id: Option<String>,
    /// The agent and everything it binds.
    pub plan: Box<AgentPlan>,
    /// Everything after the header and the plan, in order.
    pub records: Vec<JournalRecord>,
    /// The digest of the last line.
    pub last: Digest,
}

/// Reads a whole journal: JSON lines, the last one with or without a line feed.
///
/// # Errors
/// The first line that breaks a rule.
pub fn read_journal(bytes: &[u8], strategies: &Strategies) -> Result<Journal, Difference> {
    let (mut journal, mut reader) = open_journal(bytes, strategies)?;
    while let Some(record) = reader.next_record()? {
        journal.records.push(record);
        journal.last = reader.prev;
    }
    Ok(journal)
}

/// Reads the header and the plan. The reader gives the remaining lines.
pub(crate) fn open_journal<'a>(
    bytes: &'a [u8],
    strategies: &'a Strategies,
) -> Result<(Journal, JournalReader<'a>), Difference> {
    if bytes.iter().filter(|byte| **byte == b'\n').count() > MAX_LINES {
        let message = format!("The journal has more than {MAX_LINES} lines.");
        return Err(Difference::new(MAX_LINES + 1, DifferenceKind::TooLarge, message));
    }
    let mut reader =
        JournalReader { rest: bytes, line: 0, prev: Digest::ZERO, strategies, written: Vec::new() };
    let Some(JournalRecord::Header {
        contract,
        machine,
        strategy,
        run_id,
        agent,
        plan_digest,
        parent_run_id,
        step_id,
    }) = reader.next_record()?
    else {
        return Err(Difference::new(1, DifferenceKind::Header, "A journal begins with its header."));
    };
    check_version("contract", contract, CONTRACT_VERSION..=CONTRACT_VERSION)?;
    check_version("machine", machine, machine_versions(strategies, strategy.as_deref())?)?;
    let Some(JournalRecord::Plan { plan }) = reader.next_record()? else {
        let message = "The second line of a journal is its plan.";
        return Err(Difference::new(2, DifferenceKind::Plan, message));
    };
    let found = digest(2, &plan)?;
    if found != plan_digest {
        let message = "The plan is not the one the header names.";
        return Err(
            Difference::new(2, DifferenceKind::Plan, message).between(found.to_hex(), plan_digest.to_hex())
        );
    }
    let last = reader.prev;
    let journal =
        Journal { run_id, machine, strategy, agent, parent_run_id, step_id, plan, records: Vec::new(), last };
    Ok((journal, reader))
}

/// The versions of the machine that this build has for a strategy.
fn machine_versions(
    strategies: &Strategies,
    strategy: Option<&str>,
) -> Result<RangeInclusive<u32>, Difference> {
    strategies.find(strategy).map(|strategy| strategy.versions()).ok_or_else(|| {
        let name = quote(strategy.unwrap_or(DEFAULT_STRATEGY));
        let message = format!(
            "The agent has the strategy {name}, which this build does not know: replay it with a newer Redflow \
             Runtime."
        );
        Difference::new(1, DifferenceKind::Version, message)
    })
}

fn check_version(what: &str, recorded: u32, known: RangeInclusive<u32>) -> Result<(), Difference> {
    if known.contains(&recorded) {
        return Ok(());
    }
    let ours = *known.end();
    let advice = if recorded > ours {
        "replay it with a newer Redflow Runtime"
    } else {
        "this build no longer knows that version"
    };
    let message = format!(
        "The journal was written with version {recorded} of the {what} and this is version {ours}: {advice}."
    );
    Err(Difference::new(1, DifferenceKind::Version, message).between(recorded.to_string(), ours.to_string()))
}

/// Reports the version of an unreadable header, because a later version can have another form.
fn check_unknown_header(text: &[u8], strategies: &Strategies) -> Result<(), Difference> {
    let header: Value = serde_json::from_slice(text).unwrap_or_default();
    let strategy = header.pointer("/record/strategy").and_then(Value::as_str);
    let recorded = |what: &str| {
        let number = header.pointer(&format!("/record/{what}")).and_then(Value::as_u64);
        number.and_then(|number| u32::try_from(number).ok())
    };
    if let Some(contract) = recorded("contract") {
        check_version("contract", contract, CONTRACT_VERSION..=CONTRACT_VERSION)?;
    }
    match recorded("machine") {
        Some(machine) => check_version("machine", machine, machine_versions(strategies, strategy)?),
        None => Ok(()),
    }
}

/// The digest of a value that was just read.
pub(crate) fn digest<T: Serialize>(line: usize, value: &T) -> Result<Digest, Difference> {
    Digest::of_json(value).map_err(|_| unwritable(line))
}

pub(crate) fn unwritable(line: usize) -> Difference {
    Difference::new(line, DifferenceKind::Unreadable, "The line holds something that is no JSON.")
}

/// Reads a journal line by line.
pub(crate) struct JournalReader<'a> {
    rest: &'a [u8],
    line: usize,
    prev: Digest,
    strategies: &'a Strategies,
    /// The line as the writer writes it. One buffer for all lines.
    written: Vec<u8>,
}

impl JournalReader<'_> {
    /// The number of the last line read.
    pub(crate) fn line(&self) -> usize {
        self.line
    }

    /// The digest of the last line read.
    pub(crate) fn last(&self) -> Digest {
        self.prev
    }

    /// Reads the record of the next line; none at the end.
    pub(crate) fn next_record(&mut self) -> Result<Option<JournalRecord>, Difference> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        self.line += 1;
        let (text, rest) = match memchr::memchr(b'\n', self.rest) {
            Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
            None => (self.rest, &self.rest[self.rest.len()..]),
        };
        self.rest = rest;
        let wrong = |what, message: String| Err(Difference::new(self.line, what, message));
        if text.len() > MAX_LINE_BYTES {
            return wrong(
                DifferenceKind::TooLarge,
                format!("The line has more than {MAX_LINE_BYTES} bytes."),
            );
        }
        let Some(line) = read_line(text) else {
            if self.line == 1 {
                check_unknown_header(text, self.strategies)?;
            }
            return wrong(DifferenceKind::Unreadable, "The line is no line of a journal.".to_owned());
        };
        self.written.clear();
        if serde_json::to_writer(&mut self.written, &line).is_err() || self.written != text {
            let message = "The line is not written as a journal writes it: it was changed.";
            return wrong(DifferenceKind::NotCanonical, message.to_owned());
        }
        if line.prev != self.prev {
            let message = match self.line {
                1 => "The first line of a journal follows no other.".to_owned(),
                number => format!(
                    "The line does not follow from line {}: one of the two was changed, or a line is missing.",
                    number - 1
                ),
            };
            return Err(Difference::new(self.line, DifferenceKind::Chain, message)
                .between(line.prev.to_hex(), self.prev.to_hex()));
        }
        self.prev = Digest::of(text);
        Ok(Some(line.record))
    }
}
