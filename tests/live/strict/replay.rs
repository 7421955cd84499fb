//! Compares what comes back with what was sent.

use serde_json::{Map, Value};

/// A value with its keys in order and without marks of a cache, so that equal meanings are equal texts.
pub(super) fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut keys: Vec<&String> = object.keys().filter(|key| *key != "cache_control").collect();
            keys.sort_unstable();
            Value::Object(
                keys.into_iter().map(|key| (key.clone(), canonical(&object[key]))).collect::<Map<_, _>>(),
            )
        }
        Value::Array(list) => list.iter().map(canonical).collect(),
        other => other.clone(),
    }
}

/// Whether two values mean the same.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    canonical(one) == canonical(other)
}
