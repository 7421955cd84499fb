//! The keys that an object may have, and their values.

use serde_json::Value;
use std::fmt::Display;

/// Collects problems, each with its place.
#[derive(Default)]
pub(super) struct Finder {
    pub(super) problems: Vec<String>,
}

/// The values that a key may have.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Text that is not empty.
    Text,
    /// Text, perhaps empty.
    AnyText,
    TextOrNull,
    Bool,
    /// Exactly this.
    Is(&'static str),
    OneOf(&'static [&'static str]),
    /// A whole number, at least this.
    Whole(i64),
    /// A number between these.
    Number(f64, f64),
    Object,
    List,
    /// Checked by other code.
    Any,
}

/// A key, its kind of value, and whether it is required.
pub(super) type Field = (&'static str, Kind, bool);

pub(super) const fn required(name: &'static str, kind: Kind) -> Field {
    (name, kind, true)
}

pub(super) const fn optional(name: &'static str, kind: Kind) -> Field {
    (name, kind, false)
}

impl Finder {
    pub(super) fn add(&mut self, at: &str, what: impl Display) {
        self.problems.push(format!("{at}: {what}"));
    }

    /// Adds a problem if the condition holds.
    pub(super) fn add_if(&mut self, condition: bool, at: &str, what: impl Display) {
        if condition {
            self.add(at, what);
        }
    }

    /// Checks the fields of an object. False if the value is no object.
    pub(super) fn fields(&mut self, at: &str, value: &Value, fields: &[Field]) -> bool {
        let Some(object) = value.as_object() else {
            self.add(at, "no object");
            return false;
        };
        for key in object.keys().filter(|key| !fields.iter().any(|(name, ..)| name == key)) {
            self.add(at, format!("the key {key} does not exist"));
        }
        for (name, kind, needed) in fields {
            match object.get(*name) {
                None if *needed => self.add(at, format!("{name} is missing")),
                None => {}
                Some(value) if kind.fits(value) => {}
                Some(value) => self.add(&format!("{at}/{name}"), format!("may not be {value}")),
            }
        }
        true
    }

    /// The items of a list with their places. Empty if the value is no list.
    pub(super) fn items<'a>(&mut self, at: &str, list: Option<&'a Value>) -> Vec<(String, &'a Value)> {
        let items = list.and_then(Value::as_array).into_iter().flatten().enumerate();
        items.map(|(index, item)| (format!("{at}/{index}"), item)).collect()
    }

    /// Checks that names of tools are unique and valid for all providers.
    pub(super) fn names(&mut self, at: &str, names: &[&str]) {
        for (index, name) in names.iter().enumerate() {
            let known = |char: char| char.is_ascii_alphanumeric() || "_-".contains(char);
            let fits = (1..=64).contains(&name.len()) && name.chars().all(known);
            self.add_if(!fits, at, format!("the name {name:?}"));
            self.add_if(names[..index].contains(name), at, format!("{name} twice"));
        }
    }
}

impl Kind {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.as_str().is_some_and(|text| !text.is_empty()),
            Self::AnyText => value.is_string(),
            Self::TextOrNull => value.is_string() || value.is_null(),
            Self::Bool => value.is_boolean(),
            Self::Is(text) => value == text,
            Self::OneOf(texts) => value.as_str().is_some_and(|text| texts.contains(&text)),
            Self::Whole(least) => value.as_i64().is_some_and(|number| number >= least),
            Self::Number(least, most) => {
                value.as_f64().is_some_and(|number| (least..=most).contains(&number))
            }
            Self::Object => value.is_object(),
            Self::List => value.as_array().is_some_and(|list| !list.is_empty()),
            Self::Any => true,
        }
    }
}
