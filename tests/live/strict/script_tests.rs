use super::{Ask, Choice, Format, Part, answer, schema_in, value_of};
use serde_json::{Value, json};

fn calculator() -> (String, Value) {
    let schema = json!({"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]});
    ("calculator".to_owned(), schema)
}

fn finish() -> (String, Value) {
    let schema =
        json!({"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]});
    ("finish_step".to_owned(), schema)
}

fn names(parts: &[Part]) -> Vec<&str> {
    let name = |part: &'_ Part| match part {
        Part::Thought(_) => "thought",
        Part::Text(_) => "text",
        Part::Call { name, .. } if name == "calculator" => "calculator",
        Part::Call { .. } => "finish",
    };
    parts.iter().map(name).collect()
}

#[test]
fn calls_for_three_rounds_and_then_finishes() {
    let mut ask = Ask { tools: vec![calculator(), finish()], parallel: true, thinks: true, ..Ask::default() };
    let rounds: [&[&str]; 4] = [
        &["thought", "text", "thought", "calculator", "calculator"],
        &["thought", "calculator"],
        &["thought", "text", "calculator"],
        &["thought", "finish"],
    ];
    for expected in rounds {
        assert_eq!(names(&answer(&ask)), expected);
        ask.answers.push(vec!["calculator".to_owned()]);
    }
    ask.choice = Choice::None;
    assert_eq!(names(&answer(&ask)), ["thought", "text"]);
    ask.choice = Choice::Named("calculator".to_owned());
    assert_eq!(names(&answer(&ask)), ["thought", "calculator"]);
}

#[test]
fn writes_values_by_their_schemas() {
    let schema = json!({"type": "object", "required": ["a", "b", "c", "d"], "$defs": {"n": {"type": ["number", "null"], "minimum": 7}},
        "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/n"}},
                       "c": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}, "d": {"const": 1}, "e": {"type": "string"}}});
    assert_eq!(value_of(&schema), json!({"a": "x", "b": [7, 7], "c": true, "d": 1}));
    let text = format!("Answer by {schema} {{so}}. Not {{\"a\": 1}}.");
    assert_eq!(schema_in(&text), Some(schema.clone()));
    let ask = Ask { format: Format::Schema(schema), ..Ask::default() };
    assert_eq!(answer(&ask), [Part::Text(r#"{"a":"x","b":[7,7],"c":true,"d":1}"#.to_owned())]);
}
