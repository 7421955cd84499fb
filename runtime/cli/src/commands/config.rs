//! `redflow config show`: every key with its value and its origin. Secrets are masked.

use crate::args::ShowConfigOptions;
use crate::config::{SettingOrigin, SettingRow, Settings};
use crate::exit::Exit;
use crate::files::display_path;
use crate::terminal::{print_json, print_note, print_text};
use crate::text::printable_line;
use owo_colors::OwoColorize;
use redflow_contract::console::ConfigEntry;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The most characters of a key or a value.
const MAX_CHARS: usize = 200;
/// Longer cells do not widen their column.
const MAX_COLUMN: usize = 60;

pub(crate) fn show_config(options: &ShowConfigOptions, settings: &Settings) -> Exit {
    if options.json {
        let file = settings.file.as_ref().map(|path| path.display().to_string());
        return print_json(&json!({"file": file, "settings": settings.rows}));
    }
    if let Some(file) = &settings.file {
        print_note(&format!("the configuration is {}", display_path(file)));
    }
    print_text(&format_table(&settings.rows))
}

/// The settings as the sidecar shows them.
pub(crate) fn config_entries(settings: &Settings) -> Vec<ConfigEntry> {
    let entry = |row: &SettingRow| ConfigEntry {
        key: printable_line(&row.key, MAX_CHARS),
        value: format_value(&row.value),
        is_set: row.origin != SettingOrigin::Default,
    };
    settings.rows.iter().map(entry).collect()
}

fn format_table(rows: &[SettingRow]) -> String {
    let lines: Vec<[String; 3]> = rows
        .iter()
        .map(|row| [printable_line(&row.key, MAX_CHARS), format_value(&row.value), row.origin.to_string()])
        .collect();
    let width = |column: usize| {
        let widths = lines.iter().map(|line| line[column].chars().count());
        widths.filter(|width| *width <= MAX_COLUMN).max().unwrap_or(0)
    };
    let (keys, values) = (width(0), width(1));
    let mut out = String::new();
    for [key, value, origin] in &lines {
        let _ = writeln!(out, "{key:<keys$}  {value:<values$}  {}", origin.dimmed());
    }
    out
}

fn format_value(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => printable_line(text, MAX_CHARS),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(format_value).collect();
            if items.is_empty() { "none".to_owned() } else { items.join(", ") }
        }
        other => printable_line(&other.to_string(), MAX_CHARS),
    }
}
