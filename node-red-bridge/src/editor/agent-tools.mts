// The tools of an agent for the dialog: name, effect class and schema of each, and the list of allowed tools as it is saved.
// Follows the rules of the checker. Pure: draws nothing.

import type { OperationList } from "../admin-api.js";
import { READ_ONLY_TOOLS } from "../sidecar-types.js";
import { catalogueEntry } from "./agent-wiring.mjs";
import { type Verdict, isBlank, toolName } from "./rules.mjs";
import { text } from "./text.mjs";
import { patternsOf } from "./mcp-tools.mjs";
import { isNamed, isToolPattern, matchesTool } from "./tool-ids.mjs";

/** The effect class of a tool's calls. */
export type Effect = "read" | "idempotent" | "at_most_once";

/** The operations of installed nodes, by type. */
export type Operations = OperationList["operations"];

/** A connected tool. */
export interface Tool {
  node: EditorNode;
  /** The name that the model uses, or an id or pattern of a node that provides several tools; empty if it has none. */
  name: string;
  /** Whether a model can use that name. */
  nameVerdict: Verdict;
  /** Undefined for a pattern, and for a tool of the registry. */
  effect: Effect | undefined;
  /** Whether the node names no effect class, so that the strictest is assumed. */
  effectAssumed: boolean;
  hasSchema: boolean;
}

const EFFECTS: readonly unknown[] = ["read", "idempotent", "at_most_once"] satisfies Effect[];

/** The ends of the names of a memory-tool's tools. */
const MEMORY_TOOLS: readonly (readonly [string, Effect])[] = [
  ["search", "read"],
  ["get", "read"],
  ["list", "read"],
  ["put", "idempotent"],
];

/** The tools of a node: several for a registry-tool, a memory-tool, an mcp-client, and for a node with operations. */
export function describeTools(node: EditorNode, operations: Operations): Tool[] {
  const provided = (name: string, effect?: Effect): Tool => {
    const nameVerdict = isToolPattern(name) || text("agent.tools.badId");
    return { node, name, nameVerdict, effect, effectAssumed: false, hasSchema: true };
  };
  if (node.type === "registry-tool") {
    return namesOf(node["ids"]).map((id) => provided(id));
  }
  if (node.type === "memory-tool") {
    const start = typeof node["toolName"] === "string" && node["toolName"].trim() !== "" ? node["toolName"].trim() : "memory";
    return MEMORY_TOOLS.map(([name, effect]) => provided(`${start}_${name}`, effect));
  }
  if (node.type === "mcp-client") {
    return mcpIds(node).map((id) => provided(id));
  }
  const own = Object.hasOwn(operations, node.type) ? (operations[node.type] ?? []) : [];
  if (own.length === 0 || catalogueEntry(node.type) !== undefined) {
    return [describeTool(node)];
  }
  const start = node.type.replaceAll(/[^A-Za-z0-9_-]/g, "-");
  const effectOf = (effect: string): Effect => (EFFECTS.includes(effect) ? (effect as Effect) : "at_most_once");
  return [provided(`${start}.*`), ...own.map(({ name, effect }) => provided(`${start}.${name}`, effectOf(effect)))];
}

/** The ids of an mcp-client's tools: those that it names, or all of its server. */
function mcpIds(node: EditorNode): string[] {
  const server = typeof node["server"] === "string" ? node["server"].trim() : "";
  const named = patternsOf(node["include"]);
  const isList = named.length > 0 && named.every((name) => /^[A-Za-z0-9_-]+$/.test(name));
  return server === "" ? [] : (isList ? named : ["*"]).map((name) => `mcp.${server}.${name}`);
}

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
  return names.filter((name) => !tools.some((tool) => matchesTool(name, tool.name) || matchesTool(tool.name, name)));
}

/** The names of connected tools that may be allowed and are not. Those that a pattern of them names are left out. */
export function notAllowed(names: string[], tools: Tool[]): string[] {
  const open = tools.filter(({ name, nameVerdict }) => nameVerdict === true && !isNamed(names, name)).map(({ name }) => name);
  return [...new Set(open)].filter((name) => !open.some((other) => other !== name && matchesTool(other, name)));
}
