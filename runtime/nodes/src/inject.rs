//! `inject`: makes a message from its properties.

use crate::property::PropertyPath;
use redflow_contract::Message;
use redflow_contract::code::RunErrorCode;
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::json::keeps_integers;
use redflow_contract::node::{InjectConfig, InjectProperty};
use redflow_contract::run_error::Failure;
use redflow_ports::{BuildError, FlowNode, NodeConfig, NodeContext, NodeOutput};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;

struct Inject {
    properties: Vec<Property>,
}

struct Property {
    path: PropertyPath,
    is_payload: bool,
    value: Value,
    kind: String,
}

/// Values that all properties together may create, including list items that a path skips.
const MAX_MADE_VALUES: usize = 200_000;

impl FlowNode for Inject {
    fn receive(&self, message: Arc<FlowMessage>, context: &NodeContext<'_>) -> NodeOutput {
        // An inject node makes its own message and takes only `_msgid` from the incoming one.
        let mut made: Message =
            message.get("_msgid").map(|id| ("_msgid".to_owned(), id.clone())).into_iter().collect();
        let mut made_values = 0;
        for Property { path, is_payload, value, kind } in &self.properties {
            let value = match context.payload {
                // Only keeps the position of the property: the other payload is set at the end.
                Some(_) if *is_payload => Ok(Value::Null),
                _ => evaluate(value, kind, context),
            };
            match value {
                Ok(value) => made_values += path.set(&mut made, value),
                Err(message) => {
                    return NodeOutput::failed(Failure { code: RunErrorCode::NeedsNodeRed, message });
                }
            }
            if made_values > MAX_MADE_VALUES {
                let message = format!("its properties create more than {MAX_MADE_VALUES} values");
                return NodeOutput::failed(Failure { code: RunErrorCode::ConfigInvalid, message });
            }
        }
        if let Some(payload) = context.payload {
            made.insert("payload".to_owned(), payload.clone());
        }
        NodeOutput::send(Arc::new(made.into()))
    }
}

/// Evaluates a value of one of Node-RED's kinds; an error if that needs Node-RED.
pub(crate) fn evaluate(value: &Value, kind: &str, context: &NodeContext<'_>) -> Result<Value, String> {
    let text = value.as_str();
    let invalid = |kind: &str| format!("the value is not valid as {kind}; correct it in the flow");
    Ok(match kind {
        "str" => Value::String(text.map_or_else(|| value.to_string(), str::to_owned)),
        "num" => match text.map(str::trim) {
            None if value.is_number() => value.clone(),
            Some("") => Value::from(0),
            Some(text) => read_json(text).filter(Value::is_number).ok_or_else(|| invalid("a number"))?,
            None => return Err(invalid("a number")),
        },
        "bool" => {
            Value::Bool(text.map_or(value == &Value::Bool(true), |text| text.eq_ignore_ascii_case("true")))
        }
        "json" => match text {
            Some(text) => read_json(text).ok_or_else(|| invalid("JSON"))?,
            None => value.clone(),
        },
        "date" if text.unwrap_or_default().is_empty() => Value::from(context.now),
        "date" if text == Some("iso") => Value::String(redflow_contract::iso_time(context.now)),
        "env" => text.and_then(|name| (context.env)(name)).unwrap_or_else(|| Value::from("")),
        other => return Err(format!("the value is of the type `{other}`, which needs Node-RED")),
    })
}

/// Reads JSON as Node-RED does, but never an integer as another one.
fn read_json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(|_| keeps_integers(text))
}

pub(crate) fn build(config: NodeConfig<'_>) -> Result<Box<dyn FlowNode>, BuildError> {
    // The engine reads the schedule.
    let InjectConfig { props, payload, payload_type, topic, .. } = config.typed()?;
    // Old editors wrote no `props`; such a node has only a payload and a topic.
    let named = |p: &str| InjectProperty { p: p.to_owned(), v: None, vt: None };
    let props = props.unwrap_or_else(|| vec![named("payload"), named("topic")]);
    let mut properties = Vec::new();
    let mut seen = HashSet::new();
    // From the end, because only the last value of a property counts.
    for InjectProperty { p, v, vt } in props.into_iter().rev() {
        let Some(path) = PropertyPath::parse(&p) else {
            return Err(config.error(format!(
                "`{}` is not a property of a message",
                p.chars().take(80).collect::<String>()
            )));
        };
        if !seen.insert(p.clone()) {
            continue;
        }
        let (value, kind) = match p.as_str() {
            "payload" if v.is_none() => (payload.clone(), vt.or_else(|| payload_type.clone())),
            "topic" if v.is_none() => (topic.clone().map(Value::from), vt),
            _ => (v, vt),
        };
        let kind = kind.filter(|kind| !kind.is_empty()).unwrap_or_else(|| "str".to_owned());
        let is_payload = p == "payload";
        properties.push(Property { path, is_payload, value: value.unwrap_or_else(|| Value::from("")), kind });
    }
    properties.reverse();
    Ok(Box::new(Inject { properties }))
}

#[cfg(test)]
mod tests {
    use redflow_contract::id::NodeSummary;
    use redflow_ports::{NodeConfig, NodeContext, NodeOutput};
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn fire(props: &Value) -> Result<NodeOutput, String> {
        fire_with(props, None)
    }

    fn fire_with(props: &Value, payload: Option<&Value>) -> Result<NodeOutput, String> {
        let node = NodeSummary { id: "i".into(), type_name: "inject".to_owned(), name: String::new() };
        let node = super::build(NodeConfig::new(&node, props.as_object().unwrap(), &|_| None, &|_| ()))
            .map_err(|e| e.reason)?;
        let incoming = json!({"_msgid": "m1", "payload": "old"});
        let env = |name: &str| (name == "HOME_TOWN").then(|| json!("Graz"));
        let context = NodeContext { now: 1_766_000_000_123, env: &env, payload };
        Ok(node.receive(Arc::new(incoming.as_object().unwrap().clone().into()), &context))
    }

    fn sent(props: &Value) -> Value {
        let output = fire(props).unwrap();
        assert_eq!(output.messages.len(), 1, "{props}: {output:?}");
        Value::Object((**output.messages[0].1).clone())
    }

    #[test]
    fn evaluates_values_by_kind() {
        let typed = |value: Value, kind: &str| {
            sent(&json!({"props": [{"p": "payload"}], "payload": value, "payloadType": kind}))["payload"]
                .clone()
        };
        assert_eq!(typed(json!("hi"), "str"), "hi");
        assert_eq!(typed(json!("4.5"), "num"), 4.5);
        assert_eq!(typed(json!(""), "num"), 0);
        assert_eq!(typed(json!(4), "num"), 4);
        assert_eq!(typed(json!("TRUE"), "bool"), true);
        assert_eq!(typed(json!("no"), "bool"), false);
        assert_eq!(typed(json!("{\"a\":[1]}"), "json"), json!({"a": [1]}));
        assert_eq!(typed(json!(""), "date"), 1_766_000_000_123_u64);
        assert_eq!(typed(json!("iso"), "date"), "2025-12-17T19:33:20.123Z");
        assert_eq!(typed(json!("HOME_TOWN"), "env"), "Graz");
        assert_eq!(typed(json!("NOWHERE"), "env"), "");
    }

    #[test]
    fn reads_properties_of_old_and_new_editors() {
        assert_eq!(
            sent(&json!({"payload": "x", "payloadType": "str", "topic": "t"})),
            json!({"_msgid": "m1", "payload": "x", "topic": "t"})
        );
        assert_eq!(
            sent(
                &json!({"props": [{"p": "user.name", "v": "Ada", "vt": "str"}, {"p": "user.age", "v": "36", "vt": "num"}]})
            ),
            json!({"_msgid": "m1", "user": {"name": "Ada", "age": 36}})
        );
    }

    #[test]
    fn the_last_value_of_a_property_counts() {
        let twice = json!([
            {"p": "a", "v": "$now()", "vt": "jsonata"},
            {"p": "a.b", "v": "1", "vt": "num"},
            {"p": "a", "v": "2", "vt": "num"},
            {"p": "a.c", "v": "3", "vt": "num"},
        ]);
        assert_eq!(sent(&json!({"props": twice})), json!({"_msgid": "m1", "a": {"c": 3}}));
    }

    #[test]
    fn another_payload_replaces_the_own_one() {
        let topic = json!({"p": "topic", "v": "t", "vt": "str"});
        let own = json!({"p": "payload", "v": "$now()", "vt": "jsonata"});
        let inner = json!({"p": "payload.deep", "v": "1", "vt": "num"});
        for props in [json!([own, topic]), json!([topic]), json!([topic, own, inner]), json!([inner, topic])]
        {
            let output = fire_with(&json!({"props": props}), Some(&json!({"n": 1}))).unwrap();
            assert_eq!(output.messages.len(), 1, "{props}: {output:?}");
            let expected = json!({"_msgid": "m1", "topic": "t", "payload": {"n": 1}});
            assert_eq!(Value::Object((**output.messages[0].1).clone()), expected, "{props}");
        }
        // Other properties are still evaluated.
        let broken = json!({"props": [{"p": "topic", "v": "$now()", "vt": "jsonata"}, {"p": "payload"}]});
        let output = fire_with(&broken, Some(&json!("x"))).unwrap();
        assert!(output.messages.is_empty() && output.error.is_some(), "{output:?}");
    }

    #[test]
    fn reports_values_it_cannot_evaluate() {
        for (value, kind) in [
            ("1+", "jsonata"),
            ("x", "flow"),
            ("[1]", "bin"),
            ("abc", "num"),
            ("{", "json"),
            ("123456789012345678901", "num"),
            ("[18446744073709551616]", "json"),
        ] {
            let output =
                fire(&json!({"props": [{"p": "payload"}], "payload": value, "payloadType": kind})).unwrap();
            assert!(output.messages.is_empty() && output.error.is_some(), "{kind}: {output:?}");
        }
        let deep = vec!["a"; 30].join(".");
        for path in ["", "a..b", deep.as_str()] {
            assert!(fire(&json!({"props": [{"p": path, "v": "1", "vt": "str"}]})).is_err(), "{path}");
        }
    }

    #[test]
    fn limits_list_items() {
        let deep = "[999]".repeat(19);
        let props: Vec<Value> =
            (0..100).map(|n| json!({"p": format!("a{n}{deep}"), "v": "x", "vt": "str"})).collect();
        let output = fire(&json!({"props": props})).unwrap();
        assert_eq!(output.error.unwrap().code.as_str(), "CONFIG_INVALID");
        let output = fire(&json!({"props": [{"p": "rooms[1].name", "v": "x", "vt": "str"}]})).unwrap();
        assert_eq!(output.messages[0].1["rooms"], json!([null, {"name": "x"}]));
    }
}
