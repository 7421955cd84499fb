// Which node types the sidecar runs, and which properties of a node it receives: never credentials, and never the code
// or the settings of other nodes. Used by Node-RED's side and by the editor.

import { SIDECAR_TYPES } from "./sidecar-types";

const PREFIXES = SIDECAR_TYPES.flatMap((type) => (type.endsWith("*") ? [type.slice(0, -1)] : []));

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

/** Stands for a credential that is set, as in Node-RED's editor. */
export const PASSWORD_MASK = "__PWRD__";

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
  return SIDECAR_TYPES.includes(type) || PREFIXES.some((prefix) => type.startsWith(prefix));
}
