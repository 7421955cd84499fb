// The outputs of agents by their kind, and the properties by which nodes name services. An agent without outputs for services
// binds those with a wire to its input. Pure. Used by Node-RED's side and by the editor.

import { AGENT_PORTS, NAMED_SERVICES } from "./sidecar-types";

/** The kind of a port or a wire that carries no messages. */
export type ServiceKind = "model" | "tool" | "memory";

export const SERVICE_KINDS: readonly ServiceKind[] = ["model", "tool", "memory"];

/** The name of an agent's output. The checker's sentences use these names in every language. */
export function portName(type: string, port: number): string | undefined {
  return AGENT_PORTS[type]?.[port];
}

/** The kind of an output that binds services. */
export function kindOfOutput(type: string, port: number): ServiceKind | undefined {
  const name = portName(type, port);
  return SERVICE_KINDS.find((kind) => kind === name);
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

/** The ids in the properties of a service that name other services. */
export function namedByService(service: Record<string, unknown>): string[] {
  const names = Object.keys(NAMED_SERVICES[String(service["type"])] ?? {});
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
