//! Takes secrets that are known out of what strangers send back, before it becomes a fact.

mod stream;

pub use stream::ScrubStream;

use crate::fact::{ModelAnswer, ToolResult};
use crate::run_error::Failure;
use crate::secret::{REDACTED, is_secret_name};
use crate::transcript::ChatMessage;
use serde_json::Value;

/// A value shorter than this is no secret worth the name, and would be found everywhere.
const SHORTEST: usize = 8;

/// What stands among credentials and is none: it turns up in answers and results all the time.
const OPEN_CREDENTIALS: [&str; 15] = [
    "host",
    "hostname",
    "port",
    "db",
    "database",
    "username",
    "user",
    "tls",
    "url",
    "baseurl",
    "endpoint",
    "organization",
    "project",
    "region",
    "name",
];

/// The secrets of a flow. Shows none of them.
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
    /// Remembers a secret.
    pub fn add(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.len() < SHORTEST {
            return;
        }
        // In a model's answer, which is JSON, it may stand escaped.
        let quoted = serde_json::to_string(secret).unwrap_or_default();
        let escaped = quoted.trim_start_matches('"').strip_suffix('"').unwrap_or_default();
        for form in [secret, escaped, &escaped.replace('/', "\\/")] {
            if form.len() >= SHORTEST && !self.secrets.iter().any(|known| **known == *form) {
                self.secrets.push(form.into());
            }
        }
        // One that holds another is found first.
        self.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    /// Remembers the secrets of another, too.
    pub fn add_all(&mut self, other: &Self) {
        for secret in &other.secrets {
            if !self.secrets.contains(secret) {
                self.secrets.push(secret.clone());
            }
        }
        self.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    /// Remembers every secret in a node's properties, by their names.
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
                    let open = OPEN_CREDENTIALS.contains(&name.to_ascii_lowercase().as_str());
                    self.add_value((secret && !open) || is_secret_name(name), value);
                }
            }
            _ => {}
        }
    }

    /// Without the secrets in it.
    pub fn text(&self, text: &mut String) {
        for secret in &self.secrets {
            if text.contains(&**secret) {
                *text = text.replace(&**secret, REDACTED);
            }
        }
    }

    /// Where a text can be cut so that no part of a secret is left: at `end`, or before it. Looks no further behind it
    /// than the longest secret is.
    #[must_use]
    pub fn cut_at(&self, text: &str, end: usize) -> usize {
        let mut end = within(text, end);
        // Where one begins, another may not have ended.
        while let Some(start) = self.secrets.iter().filter_map(|secret| across(text, secret, end)).min() {
            end = start;
        }
        end
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => {
                let hides = |name: &String| self.secrets.iter().any(|secret| name.contains(&**secret));
                if map.keys().any(hides) {
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

    /// What a tool gave.
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

    /// What a model said.
    pub fn answer(&self, answer: &mut ModelAnswer) {
        self.text(&mut answer.text);
        self.unescaped(&mut answer.text);
        for told in [&mut answer.model, &mut answer.request_id].into_iter().flatten() {
            self.text(told);
        }
        for call in &mut answer.tool_calls {
            self.text(&mut call.arguments);
        }
    }

    /// JSON can write any character as its number. Where it does, the values are looked at, not the text.
    fn unescaped(&self, text: &mut String) {
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

    /// Why something failed.
    pub fn failure(&self, failure: &mut Failure) {
        self.text(&mut failure.message);
    }

    /// What a memory kept.
    pub fn turns(&self, turns: &mut [ChatMessage]) {
        for turn in turns {
            self.text(&mut turn.content);
            for call in &mut turn.tool_calls {
                self.text(&mut call.arguments);
            }
        }
    }
}

/// The last border between characters that is no further than this.
fn within(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Where a secret begins that is on both sides of `end`.
fn across(text: &str, secret: &str, end: usize) -> Option<usize> {
    let beside = secret.len().saturating_sub(1);
    let from = (end.saturating_sub(beside)..=end).find(|at| text.is_char_boundary(*at))?;
    let part = text.get(from..within(text, end.saturating_add(beside)))?;
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
    fn known_secrets_are_taken_out_wherever_they_stand() {
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
    fn json_may_write_it_otherwise() {
        let mut scrubber = Scrubber::default();
        scrubber.add("key/with\"quotes\\");
        for said in [
            r#"{"message":"key/with\"quotes\\ it is"}"#,
            r#"{"message":"key\/with\"quotes\\ it is"}"#,
            r#"{"message":"\u006bey/with\u0022quotes\\ it is"}"#,
        ] {
            let mut answer = ModelAnswer { text: said.to_owned(), ..ModelAnswer::default() };
            scrubber.answer(&mut answer);
            assert_eq!(answer.text, r#"{"message":"[redacted] it is"}"#, "{said}");
        }
        // What holds no secret stays as it was written.
        let text = r#"{"message":"\u0041", "message":1}"#;
        let mut answer = ModelAnswer { text: text.to_owned(), ..ModelAnswer::default() };
        scrubber.answer(&mut answer);
        assert_eq!(answer.text, text);
    }

    #[test]
    fn a_text_is_cut_where_no_secret_is() {
        let mut scrubber = scrubber();
        scrubber.add("sesame-and-ümlauts");
        let text = "ää open-sesame-and-ümlauts! sk-verysecret.";
        let at = |words: &str| text.find(words).unwrap();
        for end in 0..=text.len() + 9 {
            let cut = scrubber.cut_at(text, end);
            let expected = match end {
                // Two that share a part are left out both.
                _ if end > at("open") && end < at("!") => at("open"),
                _ if end > at("sk-") && end < at(".") => at("sk-"),
                1 | 3 => end - 1,
                _ => end.min(text.len()),
            };
            assert_eq!(cut, expected, "{end}");
        }
    }

    #[test]
    fn it_shows_none_of_them() {
        assert_eq!(format!("{:?}", scrubber()), "Scrubber(3 secrets)");
    }
}
