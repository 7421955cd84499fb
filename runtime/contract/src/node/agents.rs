//! The agents.

use super::config::config;
use super::declaration::{
    Initial, Kind, LINE, NodeDeclaration, Palette, Presence, Property, PropertySet, between, choice, from,
    sets, text,
};
use crate::edge::{PortKind, Role};
use serde::{Deserialize, Serialize};

/// The strategy of an agent whose spec and journal name none: Agent Core's.
pub const DEFAULT_STRATEGY: &str = "react";

const MODEL: Property = Property::new("model", LINE, "", "The id of the bound model.")
    .label("boundModel", "The bound model")
    .kept();
const MEMORY: Property = Property::new("memory", LINE, "", "The id of the bound memory.")
    .label("boundMemory", "The bound memory")
    .kept();
const TOOLS: Property = Property::new("tools", Kind::NodeIds, "", "The ids of the bound tools.").kept();
const SESSION: Property = Property::new(
    "sessionId",
    LINE,
    "Session",
    "The conversation. Takes precedence over `msg.sessionId` and the memory's own.",
);
const TIMEOUT: Property = Property::new(
    "timeout",
    from(1),
    "Timeout (ms)",
    "The longest time of one run in milliseconds, without the time it waits for a person.",
)
.default(Initial::Number(300_000))
.presence(Presence::NotBlank);

config! {
    /// The properties that every agent may have in addition to its own schema.
    AgentBindingConfig = "node.agent-binding" {
        model: String = MODEL,
        memory: String = MEMORY,
        tools: Vec<String> = TOOLS,
        session_id: String = SESSION,
        timeout: u64 = TIMEOUT,
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
const DEBUG: Property = Property::new(
    "debug",
    Kind::Flag,
    "Debug",
    "Whether previews of prompts, answers and tool results are stored with the run, and the last prompt in \
     `envelope`.",
);

/// The schema of Agent Core is written by hand.
const AGENT_CORE_SET: PropertySet = PropertySet {
    schema: "agent-core.react",
    properties: &[STRATEGY, MAX_ITERATIONS, ALLOWED_TOOLS, STOP_CONDITIONS, DEBUG],
    #[cfg(feature = "codegen")]
    source: None,
};

const RUNTIME: Property = Property::new(
    "runtime",
    Kind::ConfigNode { of: "redflow-runtime" },
    "Runtime",
    "The sidecar. May be empty if the flow has only one.",
);

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
            DEBUG,
            STOP_CONDITIONS,
            ALLOWED_TOOLS,
            MODEL,
            MEMORY,
            TOOLS,
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

/// The agent of another palette.
pub(super) const AI_AGENT: NodeDeclaration = NodeDeclaration::data("ai-agent")
    .role(Role::Agent, &[PortKind::Result, PortKind::Stream])
    .reads(sets![AgentBindingConfig::SET]);
