// Written by `cargo xtask codegen`. Do not edit.

/** The types, and with `*` the prefixes of types, that the sidecar runs or reads. */
export const SIDECAR_TYPES: readonly string[] = [
  "agent-core",
  "ai-agent",
  "ai-simple-agent",
  "ai-extractor",
  "ai-classifier",
  "ai-summarizer",
  "scripted-model",
  "openai-model",
  "anthropic-model",
  "google-model",
  "model.azure.openai",
  "ollama-model",
  "model.*",
  "openai-key",
  "anthropic-key",
  "google-key",
  "azure-openai-key",
  "buffer-memory",
  "window-memory",
  "redis-memory",
  "summary-memory",
  "long-memory",
  "memory.*",
  "calculator-tool",
  "http-request-tool",
  "knowledge-base-tool",
  "memory-tool",
  "flow-tool",
  "registry-tool",
  "mcp-client",
  "tool.*",
  "chat-node",
];

/** The agents. */
export const AGENT_TYPES: readonly string[] = [
  "agent-core",
  "ai-agent",
  "ai-simple-agent",
  "ai-extractor",
  "ai-classifier",
  "ai-summarizer",
];

/** The outputs of each agent. */
export const AGENT_PORTS: Readonly<Record<string, readonly string[]>> = {
  "agent-core": ["model", "tool", "memory", "result", "model_response"],
  "ai-agent": ["result", "stream"],
  "ai-simple-agent": ["result", "stream"],
  "ai-extractor": ["result", "stream"],
  "ai-classifier": ["result", "stream"],
  "ai-summarizer": ["result", "stream"],
};

/** The types that the sidecar runs without credentials. */
export const WITHOUT_CREDENTIALS: readonly string[] = [
  "agent-core",
  "ai-agent",
  "ai-simple-agent",
  "ai-extractor",
  "ai-classifier",
  "ai-summarizer",
  "flow-tool",
  "chat-node",
];

/** The tools that change nothing, so that their nodes need no effect class. */
export const READ_ONLY_TOOLS: readonly string[] = [
  "calculator-tool",
  "knowledge-base-tool",
];
