//! Parses the configuration file (TOML) into keys with their line numbers.
//!
//! Does not know which keys exist. Error messages never quote a value, because it may be a secret.

use crate::files::{display_path, read_bounded};
use crate::text::describe_io_error;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The largest configuration file in bytes.
pub(super) const MAX_BYTES: usize = 1024 * 1024;

/// A value as the user wrote it. It has no `Debug`, because it may be a secret.
#[derive(Clone)]
pub(super) enum RawValue {
    Text(String),
    /// Text of the environment or the command line that is not UTF-8.
    Os(OsString),
    Integer(i64),
    Float(f64),
    Bool(bool),
    List(Vec<RawValue>),
    /// A type that no key accepts, such as a date.
    Other,
}

/// A value with the line of its key.
pub(super) struct Entry {
    pub(super) line: usize,
    pub(super) value: Node,
}

pub(super) enum Node {
    Value(RawValue),
    Table(Keys),
}

pub(super) type Keys = BTreeMap<String, Entry>;

pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    pub(super) sections: Keys,
}

impl ConfigFile {
    /// Reads a file. The error has one sentence for each problem.
    pub(super) fn read(path: &Path) -> Result<Self, Vec<String>> {
        let problem = |what: String| vec![format!("the configuration {} {what}", display_path(path))];
        let bytes = read_bounded(path, MAX_BYTES)
            .map_err(|error| problem(format!("cannot be read: {}", describe_io_error(&error))))?;
        if bytes.len() > MAX_BYTES {
            return Err(problem(format!("has more than {MAX_BYTES} bytes")));
        }
        let text = String::from_utf8(bytes).map_err(|_| problem("is not UTF-8 text".to_owned()))?;
        let lines = LineIndex::new(&text);
        let (table, errors) = DeTable::parse_recoverable(&text);
        if errors.is_empty() {
            return Ok(Self { path: path.to_owned(), sections: lines.keys(table.get_ref()) });
        }
        let problem = |error: &toml::de::Error| {
            let place = error.span().map(|span| format!(" in line {}", lines.line_of(span.start)));
            // Other messages of the library may quote a value.
            let what = match error.message() {
                known @ "duplicate key" => known,
                _ => "it is not TOML",
            };
            format!("the configuration {} is wrong{}: {what}", display_path(path), place.unwrap_or_default())
        };
        let mut problems: Vec<String> = errors.iter().map(problem).collect();
        problems.dedup();
        Err(problems)
    }
}

/// The offset of each line's first byte.
struct LineIndex(Vec<usize>);

impl LineIndex {
    fn new(text: &str) -> Self {
        let feeds = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(feeds.map(|(offset, _)| offset + 1).collect())
    }

    /// The line of a byte, counted from 1.
    fn line_of(&self, byte: usize) -> usize {
        self.0.partition_point(|start| *start <= byte) + 1
    }

    fn keys(&self, table: &DeTable<'_>) -> Keys {
        let entry = |key: &Spanned<_>, value: &Spanned<DeValue<'_>>| Entry {
            line: self.line_of(key.span().start),
            value: self.node(value.get_ref()),
        };
        table.iter().map(|(key, value)| (key.get_ref().to_string(), entry(key, value))).collect()
    }

    fn node(&self, value: &DeValue<'_>) -> Node {
        match value {
            DeValue::Table(table) => Node::Table(self.keys(table)),
            value => Node::Value(raw_value(value)),
        }
    }
}

fn raw_value(value: &DeValue<'_>) -> RawValue {
    match value {
        DeValue::String(text) => RawValue::Text(text.to_string()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or(RawValue::Other, RawValue::Integer)
        }
        DeValue::Float(number) => number.as_str().parse().map_or(RawValue::Other, RawValue::Float),
        DeValue::Boolean(value) => RawValue::Bool(*value),
        DeValue::Array(items) => RawValue::List(items.iter().map(|item| raw_value(item.get_ref())).collect()),
        DeValue::Datetime(_) | DeValue::Table(_) => RawValue::Other,
    }
}
