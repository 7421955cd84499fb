//! Warns about properties of models that their types do not know, so that a misspelt one does not go unnoticed.

use super::Checker;
use super::config::NODE_RED_KEYS;
use crate::resolved::NodeIx;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::edge::Role;
use redflow_contract::json::push_pointer;
use redflow_contract::node;
use redflow_contract::phrases;
use serde_json::{Map, Value};

/// What Node-RED's editor adds to nodes, apart from [`NODE_RED_KEYS`].
const EDITOR_KEYS: [&str; 7] = ["icon", "label", "inputs", "outputs", "inputLabels", "outputLabels", "env"];

/// Other spellings that models read.
const OTHER_SPELLINGS: [&str; 1] = ["baseUrl"];

/// The property that sends any other setting to the server.
const EXTRA_BODY: &str = "extraBody";

/// The most unknown properties of a node that are reported; the rest are counted.
const MAX_REPORTED: usize = 20;

/// The longest name that is compared with others, in bytes.
const LONGEST_NAME: usize = 64;

/// The most letters that a misspelt name has wrong.
const MAX_WRONG_LETTERS: usize = 2;

impl Checker<'_> {
    /// Checks the names of the properties of a model, and of its `options`.
    pub(super) fn check_unknown_properties(&mut self, ix: NodeIx) {
        let sets = node::find(&self.flow.raw(ix).type_name).property_sets;
        let known: Vec<&'static str> = sets.iter().flat_map(|set| set.names()).collect();
        // A type of another palette has properties that we do not know.
        if known.is_empty() {
            return;
        }
        let is_known = |name: &str| {
            let lists: [&[&str]; 4] = [&known, &NODE_RED_KEYS, &EDITOR_KEYS, &OTHER_SPELLINGS];
            name.starts_with('_') || lists.iter().any(|list| list.contains(&name))
        };
        let unknown = |props: &Map<String, Value>, path: &str| -> Vec<(String, String)> {
            let names = props.keys().filter(|name| !is_known(name));
            let pointer = |name: &String| {
                let mut pointer = path.to_owned();
                push_pointer(&mut pointer, name);
                (pointer, name.clone())
            };
            names.map(pointer).collect()
        };
        let props = self.props(ix);
        let mut found = unknown(props, "");
        if let Some(options) = props.get("options").and_then(Value::as_object) {
            found.extend(unknown(options, "/options"));
        }
        self.diagnostics.omit(DiagnosticCode::PropertyUnknown, found.len().saturating_sub(MAX_REPORTED));
        for (pointer, name) in found.into_iter().take(MAX_REPORTED) {
            let kind = UnknownKind::of(&name, &known);
            self.property_unknown(ix, pointer, &name, kind);
        }
    }

    fn property_unknown(&mut self, ix: NodeIx, pointer: String, name: &str, kind: UnknownKind) {
        let type_name = self.flow.raw(ix).type_name.clone();
        self.diagnostics.push(DiagnosticCode::PropertyUnknown, ix, None, || {
            let (expected, message, help) = match kind {
                UnknownKind::Misspelt(known) => (
                    Some(known),
                    phrases::property_misspelt(type_name, name, known),
                    phrases::property_misspelt_help(name, known),
                ),
                UnknownKind::OfOtherModel { has_extra_body: true } => (
                    None,
                    phrases::property_of_other_model(type_name, name),
                    phrases::property_of_other_model_help(name),
                ),
                UnknownKind::OfOtherModel { has_extra_body: false } => (
                    None,
                    phrases::property_of_other_model(type_name, name),
                    phrases::property_unknown_help(name),
                ),
                UnknownKind::Other => {
                    (None, phrases::property_ignored(type_name, name), phrases::property_unknown_help(name))
                }
            };
            Diagnostic {
                pointer: Some(pointer),
                expected: expected.map(str::to_owned),
                ..Diagnostic::new(DiagnosticCode::PropertyUnknown, message, help)
            }
        });
    }
}

/// Why a type does not know a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnknownKind {
    /// The type has this name, which is spelt much alike.
    Misspelt(&'static str),
    /// Another type of model has it. So it is right, and the closest name would be another setting.
    OfOtherModel { has_extra_body: bool },
    /// No type of model has it.
    Other,
}

impl UnknownKind {
    fn of(name: &str, known: &[&'static str]) -> Self {
        let is_same = |other: &str| letters(other) == letters(name);
        if let Some(known) = known.iter().find(|known| name.len() <= LONGEST_NAME && is_same(known)) {
            return Self::Misspelt(known);
        }
        let models = node::NODES.iter().filter(|node| node.node_type.role == Role::Model);
        let mut names = models.flat_map(|node| node.property_sets).flat_map(|set| set.names());
        if name.len() <= LONGEST_NAME && names.any(is_same) {
            return Self::OfOtherModel { has_extra_body: known.contains(&EXTRA_BODY) };
        }
        closest_name(name, known).map_or(Self::Other, Self::Misspelt)
    }
}

/// The known name that is spelt most alike; none if no name is.
fn closest_name(name: &str, known: &[&'static str]) -> Option<&'static str> {
    if name.len() > LONGEST_NAME {
        return None;
    }
    let name = letters(name);
    let wrong = |known: &&'static str| wrong_letters(&name, &letters(known));
    let (count, closest) =
        known.iter().map(|known| (wrong(known), *known)).min_by_key(|(count, _)| *count)?;
    // In a short name two other letters make another word.
    let most = if name.len() <= 4 { 1 } else { MAX_WRONG_LETTERS };
    (count <= most).then_some(closest)
}

/// The letters of a name without case and separators: `max_tokens` is `maxTokens`.
fn letters(name: &str) -> Vec<char> {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).map(|c| c.to_ascii_lowercase()).collect()
}

/// How many letters must be added, removed or replaced (Levenshtein's distance).
fn wrong_letters(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (to, above) in b.iter().zip(row.iter_mut().skip(1)) {
            let replaced = diagonal + usize::from(from != to);
            diagonal = *above;
            left = replaced.min(left + 1).min(diagonal + 1);
            *above = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(a.len())
}

#[cfg(test)]
mod tests {
    use super::{closest_name, letters, wrong_letters};

    #[test]
    fn counts_wrong_letters() {
        for (a, b, count) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("temprature", "temperature", 1),
            ("max_tokens", "maxTokens", 0),
            ("topk", "topP", 1),
        ] {
            assert_eq!(wrong_letters(&letters(a), &letters(b)), count, "{a} {b}");
        }
    }

    #[test]
    fn finds_the_name_that_is_spelt_most_alike() {
        let known = ["model", "temperature", "maxTokens", "topP", "stop"];
        let long = format!("maxTokens{}", "s".repeat(60));
        for (name, closest) in [
            ("temprature", Some("temperature")),
            ("MaxTokens", Some("maxTokens")),
            ("max_output_tokens", None),
            ("stops", Some("stop")),
            ("top", Some("topP")),
            ("tp", None),
            ("", None),
            (long.as_str(), None),
        ] {
            assert_eq!(closest_name(name, &known), closest, "{name}");
        }
        assert_eq!(closest_name("model", &[]), None);
    }
}
