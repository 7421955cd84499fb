//! The embedded JSON Schemas. `agent-core.react` is written by hand; `cargo xtask codegen` writes the others.

macro_rules! embedded {
    ($($name:literal),+ $(,)?) => {
        /// Every schema: its name and its text.
        pub const SCHEMAS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../schemas/", $name, ".schema.json")))),+];
    };
}

embedded! {
    "agent-core.react",
    "agent-envelope",
    "agent-output",
    "agent-plan",
    "agent-result",
    "agent-spec",
    "check-report",
    "fact.cancel_requested",
    "fact.deadline_reached",
    "fact.memory_appended",
    "fact.memory_cleared",
    "fact.memory_failed",
    "fact.memory_recalled",
    "fact.model_answered",
    "fact.model_failed",
    "fact.outcome_resolved",
    "fact.run_started",
    "fact.tool_outcome_unknown",
    "fact.tool_returned",
    "flow-event.chain_cut",
    "flow-event.chat",
    "flow-event.checked",
    "flow-event.debug",
    "flow-event.deployed",
    "flow-event.memory_cleared",
    "flow-event.needs_node_red",
    "flow-event.reply_dropped",
    "flow-event.uncaught",
    "flow-node",
    "journal.effect",
    "journal.fact",
    "journal.header",
    "journal.output",
    "journal.plan",
    "model-action.final",
    "model-action.tool",
    "model-response-result",
    "model-test",
    "node.agent-binding",
    "node.anthropic-model",
    "node.azure-model",
    "node.buffer-memory",
    "node.catch",
    "node.change",
    "node.debug",
    "node.group",
    "node.inject",
    "node.link",
    "node.memory",
    "node.ollama-model",
    "node.openai-model",
    "node.redis-memory",
    "node.scripted-model",
    "node.subflow",
    "node.tab",
    "node.tool",
    "node.window-memory",
    "run-error",
    "run-event",
    "run-summary",
}

/// The OpenAPI document of the sidecar.
pub const OPENAPI: &str = include_str!("../../../schemas/openapi.json");

/// Finds the text of a schema by name.
#[must_use]
pub fn find(name: &str) -> Option<&'static str> {
    SCHEMAS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
