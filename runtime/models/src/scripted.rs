//! `scripted-model`: answers from a list, so that flows run without a network or a key.

use redflow_contract::fact::ModelAnswer;
use redflow_contract::node::ScriptedModelConfig;
use redflow_contract::run_error::Failure;
use redflow_ports::{BoxFuture, BuildError, ChatModel, ModelInfo, ModelRequest, NodeConfig};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// The k-th call of a run gets the k-th reply. After the last one, the last one repeats.
#[derive(Debug)]
pub struct ScriptedModel {
    info: ModelInfo,
    replies: Vec<String>,
    delay: Duration,
}

impl ScriptedModel {
    /// Builds the model from the node's properties.
    ///
    /// # Errors
    /// When the node has no reply.
    pub fn build(config: NodeConfig<'_>) -> Result<Arc<dyn ChatModel>, BuildError> {
        let ScriptedModelConfig { replies, delay_ms } = config.typed()?;
        if replies.is_empty() {
            return Err(config.error("`replies` is empty"));
        }
        let text = |reply| match reply {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let replies = replies.into_iter().map(text).collect();
        let info = ModelInfo { provider: "scripted", model: "scripted".to_owned(), ..ModelInfo::default() };
        Ok(Arc::new(Self { info, replies, delay: Duration::from_millis(delay_ms.unwrap_or(0)) }))
    }
}

impl ChatModel for ScriptedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelAnswer, Failure>> {
        Box::pin(async move {
            if !self.delay.is_zero() {
                tokio::time::sleep(self.delay).await;
            }
            let index = usize::try_from(request.iteration).unwrap_or(usize::MAX).saturating_sub(1);
            let text = self.replies.get(index).or(self.replies.last()).cloned().unwrap_or_default();
            if let Some(deltas) = request.delta_observer {
                deltas.text(1, &text);
            }
            Ok(ModelAnswer { text, ..ModelAnswer::default() })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ScriptedModel;
    use redflow_contract::id::NodeSummary;
    use redflow_contract::transcript::Transcript;
    use redflow_ports::{BuildError, ChatModel, DeltaObserver, ModelRequest, NodeConfig};
    use serde_json::{Value, json};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use tokio::time::Instant;

    fn build(props: &Value) -> Result<Arc<dyn ChatModel>, BuildError> {
        let node =
            NodeSummary { id: "m".into(), type_name: "scripted-model".to_owned(), name: String::new() };
        ScriptedModel::build(NodeConfig {
            node: &node,
            props: props.as_object().unwrap(),
            env: &|_| None,
            on_secret: &|_| (),
        })
    }

    async fn call(model: &dyn ChatModel, iteration: u32) -> String {
        call_observed(model, iteration, None).await
    }

    async fn call_observed(
        model: &dyn ChatModel,
        iteration: u32,
        deltas: Option<&dyn DeltaObserver>,
    ) -> String {
        let transcript = Transcript::default();
        let request =
            ModelRequest { iteration, delta_observer: deltas, ..ModelRequest::for_text(&transcript) };
        model.call(request).await.unwrap().text
    }

    #[tokio::test]
    async fn the_kth_call_gets_the_kth_reply_and_the_last_repeats() {
        let model = build(&json!({"replies": ["as it is", {"b": 1, "a": 2}, 7]})).unwrap();
        let answers =
            [call(&*model, 1).await, call(&*model, 2).await, call(&*model, 3).await, call(&*model, 9).await];
        assert_eq!(answers, ["as it is", r#"{"b":1,"a":2}"#, "7", "7"]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_reply_comes_after_the_delay() {
        let model = build(&json!({"replies": ["x"], "delayMs": 250})).unwrap();
        let before = Instant::now();
        call(&*model, 1).await;
        assert_eq!(before.elapsed(), Duration::from_millis(250));
    }

    #[tokio::test]
    async fn an_observer_receives_the_whole_reply() {
        #[derive(Default)]
        struct TextLog(Mutex<Vec<(u32, String)>>);
        impl DeltaObserver for TextLog {
            fn text(&self, attempt: u32, text: &str) {
                self.0.lock().unwrap().push((attempt, text.to_owned()));
            }
        }
        let model = build(&json!({"replies": ["as it is", {"b": 1}]})).unwrap();
        let log = TextLog::default();
        call_observed(&*model, 2, Some(&log)).await;
        assert_eq!(log.0.into_inner().unwrap(), [(1, r#"{"b":1}"#.to_owned())]);
    }

    #[test]
    fn a_model_without_replies_cannot_be_built() {
        for props in [json!({"replies": []}), json!({}), json!({"replies": "x"})] {
            assert!(build(&props).is_err(), "{props}");
        }
    }
}
