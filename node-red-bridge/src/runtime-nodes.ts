// Which agents of the flow are those of a runtime, and which models, memories, tools and key nodes they use. Follows the rules
// by which the sidecar's checker binds services. A wrong flow is not reported here: the checker does that.

import { SERVICE_KINDS, type ServiceKind, bindsByInput, servicePorts } from "./agent-ports";
import { FlowGraph, type FlowNode } from "./flow-graph";
import type { Definition } from "./red";
import { AGENT_TYPES, KEY_NODE_TYPES, NAMED_SERVICES, SERVICE_ROLES } from "./sidecar-types";

/** The nodes of a runtime. In a subflow they have the ids of the subflow's own nodes, as credentials have. */
export interface RuntimeNodes {
  agents: ReadonlySet<string>;
  /** What these agents use: models, memories, tools and key nodes. */
  services: ReadonlySet<string>;
  /** The ids, also those in instances of subflows, of what only agents of other runtimes use. */
  foreign: ReadonlySet<string>;
}

/** The properties by which an agent names services, apart from its fallback models. */
const NAMES: Readonly<Record<ServiceKind, string>> = { model: "model", memory: "memory", tool: "tools" };

/** The nodes of the runtime whose node has this id. Throws `FlowTooLarge`. */
export function nodesOfRuntime(definitions: readonly Definition[], runtime: string): RuntimeNodes {
  const graph = new FlowGraph(definitions);
  const runtimes = graph.nodes("redflow-runtime");
  const replies = servicesWiredTo(graph);
  const agents = new Set<string>();
  const [own, others] = [new Set<FlowNode>(), new Set<FlowNode>()];
  for (const agent of graph.nodes().filter(isAgent)) {
    const isOwn = runtimeOf(graph, agent, runtimes) === runtime;
    if (isOwn) {
      agents.add(agent.definition.id);
    }
    const used = isOwn ? own : others;
    servicesOf(graph, agent, replies.get(agent) ?? []).forEach((service) => used.add(service));
  }
  const foreign = [...others].filter((service) => !own.has(service));
  return {
    agents,
    services: new Set([...own].map(({ definition }) => definition.id)),
    foreign: new Set(foreign.map(({ id }) => id)),
  };
}

/** The runtime of an agent: the one that it names, or the only one. */
function runtimeOf(graph: FlowGraph, agent: FlowNode, runtimes: FlowNode[]): string | undefined {
  const named = graph.valueOf(agent, "runtime");
  if (typeof named === "string" && named !== "") {
    return graph.find(agent, named)?.id;
  }
  return runtimes.length === 1 ? runtimes[0]?.id : undefined;
}

/** Everything that an agent binds, and what that names. */
function servicesOf(graph: FlowGraph, agent: FlowNode, replies: FlowNode[]): Set<FlowNode> {
  const { type } = agent.definition;
  const bound = new Set<FlowNode>();
  for (const kind of SERVICE_KINDS) {
    const wired = servicePorts(type, kind).flatMap((port) => graph.reached(agent, port));
    const services = [...wired, ...named(graph, agent, NAMES[kind])].filter((node) => roleOf(node) === kind);
    // A wire into an agent binds a service, unless the agent has one of its kind already.
    const takesReplies = services.length === 0 || (kind === "tool" && bindsByInput(type));
    const replying = takesReplies ? replies.filter((node) => roleOf(node) === kind) : [];
    [...services, ...replying].forEach((service) => bound.add(service));
  }
  const fallbacks = named(graph, agent, "fallbackModels").filter((node) => roleOf(node) === "model");
  fallbacks.forEach((model) => bound.add(model));
  // A set also visits what is added meanwhile.
  for (const service of bound) {
    namedByService(graph, service).forEach((one) => bound.add(one));
  }
  return bound;
}

/** The services and the key node that a service names. */
function namedByService(graph: FlowGraph, service: FlowNode): FlowNode[] {
  const { type } = service.definition;
  const services = Object.entries(NAMED_SERVICES[type] ?? {}).flatMap(([property, role]) =>
    named(graph, service, property).filter((node) => roleOf(node) === role),
  );
  const keys = named(graph, service, "keyNode").filter(({ definition }) => definition.type === KEY_NODE_TYPES[type]);
  return [...services, ...keys];
}

/** The nodes that a property names by their ids. */
function named(graph: FlowGraph, node: FlowNode, property: string): FlowNode[] {
  return [graph.valueOf(node, property)].flat().flatMap((id) => (typeof id === "string" ? (graph.find(node, id) ?? []) : []));
}

/** The services with a wire to each agent. */
function servicesWiredTo(graph: FlowGraph): Map<FlowNode, FlowNode[]> {
  const wired = new Map<FlowNode, FlowNode[]>();
  for (const service of graph.nodes().filter((node) => roleOf(node) !== undefined)) {
    for (const agent of graph.reached(service).filter(isAgent)) {
      wired.set(agent, [...(wired.get(agent) ?? []), service]);
    }
  }
  return wired;
}

function isAgent({ definition }: FlowNode): boolean {
  return AGENT_TYPES.includes(definition.type);
}

/** The role of a node that agents bind; undefined for all others. */
function roleOf({ definition: { type } }: FlowNode): string | undefined {
  const prefix = Object.keys(SERVICE_ROLES).find((row) => row.endsWith("*") && type.startsWith(row.slice(0, -1)));
  return SERVICE_ROLES[type] ?? (prefix === undefined ? undefined : SERVICE_ROLES[prefix]);
}
