// The nodes that are wired to an agent in the editor. Follows wires as the sidecar's checker does: through junctions, link
// nodes and into subflows, without disabled nodes. Pure: checks and changes nothing.

import { CATALOGUE } from "@redflow/bindings";
import { bindsByInput, namedServices, servicePorts, withNamed } from "../agent-ports.js";

/** The most instances of one agent. */
const MAX_INSTANCES = 50;

/** The part of the editor's model that the traversal needs. */
export interface Wiring {
  /** The nodes after a node, of all outputs or of one. */
  next(node: EditorNode, port?: number): EditorNode[];
  /** The nodes before a node. */
  previous(node: EditorNode): EditorNode[];
  node(id: string): EditorNode | undefined;
  all(type: string): EditorNode[];
  /** The nodes after the input of a subflow. */
  inside(subflow: string): EditorNode[];
  /** Whether a node, or its tab, is disabled. */
  isOff(node: EditorNode): boolean;
}

/** The catalogue's entry of a node type; undefined for data nodes of other modules. */
export function catalogueEntry(type: string): (typeof CATALOGUE)[number] | undefined {
  return (
    CATALOGUE.find((entry) => entry.type === type) ??
    CATALOGUE.find((entry) => entry.type.endsWith("*") && type.startsWith(entry.type.slice(0, -1)))
  );
}

/** The role of a node for an agent. */
export function roleOf(node: Pick<EditorNode, "type">): string {
  return catalogueEntry(node.type)?.role ?? "data";
}

/** The nodes that an output of a node reaches, each once. */
export function reachableNodes(from: EditorNode, port: number, wiring: Wiring): EditorNode[] {
  return traverse(wiring.next(from, port), wiring, (node) => nodesAfter(node, wiring));
}

/** The services with a wire to the input of an agent. */
function servicesBefore(agent: EditorNode, wiring: Wiring): EditorNode[] {
  const before = traverse(wiring.previous(agent), wiring, (node) => nodesBefore(node, wiring));
  return before.filter((node) => ["model", "memory", "tool"].includes(roleOf(node)));
}

/** The nodes that the wires of an agent bind. */
export function wiredServices(agent: EditorNode, wiring: Wiring): EditorNode[] {
  if (bindsByInput(agent.type)) {
    return servicesBefore(agent, wiring);
  }
  return [...new Set(servicePorts(agent.type).flatMap((port) => reachableNodes(agent, port, wiring)))];
}

/** The enabled nodes that the properties of an agent name. */
function nodesOf(ids: string[], wiring: Wiring): EditorNode[] {
  return ids.map((id) => wiring.node(id)).filter((node) => node !== undefined).filter((node) => !wiring.isOff(node));
}

/**
 * The tools of an agent: by wires or by its property `tools`. If its output for tools binds none, also those with a wire to its
 * input.
 */
export function toolsOf(agent: EditorNode, wiring: Wiring): EditorNode[] {
  const wired = servicePorts(agent.type, "tool").flatMap((port) => reachableNodes(agent, port, wiring));
  const bound = [...wired, ...nodesOf(namedServices({ tools: agent["tools"] }), wiring)];
  const tools = bound.filter((node) => node !== agent && ["tool", "data"].includes(roleOf(node)));
  const isBound = tools.length > 0 && !bindsByInput(agent.type);
  const replying = isBound ? [] : servicesBefore(agent, wiring).filter((node) => roleOf(node) === "tool");
  return [...new Set([...replying, ...tools])];
}

/** The agent and every service that it binds, also through a memory or a tool that names others. */
export function withServices(agent: EditorNode, wiring: Wiring): EditorNode[] {
  const bound = [agent, ...wiredServices(agent, wiring), ...nodesOf(namedServices(agent), wiring)];
  return [...withNamed(bound, (id) => nodesOf([id], wiring)[0])];
}

/** Visits each node once. `follow` returns the next nodes of a transparent node, and undefined for an end. */
function traverse(
  start: EditorNode[],
  wiring: Wiring,
  follow: (node: EditorNode) => EditorNode[] | undefined,
): EditorNode[] {
  const seen = new Set<EditorNode>();
  const found: EditorNode[] = [];
  const stack: EditorNode[] = [];
  const visit = (nodes: EditorNode[]): void => {
    const unseen = [...new Set(nodes)].filter((node) => !seen.has(node) && !wiring.isOff(node));
    unseen.forEach((node) => seen.add(node));
    stack.push(...unseen.reverse());
  };
  visit(start);
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    const more = follow(node);
    if (more === undefined) {
      found.push(node);
    } else {
      visit(more);
    }
  }
  return found;
}

function nodesAfter(node: EditorNode, wiring: Wiring): EditorNode[] | undefined {
  switch (node.type) {
    case "junction":
    case "link in":
      return wiring.next(node);
    case "link out":
      return node["mode"] === "return" ? [] : linkPartners(node, "link in", wiring);
    case "subflow":
      // The output of the open subflow: the next nodes are outside, for each instance.
      return [];
    default:
      return node.type.startsWith("subflow:") ? wiring.inside(node.type.slice("subflow:".length)) : undefined;
  }
}

function nodesBefore(node: EditorNode, wiring: Wiring): EditorNode[] | undefined {
  switch (node.type) {
    case "junction":
    case "link out":
      return wiring.previous(node);
    case "link in":
      return linkPartners(node, "link out", wiring).filter((out) => out["mode"] !== "return");
    default:
      return node.type.startsWith("subflow") ? [] : undefined;
  }
}

/** The other ends of a link node. One of the two must name the other. */
function linkPartners(node: EditorNode, type: string, wiring: Wiring): EditorNode[] {
  const ids = (link: EditorNode): unknown[] => (Array.isArray(link["links"]) ? link["links"] : []);
  return wiring.all(type).filter((other) => ids(node).includes(other.id) || ids(other).includes(node.id));
}

/** One instance of an agent. */
export interface AgentInstance {
  /** The id that the sidecar uses. */
  id: string;
  /** The subflow instances that contain it, outermost first; empty on a tab. */
  within: EditorNode[];
}

/** The instances of an agent: one on a tab, or one for each instance of its subflow. */
export function agentInstances(
  node: EditorNode,
  wiring: Pick<Wiring, "all">,
  isSubflow: (id: string) => boolean,
): AgentInstance[] {
  const found: AgentInstance[] = [];
  const visit = (z: string | undefined, agent: AgentInstance): void => {
    if (z === undefined || !isSubflow(z)) {
      found.push(agent);
      return;
    }
    for (const instance of wiring.all(`subflow:${z}`)) {
      // Node-RED does not run a subflow that contains itself.
      if (found.length < MAX_INSTANCES && !agent.within.includes(instance)) {
        visit(instance.z, { id: `${instance.id}-${agent.id}`, within: [instance, ...agent.within] });
      }
    }
  };
  visit(node.z, { id: node.id, within: [] });
  return found;
}
