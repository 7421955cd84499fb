//! A strict reader of YAML 1.2.
//!
//! The result is the JSON value that a reader of the text expects. So the reader refuses what copies values or
//! changes their type out of sight: anchors, aliases, tags, merge keys, duplicate keys and several documents. Plain
//! words follow the core schema: `no` is a text, `0x1F` a number. Nothing is recursive, and no alias is followed, so
//! the work is linear in the bytes.

use granit_parser::{Event, Marker, Options, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

/// Why a text was refused.
pub(super) struct YamlProblem {
    /// The line and the column, both from 1.
    pub(super) place: (usize, usize),
    pub(super) reason: String,
    pub(super) help: &'static str,
}

/// Reads one document; `null` if the text has none.
pub(super) fn parse(text: &str, max_depth: usize) -> Result<Value, YamlProblem> {
    let mut options = Options::default();
    // One more, so that our own text names the limit.
    options.block_nesting_limit = max_depth + 1;
    options.flow_nesting_limit = max_depth + 1;
    options.disallow_directives = true;
    let mut reader = Reader { max_depth, open: Vec::new(), document: None };
    for item in Parser::new_from_str_with_options(text, options) {
        let (event, span) = item.map_err(|error| {
            problem(error.marker(), error.info(), "Fix the YAML there; often an indent, a quote or a colon.")
        })?;
        reader.take(event, &span.start)?;
    }
    Ok(reader.document.unwrap_or_default())
}

struct Reader {
    max_depth: usize,
    /// The lists and objects that are not complete, from the outside in.
    open: Vec<Collection>,
    /// The value of the first document.
    document: Option<Value>,
}

enum Collection {
    List(Vec<Value>),
    /// The key is the one whose value follows.
    Object {
        map: Map<String, Value>,
        key: Option<String>,
    },
}

impl Reader {
    fn take(&mut self, event: Event<'_>, at: &Marker) -> Result<(), YamlProblem> {
        refuse_references(&event, at)?;
        match event {
            Event::DocumentStart(..) if self.document.is_some() => Err(problem(
                at,
                "a second document begins",
                "Write one document; remove `---` and what follows.",
            )),
            Event::Scalar(text, style, ..) => match self.open.last_mut() {
                Some(Collection::Object { map, key: key @ None }) => {
                    *key = Some(read_key(&text, style, map, at)?);
                    Ok(())
                }
                _ => {
                    let value = read_scalar(&text, style, at)?;
                    self.place(value);
                    Ok(())
                }
            },
            Event::SequenceStart(..) => self.begin(Collection::List(Vec::new()), at),
            Event::MappingStart(..) => self.begin(Collection::Object { map: Map::new(), key: None }, at),
            Event::SequenceEnd | Event::MappingEnd => {
                match self.open.pop() {
                    Some(Collection::List(items)) => self.place(Value::Array(items)),
                    Some(Collection::Object { map, .. }) => self.place(Value::Object(map)),
                    None => {}
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, collection: Collection, at: &Marker) -> Result<(), YamlProblem> {
        if matches!(self.open.last(), Some(Collection::Object { key: None, .. })) {
            return Err(problem(at, "a key is a list or an object", "Write a text as the key."));
        }
        if self.open.len() >= self.max_depth {
            let reason = format!("it is nested deeper than {} levels", self.max_depth);
            return Err(problem(at, reason, "Use fewer levels."));
        }
        self.open.push(collection);
        Ok(())
    }

    fn place(&mut self, value: Value) {
        match self.open.last_mut() {
            None => self.document = Some(value),
            Some(Collection::List(items)) => items.push(value),
            Some(Collection::Object { map, key }) => {
                if let Some(key) = key.take() {
                    map.insert(key, value);
                }
            }
        }
    }
}

fn refuse_references(event: &Event<'_>, at: &Marker) -> Result<(), YamlProblem> {
    let (anchor, tag) = match event {
        Event::Alias(_) => {
            return Err(problem(
                at,
                "an alias (`*`) is not allowed",
                "Write the value again, or quote the text.",
            ));
        }
        Event::Scalar(_, _, anchor, tag)
        | Event::SequenceStart(_, anchor, tag)
        | Event::MappingStart(_, anchor, tag) => (*anchor, tag.is_some()),
        _ => return Ok(()),
    };
    if anchor != 0 {
        return Err(problem(at, "an anchor (`&`) is not allowed", "Remove the anchor, or quote the text."));
    }
    if tag {
        return Err(problem(at, "a tag (`!`) is not allowed", "Remove the tag, or quote the text."));
    }
    Ok(())
}

fn read_key(
    text: &str,
    style: ScalarStyle,
    map: &Map<String, Value>,
    at: &Marker,
) -> Result<String, YamlProblem> {
    if style == ScalarStyle::Plain && text == "<<" {
        return Err(problem(at, "a merge key (`<<`) is not allowed", "Write the keys themselves."));
    }
    if !read_scalar(text, style, at)?.is_string() {
        return Err(problem(at, "a key is no text", "Put the key into quotes."));
    }
    if map.contains_key(text) {
        return Err(problem(at, "the key stands twice in its object", "Remove one of the two."));
    }
    Ok(text.to_owned())
}

/// Reads a scalar by the core schema. Only a plain one can be something else than a text.
fn read_scalar(text: &str, style: ScalarStyle, at: &Marker) -> Result<Value, YamlProblem> {
    if style != ScalarStyle::Plain {
        return Ok(Value::from(text));
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Ok(Value::Null),
        "true" | "True" | "TRUE" => Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => Ok(Value::Bool(false)),
        _ if is_number(text) => read_number(text).map(Value::Number).ok_or_else(|| {
            problem(at, "the number is too large or not finite", "Use a smaller number, or quote the text.")
        }),
        _ => Ok(Value::from(text)),
    }
}

/// Whether the core schema reads a text as a number.
fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    if let Some((digits, radix)) = radix_digits(text) {
        return !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    is_digits(whole)
        && is_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && is_digits(exponent))
}

/// The number; none if JSON cannot hold it.
fn read_number(text: &str) -> Option<Number> {
    if let Some((digits, radix)) = radix_digits(text) {
        return u64::from_str_radix(digits, radix).ok().map(Number::from);
    }
    if text.contains(['.', 'e', 'E']) {
        return text.parse().ok().and_then(Number::from_f64);
    }
    text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from)).ok()
}

fn radix_digits(text: &str) -> Option<(&str, u32)> {
    let octal = text.strip_prefix("0o").map(|digits| (digits, 8));
    octal.or_else(|| text.strip_prefix("0x").map(|digits| (digits, 16)))
}

fn problem(at: &Marker, reason: impl Into<String>, help: &'static str) -> YamlProblem {
    YamlProblem { place: (at.line(), at.col() + 1), reason: reason.into(), help }
}
