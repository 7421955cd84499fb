//! Agents for one thing: they reach an objective, extract values, find a category, or sum a text up.

use super::agents::{
    AgentBindingConfig, BUDGET, CONVERSE_STRATEGY, DEBUG, FALLBACK_MODELS, IMAGES, INPUT_TAGS, INPUT_TIME,
    MEMORY, MODEL, OUTPUT_SCHEMA, PARALLEL_TOOLS, RUNTIME, SESSION, SYSTEM_PROMPT, TIMEOUT, TOOLS, USER,
};
use super::config::config;
use super::declaration::{
    Initial, JsonShape, Kind, NodeDeclaration, Palette, Place, Presence, Property, Text, between, choice,
    sets, text,
};
use super::services::OPTIONS;
use super::tools::MCP;
use crate::edge::{PortKind, Role};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The tool that an agent for one thing gives its result with.
pub const FINISH_STEP: &str = "finish_step";

/// The key of the result in the arguments of that tool.
pub const FINISH_RESULT: &str = "result";

/// The most model calls of an agent for one thing that gives none.
pub const DEFAULT_TASK_ITERATIONS: u32 = 5;

/// The most tokens of the conversation of an agent for one thing that gives none.
pub const DEFAULT_MAX_TOKEN_LIMIT: u32 = 128_000;

/// The most categories of a classifier.
pub const MAX_CATEGORIES: usize = 200;

/// A category of a classifier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(untagged)]
pub enum Category {
    /// Its name alone.
    Name(String),
    /// Its name, and what belongs to it.
    Described {
        /// The name.
        name: String,
        /// What belongs to it, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        description: Option<String>,
    },
}

/// The length of a summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SummaryLength {
    /// One or two sentences.
    Short,
    /// One paragraph.
    #[default]
    Medium,
    /// Several paragraphs.
    Long,
}

const OBJECTIVE: Property = Property::new(
    "objective",
    Kind::Block,
    "Objective",
    "What the agent shall reach. `{{json.x}}` is a property of the payload, `{{msg.x}}` one of the message. Empty for \
     the payload.",
)
.hint("thePayload", "the payload")
.icon("bullseye");
const TEXT: Property = Property::new(
    "text",
    Kind::Block,
    "Text",
    "The text to read. `{{json.x}}` is a property of the payload, `{{msg.x}}` one of the message. Empty for the \
     payload.",
)
.hint("thePayload", "the payload")
.icon("file-text-o");
const MAX_ITERATIONS: Property = Property::new(
    "maxIterations",
    between(1, 100),
    "Max iterations",
    "How often the agent may call the model, 1 to 100. In the last call it can only finish.",
)
.label("taskIterations", "Max iterations")
.default(Initial::Number(DEFAULT_TASK_ITERATIONS))
.presence(Presence::NotBlank)
.icon("repeat")
.more();
const MAX_TOKEN_LIMIT: Property = Property::new(
    "maxTokenLimit",
    between(1_000, 10_000_000),
    "Max tokens of the conversation",
    "The most tokens that the model may read. At 70 % a summary replaces old messages, at 90 % the agent can only \
     finish.",
)
.label("maxTokenLimit", "Conversation tokens")
.default(Initial::Number(DEFAULT_MAX_TOKEN_LIMIT))
.presence(Presence::NotBlank)
.more();
const RESULT_SCHEMA: Property = Property {
    place: Place::Main,
    ..OUTPUT_SCHEMA
        .help(
            "A JSON Schema of the result. A result that does not fit goes back to the model twice, then the run fails \
             with `OUTPUT_INVALID`.",
        )
        .presence(Presence::Required)
        .icon("list-alt")
};
const CATEGORIES: Property = Property::new(
    "categories",
    Kind::Json { shape: JsonShape::Categories, height: Some(120) },
    "Categories (JSON list)",
    "The categories, 200 at most. Each one is a text, or an object with `name` and `description`.",
)
.example(r#"["bug", "question", "praise"]"#)
.icon("tags")
.presence(Presence::Required);
const MULTIPLE: Property = Property::new(
    "multiple",
    Kind::Flag,
    "Several",
    "Whether a text may have several categories. The payload is then a list.",
)
.label("severalCategories", "Several categories")
.icon("list-ul");
const LENGTH: Property = Property::new(
    "length",
    Kind::Choice {
        choices: &[
            choice("short", "One or two sentences"),
            choice("medium", "One paragraph"),
            choice("long", "Several paragraphs"),
        ],
    },
    "Length",
    "How long the summary is. It is never longer than the text.",
)
.default(Initial::Text("medium"))
.presence(Presence::NotBlank)
.icon("text-height");
const INSTRUCTIONS: Property = Property::new(
    "instructions",
    Kind::Block,
    "Instructions",
    "What matters in this summary, for the model: for whom it is, in which language, what it must mention.",
)
.icon("commenting-o");

config! {
    /// The properties of an agent that reaches one objective. Those of every agent come in addition.
    AiSimpleAgentConfig = "node.ai-simple-agent" {
        objective: String = OBJECTIVE,
        system_prompt: String = SYSTEM_PROMPT,
        #[cfg_attr(feature = "codegen", schemars(with = "Option<super::tools::ObjectOrText>"), ts(type = "string | { [key: string]: JsonValue }", optional))]
        output_schema: Value = OUTPUT_SCHEMA,
        max_iterations: u32 = MAX_ITERATIONS,
        max_token_limit: u32 = MAX_TOKEN_LIMIT,
        parallel_tools: u32 = PARALLEL_TOOLS,
        images: String = IMAGES,
        debug: bool = DEBUG,
        #[cfg_attr(feature = "codegen", schemars(with = "AiSimpleAgentConfig"))]
        options: Box<AiSimpleAgentConfig> = OPTIONS,
    }
}

config! {
    /// The properties of an agent that extracts values from a text. Those of every agent come in addition.
    AiExtractorConfig = "node.ai-extractor" {
        text: String = TEXT,
        #[cfg_attr(feature = "codegen", schemars(with = "Option<super::tools::ObjectOrText>"), ts(type = "string | { [key: string]: JsonValue }", optional))]
        output_schema: Value = RESULT_SCHEMA,
        max_iterations: u32 = MAX_ITERATIONS,
        max_token_limit: u32 = MAX_TOKEN_LIMIT,
        images: String = IMAGES,
        debug: bool = DEBUG,
        #[cfg_attr(feature = "codegen", schemars(with = "AiExtractorConfig"))]
        options: Box<AiExtractorConfig> = OPTIONS,
    }
}

config! {
    /// The properties of an agent that finds the category of a text. Those of every agent come in addition.
    AiClassifierConfig = "node.ai-classifier" {
        text: String = TEXT,
        categories: Vec<Category> = CATEGORIES,
        multiple: bool = MULTIPLE,
        max_iterations: u32 = MAX_ITERATIONS,
        max_token_limit: u32 = MAX_TOKEN_LIMIT,
        images: String = IMAGES,
        debug: bool = DEBUG,
        #[cfg_attr(feature = "codegen", schemars(with = "AiClassifierConfig"))]
        options: Box<AiClassifierConfig> = OPTIONS,
    }
}

config! {
    /// The properties of an agent that sums a text up. Those of every agent come in addition.
    AiSummarizerConfig = "node.ai-summarizer" {
        text: String = TEXT,
        #[cfg_attr(feature = "codegen", schemars(with = "SummaryLength"))]
        length: SummaryLength = LENGTH,
        instructions: String = INSTRUCTIONS,
        max_iterations: u32 = MAX_ITERATIONS,
        max_token_limit: u32 = MAX_TOKEN_LIMIT,
        debug: bool = DEBUG,
        #[cfg_attr(feature = "codegen", schemars(with = "AiSummarizerConfig"))]
        options: Box<AiSummarizerConfig> = OPTIONS,
    }
}

const fn preset(name: &'static str) -> NodeDeclaration {
    NodeDeclaration::data(name)
        .native()
        .strategy(CONVERSE_STRATEGY)
        .role(Role::Agent, &[PortKind::Result, PortKind::Stream])
}

const fn palette(
    label: &'static str,
    summary: &'static str,
    properties: &'static [&'static [Property]],
) -> Palette {
    Palette {
        label,
        summary,
        color: "#e58a6b",
        icon: "redflow-agent.svg",
        properties,
        named_by: None,
        input: Some(text("message", "message: each one starts a run")),
        outputs: OUTPUTS,
    }
}

const OUTPUTS: &[Text] = &[
    text("runResult", "result: the message at the end of the run"),
    text("stream", "stream: the text while the model writes it"),
];

/// What all of them show first.
const FIRST: &[Property] = &[RUNTIME, MODEL];

/// What all of them show last.
const LAST: &[Property] = &[
    MAX_ITERATIONS,
    MAX_TOKEN_LIMIT,
    TIMEOUT,
    SESSION.more(),
    USER,
    INPUT_TIME,
    INPUT_TAGS,
    FALLBACK_MODELS,
    BUDGET,
    DEBUG,
    MCP.more(),
    OPTIONS.kept(),
];

pub(super) const SIMPLE_AGENT: NodeDeclaration =
    preset("ai-simple-agent").reads(sets![AiSimpleAgentConfig::SET, AgentBindingConfig::SET]).palette(palette(
        "ai simple agent",
        "An agent that reaches one objective with tools and gives a result by your schema. It finishes in time: before \
         its iterations or tokens are used up, it can only give its result.",
        &[FIRST, &[MEMORY, OBJECTIVE, SYSTEM_PROMPT, OUTPUT_SCHEMA, TOOLS, PARALLEL_TOOLS, IMAGES], LAST],
    ));

pub(super) const EXTRACTOR: NodeDeclaration =
    preset("ai-extractor").reads(sets![AiExtractorConfig::SET, AgentBindingConfig::SET]).palette(palette(
        "ai extractor",
        "Extracts values from a text or an image. The payload of the result follows your schema.",
        &[FIRST, &[TEXT, RESULT_SCHEMA, IMAGES, MEMORY.kept(), TOOLS.kept()], LAST],
    ));

pub(super) const CLASSIFIER: NodeDeclaration =
    preset("ai-classifier").reads(sets![AiClassifierConfig::SET, AgentBindingConfig::SET]).palette(palette(
        "ai classifier",
        "Finds the category of a text or an image. The payload of the result is one of your categories, never another.",
        &[FIRST, &[TEXT, CATEGORIES, MULTIPLE, IMAGES, MEMORY.kept(), TOOLS.kept()], LAST],
    ));

pub(super) const SUMMARIZER: NodeDeclaration =
    preset("ai-summarizer").reads(sets![AiSummarizerConfig::SET, AgentBindingConfig::SET]).palette(palette(
        "ai summarizer",
        "Sums a text up. The payload of the result is a text that is not longer than yours.",
        &[FIRST, &[TEXT, LENGTH, INSTRUCTIONS, MEMORY.kept(), TOOLS.kept()], LAST],
    ));
