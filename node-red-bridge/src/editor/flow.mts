// The flow in the editor as the checker is asked about it, and where in it things are. Pure: it reads what Node-RED
// exports, and judges nothing.

import { runsInSidecar, publicDefinition } from "../node-definition.js";

/** A node as Node-RED exports it. */
export type Exported = Record<string, unknown>;

/** What the checker is asked about. */
export interface AskedFlow {
  nodes: Exported[];
  /** The same as JSON: two flows with the same text need no second check. */
  text: string;
  /** Runtimes that agents name, in the order of the flow. */
  runtimes: string[];
}

/** What to ask about; nothing if no node of ours is there. */
export function askedFlow(exported: Exported[]): AskedFlow | undefined {
  if (!exported.some((node) => runsInSidecar(textOf(node.type)))) {
    return undefined;
  }
  const nodes = exported.map((node) => {
    const told = publicDefinition({ ...node, type: textOf(node.type) });
    // Whether a node stands on a canvas is asked for, where is not: so moving it is no change.
    for (const key of ["x", "y"]) {
      if (typeof told[key] === "number") {
        told[key] = 0;
      }
    }
    return told;
  });
  const agents = exported.filter((node) => isAgent(textOf(node.type)));
  const runtimes = new Set(agents.map((agent) => textOf(agent.runtime)).filter((id) => id !== ""));
  return { nodes, text: JSON.stringify(nodes), runtimes: [...runtimes] };
}

export function isAgent(type: string): boolean {
  return type === "agent-core" || type === "ai-agent";
}

/** Where things are in the flow that was asked about. */
export interface FlowMap {
  /** The editor's id of a node the checker names: inside a subflow it is called by the way there. */
  idOf(named: { id: string; type: string }): string | undefined;
  /** The same of a node without a name: the checker calls it by its id. Undefined if a node has that as its name. */
  unnamed(id: string): string | undefined;
  /** Where the wire at this place leads. */
  targetOf(node: string, port: number, place: number): string | undefined;
  /** Whether a port of the node has a wire straight to the other. */
  joins(node: string, port: number, target: string): boolean;
  /** The nodes at the ports of an agent that bind, and behind junctions and links there. */
  boundTo(agent: string): ReadonlySet<string>;
  agents: readonly string[];
  /** Agents that stand in a subflow nobody uses, which the checker therefore does not see. */
  unused: ReadonlySet<string>;
}

/** Ports of agent-core that bind a model, tools and a memory. */
const BINDING_PORTS = 3;

/** Nodes that messages pass unchanged; the checker looks through them. */
const TRANSPARENT = new Set(["junction", "link in", "link out"]);

export function mapOf(nodes: Exported[]): FlowMap {
  const byId = new Map(nodes.map((node) => [textOf(node.id), node]));
  // An empty id is no id.
  byId.delete("");
  const wires = (id: string, port: number): string[] => texts(list(byId.get(id)?.wires)[port]);
  const onwards = (node: Exported): string[] =>
    // A link that returns goes back to whoever called.
    node.type === "link out" && node.mode !== "return" ? texts(node.links) : list(node.wires).flatMap(texts);
  /** The way is the ids of the instances, each with a dash behind it; an id may have dashes itself. */
  const find = (id: string, fits: (node: Exported) => boolean): string | undefined => {
    for (let rest = id; ; rest = rest.slice(rest.indexOf("-") + 1)) {
      const node = byId.get(rest);
      if (node !== undefined && fits(node)) {
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
    unnamed: (id) => (names.has(id) ? undefined : find(id, (node) => textOf(node.name) === "")),
    targetOf: (id, port, place) => wires(id, port)[place],
    joins: (id, port, target) => wires(id, port).includes(target),
    boundTo: (agent) => {
      const reached = new Set<string>();
      const toSee = Array.from({ length: BINDING_PORTS }, (_, port) => wires(agent, port)).flat();
      for (let id = toSee.pop(); id !== undefined; id = toSee.pop()) {
        const node = byId.get(id);
        if (node !== undefined && !reached.has(id)) {
          reached.add(id);
          if (TRANSPARENT.has(textOf(node.type))) {
            toSee.push(...onwards(node));
          }
        }
      }
      return reached;
    },
    agents: agents.map((agent) => textOf(agent.id)),
    unused: new Set(
      agents
        .filter(({ z }) => byId.get(textOf(z))?.type === "subflow" && !usedSubflows.has(textOf(z)))
        .map(({ id }) => textOf(id)),
    ),
  };
}

/** Subflows with an instance on a tab, or in a subflow that is in use. */
function subflowsInUse(nodes: Exported[]): Set<string> {
  const subflows = new Set(nodes.filter(({ type }) => type === "subflow").map(({ id }) => textOf(id)));
  const uses = new Map<string, Set<string>>();
  const used = new Set<string>();
  const toSee: string[] = [];
  for (const { type, z } of nodes) {
    const subflow = textOf(type).startsWith("subflow:") ? textOf(type).slice("subflow:".length) : undefined;
    if (subflow === undefined) {
      continue;
    }
    if (subflows.has(textOf(z))) {
      const inside = uses.get(textOf(z)) ?? new Set();
      uses.set(textOf(z), inside.add(subflow));
    } else {
      toSee.push(subflow);
    }
  }
  for (let subflow = toSee.pop(); subflow !== undefined; subflow = toSee.pop()) {
    if (!used.has(subflow)) {
      used.add(subflow);
      toSee.push(...(uses.get(subflow) ?? []));
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

/** The texts of a list, each at its place. */
function texts(value: unknown): string[] {
  return list(value).map(textOf);
}
