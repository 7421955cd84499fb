//! Ollama's own chat API.
//!
//! Owns the shape of its requests, answers, streams and errors. It has no choice of tools: where none may be
//! called, none are offered; that one must be called cannot be said.

use crate::loose::{Arguments, InputSchema, count, object, provider_error, provider_error_in};
use crate::wire::{Assemble, Chat, Format, Framing, ProviderError, Wire, WireError};
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_contract::plan::ToolSpec;
use redflow_contract::transcript::{ChatMessage, ChatRole, OpaqueParts, RequestedCall};
use redflow_ports::ToolChoice;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;

const NAME: &str = "ollama-chat";
/// More calls than any answer asks for.
const MAX_CALLS: usize = 128;

/// The wire, with what every request of a model says.
#[derive(Debug, Clone, Default)]
pub struct OllamaChat {
    /// The model.
    pub model: String,
    /// How freely it picks words.
    pub temperature: Option<f64>,
    /// From which share of the likely words.
    pub top_p: Option<f64>,
    /// From how many of the likely words.
    pub top_k: Option<u32>,
    /// What its chance begins with.
    pub seed: Option<i64>,
    /// The most tokens it may write.
    pub num_predict: Option<u32>,
    /// The most tokens it may read and write.
    pub num_ctx: Option<u32>,
    /// Texts it stops at.
    pub stop: Vec<String>,
    /// How long the model stays loaded, such as `5m`; a number alone is in seconds, below 0 it is for ever.
    pub keep_alive: Option<String>,
    /// Whether it thinks first.
    pub think: Option<bool>,
}

impl Wire for OllamaChat {
    fn name(&self) -> &'static str {
        NAME
    }

    fn encode(&self, chat: &Chat<'_>, out: &mut Vec<u8>) -> serde_json::Result<()> {
        let offered = !chat.tools.is_empty() && chat.tool_choice != ToolChoice::None;
        let options = Options {
            temperature: self.temperature,
            top_p: self.top_p,
            top_k: self.top_k,
            seed: self.seed,
            num_predict: self.num_predict,
            num_ctx: self.num_ctx,
            stop: &self.stop,
        };
        let body = Body {
            model: &self.model,
            messages: Messages { all: chat.messages, reasoning: chat.reasoning },
            tools: offered.then_some(Tools(chat.tools)),
            format: match chat.format {
                Format::Text => None,
                Format::JsonObject => Some(FormatOf::Json("json")),
                Format::JsonSchema(schema) => Some(FormatOf::Schema(schema)),
            },
            stream: chat.stream,
            options: (options != Options::default()).then_some(options),
            keep_alive: self.keep_alive.as_deref().map(KeepAlive::read),
            think: self.think,
        };
        serde_json::to_writer(out, &body)
    }

    fn decode(&self, body: &[u8], reasoning: bool) -> Result<ModelAnswer, WireError> {
        let mut answer = Assembly { reasoning, ..Assembly::default() };
        let line: Line<'_> = object(body)?;
        if line.message.is_none() && line.error.is_none() {
            return Err(WireError::Garbled("the answer has no message"));
        }
        answer.take(line)?;
        Ok(answer.whole())
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn assemble(&self, reasoning: bool) -> Box<dyn Assemble> {
        Box::new(Assembly { reasoning, ..Assembly::default() })
    }

    fn error(&self, status: u16, body: &[u8]) -> ProviderError {
        provider_error_in(status, body)
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Messages<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Tools<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<FormatOf<'a>>,
    /// Always said: left out, it is true.
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
enum FormatOf<'a> {
    Json(&'static str),
    Schema(&'a RawValue),
}

/// A text must have a unit; what has none is only taken as a number.
#[derive(Serialize)]
#[serde(untagged)]
enum KeepAlive<'a> {
    Seconds(i64),
    Text(&'a str),
}

impl<'a> KeepAlive<'a> {
    fn read(text: &'a str) -> Self {
        text.parse().map_or(Self::Text(text), Self::Seconds)
    }
}

struct Tools<'a>(&'a [ToolSpec]);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Tool<'a> {
            r#type: &'static str,
            function: Described<'a>,
        }
        #[derive(Serialize)]
        struct Described<'a> {
            name: &'a str,
            description: &'a str,
            parameters: InputSchema<'a>,
        }
        serializer.collect_seq(self.0.iter().map(|tool| Tool {
            r#type: "function",
            function: Described {
                name: &tool.name,
                description: &tool.description,
                parameters: InputSchema(tool.input_schema.as_ref()),
            },
        }))
    }
}

struct Messages<'a> {
    all: &'a [Arc<ChatMessage>],
    reasoning: bool,
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Message<'a> {
            role: &'static str,
            content: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            thinking: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            tool_calls: Option<Calls<'a>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            tool_name: Option<&'a str>,
        }
        serializer.collect_seq(self.all.iter().enumerate().map(|(at, message)| Message {
            role: message.role.as_str(),
            content: &message.content,
            thinking: thought(message).filter(|_| self.reasoning),
            tool_calls: (!message.tool_calls.is_empty()).then_some(Calls(&message.tool_calls)),
            tool_name: message.tool_call_id.as_deref().and_then(|id| name_of(&self.all[..at], id)),
        }))
    }
}

fn thought(message: &ChatMessage) -> Option<&str> {
    let opaque = message.reasoning.as_ref().filter(|opaque| opaque.wire == NAME)?;
    opaque.parts.iter().find_map(|part| part.get("thinking")?.as_str())
}

/// The tool the model last called under this id: results follow their calls.
fn name_of<'a>(before: &'a [Arc<ChatMessage>], id: &str) -> Option<&'a str> {
    let asked = before.iter().rev().find(|message| message.role == ChatRole::Assistant)?;
    asked.tool_calls.iter().find(|call| call.id == id).map(|call| call.name.as_str())
}

struct Calls<'a>(&'a [RequestedCall]);

impl Serialize for Calls<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Call<'a> {
            function: Called<'a>,
        }
        #[derive(Serialize)]
        struct Called<'a> {
            name: &'a str,
            arguments: Arguments<'a>,
        }
        serializer.collect_seq(self.0.iter().map(|call| Call {
            function: Called { name: &call.name, arguments: Arguments(&call.arguments) },
        }))
    }
}

/// A whole answer, or one line of a stream: they look the same.
#[derive(Deserialize)]
struct Line<'a> {
    model: Option<String>,
    #[serde(borrow)]
    message: Option<Said<'a>>,
    #[serde(default)]
    done: bool,
    done_reason: Option<String>,
    prompt_eval_count: Option<&'a RawValue>,
    eval_count: Option<&'a RawValue>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Said<'a> {
    content: Option<String>,
    thinking: Option<String>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Asked<'a>>>,
}

#[derive(Deserialize)]
struct Asked<'a> {
    id: Option<String>,
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Function<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl Function<'_> {
    /// An object; of servers that only look like Ollama also its text.
    fn arguments(&self) -> String {
        let json = self.arguments.map_or("{}", RawValue::get);
        let text = serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned());
        if text.is_empty() { "{}".to_owned() } else { text }
    }
}

/// An answer being put together. Whoever reads the bytes bounds its size.
#[derive(Default)]
struct Assembly {
    reasoning: bool,
    answer: ModelAnswer,
    thinking: String,
    done: bool,
    done_reason: Option<String>,
    read: Option<u64>,
    written: Option<u64>,
}

impl Assembly {
    fn take(&mut self, line: Line<'_>) -> Result<(), WireError> {
        if let Some(error) = line.error {
            return Err(WireError::Provider(provider_error(500, &json!({ "error": error }))));
        }
        if let Some(said) = line.message {
            self.answer.text.push_str(&said.content.unwrap_or_default());
            if self.reasoning {
                self.thinking.push_str(&said.thinking.unwrap_or_default());
            }
            for asked in said.tool_calls.unwrap_or_default() {
                let nth = self.answer.tool_calls.len();
                if nth == MAX_CALLS {
                    return Err(WireError::Garbled("the answer asks for too many calls"));
                }
                let arguments = asked.function.arguments();
                // Many versions send none.
                let id = asked.id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("call_{nth}"));
                self.answer.tool_calls.push(RequestedCall { id, name: asked.function.name, arguments });
            }
        }
        self.answer.model = line.model.or(self.answer.model.take());
        self.done |= line.done;
        self.done_reason = line.done_reason.or(self.done_reason.take());
        self.read = counted(line.prompt_eval_count).or(self.read);
        self.written = counted(line.eval_count).or(self.written);
        Ok(())
    }

    fn whole(self) -> ModelAnswer {
        let mut answer = self.answer;
        answer.finish = match self.done_reason.as_deref() {
            Some("length") => ModelFinish::Truncated,
            _ if !answer.tool_calls.is_empty() => ModelFinish::ToolCalls,
            _ => ModelFinish::Stop,
        };
        if self.read.is_some() || self.written.is_some() {
            answer.usage = Some(Usage {
                input_tokens: self.read.unwrap_or(0),
                output_tokens: self.written.unwrap_or(0),
                ..Usage::default()
            });
        }
        if !self.thinking.is_empty() {
            let parts = vec![json!({ "thinking": self.thinking })];
            answer.reasoning = Some(OpaqueParts { wire: NAME.to_owned(), parts });
        }
        answer
    }
}

/// An odd number is no reason to lose an answer: it is not counted.
fn counted(json: Option<&RawValue>) -> Option<u64> {
    json.and_then(|json| serde_json::from_str(json.get()).ok()).and_then(|value: Value| count(&value))
}

impl Assemble for Assembly {
    fn event(&mut self, _: Option<&str>, data: &[u8]) -> Result<bool, WireError> {
        if !data.trim_ascii().is_empty() {
            self.take(object(data)?)?;
        }
        Ok(self.done)
    }

    fn text(&self, tell: &mut dyn FnMut(&str)) {
        tell(&self.answer.text);
    }

    fn finish(self: Box<Self>) -> Result<ModelAnswer, WireError> {
        if self.done { Ok(self.whole()) } else { Err(WireError::Cut) }
    }
}

#[cfg(test)]
#[path = "ollama_tests.rs"]
mod tests;
