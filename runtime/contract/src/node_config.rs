//! Properties of the node types we read. Unknown properties are always allowed: a flow file belongs to its
//! owner. Agent Core's own schema is written by hand; the schemas of these are generated.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A struct of optional properties, as Node-RED has them.
macro_rules! config {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            $($(#[$field_doc])* #[serde(skip_serializing_if = "is_unset")] pub $field: Option<$type>,)*
        }
    };
}

pub(crate) use config;

pub(crate) fn is_unset<T>(value: &Option<T>) -> bool {
    value.is_none()
}

config! {
    /// What every agent may say beside its own schema.
    AgentBindingConfig {
        /// The bound model's id.
        model: String,
        /// The bound memory's id.
        memory: String,
        /// The bound tools' ids.
        tools: Vec<String>,
        /// The conversation; wins over `msg.sessionId` and the memory's.
        session_id: String,
        /// Milliseconds one run may take.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        timeout: u64,
    }
}

/// One of Agent Core's stop conditions, after validation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum StopCondition {
    /// Always on; may be written.
    FinalAnswer {},
    /// Stop after a tool when the model was at least this sure.
    ConfidenceThreshold {
        /// 0 to 1.
        value: f64,
    },
    /// Stop after the tool of this iteration.
    IterationLimit {
        /// From 1.
        value: u32,
    },
}

/// What a tool call may do to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// Changes nothing.
    Read,
    /// May be made again with the same key.
    Idempotent,
    /// Never made twice.
    AtMostOnce,
}

/// What happens to a run when nobody knows whether its call happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnUnknown {
    /// The run waits until someone says what happened.
    #[default]
    Wait,
    /// The run ends in `TOOL_OUTCOME_UNKNOWN`.
    Fail,
}

config! {
    /// What every tool node may say; also a data node that is a tool.
    ToolConfig {
        /// The name the model calls it by.
        tool_name: String,
        /// What it does, for the model.
        description: String,
        /// JSON Schema of its input: an object, or JSON text.
        #[cfg_attr(feature = "codegen", schemars(with = "Option<ObjectOrText>"), ts(type = "string | { [key: string]: JsonValue }", optional))]
        input_schema: Value,
        /// What a call may do to the world.
        effect: EffectClass,
        /// Milliseconds one call may take.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        timeout: u64,
        /// What happens when a call's outcome is unknown.
        on_unknown: OnUnknown,
    }
}

/// Stands for `inputSchema` in the generated schema.
#[cfg(feature = "codegen")]
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)]
enum ObjectOrText {
    /// A JSON Schema.
    Object(serde_json::Map<String, Value>),
    /// A JSON Schema as text; empty for none.
    Text(String),
}

config! {
    /// What every memory node may say.
    MemoryConfig {
        /// The conversation, when neither the agent nor the message names one.
        session_id: String,
    }
}

/// `scripted-model`: answers from a list, for demos and tests without a network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ScriptedModelConfig {
    /// The k-th model call of a run gets the k-th reply, the last one repeats. A string goes out as it is,
    /// anything else as its JSON.
    #[cfg_attr(feature = "codegen", schemars(length(min = 1)))]
    pub replies: Vec<Value>,
    /// Milliseconds to wait before each answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", schemars(range(max = 600_000)), ts(optional))]
    pub delay_ms: Option<u64>,
}

/// One thing a change node does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(default)]
pub struct ChangeRule {
    /// What: `set`, `change`, `delete` or `move`.
    pub t: String,
    /// The property of the message, such as `payload` or `payload.rooms[0]`.
    #[cfg_attr(feature = "codegen", schemars(length(min = 1)))]
    pub p: String,
    /// What it is a property of; `msg` if left out.
    #[serde(skip_serializing_if = "is_unset")]
    pub pt: Option<String>,
    /// The value, or the property it is moved to.
    #[serde(skip_serializing_if = "is_unset")]
    pub to: Option<Value>,
    /// The type of that; `str` if left out.
    #[serde(skip_serializing_if = "is_unset")]
    pub tot: Option<String>,
    /// What is searched for.
    #[serde(skip_serializing_if = "is_unset")]
    pub from: Option<Value>,
    /// The type of that; `str` if left out.
    #[serde(skip_serializing_if = "is_unset")]
    pub fromt: Option<String>,
}

config! {
    /// `change`.
    ChangeConfig {
        /// What it does, in order; absent in flows of old editors.
        rules: Vec<ChangeRule>,
    }
}

/// One property an inject node sets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(default)]
pub struct InjectProperty {
    /// The property of the message, such as `payload` or `user.name`.
    #[cfg_attr(feature = "codegen", schemars(length(min = 1)))]
    pub p: String,
    /// Its value, as text.
    #[serde(skip_serializing_if = "is_unset")]
    pub v: Option<Value>,
    /// The type of the value.
    #[serde(skip_serializing_if = "is_unset")]
    pub vt: Option<String>,
}

config! {
    /// `inject`.
    InjectConfig {
        /// What the message is made of; absent in flows of old editors.
        props: Vec<InjectProperty>,
        /// The payload, as text.
        payload: Value,
        /// The payload's type.
        payload_type: String,
        /// The topic.
        topic: String,
        /// Whether it fires once, a little after the flow has started.
        #[cfg_attr(feature = "codegen", schemars(with = "Option<bool>"), ts(type = "boolean", optional))]
        once: Value,
        /// How many seconds after that; a number or its text.
        #[cfg_attr(feature = "codegen", schemars(with = "Option<NumberOrText>"), ts(type = "number | string", optional))]
        once_delay: Value,
        /// It fires every so many seconds; a number or its text, empty for never.
        #[cfg_attr(feature = "codegen", schemars(with = "Option<NumberOrText>"), ts(type = "number | string", optional))]
        repeat: Value,
        /// It fires at these times: a cron expression of 5 or 6 fields, in local time. `repeat` comes first.
        #[cfg_attr(feature = "codegen", schemars(with = "Option<String>"), ts(type = "string", optional))]
        crontab: Value,
    }
}

/// Stands for a number in the generated schema that editors write as text.
#[cfg(feature = "codegen")]
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)]
enum NumberOrText {
    /// The number.
    Number(f64),
    /// Its text; empty for none.
    Text(String),
}

config! {
    /// `debug`.
    DebugConfig {
        /// Whether it prints.
        active: bool,
        /// The property to print, or `true` for the whole message.
        #[cfg_attr(feature = "codegen", schemars(with = "Value"))]
        complete: Value,
        /// What `complete` names: `msg`, `full` or `jsonata`.
        target_type: String,
    }
}

config! {
    /// `link in` and `link out`.
    LinkConfig {
        /// The ids at the other end.
        links: Vec<String>,
        /// `link`, or `return` for a link out that answers a link call.
        mode: String,
    }
}

/// One variable of a tab, a group, a subflow or the whole flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(default)]
pub struct EnvVariable {
    /// Its name.
    pub name: String,
    /// Its value, as text.
    #[serde(skip_serializing_if = "is_unset")]
    pub value: Option<Value>,
    /// The type of the value: `str`, `num`, `bool`, `json`, `env` and others.
    #[serde(rename = "type", skip_serializing_if = "is_unset")]
    pub type_name: Option<String>,
}

config! {
    /// `tab`.
    TabConfig {
        /// Its name.
        label: String,
        /// Whether none of its nodes run.
        disabled: bool,
        /// Its variables.
        env: Vec<EnvVariable>,
    }
}

config! {
    /// `group` and `global-config`.
    GroupConfig {
        /// Its variables.
        env: Vec<EnvVariable>,
    }
}

/// An input or output of a subflow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(default)]
pub struct SubflowPort {
    /// The nodes inside it is joined to.
    pub wires: Vec<SubflowWire>,
}

/// One end of a wire inside a subflow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(default)]
pub struct SubflowWire {
    /// The node inside, or the subflow itself for its own input.
    pub id: String,
    /// The node's output.
    #[serde(skip_serializing_if = "is_unset")]
    pub port: Option<u32>,
}

config! {
    /// `subflow`.
    SubflowConfig {
        /// Its name.
        name: String,
        /// Its input: none or one.
        r#in: Vec<SubflowPort>,
        /// Its outputs.
        out: Vec<SubflowPort>,
        /// Its variables.
        env: Vec<EnvVariable>,
    }
}

config! {
    /// `catch`.
    CatchConfig {
        /// The nodes it listens to; null for all on the tab, `group` for its group.
        #[cfg_attr(feature = "codegen", schemars(with = "CatchScope"), ts(type = "string[] | \"group\" | null", optional))]
        scope: Value,
        /// Only errors no other catch node took.
        uncaught: bool,
    }
}

/// Stands for `scope` in the generated schema.
#[cfg(feature = "codegen")]
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)]
enum CatchScope {
    /// These nodes.
    Nodes(Vec<String>),
    /// `group`.
    Group(String),
    /// All nodes of the tab.
    All(()),
}
