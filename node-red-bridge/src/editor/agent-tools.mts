// The tools of an agent for the dialog: name, effect class and schema of each, and the list of allowed tools as it is saved.
// Follows the rules of the checker. Pure: draws nothing.

import { READ_ONLY_TOOLS } from "../sidecar-types.js";
import { catalogueEntry } from "./agent-wiring.mjs";
import { type Verdict, isBlank, toolName } from "./rules.mjs";
import { text } from "./text.mjs";

/** The effect class of a tool's calls. */
export type Effect = "read" | "idempotent" | "at_most_once";

/** A connected tool. */
export interface Tool {
  node: EditorNode;
  /** The name that the model uses; empty if it has none. */
  name: string;
  /** Whether a model can use that name. */
  nameVerdict: Verdict;
  effect: Effect;
  /** Whether the node names no effect class, so that the strictest is assumed. */
  effectAssumed: boolean;
  hasSchema: boolean;
}

const EFFECTS: readonly unknown[] = ["read", "idempotent", "at_most_once"] satisfies Effect[];

export function describeTool(node: EditorNode): Tool {
  const fixed = catalogueEntry(node.type)?.tool ?? null;
  const own = node["toolName"];
  const name = typeof own === "string" && own !== "" ? own : (fixed?.name ?? (typeof node.name === "string" ? node.name : ""));
  const declared = EFFECTS.includes(node["effect"]) ? (node["effect"] as Effect) : undefined;
  const known = READ_ONLY_TOOLS.includes(node.type) ? "read" : undefined;
  return {
    node,
    name,
    nameVerdict: toolName(name, { name: text("agent.tools.name") }),
    effect: declared ?? known ?? "at_most_once",
    effectAssumed: declared === undefined && known === undefined,
    hasSchema: fixed !== null || !isBlank(node["inputSchema"]),
  };
}

/** Whether a value is a list with at least one name, as the sidecar requires. */
export function allowedVerdict(value: unknown): Verdict {
  if (!isNames(value)) {
    return text("agent.tools.noList");
  }
  return namesOf(value).length > 0 ? true : text("agent.tools.needed");
}

/** Whether a value is a list of ids or missing: the property `tools`, which only imported flows have. */
export function boundVerdict(value: unknown): Verdict {
  return isNames(value) ? true : text("agent.tools.noIds");
}

function isNames(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.every((name) => typeof name === "string"));
}

/** The unique names in a property `allowedTools`; none if it is not a list. */
export function namesOf(value: unknown): string[] {
  const names = (Array.isArray(value) ? value : []).filter((name) => typeof name === "string" && name.trim() !== "");
  return [...new Set(names as string[])];
}

/** Adds a name at the end, unless it is in the list. */
export function addName(names: string[], name: string): string[] {
  return names.includes(name) ? names : [...names, name];
}

export function removeName(names: string[], name: string): string[] {
  return names.filter((other) => other !== name);
}

/** The allowed names that no connected tool has. */
export function notConnected(names: string[], tools: Tool[]): string[] {
  const connected = new Set(tools.map(({ name }) => name));
  return names.filter((name) => !connected.has(name));
}

/** The names of connected tools that may be allowed and are not. */
export function notAllowed(names: string[], tools: Tool[]): string[] {
  const open = tools.filter(({ name, nameVerdict }) => nameVerdict === true && !names.includes(name));
  return [...new Set(open.map(({ name }) => name))];
}
