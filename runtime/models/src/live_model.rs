//! A model of a provider, behind the trait that the engine uses.

use crate::driver::{Driver, Target};
use crate::price::Price;
use crate::wire::{AnswerFormat, ChatRequest, Reasoning};
use redflow_contract::fact::ModelAnswer;
use redflow_contract::node::StructuredOutput;
use redflow_contract::run_error::Failure;
use redflow_ports::{AnswerKind, BoxFuture, ChatModel, ModelInfo, ModelRequest, ReplyFormat, ToolChoice};
use std::sync::Arc;

pub(crate) struct LiveModel {
    pub(crate) info: ModelInfo,
    pub(crate) driver: Arc<Driver>,
    pub(crate) target: Target,
    pub(crate) options: RequestOptions,
    pub(crate) price: Option<Price>,
}

/// How requests are made, as the node and the capabilities of the model decide.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestOptions {
    /// The strictest kind of JSON output. Never `Auto`.
    pub(crate) structured_output: StructuredOutput,
    /// Whether JSON mode may replace a schema that cannot be sent.
    pub(crate) json_object: bool,
    /// Whether replies use JSON mode too.
    pub(crate) json_mode: bool,
    pub(crate) stream: bool,
    /// Whether tools may be sent natively.
    pub(crate) tools: bool,
}

impl RequestOptions {
    fn format(self, answer_kind: &AnswerKind) -> AnswerFormat<'_> {
        match (answer_kind, self.structured_output) {
            (AnswerKind::Action { schema: Some(schema) }, StructuredOutput::JsonSchema) => {
                AnswerFormat::JsonSchema(schema.raw())
            }
            (AnswerKind::Action { .. }, StructuredOutput::JsonObject) => AnswerFormat::JsonObject,
            // There is no schema that the provider would accept, so JSON mode is the next best.
            (AnswerKind::Action { .. }, StructuredOutput::JsonSchema) if self.json_object => {
                AnswerFormat::JsonObject
            }
            (AnswerKind::Reply(reply), structured) => match (&reply.format, structured) {
                (ReplyFormat::Schema(schema), StructuredOutput::JsonSchema) => {
                    AnswerFormat::JsonSchema(schema.raw())
                }
                (ReplyFormat::Schema(_) | ReplyFormat::Json, _) if self.json_object => {
                    AnswerFormat::JsonObject
                }
                _ if self.json_mode => AnswerFormat::JsonObject,
                _ => AnswerFormat::Text,
            },
            _ => AnswerFormat::Text,
        }
    }
}

impl ChatModel for LiveModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelAnswer, Failure>> {
        Box::pin(async move {
            let (tools, tool_choice, reasoning) = match request.answer_kind {
                AnswerKind::Reply(reply) if self.options.tools => {
                    (&*reply.tools, reply.choice, Reasoning::Keep)
                }
                AnswerKind::Reply(_) => (&[][..], ToolChoice::None, Reasoning::Keep),
                AnswerKind::Action { .. } => (&[][..], ToolChoice::None, Reasoning::Discard),
            };
            let chat = ChatRequest {
                messages: request.transcript.segments(),
                tools,
                tool_choice,
                format: self.options.format(request.answer_kind),
                stream: self.options.stream,
                reasoning,
            };
            let mut answer = self.driver.call(&self.target, &chat, request.delta_observer).await?;
            if let (Some(usage), Some(price)) = (&mut answer.usage, &self.price) {
                // JSON, and so the journal, cannot hold an infinite number.
                usage.cost = Some(price.cost(usage)).filter(|cost| cost.is_finite());
            }
            Ok(answer)
        })
    }
}
