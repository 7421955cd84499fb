//! Reports with a bounded number of diagnostics and bounded texts.

use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::limits::FlowLimits;
use redflow_contract::phrase::Sentence;
pub(crate) use redflow_contract::phrase::truncate;
use redflow_contract::phrases;

/// The longest message, help, pointer or value of a diagnostic, in characters.
const MAX_TEXT: usize = 600;

/// The longest id, type or name of a node in a diagnostic, in characters.
const MAX_NAME: usize = 256;

/// Collects the problems that refuse a whole flow: up to the limit, the rest counted.
#[derive(Debug)]
pub(crate) struct ReportBuilder {
    limit: usize,
    report: CheckReport,
}

impl ReportBuilder {
    pub(crate) fn new(limits: &FlowLimits) -> Self {
        Self { limit: limits.max_diagnostics, report: CheckReport::default() }
    }

    pub(crate) fn add(&mut self, code: DiagnosticCode, problem: impl FnOnce() -> Diagnostic) {
        if self.report.diagnostics.len() < self.limit {
            self.report.diagnostics.push(truncate_texts(problem()));
        } else {
            self.omit(code, 1);
        }
    }

    /// Counts problems that are not listed.
    pub(crate) fn omit(&mut self, code: DiagnosticCode, count: usize) {
        if count > 0 {
            let omitted = self.report.omitted.entry(code.to_string()).or_default();
            *omitted = omitted.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.report.diagnostics.is_empty()
    }

    pub(crate) fn finish(self) -> CheckReport {
        self.report
    }
}

/// A report of one problem that refuses a whole flow.
pub(crate) fn single_problem(limits: &FlowLimits, problem: Diagnostic) -> CheckReport {
    let mut builder = ReportBuilder::new(limits);
    builder.add(problem.code, || problem);
    builder.finish()
}

/// More nodes, wires or other parts than the limit allows.
pub(crate) fn too_many(parts: Sentence, limit: usize) -> Diagnostic {
    let expected = format!("at most {limit} {}", parts.text);
    let message = phrases::flow_too_many(limit, parts);
    let problem = Diagnostic::new(DiagnosticCode::FlowTooLarge, message, phrases::flow_too_many_help());
    Diagnostic { expected: Some(expected), ..problem }
}

/// Truncates the texts of a diagnostic, because a hostile flow can contain very long names.
pub(crate) fn truncate_texts(mut diagnostic: Diagnostic) -> Diagnostic {
    truncate(&mut diagnostic.message, MAX_TEXT);
    truncate(&mut diagnostic.help, MAX_TEXT);
    for text in
        [&mut diagnostic.pointer, &mut diagnostic.expected, &mut diagnostic.found].into_iter().flatten()
    {
        truncate(text, MAX_TEXT);
    }
    for phrase in [&mut diagnostic.message_phrase, &mut diagnostic.help_phrase].into_iter().flatten() {
        phrase.truncate(MAX_TEXT);
    }
    for node in [&mut diagnostic.node, &mut diagnostic.target].into_iter().flatten() {
        if node.id.as_str().len() > MAX_NAME {
            let mut id = node.id.to_string();
            truncate(&mut id, MAX_NAME);
            node.id = id.into();
        }
        truncate(&mut node.type_name, MAX_NAME);
        truncate(&mut node.name, MAX_NAME);
    }
    diagnostic
}
