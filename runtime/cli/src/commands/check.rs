//! `redflow check`.

use crate::args::CheckOptions;
use crate::context::AppContext;
use crate::diagnostics::{format_code, format_diagnostic, unreadable};
use crate::errors::print_api_error;
use crate::exit::{CommandResult, Exit};
use crate::files::read_flow;
use crate::session::new_runtime;
use crate::sidecar::{LocalTarget, SidecarClient, select_sidecar};
use crate::terminal::{print_json, print_text};
use crate::text::{count, printable_line};
use owo_colors::OwoColorize;
use redflow_contract::api::CheckRequest;
use redflow_contract::code::{DiagnosticCode, Severity};
use redflow_contract::diagnostic::CheckReport;
use redflow_contract::flow::Profile;
use redflow_contract::json::{JsonLimits, parse_exact};
use redflow_contract::limits::FlowLimits;
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub(crate) fn check(options: &CheckOptions, context: &AppContext) -> CommandResult {
    // The command always names a flow, so only the flag selects a sidecar.
    let sidecar = select_sidecar(&options.sidecar, &context.settings, LocalTarget::Named)?;
    let mut all = CheckReport { ok: true, ..CheckReport::default() };
    for path in &options.flows {
        let report = match (read_flow(path, FlowLimits::default().max_bytes), &sidecar) {
            (Ok(bytes), None) => context.check_report(&bytes),
            (Ok(bytes), Some(sidecar)) => {
                check_remotely(&bytes, options.profile.map(Profile::from), sidecar, context)?
            }
            (Err(problem), _) => unreadable(problem),
        };
        all.ok &= report.ok;
        for mut diagnostic in report.diagnostics {
            diagnostic.file = Some(path.display().to_string());
            all.diagnostics.push(diagnostic);
        }
        for (code, number) in report.omitted {
            *all.omitted.entry(code).or_default() += number;
        }
    }
    if options.deny_warnings && all.diagnostics.iter().any(|d| d.severity == Severity::Warning) {
        all.ok = false;
    }
    let printed =
        if options.json { print_json(&all) } else { print_text(&format_report(&all, options.flows.len())) };
    Ok(printed.max(exit_of(&all)))
}

/// Lets the sidecar check a flow. A file that is not JSON cannot be sent to it, so this build reports the
/// problem.
fn check_remotely(
    bytes: &[u8],
    profile: Option<Profile>,
    sidecar: &SidecarClient,
    context: &AppContext,
) -> Result<CheckReport, Exit> {
    let FlowLimits { max_bytes, max_depth, .. } = FlowLimits::default();
    let Ok(flows) = parse_exact(bytes, JsonLimits { max_bytes, max_depth }) else {
        return Ok(context.check_report(bytes));
    };
    let request = CheckRequest { flows, profile, graph: false, tab: None };
    let answer = new_runtime()?.block_on(sidecar.post(&["api", "flows", "check"], &request));
    answer.map_err(print_api_error)
}

/// A file that is not a flow is unusable; a flow with errors is a failure.
fn exit_of(report: &CheckReport) -> Exit {
    if report.diagnostics.iter().any(|diagnostic| is_unreadable(diagnostic.code)) {
        Exit::Unusable
    } else if report.ok {
        Exit::Success
    } else {
        Exit::Failure
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

fn format_report(report: &CheckReport, flows: usize) -> String {
    let mut out = String::new();
    let mut notes: BTreeMap<(String, String), usize> = BTreeMap::new();
    for diagnostic in &report.diagnostics {
        // A large flow has hundreds of nodes that only Node-RED runs, so each type gets one line.
        if diagnostic.code == DiagnosticCode::NeedsNodeRed {
            let file = diagnostic.file.clone().unwrap_or_default();
            let kind = diagnostic.node.as_ref().map(|node| node.type_name.clone()).unwrap_or_default();
            *notes.entry((file, kind)).or_default() += 1;
        } else {
            out += &format_diagnostic(diagnostic);
            out.push('\n');
        }
    }
    for ((file, kind), number) in notes {
        let kind = printable_line(&kind, 60);
        let _ = writeln!(
            out,
            "{}: only Node-RED can run {} of type `{kind}` in {}",
            format_code(Severity::Info, "NEEDS_NODE_RED"),
            count(number, "node"),
            printable_line(&file, 200),
        );
    }
    for (code, number) in &report.omitted {
        let _ = writeln!(out, "… and {number} more of {code}");
    }
    out + &format_summary(report, flows)
}

fn format_summary(report: &CheckReport, flows: usize) -> String {
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
