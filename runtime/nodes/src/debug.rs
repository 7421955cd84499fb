//! `debug`: shows a property of a message, or all of it.

use crate::property::PropertyPath;
use redflow_contract::code::RunErrorCode;
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::node::DebugConfig;
use redflow_contract::run_error::Failure;
use redflow_ports::{BuildError, FlowNode, NodeConfig, NodeContext, NodeOutput};
use serde_json::Value;
use std::sync::Arc;

enum DebugNode {
    Inactive,
    WholeMessage,
    Property(String),
    /// JSONata runs in Node-RED only.
    Expression,
}

impl FlowNode for DebugNode {
    fn receive(&self, message: Arc<FlowMessage>, _: &NodeContext<'_>) -> NodeOutput {
        let value = match self {
            Self::Inactive => return NodeOutput::default(),
            Self::WholeMessage => ("msg".to_owned(), Value::Object((**message).clone())),
            Self::Property(path) => (format!("msg.{path}"), property(&message, path)),
            Self::Expression => {
                return NodeOutput::failed(Failure {
                    code: RunErrorCode::NeedsNodeRed,
                    message: "this debug node shows a JSONata expression, which needs Node-RED".to_owned(),
                });
            }
        };
        NodeOutput { debug: Some(value), ..NodeOutput::default() }
    }
}

/// The value at `a.b[0]`; null if there is none.
fn property(message: &FlowMessage, path: &str) -> Value {
    // Most nodes show it, and an agent's message need not be made whole for that.
    if path == "payload" {
        return message.get("payload").cloned().unwrap_or_default();
    }
    PropertyPath::parse(path).and_then(|path| path.get(message).cloned()).unwrap_or_default()
}

pub(crate) fn build(config: NodeConfig<'_>) -> Result<Box<dyn FlowNode>, BuildError> {
    let DebugConfig { active, complete, target_type } = config.typed()?;
    let debug = match (active.unwrap_or(true), target_type.as_deref(), complete) {
        (false, ..) => DebugNode::Inactive,
        (_, Some("jsonata"), _) => DebugNode::Expression,
        (_, Some("full"), _) | (_, _, Some(Value::Bool(true))) => DebugNode::WholeMessage,
        (_, _, Some(Value::String(text))) if text == "true" => DebugNode::WholeMessage,
        (_, _, Some(Value::String(text))) if !text.is_empty() && text != "false" => DebugNode::Property(text),
        _ => DebugNode::Property("payload".to_owned()),
    };
    Ok(Box::new(debug))
}

#[cfg(test)]
mod tests {
    use redflow_contract::id::NodeSummary;
    use redflow_ports::{NodeConfig, NodeContext};
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn debug_value(props: &Value) -> Option<(String, Value)> {
        let node = NodeSummary { id: "d".into(), type_name: "debug".to_owned(), name: String::new() };
        let node =
            super::build(NodeConfig::new(&node, props.as_object().unwrap(), &|_| None, &|_| ())).unwrap();
        let message = json!({"payload": {"list": [1, {"deep": true}]}, "topic": "t"});
        let context = NodeContext { now: 0, env: &|_| None, payload: None };
        node.receive(Arc::new(message.as_object().unwrap().clone().into()), &context).debug
    }

    #[test]
    fn shows_the_configured_property() {
        let payload = json!({"list": [1, {"deep": true}]});
        let rows = [
            (json!({}), Some(("msg.payload", payload.clone()))),
            (json!({"complete": "false"}), Some(("msg.payload", payload.clone()))),
            (json!({"complete": "topic", "targetType": "msg"}), Some(("msg.topic", json!("t")))),
            (json!({"complete": "payload.list.1.deep"}), Some(("msg.payload.list.1.deep", json!(true)))),
            (json!({"complete": "gone.away"}), Some(("msg.gone.away", Value::Null))),
            (
                json!({"complete": "true", "targetType": "full"}),
                Some(("msg", json!({"payload": payload, "topic": "t"}))),
            ),
            (json!({"active": false}), None),
            (json!({"complete": "$sum(x)", "targetType": "jsonata"}), None),
        ];
        for (props, expected) in rows {
            let expected = expected.map(|(name, value)| (name.to_owned(), value));
            assert_eq!(debug_value(&props), expected, "{props}");
        }
    }
}
