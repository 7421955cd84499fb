//! Which keys an object may have, and what may stand behind them.

use serde_json::Value;
use std::fmt::Display;

/// What is wrong, each with the place it was found at.
#[derive(Default)]
pub(super) struct Finder {
    pub(super) problems: Vec<String>,
}

/// What may stand behind a key.
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
    /// Judged elsewhere.
    Any,
}

/// A key, what stands behind it, and whether it must be there.
pub(super) type Field = (&'static str, Kind, bool);

pub(super) const fn need(name: &'static str, kind: Kind) -> Field {
    (name, kind, true)
}

pub(super) const fn may(name: &'static str, kind: Kind) -> Field {
    (name, kind, false)
}

impl Finder {
    pub(super) fn say(&mut self, at: &str, what: impl Display) {
        self.problems.push(format!("{at}: {what}"));
    }

    /// Says it, if it is so.
    pub(super) fn refuse(&mut self, is_so: bool, at: &str, what: impl Display) {
        if is_so {
            self.say(at, what);
        }
    }

    /// Holds an object to its fields. False if it is none.
    pub(super) fn fields(&mut self, at: &str, value: &Value, fields: &[Field]) -> bool {
        let Some(object) = value.as_object() else {
            self.say(at, "no object");
            return false;
        };
        for key in object.keys().filter(|key| !fields.iter().any(|(name, ..)| name == key)) {
            self.say(at, format!("the key {key} does not exist"));
        }
        for (name, kind, needed) in fields {
            match object.get(*name) {
                None if *needed => self.say(at, format!("{name} is missing")),
                None => {}
                Some(value) if kind.fits(value) => {}
                Some(value) => self.say(&format!("{at}/{name}"), format!("may not be {value}")),
            }
        }
        true
    }

    /// The items of a list with the place of each; nothing if there is no list.
    pub(super) fn items<'a>(&mut self, at: &str, list: Option<&'a Value>) -> Vec<(String, &'a Value)> {
        let items = list.and_then(Value::as_array).into_iter().flatten().enumerate();
        items.map(|(index, item)| (format!("{at}/{index}"), item)).collect()
    }

    /// Tools by their names: each once, and named as all providers take it.
    pub(super) fn names(&mut self, at: &str, names: &[&str]) {
        for (index, name) in names.iter().enumerate() {
            let known = |char: char| char.is_ascii_alphanumeric() || "_-".contains(char);
            let fits = (1..=64).contains(&name.len()) && name.chars().all(known);
            self.refuse(!fits, at, format!("the name {name:?}"));
            self.refuse(names[..index].contains(name), at, format!("{name} twice"));
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
