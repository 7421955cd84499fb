//! Journal files: reading, replaying, resuming, and one iteration.

use super::{Outcome, Target};
use redflow_contract::console::TEXT_BYTES;
use redflow_contract::replay::{Difference, ReplayReport};
use redflow_strategies::{iteration_detail, read_journal, replay, strategies};

pub(super) struct JournalFile {
    recorded: Vec<Vec<u8>>,
}

impl JournalFile {
    pub(super) fn new() -> Self {
        Self { recorded: super::answer::recorded_journals() }
    }
}

impl Target for JournalFile {
    fn name(&self) -> &'static str {
        "journal"
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        self.recorded.clone()
    }

    fn run(&self, input: &[u8]) -> Outcome {
        let ReplayReport { equal, complete, difference, .. } = replay(input);
        if equal && difference.is_some() {
            return Err("an equal journal has a difference".to_owned());
        }
        if complete && equal && self.recorded.iter().all(|journal| journal.trim_ascii() != input.trim_ascii())
        {
            return Err("a changed journal replays".to_owned());
        }
        let compile = &mut |spec: &_, version| strategies().compile_version(spec, version);
        let resumed = redflow_machine::resume(input, strategies(), compile);
        let what =
            |found: Option<&Difference>| found.map(|found| format!("{:?}", found.what)).unwrap_or_default();
        let read = read_journal(input);
        // An iteration of a hostile journal can be read, or is missing.
        let _ = iteration_detail(input, 1, TEXT_BYTES);
        Ok(format!(
            "{equal} {complete} {} {} {}",
            what(difference.as_ref()),
            what(read.as_ref().err()),
            what(resumed.as_ref().err())
        ))
    }
}
