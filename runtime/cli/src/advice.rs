//! Commands for people to copy: what can be done about a run that is not over.

use crate::data_dir::{DataOption, shell_word};
use crate::terminal::printable_line;
use redflow_contract::id::RunId;
use redflow_contract::run::WaitingCall;
use std::path::Path;

/// Where the runs are that it speaks of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Advice<'a> {
    pub(crate) data: &'a DataOption,
    /// The flow file, if there is one that can be named again.
    pub(crate) flow: Option<&'a Path>,
}

impl<'a> Advice<'a> {
    /// For runs of which no flow is known.
    pub(crate) fn of(data: &'a DataOption) -> Self {
        Self { data, flow: None }
    }

    /// Goes on with a run.
    pub(crate) fn resume(&self, run: &RunId) -> String {
        let flow = self.flow.filter(|path| *path != Path::new("-"));
        let flow = flow.map(|path| format!(" {}", shell_word(path))).unwrap_or_default();
        format!("redflow run --resume {}{flow}{}", shown_id(run), self.data.words())
    }

    /// Shows a run.
    pub(crate) fn show(&self, run: &RunId) -> String {
        format!("redflow runs show {}{}", shown_id(run), self.data.words())
    }

    /// Ends a run.
    pub(crate) fn cancel(&self, run: &RunId) -> String {
        format!("redflow runs cancel {}{}", shown_id(run), self.data.words())
    }

    /// How a run that waits is answered, and goes on then: a line each.
    pub(crate) fn answers(&self, run: &RunId) -> [String; 3] {
        let (id, data) = (shown_id(run), self.data.words());
        [
            format!("if it did:   redflow runs resolve {id} --done [--result JSON]{data}"),
            format!("if not:      redflow runs resolve {id} --not-done{data}"),
            format!("then:        {}", self.resume(run)),
        ]
    }
}

/// A run's id as it is shown.
pub(crate) fn shown_id(run: &RunId) -> String {
    printable_line(run.as_str(), 60)
}

/// What a run waits for, in words.
pub(crate) fn question(call: &WaitingCall) -> String {
    format!(
        "did `{}` (call {}, iteration {}) happen?",
        printable_line(&call.tool, 60),
        printable_line(call.call_id.as_str(), 80),
        call.iteration
    )
}
