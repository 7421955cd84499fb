//! The properties of the node types that the runtime reads. Unknown properties are always allowed, because a
//! flow file belongs to its owner. Agent Core's own schema is written by hand; the schemas of these types are
//! generated.

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
    /// The properties that every agent may have in addition to its own schema.
    AgentBindingConfig {
        /// The id of the bound model.
        model: String,
        /// The id of the bound memory.
        memory: String,
        /// The ids of the bound tools.
        tools: Vec<String>,
        /// The conversation. Takes precedence over `msg.sessionId` and the memory's own.
        session_id: String,
        /// The longest duration of a run, in milliseconds.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        timeout: u64,
    }
}

/// One of Agent Core's stop conditions, after validation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum StopCondition {
    /// Always active; may be written all the same.
    FinalAnswer {},
    /// Stops after a tool call if the model was at least this sure.
    ConfidenceThreshold {
        /// The confidence, from 0 to 1.
        value: f64,
    },
    /// Stops after the tool call of this iteration.
    IterationLimit {
        /// The iteration, from 1.
        value: u32,
    },
}

/// What a tool call does to the world, and so whether it may be made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// It changes nothing.
    Read,
    /// It may be made again with the same key.
    Idempotent,
    /// It must never be made twice.
    AtMostOnce,
}

/// What happens to a run if the outcome of its call is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnUnknown {
    /// The run waits until a person gives the outcome.
    #[default]
    Wait,
    /// The run fails with `TOOL_OUTCOME_UNKNOWN`.
    Fail,
}

config! {
    /// The properties that every tool node may have, and every data node that is used as a tool.
    ToolConfig {
        /// The name that the model calls it by.
        tool_name: String,
        /// What the tool does, for the model.
        description: String,
        /// JSON Schema of the input: an object, or JSON text.
        #[cfg_attr(feature = "codegen", schemars(with = "Option<ObjectOrText>"), ts(type = "string | { [key: string]: JsonValue }", optional))]
        input_schema: Value,
        /// What a call does to the world.
        effect: EffectClass,
        /// The longest duration of one call, in milliseconds.
        #[cfg_attr(feature = "codegen", schemars(range(min = 1)))]
        timeout: u64,
        /// What happens if the outcome of a call is unknown.
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
    /// The properties that every memory node may have.
    MemoryConfig {
        /// The conversation, if neither the agent nor the message names one.
        session_id: String,
    }
}

/// `scripted-model`: answers from a list, for demos and tests without a network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ScriptedModelConfig {
    /// The k-th model call of a run gets the k-th reply; the last reply repeats. A string is sent as it is,
    /// any other value as its JSON.
    #[cfg_attr(feature = "codegen", schemars(length(min = 1)))]
    pub replies: Vec<Value>,
    /// Milliseconds to wait before each answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", schemars(range(max = 600_000)), ts(optional))]
    pub delay_ms: Option<u64>,
}

/// One rule of a change node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(default)]
pub struct ChangeRule {
    /// The kind of rule: `set`, `change`, `delete` or `move`.
    pub t: String,
    /// The property of the message, such as `payload` or `payload.rooms[0]`.
    #[cfg_attr(feature = "codegen", schemars(length(min = 1)))]
    pub p: String,
    /// The object that has the property; `msg` if absent.
    #[serde(skip_serializing_if = "is_unset")]
    pub pt: Option<String>,
    /// The value, or the property to move to.
    #[serde(skip_serializing_if = "is_unset")]
    pub to: Option<Value>,
    /// The type of `to`; `str` if absent.
    #[serde(skip_serializing_if = "is_unset")]
    pub tot: Option<String>,
    /// The value to search for.
    #[serde(skip_serializing_if = "is_unset")]
    pub from: Option<Value>,
    /// The type of `from`; `str` if absent.
    #[serde(skip_serializing_if = "is_unset")]
    pub fromt: Option<String>,
}

config! {
    /// The properties of a `change` node.
    ChangeConfig {
        /// The rules, in order; absent in flows of old editors.
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
    /// The value, as text.
    #[serde(skip_serializing_if = "is_unset")]
    pub v: Option<Value>,
    /// The type of the value.
    #[serde(skip_serializing_if = "is_unset")]
    pub vt: Option<String>,
}

config! {
    /// The properties of an `inject` node.
    InjectConfig {
        /// The properties of the message; absent in flows of old editors.
        props: Vec<InjectProperty>,
        /// The payload, as text.
        payload: Value,
        /// The type of the payload.
        payload_type: String,
        /// The topic of the message.
        topic: String,
        /// Whether it fires once, shortly after the flow has started.
        #[cfg_attr(feature = "codegen", schemars(with = "Option<bool>"), ts(type = "boolean", optional))]
        once: Value,
        /// The delay of that, in seconds; a number or its text.
        #[cfg_attr(feature = "codegen", schemars(with = "Option<NumberOrText>"), ts(type = "number | string", optional))]
        once_delay: Value,
        /// The interval between firings, in seconds; a number or its text, empty for never.
        #[cfg_attr(feature = "codegen", schemars(with = "Option<NumberOrText>"), ts(type = "number | string", optional))]
        repeat: Value,
        /// When it fires: a cron expression of 5 or 6 fields, in local time. `repeat` takes precedence.
        #[cfg_attr(feature = "codegen", schemars(with = "Option<String>"), ts(type = "string", optional))]
        crontab: Value,
    }
}

/// Stands for a number that editors may write as text, in the generated schema.
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
    /// The properties of a `debug` node.
    DebugConfig {
        /// Whether it shows messages.
        active: bool,
        /// The property to show, or `true` for the whole message.
        #[cfg_attr(feature = "codegen", schemars(with = "Value"))]
        complete: Value,
        /// What `complete` names: `msg`, `full` or `jsonata`.
        target_type: String,
    }
}

config! {
    /// The properties of `link in` and `link out` nodes.
    LinkConfig {
        /// The ids of the nodes at the other end.
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
    /// The name of the variable.
    pub name: String,
    /// The value, as text.
    #[serde(skip_serializing_if = "is_unset")]
    pub value: Option<Value>,
    /// The type of the value: `str`, `num`, `bool`, `json`, `env` and others.
    #[serde(rename = "type", skip_serializing_if = "is_unset")]
    pub type_name: Option<String>,
}

config! {
    /// The properties of a `tab`.
    TabConfig {
        /// The name its owner gave it.
        label: String,
        /// Whether the tab is disabled, so that none of its nodes run.
        disabled: bool,
        /// The variables of the tab.
        env: Vec<EnvVariable>,
    }
}

config! {
    /// The properties of `group` and `global-config`.
    GroupConfig {
        /// The variables of the group, or of the whole flow.
        env: Vec<EnvVariable>,
    }
}

/// An input or output of a subflow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(default)]
pub struct SubflowPort {
    /// The nodes inside that it is wired to.
    pub wires: Vec<SubflowWire>,
}

/// One end of a wire inside a subflow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(default)]
pub struct SubflowWire {
    /// The id of the node inside, or of the subflow itself for its own input.
    pub id: String,
    /// The output port of that node.
    #[serde(skip_serializing_if = "is_unset")]
    pub port: Option<u32>,
}

config! {
    /// The properties of a `subflow`.
    SubflowConfig {
        /// The name its owner gave it.
        name: String,
        /// The input: none or one.
        r#in: Vec<SubflowPort>,
        /// The outputs.
        out: Vec<SubflowPort>,
        /// The variables of the subflow.
        env: Vec<EnvVariable>,
    }
}

config! {
    /// The properties of a `catch` node.
    CatchConfig {
        /// The nodes whose errors it takes; null for all nodes of the tab, `group` for its group.
        #[cfg_attr(feature = "codegen", schemars(with = "CatchScope"), ts(type = "string[] | \"group\" | null", optional))]
        scope: Value,
        /// Whether it takes only errors that no other Catch node takes.
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
