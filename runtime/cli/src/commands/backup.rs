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
use redflow_store::{Reader, backup_archive};
use serde_json::{Map, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

pub(crate) fn backup(options: &BackupOptions, context: &AppContext) -> CommandResult {
    let dir = context.settings.data_dir().map_err(print_store_error)?;
    let reader = Reader::find(&dir).map_err(print_store_error)?;
    let archive_file = archive_file(&options.file);
    let archive_bytes = backup_archive(&dir, &archive_file).map_err(print_store_error)?;
    let report = reader.map(|reader| reader.backup(&options.file)).transpose().map_err(|error| {
        // Both or none. It is ours: a file that existed before is an error above.
        if archive_bytes.is_some() {
            let _ = std::fs::remove_file(&archive_file);
        }
        print_store_error(error)
    })?;
    if report.is_none() && archive_bytes.is_none() {
        let text = format!("No runs are stored in {} yet, so there is nothing to copy.", dir.display());
        return Err(print_store_error(StoreError::new(StoreCode::DataUnusable, text)));
    }
    if options.json {
        let file = |path: &Path| path.display().to_string();
        let mut printed = Map::new();
        if let Some(report) = report {
            printed.insert("file".to_owned(), json!(file(&options.file)));
            printed.insert("runs".to_owned(), json!(report.runs));
            printed.insert("bytes".to_owned(), json!(report.bytes));
        }
        if let Some(bytes) = archive_bytes {
            printed.insert("archive".to_owned(), json!({"file": file(&archive_file), "bytes": bytes}));
        }
        return Ok(print_json(&printed));
    }
    let mut printed = String::new();
    if let Some(report) = report {
        let runs = count(usize::try_from(report.runs).unwrap_or(usize::MAX), "run");
        let (file, size) = (display_path(&options.file), format_size(report.bytes));
        let _ = writeln!(printed, "{runs} copied into {file}: {size}");
    }
    if let Some(bytes) = archive_bytes {
        let (file, size) = (display_path(&archive_file), format_size(bytes));
        let _ = writeln!(printed, "knowledge bases copied into {file}: {size}");
    }
    Ok(print_text(&printed))
}

/// The copy of the archive: beside the copy of the runs.
fn archive_file(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".archive");
    PathBuf::from(name)
}
