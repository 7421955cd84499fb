//! `redflow runs recount`.

use crate::args::RecountOptions;
use crate::config::Settings;
use crate::errors::print_store_error;
use crate::exit::{CommandResult, Exit};
use crate::signals::{RunLifetime, StopSignals, listen};
use crate::terminal::{fail, print_json, print_note, print_text};
use crate::text::count;
use redflow_store::{Reader, RecountReport};
use serde_json::json;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How often the progress is printed.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

pub(super) fn recount(options: &RecountOptions, settings: &Settings) -> CommandResult {
    let dir = settings.data_dir().map_err(print_store_error)?;
    // Nothing is created in a directory without runs.
    let report = match Reader::find(&dir).map_err(print_store_error)? {
        Some(_) => {
            let signals = StopSignals::default();
            listen(signals.clone(), RunLifetime::Ephemeral)
                .map_err(|error| fail(&format!("cannot listen for signals: {error}")))?;
            let mut printed_at = Instant::now();
            let mut progress = |done: usize, all: usize| {
                if signals.cancel.is_cancelled() {
                    return ControlFlow::Break(());
                }
                if printed_at.elapsed() >= PROGRESS_INTERVAL {
                    printed_at = Instant::now();
                    print_note(&format!("{done} of {}", count(all, "run")));
                }
                ControlFlow::Continue(())
            };
            redflow_store::recount(&dir, &mut redflow_strategies::run_usage, &mut progress)
                .map_err(print_store_error)?
        }
        None => Some(RecountReport::default()),
    };
    let Some(RecountReport { runs, unreadable, days, kept_days }) = report else {
        print_note("stopped; the sums are as before");
        return Ok(Exit::Failure);
    };
    if options.json {
        return Ok(print_json(&json!({
            "runs": runs, "unreadable": unreadable, "days": days, "keptDays": kept_days,
        })));
    }
    let number = |number: u64, what: &str| count(usize::try_from(number).unwrap_or(usize::MAX), what);
    let mut text = format!("{} counted; the sums of {} are new\n", number(runs, "run"), number(days, "day"));
    if unreadable > 0 {
        text += &format!("{} not counted: the journal cannot be replayed\n", number(unreadable, "run"));
    }
    if kept_days > 0 {
        let (verb, whose) = if kept_days == 1 { ("stays", "its") } else { ("stay", "their") };
        let days = number(kept_days, "day");
        text += &format!("{days} {verb} as before, because some of {whose} runs were removed\n");
    }
    Ok(print_text(&text))
}
