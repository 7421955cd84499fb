//! Strict reading of untrusted JSON text: bounded size, bounded depth, no duplicate keys.
//!
//! Flow files and model answers are read here. Nothing is ever corrected.

mod typed;

pub(crate) use typed::object_field;
pub use typed::{LIST_FOR_OBJECT, read_object, read_typed};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};

/// Limits on a JSON text.
#[derive(Debug, Clone, Copy)]
pub struct JsonLimits {
    /// The longest text that is read, in bytes.
    pub max_bytes: usize,
    /// The deepest nesting of arrays and objects; never more than [`MAX_DEPTH`].
    pub max_depth: usize,
}

/// The deepest nesting that the recursion limit of `serde_json` allows.
pub const MAX_DEPTH: usize = 120;

/// 2^63. Every smaller integer fits into 64 bits.
const INTEGER_END: f64 = 9_223_372_036_854_775_808.0;

/// Duplicate keys are listed up to this many; the rest are counted.
const LISTED_DUPLICATES: usize = 1_000;

/// A pointer to a duplicate is cut to this many characters.
const POINTER_CHARS: usize = 500;

/// Why a text was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonProblem {
    /// The text is too long.
    TooLarge {
        /// The length of the text, in bytes.
        bytes: usize,
        /// The longest allowed text, in bytes.
        limit: usize,
    },
    /// The text is nested too deep.
    TooDeep {
        /// The deepest allowed nesting.
        limit: usize,
        /// The byte at which the limit was passed.
        offset: usize,
    },
    /// The text is not exactly one JSON value.
    NotJson {
        /// What is wrong, in one phrase that quotes nothing from the text.
        message: String,
        /// The line of the problem, from 1.
        line: usize,
        /// The column of the problem, from 1 (0 at the start of a line).
        column: usize,
    },
    /// An object has the same key twice.
    DuplicateKeys {
        /// JSON pointers to the repeated keys, in reading order; the first 1,000.
        pointers: Vec<String>,
        /// The number of repeated keys.
        total: usize,
    },
}

/// Reads exactly one JSON value, and refuses an integer that would become another number.
///
/// Integers beyond 64 bits are read as floats. That is fine for those that a float writes back with the same
/// digits, as JavaScript does (`18446744073709552000`). All others would change.
///
/// # Errors
/// As for [`parse_strict`]. Such an integer is [`JsonProblem::NotJson`], as is a number beyond all floats.
pub fn parse_exact(text: &[u8], limits: JsonLimits) -> Result<Value, JsonProblem> {
    let (value, has_large_floats) = parse(text, limits)?;
    match has_large_floats.then(|| find_changed_integer(text)).flatten() {
        None => Ok(value),
        Some(offset) => {
            let before = &text[..offset];
            let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
            Err(JsonProblem::NotJson {
                message: "an integer has more digits than can be kept; send it as a string".to_owned(),
                line: before.iter().filter(|&&byte| byte == b'\n').count() + 1,
                column: offset - line_start + 1,
            })
        }
    }
}

/// Reads exactly one JSON value. Integers beyond 64 bits become the nearest float; see [`parse_exact`].
///
/// # Errors
/// The first problem that stops reading, or all duplicate keys at once.
pub fn parse_strict(text: &[u8], limits: JsonLimits) -> Result<Value, JsonProblem> {
    parse(text, limits).map(|(value, _)| value)
}

/// Also says whether a float is large enough to come from an integer beyond 64 bits.
fn parse(text: &[u8], limits: JsonLimits) -> Result<(Value, bool), JsonProblem> {
    if text.len() > limits.max_bytes {
        return Err(JsonProblem::TooLarge { bytes: text.len(), limit: limits.max_bytes });
    }
    check_depth(text, limits.max_depth.min(MAX_DEPTH))?;
    let mut findings = Findings::default();
    let mut reader = serde_json::Deserializer::from_slice(text);
    let seed = Strict { path: None, findings: &mut findings };
    let value = seed.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    match value {
        Err(error) => {
            Err(JsonProblem::NotJson { message: phrase(&error), line: error.line(), column: error.column() })
        }
        Ok(_) if findings.duplicates > 0 => {
            Err(JsonProblem::DuplicateKeys { pointers: findings.pointers, total: findings.duplicates })
        }
        Ok(value) => Ok((value, findings.has_large_floats)),
    }
}

/// Whether every integer in a JSON text is read as the number it is. For texts of editors, which Node-RED reads
/// less strictly than [`parse_exact`].
#[must_use]
pub fn keeps_integers(text: &str) -> bool {
    find_changed_integer(text.as_bytes()).is_none()
}

/// Writes each integer that [`parse_exact`] refuses as a text of its digits; none if there is none. For answers of
/// strangers, who cannot be asked to send it as a text.
#[must_use]
pub fn quote_changed_integers(text: &str) -> Option<String> {
    let (mut quoted, mut rest) = (String::new(), text);
    while let Some(offset) = find_changed_integer(rest.as_bytes()) {
        let (before, number) = rest.split_at(offset);
        let end = number.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(number.len());
        let (number, after) = number.split_at(end);
        quoted.extend([before, "\"", number, "\""]);
        rest = after;
    }
    (!quoted.is_empty()).then(|| quoted + rest)
}

/// The offset of the first integer in a JSON text that a float does not write back with the same digits.
fn find_changed_integer(text: &[u8]) -> Option<usize> {
    let (mut offset, mut in_string) = (0, false);
    while let Some(&byte) = text.get(offset) {
        match byte {
            b'\\' if in_string => offset += 1,
            b'"' => in_string = !in_string,
            b'-' | b'0'..=b'9' if !in_string => {
                let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let length = text[offset..].iter().take_while(is_part).count();
                if is_changed(&text[offset..offset + length]) {
                    return Some(offset);
                }
                offset += length - 1;
            }
            _ => {}
        }
        offset += 1;
    }
    None
}

/// Whether a number is an integer that becomes another one.
fn is_changed(number: &[u8]) -> bool {
    let Ok(number) = std::str::from_utf8(number) else { return false };
    let is_integer = number.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
    if !is_integer || number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return false;
    }
    let Ok(float) = number.parse::<f64>() else { return false };
    // The shortest digits that give this float, without the exponent.
    let shortest = format!("{float:e}").replace('.', "");
    let digits = shortest.split('e').next().unwrap_or_default();
    number.trim_end_matches('0') != digits.trim_end_matches('0')
}

/// Takes the position off serde_json's message, because the problem has its own fields for it.
fn phrase(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

/// Passes over the bytes without recursion, so that no depth can overflow the stack.
fn check_depth(text: &[u8], limit: usize) -> Result<(), JsonProblem> {
    if text.iter().filter(|byte| matches!(byte, b'[' | b'{')).count() <= limit {
        return Ok(());
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (offset, &byte) in text.iter().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                if depth > limit {
                    return Err(JsonProblem::TooDeep { limit, offset });
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

/// Counts the values of a JSON text without parsing it, because a parsed value takes far more memory than its
/// text. Every object key and list element counts.
#[must_use]
pub fn count_values(text: &[u8]) -> usize {
    let (mut values, mut in_string, mut escaped) = (0, false, false);
    for &byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => values += 1,
            _ => {}
        }
    }
    values
}

/// Whether a value nests at most this many levels.
#[must_use]
pub fn nests_within(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| nests_within(item, levels - 1)),
        Value::Object(map) => levels > 0 && map.values().all(|item| nests_within(item, levels - 1)),
        _ => true,
    }
}

/// Estimates the bytes of a copy of a value.
#[must_use]
pub fn size_of(value: &Value) -> usize {
    const NODE: usize = 32;
    match value {
        Value::String(text) => NODE + text.len(),
        Value::Array(items) => NODE + items.iter().map(size_of).sum::<usize>(),
        Value::Object(map) => {
            NODE + map.iter().map(|(key, value)| NODE + key.len() + size_of(value)).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => NODE,
    }
}

/// Appends one token to a JSON pointer (RFC 6901).
pub fn push_pointer(pointer: &mut String, token: &str) {
    pointer.push('/');
    for c in token.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// What was noticed while reading.
#[derive(Default)]
struct Findings {
    /// Pointers to the first duplicate keys.
    pointers: Vec<String>,
    /// The number of duplicate keys.
    duplicates: usize,
    has_large_floats: bool,
}

impl Findings {
    fn record_duplicate(&mut self, path: Path<'_>) {
        self.duplicates += 1;
        if self.pointers.len() < LISTED_DUPLICATES {
            let mut pointer = String::new();
            path.write(&mut pointer);
            if let Some((end, _)) = pointer.char_indices().nth(POINTER_CHARS) {
                pointer.truncate(end);
                pointer.shrink_to_fit();
                pointer.push('…');
            }
            self.pointers.push(pointer);
        }
    }
}

/// The path to the value being read. It becomes text only for a report.
#[derive(Clone, Copy)]
struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

impl Path<'_> {
    fn write(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.write(out);
        }
        match self.step {
            Step::Key(_) if out.len() > POINTER_CHARS * 4 => {}
            Step::Key(key) => {
                let end = key.char_indices().nth(POINTER_CHARS).map_or(key.len(), |(end, _)| end);
                push_pointer(out, &key[..end]);
            }
            Step::Index(index) => push_pointer(out, &index.to_string()),
        }
    }
}

struct Strict<'a> {
    path: Option<&'a Path<'a>>,
    findings: &'a mut Findings,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        self.findings.has_large_floats |= value.abs() >= INTEGER_END;
        Ok(Value::from(value))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let path = Path { parent: self.path, step: Step::Index(items.len()) };
            let seed = Strict { path: Some(&path), findings: &mut *self.findings };
            match seq.next_element_seed(seed)? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let path = Path { parent: self.path, step: Step::Key(&key) };
            let value =
                access.next_value_seed(Strict { path: Some(&path), findings: &mut *self.findings })?;
            match map.entry(key) {
                Entry::Vacant(slot) => drop(slot.insert(value)),
                Entry::Occupied(mut slot) => {
                    self.findings.record_duplicate(Path { parent: self.path, step: Step::Key(slot.key()) });
                    slot.insert(value);
                }
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::{JsonLimits, JsonProblem, parse_exact, parse_strict};
    use proptest::prelude::*;
    use serde_json::json;

    const LIMITS: JsonLimits = JsonLimits { max_bytes: 1 << 20, max_depth: 100 };

    fn parse(text: &str) -> Result<serde_json::Value, JsonProblem> {
        parse_strict(text.as_bytes(), LIMITS)
    }

    #[test]
    fn reads_exactly_one_value() {
        assert_eq!(parse(r#" {"b":[1,-2,1.5,"é\n"],"a":null} "#), Ok(json!({"b":[1,-2,1.5,"é\n"],"a":null})));
        for bad in ["", " ", "{", "{}{}", "{} x", "[1,]", "{'a':1}", "\u{feff}{}", "NaN", "\"\\ud800\"", "01"]
        {
            assert!(matches!(parse(bad), Err(JsonProblem::NotJson { .. })), "{bad:?}");
        }
        assert!(matches!(parse_strict(b"\"\xff\"", LIMITS), Err(JsonProblem::NotJson { .. })));
    }

    // SECURITY: strict-json
    #[test]
    fn an_integer_is_kept_or_refused_and_never_changed() {
        let exact = |text: &str| parse_exact(text.as_bytes(), LIMITS);
        for kept in [
            "18446744073709551615",
            "-9223372036854775808",
            "0",
            "-0",
            // Floats round, and some integers are floats by nature: these are the ones that JavaScript writes.
            "18446744073709552000",
            "-100000000000000000000",
            "0.1234567890123456789012345678901234567890",
            "1e30",
            "12345678901234567890123.5",
            r#"["123456789012345678901234567890", "\"123456789012345678901", 1e20]"#,
        ] {
            assert_eq!(exact(kept), parse(kept), "{kept}");
            assert!(exact(kept).is_ok(), "{kept}");
        }
        for changed in [
            "123456789012345678901234567890",
            "18446744073709551616",
            "-9223372036854775809",
            "18446744073709551617",
            "9999999999999999999999999999999999999999",
        ] {
            assert!(parse(changed).is_ok(), "other readers still round it: {changed}");
            let Err(JsonProblem::NotJson { message, line, column }) =
                exact(&format!("{{\"a\\\"1\": 1e19,\n \"b\": [{changed}]}}"))
            else {
                panic!("{changed}")
            };
            assert_eq!((line, column), (2, 8), "{changed}");
            assert!(!message.contains(changed) && message.contains("string"), "{message}");
        }
        assert!(matches!(exact("1e400"), Err(JsonProblem::NotJson { .. })));
    }

    #[test]
    fn depth_and_size_are_bounded() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(parse(&deep(100)).is_ok());
        assert_eq!(parse(&deep(101)), Err(JsonProblem::TooDeep { limit: 100, offset: 100 }));
        assert!(matches!(parse(&"[".repeat(100_000)), Err(JsonProblem::TooDeep { .. })));
        assert!(parse(&format!("\"{}\\\"[\"", "[".repeat(500))).is_ok(), "brackets in strings do not nest");
        let limits = JsonLimits { max_bytes: 3, max_depth: 9 };
        assert_eq!(parse_strict(b"[  ]", limits), Err(JsonProblem::TooLarge { bytes: 4, limit: 3 }));
    }

    #[test]
    fn counts_the_nesting_of_values() {
        for (value, levels) in [(json!(1), 0), (json!([]), 1), (json!({"a": [1, {"b": 2}]}), 3)] {
            assert!(super::nests_within(&value, levels), "{value}");
            assert!(levels == 0 || !super::nests_within(&value, levels - 1), "{value}");
        }
    }

    #[test]
    fn counts_values_without_parsing() {
        for (text, values) in [("1", 0), ("[0,0,0]", 3), (r#"{"a,[{\"":[],"b":"x"}"#, 3), ("[[[", 3)] {
            assert_eq!(super::count_values(text.as_bytes()), values, "{text}");
        }
    }

    #[test]
    fn reports_every_duplicate_key() {
        let text = r#"{"a":1,"b":[{"x/y":1,"x/y":2}],"a":{"k":0,"k":0}}"#;
        let pointers = ["/b/0/x~1y", "/a/k", "/a"].map(str::to_owned).to_vec();
        assert_eq!(parse(text), Err(JsonProblem::DuplicateKeys { pointers, total: 3 }));
        let many = format!("{{{}\"a\":1}}", "\"a\":1,".repeat(1_500));
        let Err(JsonProblem::DuplicateKeys { pointers, total }) = parse(&many) else { panic!() };
        assert_eq!((pointers.len(), total), (1_000, 1_500));
        let long = format!("{{\"{}\":{{\"a\":1,\"a\":1}}}}", "k".repeat(10_000));
        let Err(JsonProblem::DuplicateKeys { pointers, .. }) = parse(&long) else { panic!() };
        assert_eq!(pointers[0].chars().count(), 501);
    }

    proptest! {
        #[test]
        fn every_integer_that_is_read_is_written_back(digits in "-?[1-9][0-9]{0,30}") {
            if let Ok(value) = parse_exact(digits.as_bytes(), LIMITS) {
                let written = value.to_string();
                let plain = written.parse::<f64>().map(|float| format!("{float:e}"));
                let same = digits.parse::<f64>().map(|float| format!("{float:e}"));
                prop_assert!(written == digits || plain == same);
                prop_assert!(written == digits || digits.trim_end_matches('0').trim_start_matches('-').len() <= 17);
            }
        }

        #[test]
        fn never_panics_and_agrees_with_serde_json(text in r#"[\[\]{}",:0-9ae\\. -]{0,40}"#) {
            match parse(&text) {
                Ok(value) => prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value),
                Err(JsonProblem::NotJson { .. }) => prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_err()),
                Err(_) => {}
            }
        }
    }
}
