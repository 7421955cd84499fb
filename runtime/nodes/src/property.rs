//! Paths to properties of messages: `payload`, `payload.rooms[0].name`, `headers["content-type"]`.

use redflow_contract::Message;
use serde_json::{Map, Value};

/// Steps of a path; each one is a level of nesting.
const MAX_STEPS: usize = 20;

/// The largest list index in a path. Setting it fills the list up to there.
const MAX_INDEX: usize = 999;

/// The path to a property; it has at least one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PropertyPath(Vec<PathStep>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathStep {
    Key(String),
    Index(usize),
}

impl PropertyPath {
    /// Parses a path; none if it is malformed or too long.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (first, mut rest) = text.split_at(text.find(['.', '[']).unwrap_or(text.len()));
        let mut steps = vec![key(first)?];
        while !rest.is_empty() {
            let step = if let Some(after) = rest.strip_prefix('.') {
                let (name, after) = after.split_at(after.find(['.', '[']).unwrap_or(after.len()));
                rest = after;
                // `list.0` is the same as `list[0]`.
                match name.parse::<usize>() {
                    Ok(index) => PathStep::Index(index),
                    Err(_) => key(name)?,
                }
            } else {
                let (inside, after) = rest.strip_prefix('[')?.split_once(']')?;
                rest = after;
                match inside.parse::<usize>() {
                    Ok(index) => PathStep::Index(index),
                    Err(_) => {
                        let quote = inside.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
                        key(inside.strip_prefix(quote)?.strip_suffix(quote)?)?
                    }
                }
            };
            steps.push(step);
        }
        let bounded = steps.iter().all(|step| !matches!(step, PathStep::Index(index) if *index > MAX_INDEX));
        (steps.len() <= MAX_STEPS && bounded).then_some(Self(steps))
    }

    /// The value at the path.
    pub(crate) fn get<'a>(&self, message: &'a Message) -> Option<&'a Value> {
        let (first, rest) = self.0.split_first()?;
        let PathStep::Key(first) = first else { return None };
        rest.iter().try_fold(message.get(first)?, |value, step| match step {
            PathStep::Key(key) => value.get(key),
            PathStep::Index(index) => value.get(index).or_else(|| value.get(index.to_string())),
        })
    }

    pub(crate) fn steps(&self) -> usize {
        self.0.len()
    }

    /// Sets the value at the path. Creates missing parents and replaces parents of another kind. Returns how
    /// many values it created.
    pub(crate) fn set(&self, message: &mut Message, value: Value) -> usize {
        let Some((PathStep::Key(first), rest)) = self.0.split_first() else { return 0 };
        let mut made = self.0.len();
        let mut slot = message.entry(first.clone()).or_insert(Value::Null);
        for step in rest {
            slot = match step {
                PathStep::Key(key) => {
                    if !slot.is_object() {
                        *slot = Value::Object(Map::new());
                    }
                    let Value::Object(map) = slot else { return made };
                    map.entry(key.clone()).or_insert(Value::Null)
                }
                PathStep::Index(index) => {
                    if let Value::Object(map) = slot {
                        map.entry(index.to_string()).or_insert(Value::Null)
                    } else {
                        if !slot.is_array() {
                            *slot = Value::Array(Vec::new());
                        }
                        let Value::Array(list) = slot else { return made };
                        if list.len() <= *index {
                            made += *index + 1 - list.len();
                            list.resize(*index + 1, Value::Null);
                        }
                        let Some(item) = list.get_mut(*index) else { return made };
                        item
                    }
                }
            };
        }
        *slot = value;
        made
    }

    /// Deletes the value at the path, if it exists.
    pub(crate) fn delete(&self, message: &mut Message) {
        let Some((last, parents)) = self.0.split_last() else { return };
        let (Some((PathStep::Key(first), between)), last) = (parents.split_first(), last) else {
            if let PathStep::Key(key) = last {
                message.shift_remove(key);
            }
            return;
        };
        let found = between.iter().try_fold(message.get_mut(first), |value, step| {
            let value = value?;
            Some(match step {
                PathStep::Key(key) => value.get_mut(key),
                PathStep::Index(index) => value.get_mut(index),
            })
        });
        match (found.flatten(), last) {
            (Some(Value::Object(map)), PathStep::Key(key)) => drop(map.shift_remove(key)),
            (Some(Value::Object(map)), PathStep::Index(index)) => drop(map.shift_remove(&index.to_string())),
            (Some(Value::Array(list)), PathStep::Index(index)) if *index < list.len() => {
                drop(list.remove(*index))
            }
            _ => {}
        }
    }
}

fn key(text: &str) -> Option<PathStep> {
    let plain = !text.is_empty() && !text.contains(['"', '\'', ']']);
    plain.then(|| PathStep::Key(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::PropertyPath;
    use serde_json::{Value, json};

    fn message() -> Value {
        json!({"payload": {"list": [1, {"deep": true}], "a b": 2, "0": "zero"}, "topic": "t"})
    }

    #[test]
    fn reads_the_value_at_a_path() {
        for (path, expected) in [
            ("topic", Some(json!("t"))),
            ("payload.list[1].deep", Some(json!(true))),
            ("payload.list.1.deep", Some(json!(true))),
            ("payload[\"a b\"]", Some(json!(2))),
            ("payload['a b']", Some(json!(2))),
            ("payload[0]", Some(json!("zero"))),
            ("payload.gone.far", None),
            ("topic.x", None),
            ("list[0]", None),
        ] {
            let found = PropertyPath::parse(path).unwrap();
            assert_eq!(found.get(message().as_object().unwrap()).cloned(), expected, "{path}");
        }
    }

    #[test]
    fn rejects_malformed_paths() {
        let long = vec!["a"; 21].join(".");
        for path in
            ["", ".", "a.", ".a", "a..b", "a[", "a[]", "a[b]", "a[\"b]", "a]b", "[0]", "a[1000]", &long]
        {
            assert_eq!(PropertyPath::parse(path), None, "{path}");
        }
    }

    #[test]
    fn sets_and_deletes_values() {
        for (path, expected) in [
            ("new", json!({"new": 7})),
            ("a.b", json!({"a": {"b": 7}})),
            ("a[2].b", json!({"a": [null, null, {"b": 7}]})),
            ("a['b c'].d", json!({"a": {"b c": {"d": 7}}})),
        ] {
            let mut made = serde_json::Map::new();
            let path = PropertyPath::parse(path).unwrap();
            path.set(&mut made, json!(7));
            assert_eq!(Value::Object(made.clone()), expected, "{path:?}");
            path.delete(&mut made);
            assert_eq!(path.get(&made), None, "{path:?}");
        }
        // A value that is neither an object nor a list is replaced.
        let mut message = message().as_object().unwrap().clone();
        PropertyPath::parse("topic.x").unwrap().set(&mut message, json!(7));
        assert_eq!(message["topic"], json!({"x": 7}));
        PropertyPath::parse("payload.list[0]").unwrap().delete(&mut message);
        assert_eq!(message["payload"]["list"], json!([{"deep": true}]));
        PropertyPath::parse("gone.far").unwrap().delete(&mut message);
    }
}
