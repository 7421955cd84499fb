//! The body of a request.

use super::content::MessageContent;
use super::{MAX_ID, NAME, OpenaiResponses, is_commentary};
use crate::fold_root::{strictness, tool_schema};
use crate::lenient::tool_name;
use crate::openai::{
    IterList, Text, sent_arguments, serialize_cache, serialize_some, serialize_tool, short_id,
    tool_choice_name,
};
use crate::own_parts::{MessageRest, WithField, parts_of, text_at};
use crate::wire::{AnswerFormat, ChatRequest, Reasoning, Wire as _};
use redflow_contract::plan::ToolSpec;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

pub(super) struct Request<'a> {
    pub(super) wire: &'a OpenaiResponses,
    pub(super) chat: &'a ChatRequest<'a>,
}

impl Serialize for Request<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { wire, chat } = *self;
        let format = match chat.format {
            AnswerFormat::Text => None,
            AnswerFormat::JsonObject => Some(TextFormat::JsonObject),
            AnswerFormat::JsonSchema { name, schema, .. } => {
                Some(TextFormat::JsonSchema { name, schema, strict: true })
            }
        };
        // JSON mode requires the word JSON in the input, and instructions are not part of the input.
        let system = chat.messages.first().filter(|first| {
            first.role == ChatRole::System && !matches!(chat.format, AnswerFormat::JsonObject)
        });
        let input = chat.messages.iter().skip(usize::from(system.is_some()));
        let input = input.flat_map(|message| input_items(message, wire.name(), chat.reasoning));
        let has_tools = !chat.tools.is_empty();

        let tools = chat.tools.iter().map(|tool| ToolParam { tool, takes_any_root: wire.takes_any_root });
        let tools = has_tools.then_some(IterList(tools));

        let mut map = serializer.serialize_map(None)?;
        serialize_some(&mut map, "model", wire.model.as_deref())?;
        serialize_some(&mut map, "instructions", system.map(|system| &system.content))?;
        serialize_some(&mut map, "input", Some(IterList(input)))?;
        serialize_some(&mut map, "tools", tools)?;
        serialize_some(&mut map, "tool_choice", has_tools.then(|| tool_choice_name(chat.tool_choice)))?;
        serialize_some(&mut map, "text", format.map(|format| TextParam { format }))?;
        serialize_some(&mut map, "max_output_tokens", wire.max_output_tokens)?;
        serialize_some(&mut map, "temperature", wire.temperature)?;
        serialize_some(&mut map, "top_p", wire.top_p)?;
        serialize_some(&mut map, "reasoning", wire.reasoning_effort.map(|effort| ReasoningParam { effort }))?;
        serialize_some(
            &mut map,
            "include",
            (chat.reasoning.is_kept() && !wire.omits_include).then_some(["reasoning.encrypted_content"]),
        )?;
        serialize_cache(&mut map, chat.cache)?;
        serialize_some(&mut map, "store", Some(false))?;
        serialize_some(&mut map, "stream", chat.stream.then_some(true))?;
        map.end()
    }
}

#[derive(Serialize)]
struct TextParam<'a> {
    format: TextFormat<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TextFormat<'a> {
    JsonObject,
    JsonSchema { name: &'static str, schema: &'a RawValue, strict: bool },
}

#[derive(Serialize)]
struct ReasoningParam {
    effort: &'static str,
}

struct ToolParam<'a> {
    tool: &'a ToolSpec,
    takes_any_root: bool,
}

impl Serialize for ToolParam<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "function")?;
        let schema = tool_schema(self.tool, self.takes_any_root);
        serialize_tool(&mut map, self.tool, schema.as_deref())?;
        // The default is true, which few schemas of tools satisfy.
        map.serialize_entry("strict", &strictness(self.tool, schema.as_ref()).unwrap_or(false))?;
        map.end()
    }
}

#[derive(Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum InputItem<'a> {
    FunctionCall {
        call_id: &'a str,
        name: Cow<'a, str>,
        arguments: &'a str,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: &'a str,
    },
    /// A call as the provider sent it, with the arguments of the message.
    #[serde(untagged)]
    OwnCall(WithField<'a, &'a str>),
    #[serde(untagged)]
    Message {
        role: ChatRole,
        content: MessageContent<'a>,
    },
    /// Any other item as the provider sent it.
    #[serde(untagged)]
    Opaque(&'a Value),
}

/// The items of a message: as the provider sent them, or its text and its calls.
fn input_items<'a>(message: &'a ChatMessage, mark: &str, reasoning: Reasoning) -> Vec<InputItem<'a>> {
    let ChatMessage { role, content, tool_calls, tool_call_id, images, .. } = message;
    let mut items = Vec::new();
    // A journal or a memory of an earlier version does not name the server.
    let parts = parts_of(message, mark, reasoning).or_else(|| parts_of(message, NAME, reasoning));
    if let Some(parts) = parts {
        // A journal of an earlier version has only the reasoning, which came first.
        if parts.iter().all(is_thought) {
            items.extend(parts.iter().map(InputItem::Opaque));
        } else if let Some(own) = own_items(message, parts) {
            return own;
        }
    }
    match role {
        ChatRole::Tool => {
            let call_id = short_id(tool_call_id.as_deref().unwrap_or_default(), MAX_ID);
            items.push(InputItem::FunctionCallOutput { call_id, output: content });
        }
        _ if content.is_empty() && !tool_calls.is_empty() => {}
        _ => {
            items.push(InputItem::Message { role: *role, content: MessageContent { text: content, images } })
        }
    }
    items.extend(tool_calls.iter().map(|call| InputItem::FunctionCall {
        call_id: short_id(&call.id, MAX_ID),
        name: tool_name(&call.name),
        arguments: sent_arguments(&call.arguments),
    }));
    items
}

fn is_thought(item: &Value) -> bool {
    !matches!(text_at(item, "type"), Some("message" | "function_call"))
}

/// The items of an answer of this API, if the message still says the same.
fn own_items<'a>(message: &'a ChatMessage, parts: &'a [Value]) -> Option<Vec<InputItem<'a>>> {
    let texts: Vec<Option<String>> = parts.iter().map(message_text).collect();
    let is_final = |(item, text): (&Value, &Option<String>)| {
        !is_commentary(text_at(item, "phase")) && text.as_ref().is_some_and(|text| !text.is_empty())
    };
    // As in an answer, commentary counts only if there is no other text.
    let has_final = parts.iter().zip(&texts).any(is_final);
    let mut rest = MessageRest::of(message);
    let mut items = Vec::with_capacity(parts.len());
    for (item, text) in parts.iter().zip(&texts) {
        if let Some(text) = text.as_ref().filter(|_| !has_final || is_final((item, text))) {
            rest.take_text(text)?;
        }
        if text_at(item, "type") == Some("function_call") {
            let call = rest.take_call(text_at(item, "name").unwrap_or_default(), item.get("arguments"))?;
            let is_accepted = call.id.len() <= MAX_ID && tool_name(&call.name) == call.name;
            text_at(item, "call_id").filter(|id| *id == call.id && is_accepted)?;
            let value = sent_arguments(&call.arguments);
            items.push(InputItem::OwnCall(WithField { part: item.as_object()?, key: "arguments", value }));
        } else {
            items.push(InputItem::Opaque(item));
        }
    }
    rest.is_empty().then_some(items)
}

/// The text of a message item. None for an item of another type.
fn message_text(item: &Value) -> Option<String> {
    if text_at(item, "type") != Some("message") {
        return None;
    }
    Some(item.get("content").and_then(|content| Text::deserialize(content).ok()).unwrap_or_default().0)
}
