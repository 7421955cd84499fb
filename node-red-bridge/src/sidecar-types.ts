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

/** The role of each type that agents bind, and with `*` of prefixes of types. */
export const SERVICE_ROLES: Readonly<Record<string, string>> = {
  "scripted-model": "model",
  "openai-model": "model",
  "anthropic-model": "model",
  "google-model": "model",
  "model.azure.openai": "model",
  "ollama-model": "model",
  "model.*": "model",
  "buffer-memory": "memory",
  "window-memory": "memory",
  "redis-memory": "memory",
  "summary-memory": "memory",
  "long-memory": "memory",
  "memory.*": "memory",
  "calculator-tool": "tool",
  "http-request-tool": "tool",
  "knowledge-base-tool": "tool",
  "memory-tool": "tool",
  "flow-tool": "tool",
  "registry-tool": "tool",
  "mcp-client": "tool",
  "tool.*": "tool",
};

/** The role of the nodes that a memory or a tool names, by its type and property. */
export const NAMED_SERVICES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "summary-memory": { shortMemory: "memory", model: "model" },
  "long-memory": { shortMemory: "memory", model: "model" },
  "memory-tool": { memory: "memory" },
};

/** The type of the config node that a node names in `keyNode`. */
export const KEY_NODE_TYPES: Readonly<Record<string, string>> = {
  "openai-model": "openai-key",
  "anthropic-model": "anthropic-key",
  "google-model": "google-key",
  "model.azure.openai": "azure-openai-key",
  "long-memory": "openai-key",
  "knowledge-base-tool": "openai-key",
};

/** The tools that change nothing, so that their nodes need no effect class. */
export const READ_ONLY_TOOLS: readonly string[] = [
  "calculator-tool",
  "knowledge-base-tool",
];
