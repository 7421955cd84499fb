// The outputs of agents by their kind. An agent without outputs for services binds those with a wire to its input. Pure.

import { AGENT_PORTS } from "../sidecar-types.js";

/** The kind of a port or a wire that carries no messages. */
export type ServiceKind = "model" | "tool" | "memory";

const SERVICE_KINDS: readonly unknown[] = ["model", "tool", "memory"] satisfies ServiceKind[];

/** The name of an agent's output. The checker's sentences use these names in every language. */
export function portName(type: string, port: number): string | undefined {
  return AGENT_PORTS[type]?.[port];
}

/** The kind of an output that binds services. */
export function kindOfOutput(type: string, port: number): ServiceKind | undefined {
  const name = portName(type, port);
  return SERVICE_KINDS.includes(name) ? (name as ServiceKind) : undefined;
}

/** The outputs of an agent that bind services, or only those of one kind. */
export function servicePorts(type: string, kind?: ServiceKind): number[] {
  const kinds = (AGENT_PORTS[type] ?? []).map((_, port) => kindOfOutput(type, port));
  return kinds.flatMap((found, port) => (found !== undefined && (kind ?? found) === found ? [port] : []));
}

/** Whether an agent binds services by wires to its input. */
export function bindsByInput(type: string): boolean {
  return AGENT_PORTS[type] !== undefined && servicePorts(type).length === 0;
}

/** The services that name other services, with the properties that do. The property `model` of a model is no id. */
const NAMING: Readonly<Record<string, readonly string[]>> = {
  "summary-memory": ["shortMemory", "model"],
  "long-memory": ["shortMemory", "model"],
  "memory-tool": ["memory"],
};

/** The ids in the properties of a service that name other services. */
export function namedByService(service: Record<string, unknown>): string[] {
  const names = NAMING[String(service["type"])] ?? [];
  return names.map((name) => service[name]).filter((id) => typeof id === "string" && id !== "") as string[];
}

/** These nodes, and those that they name as services, each once. */
export function withNamed<Node extends object>(nodes: Iterable<Node>, find: (id: string) => Node | undefined): Set<Node> {
  const found = new Set<Node>();
  const queue = [...nodes].reverse();
  for (let node = queue.pop(); node !== undefined; node = queue.pop()) {
    if (!found.has(node)) {
      found.add(node);
      queue.unshift(...namedByService(node as Record<string, unknown>).flatMap((id) => find(id) ?? []).reverse());
    }
  }
  return found;
}

/** The ids in the properties of an agent that name services. */
export function namedServices({ model, memory, tools, fallbackModels }: Record<string, unknown>): string[] {
  const lists = [tools, fallbackModels].map((ids): unknown[] => (Array.isArray(ids) ? ids : []));
  const ids = [model, memory, ...lists.flat()].filter((id) => typeof id === "string" && id !== "");
  return [...new Set(ids as string[])];
}
