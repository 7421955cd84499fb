//! Formats and prints diagnostics of flows.

use crate::terminal::{bold_red, print_note};
use crate::text::printable_line;
use owo_colors::{OwoColorize, Style};
use redflow_contract::code::Severity;
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::id::NodeSummary;
use std::fmt::Write as _;
use std::path::Path;

/// A report that holds only the reason why a flow file cannot be read.
pub(crate) fn unreadable(problem: Box<Diagnostic>) -> CheckReport {
    CheckReport { diagnostics: vec![*problem], ..CheckReport::default() }
}

/// Prints the diagnostics of a flow file to stderr.
pub(crate) fn print_report(file: Option<&Path>, report: CheckReport) {
    print_diagnostics(file, report.diagnostics);
    for (code, number) in report.omitted {
        print_note(&format!("… and {number} more of {code}"));
    }
}

/// Prints diagnostics to stderr, each with the name of the file.
pub(crate) fn print_diagnostics(file: Option<&Path>, diagnostics: Vec<Diagnostic>) {
    let file = file.map(|path| path.display().to_string());
    for diagnostic in diagnostics {
        print_note(&format_diagnostic(&Diagnostic { file: file.clone(), ..diagnostic }));
    }
}

/// The severity and the code of a diagnostic, in colour.
pub(crate) fn format_code(severity: Severity, code: &str) -> String {
    let style = match severity {
        Severity::Error => bold_red(),
        Severity::Warning => Style::new().yellow().bold(),
        Severity::Info => Style::new().cyan().bold(),
    };
    format!("{}", format!("{}[{code}]", severity.as_str()).style(style))
}

/// One diagnostic, in the style of a compiler.
pub(crate) fn format_diagnostic(diagnostic: &Diagnostic) -> String {
    let mut out = String::new();
    let message = printable_line(&diagnostic.message, 400);
    let code = format_code(diagnostic.severity, diagnostic.code.as_str());
    let _ = writeln!(out, "{code}: {}", message.bold());
    let mut place = Vec::new();
    place.extend(diagnostic.file.as_ref().map(|file| printable_line(file, 200)));
    place.extend(diagnostic.node.as_ref().map(node_label));
    place.extend(diagnostic.port.map(|port| format!("port {port}")));
    let mut place = place.join(", ");
    if let Some(target) = &diagnostic.target {
        let _ = write!(place, " → {}", node_label(target));
    }
    if let Some(pointer) = diagnostic.pointer.as_ref().filter(|pointer| !pointer.is_empty()) {
        let _ = write!(place, " at {}", printable_line(pointer, 120));
    }
    if !place.is_empty() {
        let _ = writeln!(out, "  {} {place}", "-->".blue().bold());
    }
    let ends = [("expected", &diagnostic.expected), ("found", &diagnostic.found)];
    let ends = ends.into_iter().filter_map(|(word, text)| Some((word, text.as_ref()?)));
    let ends: Vec<String> =
        ends.map(|(word, text)| format!("{word} {}", printable_line(text, 120))).collect();
    if !ends.is_empty() {
        let _ = writeln!(out, "   {} {}", "=".blue().bold(), ends.join(", "));
    }
    let _ = writeln!(out, "   {} {}", "= help:".blue().bold(), printable_line(&diagnostic.help, 400));
    out
}

/// A node by its type, its name if that says more than the id, and its id.
pub(crate) fn node_label(node: &NodeSummary) -> String {
    let (id, kind) = (printable_line(node.id.as_str(), 80), printable_line(&node.type_name, 60));
    if node.name.is_empty() || node.name == node.id.as_str() {
        format!("{kind} {id}")
    } else {
        format!("{kind} `{}` ({id})", printable_line(&node.name, 80))
    }
}
