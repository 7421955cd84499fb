//! The configuration file: TOML, taken apart into keys that know their lines.
//!
//! Owns the way from bytes to keys. Never knows which keys there are, and never quotes a value: it may be a secret.

use crate::files::{read_bounded, reason, shown};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Bytes of a configuration file.
pub(super) const MAX_BYTES: usize = 1024 * 1024;

/// A value as it was given, wherever that was. Has no `Debug`: it may be a secret.
#[derive(Clone)]
pub(super) enum Raw {
    Text(String),
    /// Text of the system's that is no UTF-8.
    Os(OsString),
    Integer(i64),
    Float(f64),
    Bool(bool),
    List(Vec<Raw>),
    /// What no key takes, such as a date.
    Other,
}

/// A key with its value.
pub(super) struct Entry {
    pub(super) line: usize,
    pub(super) value: Node,
}

pub(super) enum Node {
    Value(Raw),
    Table(Keys),
}

pub(super) type Keys = BTreeMap<String, Entry>;

/// A file that could be read.
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    /// What it says, by section.
    pub(super) sections: Keys,
}

impl ConfigFile {
    /// Reads a file. What is wrong with it, a sentence each, if it cannot be taken apart.
    pub(super) fn read(path: &Path) -> Result<Self, Vec<String>> {
        let wrong = |what: String| vec![format!("the configuration {} {what}", shown(path))];
        let bytes = read_bounded(path, MAX_BYTES)
            .map_err(|error| wrong(format!("cannot be read: {}", reason(&error))))?;
        if bytes.len() > MAX_BYTES {
            return Err(wrong(format!("has more than {MAX_BYTES} bytes")));
        }
        let text = String::from_utf8(bytes).map_err(|_| wrong("is no UTF-8 text".to_owned()))?;
        let lines = Lines::of(&text);
        let (table, errors) = DeTable::parse_recoverable(&text);
        if errors.is_empty() {
            return Ok(Self { path: path.to_owned(), sections: lines.keys(table.get_ref()) });
        }
        let complaint = |error: &toml::de::Error| {
            let place = error.span().map(|span| format!(" in line {}", lines.at(span.start)));
            // The library's other sentences may quote a value.
            let what = match error.message() {
                known @ "duplicate key" => known,
                _ => "it is no TOML",
            };
            format!("the configuration {} is wrong{}: {what}", shown(path), place.unwrap_or_default())
        };
        let mut complaints: Vec<String> = errors.iter().map(complaint).collect();
        complaints.dedup();
        Err(complaints)
    }
}

/// Where the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let after = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(place, _)| place + 1);
        Self(after.collect())
    }

    /// The line of a byte, from 1.
    fn at(&self, byte: usize) -> usize {
        self.0.partition_point(|start| *start <= byte) + 1
    }

    fn keys(&self, table: &DeTable<'_>) -> Keys {
        let entry = |key: &Spanned<_>, value: &Spanned<DeValue<'_>>| Entry {
            line: self.at(key.span().start),
            value: self.node(value.get_ref()),
        };
        table.iter().map(|(key, value)| (key.get_ref().to_string(), entry(key, value))).collect()
    }

    fn node(&self, value: &DeValue<'_>) -> Node {
        match value {
            DeValue::Table(table) => Node::Table(self.keys(table)),
            value => Node::Value(raw(value)),
        }
    }
}

fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or(Raw::Other, Raw::Integer)
        }
        DeValue::Float(number) => number.as_str().parse().map_or(Raw::Other, Raw::Float),
        DeValue::Boolean(is) => Raw::Bool(*is),
        DeValue::Array(items) => Raw::List(items.iter().map(|item| raw(item.get_ref())).collect()),
        DeValue::Datetime(_) | DeValue::Table(_) => Raw::Other,
    }
}
