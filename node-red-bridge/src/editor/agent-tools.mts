// The tools of an agent, for people: by which name the model calls each, what a call may do, and what is missing. And the
// list of allowed ones, as it is saved. Owns the rules, which are the checker's; draws nothing.

import { catalogued } from "./agent-wiring.mjs";
import { type Verdict, isBlank, toolName } from "./rules.mjs";
import { text } from "./text.mjs";

/** What a call may do to the world. */
export type Effect = "read" | "idempotent" | "at_most_once";

/** A connected tool. */
export interface Tool {
  node: EditorNode;
  /** By which the model calls it; empty if it has none. */
  name: string;
  /** Whether a model can call it by that name. */
  nameVerdict: Verdict;
  effect: Effect;
  /** Nobody has said what a call may do, so the worst is assumed. */
  effectAssumed: boolean;
  hasSchema: boolean;
}

const EFFECTS: readonly unknown[] = ["read", "idempotent", "at_most_once"] satisfies Effect[];

/** Tools that are known to change nothing, whatever their nodes do not say. */
const READ_ONLY = new Set(["calculator-tool"]);

export function describeTool(node: EditorNode): Tool {
  const fixed = catalogued(node.type)?.tool ?? null;
  const own = node["toolName"];
  const name = typeof own === "string" && own !== "" ? own : (fixed?.name ?? (typeof node.name === "string" ? node.name : ""));
  const declared = EFFECTS.includes(node["effect"]) ? (node["effect"] as Effect) : undefined;
  const known = READ_ONLY.has(node.type) ? "read" : undefined;
  return {
    node,
    name,
    nameVerdict: toolName(name, { name: text("agent.tools.name") }),
    effect: declared ?? known ?? "at_most_once",
    effectAssumed: declared === undefined && known === undefined,
    hasSchema: fixed !== null || !isBlank(node["inputSchema"]),
  };
}

/** Whether a value is a list of names with something in it, as the sidecar wants it. */
export function allowedVerdict(value: unknown): Verdict {
  if (!isNames(value)) {
    return text("agent.tools.noList");
  }
  return namesOf(value).length > 0 ? true : text("agent.tools.needed");
}

/** Whether a value is a list of ids, or nothing: the property `tools`, which only flows of others have. */
export function boundVerdict(value: unknown): Verdict {
  return isNames(value) ? true : text("agent.tools.noIds");
}

function isNames(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.every((name) => typeof name === "string"));
}

/** The names in a property `allowedTools`, each once; none if it is no list. */
export function namesOf(value: unknown): string[] {
  const names = (Array.isArray(value) ? value : []).filter((name) => typeof name === "string" && name.trim() !== "");
  return [...new Set(names as string[])];
}

/** The same names with one more, or one less. The order stays. */
export function withName(names: string[], name: string, allowed: boolean): string[] {
  const others = names.filter((other) => other !== name);
  if (!allowed) {
    return others;
  }
  return names.includes(name) ? names : [...names, name];
}

/** Allowed names that no connected tool has. */
export function notConnected(names: string[], tools: Tool[]): string[] {
  const connected = new Set(tools.map(({ name }) => name));
  return names.filter((name) => !connected.has(name));
}

/** Names of connected tools that could be allowed and are not. */
export function notAllowed(names: string[], tools: Tool[]): string[] {
  const open = tools.filter(({ name, nameVerdict }) => nameVerdict === true && !names.includes(name));
  return [...new Set(open.map(({ name }) => name))];
}
