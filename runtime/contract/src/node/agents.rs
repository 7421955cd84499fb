//! The agents.

use super::config::config;
use super::declaration::{
    Initial, JsonShape, Kind, LINE, NodeDeclaration, Palette, Presence, Property, PropertySet, between,
    choice, from, sets, text,
};
use super::services::OPTIONS;
use super::tools::MCP;
use super::values::{Budget, OutputFormat, TextList, ToolChoice};
use crate::edge::{PortKind, Role};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The strategy of an agent whose spec and journal name none: Agent Core's.
pub const DEFAULT_STRATEGY: &str = "react";

/// The strategy of an AI Agent.
pub const CONVERSE_STRATEGY: &str = "converse";

/// The system prompt of an AI Agent that gives none.
pub const DEFAULT_SYSTEM_PROMPT: &str = "You are a helpful AI assistant.";

/// The images of an AI Agent that names none.
pub const DEFAULT_IMAGES: &str = "{{msg.images}}";

/// The tool that a model gives its answer with, if the answer has a schema and there are other tools too.
pub const FINAL_ANSWER: &str = "final_answer";

/// The most iterations of an AI Agent that gives none.
pub const DEFAULT_MAX_ITERATIONS: u32 = 10;

/// The most tool calls at the same time of an AI Agent that gives none.
pub const DEFAULT_PARALLEL_TOOLS: u32 = 8;

pub(super) const MODEL: Property = Property::new(
    "model",
    Kind::Service { role: Role::Model },
    "Model",
    "The id of the model, if no wire binds one.",
)
.icon("cube");
pub(super) const MEMORY: Property = Property::new(
    "memory",
    Kind::Service { role: Role::Memory },
    "Memory",
    "The id of the memory, if no wire binds one.",
)
.icon("database");
pub(super) const TOOLS: Property = Property::new(
    "tools",
    Kind::Services { role: Role::Tool },
    "Tools",
    "The ids of tools, in addition to those that wires bind.",
)
.default(Initial::Json("[]"));
pub(super) const SESSION: Property = Property::new(
    "sessionId",
    LINE,
    "Session",
    "The conversation. Takes precedence over `msg.sessionId` and the memory's own.",
)
.hint("byMessage", "by the message")
.icon("user");
pub(super) const USER: Property = Property::new(
    "userId",
    LINE,
    "User",
    "Whose messages they are. `{{msg.x}}` is a property of the message. Empty for `msg.userId`, else the memory's own.",
)
.hint("byMessage", "by the message")
.icon("user")
.more();
pub(super) const INPUT_TIME: Property = Property::new(
    "inputTime",
    LINE,
    "Time of the message",
    "When a message was made: milliseconds since 1970, or a text such as 2026-11-18T09:00:00Z. Empty for \
     `{{msg.timestamp}}`. Without a time, the start of the run.",
)
.label("inputTime", "Message time")
.example("{{msg.timestamp}}")
.more();
pub(super) const INPUT_TAGS: Property = Property::new(
    "inputTags",
    Kind::Texts { most: 16 },
    "Tags",
    "Tags of the messages, in addition to `msg.tags`. `{{msg.x}}` is a property of the message.",
)
.label("inputTags", "Message tags")
.example("support, {{msg.topic}}")
.more();
pub(super) const TIMEOUT: Property = Property::new(
    "timeout",
    from(1),
    "Timeout (ms)",
    "The longest time of one run in milliseconds, without the time it waits for a person.",
)
.default(Initial::Number(300_000))
.presence(Presence::NotBlank)
.icon("clock-o");

pub(super) const FALLBACK_MODELS: Property = Property::new(
    "fallbackModels",
    Kind::Services { role: Role::Model },
    "Fallback models",
    "The ids of the models that are called in this order if the bound model is overloaded, unreachable or used up.",
)
.default(Initial::Json("[]"))
.more();
pub(super) const BUDGET: Property = Property::new(
    "budget",
    Kind::Json { shape: JsonShape::Object, height: Some(80) },
    "Budget (JSON)",
    "What one run may spend: `tokens`, `cost`, `modelCalls`, `toolCalls`. At a limit the run fails with \
     `BUDGET_EXCEEDED`.",
)
.more();

config! {
    /// The properties that every agent may have in addition to its own schema.
    AgentBindingConfig = "node.agent-binding" {
        model: String = MODEL,
        memory: String = MEMORY,
        tools: Vec<String> = TOOLS,
        session_id: String = SESSION,
        user_id: String = USER,
        input_time: String = INPUT_TIME,
        input_tags: TextList = INPUT_TAGS,
        timeout: u64 = TIMEOUT,
        fallback_models: Vec<String> = FALLBACK_MODELS,
        #[cfg_attr(feature = "codegen", schemars(with = "Budget"))]
        budget: Budget = BUDGET,
        mcp: bool = MCP,
    }
}

const STRATEGY: Property = Property::new(
    "strategy",
    Kind::Choice { choices: &[choice(DEFAULT_STRATEGY, "react: think, act, observe, repeat")] },
    "Strategy",
    "How the agent works. `react` is the only strategy so far.",
)
.default(Initial::Text(DEFAULT_STRATEGY))
.presence(Presence::Required);
const MAX_ITERATIONS: Property = Property::new(
    "maxIterations",
    between(1, 20),
    "Max iterations",
    "How often the agent may call the model, 1 to 20. Without an answer by then the run fails with \
     `ITERATION_OVERFLOW`.",
)
.default(Initial::Number(5))
.presence(Presence::Required);
const ALLOWED_TOOLS: Property = Property::new(
    "allowedTools",
    Kind::AllowedTools,
    "Allowed tools",
    "The names of the tools that the model may call, at least one. The tab *Tools* lists the connected ones.",
)
.default(Initial::Json("[]"));
const STOP_CONDITIONS: Property = Property::new(
    "stopConditions",
    Kind::StopConditions,
    "Stop conditions",
    "When to stop before a final answer: after a tool if the model's confidence is high enough (0 to 1), or after \
     the tool of an iteration. The payload is then the result of the last tool.",
)
.default(Initial::Json("[]"));
pub(super) const DEBUG: Property = Property::new(
    "debug",
    Kind::Flag,
    "Debug",
    "Whether previews of prompts, answers and tool results are stored with the run, and the last prompt in \
     `envelope`.",
)
.icon("bug");

/// The schema of Agent Core is written by hand.
const AGENT_CORE_SET: PropertySet = PropertySet {
    schema: "agent-core.react",
    properties: &[STRATEGY, MAX_ITERATIONS, ALLOWED_TOOLS, STOP_CONDITIONS, DEBUG],
    #[cfg(feature = "codegen")]
    source: None,
};

pub(super) const RUNTIME: Property = Property::new(
    "runtime",
    Kind::ConfigNode { of: "redflow-runtime" },
    "Runtime",
    "The sidecar. May be empty if the flow has only one.",
)
.icon("server");

pub(super) const AGENT_CORE: NodeDeclaration = NodeDeclaration::data("agent-core")
    .native()
    .strategy(DEFAULT_STRATEGY)
    .role(
        Role::Agent,
        &[PortKind::Model, PortKind::Tool, PortKind::Memory, PortKind::Result, PortKind::ModelResponse],
    )
    .reads(sets![AGENT_CORE_SET, AgentBindingConfig::SET])
    .palette(Palette {
        label: "agent core",
        summary: "An agent calls its model and the tools that the model chooses, until there is an answer. The \
                  Redflow sidecar runs it, checks and records every step, so that a run survives a restart.",
        color: "#e58a6b",
        icon: "redflow-agent.svg",
        properties: &[&[
            RUNTIME,
            STRATEGY,
            MAX_ITERATIONS,
            TIMEOUT,
            SESSION,
            USER,
            INPUT_TIME,
            INPUT_TAGS,
            DEBUG,
            STOP_CONDITIONS,
            ALLOWED_TOOLS,
            MODEL.kept(),
            MEMORY.kept(),
            TOOLS.kept(),
            FALLBACK_MODELS.kept(),
            BUDGET.kept(),
            MCP.kept(),
        ]],
        named_by: None,
        input: Some(text("message", "message: each one starts a run")),
        outputs: &[
            text("model", "model: wire it to one model"),
            text("tool", "tool: wire it to the tools"),
            text("memory", "memory: wire it to one memory, or to none"),
            text("runResult", "result: the message at the end of the run"),
            text("modelResponse", "model_response: each answer of the model during the run"),
        ],
    });

pub(super) const SYSTEM_PROMPT: Property = Property::new(
    "systemPrompt",
    Kind::Block,
    "System prompt",
    "What the model is told first, in every call: who it is and how it shall answer.",
)
.default(Initial::Text(DEFAULT_SYSTEM_PROMPT))
.icon("commenting-o");
const USER_MESSAGE: Property = Property::new(
    "userMessage",
    Kind::Block,
    "User message",
    "What the model shall answer. `{{json.x}}` is a property of the payload, `{{msg.x}}` one of the message. Empty for \
     the payload.",
)
.hint("thePayload", "the payload")
.icon("comment-o");
const AI_MAX_ITERATIONS: Property = Property::new(
    "maxIterations",
    between(1, 100),
    "Max iterations",
    "How often the agent may call the model, 1 to 100. Without an answer by then the run fails with \
     `ITERATION_OVERFLOW`.",
)
.default(Initial::Number(DEFAULT_MAX_ITERATIONS))
.presence(Presence::NotBlank)
.icon("repeat");
const TOOL_CHOICE: Property = Property::new(
    "toolChoice",
    Kind::Choice {
        choices: &[
            choice("auto", "The model decides"),
            choice("required", "The model must call a tool first"),
            choice("none", "The model calls no tool"),
        ],
    },
    "Tool choice",
    "Whether the model calls tools. `required` holds until the first result of a tool.",
)
.default(Initial::Text("auto"))
.presence(Presence::NotBlank)
.icon("wrench");
pub(super) const OUTPUT_FORMAT: Property = Property::new(
    "outputFormat",
    Kind::Choice {
        choices: &[
            choice("text", "Text: the answer"),
            choice("json", "JSON: the answer as a value"),
            choice("full", "Full: the answer with calls, tokens, cost and time"),
        ],
    },
    "Output format",
    "What the payload of the result is. With `json` an answer that is not JSON goes back to the model twice, then \
     the run fails with `OUTPUT_NOT_JSON`.",
)
.default(Initial::Text("text"))
.presence(Presence::NotBlank)
.icon("file-text-o");
pub(super) const OUTPUT_SCHEMA: Property = Property::new(
    "outputSchema",
    Kind::Json { shape: JsonShape::Object, height: Some(120) },
    "Output (JSON Schema)",
    "A JSON Schema of the answer. An answer that does not fit goes back to the model twice, then the run fails with \
     `OUTPUT_INVALID`.",
)
.more();
pub(super) const PARALLEL_TOOLS: Property = Property::new(
    "parallelTools",
    between(1, 64),
    "Parallel tools",
    "How many tool calls of one answer run at the same time, 1 to 64.",
)
.default(Initial::Number(DEFAULT_PARALLEL_TOOLS))
.presence(Presence::NotBlank)
.more();

pub(super) const IMAGES: Property = Property::new(
    "images",
    LINE,
    "Images",
    "The images that the model gets with the message: a data URL, a Buffer, an https address, or a list of up to \
     four. `{{msg.x}}` is a property of the message. Empty for none.",
)
.default(Initial::Text(DEFAULT_IMAGES))
.icon("picture-o")
.more();

config! {
    /// The properties of an AI Agent. Those of every agent come in addition. They may also stand in `options`, as those of
    /// models.
    AiAgentConfig = "node.ai-agent" {
        system_prompt: String = SYSTEM_PROMPT,
        user_message: String = USER_MESSAGE,
        max_iterations: u32 = AI_MAX_ITERATIONS,
        #[cfg_attr(feature = "codegen", schemars(with = "ToolChoice"))]
        tool_choice: ToolChoice = TOOL_CHOICE,
        #[cfg_attr(feature = "codegen", schemars(with = "OutputFormat"))]
        output_format: OutputFormat = OUTPUT_FORMAT,
        #[cfg_attr(feature = "codegen", schemars(with = "Option<super::tools::ObjectOrText>"), ts(type = "string | { [key: string]: JsonValue }", optional))]
        output_schema: Value = OUTPUT_SCHEMA,
        parallel_tools: u32 = PARALLEL_TOOLS,
        images: String = IMAGES,
        debug: bool = DEBUG,
        #[cfg_attr(feature = "codegen", schemars(with = "AiAgentConfig"))]
        options: Box<AiAgentConfig> = OPTIONS,
    }
}

pub(super) const AI_AGENT: NodeDeclaration = NodeDeclaration::data("ai-agent")
    .native()
    .strategy(CONVERSE_STRATEGY)
    .role(Role::Agent, &[PortKind::Result, PortKind::Stream])
    .reads(sets![AiAgentConfig::SET, AgentBindingConfig::SET])
    .palette(Palette {
        label: "ai agent",
        summary: "An agent with a system prompt, a user message and tools that the model calls itself, several at the \
                  same time. The Redflow sidecar runs it and records every step, so that a run survives a restart.",
        color: "#e58a6b",
        icon: "redflow-agent.svg",
        properties: &[&[
            RUNTIME,
            MODEL,
            MEMORY,
            SYSTEM_PROMPT,
            USER_MESSAGE,
            TOOL_CHOICE,
            OUTPUT_FORMAT,
            OUTPUT_SCHEMA,
            AI_MAX_ITERATIONS,
            TIMEOUT,
            SESSION,
            USER,
            INPUT_TIME,
            INPUT_TAGS,
            IMAGES,
            PARALLEL_TOOLS,
            FALLBACK_MODELS,
            BUDGET,
            DEBUG,
            TOOLS,
            MCP.more(),
            OPTIONS.kept(),
        ]],
        named_by: None,
        input: Some(text("message", "message: each one starts a run")),
        outputs: &[
            text("runResult", "result: the message at the end of the run"),
            text("stream", "stream: the text while the model writes it"),
        ],
    });
