//! Pins: the definitions of tools that were approved, and how another one is different.

use crate::text::{canonical, clean, cut_bytes};
use redflow_contract::digest::Digest;
use redflow_contract::mcp::{McpPin, McpPins, McpTrust};
use serde_json::{Map, Value};

/// The most pins of a server. A server that renames its tools again and again would fill the disk.
pub(crate) const MAX_PINS: usize = 1_000;

/// The most bytes of a difference.
pub(crate) const MAX_DIFF_BYTES: usize = 8_192;

/// The most lines of a definition that are compared one by one.
const MAX_COMPARED_LINES: usize = 400;

/// What a definition of a tool has.
const FIELDS: [&str; 6] = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

/// The definition of a tool as the server sent it, without what does not count.
pub(crate) fn definition_of(sent: &Value) -> Value {
    let field = |name: &&str| Some(((*name).to_owned(), canonical(sent.get(*name)?)));
    Value::Object(FIELDS.iter().filter_map(field).collect::<Map<_, _>>())
}

/// The digest of a definition.
pub(crate) fn digest_of(definition: &Value) -> Digest {
    Digest::of(definition.to_string().as_bytes())
}

/// Whether the definition that a server sends is the approved one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PinState {
    /// It is.
    Approved,
    /// It is new, and the first one counts as approved.
    First,
    /// Another one was approved.
    Changed,
    /// None was approved.
    NotApproved,
    /// None was approved, and the server has too many pins.
    Full,
}

/// Compares a definition with the pins.
pub(crate) fn pin_state(pins: &McpPins, trust: McpTrust, name: &str, digest: Digest) -> PinState {
    match pins.tools.get(name) {
        Some(pin) if pin.digest == digest => PinState::Approved,
        Some(_) => PinState::Changed,
        None if trust == McpTrust::Pinned => PinState::NotApproved,
        None if pins.tools.len() >= MAX_PINS => PinState::Full,
        None => PinState::First,
    }
}

/// What is different, line by line.
pub(crate) fn diff(pin: Option<&McpPin>, definition: &Value) -> String {
    let pretty = |value: &Value| clean(&serde_json::to_string_pretty(value).unwrap_or_default());
    let before = pin.map(|pin| pretty(&pin.definition)).unwrap_or_default();
    let after = pretty(definition);
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let text = if old.len() > MAX_COMPARED_LINES || new.len() > MAX_COMPARED_LINES {
        lines('-', &old) + &lines('+', &new)
    } else {
        compare(&old, &new)
    };
    match text.len() > MAX_DIFF_BYTES {
        true => format!("{}\n…", cut_bytes(&text, MAX_DIFF_BYTES - 4)),
        false => text,
    }
}

fn lines(sign: char, lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{sign} {line}\n")).collect()
}

/// The lines that only one of them has, by the longest common subsequence.
fn compare(old: &[&str], new: &[&str]) -> String {
    let width = new.len() + 1;
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for (row, before) in old.iter().enumerate().rev() {
        for (column, after) in new.iter().enumerate().rev() {
            let at = row * width + column;
            common[at] = if before == after {
                common[at + width + 1] + 1
            } else {
                common[at + width].max(common[at + 1])
            };
        }
    }
    let (mut row, mut column, mut text) = (0, 0, String::new());
    while row < old.len() || column < new.len() {
        let at = row * width + column;
        if row < old.len() && column < new.len() && old[row] == new[column] {
            row += 1;
            column += 1;
        } else if row < old.len() && (column == new.len() || common[at + width] >= common[at + 1]) {
            text.push_str(&lines('-', &old[row..=row]));
            row += 1;
        } else {
            text.push_str(&lines('+', &new[column..=column]));
            column += 1;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{
        MAX_COMPARED_LINES, MAX_DIFF_BYTES, MAX_PINS, PinState, definition_of, diff, digest_of, pin_state,
    };
    use pretty_assertions::assert_eq;
    use redflow_contract::mcp::{McpPin, McpPins, McpTrust};
    use serde_json::{Value, json};

    fn pin(definition: &Value) -> McpPin {
        McpPin { digest: digest_of(definition), definition: definition.clone(), at: 1, approved: false }
    }

    #[test]
    fn only_what_a_model_or_a_call_sees_is_part_of_a_definition() {
        let sent = json!({"annotations": {"b": 1, "a": 2}, "name": "x", "_meta": {"t": 5}, "icons": []});
        let again = json!({"name": "x", "annotations": {"a": 2, "b": 1}, "_meta": {"t": 6}});
        assert_eq!(digest_of(&definition_of(&sent)), digest_of(&definition_of(&again)));
        let other = json!({"name": "x", "annotations": {"a": 2, "b": 1}, "description": ""});
        assert_ne!(digest_of(&definition_of(&sent)), digest_of(&definition_of(&other)));
    }

    #[test]
    fn the_first_definition_counts_unless_a_person_must_approve() {
        let (one, other) = (json!({"name": "x"}), json!({"name": "x", "description": "y"}));
        let mut pins = McpPins::default();
        let state = |pins: &McpPins, trust, value: &Value| pin_state(pins, trust, "x", digest_of(value));
        assert_eq!(state(&pins, McpTrust::FirstUse, &one), PinState::First);
        assert_eq!(state(&pins, McpTrust::Pinned, &one), PinState::NotApproved);
        pins.tools.insert("x".to_owned(), pin(&one));
        assert_eq!(state(&pins, McpTrust::FirstUse, &one), PinState::Approved);
        assert_eq!(state(&pins, McpTrust::FirstUse, &other), PinState::Changed);
        assert_eq!(state(&pins, McpTrust::Pinned, &other), PinState::Changed);
        for index in 1..MAX_PINS {
            pins.tools.insert(format!("t{index}"), pin(&one));
        }
        assert_eq!(pin_state(&pins, McpTrust::FirstUse, "new", digest_of(&one)), PinState::Full);
    }

    #[test]
    fn a_difference_has_the_lines_of_both() {
        let (old, new) =
            (json!({"name": "x", "description": "Adds."}), json!({"name": "x", "description": "Sends."}));
        assert_eq!(
            diff(Some(&pin(&old)), &new),
            "-   \"description\": \"Adds.\"\n+   \"description\": \"Sends.\"\n"
        );
        assert_eq!(diff(Some(&pin(&old)), &old), "");
        assert!(diff(None, &new).starts_with("+ {"));
        let long = json!({"description": "x".repeat(50_000), "list": vec![0; 5_000]});
        let text = diff(Some(&pin(&old)), &long);
        assert!(text.len() <= MAX_DIFF_BYTES && text.ends_with('…'), "{}", text.len());
    }

    #[test]
    fn definitions_with_many_lines_are_not_compared_line_by_line() {
        // Five lines stand around the items.
        let definition = |lines: usize, name: &str| json!({"list": vec![0; lines - 5], "name": name});
        let count = |lines: usize| {
            let (old, new) = (definition(lines, "a"), definition(lines, "b"));
            assert_eq!(serde_json::to_string_pretty(&old).unwrap().lines().count(), lines);
            diff(Some(&pin(&old)), &new).lines().count()
        };
        assert_eq!(
            (count(MAX_COMPARED_LINES), count(MAX_COMPARED_LINES + 1)),
            (2, 2 * (MAX_COMPARED_LINES + 1))
        );
    }
}
