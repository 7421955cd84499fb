use super::{operation_call, operation_result};
use pretty_assertions::assert_eq;
use redflow_contract::Message;
use redflow_contract::manifest::NodeOperation;
use serde_json::{Value, json};

fn operation(msg: &Value, result: Option<&str>) -> NodeOperation {
    let mut value = json!({"description": "d", "inputSchema": {"type": "object"}});
    if !msg.is_null() {
        value["msg"] = msg.clone();
    }
    if let Some(result) = result {
        value["result"] = json!(result);
    }
    serde_json::from_value(value).unwrap()
}

fn object(value: &Value) -> Message {
    value.as_object().unwrap().clone()
}

#[test]
fn a_message_gets_the_values_of_the_input() {
    let input = object(&json!({"id": 7, "name": "{{input.id}}", "list": [{"a": true}], "none": null}));
    let rows = [
        (json!({"payload": "{{input.id}}"}), json!({"payload": 7})),
        (json!({"payload": "{{ input.list.0.a }}"}), json!({"payload": true})),
        (
            json!({"payload": {"text": "n={{input.id}}, {{input.name}}!"}}),
            json!({"payload": {"text": "n=7, {{input.id}}!"}}),
        ),
        (json!({"payload": "{{input.missing}}"}), json!({"payload": null})),
        (json!({"payload": "<{{input.missing}}{{input.none}}>"}), json!({"payload": "<>"})),
        (json!({"payload": "{{msg.secret}} {{input"}), json!({"payload": " {{input"})),
        (json!({"payload": "{{input.list}}{{input.id}}"}), json!({"payload": "[{\"a\":true}]7"})),
        (json!({"topic": ["{{input.id}}", 1]}), json!({"topic": [7, 1], "payload": input})),
        (Value::Null, json!({"payload": input})),
    ];
    for (template, expected) in rows {
        let call = operation_call(&operation(&template, None), &input);
        assert_eq!(Value::Object(call.msg), expected, "{template}");
        assert_eq!(call.result, "payload");
    }
}

#[test]
fn a_result_is_a_property_of_the_returned_message() {
    let message = object(&json!({"payload": {"id": 5, "rows": [{"x": 1}]}, "topic": "t"}));
    let rows = [
        ("payload", json!({"id": 5, "rows": [{"x": 1}]})),
        ("payload.id", json!(5)),
        ("payload.rows.0.x", json!(1)),
        ("topic", json!("t")),
        ("topic.x", Value::Null),
        ("missing", Value::Null),
        ("", Value::Null),
    ];
    for (path, expected) in rows {
        let call = operation_call(&operation(&Value::Null, Some(path)), &Message::new());
        assert_eq!(operation_result(&call.result, &message), expected, "{path}");
    }
}
