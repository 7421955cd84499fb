//! `calculator-tool`: exact arithmetic for models.

pub mod expression;
mod number;

pub use expression::{ExpressionError, evaluate};

use redflow_contract::Message;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::node::EffectClass;
use redflow_ports::{BoxFuture, BuildError, NodeConfig, Tool, ToolOutcome};
use serde_json::{Value, json};
use std::sync::Arc;

/// Evaluates `input.expression`. It has no effect on anything else, so its calls may be repeated.
#[derive(Debug)]
pub struct Calculator;

impl Calculator {
    /// Builds the tool; the node has no properties.
    ///
    /// # Errors
    /// Never: the type of builders has a result.
    pub fn build(_: NodeConfig<'_>) -> Result<Arc<dyn Tool>, BuildError> {
        Ok(Arc::new(Self))
    }
}

impl Tool for Calculator {
    fn effect(&self, _: &Message) -> EffectClass {
        EffectClass::Read
    }

    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        let expression = call.input.get("expression").and_then(Value::as_str).unwrap_or_default();
        let result = match evaluate(expression) {
            Ok(result) => ToolResult::ok(json!({"result": result, "expression": expression})),
            Err(error) => ToolResult::failed(format!("Calculation error: {error}")),
        };
        Box::pin(std::future::ready(ToolOutcome::Returned(result)))
    }
}

#[cfg(test)]
mod tests {
    use super::Calculator;
    use redflow_contract::digest::Digest;
    use redflow_contract::effect::ToolCall;
    use redflow_contract::node::EffectClass;
    use redflow_ports::{Tool, ToolOutcome};
    use serde_json::{Value, json};
    use std::task::{Context, Poll, Waker};

    fn call(input: &Value) -> Value {
        let call = ToolCall {
            run_id: "r".into(),
            iteration: 1,
            call_id: "r:1".into(),
            tool: "calculator".to_owned(),
            node: "c".into(),
            input: input.as_object().unwrap().clone(),
            idempotency_key: Digest::ZERO,
            timeout_ms: 1,
            agent: "a".into(),
            declared: None,
            operation: None,
            conversation: Default::default(),
        };
        let mut future = Calculator.call(&call);
        let Poll::Ready(ToolOutcome::Returned(result)) =
            future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        else {
            panic!("the calculator must answer at once")
        };
        serde_json::to_value(result).unwrap()
    }

    #[test]
    fn returns_results_and_errors_to_the_model() {
        assert_eq!(
            call(&json!({"expression": "0.1 + 0.2"})),
            json!({"success": true, "output": {"result": 0.3, "expression": "0.1 + 0.2"}})
        );
        let failed = call(&json!({"expression": "1/0"}));
        assert_eq!(failed["success"], false);
        assert!(failed["error"].as_str().unwrap().starts_with("Calculation error: "), "{failed}");
        assert_eq!(Calculator.effect(&serde_json::Map::new()), EffectClass::Read);
    }
}
