//! `redflow config show`: every key, its value, and where that comes from. Secrets are not shown.

use super::{Row, Settings};
use crate::Exit;
use crate::files::shown;
use crate::terminal::{data, json, printable_line, talk};
use owo_colors::OwoColorize;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Characters of a value that are shown.
const SHOWN: usize = 200;
/// Columns further than this are not lined up.
const WIDE: usize = 60;

pub(crate) fn show(settings: &Settings, as_json: bool) -> Exit {
    if as_json {
        let file = settings.file.as_ref().map(|path| path.display().to_string());
        return json(&json!({"file": file, "settings": settings.rows}));
    }
    if let Some(file) = &settings.file {
        talk(&format!("the configuration is {}", shown(file)));
    }
    data(&table(&settings.rows))
}

fn table(rows: &[Row]) -> String {
    let lines: Vec<[String; 3]> = rows
        .iter()
        .map(|row| [printable_line(&row.key, SHOWN), text(&row.value), row.origin.to_string()])
        .collect();
    let width = |column: usize| {
        lines.iter().map(|line| line[column].chars().count()).filter(|wide| *wide <= WIDE).max().unwrap_or(0)
    };
    let (keys, values) = (width(0), width(1));
    let mut out = String::new();
    for [key, value, origin] in &lines {
        let _ = writeln!(out, "{key:<keys$}  {value:<values$}  {}", origin.dimmed());
    }
    out
}

/// A value on one line.
fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => printable_line(text, SHOWN),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(text).collect();
            if items.is_empty() { "none".to_owned() } else { items.join(", ") }
        }
        other => printable_line(&other.to_string(), SHOWN),
    }
}
