//! `redflow check`.

use crate::args::CheckOptions;
use crate::config::Settings;
use crate::files::read_flow;
use crate::terminal::{count, data, json, printable_line, severity_style};
use crate::{Exit, remote, wiring};
use owo_colors::OwoColorize;
use redflow_contract::code::{DiagnosticCode, Severity};
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::flow::Profile;
use redflow_contract::id::NodeSummary;
use redflow_contract::limits::FlowLimits;
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub(crate) fn check(options: &CheckOptions, settings: &Settings) -> Exit {
    // A flow is always named here, so only an address that is named here too counts.
    let sidecar = match options.sidecar.sidecar(settings, true) {
        Ok(sidecar) => sidecar,
        Err(exit) => return exit,
    };
    let mut whole = CheckReport { ok: true, ..CheckReport::default() };
    for path in &options.flows {
        let report = match read_flow(path, FlowLimits::default().max_bytes) {
            Ok(bytes) => match &sidecar {
                None => report_of(&bytes),
                Some(sidecar) => match remote::check(&bytes, options.profile.map(Profile::from), sidecar) {
                    Ok(report) => report,
                    Err(exit) => return exit,
                },
            },
            Err(problem) => CheckReport { diagnostics: vec![*problem], ..CheckReport::default() },
        };
        whole.ok &= report.ok;
        for mut diagnostic in report.diagnostics {
            diagnostic.file = Some(path.display().to_string());
            whole.diagnostics.push(diagnostic);
        }
        for (code, number) in report.omitted {
            *whole.omitted.entry(code).or_default() += number;
        }
    }
    if options.deny_warnings && whole.diagnostics.iter().any(|d| d.severity == Severity::Warning) {
        whole.ok = false;
    }
    let written = if options.json { json(&whole) } else { data(&render(&whole, options.flows.len())) };
    written.max(exit_of(&whole))
}

/// What this build says of a flow.
pub(crate) fn report_of(bytes: &[u8]) -> CheckReport {
    match wiring::check(bytes, wiring::profile(), &wiring::adapters()) {
        Ok(checked) => checked.report,
        Err(refused) => refused,
    }
}

/// 2 if a flow could not even be read as one, 1 if it has errors.
fn exit_of(report: &CheckReport) -> Exit {
    if report.diagnostics.iter().any(|diagnostic| is_unreadable(diagnostic.code)) {
        Exit::Unusable
    } else if report.ok {
        Exit::Well
    } else {
        Exit::Fault
    }
}

fn is_unreadable(code: DiagnosticCode) -> bool {
    matches!(
        code,
        DiagnosticCode::FlowUnreadable
            | DiagnosticCode::FlowNotJson
            | DiagnosticCode::FlowTooLarge
            | DiagnosticCode::FlowTooDeep
            | DiagnosticCode::FlowShapeUnknown
    )
}

/// The report as a good compiler writes it.
fn render(report: &CheckReport, flows: usize) -> String {
    let mut out = String::new();
    let mut notes: BTreeMap<(String, String), usize> = BTreeMap::new();
    for diagnostic in &report.diagnostics {
        // One line per type: a large flow has hundreds of nodes that only Node-RED runs.
        if diagnostic.code == DiagnosticCode::NeedsNodeRed {
            let file = diagnostic.file.clone().unwrap_or_default();
            let kind = diagnostic.node.as_ref().map(|node| node.type_name.clone()).unwrap_or_default();
            *notes.entry((file, kind)).or_default() += 1;
        } else {
            out += &render_one(diagnostic);
            out.push('\n');
        }
    }
    for ((file, kind), number) in notes {
        let kind = printable_line(&kind, 60);
        let _ = writeln!(
            out,
            "{}: {} of type `{kind}` in {} can run beside Node-RED only",
            head(Severity::Info, "NEEDS_NODE_RED"),
            count(number, "node"),
            printable_line(&file, 200),
        );
    }
    for (code, number) in &report.omitted {
        let _ = writeln!(out, "… and {number} more of {code}");
    }
    out + &summary(report, flows)
}

fn head(severity: Severity, code: &str) -> String {
    format!("{}", format!("{}[{code}]", severity.as_str()).style(severity_style(severity)))
}

/// One diagnostic.
pub(crate) fn render_one(diagnostic: &Diagnostic) -> String {
    let mut out = String::new();
    let message = printable_line(&diagnostic.message, 400);
    let _ = writeln!(out, "{}: {}", head(diagnostic.severity, diagnostic.code.as_str()), message.bold());
    let mut place = Vec::new();
    place.extend(diagnostic.file.as_ref().map(|file| printable_line(file, 200)));
    place.extend(diagnostic.node.as_ref().map(name_of));
    place.extend(diagnostic.port.map(|port| format!("port {port}")));
    let mut place = place.join(", ");
    if let Some(target) = &diagnostic.target {
        let _ = write!(place, " → {}", name_of(target));
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

fn name_of(node: &NodeSummary) -> String {
    let (id, kind) = (printable_line(node.id.as_str(), 80), printable_line(&node.type_name, 60));
    if node.name.is_empty() || node.name == node.id.as_str() {
        format!("{kind} {id}")
    } else {
        format!("{kind} `{}` ({id})", printable_line(&node.name, 80))
    }
}

fn summary(report: &CheckReport, flows: usize) -> String {
    let mut numbers = [0_usize; 3];
    for diagnostic in &report.diagnostics {
        numbers[diagnostic.severity as usize] += 1;
    }
    for (code, number) in &report.omitted {
        let severity = DiagnosticCode::parse(code).map_or(Severity::Error, DiagnosticCode::class);
        numbers[severity as usize] += usize::try_from(*number).unwrap_or(usize::MAX);
    }
    let [errors, warnings, notes] = numbers;
    let counts = [count(errors, "error"), count(warnings, "warning"), count(notes, "note")].join(", ");
    let flows = count(flows, "flow");
    let verdict =
        if report.ok { format!("{}", "ok".green().bold()) } else { format!("{}", "refused".red().bold()) };
    format!("{verdict}: {counts} in {flows}\n")
}
