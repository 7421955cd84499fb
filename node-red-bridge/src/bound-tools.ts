// Whether an agent uses a tool, as the nodes that run are wired: by its port, by a property, or by a wire from the tool.
// Looks through what passes messages on unchanged, as the checker does; judges nothing.

import type { Red, RedNode } from "./red";
import { isService } from "./told";

/** The output of an agent that binds tools. */
const TOOL_PORT = 1;

/** Nodes that pass messages on. While it runs, a link out has wires to its link ins, and a subflow to what is inside. */
const TRANSPARENT = new Set(["junction", "link in", "link out"]);

/** Whether an agent, with the tools that it names, uses the tool that this node is. */
export function usesTool(RED: Pick<Red, "nodes">, agent: RedNode, named: unknown, tool: string): boolean {
  // Inside a subflow a node's id has that of the instance before it, which is what the agent has for a tab.
  const isNamed = (id: unknown): boolean => id === tool || `${agent.z ?? ""}-${String(id)}` === tool;
  if ((Array.isArray(named) && named.some(isNamed)) || leads(RED, agent.wires[TOOL_PORT], tool)) {
    return true;
  }
  const node = RED.nodes.getNode(tool);
  return node !== null && isService(node.type) && leads(RED, node.wires.flat(), agent.id);
}

/** Whether one of these wires leads to a node. */
function leads(RED: Pick<Red, "nodes">, wires: (string | null)[] | undefined, to: string): boolean {
  const seen = new Set<string>();
  const left = [...(wires ?? [])];
  for (let id = left.pop(); id !== undefined; id = left.pop()) {
    if (id === to) {
      return true;
    }
    if (id !== null && !seen.has(id)) {
      seen.add(id);
      const node = RED.nodes.getNode(id);
      if (node !== null && (TRANSPARENT.has(node.type) || node.type.startsWith("subflow:"))) {
        left.push(...node.wires.flat());
      }
    }
  }
  return false;
}
