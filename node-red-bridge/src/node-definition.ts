// Which node types the sidecar runs, and which properties of a node it receives: never credentials, and never the code
// or the settings of other nodes. Used by Node-RED's side and by the editor.

import type { CATALOGUE } from "@redflow/bindings";

/** A type or, with `*`, a prefix of types that the sidecar runs. */
type SidecarType = Exclude<(typeof CATALOGUE)[number], { role: "data" }>["type"];

/**
 * Every `SidecarType`. A copy of the catalogue's keys that the compiler checks: this module is CommonJS and ships without
 * the bindings, so it cannot import their values.
 */
const SIDECAR_TYPES: Record<SidecarType, true> = {
  "agent-core": true,
  "ai-agent": true,
  "openai-model": true,
  "anthropic-model": true,
  "model.azure.openai": true,
  "ollama-model": true,
  "scripted-model": true,
  "model.*": true,
  "buffer-memory": true,
  "window-memory": true,
  "redis-memory": true,
  "memory.*": true,
  "calculator-tool": true,
  "http-request-tool": true,
  "knowledge-base-tool": true,
  "flow-tool": true,
  "tool.*": true,
  "chat-node": true,
};
const PREFIXES = Object.keys(SIDECAR_TYPES).flatMap((type) => (type.endsWith("*") ? [type.slice(0, -1)] : []));

/**
 * The properties of every other node that the sidecar receives: the checker needs them to follow wires. Not `timeout`:
 * it has another meaning in a function or a link call.
 */
const WIRING_PROPERTIES = [
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

/** The part of a node's definition that the sidecar receives. */
export function publicDefinition(definition: { type: string; [property: string]: unknown }): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  const keys = runsInSidecar(definition.type) ? Object.keys(definition) : WIRING_PROPERTIES;
  for (const key of keys) {
    if (key !== "credentials" && !key.startsWith("_") && Object.hasOwn(definition, key)) {
      result[key] = definition[key];
    }
  }
  return result;
}

/** Whether the sidecar runs nodes of this type. */
export function runsInSidecar(type: string): boolean {
  return Object.hasOwn(SIDECAR_TYPES, type) || PREFIXES.some((prefix) => type.startsWith(prefix));
}
