//! Removes known secrets from results, answers and recalled turns before they become facts.

mod encodings;
mod search;
mod stream;

pub use stream::ScrubStream;

use crate::fact::{ModelAnswer, ToolResult};
use crate::run_error::Failure;
use crate::secret::{REDACTED, is_connection_setting, is_secret_name};
use crate::source::Source;
use crate::transcript::{ChatMessage, OpaqueParts, RequestedCall};
use search::Search;
use serde_json::Value;
use std::ops::Range;
use std::sync::OnceLock;

/// The most bytes that an escape writes for one byte of a secret, as in `\u0061`.
const LONGEST_ESCAPE: usize = 6;

/// A shorter value would occur in ordinary text, so it is not scrubbed.
const SHORTEST: usize = 8;

/// The known secrets of a flow. Never prints them.
#[derive(Clone, Default)]
pub struct Scrubber {
    secrets: Vec<Box<str>>,
    /// Every form of the secrets that needs no decoding.
    forms: Vec<String>,
    /// Finds the forms. Made for the first text.
    search: OnceLock<Search>,
}

impl std::fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scrubber({} secrets)", self.secrets.len())
    }
}

impl Scrubber {
    /// Whether it knows no secret.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Adds a secret. Ignores one that is too short to be found reliably.
    pub fn add(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.len() < SHORTEST {
            return;
        }
        if !self.secrets.iter().any(|known| **known == *secret) {
            self.secrets.push(secret.into());
            self.forms.extend(encodings::forms(secret).into_iter().filter(|form| form.len() >= SHORTEST));
            self.search = OnceLock::new();
        }
    }

    /// Adds the secrets of another scrubber.
    pub fn add_all(&mut self, other: &Self) {
        other.secrets.iter().for_each(|secret| self.add(secret));
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

    /// Removes the secrets from a text, also in base64, percent-encoded, or escaped as in JSON.
    pub fn text(&self, text: &mut String) {
        if self.secrets.is_empty() {
            return;
        }
        for found in self.find(text).into_iter().rev() {
            text.replace_range(found, REDACTED);
        }
    }

    /// Where a text holds secrets, in order and without overlaps.
    fn find(&self, text: &str) -> Vec<Range<usize>> {
        let search = self.search();
        let mut found = search.find(text.as_bytes());
        encodings::decode_all(text, |decoded| found.extend(decoded.ranges(search.find(&decoded.bytes))));
        encodings::merge(found)
    }

    fn search(&self) -> &Search {
        self.search.get_or_init(|| Search::new(&self.forms))
    }

    /// The last place at or before `end` where a text can be cut without leaving a part of a secret. Looks no
    /// further than the longest secret can be written.
    #[must_use]
    pub fn cut_at(&self, text: &str, end: usize) -> usize {
        let mut end = floor_char_boundary(text, end);
        let longest = self.forms.iter().map(String::len).max().unwrap_or_default();
        let reach = longest.saturating_mul(LONGEST_ESCAPE);
        // The new end can be inside another secret.
        loop {
            let from = floor_char_boundary(text, end.saturating_sub(reach));
            let to = floor_char_boundary(text, end.saturating_add(reach));
            let found = self.find(text.get(from..to).unwrap_or_default());
            match found.iter().find(|found| (found.start + 1..found.end).contains(&(end - from))) {
                Some(found) => end = from + found.start,
                None => return end,
            }
        }
    }

    /// Removes the secrets from a value.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => {
                if map.keys().any(|name| !self.find(name).is_empty()) {
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
        self.sources(&mut result.sources);
    }

    /// Removes the secrets from the names of sources.
    pub fn sources(&self, sources: &mut [Source]) {
        sources.iter_mut().for_each(|source| self.text(&mut source.reference));
    }

    /// Removes the secrets from a model's answer.
    pub fn answer(&self, answer: &mut ModelAnswer) {
        let is_reasoned = answer.reasoning.is_some();
        self.reasoning(&mut answer.reasoning);
        let is_dropped = is_reasoned && answer.reasoning.is_none();
        // A stream splits texts, so that no search finds a secret that the answer has: then the response is dropped.
        answer.raw =
            answer.raw.take().filter(|_| !is_dropped && !self.is_in(answer)).map(|raw| self.cut_text(&raw));
        self.text(&mut answer.text);
        for reported in [&mut answer.model, &mut answer.request_id].into_iter().flatten() {
            self.text(reported);
        }
        self.calls(&mut answer.tool_calls);
    }

    /// Whether the text or a call of an answer has a secret.
    fn is_in(&self, answer: &ModelAnswer) -> bool {
        let calls = answer.tool_calls.iter().flat_map(|call| [&call.id, &call.name, &call.arguments]);
        !self.secrets.is_empty()
            && std::iter::once(&answer.text).chain(calls).any(|text| !self.find(text).is_empty())
    }

    /// Removes the secrets from a text that may be cut anywhere, so that its end can be a part of a secret. It may have
    /// been cut before other secrets were removed from it, so its length does not tell.
    fn cut_text(&self, text: &str) -> String {
        self.stream().push(text)
    }

    fn calls(&self, calls: &mut [RequestedCall]) {
        for call in calls {
            for text in [&mut call.id, &mut call.name, &mut call.arguments] {
                self.text(text);
            }
        }
    }

    /// Drops reasoning with a secret in it. A provider refuses reasoning that was changed.
    fn reasoning(&self, reasoning: &mut Option<OpaqueParts>) {
        if self.secrets.is_empty() {
            return;
        }
        if let Some(OpaqueParts { parts, .. }) = reasoning {
            let mut scrubbed = parts.clone();
            scrubbed.iter_mut().for_each(|part| self.value(part));
            if scrubbed != *parts {
                *reasoning = None;
            }
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
            self.calls(&mut turn.tool_calls);
            if let Some(id) = &mut turn.tool_call_id {
                self.text(id);
            }
            self.reasoning(&mut turn.reasoning);
        }
    }
}

/// The last character boundary at or before a position.
fn floor_char_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::Scrubber;
    use crate::archive::{SourceKind, Trust};
    use crate::fact::{MAX_RAW_BYTES, ModelAnswer, ToolResult};
    use crate::source::Source;
    use crate::transcript::{ChatMessage, ChatRole, OpaqueParts, RequestedCall};
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
    fn removes_known_secrets_from_the_names_of_sources() {
        let source = Source {
            kind: SourceKind::Knowledge,
            reference: "web/https://example.com/?key=sk-verysecret#1".to_owned(),
            version: None,
            digest: None,
            score: None,
            trust: Trust::External,
        };
        let mut result = ToolResult { sources: vec![source], ..ToolResult::ok(json!(1)) };
        scrubber().result(&mut result);
        assert_eq!(result.sources[0].reference, "web/https://example.com/?key=[redacted]#1");
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
        // Text without a secret stays unchanged, and so does the rest of a text with one.
        let text = r#"{"message":"\u0041", "message":1}"#;
        let mut answer = ModelAnswer { text: text.to_owned(), ..ModelAnswer::default() };
        scrubber.answer(&mut answer);
        assert_eq!(answer.text, text);
    }

    #[test]
    fn removes_secrets_from_the_response_as_it_was_sent() {
        let raw_of = |raw: String, text: &str| {
            let mut answer = ModelAnswer { text: text.to_owned(), raw: Some(raw), ..ModelAnswer::default() };
            scrubber().answer(&mut answer);
            answer.raw
        };
        let raw = r#"{"id":"r1","echo":"Bearer sk-verysecret"}"#.to_owned();
        assert_eq!(raw_of(raw, "hi").as_deref(), Some(r#"{"id":"r1","echo":"Bearer [redacted]"}"#));
        // The response may be cut within a secret, whatever its length is by now.
        assert_eq!(raw_of("ends in sk-very".to_owned(), "").as_deref(), Some("ends in "));
        // The pieces of a stream hide a secret, so nothing is kept.
        let pieces = r#"data: {"text":"sk-very"} data: {"text":"secret"}"#.to_owned();
        assert_eq!(raw_of(pieces, "It is sk-verysecret."), None);
    }

    /// The pieces of a stream hide a secret wherever it is in the answer.
    #[test]
    fn drops_the_response_if_a_call_or_the_reasoning_has_a_secret() {
        let pieces = r#"data: {"piece":"sk-very"} data: {"piece":"secret"}"#;
        let call = |id: &str, name: &str, arguments: &str| {
            let [id, name, arguments] = [id, name, arguments].map(str::to_owned);
            vec![RequestedCall { id, name, arguments }]
        };
        let thought =
            |text: &str| Some(OpaqueParts::new("w", vec![json!({"thinking": text, "signature": "s"})]));
        for (tool_calls, reasoning, is_kept) in [
            (call("id", "name", "{}"), thought("Hm."), true),
            (call("sk-verysecret", "name", "{}"), None, false),
            (call("id", "sk-verysecret", "{}"), None, false),
            (call("id", "name", "sk-verysecret"), None, false),
            (Vec::new(), thought("It is sk-verysecret."), false),
        ] {
            let raw = Some(pieces.to_owned());
            let mut answer = ModelAnswer { tool_calls, reasoning, raw, ..ModelAnswer::default() };
            scrubber().answer(&mut answer);
            assert_eq!(answer.raw.as_deref(), is_kept.then_some(pieces), "{answer:?}");
        }
    }

    /// A model that signs in removes its token first, which makes the response shorter.
    #[test]
    fn two_scrubbers_leave_no_part_of_a_secret_at_the_cut() {
        let mut first = Scrubber::default();
        first.add("bearer-token-of-a-model");
        let start =
            format!("{{\"echo\":\"bearer-token-of-a-model\",\"text\":\"{}", "x".repeat(MAX_RAW_BYTES));
        let raw = format!("{}sk-very", &start[..MAX_RAW_BYTES - 7]);
        let mut answer = ModelAnswer { raw: Some(raw), ..ModelAnswer::default() };
        first.answer(&mut answer);
        scrubber().answer(&mut answer);
        let raw = answer.raw.unwrap();
        assert!(
            raw.starts_with("{\"echo\":\"[redacted]\"") && raw.ends_with("xxx"),
            "{}",
            &raw[raw.len() - 20..]
        );
    }

    /// All ways in which a service can write a secret back.
    // SECURITY: secret-echo
    #[test]
    fn removes_encoded_secrets() {
        use base64::Engine as _;
        use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
        let secret = "sk~ü?very>>secret/+\\ key";
        let mut scrubber = Scrubber::default();
        scrubber.add(secret);
        let clean = |text: &str| {
            let mut clean = text.to_owned();
            scrubber.text(&mut clean);
            clean
        };
        let percent = |text: &str, lower: bool| -> String {
            let hex = |byte: u8| if lower { format!("%{byte:02x}") } else { format!("%{byte:02X}") };
            text.bytes().map(hex).collect()
        };
        let unicode =
            |text: &str| -> String { text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect() };
        let quoted = serde_json::to_string(secret).unwrap();
        let quoted = &quoted[1..quoted.len() - 1];
        let (start, end) = secret.split_at(6);
        for form in [
            secret.to_owned(),
            secret.replace(' ', "+"),
            percent(secret, true),
            percent(secret, false),
            format!("{}{end}", percent(start, true)),
            format!("{start}{}", percent(end, false)),
            percent(&percent(secret, true), false),
            quoted.to_owned(),
            quoted.replace('/', "\\/"),
            unicode(secret),
            unicode(secret).to_uppercase().replace("\\U", "\\u"),
            serde_json::to_string(&unicode(secret)).unwrap().replace('"', ""),
            percent(quoted, false),
            percent(&unicode(secret), true),
        ] {
            assert_eq!(clean(&format!("a {form} z")), "a [redacted] z", "{form}");
        }
        // In base64 the neighbours share a character with the secret.
        for shift in 0..4 {
            for engine in [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD] {
                let encoded = engine.encode(format!("{}{secret} and more", "x".repeat(shift)));
                for text in [encoded.clone(), percent(&encoded, true), encoded.replace('+', "%2B")] {
                    let clean = clean(&text);
                    assert!(clean.contains("[redacted]"), "{shift}: {text}");
                    assert!(clean.len() < text.len(), "{shift}: {clean}");
                }
                let alone = clean(&engine.encode(secret));
                assert!(alone.len() <= "[redacted]".len() + 4, "{alone}");
            }
        }
        for harmless in ["100% sure", "%zz %4", r"\u12 \ud800 \q", "c2VjcmV0", "a+b/c="] {
            assert_eq!(clean(harmless), harmless);
        }
    }

    #[test]
    fn a_number_beside_a_secret_stays_as_it_is() {
        let text = r#"{"n":123456789012345678901234567890,"k":"\u0073k-verysecret"}"#;
        let mut answer = ModelAnswer { text: text.to_owned(), ..ModelAnswer::default() };
        scrubber().answer(&mut answer);
        assert_eq!(answer.text, r#"{"n":123456789012345678901234567890,"k":"[redacted]"}"#);
    }

    #[test]
    fn finds_secrets_that_are_too_long_for_one_search() {
        let mut scrubber = scrubber();
        let long: String = (0..300_000).map(|n| format!("{n:x}-")).collect();
        scrubber.add(&long);
        let mut text = format!("a {long} b sk-verysecret %73k-verysecret");
        scrubber.text(&mut text);
        assert_eq!(text, "a [redacted] b [redacted] [redacted]");
    }

    #[test]
    fn a_cut_leaves_no_part_of_an_encoded_secret() {
        let text = "a %73k-verysecre%74 b";
        let end = text.find(" b").unwrap();
        for at in 0..=text.len() {
            let expected = if at > 2 && at < end { 2 } else { at };
            assert_eq!(scrubber().cut_at(text, at), expected, "{at}");
        }
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

    #[test]
    fn removes_secrets_from_calls_and_drops_reasoning_with_one() {
        let call = |text: &str| RequestedCall {
            id: text.to_owned(),
            name: text.to_owned(),
            arguments: text.to_owned(),
        };
        let reasoning = |text: &str| {
            let parts = vec![json!({"text": [text]})];
            Some(OpaqueParts::new("w", parts))
        };
        let mut answer = ModelAnswer {
            tool_calls: vec![call("x sk-verysecret")],
            reasoning: reasoning("I saw sk-verysecret"),
            ..ModelAnswer::default()
        };
        scrubber().answer(&mut answer);
        assert_eq!((answer.tool_calls, answer.reasoning), (vec![call("x [redacted]")], None));
        let mut turns = [ChatMessage {
            tool_calls: vec![call("sk-verysecret")],
            tool_call_id: Some("sk-verysecret".to_owned()),
            reasoning: reasoning("nothing"),
            ..ChatMessage::new(ChatRole::Assistant, "")
        }];
        scrubber().turns(&mut turns);
        assert_eq!(turns[0].tool_calls, [call("[redacted]")]);
        assert_eq!(
            (turns[0].tool_call_id.as_deref(), &turns[0].reasoning),
            (Some("[redacted]"), &reasoning("nothing"))
        );
    }
}
