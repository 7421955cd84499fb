//! `redflow tools check`: checks a manifest without a sidecar.

use crate::args::CheckManifestOptions;
use crate::diagnostics::format_diagnostic;
use crate::exit::Exit;
use crate::files::read_file;
use crate::terminal::{print_json, print_text};
use crate::text::{count, describe_io_error, printable_line};
use owo_colors::OwoColorize;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::manifest::Manifest;
use redflow_store::{MAX_MANIFEST_BYTES, ManifestFormat, parse_manifest};
use serde_json::Value;
use std::path::Path;

pub(crate) fn check_manifest(options: &CheckManifestOptions) -> Exit {
    let path = &options.manifest;
    let (checked, refused) = match read(path) {
        Ok(value) => (redflow_flow::check_manifest(&value), Exit::Failure),
        Err(problems) => (Err(problems), Exit::Unusable),
    };
    let exit = if checked.is_ok() { Exit::Success } else { refused };
    let (manifest, problems) = match checked {
        Ok(manifest) => (Some(manifest), Vec::new()),
        Err(problems) => (None, problems),
    };
    let file = Some(path.display().to_string());
    let diagnostics =
        problems.into_iter().map(|problem| Diagnostic { file: file.clone(), ..problem }).collect();
    let report = CheckReport { ok: manifest.is_some(), diagnostics, ..CheckReport::default() };
    let printed = if options.json {
        print_json(&report)
    } else {
        print_text(&format_report(path, &report, manifest.as_ref()))
    };
    printed.max(exit)
}

fn read(path: &Path) -> Result<Value, Vec<Diagnostic>> {
    let text = read_file(path, MAX_MANIFEST_BYTES).map_err(|error| {
        let message = format!("the manifest cannot be read: {}", describe_io_error(&error));
        let help = "Check the path and the file's permissions.".to_owned();
        vec![Diagnostic::new(DiagnosticCode::ManifestInvalid, message, help)]
    })?;
    parse_manifest(&text, ManifestFormat::of(path))
}

fn format_report(path: &Path, report: &CheckReport, manifest: Option<&Manifest>) -> String {
    let mut out = String::new();
    for diagnostic in &report.diagnostics {
        out += &format_diagnostic(diagnostic);
        out.push('\n');
    }
    let name = printable_line(&path.display().to_string(), 200);
    let Some(manifest) = manifest else {
        let problems = count(report.diagnostics.len(), "error");
        return out + &format!("{}: {problems} in {name}\n", "refused".red().bold());
    };
    let operations = manifest.nodes.values().map(std::collections::BTreeMap::len).sum();
    let parts = [
        count(manifest.tools.len(), "tool"),
        count(operations, "operation"),
        count(manifest.roles.len(), "role"),
        count(manifest.policy.len(), "rule"),
    ];
    out + &format!("{}: {} in {name}\n", "ok".green().bold(), parts.join(", "))
}
