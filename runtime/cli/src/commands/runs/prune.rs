//! `redflow runs prune`.

use crate::args::PruneOptions;
use crate::config::Settings;
use crate::context::clock;
use crate::errors::print_store_error;
use crate::exit::CommandResult;
use crate::terminal::{print_json, print_text};
use crate::text::{count, format_size};
use crate::times::to_millis;
use redflow_store::{PruneReport, PruneRequest, Reader};
use serde_json::json;

pub(super) fn prune(options: &PruneOptions, settings: &Settings) -> CommandResult {
    let dir = settings.data_dir().map_err(print_store_error)?;
    let before = options.older_than.map(|age| clock().now().saturating_sub(to_millis(age)));
    let which = PruneRequest {
        older_than: before,
        keep: options.keep,
        undelivered: options.undelivered,
        damaged: options.damaged,
        dry_run: options.dry_run,
    };
    // Nothing is created in a directory without runs.
    let report = match Reader::find(&dir).map_err(print_store_error)? {
        Some(_) => redflow_store::prune(&dir, which).map_err(print_store_error)?,
        None => PruneReport::default(),
    };
    let PruneReport { runs, damaged, bytes_before, bytes_after, .. } = report;
    if options.json {
        let dry = options.dry_run;
        return Ok(print_json(&json!({
            "runs": runs, "damaged": damaged, "bytesBefore": bytes_before, "bytesAfter": bytes_after, "dryRun": dry,
        })));
    }
    let mut what = count(usize::try_from(runs).unwrap_or(usize::MAX), "run");
    if options.damaged {
        what += &format!(" ({damaged} damaged)");
    }
    Ok(print_text(&if options.dry_run {
        format!("{what} would be removed; nothing was\n")
    } else {
        let (freed, left) = (format_size(bytes_before.saturating_sub(bytes_after)), format_size(bytes_after));
        format!("{what} removed; {freed} freed, {left} left\n")
    }))
}
