// What is wired to an agent in the editor, followed as the sidecar's checker does it: through junctions, pairs of link nodes
// and into subflows, without what is disabled. Owns the walk; judges nothing, and changes nothing.

import { CATALOGUE } from "@redflow/bindings";

/** The output of agent-core that leads to its tools. */
export const TOOL_PORT = 1;

/** The outputs of agent-core that lead to services: model, tool, memory. */
const SERVICE_PORTS = [0, TOOL_PORT, 2];

/** Instances of one subflow that are told apart, at most. */
const MAX_INSTANCES = 50;

/** What a walk needs of the editor's model. */
export interface Wiring {
  /** What the outputs of a node lead to; only one output if it is named. */
  next(node: EditorNode, port?: number): EditorNode[];
  /** What leads to the input of a node. */
  previous(node: EditorNode): EditorNode[];
  node(id: string): EditorNode | undefined;
  /** The nodes of a type. */
  all(type: string): EditorNode[];
  /** What the input of a subflow leads to inside. */
  inside(subflow: string): EditorNode[];
  /** Whether a node will not run: it, or the tab it is on, is disabled. */
  isOff(node: EditorNode): boolean;
}

/** What is known of a node type; what is not listed is a data node. */
export function catalogued(type: string): (typeof CATALOGUE)[number] | undefined {
  return (
    CATALOGUE.find((entry) => entry.type === type) ??
    CATALOGUE.find((entry) => entry.type.endsWith("*") && type.startsWith(entry.type.slice(0, -1)))
  );
}

/** What a node is to an agent. */
export function roleOf(node: EditorNode): string {
  return catalogued(node.type)?.role ?? "data";
}

/** The nodes an output of a node leads to, each once. */
export function reached(from: EditorNode, port: number, wiring: Wiring): EditorNode[] {
  return walk(wiring.next(from, port), wiring, (node) => onward(node, wiring));
}

/** The tools of an agent: by wires, by its property `tools`, else those whose replies come to its input. */
export function toolsOf(agent: EditorNode, wiring: Wiring): EditorNode[] {
  const named = Array.isArray(agent["tools"]) ? agent["tools"].map((id) => wiring.node(String(id))) : [];
  const bound = [...reached(agent, TOOL_PORT, wiring), ...named.filter((node) => node !== undefined && !wiring.isOff(node))];
  const tools = [...new Set(bound as EditorNode[])].filter((node) => node !== agent && ["tool", "data"].includes(roleOf(node)));
  if (tools.length > 0) {
    return tools;
  }
  const replying = walk(wiring.previous(agent), wiring, (node) => back(node, wiring));
  return replying.filter((node) => roleOf(node) === "tool");
}

/** The agent, and every service its wires lead to. */
export function withServices(agent: EditorNode, wiring: Wiring): EditorNode[] {
  return [...new Set([agent, ...SERVICE_PORTS.flatMap((port) => reached(agent, port, wiring))])];
}

/** Walks until nothing new comes, and to no node twice. `further` says where one that messages only pass through leads to. */
function walk(
  start: EditorNode[],
  wiring: Wiring,
  further: (node: EditorNode) => EditorNode[] | undefined,
): EditorNode[] {
  const seen = new Set<EditorNode>();
  const found: EditorNode[] = [];
  const waiting: EditorNode[] = [];
  const visit = (nodes: EditorNode[]): void => {
    const fresh = [...new Set(nodes)].filter((node) => !seen.has(node) && !wiring.isOff(node));
    fresh.forEach((node) => seen.add(node));
    waiting.push(...fresh.reverse());
  };
  visit(start);
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    const more = further(node);
    if (more === undefined) {
      found.push(node);
    } else {
      visit(more);
    }
  }
  return found;
}

function onward(node: EditorNode, wiring: Wiring): EditorNode[] | undefined {
  switch (node.type) {
    case "junction":
    case "link in":
      return wiring.next(node);
    case "link out":
      return node["mode"] === "return" ? [] : linked(node, "link in", wiring);
    case "subflow":
      // An end of the subflow that is open in the editor: what comes after is outside, once for each instance.
      return [];
    default:
      return node.type.startsWith("subflow:") ? wiring.inside(node.type.slice("subflow:".length)) : undefined;
  }
}

function back(node: EditorNode, wiring: Wiring): EditorNode[] | undefined {
  switch (node.type) {
    case "junction":
    case "link out":
      return wiring.previous(node);
    case "link in":
      return linked(node, "link out", wiring).filter((out) => out["mode"] !== "return");
    default:
      return node.type.startsWith("subflow") ? [] : undefined;
  }
}

/** The other ends of a link node. It is enough if one of the two names the other. */
function linked(node: EditorNode, type: string, wiring: Wiring): EditorNode[] {
  const ids = (of: EditorNode): unknown[] => (Array.isArray(of["links"]) ? of["links"] : []);
  return wiring.all(type).filter((other) => ids(node).includes(other.id) || ids(other).includes(node.id));
}

/** An agent as the sidecar knows it. */
export interface Running {
  id: string;
  /** The instances of subflows it is in, from the outside in; empty on a tab. */
  within: EditorNode[];
}

/** As what a node runs: once, or once for each instance of the subflow it is in. */
export function runningAs(node: EditorNode, wiring: Pick<Wiring, "all">, isSubflow: (id: string) => boolean): Running[] {
  const found: Running[] = [];
  const visit = (z: string | undefined, running: Running): void => {
    if (z === undefined || !isSubflow(z)) {
      found.push(running);
      return;
    }
    for (const instance of wiring.all(`subflow:${z}`)) {
      // A subflow that contains itself runs nowhere.
      if (found.length < MAX_INSTANCES && !running.within.includes(instance)) {
        visit(instance.z, { id: `${instance.id}-${running.id}`, within: [instance, ...running.within] });
      }
    }
  };
  visit(node.z, { id: node.id, within: [] });
  return found;
}
