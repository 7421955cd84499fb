// The models, memories and tools that a dialog offers, and the order of a list of them. Pure: draws nothing.

import { withNamed } from "../agent-ports.js";
import { roleOf } from "./agent-wiring.mjs";

/**
 * The nodes of a role that an agent may name: those of the same subflow, or for an agent on a tab those on tabs. A subflow has a
 * copy of each of its nodes for each instance, so no other place can name them.
 */
export function candidates(agent: EditorNode, role: string, nodes: EditorNode[], isSubflow: (id: string) => boolean): EditorNode[] {
  const placeOf = ({ z }: EditorNode): string => (z !== undefined && isSubflow(z) ? z : "");
  return nodes.filter((node) => roleOf(node) === role && placeOf(node) === placeOf(agent));
}

/** The memories that a service cannot use: a tool searches long ones only, and only a short memory can keep a summary. */
const UNFIT: Readonly<Record<string, (type: string) => boolean>> = {
  "memory-tool": (type) => type !== "long-memory",
  "summary-memory": (type) => type === "long-memory" || type === "summary-memory",
};

/**
 * The nodes that a service may name in a property. A memory does not offer itself, nor a memory that leads back to it: the
 * checker would refuse the circle.
 */
export function namedCandidates(
  service: EditorNode,
  role: string,
  nodes: EditorNode[],
  isSubflow: (id: string) => boolean,
): EditorNode[] {
  const find = (id: string): EditorNode | undefined => nodes.find((node) => node.id === id);
  const leadsBack = (node: EditorNode): boolean => [...withNamed([node], find)].some(({ id }) => id === service.id);
  const isUnfit = ({ type }: EditorNode): boolean => role === "memory" && UNFIT[service.type]?.(type) === true;
  return candidates(service, role, nodes, isSubflow).filter((node) => !isUnfit(node) && !leadsBack(node));
}

/** The nodes with their labels. Equal labels get the id of the node too. */
export function withLabels(nodes: EditorNode[], labelOf: (node: EditorNode) => string): { id: string; label: string }[] {
  const labels = nodes.map(labelOf);
  const isUnique = (label: string): boolean => labels.indexOf(label) === labels.lastIndexOf(label);
  return nodes.map(({ id }, index) => {
    const label = labels[index] ?? id;
    return { id, label: isUnique(label) ? label : `${label} (${id})` };
  });
}

/** The ids with one of them moved up by one place. */
export function moveUp(ids: string[], index: number): string[] {
  const [above, id] = [ids[index - 1], ids[index]];
  return above === undefined || id === undefined ? ids : [...ids.slice(0, index - 1), id, above, ...ids.slice(index + 1)];
}
