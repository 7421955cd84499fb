//! A model at a provider, as the engine sees it.

use crate::driver::{Driver, Target};
use crate::price::Price;
use crate::wire::{Chat, Format};
use redflow_contract::fact::ModelAnswer;
use redflow_contract::run_error::Failure;
use redflow_contract::service_config::StructuredOutput;
use redflow_ports::{AnswerKind, BoxFuture, ChatModel, ModelInfo, ModelRequest, ToolChoice};
use std::sync::Arc;

/// A model at a provider.
pub(crate) struct LiveModel {
    pub(crate) info: ModelInfo,
    pub(crate) driver: Arc<Driver>,
    pub(crate) target: Target,
    pub(crate) ways: Ways,
    pub(crate) price: Option<Price>,
}

/// How a model is asked, as far as its node and its abilities decide it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ways {
    /// The strictest way to JSON: never `Auto`.
    pub(crate) json: StructuredOutput,
    /// Whether JSON mode may stand in for a schema that cannot be sent.
    pub(crate) json_object: bool,
    /// Ask for JSON also where no action is wanted.
    pub(crate) json_mode: bool,
    pub(crate) stream: bool,
    /// Whether tools may be sent natively.
    pub(crate) tools: bool,
}

impl Ways {
    fn format<'a>(self, want: &AnswerKind<'a>) -> Format<'a> {
        match (want, self.json) {
            (AnswerKind::Action { schema: Some(schema) }, StructuredOutput::JsonSchema) => {
                Format::JsonSchema(schema)
            }
            (AnswerKind::Action { .. }, StructuredOutput::JsonObject) => Format::JsonObject,
            // A schema the provider would refuse is not sent; JSON mode is the next best.
            (AnswerKind::Action { .. }, StructuredOutput::JsonSchema) if self.json_object => {
                Format::JsonObject
            }
            (AnswerKind::Reply(_), _) if self.json_mode => Format::JsonObject,
            _ => Format::Text,
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
                AnswerKind::Reply(choice) if self.ways.tools => (request.spec.tools.as_slice(), choice, true),
                AnswerKind::Reply(_) => (Default::default(), ToolChoice::None, true),
                AnswerKind::Action { .. } => (Default::default(), ToolChoice::None, false),
            };
            let chat = Chat {
                messages: request.transcript.segments(),
                tools,
                tool_choice,
                format: self.ways.format(&request.answer_kind),
                stream: self.ways.stream,
                reasoning,
            };
            let mut answer = self.driver.call(&self.target, &chat, request.deltas).await?;
            if let (Some(usage), Some(price)) = (&mut answer.usage, &self.price) {
                // What is no number cannot stand in a journal.
                usage.cost = Some(price.cost(usage)).filter(|cost| cost.is_finite());
            }
            Ok(answer)
        })
    }
}
