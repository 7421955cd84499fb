//! Values as Node-RED sends them to its debug sidebar: a text, and a word on what it is.
//!
//! Owns the conventions of that: what is cut where, and what stands for something that JSON has no word for. Lengths
//! are counted as JavaScript counts them.

use serde_json::{Map, Number, Value, json};

/// Characters of a text, and elements of a list, that are shown.
const MAX_LENGTH: usize = 1000;

/// Whole numbers up to here are whole in JavaScript too.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A value on its way to the sidebar.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Encoded {
    /// The value, or its JSON.
    pub(crate) msg: String,
    /// What it is: `string[5]`, `Object`, `array[3]`, `number`, `boolean`, `null`.
    pub(crate) format: String,
}

/// Makes a value ready to be shown.
pub(crate) fn encode(value: &Value) -> Encoded {
    let (msg, format) = match value {
        Value::Null => ("(undefined)".to_owned(), "null".to_owned()),
        Value::Bool(flag) => (flag.to_string(), "boolean".to_owned()),
        Value::Number(number) => (whole(number).to_string(), "number".to_owned()),
        Value::String(text) => return encode_text(text),
        Value::Array(items) => (shortened(value).to_string(), format!("array[{}]", items.len())),
        Value::Object(_) => (shortened(value).to_string(), "Object".to_owned()),
    };
    Encoded { msg, format }
}

/// The same for a text.
pub(crate) fn encode_text(text: &str) -> Encoded {
    Encoded { msg: cut(text), format: format!("string[{}]", length(text)) }
}

fn shortened(value: &Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) => value.clone(),
        Value::Number(number) => Value::Number(whole(number)),
        Value::String(text) => Value::String(cut(text)),
        Value::Array(items) => {
            let shown = items.iter().take(MAX_LENGTH).map(shortened).collect();
            if items.len() <= MAX_LENGTH {
                return Value::Array(shown);
            }
            json!({"__enc__": true, "type": "array", "data": Value::Array(shown), "length": items.len()})
        }
        Value::Object(map) => Value::Object(shortened_object(map)),
    }
}

fn shortened_object(map: &Map<String, Value>) -> Map<String, Value> {
    let one = |(key, value): (&String, &Value)| {
        // An HTTP request and the answer to it, as Node-RED has them on messages.
        let is_internal = key == "_req" || key == "_res";
        let internal = || json!({"__enc__": true, "type": "internal"});
        (key.clone(), if is_internal { internal() } else { shortened(value) })
    };
    let Some(bytes) = bytes_of(map) else { return map.iter().map(one).collect() };
    let mut shown: Map<String, Value> = map.iter().filter(|(key, _)| *key != "data").map(one).collect();
    shown.insert("data".to_owned(), bytes.iter().take(MAX_LENGTH).map(shortened).collect());
    shown.insert("__enc__".to_owned(), Value::Bool(true));
    shown.insert("length".to_owned(), Value::from(bytes.len()));
    shown
}

/// The bytes, if this is what becomes of a `Buffer` in JSON.
fn bytes_of(map: &Map<String, Value>) -> Option<&Vec<Value>> {
    let is_buffer = map.get("type").and_then(Value::as_str) == Some("Buffer");
    map.get("data").and_then(Value::as_array).filter(|_| is_buffer)
}

/// JavaScript has one kind of number and writes 1.0 as 1.
fn whole(number: &Number) -> Number {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < EXACT =>
        {
            #[allow(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
            Number::from(float as i64)
        }
        _ => number.clone(),
    }
}

fn length(text: &str) -> usize {
    text.encode_utf16().count()
}

fn cut(text: &str) -> String {
    if text.len() <= MAX_LENGTH || length(text) <= MAX_LENGTH {
        return text.to_owned();
    }
    let mut left = MAX_LENGTH;
    // A character that takes two places is not cut in half.
    let fits = |char: &char| {
        let fits = char.len_utf16() <= left;
        left = if fits { left - char.len_utf16() } else { 0 };
        fits
    };
    text.chars().take_while(fits).collect::<String>() + "..."
}

#[cfg(test)]
mod tests {
    use super::{Encoded, encode};
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    fn encoded(value: &Value) -> (String, String) {
        let Encoded { msg, format } = encode(value);
        (msg, format)
    }

    #[test]
    fn values_are_shown_as_the_sidebar_knows_them() {
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
            // Not what becomes of a Buffer.
            (json!({"type": "Buffer"}), r#"{"type":"Buffer"}"#, "Object"),
            (json!({"type": "Buffer", "data": "x"}), r#"{"type":"Buffer","data":"x"}"#, "Object"),
        ];
        for (value, msg, format) in rows {
            assert_eq!(encoded(&value), (msg.to_owned(), format.to_owned()));
        }
    }

    #[test]
    fn long_lists_are_cut_and_say_how_long_they_were() {
        let long: Vec<u32> = (0..1500).collect();
        let shown = json!({"__enc__": true, "type": "array", "data": long[..1000], "length": 1500});
        assert_eq!(encoded(&json!(long)), (shown.to_string(), "array[1500]".to_owned()));
        let inside = encoded(&json!({"list": long, "bytes": {"type": "Buffer", "data": long}})).0;
        let bytes = json!({"type": "Buffer", "data": long[..1000], "__enc__": true, "length": 1500});
        assert_eq!(inside, json!({"list": shown, "bytes": bytes}).to_string());
        assert_eq!(
            encoded(&json!(long[..1000])),
            (json!(long[..1000]).to_string(), "array[1000]".to_owned())
        );
    }

    #[test]
    fn a_character_that_takes_two_places_is_not_cut_in_half() {
        let text = format!("{}🙂🙂", "x".repeat(999));
        assert_eq!(encoded(&json!(text)), (format!("{}...", "x".repeat(999)), "string[1003]".to_owned()));
        // Many bytes, few characters.
        let short = "é".repeat(900);
        assert_eq!(encoded(&json!(short)), (short, "string[900]".to_owned()));
    }
}
