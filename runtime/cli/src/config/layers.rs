//! The layers of the configuration: a flag, else an environment variable, else the file, else the default.
//!
//! Owns the precedence, the origin of each value, and the list of all problems. A layer is checked even where
//! a higher layer overrides it, so that a mistake shows at once and not when the other layer goes away.

use super::file::{ConfigFile, Entry, Keys, Node, RawValue};
use super::values::DisplayValue;
use crate::files::display_path;
use crate::text::printable_line;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub(crate) enum SettingOrigin {
    Default,
    /// The value of the key `by` sets it.
    Implied {
        by: &'static str,
    },
    File {
        #[serde(serialize_with = "as_text")]
        file: Arc<Path>,
        line: usize,
    },
    Environment {
        name: &'static str,
    },
    Flag {
        name: &'static str,
    },
}

fn as_text<S: serde::Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&path.display().to_string())
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Implied { by } => write!(f, "implied by {by}"),
            Self::File { file, line } => write!(f, "{}, line {line}", display_path(file)),
            Self::Environment { name } | Self::Flag { name } => f.write_str(name),
        }
    }
}

impl SettingOrigin {
    /// The beginning of an error message about this value.
    fn error_prefix(&self) -> String {
        match self {
            Self::Default => "the default is wrong".to_owned(),
            Self::Implied { by } => format!("what {by} implies is wrong"),
            Self::File { file, line } => {
                format!("the configuration {} is wrong in line {line}", display_path(file))
            }
            Self::Environment { name } => format!("the variable {name} is wrong"),
            Self::Flag { name } => format!("the flag {name} is wrong"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) origin: SettingOrigin,
}

/// A setting for `redflow config show`. Secrets are masked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SettingRow {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) origin: SettingOrigin,
}

/// A table whose name the user chooses: its name, its origin, and its values.
pub(super) type Table = (String, SettingOrigin, BTreeMap<&'static str, (RawValue, SettingOrigin)>);

/// Gives the value of an environment variable.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Reads settings from all layers and collects the problems.
pub(super) struct Layers<'a> {
    env: Environment<'a>,
    path: Option<Arc<Path>>,
    /// The keys of the file that are not read yet.
    unread: Keys,
    /// The keys that exist, by section.
    known: BTreeMap<&'static str, Vec<&'static str>>,
    pub(super) rows: Vec<SettingRow>,
    pub(super) problems: Vec<String>,
}

impl<'a> Layers<'a> {
    pub(super) fn new(env: Environment<'a>, file: Option<ConfigFile>) -> Self {
        let (path, unread) = file.map(|file| (Arc::from(file.path), file.sections)).unzip();
        let unread = unread.unwrap_or_default();
        Self { env, path, unread, known: BTreeMap::new(), rows: Vec::new(), problems: Vec::new() }
    }

    /// Starts to read a key. A key with an empty section is never in the file.
    pub(super) fn key(&mut self, section: &'static str, name: &'static str) -> Key<'_, 'a> {
        Key { layers: self, section, name, variable: None, flag: None, implied: None }
    }

    /// The value of an environment variable. None if it is empty.
    pub(super) fn variable(&self, name: &str) -> Option<OsString> {
        (self.env)(name).filter(|value| !value.to_string_lossy().trim().is_empty())
    }

    pub(super) fn add_row(&mut self, key: String, value: Value, origin: SettingOrigin) {
        self.rows.push(SettingRow { key, value, origin });
    }

    pub(super) fn add_problem(&mut self, origin: &SettingOrigin, why: &str) {
        self.problems.push(format!("{}: {why}", origin.error_prefix()));
    }

    fn origin_in_file(&self, line: usize) -> SettingOrigin {
        self.path.clone().map_or(SettingOrigin::Default, |file| SettingOrigin::File { file, line })
    }

    /// Takes the value of a key out of the file.
    fn take_from_file(&mut self, section: &'static str, name: &'static str) -> Option<(Node, SettingOrigin)> {
        self.known.entry(section).or_default().push(name);
        let Some(Entry { value: Node::Table(keys), .. }) = self.unread.get_mut(section) else { return None };
        let Entry { line, value } = keys.remove(name)?;
        Some((value, self.origin_in_file(line)))
    }

    /// Takes all tables of a section whose keys are names that the user chooses.
    pub(super) fn take_tables(&mut self, section: &'static str, keys: &[&'static str]) -> Vec<Table> {
        self.known.entry(section).or_default();
        let Some(Entry { value: Node::Table(_), .. }) = self.unread.get(section) else { return Vec::new() };
        let Some(Entry { value: Node::Table(tables), .. }) = self.unread.remove(section) else {
            return Vec::new();
        };
        let mut taken = Vec::new();
        for (name, Entry { line, value }) in tables {
            let origin = self.origin_in_file(line);
            let table = format!("{section}.{}", quote_key(&name));
            let Node::Table(mut entries) = value else {
                self.add_problem(&origin, &format!("`{table}` must be a section"));
                continue;
            };
            let mut values = BTreeMap::new();
            for key in keys {
                let Some(Entry { line, value }) = entries.remove(*key) else { continue };
                let raw = if let Node::Value(raw) = value { raw } else { RawValue::Other };
                values.insert(*key, (raw, self.origin_in_file(line)));
            }
            for (key, entry) in entries {
                self.add_unknown_key(&key, entry.line, keys);
            }
            taken.push((name, origin, values));
        }
        taken
    }

    fn add_unknown_key(&mut self, key: &str, line: usize, known: &[&str]) {
        let known: Vec<String> = known.iter().map(|key| format!("`{key}`")).collect();
        let text =
            format!("unknown field `{}`, expected one of {}", printable_line(key, 60), known.join(", "));
        self.add_problem(&self.origin_in_file(line), &text);
    }

    /// Reports the keys that no setting has read, then gives all settings or all problems.
    pub(super) fn finish(mut self) -> Result<Vec<SettingRow>, Vec<String>> {
        let known = std::mem::take(&mut self.known);
        let sections: Vec<&str> = known.keys().copied().filter(|section| !section.is_empty()).collect();
        for (section, Entry { line, value }) in std::mem::take(&mut self.unread) {
            match (known.get(section.as_str()), value) {
                (None, _) => self.add_unknown_key(&section, line, &sections),
                (Some(_), Node::Value(_)) => {
                    self.add_problem(
                        &self.origin_in_file(line),
                        &format!("`{section}` must be a section: [{section}]"),
                    );
                }
                (Some(keys), Node::Table(unread)) => {
                    for (key, entry) in unread {
                        self.add_unknown_key(&key, entry.line, keys);
                    }
                }
            }
        }
        if self.problems.is_empty() { Ok(self.rows) } else { Err(self.problems) }
    }
}

/// A name as TOML writes it: quoted if it needs quotes.
pub(super) fn quote_key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !name.is_empty() && name.chars().all(bare) {
        true => name.to_owned(),
        false => format!("\"{}\"", printable_line(name, 100)),
    }
}

/// A key, and the layers that can set it.
pub(super) struct Key<'l, 'a> {
    layers: &'l mut Layers<'a>,
    section: &'static str,
    name: &'static str,
    variable: Option<&'static str>,
    flag: Option<(&'static str, OsString)>,
    implied: Option<(&'static str, &'static str)>,
}

impl Key<'_, '_> {
    /// The environment variable that sets the key.
    pub(super) fn variable(self, name: &'static str) -> Self {
        Self { variable: Some(name), ..self }
    }

    /// The flag that sets the key, if the user gave it.
    pub(super) fn flag(self, name: &'static str, given: Option<impl Into<OsString>>) -> Self {
        Self { flag: given.map(|given| (name, given.into())), ..self }
    }

    /// The value that another key implies. Every layer overrides it.
    pub(super) fn implied(self, by: &'static str, value: Option<&'static str>) -> Self {
        Self { implied: value.map(|value| (by, value)), ..self }
    }

    /// Reads the key from all layers; without a value it has its default.
    pub(super) fn read_or<T: DisplayValue>(
        self,
        default: impl FnOnce() -> T,
        read: impl Fn(&RawValue) -> Result<T, String>,
    ) -> Setting<T> {
        let Self { layers, section, name, variable, flag, implied } = self;
        let mut values = Vec::new();
        if let Some((by, value)) = implied {
            values.push((RawValue::Text(value.to_owned()), SettingOrigin::Implied { by }));
        }
        if !section.is_empty()
            && let Some((node, origin)) = layers.take_from_file(section, name)
        {
            values.push((if let Node::Value(raw) = node { raw } else { RawValue::Other }, origin));
        }
        if let Some(name) = variable
            && let Some(value) = layers.variable(name)
        {
            values.push((from_os(value), SettingOrigin::Environment { name }));
        }
        if let Some((name, value)) = flag {
            values.push((from_os(value), SettingOrigin::Flag { name }));
        }
        let mut setting = None;
        for (raw, origin) in values {
            match read(&raw) {
                Ok(value) => setting = Some(Setting { value, origin }),
                Err(why) => layers.add_problem(&origin, &why),
            }
        }
        let setting = setting.unwrap_or_else(|| Setting { value: default(), origin: SettingOrigin::Default });
        let key = if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") };
        layers.add_row(key, setting.value.display_value(), setting.origin.clone());
        setting
    }
}

fn from_os(text: OsString) -> RawValue {
    text.into_string().map_or_else(RawValue::Os, RawValue::Text)
}
