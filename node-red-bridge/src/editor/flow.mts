// The flow of the editor as it is sent to the checker, and a map of it. Pure: reads Node-RED's export and checks nothing.

import { PASSWORD_MASK, publicDefinition, runsInSidecar } from "../node-definition.js";
import { AGENT_TYPES } from "../sidecar-types.js";
import { bindsByInput, namedServices, servicePorts, withNamed } from "../agent-ports.js";
import { roleOf } from "./agent-wiring.mjs";

/** A node as Node-RED exports it. */
export type ExportedNode = Record<string, unknown>;

/** The flow that is sent to the checker. */
export interface FlowToCheck {
  nodes: ExportedNode[];
  /** The nodes as JSON: a flow with the same text needs no second check. */
  text: string;
  /** The runtimes that agents name, in the order of the flow. */
  runtimes: string[];
}

/** The credentials of a node as far as the editor knows them: until a dialog has loaded them, it knows none. */
export type CredentialsOf = (id: string) => Record<string, unknown> | undefined;

/** The flow to check; undefined if it has no node that the sidecar runs. */
export function flowToCheck(exported: ExportedNode[], credentialsOf: CredentialsOf): FlowToCheck | undefined {
  if (!exported.some((node) => runsInSidecar(textOf(node.type)))) {
    return undefined;
  }
  const nodes = exported.map((node) => {
    const definition = publicDefinition({ ...node, type: textOf(node.type) });
    // The checker needs to know whether a node has a position, but not which: then moving a node changes nothing.
    for (const key of ["x", "y"]) {
      if (typeof definition[key] === "number") {
        definition[key] = 0;
      }
    }
    const credentials = runsInSidecar(textOf(node.type)) ? maskCredentials(credentialsOf(textOf(node.id))) : {};
    return Object.keys(credentials).length === 0 ? definition : { ...definition, credentials };
  });
  const agents = exported.filter((node) => isAgent(textOf(node.type)));
  const runtimes = new Set(agents.map((agent) => textOf(agent.runtime)).filter((id) => id !== ""));
  return { nodes, text: JSON.stringify(nodes), runtimes: [...runtimes] };
}

/** The mask for each credential that is set, and an empty text for each one that is not. Never a value. */
function maskCredentials(credentials: Record<string, unknown> | undefined): Record<string, string> {
  const masked: Record<string, string> = {};
  for (const [key, value] of Object.entries(credentials ?? {})) {
    // Node-RED keeps `has_apiKey` for the password `apiKey`, and the values before the edit in `_`.
    const name = key.startsWith("has_") ? key.slice("has_".length) : key;
    if (key !== "_" && (name !== key || !Object.hasOwn(credentials ?? {}, `has_${key}`))) {
      masked[name] = value === true || (typeof value === "string" && value !== "") ? PASSWORD_MASK : "";
    }
  }
  return masked;
}

export function isAgent(type: string): boolean {
  return AGENT_TYPES.includes(type);
}

/** Finds nodes and wires of a checked flow. */
export interface FlowMap {
  /** The editor's id of a node of the checker: inside a subflow the checker's id contains the instances. */
  idOf(node: { id: string; type: string }): string | undefined;
  /** The same for a node without a name, which the checker names by its id. Undefined if a node has the id as its name. */
  idOfUnnamed(id: string): string | undefined;
  /** The target of a wire of a port. */
  targetOf(node: string, port: number, index: number): string | undefined;
  /** Whether a port has a direct wire to the target. */
  hasWire(node: string, port: number, target: string): boolean;
  /** The nodes that an agent binds by wires and by properties, with the junctions and links between, and those that they name. */
  boundTo(agent: string): ReadonlySet<string>;
  agents: readonly string[];
  /** Agents in a subflow without an instance, which the checker does not see. */
  unused: ReadonlySet<string>;
}

/** Nodes that pass messages unchanged; the checker follows wires through them. */
const TRANSPARENT = new Set(["junction", "link in", "link out"]);

export function createFlowMap(nodes: ExportedNode[]): FlowMap {
  const byId = new Map(nodes.map((node) => [textOf(node.id), node]));
  // An empty id is not an id.
  byId.delete("");
  const wires = (id: string, port: number): string[] => texts(list(byId.get(id)?.wires)[port]);
  const nextIds = (node: ExportedNode): string[] =>
    // A returning link goes back to its caller.
    node.type === "link out" && node.mode !== "return" ? texts(node.links) : list(node.wires).flatMap(texts);
  let before: Map<string, string[]> | undefined;
  const previousIds = (id: string): string[] => (before ??= sourcesOf(nodes, nextIds)).get(id) ?? [];
  const isTransparent = (id: string): boolean => TRANSPARENT.has(textOf(byId.get(id)?.type));
  const isServiceOrTransparent = (id: string): boolean =>
    isTransparent(id) || ["model", "memory", "tool"].includes(roleOf({ type: textOf(byId.get(id)?.type) }));
  /** The nodes from these on, up to the first ones that handle messages. */
  const reach = (from: string[], follow: (id: string) => string[]): Set<string> => {
    const found = new Set<string>();
    const queue = [...from];
    for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
      if (byId.has(id) && !found.has(id)) {
        found.add(id);
        queue.push(...(isTransparent(id) ? follow(id) : []));
      }
    }
    return found;
  };
  /** Removes leading instance ids, each followed by a dash. An id may contain dashes itself. */
  const find = (id: string, matches: (node: ExportedNode) => boolean): string | undefined => {
    for (let rest = id; ; rest = rest.slice(rest.indexOf("-") + 1)) {
      const node = byId.get(rest);
      if (node !== undefined && matches(node)) {
        return rest;
      }
      if (!rest.includes("-")) {
        return undefined;
      }
    }
  };
  const names = new Set(nodes.map((node) => textOf(node.name)));
  const usedSubflows = subflowsInUse(nodes);
  const agents = nodes.filter((node) => isAgent(textOf(node.type)));
  return {
    idOf: ({ id, type }) => find(id, (node) => node.type === type),
    idOfUnnamed: (id) => (names.has(id) ? undefined : find(id, (node) => textOf(node.name) === "")),
    targetOf: (id, port, index) => wires(id, port)[index],
    hasWire: (id, port, target) => wires(id, port).includes(target),
    boundTo: (agent) => {
      const definition = byId.get(agent) ?? {};
      const type = textOf(definition.type);
      const ports = servicePorts(type).flatMap((port) => wires(agent, port));
      const inputs = bindsByInput(type) ? [...reach(previousIds(agent), previousIds)].filter(isServiceOrTransparent) : [];
      const bound = [...reach(ports, (id) => nextIds(byId.get(id) ?? {})), ...inputs, ...namedServices(definition)];
      const services = withNamed(bound.map((id) => byId.get(id)).filter((node) => node !== undefined), (id) => byId.get(id));
      return new Set([...services].map(({ id }) => textOf(id)));
    },
    agents: agents.map((agent) => textOf(agent.id)),
    unused: new Set(
      agents
        .filter(({ z }) => byId.get(textOf(z))?.type === "subflow" && !usedSubflows.has(textOf(z)))
        .map(({ id }) => textOf(id)),
    ),
  };
}

/** The nodes with a wire to each node. */
function sourcesOf(nodes: ExportedNode[], nextIds: (node: ExportedNode) => string[]): Map<string, string[]> {
  const sources = new Map<string, string[]>();
  for (const node of nodes) {
    for (const target of new Set(nextIds(node))) {
      const known = sources.get(target) ?? [];
      known.push(textOf(node.id));
      sources.set(target, known);
    }
  }
  return sources;
}

/** The subflows with an instance on a tab, or in another used subflow. */
function subflowsInUse(nodes: ExportedNode[]): Set<string> {
  const subflows = new Set(nodes.filter(({ type }) => type === "subflow").map(({ id }) => textOf(id)));
  const uses = new Map<string, Set<string>>();
  const used = new Set<string>();
  const queue: string[] = [];
  for (const { type, z } of nodes) {
    const subflow = textOf(type).startsWith("subflow:") ? textOf(type).slice("subflow:".length) : undefined;
    if (subflow === undefined) {
      continue;
    }
    if (subflows.has(textOf(z))) {
      const inside = uses.get(textOf(z)) ?? new Set();
      uses.set(textOf(z), inside.add(subflow));
    } else {
      queue.push(subflow);
    }
  }
  for (let subflow = queue.pop(); subflow !== undefined; subflow = queue.pop()) {
    if (!used.has(subflow)) {
      used.add(subflow);
      queue.push(...(uses.get(subflow) ?? []));
    }
  }
  return used;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The texts of a list; other values become empty texts, so that the indices stay. */
function texts(value: unknown): string[] {
  return list(value).map(textOf);
}
