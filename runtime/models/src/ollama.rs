//! The native chat API of Ollama.
//!
//! Owns the format of its requests, answers, streams and errors. The API has no tool choice. If no tool may
//! be called, the request has no tools. The API cannot require a call.

use crate::answer_text::{AnswerText, without_thoughts};
use crate::event_stream::StreamFormat;
use crate::lenient::{
    Arguments, InputSchema, parse_object, parse_provider_error, provider_error, token_count,
};
use crate::own_parts::{kept_parts, parts_of, text_at};
use crate::wire::{
    AnswerAssembler, AnswerFormat, ChatRequest, MAX_CALLS, ProviderError, Reasoning, Wire, WireError,
};
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_contract::plan::ToolSpec;
use redflow_contract::transcript::{ChatMessage, ChatRole, RequestedCall};
use redflow_ports::ToolChoice;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::sync::Arc;

const NAME: &str = "ollama-chat";

/// The wire, with the settings of a node, which every request has.
#[derive(Debug, Clone, Default)]
pub struct OllamaChat {
    /// As `ollama list` prints it.
    pub model: String,
    /// Higher values give more varied answers.
    pub temperature: Option<f64>,
    /// The share of the most likely tokens to choose from.
    pub top_p: Option<f64>,
    /// The number of most likely tokens to choose from.
    pub top_k: Option<u32>,
    /// For reproducible answers.
    pub seed: Option<i64>,
    /// The most output tokens.
    pub num_predict: Option<u32>,
    /// The most input and output tokens.
    pub num_ctx: Option<u32>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// How long the model stays loaded, such as `5m`. A plain number is in seconds; a negative one means
    /// forever.
    pub keep_alive: Option<String>,
    /// Whether the model thinks before it answers.
    pub think: Option<bool>,
}

impl Wire for OllamaChat {
    fn name(&self) -> &str {
        NAME
    }

    fn with_model(&self, model: &str) -> Box<dyn Wire> {
        Box::new(Self { model: model.to_owned(), ..self.clone() })
    }

    fn encode(&self, chat: &ChatRequest<'_>, out: &mut Vec<u8>) -> serde_json::Result<()> {
        let has_tools = !chat.tools.is_empty() && chat.tool_choice != ToolChoice::None;
        let options = Options {
            temperature: self.temperature,
            top_p: self.top_p,
            top_k: self.top_k,
            seed: self.seed,
            num_predict: self.num_predict,
            num_ctx: self.num_ctx,
            stop: &self.stop,
        };
        let body = RequestBody {
            model: &self.model,
            messages: Messages { all: chat.messages, reasoning: chat.reasoning },
            tools: has_tools.then_some(Tools(chat.tools)),
            format: match chat.format {
                AnswerFormat::Text => None,
                AnswerFormat::JsonObject => Some(FormatParam::Json("json")),
                AnswerFormat::JsonSchema { schema, .. } => Some(FormatParam::Schema(schema)),
            },
            stream: chat.stream,
            options: (options != Options::default()).then_some(options),
            keep_alive: self.keep_alive.as_deref().map(KeepAlive::parse),
            think: self.think,
        };
        serde_json::to_writer(out, &body)
    }

    fn decode(&self, body: &[u8], reasoning: Reasoning) -> Result<ModelAnswer, WireError> {
        let mut assembler = Assembler::new(reasoning);
        let response: ChatResponse<'_> = parse_object(body)?;
        if response.message.is_none() && response.error.is_none() {
            return Err(WireError::Malformed("the answer has no message"));
        }
        assembler.add(response)?;
        Ok(assembler.into_answer())
    }

    fn stream_format(&self) -> StreamFormat {
        StreamFormat::JsonLines
    }

    fn assembler(&self, reasoning: Reasoning) -> Box<dyn AnswerAssembler> {
        Box::new(Assembler::new(reasoning))
    }

    fn parse_error(&self, status: u16, body: &[u8]) -> ProviderError {
        parse_provider_error(status, body)
    }
}

#[derive(Serialize)]
struct RequestBody<'a> {
    model: &'a str,
    messages: Messages<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Tools<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<FormatParam<'a>>,
    /// Always written, because the default is true.
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Options<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_alive: Option<KeepAlive<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<bool>,
}

#[derive(Default, PartialEq, Serialize)]
struct Options<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_ctx: Option<u32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [String],
}

#[derive(Serialize)]
#[serde(untagged)]
enum FormatParam<'a> {
    Json(&'static str),
    Schema(&'a RawValue),
}

/// Ollama accepts a text only with a unit, and a plain number only as a number.
#[derive(Serialize)]
#[serde(untagged)]
enum KeepAlive<'a> {
    Seconds(i64),
    Text(&'a str),
}

impl<'a> KeepAlive<'a> {
    fn parse(text: &'a str) -> Self {
        text.parse().map_or(Self::Text(text), Self::Seconds)
    }
}

struct Tools<'a>(&'a [ToolSpec]);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Tool<'a> {
            r#type: &'static str,
            function: FunctionParam<'a>,
        }
        #[derive(Serialize)]
        struct FunctionParam<'a> {
            name: &'a str,
            description: &'a str,
            parameters: InputSchema<'a>,
        }
        serializer.collect_seq(self.0.iter().map(|tool| Tool {
            r#type: "function",
            function: FunctionParam {
                name: &tool.name,
                description: &tool.description,
                parameters: InputSchema(tool.input_schema.as_ref()),
            },
        }))
    }
}

struct Messages<'a> {
    all: &'a [Arc<ChatMessage>],
    reasoning: Reasoning,
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Message<'a> {
            role: &'static str,
            content: &'a str,
            #[serde(skip_serializing_if = "Vec::is_empty")]
            images: Vec<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            thinking: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            tool_calls: Option<CallParams<'a>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            tool_name: Option<&'a str>,
        }
        serializer.collect_seq(self.all.iter().enumerate().map(|(index, message)| {
            Message {
                role: message.role.as_str(),
                content: kept_text(message, self.reasoning, "content")
                    .filter(|content| without_thoughts(content) == message.content)
                    .unwrap_or(&message.content),
                images: message.images.iter().map(|image| &*image.data).collect(),
                thinking: kept_text(message, self.reasoning, "thinking"),
                tool_calls: (!message.tool_calls.is_empty()).then_some(CallParams(&message.tool_calls)),
                tool_name: message.tool_call_id.as_deref().and_then(|id| called_tool(&self.all[..index], id)),
            }
        }))
    }
}

/// A text of the answer that goes back as it came.
fn kept_text<'a>(message: &'a ChatMessage, reasoning: Reasoning, key: &str) -> Option<&'a str> {
    parts_of(message, NAME, reasoning)?.iter().find_map(|part| text_at(part, key))
}

/// The tool that the model last called with this id. Results follow their calls.
fn called_tool<'a>(before: &'a [Arc<ChatMessage>], id: &str) -> Option<&'a str> {
    let assistant = before.iter().rev().find(|message| message.role == ChatRole::Assistant)?;
    assistant.tool_calls.iter().find(|call| call.id == id).map(|call| call.name.as_str())
}

struct CallParams<'a>(&'a [RequestedCall]);

impl Serialize for CallParams<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct CallParam<'a> {
            function: CalledFunction<'a>,
        }
        #[derive(Serialize)]
        struct CalledFunction<'a> {
            name: &'a str,
            arguments: Arguments<'a>,
        }
        serializer.collect_seq(self.0.iter().map(|call| CallParam {
            function: CalledFunction { name: &call.name, arguments: Arguments(&call.arguments) },
        }))
    }
}

/// A whole answer, or one line of a stream, which has the same form.
#[derive(Deserialize)]
struct ChatResponse<'a> {
    model: Option<String>,
    #[serde(borrow)]
    message: Option<ResponseMessage<'a>>,
    #[serde(default)]
    done: bool,
    done_reason: Option<String>,
    prompt_eval_count: Option<&'a RawValue>,
    eval_count: Option<&'a RawValue>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct ResponseMessage<'a> {
    content: Option<String>,
    thinking: Option<String>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ToolCall<'a>>>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    id: Option<String>,
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(default)]
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl Function<'_> {
    /// Ollama sends an object. Servers that imitate it may send its JSON text.
    fn arguments_text(&self) -> String {
        let json = self.arguments.map_or("{}", RawValue::get);
        let text = serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned());
        if text.is_empty() { "{}".to_owned() } else { text }
    }
}

/// Assembles an answer. The driver, which reads the bytes, bounds its size.
struct Assembler {
    reasoning: Reasoning,
    answer: ModelAnswer,
    /// A template that does not know the model's tags leaves its thoughts in the text.
    text: AnswerText,
    thinking: String,
    done: bool,
    done_reason: Option<String>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl Assembler {
    fn new(reasoning: Reasoning) -> Self {
        Self {
            reasoning,
            answer: ModelAnswer::default(),
            text: AnswerText::new(true),
            thinking: String::new(),
            done: false,
            done_reason: None,
            input_tokens: None,
            output_tokens: None,
        }
    }

    fn add(&mut self, response: ChatResponse<'_>) -> Result<(), WireError> {
        if let Some(error) = response.error {
            return Err(WireError::Provider(provider_error(500, &json!({ "error": error }))));
        }
        if let Some(message) = response.message {
            self.text.push(&message.content.unwrap_or_default());
            if self.reasoning.is_kept() {
                self.thinking.push_str(&message.thinking.unwrap_or_default());
            }
            let room = MAX_CALLS.saturating_sub(self.answer.tool_calls.len());
            for call in message.tool_calls.unwrap_or_default().into_iter().take(room) {
                let arguments = call.function.arguments_text();
                // Many versions send no id.
                let id = call.id.unwrap_or_default();
                self.answer.tool_calls.push(RequestedCall { id, name: call.function.name, arguments });
            }
        }
        self.answer.model = response.model.or(self.answer.model.take());
        self.done |= response.done;
        self.done_reason = response.done_reason.or(self.done_reason.take());
        self.input_tokens = parse_count(response.prompt_eval_count).or(self.input_tokens);
        self.output_tokens = parse_count(response.eval_count).or(self.output_tokens);
        Ok(())
    }

    fn into_answer(self) -> ModelAnswer {
        let mut answer = self.answer;
        let (text, all) = self.text.finish();
        answer.text = text;
        answer.finish = match self.done_reason.as_deref() {
            Some("length") => ModelFinish::Truncated,
            _ if !answer.tool_calls.is_empty() => ModelFinish::ToolCalls,
            _ => ModelFinish::Stop,
        };
        if self.input_tokens.is_some() || self.output_tokens.is_some() {
            answer.usage = Some(Usage {
                input_tokens: self.input_tokens.unwrap_or(0),
                output_tokens: self.output_tokens.unwrap_or(0),
                ..Usage::default()
            });
        }
        let all = all.filter(|_| self.reasoning.is_kept());
        let thinking = Some(self.thinking).filter(|thinking| !thinking.is_empty());
        let part: Map<String, Value> = [("thinking", thinking), ("content", all)]
            .into_iter()
            .filter_map(|(key, text)| Some((key.to_owned(), text?.into())))
            .collect();
        let part = Some(Value::Object(part)).filter(|part| *part != json!({}));
        answer.reasoning = kept_parts(NAME, part.into_iter().collect());
        answer
    }
}

/// Ignores an invalid number, which must not fail the answer.
fn parse_count(json: Option<&RawValue>) -> Option<u64> {
    json.and_then(|json| serde_json::from_str(json.get()).ok()).and_then(|value: Value| token_count(&value))
}

impl AnswerAssembler for Assembler {
    fn add_event(&mut self, _: Option<&str>, data: &[u8]) -> Result<bool, WireError> {
        if !data.trim_ascii().is_empty() {
            self.add(parse_object(data)?)?;
        }
        Ok(self.done)
    }

    fn visit_text(&self, visit: &mut dyn FnMut(&str)) {
        visit(self.text.visible());
    }

    fn held_bytes(&self) -> usize {
        let calls = self.answer.tool_calls.iter().map(|call| call.name.len() + call.arguments.len());
        self.text.all().len() + self.thinking.len() + calls.sum::<usize>()
    }

    fn finish(self: Box<Self>) -> Result<ModelAnswer, WireError> {
        if self.done { Ok(self.into_answer()) } else { Err(WireError::Interrupted) }
    }
}

#[cfg(test)]
#[path = "ollama_tests.rs"]
mod tests;
