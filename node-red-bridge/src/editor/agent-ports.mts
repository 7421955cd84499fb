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

/** The ids in the properties of an agent that name services. */
export function namedServices({ model, memory, tools, fallbackModels }: Record<string, unknown>): string[] {
  const lists = [tools, fallbackModels].map((ids): unknown[] => (Array.isArray(ids) ? ids : []));
  const ids = [model, memory, ...lists.flat()].filter((id) => typeof id === "string" && id !== "");
  return [...new Set(ids as string[])];
}
