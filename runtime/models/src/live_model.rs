//! A model of a provider, behind the trait that the engine uses.

use crate::bound_thoughts::Binding;
use crate::driver::{CallOptions, Driver, Target};
use crate::model_list::{ListSource, list_models};
use crate::price::Pricing;
use crate::refusals::formats::RefusedFormats;
use crate::refusals::thoughts::RefusedThoughts;
use crate::refusals::{Change, Interface, LearntChanges, apply, shown_field};
use crate::wire::{AnswerFormat, CacheLifetime, CacheRequest, ChatRequest, Reasoning, SchemaKind};
use redflow_contract::code::RunErrorCode;
use redflow_contract::fact::{ModelAnswer, Usage};
use redflow_contract::json::size_of;
use redflow_contract::model_test::{ModelList, SentFormat, SentRequest};
use redflow_contract::node::{PromptCache, StructuredOutput};
use redflow_contract::plan::ToolSpec;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ChatMessage, ImageType, RequestedCall};
use redflow_ports::{
    AnswerKind, BoxFuture, ChatModel, ModelInfo, ModelRequest, ModelWait, Reply, ReplyFormat, SchemaText,
    ToolChoice, WaitObserver,
};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

pub(crate) struct LiveModel {
    pub(crate) info: ModelInfo,
    pub(crate) driver: Arc<Driver>,
    pub(crate) target: Arc<Target>,
    /// The same model behind OpenAI's other interface.
    pub(crate) other: Option<OtherInterface>,
    pub(crate) options: RequestOptions,
    pub(crate) pricing: Pricing,
    /// What the server refuses without native tools, and with them. Some servers refuse both together.
    pub(crate) refused_formats: [RefusedFormats; 2],
    /// What requests leave out because the provider refuses it.
    pub(crate) learnt: LearntChanges,
    /// The thoughts that the provider refuses to read again.
    pub(crate) refused_thoughts: RefusedThoughts,
    /// The calls that the node may make at once. None for any number.
    pub(crate) slots: Option<Arc<Semaphore>>,
    pub(crate) list_source: ListSource,
    /// The model that the server has, for a node that names none. Set by the first call.
    pub(crate) found_target: Option<Mutex<Option<Arc<Target>>>>,
}

/// The same model behind OpenAI's other interface.
pub(crate) struct OtherInterface {
    pub(crate) target: Arc<Target>,
    /// Whether calls with tools begin there.
    pub(crate) for_tools: bool,
}

/// How requests are made, as the node and the capabilities of the model decide.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestOptions {
    /// The strictest kind of JSON output. Never `Auto`.
    pub(crate) structured_output: StructuredOutput,
    /// Whether JSON mode may replace a schema that cannot be sent.
    pub(crate) json_object: bool,
    /// Whether the server accepts every JSON Schema, also a union at the root.
    pub(crate) whole_schema: bool,
    /// Whether the provider's strict subset has the range of a number.
    pub(crate) number_range: bool,
    /// Whether a call that is refused because of its format asks for a weaker one.
    pub(crate) weaker_formats: bool,
    /// Whether replies use JSON mode too.
    pub(crate) json_mode: bool,
    /// Whether answers are streamed. None if they are while somebody reads along.
    pub(crate) stream: Option<bool>,
    /// How often a call with a passing failure is retried.
    pub(crate) max_retries: u32,
    /// Whether requests ask the provider to cache them.
    pub(crate) prompt_cache: PromptCache,
    /// Whether the model can be forced to call a tool.
    pub(crate) forced_tools: bool,
    /// Whether thoughts are valid only after an unchanged system prompt, list of tools and conversation.
    pub(crate) binds_thoughts: bool,
    /// Whether the node allows one interface only, although there is another one.
    pub(crate) only_interface: bool,
    /// Whether the node sets the limit of output tokens.
    pub(crate) has_own_limit: bool,
}

impl RequestOptions {
    /// How long the provider keeps a request with or without tools. None if the request does not say it.
    fn cache_lifetime(self, has_tools: bool) -> Option<CacheLifetime> {
        match self.prompt_cache {
            PromptCache::Off => None,
            // The calls of an agent with tools follow each other soon, and each begins with the one before.
            PromptCache::Auto => has_tools.then_some(CacheLifetime::FiveMinutes),
            PromptCache::FiveMinutes => Some(CacheLifetime::FiveMinutes),
            PromptCache::OneHour => Some(CacheLifetime::OneHour),
        }
    }

    /// The formats that a call may ask for, the strictest first. There is always one.
    fn formats<'a>(self, answer_kind: &'a AnswerKind) -> Vec<AnswerFormat<'a>> {
        let (name, whole, strict, wants_json) = match answer_kind {
            AnswerKind::Action(schemas) => {
                let object = if self.number_range { &schemas.object_with_range } else { &schemas.object };
                ("action", schemas.branches.as_ref(), object.as_ref(), true)
            }
            AnswerKind::Reply(reply) => match &reply.format {
                ReplyFormat::Text => ("answer", None, None, false),
                ReplyFormat::Json => ("answer", None, None, true),
                ReplyFormat::Schema(schema) => ("answer", None, Some(schema), true),
                ReplyFormat::WholeSchema(schema) => ("answer", Some(schema), None, true),
            },
        };
        let by_schema =
            |schema: &'a SchemaText, kind| AnswerFormat::JsonSchema { name, schema: schema.raw(), kind };
        let mut formats = Vec::with_capacity(4);
        if self.structured_output == StructuredOutput::JsonSchema {
            let whole = whole.filter(|_| self.whole_schema);
            formats.extend(whole.map(|schema| by_schema(schema, SchemaKind::Whole)));
            formats.extend(strict.map(|schema| by_schema(schema, SchemaKind::Strict)));
        }
        let has_mode = match self.structured_output {
            StructuredOutput::JsonObject => wants_json,
            // If there is no schema that the provider accepts, JSON mode is the next best. A server of unknown
            // abilities may have it.
            StructuredOutput::JsonSchema => {
                wants_json && (self.json_object || (self.whole_schema && !formats.is_empty()))
            }
            StructuredOutput::Auto | StructuredOutput::None => false,
        };
        if has_mode || (self.json_mode && !answer_kind.is_action()) {
            formats.push(AnswerFormat::JsonObject);
        }
        formats.push(AnswerFormat::Text);
        if !self.weaker_formats {
            formats.truncate(1);
        }
        formats
    }
}

impl ChatModel for LiveModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelAnswer, Failure>> {
        Box::pin(async move {
            let (tools, tool_choice, reasoning) = match request.answer_kind {
                AnswerKind::Reply(reply) => (self.offered_tools(reply), reply.choice, Reasoning::Keep),
                AnswerKind::Action(_) => (&[][..], ToolChoice::None, Reasoning::Discard),
            };
            if !tools.is_empty() && !self.info.tools {
                return Err(self.no_tools());
            }
            self.check_images(request.transcript.segments())?;
            let refused = &self.refused_formats[usize::from(!tools.is_empty())];
            let mut formats = self.options.formats(request.answer_kind);
            formats.retain(|format| !refused.contains(*format));
            let (format, weaker_formats) = formats.split_first().unwrap_or((&AnswerFormat::Text, &[]));
            let cache = self.options.cache_lifetime(!tools.is_empty());
            let is_read = request.delta_observer.is_some() && self.info.streaming;
            let binds = self.options.binds_thoughts && reasoning == Reasoning::Keep;
            let binding = binds.then(|| Binding::of(tools, request.transcript.segments()));
            let valid = binding.as_ref().and_then(|binding| binding.messages.as_deref());
            let chat = ChatRequest {
                messages: valid.unwrap_or(request.transcript.segments()),
                tools,
                tool_choice: match tool_choice {
                    // What the model answers instead is corrected by the agent.
                    ToolChoice::Required if !self.options.forced_tools => ToolChoice::Auto,
                    choice => choice,
                },
                format: *format,
                stream: self.options.stream.unwrap_or(is_read),
                reasoning,
                cache: cache.map(|lifetime| CacheRequest { key: request.cache_key, lifetime }),
            };
            let max_retries = if request.retry { self.options.max_retries } else { 0 };
            let deadline = Instant::now() + self.target.timeout;
            let _slot = self.wait_for_slot(deadline, request.wait_observer).await?;
            let cost = |usage: &Usage| self.pricing.cost(usage);
            let options = CallOptions {
                deadline: Some(deadline),
                max_retries,
                requires_stream: self.options.stream.is_some(),
                other_interface: None,
                only_interface: self.options.only_interface,
                has_own_limit: self.options.has_own_limit,
                max_output: self.info.max_output,
                cost: Some(&cost),
                learnt: Some(&self.learnt),
                weaker_formats,
                refused_formats: Some(refused),
                refused_thoughts: Some(&self.refused_thoughts),
                waits_for_loading: request.retry,
                wait_observer: request.wait_observer,
                keeps_raw: request.keeps_raw,
            };
            let found = self.target(deadline).await;
            let (target, other_interface) = self.interfaces(&found, !tools.is_empty());
            let options = CallOptions { other_interface, ..options };
            // Awaited without a variable, which would take the room of the call once more.
            let mut answer = match self.driver.call(target, &chat, options, request.delta_observer).await {
                Ok(answer) => answer,
                Err(failure) => {
                    self.forget_target(&failure);
                    return Err(failure);
                }
            };
            give_unique_ids(&mut answer.tool_calls, chat.messages);
            if let Some((binding, thoughts)) = binding.as_ref().zip(answer.reasoning.as_mut()) {
                binding.bind(thoughts);
            }
            if self.info.priced && answer.usage.is_none() {
                // Without an estimate, a limit of the cost would have no effect.
                let usage = Usage::estimate(request_bytes(&chat), &answer);
                answer.usage = Some(Usage { cost: cost(&usage), ..usage });
            }
            Ok(answer)
        })
    }

    fn describe_request(&self, answer_kind: &AnswerKind) -> Option<SentRequest> {
        let found = self.known_target().unwrap_or_else(|| Arc::clone(&self.target));
        let learnt = self.learnt.get();
        let target = self.first_target(&found, false, &learnt);
        // None of the formats that the server has refused.
        let mut formats = self.options.formats(answer_kind).into_iter();
        let format = formats.find(|format| !self.refused_formats[0].contains(*format))?;
        let chat = ChatRequest {
            messages: &[],
            tools: &[],
            tool_choice: ToolChoice::None,
            format,
            stream: false,
            reasoning: Reasoning::Discard,
            cache: None,
        };
        let mut body = Vec::new();
        target.wire.encode(&chat, &mut body).ok()?;
        let body: Value = serde_json::from_slice(&apply(&learnt, body)).ok()?;
        let response_format = match format {
            AnswerFormat::JsonSchema { .. } => SentFormat::JsonSchema,
            AnswerFormat::JsonObject => SentFormat::JsonObject,
            AnswerFormat::Text => SentFormat::Text,
        };
        Some(SentRequest {
            address: target.wire.address(&target.endpoint.url, false).to_string(),
            model: target.model.clone(),
            interface: target.interface.map(Interface::name).map(str::to_owned),
            interface_for_tools: match self.first_target(&found, true, &learnt).interface {
                with_tools if with_tools == target.interface => None,
                with_tools => with_tools.map(Interface::name).map(str::to_owned),
            },
            refused: learnt.iter().map(shown_field).collect(),
            response_format,
            max_tokens: TOKEN_LIMITS
                .iter()
                .find_map(|field| u32::try_from(body.pointer(field)?.as_u64()?).ok()),
        })
    }

    fn list_models(&self) -> BoxFuture<'_, Result<ModelList, Failure>> {
        Box::pin(list_models(&self.driver, &self.target, &self.list_source))
    }
}

/// The fields of a request that limit the tokens of the answer.
const TOKEN_LIMITS: [&str; 5] = [
    "/max_completion_tokens",
    "/max_tokens",
    "/max_output_tokens",
    "/options/num_predict",
    "/generationConfig/maxOutputTokens",
];

impl LiveModel {
    /// The target of calls. For a node without a model, the first call asks the server which one it has.
    async fn target(&self, deadline: Instant) -> Arc<Target> {
        if let Some(target) = self.known_target() {
            return target;
        }
        let found = tokio::time::timeout_at(deadline, Box::pin(self.find_default())).await;
        // A server that cannot be reached is asked again at the next call.
        let Ok(Ok(target)) = found else { return Arc::clone(&self.target) };
        let target = Arc::new(target);
        self.set_found(Some(Arc::clone(&target)));
        target
    }

    /// The tools of a request: all, or the only one that may be called now. A model that binds its thoughts to the
    /// list gets all of them, and the conversation says which one it is.
    fn offered_tools<'a>(&self, reply: &'a Reply) -> &'a [ToolSpec] {
        let only = reply.only.as_ref().filter(|_| !self.options.binds_thoughts);
        let only = only.and_then(|only| reply.tools.iter().find(|tool| tool.name == *only));
        only.map_or(&*reply.tools, std::slice::from_ref)
    }

    /// Where a call goes, after what was learnt.
    fn first_target<'a>(&'a self, own: &'a Target, has_tools: bool, learnt: &[Change]) -> &'a Target {
        let (first, other) = self.interfaces(own, has_tools);
        let chosen = learnt.iter().find_map(|change| match change {
            Change::Interface(interface) => Some(*interface),
            _ => None,
        });
        other.filter(|other| chosen.is_some() && other.interface == chosen).unwrap_or(first)
    }

    /// Where a call begins, and where it may go if that interface is refused.
    fn interfaces<'a>(&'a self, own: &'a Target, has_tools: bool) -> (&'a Target, Option<&'a Target>) {
        let Some(other) = &self.other else { return (own, None) };
        if other.for_tools && has_tools { (&other.target, Some(own)) } else { (own, Some(&other.target)) }
    }

    /// None if the server has not yet been asked.
    fn known_target(&self) -> Option<Arc<Target>> {
        match &self.found_target {
            None => Some(Arc::clone(&self.target)),
            Some(found) => found.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Asks the server again at the next call, if it no longer has the model that was found.
    fn forget_target(&self, failure: &Failure) {
        if failure.code == RunErrorCode::ModelNotFound {
            self.set_found(None);
        }
    }

    fn set_found(&self, target: Option<Arc<Target>>) {
        if let Some(found) = &self.found_target {
            *found.lock().unwrap_or_else(PoisonError::into_inner) = target;
        }
    }

    async fn find_default(&self) -> Result<Target, Failure> {
        let list = list_models(&self.driver, &self.target, &self.list_source).await;
        let name = match list {
            Ok(list) if list.find(&self.target.model).is_none() => list.default_model,
            Err(failure) if failure.code != RunErrorCode::ModelError => return Err(failure),
            _ => None,
        };
        Ok(self.target.with_model(name.as_ref().unwrap_or(&self.target.model)))
    }

    /// Waits until the node may make one more call. The wait is part of the call's time.
    async fn wait_for_slot(
        &self,
        deadline: Instant,
        observer: Option<&dyn WaitObserver>,
    ) -> Result<Option<SemaphorePermit<'_>>, Failure> {
        let Some(slots) = &self.slots else { return Ok(None) };
        if let Ok(slot) = slots.try_acquire() {
            return Ok(Some(slot));
        }
        if let Some(observer) = observer {
            observer.waiting(Some(ModelWait::Busy));
        }
        let slot = tokio::time::timeout_at(deadline, slots.acquire()).await;
        if let Some(observer) = observer {
            observer.waiting(None);
        }
        slot.ok().and_then(Result::ok).map(Some).ok_or_else(|| {
            let message = format!(
                "no call of `{}` ended within {} ms, so this one could not begin; `maxConcurrent` of its node \
                 limits the calls at once",
                self.info.model,
                self.target.timeout.as_millis()
            );
            Failure { code: RunErrorCode::Timeout, message }
        })
    }

    fn no_tools(&self) -> Failure {
        let message = format!(
            "the model `{}` takes no tools; choose another one, or set `capabilities` of its node to \
             {{\"tools\": true}} if it does",
            self.info.model
        );
        Failure { code: RunErrorCode::ConfigInvalid, message }
    }

    /// Refuses images that the model or its API does not take.
    fn check_images(&self, messages: &[Arc<ChatMessage>]) -> Result<(), Failure> {
        let taken = self.target.wire.image_types();
        for image in messages.iter().flat_map(|message| &message.images) {
            if !self.info.vision {
                return Err(self.no_vision());
            }
            if !taken.contains(&image.mime) {
                return Err(self.no_format(image.mime, taken));
            }
        }
        Ok(())
    }

    fn no_format(&self, format: ImageType, taken: &[ImageType]) -> Failure {
        let taken: Vec<&str> = taken.iter().map(|format| format.as_str()).collect();
        let message = format!(
            "the model `{}` takes no images of the type {}, only {}; convert them, or choose another model",
            self.info.model,
            format.as_str(),
            taken.join(", ")
        );
        Failure { code: RunErrorCode::ConfigInvalid, message }
    }

    fn no_vision(&self) -> Failure {
        let message = format!(
            "the model `{}` takes no images; choose another one, or set `capabilities` of its node to \
             {{\"vision\": true}} if it does",
            self.info.model
        );
        Failure { code: RunErrorCode::ConfigInvalid, message }
    }
}

/// The size of a request, with about as many bytes for an image as a text of its tokens has.
fn request_bytes(chat: &ChatRequest<'_>) -> usize {
    let messages = chat.messages.iter().map(|message| message.bytes_with_images());
    let tools = chat
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.input_schema.as_ref().map_or(0, size_of));
    messages.sum::<usize>() + tools.sum::<usize>()
}

/// Gives an id to every call that has none, or that has the id of another call of the conversation. Results
/// refer to calls by id, some servers send none, and others count from the start in every answer.
fn give_unique_ids(calls: &mut [RequestedCall], earlier: &[Arc<ChatMessage>]) {
    if calls.is_empty() {
        return;
    }
    let mut taken: HashSet<&str> =
        earlier.iter().flat_map(|message| &message.tool_calls).map(|call| call.id.as_str()).collect();
    let mut number = taken.len();
    taken.insert("");
    for index in 0..calls.len() {
        let (before, rest) = calls.split_at(index);
        let id = &rest[0].id;
        if !taken.contains(id.as_str()) && before.iter().all(|other| other.id != *id) {
            continue;
        }
        let is_free = |id: &String| !taken.contains(id.as_str()) && calls.iter().all(|other| other.id != *id);
        while !is_free(&format!("call_{number}")) {
            number += 1;
        }
        calls[index].id = format!("call_{number}");
    }
}

#[cfg(test)]
#[path = "live_model_tests.rs"]
mod tests;
