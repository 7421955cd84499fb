//! Properties of services as Node-RED's editors write them: an empty field means absent, and a number may be
//! text.

use crate::node;
use crate::node::declaration::{Kind, NodeDeclaration, Property};
use serde_json::{Map, Number, Value};

/// Copies properties without empty fields, and turns the text of numbers and booleans into values. Touches
/// only properties that the type declares. Renames `baseUrl` to `baseURL`, and the kinds of authentication that the
/// AI Agent nodes have.
#[must_use]
pub fn without_blanks(type_name: &str, props: &Map<String, Value>) -> Map<String, Value> {
    clean(node::find(type_name), props)
}

fn clean(node: &NodeDeclaration, props: &Map<String, Value>) -> Map<String, Value> {
    let mut cleaned = Map::with_capacity(props.len());
    for (name, value) in props {
        let name = if name == "baseUrl" && declared(node, "baseURL").is_some() { "baseURL" } else { name };
        let value = match (declared(node, name).map(|property| property.kind), value) {
            (Some(_), Value::Null) => continue,
            (Some(_), Value::String(text)) if text.trim().is_empty() => continue,
            (Some(Kind::Whole(_) | Kind::Decimal { .. }), Value::String(text)) => {
                text.trim().parse::<Number>().map_or_else(|_| value.clone(), Value::Number)
            }
            (Some(Kind::Flag | Kind::OptionalFlag { .. }), Value::String(text)) => match text.trim() {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                _ => value.clone(),
            },
            (Some(_), Value::String(text)) if name == "authentication" => Value::from(authentication(text)),
            (Some(_), Value::Object(map)) if name == "options" => Value::Object(clean(node, map)),
            _ => value.clone(),
        };
        cleaned.entry(name).or_insert(value);
    }
    cleaned
}

/// The name of a kind of authentication, which the AI Agent nodes call by the name of its credentials.
fn authentication(name: &str) -> &str {
    match name {
        "httpBasicAuth" => "basic",
        "httpHeaderAuth" => "header",
        "httpBearerAuth" => "bearer",
        other => other,
    }
}

fn declared(node: &NodeDeclaration, name: &str) -> Option<&'static Property> {
    node.property_sets.iter().flat_map(|set| set.properties).find(|property| property.name == name)
}

/// The text of a property, else of the option with the same name. Blank text counts as absent.
#[must_use]
pub fn text_of<'a>(props: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    let own = |props: &'a Map<String, Value>| {
        props.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
    };
    own(props).or_else(|| own(props.get("options").and_then(Value::as_object)?))
}

#[cfg(test)]
mod tests {
    use super::{text_of, without_blanks};
    use serde_json::json;

    #[test]
    fn removes_blanks_and_reads_numbers_and_booleans() {
        let props = json!({"model": "", "temperature": "0.7", "maxTokens": " 5 ", "topP": null, "stream": "true",
            "baseUrl": "http://x", "api": "", "name": "", "seed": "many", "wires": [],
            "options": {"maxRetries": "3", "stop": "", "jsonMode": "false"}, "stop": "1"});
        let expected = json!({"temperature": 0.7, "maxTokens": 5, "stream": true, "baseURL": "http://x", "name": "",
            "seed": "many", "wires": [], "options": {"maxRetries": 3, "jsonMode": false}, "stop": "1"});
        assert_eq!(json!(without_blanks("openai-model", props.as_object().unwrap())), expected);
        // Properties that no schema knows stay.
        let props = json!({"temperature": "", "baseUrl": null});
        assert_eq!(json!(without_blanks("model.mine", props.as_object().unwrap())), props);
        let props =
            json!({"authentication": "httpBasicAuth", "options": {"authentication": "httpBearerAuth"}});
        let expected = json!({"authentication": "basic", "options": {"authentication": "bearer"}});
        assert_eq!(json!(without_blanks("http-request-tool", props.as_object().unwrap())), expected);
        let props = json!({"options": ""});
        assert_eq!(json!(without_blanks("redis-memory", props.as_object().unwrap())), json!({}));
    }

    #[test]
    fn reads_a_property_or_else_an_option() {
        let props = json!({"a": "1", "b": "", "options": {"a": "2", "b": "3"}, "c": 4});
        let props = props.as_object().unwrap();
        assert_eq!(["a", "b", "c", "d"].map(|name| text_of(props, name)), [Some("1"), Some("3"), None, None]);
    }
}
