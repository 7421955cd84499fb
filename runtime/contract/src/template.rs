//! Texts and JSON values with `{{input.x}}`, which stands for a value of a tool's input.

use crate::Message;
use serde_json::{Map, Value};

/// The most placeholders of one text.
pub const MAX_PLACEHOLDERS: usize = 64;

/// A text with placeholders.
///
/// ```
/// use redflow_contract::template::TextTemplate;
/// use serde_json::json;
///
/// let template = TextTemplate::parse("Hello {{input.name}}").unwrap();
/// let input = json!({"name": "Ada"});
/// assert_eq!(template.fill_value(input.as_object().unwrap()), Ok(Some(json!("Hello Ada"))));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTemplate {
    /// Texts and placeholders, in their order.
    pub parts: Vec<TemplatePart>,
}

/// A part of a text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePart {
    /// Text, as it is.
    Text(String),
    /// The path of a value below the input.
    Input(Vec<String>),
}

impl TextTemplate {
    /// Reads a text.
    ///
    /// # Errors
    /// A sentence about the first placeholder that cannot be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        let mut placeholders = 0;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((inner, behind)) = after.split_once("}}") else {
                return Err("`{{` has no `}}`".to_owned());
            };
            let path: Vec<String> = inner.trim().split('.').map(str::to_owned).collect();
            let is_name = |name: &String| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
            };
            let (Some("input"), true) =
                (path.first().map(String::as_str), path.len() > 1 && path.iter().all(is_name))
            else {
                return Err("a placeholder must be `{{input.NAME}}`".to_owned());
            };
            placeholders += 1;
            if placeholders > MAX_PLACEHOLDERS {
                return Err(format!("there are more than {MAX_PLACEHOLDERS} placeholders"));
            }
            if !before.is_empty() {
                parts.push(TemplatePart::Text(before.to_owned()));
            }
            parts.push(TemplatePart::Input(path.into_iter().skip(1).collect()));
            rest = behind;
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Text(rest.to_owned()));
        }
        Ok(Self { parts })
    }

    /// The path of the placeholder, if the text is one placeholder and nothing else.
    #[must_use]
    pub fn single(&self) -> Option<&[String]> {
        match self.parts.as_slice() {
            [TemplatePart::Input(path)] => Some(path),
            _ => None,
        }
    }

    /// Fills the text. A placeholder alone becomes the value itself, and none if the input lacks it.
    ///
    /// # Errors
    /// A sentence, when a placeholder within a text has no value.
    pub fn fill_value(&self, input: &Message) -> Result<Option<Value>, String> {
        match self.single() {
            Some(path) => Ok(value_at(input, path).cloned()),
            None => self.fill_text(input, |text| Ok(text.to_owned())).map(|text| Some(Value::from(text))),
        }
    }

    /// Fills the text. `encode` writes the text of each value.
    ///
    /// # Errors
    /// A sentence, when a placeholder has no value, or `encode` refuses it.
    pub fn fill_text(
        &self,
        input: &Message,
        encode: impl Fn(&str) -> Result<String, String>,
    ) -> Result<String, String> {
        let mut filled = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => filled.push_str(text),
                TemplatePart::Input(path) => filled.push_str(&encode(&text_at(input, path)?)?),
            }
        }
        Ok(filled)
    }
}

/// A value of the input; none if it is absent or null.
#[must_use]
pub fn value_at<'a>(input: &'a Message, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let step = |value: &'a Value, name: &String| match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        other => other.get(name),
    };
    let found = rest.iter().try_fold(input.get(first)?, step)?;
    Some(found).filter(|value| !value.is_null())
}

fn text_at(input: &Message, path: &[String]) -> Result<String, String> {
    match value_at(input, path) {
        None => Err(format!("the input has no `{}`", path.join("."))),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Ok(other.to_string()),
    }
}

/// Checks every text of a JSON value.
///
/// # Errors
/// A sentence about the first placeholder that cannot be read.
pub fn check_value(template: &Value) -> Result<(), String> {
    match template {
        Value::String(text) => TextTemplate::parse(text).map(drop),
        Value::Array(items) => items.iter().try_for_each(check_value),
        Value::Object(map) => map.values().try_for_each(check_value),
        _ => Ok(()),
    }
}

/// Fills every text of a JSON value. A property whose placeholder has no value is left out; in a list it is null.
///
/// # Errors
/// A sentence, when a placeholder within a text has no value.
pub fn fill_value(template: &Value, input: &Message) -> Result<Value, String> {
    Ok(fill_part(template, input)?.unwrap_or_default())
}

fn fill_part(template: &Value, input: &Message) -> Result<Option<Value>, String> {
    Ok(Some(match template {
        Value::String(text) => return TextTemplate::parse(text)?.fill_value(input),
        Value::Array(items) => {
            let filled = items.iter().map(|item| fill_value(item, input));
            Value::Array(filled.collect::<Result<_, _>>()?)
        }
        Value::Object(map) => {
            let mut filled = Map::new();
            for (name, value) in map {
                if let Some(value) = fill_part(value, input)? {
                    filled.insert(name.clone(), value);
                }
            }
            Value::Object(filled)
        }
        other => other.clone(),
    }))
}

#[cfg(test)]
mod tests {
    use super::{MAX_PLACEHOLDERS, TextTemplate, check_value, fill_value};
    use serde_json::json;

    #[test]
    fn fills_texts_and_values() {
        let input = json!({"a": "x", "n": 5, "o": {"b": [1, {"c": "deep"}]}, "nothing": null});
        let template = json!({"text": "<{{input.a}}-{{ input.n }}>", "value": "{{input.o}}", "deep": "{{input.o.b.1.c}}",
            "left out": "{{input.missing}}", "null": "{{input.nothing}}", "list": ["{{input.missing}}", 1, true],
            "plain": "{ }} }", "a": {"b": "{{input.n}}"}});
        let filled = json!({"text": "<x-5>", "value": {"b": [1, {"c": "deep"}]}, "deep": "deep",
            "list": [null, 1, true], "plain": "{ }} }", "a": {"b": 5}});
        assert_eq!(fill_value(&template, input.as_object().unwrap()), Ok(filled));
        let missing = fill_value(&json!("a {{input.o.x}}"), input.as_object().unwrap());
        assert_eq!(missing, Err("the input has no `o.x`".to_owned()));
        // A value is never read as a template.
        let input = json!({"a": "{{input.a}}"});
        assert_eq!(fill_value(&json!("{{input.a}}!"), input.as_object().unwrap()), Ok(json!("{{input.a}}!")));
    }

    #[test]
    fn wrong_placeholders_are_reported() {
        for text in
            ["{{input.a", "{{input}}", "{{input.}}", "{{output.a}}", "{{input.a b}}", "{{}}", "{{input.ä}}"]
        {
            assert!(TextTemplate::parse(text).is_err(), "{text}");
            assert!(check_value(&json!([{"a": text}])).is_err(), "{text}");
        }
        assert!(TextTemplate::parse(&"{{input.a}}".repeat(MAX_PLACEHOLDERS)).is_ok());
        assert!(TextTemplate::parse(&"{{input.a}}".repeat(MAX_PLACEHOLDERS + 1)).is_err());
    }
}
