//! Prints the outcome of a request about a run.

use crate::exit::Exit;
use crate::hints::display_run_id;
use crate::terminal::{print_json, print_note};
use redflow_contract::id::RunId;
use serde_json::json;

/// What a request did: a word for scripts and a sentence for people.
pub(super) struct PrintedOutcome {
    pub(super) word: &'static str,
    pub(super) text: String,
}

impl PrintedOutcome {
    /// No process has carried out the request yet.
    pub(super) fn pending(run: &RunId) -> Self {
        let id = display_run_id(run);
        let text =
            format!("the request for run {id} is stored; the next process that drives the runs does it");
        Self { word: "asked", text }
    }

    pub(super) fn print(&self, run: &RunId, as_json: bool) -> Exit {
        if as_json {
            return print_json(&json!({"runId": run, "outcome": self.word}));
        }
        print_note(&self.text);
        Exit::Success
    }
}
