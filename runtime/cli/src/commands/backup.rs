//! `redflow backup`.

use crate::args::BackupOptions;
use crate::context::AppContext;
use crate::errors::print_store_error;
use crate::exit::CommandResult;
use crate::files::display_path;
use crate::terminal::{print_json, print_text};
use crate::text::{count, format_size};
use redflow_contract::code::StoreCode;
use redflow_ports::StoreError;
use redflow_store::Reader;
use serde_json::json;

pub(crate) fn backup(options: &BackupOptions, context: &AppContext) -> CommandResult {
    let dir = context.settings.data_dir().map_err(print_store_error)?;
    let reader = Reader::find(&dir).map_err(print_store_error)?.ok_or_else(|| {
        let text = format!("No runs are stored in {} yet, so there is nothing to copy.", dir.display());
        print_store_error(StoreError::new(StoreCode::DataUnusable, text))
    })?;
    let report = reader.backup(&options.file).map_err(print_store_error)?;
    if options.json {
        let file = options.file.display().to_string();
        return Ok(print_json(&json!({"file": file, "runs": report.runs, "bytes": report.bytes})));
    }
    let runs = count(usize::try_from(report.runs).unwrap_or(usize::MAX), "run");
    let (file, size) = (display_path(&options.file), format_size(report.bytes));
    Ok(print_text(&format!("{runs} copied into {file}: {size}\n")))
}
