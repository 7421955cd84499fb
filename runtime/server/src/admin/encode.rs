//! Encodes values as Node-RED sends them to its debug sidebar: a text and a format.
//!
//! Owns Node-RED's conventions: where values are cut, and how values that JSON lacks are written. Lengths are
//! counted as JavaScript counts them.

use serde_json::{Map, Number, Value, json};

/// Characters of a text, and elements of a list, that are sent.
const MAX_LENGTH: usize = 1000;

/// JavaScript represents whole numbers below this exactly.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// A value in the format of the sidebar.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DebugValue {
    /// The text itself, or the JSON of another value.
    pub(crate) msg: String,
    /// The type: `string[5]`, `Object`, `array[3]`, `number`, `boolean`, `null`.
    pub(crate) format: String,
}

pub(crate) fn encode(value: &Value) -> DebugValue {
    let (msg, format) = match value {
        Value::Null => ("(undefined)".to_owned(), "null".to_owned()),
        Value::Bool(flag) => (flag.to_string(), "boolean".to_owned()),
        Value::Number(number) => (to_js_number(number).to_string(), "number".to_owned()),
        Value::String(text) => return encode_text(text),
        Value::Array(items) => (shorten(value).to_string(), format!("array[{}]", items.len())),
        Value::Object(_) => (shorten(value).to_string(), "Object".to_owned()),
    };
    DebugValue { msg, format }
}

pub(crate) fn encode_text(text: &str) -> DebugValue {
    DebugValue { msg: shorten_text(text), format: format!("string[{}]", utf16_length(text)) }
}

fn shorten(value: &Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) => value.clone(),
        Value::Number(number) => Value::Number(to_js_number(number)),
        Value::String(text) => Value::String(shorten_text(text)),
        Value::Array(items) => {
            let start = items.iter().take(MAX_LENGTH).map(shorten).collect();
            if items.len() <= MAX_LENGTH {
                return Value::Array(start);
            }
            json!({"__enc__": true, "type": "array", "data": Value::Array(start), "length": items.len()})
        }
        Value::Object(map) => Value::Object(shorten_object(map)),
    }
}

fn shorten_object(map: &Map<String, Value>) -> Map<String, Value> {
    let shorten_property = |(key, value): (&String, &Value)| {
        // The request and response objects of Node-RED's HTTP nodes.
        let is_internal = key == "_req" || key == "_res";
        let internal = || json!({"__enc__": true, "type": "internal"});
        (key.clone(), if is_internal { internal() } else { shorten(value) })
    };
    let Some(bytes) = buffer_bytes(map) else { return map.iter().map(shorten_property).collect() };
    let rest = map.iter().filter(|(key, _)| *key != "data");
    let mut object: Map<String, Value> = rest.map(shorten_property).collect();
    object.insert("data".to_owned(), bytes.iter().take(MAX_LENGTH).map(shorten).collect());
    object.insert("__enc__".to_owned(), Value::Bool(true));
    object.insert("length".to_owned(), Value::from(bytes.len()));
    object
}

/// The bytes, if the object is the JSON of a Node.js `Buffer`.
fn buffer_bytes(map: &Map<String, Value>) -> Option<&Vec<Value>> {
    let is_buffer = map.get("type").and_then(Value::as_str) == Some("Buffer");
    map.get("data").and_then(Value::as_array).filter(|_| is_buffer)
}

/// Writes 1.0 as 1, as JavaScript does.
fn to_js_number(number: &Number) -> Number {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < MAX_EXACT =>
        {
            #[allow(clippy::cast_possible_truncation, reason = "the number is whole and small enough")]
            Number::from(float as i64)
        }
        _ => number.clone(),
    }
}

fn utf16_length(text: &str) -> usize {
    text.encode_utf16().count()
}

fn shorten_text(text: &str) -> String {
    if text.len() <= MAX_LENGTH || utf16_length(text) <= MAX_LENGTH {
        return text.to_owned();
    }
    let mut left = MAX_LENGTH;
    // A character of two UTF-16 units is not cut in half.
    let fits = |char: &char| {
        let fits = char.len_utf16() <= left;
        left = if fits { left - char.len_utf16() } else { 0 };
        fits
    };
    text.chars().take_while(fits).collect::<String>() + "..."
}

#[cfg(test)]
mod tests {
    use super::{DebugValue, encode};
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    fn encoded(value: &Value) -> (String, String) {
        let DebugValue { msg, format } = encode(value);
        (msg, format)
    }

    #[test]
    fn encodes_values_as_node_red_does() {
        let (x1000, x1001) = ("x".repeat(1000), "x".repeat(1001));
        let rows = [
            (json!("hello"), "hello", "string[5]"),
            (json!(""), "", "string[0]"),
            // JavaScript counts an emoji as two.
            (json!("a🙂"), "a🙂", "string[3]"),
            (json!(x1000), x1000.as_str(), "string[1000]"),
            (json!(x1001), &format!("{x1000}..."), "string[1001]"),
            (json!(42), "42", "number"),
            (json!(42.0), "42", "number"),
            (json!(-0.5), "-0.5", "number"),
            (json!(true), "true", "boolean"),
            (json!(false), "false", "boolean"),
            (Value::Null, "(undefined)", "null"),
            (json!([]), "[]", "array[0]"),
            (json!([1, 2.0, "x"]), r#"[1,2,"x"]"#, "array[3]"),
            (json!({}), "{}", "Object"),
            (json!({"b": 1, "a": [null, {"c": "d"}]}), r#"{"b":1,"a":[null,{"c":"d"}]}"#, "Object"),
            (json!({"payload": x1001}), &format!(r#"{{"payload":"{x1000}..."}}"#), "Object"),
            (
                json!({"_req": {"headers": {}}, "_res": 1, "x": {"_req": 2}}),
                r#"{"_req":{"__enc__":true,"type":"internal"},"_res":{"__enc__":true,"type":"internal"},"x":{"_req":{"__enc__":true,"type":"internal"}}}"#,
                "Object",
            ),
            (
                json!({"b": {"type": "Buffer", "data": [1, 2, 3]}}),
                r#"{"b":{"type":"Buffer","data":[1,2,3],"__enc__":true,"length":3}}"#,
                "Object",
            ),
            // Not the JSON of a Buffer.
            (json!({"type": "Buffer"}), r#"{"type":"Buffer"}"#, "Object"),
            (json!({"type": "Buffer", "data": "x"}), r#"{"type":"Buffer","data":"x"}"#, "Object"),
        ];
        for (value, msg, format) in rows {
            assert_eq!(encoded(&value), (msg.to_owned(), format.to_owned()));
        }
    }

    #[test]
    fn cuts_long_lists_and_sends_their_length() {
        let long: Vec<u32> = (0..1500).collect();
        let cut = json!({"__enc__": true, "type": "array", "data": long[..1000], "length": 1500});
        assert_eq!(encoded(&json!(long)), (cut.to_string(), "array[1500]".to_owned()));
        let inside = encoded(&json!({"list": long, "bytes": {"type": "Buffer", "data": long}})).0;
        let bytes = json!({"type": "Buffer", "data": long[..1000], "__enc__": true, "length": 1500});
        assert_eq!(inside, json!({"list": cut, "bytes": bytes}).to_string());
        assert_eq!(
            encoded(&json!(long[..1000])),
            (json!(long[..1000]).to_string(), "array[1000]".to_owned())
        );
    }

    #[test]
    fn does_not_cut_a_character_in_half() {
        let text = format!("{}🙂🙂", "x".repeat(999));
        assert_eq!(encoded(&json!(text)), (format!("{}...", "x".repeat(999)), "string[1003]".to_owned()));
        // Many bytes, few characters.
        let short = "é".repeat(900);
        assert_eq!(encoded(&json!(short)), (short, "string[900]".to_owned()));
    }
}
