//! `scripted-model`: answers from a list, so that flows run without a network or a key.

use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_contract::node::ScriptedModelConfig;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{OpaqueParts, RequestedCall};
use redflow_ports::{
    AnswerKind, BoxFuture, BuildError, ChatModel, DeltaObserver, ModelInfo, ModelRequest, NodeConfig,
};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// The most pieces of a streamed text.
const MAX_PIECES: usize = 64;

/// The k-th call of a run gets the k-th reply. After the last one, the last one repeats.
#[derive(Debug)]
pub struct ScriptedModel {
    info: ModelInfo,
    replies: Vec<ScriptedReply>,
    delay: Duration,
}

#[derive(Debug)]
struct ScriptedReply {
    /// The reply of a model without native tool calls.
    text: String,
    /// What the text means for an agent with native tool calls; none if it is only text.
    native: Option<NativeReply>,
}

/// A reply with the key `toolCalls`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NativeReply {
    tool_calls: Vec<NativeCall>,
    #[serde(default)]
    text: String,
    usage: Option<Usage>,
    finish: Option<ModelFinish>,
    reasoning: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NativeCall {
    name: String,
    /// A text is sent as it is, any other value as JSON.
    arguments: Option<Value>,
    id: Option<String>,
}

impl ScriptedModel {
    /// Builds the model from the node's properties.
    ///
    /// # Errors
    /// When the node has no reply, or one with invalid tool calls.
    pub fn build(config: NodeConfig<'_>) -> Result<Arc<dyn ChatModel>, BuildError> {
        let ScriptedModelConfig { replies, delay_ms } = config.typed()?;
        if replies.is_empty() {
            return Err(config.error("`replies` is empty"));
        }
        let replies = replies.into_iter().enumerate().map(|(index, reply)| {
            ScriptedReply::parse(reply).ok_or_else(|| {
                config.error(format!(
                    "reply {} has invalid `toolCalls`: each call has a `name`, and may have `arguments` and an \
                     `id`; the reply may also have `text`, `usage`, `finish` and `reasoning`",
                    index + 1
                ))
            })
        });
        let replies = replies.collect::<Result<Vec<_>, _>>()?;
        let has_cost = |reply: &ScriptedReply| {
            reply.native.as_ref().and_then(|native| native.usage).is_some_and(|usage| usage.cost.is_some())
        };
        let info = ModelInfo {
            provider: "scripted",
            model: "scripted".to_owned(),
            tools: true,
            streaming: true,
            priced: replies.iter().any(has_cost),
            ..ModelInfo::default()
        };
        Ok(Arc::new(Self { info, replies, delay: Duration::from_millis(delay_ms.unwrap_or(0)) }))
    }

    fn answer(&self, request: &ModelRequest<'_>) -> ModelAnswer {
        let index = usize::try_from(request.iteration).unwrap_or(usize::MAX).saturating_sub(1);
        let Some(reply) = self.replies.get(index).or(self.replies.last()) else {
            return ModelAnswer::default();
        };
        match &reply.native {
            Some(native) if !request.answer_kind.is_action() => native.answer(request.iteration),
            _ => ModelAnswer { text: reply.text.clone(), ..ModelAnswer::default() },
        }
    }
}

impl ScriptedReply {
    /// None if the tool calls are invalid.
    fn parse(reply: Value) -> Option<Self> {
        let text = match &reply {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let is_native = reply.get("toolCalls").is_some();
        let native = if is_native { Some(serde_json::from_value(reply).ok()?) } else { None };
        Some(Self { text, native })
    }
}

impl NativeReply {
    fn answer(&self, iteration: u32) -> ModelAnswer {
        let call = |(index, call): (usize, &NativeCall)| RequestedCall {
            id: call.id.clone().unwrap_or_else(|| format!("call_{iteration}_{}", index + 1)),
            name: call.name.clone(),
            arguments: match &call.arguments {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => "{}".to_owned(),
            },
        };
        let tool_calls: Vec<_> = self.tool_calls.iter().enumerate().map(call).collect();
        let usual = if tool_calls.is_empty() { ModelFinish::Stop } else { ModelFinish::ToolCalls };
        let reasoning = |part: &Value| OpaqueParts::new("scripted", vec![part.clone()]);
        ModelAnswer {
            text: self.text.clone(),
            finish: self.finish.unwrap_or(usual),
            usage: self.usage,
            tool_calls,
            reasoning: self.reasoning.as_ref().map(reasoning),
            ..ModelAnswer::default()
        }
    }
}

impl ChatModel for ScriptedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelAnswer, Failure>> {
        Box::pin(async move {
            let answer = self.answer(&request);
            let pieces = match request.answer_kind {
                AnswerKind::Reply(_) => split_words(&answer.text),
                AnswerKind::Action(_) => vec![answer.text.as_str()],
            };
            match request.delta_observer {
                Some(deltas) => send_pieces(deltas, &pieces, self.delay).await,
                None => wait(self.delay).await,
            }
            Ok(answer)
        })
    }
}

/// The text in pieces of whole words.
fn split_words(text: &str) -> Vec<&str> {
    let ends: Vec<usize> = text.match_indices(' ').map(|(index, _)| index + 1).chain([text.len()]).collect();
    let mut begin = 0;
    let pieces = ends.chunks(ends.len().div_ceil(MAX_PIECES)).filter_map(|words| words.last());
    pieces.map(|end| &text[std::mem::replace(&mut begin, *end)..*end]).collect()
}

/// Sends the pieces one by one, all of them within the delay.
async fn send_pieces(deltas: &dyn DeltaObserver, pieces: &[&str], delay: Duration) {
    let steps = u32::try_from(pieces.len()).unwrap_or(u32::MAX).max(1);
    for piece in pieces {
        wait(delay / steps).await;
        if !piece.is_empty() {
            deltas.text(1, piece);
        }
    }
}

async fn wait(delay: Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}

#[cfg(test)]
#[path = "scripted_tests.rs"]
mod tests;
