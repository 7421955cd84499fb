//! A message on its way through a flow. The message of an agent becomes one object only when a node reads it whole.

use crate::Message;
use crate::envelope::{AgentEnvelope, AgentResult, ModelResponseResult};
use crate::run_error::MessageError;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::ops::Deref;
use std::sync::OnceLock;

/// A message of a flow.
#[derive(Debug, Clone, Default)]
pub struct FlowMessage {
    /// The message of an agent; none for any other.
    agent: Option<Box<MessageParts>>,
    /// The whole message. Of an agent's, it is made when somebody reads it.
    whole: OnceLock<Message>,
}

/// The parts of a message that an agent sends.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageParts {
    /// The properties of the incoming message, with the new payload.
    pub rest: Message,
    /// The state of the run.
    pub envelope: AgentEnvelope,
    /// What the run, or the model, gave.
    pub result: MessageResult,
    /// The error; none if the run did not fail.
    pub error: Option<MessageError>,
}

/// The property `agentResult` of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum MessageResult {
    /// Of a run that has ended.
    Run(AgentResult),
    /// Of an answer of the model.
    Model(ModelResponseResult),
}

impl MessageParts {
    /// The message as one object.
    #[must_use]
    pub fn into_message(self) -> Message {
        let Self { rest: mut message, envelope, result, error } = self;
        message.insert("envelope".to_owned(), to_value(&envelope));
        message.insert("agentResult".to_owned(), to_value(&result));
        message.extend(error.map(|error| ("error".to_owned(), to_value(&error))));
        message
    }
}

/// Serialises one of our types. They have string keys only, so this cannot fail.
#[must_use]
pub fn to_value<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

impl Serialize for MessageParts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { rest, envelope, result, error } = self;
        let mut map = serializer.serialize_map(Some(rest.len() + 2 + usize::from(error.is_some())))?;
        for (key, value) in rest {
            map.serialize_entry(key, value)?;
        }
        map.serialize_entry("envelope", envelope)?;
        map.serialize_entry("agentResult", result)?;
        if let Some(error) = error {
            map.serialize_entry("error", error)?;
        }
        map.end()
    }
}

impl FlowMessage {
    /// A property. An agent's message stays in its parts, unless the property is one that the agent has added.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        match (&self.agent, self.whole.get()) {
            (Some(agent), None) if !matches!(key, "envelope" | "agentResult" | "error") => {
                agent.rest.get(key)
            }
            _ => Message::get(self, key),
        }
    }

    /// The text of the answer in the result of a run.
    #[must_use]
    pub fn answer(&self) -> Option<&str> {
        match self.agent.as_ref().map(|agent| &agent.result) {
            Some(MessageResult::Run(result)) => result.message.as_deref(),
            _ => None,
        }
    }

    /// The message as one object.
    #[must_use]
    pub fn into_message(self) -> Message {
        let agent = self.agent.map(|agent| *agent);
        self.whole.into_inner().or(agent.map(MessageParts::into_message)).unwrap_or_default()
    }
}

/// Makes the whole message when it is read for the first time.
impl Deref for FlowMessage {
    type Target = Message;

    fn deref(&self) -> &Message {
        let whole = || self.agent.as_deref().cloned().map(MessageParts::into_message);
        self.whole.get_or_init(|| whole().unwrap_or_default())
    }
}

impl From<Message> for FlowMessage {
    fn from(message: Message) -> Self {
        Self { agent: None, whole: message.into() }
    }
}

impl From<MessageParts> for FlowMessage {
    fn from(message: MessageParts) -> Self {
        Self { agent: Some(Box::new(message)), whole: OnceLock::new() }
    }
}

impl PartialEq for FlowMessage {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<'de> Deserialize<'de> for FlowMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Message::deserialize(deserializer).map(Self::from)
    }
}

/// Writes the parts of an agent's message without making it whole.
impl Serialize for FlowMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.agent {
            Some(agent) => agent.serialize(serializer),
            None => (**self).serialize(serializer),
        }
    }
}
