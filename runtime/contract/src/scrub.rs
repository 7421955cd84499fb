//! Removes known secrets from results, answers and recalled turns before they become facts.

mod stream;

pub use stream::ScrubStream;

use crate::fact::{ModelAnswer, ToolResult};
use crate::run_error::Failure;
use crate::secret::{REDACTED, is_connection_setting, is_secret_name};
use crate::transcript::ChatMessage;
use serde_json::Value;

/// A shorter value would occur in ordinary text, so it is not scrubbed.
const SHORTEST: usize = 8;

/// The known secrets of a flow. Never prints them.
#[derive(Clone, Default)]
pub struct Scrubber {
    secrets: Vec<Box<str>>,
}

impl std::fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scrubber({} secrets)", self.secrets.len())
    }
}

impl Scrubber {
    /// Adds a secret. Ignores one that is too short to be found reliably.
    pub fn add(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.len() < SHORTEST {
            return;
        }
        // A model's answer is JSON, so the secret can be escaped in it.
        let quoted = serde_json::to_string(secret).unwrap_or_default();
        let escaped = quoted.trim_start_matches('"').strip_suffix('"').unwrap_or_default();
        for form in [secret, escaped, &escaped.replace('/', "\\/")] {
            if form.len() >= SHORTEST && !self.secrets.iter().any(|known| **known == *form) {
                self.secrets.push(form.into());
            }
        }
        // Longer secrets come first, because one secret can contain another.
        self.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    /// Adds the secrets of another scrubber.
    pub fn add_all(&mut self, other: &Self) {
        for secret in &other.secrets {
            if !self.secrets.contains(secret) {
                self.secrets.push(secret.clone());
            }
        }
        self.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    /// Adds every secret in a node's properties, by the names of the properties.
    pub fn add_properties<'a>(&mut self, props: impl IntoIterator<Item = (&'a String, &'a Value)>) {
        for (name, value) in props {
            self.add_value(is_secret_name(name), value);
        }
    }

    fn add_value(&mut self, secret: bool, value: &Value) {
        match value {
            Value::String(text) if secret => self.add(text),
            Value::Array(items) => items.iter().for_each(|item| self.add_value(secret, item)),
            Value::Object(map) => {
                for (name, value) in map {
                    let is_setting = is_connection_setting(name);
                    self.add_value((secret && !is_setting) || is_secret_name(name), value);
                }
            }
            _ => {}
        }
    }

    /// Removes the secrets from a text.
    pub fn text(&self, text: &mut String) {
        for secret in &self.secrets {
            if text.contains(&**secret) {
                *text = text.replace(&**secret, REDACTED);
            }
        }
    }

    /// The last place at or before `end` where a text can be cut without leaving a part of a secret. Looks no
    /// further than the longest secret.
    #[must_use]
    pub fn cut_at(&self, text: &str, end: usize) -> usize {
        let mut end = floor_char_boundary(text, end);
        // The new end can be inside another secret.
        while let Some(start) = self.secrets.iter().filter_map(|secret| start_across(text, secret, end)).min()
        {
            end = start;
        }
        end
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => {
                let has_secret = |name: &String| self.secrets.iter().any(|secret| name.contains(&**secret));
                if map.keys().any(has_secret) {
                    let parts = std::mem::take(map).into_iter().map(|(mut name, value)| {
                        self.text(&mut name);
                        (name, value)
                    });
                    *map = parts.collect();
                }
                map.values_mut().for_each(|value| self.value(value));
            }
            _ => {}
        }
    }

    /// Removes the secrets from a tool's result.
    pub fn result(&self, result: &mut ToolResult) {
        if self.secrets.is_empty() {
            return;
        }
        if let Some(output) = &mut result.output {
            self.value(output);
        }
        if let Some(error) = &mut result.error {
            self.text(error);
        }
    }

    /// Removes the secrets from a model's answer.
    pub fn answer(&self, answer: &mut ModelAnswer) {
        self.text(&mut answer.text);
        self.escaped_text(&mut answer.text);
        for reported in [&mut answer.model, &mut answer.request_id].into_iter().flatten() {
            self.text(reported);
        }
        for call in &mut answer.tool_calls {
            self.text(&mut call.arguments);
        }
    }

    /// Removes the secrets from JSON text with `\\u` escapes: reads the values, because the text hides the
    /// secret.
    fn escaped_text(&self, text: &mut String) {
        if self.secrets.is_empty() || !text.contains("\\u") {
            return;
        }
        let Ok(mut value) = serde_json::from_str::<Value>(text) else { return };
        let before = value.clone();
        self.value(&mut value);
        if value != before {
            *text = value.to_string();
        }
    }

    /// Removes the secrets from an error.
    pub fn failure(&self, failure: &mut Failure) {
        self.text(&mut failure.message);
    }

    /// Removes the secrets from a recalled conversation.
    pub fn turns(&self, turns: &mut [ChatMessage]) {
        for turn in turns {
            self.text(&mut turn.content);
            for call in &mut turn.tool_calls {
                self.text(&mut call.arguments);
            }
        }
    }
}

/// The last character boundary at or before a position.
fn floor_char_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The start of a secret that lies on both sides of `end`.
fn start_across(text: &str, secret: &str, end: usize) -> Option<usize> {
    let reach = secret.len().saturating_sub(1);
    let from = (end.saturating_sub(reach)..=end).find(|at| text.is_char_boundary(*at))?;
    let part = text.get(from..floor_char_boundary(text, end.saturating_add(reach)))?;
    part.find(secret).map(|start| from + start)
}

#[cfg(test)]
mod tests {
    use super::Scrubber;
    use crate::fact::{ModelAnswer, ToolResult};
    use serde_json::json;

    fn scrubber() -> Scrubber {
        let mut scrubber = Scrubber::default();
        let props = json!({"apiKey": "sk-verysecret", "credentials": {"user": "ada-lovelace", "code": "open-sesame"}, "pin": "1234", "name": "harmless-name"});
        scrubber.add_properties(props.as_object().unwrap());
        scrubber.add("sk-verysecret-and-longer");
        scrubber
    }

    #[test]
    fn removes_known_secrets_from_values_and_keys() {
        let output = json!({"a": ["x sk-verysecret y", {"sk-verysecret": 1}], "b": "sk-verysecret-and-longer", "c": "open-sesame ada-lovelace 1234 harmless-name"});
        let mut result = ToolResult::ok(output);
        scrubber().result(&mut result);
        let expected = json!({"a": ["x [redacted] y", {"[redacted]": 1}], "b": "[redacted]", "c": "[redacted] ada-lovelace 1234 harmless-name"});
        assert_eq!(result.output, Some(expected));
        let mut failed = ToolResult::failed("401 for sk-verysecret");
        scrubber().result(&mut failed);
        assert_eq!(failed.error.as_deref(), Some("401 for [redacted]"));
    }

    #[test]
    fn removes_secrets_that_json_escapes() {
        let mut scrubber = Scrubber::default();
        scrubber.add("key/with\"quotes\\");
        for text in [
            r#"{"message":"key/with\"quotes\\ it is"}"#,
            r#"{"message":"key\/with\"quotes\\ it is"}"#,
            r#"{"message":"\u006bey/with\u0022quotes\\ it is"}"#,
        ] {
            let mut answer = ModelAnswer { text: text.to_owned(), ..ModelAnswer::default() };
            scrubber.answer(&mut answer);
            assert_eq!(answer.text, r#"{"message":"[redacted] it is"}"#, "{text}");
        }
        // Text without a secret stays unchanged.
        let text = r#"{"message":"\u0041", "message":1}"#;
        let mut answer = ModelAnswer { text: text.to_owned(), ..ModelAnswer::default() };
        scrubber.answer(&mut answer);
        assert_eq!(answer.text, text);
    }

    #[test]
    fn cuts_a_text_only_outside_secrets() {
        let mut scrubber = scrubber();
        scrubber.add("sesame-and-ümlauts");
        let text = "ää open-sesame-and-ümlauts! sk-verysecret.";
        let at = |words: &str| text.find(words).unwrap();
        for end in 0..=text.len() + 9 {
            let cut = scrubber.cut_at(text, end);
            let expected = match end {
                // Of two overlapping secrets, neither is left.
                _ if end > at("open") && end < at("!") => at("open"),
                _ if end > at("sk-") && end < at(".") => at("sk-"),
                1 | 3 => end - 1,
                _ => end.min(text.len()),
            };
            assert_eq!(cut, expected, "{end}");
        }
    }

    #[test]
    fn debug_output_shows_no_secret() {
        assert_eq!(format!("{:?}", scrubber()), "Scrubber(3 secrets)");
    }
}
