//! `redflow runs show RUN --iteration N`: prints what the model was asked and what it answered in one iteration.

use crate::args::ShowRunOptions;
use crate::exit::{CommandResult, Exit};
use crate::run_source::{RunSource, is_damaged_run, print_run_error};
use crate::terminal::{fail, print_json, print_text};
use crate::text::{printable, printable_line};
use crate::timeline::format_tokens;
use crate::times::format_duration;
use owo_colors::OwoColorize as _;
use redflow_contract::console::{CutText, IterationDetail, TEXT_BYTES};
use redflow_contract::id::RunId;
use redflow_strategies::iteration_detail;
use std::fmt::Write as _;

pub(super) fn show(options: &ShowRunOptions, number: u32, source: &dyn RunSource) -> CommandResult {
    let run = RunId::from(options.run.as_str());
    let journal = source.journal(&run).map_err(|error| {
        let is_damaged = is_damaged_run(&run, &error);
        let exit = print_run_error(source.hints(), &run, error);
        if is_damaged { Exit::Failure } else { exit }
    })?;
    let detail = iteration_detail(&journal, number, TEXT_BYTES).ok_or_else(|| {
        fail(&format!("the run has no iteration {number}; `redflow runs show RUN` lists its iterations"))
    })?;
    Ok(if options.json { print_json(&detail) } else { print_text(&format_iteration(&detail)) })
}

fn format_iteration(detail: &IterationDetail) -> String {
    let mut rows = vec![("iteration", detail.iteration.to_string())];
    rows.extend(detail.model.as_ref().map(|model| ("model", printable_line(model, 200))));
    rows.extend(detail.request_id.as_ref().map(|id| ("request", printable_line(id, 200))));
    rows.extend(detail.duration_ms.map(|ms| ("took", format_duration(ms))));
    rows.extend(detail.usage.as_ref().map(|usage| ("used", format_tokens(usage))));
    let failed = detail.fell_over.iter();
    rows.extend(
        failed.map(|failed| ("failed", format!("{}: {}", printable_line(&failed.model, 200), failed.code))),
    );
    let refused = detail.refused.iter();
    rows.extend(refused.map(|field| ("refused", printable_line(field, 200))));
    let mut out = String::new();
    for (name, text) in rows {
        let _ = writeln!(out, "{name:<9} {text}");
    }
    add_text(&mut out, "asked", &detail.prompt);
    if let Some(answer) = &detail.answer {
        add_text(&mut out, "answer", answer);
    }
    for call in &detail.calls {
        let tool = printable_line(&call.tool, 100);
        add_text(&mut out, &format!("input of {tool}"), &call.input);
        if let Some(result) = &call.result {
            add_text(&mut out, &format!("result of {tool}"), result);
        }
    }
    if let Some(output) = &detail.output {
        add_text(&mut out, "output", output);
    }
    if let Some(raw) = &detail.raw {
        add_text(&mut out, "response as it was sent", raw);
    }
    out
}

fn add_text(out: &mut String, name: &str, text: &CutText) {
    let _ = write!(out, "\n{}\n{}\n", name.bold(), printable(&text.text).trim_end());
    if let Some(bytes) = text.bytes {
        let _ = writeln!(out, "… cut: it has {bytes} bytes");
    }
}
