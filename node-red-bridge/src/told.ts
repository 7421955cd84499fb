// Which nodes are ours, and what the sidecar is told of a node. For Node-RED's side and for the editor. Never
// credentials, and never the code or the settings of other nodes.

/** Types whose nodes the sidecar runs. */
const SERVICES = new Set([
  "agent-core",
  "ai-agent",
  "openai-model",
  "anthropic-model",
  "ollama-model",
  "scripted-model",
  "buffer-memory",
  "window-memory",
  "redis-memory",
  "calculator-tool",
  "http-request-tool",
  "knowledge-base-tool",
  "flow-tool",
  "chat-node",
]);
const SERVICE_PREFIXES = ["model.", "memory.", "tool."];

/** What is told of every other node. Not `timeout`: of a function or a link call it means something else. */
const TOLD = [
  "id",
  "type",
  "z",
  "g",
  "d",
  "name",
  "label",
  "disabled",
  "wires",
  "x",
  "y",
  "links",
  "mode",
  "scope",
  "env",
  "in",
  "out",
  "status",
  "nodes",
  "toolName",
  "description",
  "inputSchema",
  "effect",
  "onUnknown",
];

/** What is told of one node. */
export function toldOf(definition: { type: string; [property: string]: unknown }): Record<string, unknown> {
  const told: Record<string, unknown> = {};
  const keys = isService(definition.type) ? Object.keys(definition) : TOLD;
  for (const key of keys) {
    if (key !== "credentials" && !key.startsWith("_") && Object.hasOwn(definition, key)) {
      told[key] = definition[key];
    }
  }
  return told;
}

export function isService(type: string): boolean {
  return SERVICES.has(type) || SERVICE_PREFIXES.some((prefix) => type.startsWith(prefix));
}
