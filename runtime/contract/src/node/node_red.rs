//! Node-RED's own types whose properties the runtime reads. Unknown properties are always allowed, because a flow
//! file belongs to its owner.

use super::config::config;
use super::declaration::{Kind, LINE, NodeDeclaration, Property, sets};
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pt: Option<String>,
    /// The value, or the property to move to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
    /// The type of `to`; `str` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tot: Option<String>,
    /// The value to search for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    /// The type of `from`; `str` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fromt: Option<String>,
}

config! {
    /// The properties of a `change` node.
    ChangeConfig = "node.change" {
        rules: Vec<ChangeRule> = Property::hidden("rules", Kind::Other, "The rules, in order; absent in flows of old editors."),
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub v: Option<Value>,
    /// The type of the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vt: Option<String>,
}

config! {
    /// The properties of an `inject` node.
    InjectConfig = "node.inject" {
        props: Vec<InjectProperty> = Property::hidden("props", Kind::Other, "The properties of the message; absent in flows of old editors."),
        payload: Value = Property::hidden("payload", Kind::Other, "The payload, as text."),
        payload_type: String = Property::hidden("payloadType", LINE, "The type of the payload."),
        topic: String = Property::hidden("topic", LINE, "The topic of the message."),
        #[cfg_attr(feature = "codegen", schemars(with = "Option<bool>"), ts(type = "boolean", optional))]
        once: Value = Property::hidden("once", Kind::Flag, "Whether it fires once, shortly after the flow has started."),
        #[cfg_attr(feature = "codegen", schemars(with = "Option<NumberOrText>"), ts(type = "number | string", optional))]
        once_delay: Value = Property::hidden("onceDelay", Kind::Other, "The delay of that, in seconds; a number or its text."),
        #[cfg_attr(feature = "codegen", schemars(with = "Option<NumberOrText>"), ts(type = "number | string", optional))]
        repeat: Value = Property::hidden("repeat", Kind::Other, "The interval between firings, in seconds; a number or its text, empty for never."),
        #[cfg_attr(feature = "codegen", schemars(with = "Option<String>"), ts(type = "string", optional))]
        crontab: Value = Property::hidden("crontab", LINE, "When it fires: a cron expression of 5 or 6 fields, in local time. `repeat` takes precedence."),
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
    DebugConfig = "node.debug" {
        active: bool = Property::hidden("active", Kind::Flag, "Whether it shows messages."),
        #[cfg_attr(feature = "codegen", schemars(with = "Value"))]
        complete: Value = Property::hidden("complete", Kind::Other, "The property to show, or `true` for the whole message."),
        target_type: String = Property::hidden("targetType", LINE, "What `complete` names: `msg`, `full` or `jsonata`."),
    }
}

config! {
    /// The properties of `link in` and `link out` nodes.
    LinkConfig = "node.link" {
        links: Vec<String> = Property::hidden("links", Kind::NodeIds, "The ids of the nodes at the other end."),
        mode: String = Property::hidden("mode", LINE, "`link`, or `return` for a link out that answers a link call."),
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The type of the value: `str`, `num`, `bool`, `json`, `env` and others.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
}

config! {
    /// The properties of a `tab`.
    TabConfig = "node.tab" {
        label: String = Property::hidden("label", LINE, "The name its owner gave it."),
        disabled: bool = Property::hidden("disabled", Kind::Flag, "Whether the tab is disabled, so that none of its nodes run."),
        env: Vec<EnvVariable> = Property::hidden("env", Kind::Other, "The variables of the tab."),
    }
}

config! {
    /// The properties of `group` and `global-config`.
    GroupConfig = "node.group" {
        env: Vec<EnvVariable> = Property::hidden("env", Kind::Other, "The variables of the group, or of the whole flow."),
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
}

config! {
    /// The properties of a `subflow`.
    SubflowConfig = "node.subflow" {
        name: String = Property::hidden("name", LINE, "The name its owner gave it."),
        r#in: Vec<SubflowPort> = Property::hidden("in", Kind::Other, "The input: none or one."),
        out: Vec<SubflowPort> = Property::hidden("out", Kind::Other, "The outputs."),
        env: Vec<EnvVariable> = Property::hidden("env", Kind::Other, "The variables of the subflow."),
    }
}

config! {
    /// The properties of a `catch` node.
    CatchConfig = "node.catch" {
        #[cfg_attr(feature = "codegen", schemars(with = "CatchScope"), ts(type = "string[] | \"group\" | null", optional))]
        scope: Value = Property::hidden("scope", Kind::Other, "The nodes whose errors it takes; null for all nodes of the tab, `group` for its group."),
        uncaught: bool = Property::hidden("uncaught", Kind::Flag, "Whether it takes only errors that no other Catch node takes."),
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

const fn data(name: &'static str) -> NodeDeclaration {
    NodeDeclaration::data(name)
}

/// Node-RED's own types, in the order of the catalogue.
pub(super) const INJECT: NodeDeclaration =
    data("inject").native().without_input().reads(sets![InjectConfig::SET]);
pub(super) const CHANGE: NodeDeclaration = data("change").native().reads(sets![ChangeConfig::SET]);
pub(super) const DEBUG: NodeDeclaration = data("debug").native().reads(sets![DebugConfig::SET]);
pub(super) const COMMENT: NodeDeclaration = data("comment").native().without_input();
pub(super) const CATCH: NodeDeclaration =
    data("catch").native().without_input().reads(sets![CatchConfig::SET]);
pub(super) const JUNCTION: NodeDeclaration = data("junction").native().transparent();
pub(super) const LINK_IN: NodeDeclaration =
    data("link in").native().without_input().transparent().reads(sets![LinkConfig::SET]);
pub(super) const LINK_OUT: NodeDeclaration =
    data("link out").native().transparent().reads(sets![LinkConfig::SET]);
pub(super) const TAB: NodeDeclaration = data("tab").without_input().reads(sets![TabConfig::SET]);
pub(super) const SUBFLOW: NodeDeclaration = data("subflow").without_input().reads(sets![SubflowConfig::SET]);
pub(super) const GROUP: NodeDeclaration = data("group").without_input().reads(sets![GroupConfig::SET]);
pub(super) const GLOBAL_CONFIG: NodeDeclaration =
    data("global-config").without_input().reads(sets![GroupConfig::SET]);
