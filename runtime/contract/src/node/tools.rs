//! The tools, and the end of a flow tool.

use super::config::config;
use super::declaration::{
    FixedTool, Initial, JsonShape, Kind, LINE, NodeDeclaration, Palette, Presence, Property, PropertySet,
    Text, choice, from, sets, text,
};
use super::services::{FROM_AGENT, NO_WIRE};
use super::values::{EffectClass, OnUnknown};
use crate::edge::{PortKind, Role};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(super) const fn palette(
    label: &'static str,
    summary: &'static str,
    icon: &'static str,
    properties: &'static [&'static [Property]],
) -> Palette {
    let (named_by, input, outputs) = (Some("toolName"), Some(FROM_AGENT), NO_WIRE);
    Palette { label, summary, color: "#e5b25d", icon, properties, named_by, input, outputs }
}

const fn tool(name: &'static str) -> NodeDeclaration {
    NodeDeclaration::service(name, Role::Tool).reads(sets![ToolConfig::SET])
}

const TOOL_NAME: Property = Property::new(
    "toolName",
    Kind::ToolName { or_node_name: true },
    "Tool name",
    "The name that the model uses and that the agent's tab *Tools* lists: 1 to 64 letters, digits, `_` or `-`. Each \
     tool of an agent needs its own name. Empty for the node's name.",
)
.icon("wrench");

const DESCRIPTION: Property = Property::new(
    "description",
    Kind::Block,
    "",
    "The model uses this text to decide whether to call the tool.",
)
.label("purpose", "What it does, for the model")
.icon("align-left");

const INPUT_SCHEMA: Property = Property::new(
    "inputSchema",
    Kind::Json { shape: JsonShape::Parameters, height: Some(160) },
    "Input",
    "The parameters that the model gives to the tool, as a table or as a JSON Schema of type object. The sidecar rejects \
     other inputs.",
)
.icon("code");

pub(super) const EFFECT: Property = Property::new(
    "effect",
    Kind::Choice {
        choices: &[
            choice("read", "Changes nothing: may be repeated"),
            choice("idempotent", "May be repeated with the same key"),
            choice("at_most_once", "Must never happen twice"),
        ],
    },
    "Effect",
    "What happens when Node-RED or the sidecar restarts during a call. A call that changes nothing, or may be \
     repeated, is made again. A call that must never happen twice is not: the run waits until a person answers \
     whether it happened.",
)
.icon("bolt");

pub(super) const TIMEOUT: Property =
    Property::new("timeout", from(1), "Timeout (ms)", "The longest time of a call, in milliseconds.");

pub(super) const ON_UNKNOWN: Property = Property::new(
    "onUnknown",
    Kind::Choice {
        choices: &[choice("wait", "The run waits for a person"), choice("fail", "The run fails")],
    },
    "If unknown",
    "Whether a run with an unknown call outcome waits for a person or fails with `TOOL_OUTCOME_UNKNOWN`.",
)
.icon("question");

pub(super) const STRICT: Property = Property::new(
    "strict",
    Kind::OptionalFlag { unset: text("byProvider", "As the provider does") },
    "Strict input",
    "Whether the provider forces the model to keep to the input's schema. It fits only schemas without optional \
     properties. The sidecar checks every input in any case.",
)
.more();

/// Whether clients of the sidecar's own MCP server may call an agent or a flow tool.
pub(super) const MCP: Property = Property::new(
    "mcp",
    Kind::Flag,
    "Callable by MCP clients",
    "Whether clients of the sidecar's MCP server may call it.",
)
.label("mcpCallable", "Callable by MCP clients")
.default(Initial::Flag(true));

config! {
    /// The properties that every tool node may have, and every data node that is used as a tool.
    ToolConfig = "node.tool" {
        tool_name: String = TOOL_NAME,
        description: String = DESCRIPTION,
        #[cfg_attr(feature = "codegen", schemars(with = "Option<ObjectOrText>"), ts(type = "string | { [key: string]: JsonValue }", optional))]
        input_schema: Value = INPUT_SCHEMA,
        effect: EffectClass = EFFECT,
        timeout: u64 = TIMEOUT,
        on_unknown: OnUnknown = ON_UNKNOWN,
        strict: bool = STRICT,
        mcp: bool = MCP,
    }
}

/// Stands for `inputSchema` and `outputSchema` in the generated schemas.
#[cfg(feature = "codegen")]
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)]
pub(super) enum ObjectOrText {
    /// A JSON Schema.
    Object(serde_json::Map<String, Value>),
    /// A JSON Schema as text; empty for none.
    Text(String),
}

/// The first rows of a tool whose type fixes its name and its input.
pub(super) const FIXED_TOOL: &[Property] = &[
    TOOL_NAME.kind(Kind::ToolName { or_node_name: false }).help(
        "The name that the model uses and that the agent's tab *Tools* lists. Empty for the name that the field shows.",
    ),
    Property::new(
        "description",
        LINE,
        "Description",
        "What the tool does, for the model. Empty for the default.",
    )
    .hint("asTool", "as the tool has it")
    .icon("align-left"),
    INPUT_SCHEMA.kept(),
];

/// What a tool has without a field of its own.
const KEPT: &[Property] = &[EFFECT.kept(), TIMEOUT.kept(), ON_UNKNOWN.kept(), STRICT.kept(), MCP.kept()];

pub(super) const CALCULATOR: NodeDeclaration = tool("calculator-tool")
    .native()
    .tool(FixedTool {
        name: "calculator",
        description: "Evaluates an arithmetic expression: + - * / ^, parentheses, decimals.",
        input_schema: r#"{"type":"object","properties":{"expression":{"type":"string"}},"required":["expression"]}"#,
    })
    .effect(EffectClass::Read)
    .palette(palette(
        "calculator",
        "Arithmetic for an agent: `+ - * / ^`, parentheses and decimals.",
        "redflow-calculator.svg",
        &[FIXED_TOOL, KEPT],
    ));

pub(super) const FLOW_TOOL: NodeDeclaration =
    tool("flow-tool").role(Role::Tool, &[PortKind::FlowTool]).palette(Palette {
        outputs: &[text("toTool", "to the nodes of the tool")],
        ..palette(
            "flow tool",
            "Makes a tool of the nodes after it. When a model calls the tool, this node sends a message. The message \
             that reaches a **flow-tool-return** is the tool's result.",
            "redflow-flow-tool.svg",
            &[&[
                TOOL_NAME.default(Initial::Text("my_tool")).example("read_temperature"),
                DESCRIPTION,
                INPUT_SCHEMA.default(Initial::Json(r#"{"type":"object","properties":{}}"#)),
                EFFECT.default(Initial::Text("at_most_once")),
                TIMEOUT.default(Initial::Number(30_000)).example("30000").presence(Presence::NotBlank),
                ON_UNKNOWN.default(Initial::Text("wait")),
                STRICT,
                MCP.more(),
            ]],
        )
    });

/// The properties of `registry-tool`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "`SET` says what the properties mean")]
pub struct RegistryToolConfig {
    #[cfg_attr(
        feature = "codegen",
        schemars(
            length(min = 1, max = 100),
            inner(regex(pattern = r"^(\*|[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*(\.\*)?)$"), length(max = 128))
        )
    )]
    pub ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub on_unknown: Option<OnUnknown>,
}

impl RegistryToolConfig {
    /// The declared properties.
    pub const SET: PropertySet = PropertySet {
        schema: "node.registry-tool",
        properties: &[
            Property::new(
                "ids",
                Kind::Json { shape: JsonShape::ToolIds, height: Some(120) },
                "Tools",
                "The ids of the tools, as the registry has them: `weather.current`, or `weather.*` for all below it. \
                 `redflow tools list` shows the registry.",
            )
            .default(Initial::Json(r#"["weather.*"]"#))
            .presence(Presence::Required)
            .icon("list"),
            ON_UNKNOWN.default(Initial::Text("wait")),
        ],
        #[cfg(feature = "codegen")]
        source: Some(super::source::source_of::<Self>()),
    };
}

pub(super) const REGISTRY_TOOL: NodeDeclaration = NodeDeclaration::service("registry-tool", Role::Tool)
    .reads(sets![RegistryToolConfig::SET])
    .native()
    .provider()
    .palette(Palette {
        named_by: None,
        ..palette(
            "registry tool",
            "Gives an agent tools of the sidecar's registry: those of its manifest, and those that were registered \
             at run time.",
            "redflow-registry.svg",
            &[RegistryToolConfig::SET.properties],
        )
    });

/// Tools of other palettes.
pub(super) const OTHER: NodeDeclaration = tool("tool.*");

const RESULT: Text = text("result", "the tool's result");

pub(super) const FLOW_TOOL_RETURN: NodeDeclaration =
    NodeDeclaration::data("flow-tool-return").palette(Palette {
        named_by: None,
        input: Some(RESULT),
        outputs: &[],
        ..palette(
            "flow tool return",
            "The end of a tool that starts at a **flow-tool**: the message that arrives here is the tool's result.",
            "redflow-return.svg",
            &[],
        )
    });
