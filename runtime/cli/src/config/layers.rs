//! The layers a value may come from: a flag, else a variable of the environment, else the file, else its default.
//!
//! Owns the precedence, where each value came from, and the list of all that is wrong. Every layer that says
//! something is read, also where another one covers it: a mistake does not wait for the day it counts.

use super::file::{ConfigFile, Entry, Keys, Node, Raw};
use super::values::Shown;
use crate::files::shown;
use crate::terminal::printable_line;
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
pub(crate) enum Origin {
    /// Nobody said anything.
    Default,
    /// Nobody said anything, and what was said of another key asks for it.
    Implied {
        /// That key.
        by: &'static str,
    },
    /// The configuration file.
    File {
        /// The file.
        #[serde(serialize_with = "as_text")]
        file: Arc<Path>,
        /// The line of the key.
        line: usize,
    },
    /// A variable of the environment.
    Environment {
        /// Its name.
        name: &'static str,
    },
    /// The command line.
    Flag {
        /// Its name.
        name: &'static str,
    },
}

fn as_text<S: serde::Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&path.display().to_string())
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Implied { by } => write!(f, "implied by {by}"),
            Self::File { file, line } => write!(f, "{}, line {line}", shown(file)),
            Self::Environment { name } | Self::Flag { name } => f.write_str(name),
        }
    }
}

impl Origin {
    /// The beginning of a sentence about what was said there.
    fn is_wrong(&self) -> String {
        match self {
            Self::Default => "the default is wrong".to_owned(),
            Self::Implied { by } => format!("what {by} implies is wrong"),
            Self::File { file, line } => format!("the configuration {} is wrong in line {line}", shown(file)),
            Self::Environment { name } => format!("the variable {name} is wrong"),
            Self::Flag { name } => format!("the flag {name} is wrong"),
        }
    }
}

/// A value, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting<T> {
    /// The value.
    pub(crate) value: T,
    /// Where it comes from.
    pub(crate) origin: Origin,
}

/// A value as it is shown; secrets are masked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Row {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// A table whose name is the user's: its name, where it is, and what it says.
pub(super) type Table = (String, Origin, BTreeMap<&'static str, (Raw, Origin)>);

/// A variable of the environment, by its name.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Reads key after key.
pub(super) struct Layers<'a> {
    env: Environment<'a>,
    path: Option<Arc<Path>>,
    /// What of the file nobody has asked for yet.
    left: Keys,
    /// The keys that were asked for, by section.
    known: BTreeMap<&'static str, Vec<&'static str>>,
    pub(super) rows: Vec<Row>,
    pub(super) problems: Vec<String>,
}

impl<'a> Layers<'a> {
    pub(super) fn new(env: Environment<'a>, file: Option<ConfigFile>) -> Self {
        let (path, left) = file.map(|file| (Arc::from(file.path), file.sections)).unzip();
        let left = left.unwrap_or_default();
        Self { env, path, left, known: BTreeMap::new(), rows: Vec::new(), problems: Vec::new() }
    }

    /// A key of a section; of none, if that is empty.
    pub(super) fn key(&mut self, section: &'static str, name: &'static str) -> Key<'_, 'a> {
        Key { layers: self, section, name, variable: None, flag: None, implied: None }
    }

    /// A variable of the environment that is not empty.
    pub(super) fn variable(&self, name: &str) -> Option<OsString> {
        (self.env)(name).filter(|value| !value.to_string_lossy().trim().is_empty())
    }

    pub(super) fn show(&mut self, key: String, value: Value, origin: Origin) {
        self.rows.push(Row { key, value, origin });
    }

    pub(super) fn complain(&mut self, origin: &Origin, why: &str) {
        self.problems.push(format!("{}: {why}", origin.is_wrong()));
    }

    fn line(&self, line: usize) -> Origin {
        self.path.clone().map_or(Origin::Default, |file| Origin::File { file, line })
    }

    /// A key's value in the file.
    fn in_file(&mut self, section: &'static str, name: &'static str) -> Option<(Node, Origin)> {
        self.known.entry(section).or_default().push(name);
        let Some(Entry { value: Node::Table(keys), .. }) = self.left.get_mut(section) else { return None };
        let Entry { line, value } = keys.remove(name)?;
        Some((value, self.line(line)))
    }

    /// Every table of a section whose keys are names of the user's, with the keys one may have.
    pub(super) fn tables(&mut self, section: &'static str, keys: &[&'static str]) -> Vec<Table> {
        self.known.entry(section).or_default();
        let Some(Entry { value: Node::Table(_), .. }) = self.left.get(section) else { return Vec::new() };
        let Some(Entry { value: Node::Table(tables), .. }) = self.left.remove(section) else {
            return Vec::new();
        };
        let mut read = Vec::new();
        for (name, Entry { line, value }) in tables {
            let origin = self.line(line);
            let table = format!("{section}.{}", quoted(&name));
            let Node::Table(mut entries) = value else {
                self.complain(&origin, &format!("`{table}` must be a section"));
                continue;
            };
            let mut values = BTreeMap::new();
            for key in keys {
                let Some(Entry { line, value }) = entries.remove(*key) else { continue };
                let raw = if let Node::Value(raw) = value { raw } else { Raw::Other };
                values.insert(*key, (raw, self.line(line)));
            }
            for (key, entry) in entries {
                self.unknown(&key, entry.line, keys);
            }
            read.push((name, origin, values));
        }
        read
    }

    fn unknown(&mut self, key: &str, line: usize, known: &[&str]) {
        let known: Vec<String> = known.iter().map(|key| format!("`{key}`")).collect();
        let text =
            format!("unknown field `{}`, expected one of {}", printable_line(key, 60), known.join(", "));
        self.complain(&self.line(line), &text);
    }

    /// What nobody asked for is wrong. Everything that is wrong, and all values there are.
    pub(super) fn end(mut self) -> Result<Vec<Row>, Vec<String>> {
        let known = std::mem::take(&mut self.known);
        let sections: Vec<&str> = known.keys().copied().filter(|section| !section.is_empty()).collect();
        for (section, Entry { line, value }) in std::mem::take(&mut self.left) {
            match (known.get(section.as_str()), value) {
                (None, _) => self.unknown(&section, line, &sections),
                (Some(_), Node::Value(_)) => {
                    self.complain(&self.line(line), &format!("`{section}` must be a section: [{section}]"));
                }
                (Some(keys), Node::Table(left)) => {
                    for (key, entry) in left {
                        self.unknown(&key, entry.line, keys);
                    }
                }
            }
        }
        if self.problems.is_empty() { Ok(self.rows) } else { Err(self.problems) }
    }
}

/// A name of the user's as TOML would write it.
pub(super) fn quoted(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !name.is_empty() && name.chars().all(bare) {
        true => name.to_owned(),
        false => format!("\"{}\"", printable_line(name, 100)),
    }
}

/// A key that is about to be read.
pub(super) struct Key<'l, 'a> {
    layers: &'l mut Layers<'a>,
    section: &'static str,
    name: &'static str,
    variable: Option<&'static str>,
    flag: Option<(&'static str, OsString)>,
    implied: Option<(&'static str, &'static str)>,
}

impl Key<'_, '_> {
    /// The variable that says it too.
    pub(super) fn variable(self, name: &'static str) -> Self {
        Self { variable: Some(name), ..self }
    }

    /// The flag that says it too, if it was given.
    pub(super) fn flag(self, name: &'static str, given: Option<impl Into<OsString>>) -> Self {
        Self { flag: given.map(|given| (name, given.into())), ..self }
    }

    /// What another key makes of it, if nobody says otherwise.
    pub(super) fn implied(self, by: &'static str, value: Option<&'static str>) -> Self {
        Self { implied: value.map(|value| (by, value)), ..self }
    }

    /// Reads it; without a word from anyone it has its default.
    pub(super) fn or<T: Shown>(
        self,
        default: impl FnOnce() -> T,
        read: impl Fn(&Raw) -> Result<T, String>,
    ) -> Setting<T> {
        let Self { layers, section, name, variable, flag, implied } = self;
        let mut said = Vec::new();
        if let Some((by, value)) = implied {
            said.push((Raw::Text(value.to_owned()), Origin::Implied { by }));
        }
        // Only what stands in a section is asked of the file.
        if !section.is_empty()
            && let Some((node, origin)) = layers.in_file(section, name)
        {
            said.push((if let Node::Value(raw) = node { raw } else { Raw::Other }, origin));
        }
        if let Some(name) = variable
            && let Some(value) = layers.variable(name)
        {
            said.push((of_system(value), Origin::Environment { name }));
        }
        if let Some((name, value)) = flag {
            said.push((of_system(value), Origin::Flag { name }));
        }
        let mut setting = None;
        for (raw, origin) in said {
            match read(&raw) {
                Ok(value) => setting = Some(Setting { value, origin }),
                Err(why) => layers.complain(&origin, &why),
            }
        }
        let setting = setting.unwrap_or_else(|| Setting { value: default(), origin: Origin::Default });
        let key = if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") };
        layers.show(key, setting.value.shown(), setting.origin.clone());
        setting
    }
}

fn of_system(text: OsString) -> Raw {
    text.into_string().map_or_else(Raw::Os, Raw::Text)
}
