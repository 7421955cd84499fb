// Whether an agent uses a tool, by the wires of the running nodes: by its tool port if it has one, by a property, or by a wire from the
// tool. Follows wires through junctions, links and subflows as the checker does. Checks nothing.

import { runsInSidecar } from "./node-definition";
import type { Red, RedNode } from "./red";
import { AGENT_PORTS } from "./sidecar-types";

/** Nodes that pass messages on. At run time a link out has wires to its link ins, and a subflow to its inner nodes. */
const TRANSPARENT = new Set(["junction", "link in", "link out"]);

/** Whether an agent uses the node `tool`; `named` is the agent's property with ids of tools. */
export function usesTool(RED: Pick<Red, "nodes">, agent: RedNode, named: unknown, tool: string): boolean {
  // Inside a subflow the id of a node starts with that of the instance, which is the `z` of the agent.
  const isNamed = (id: unknown): boolean => id === tool || `${agent.z ?? ""}-${String(id)}` === tool;
  const toolPort = AGENT_PORTS[agent.type]?.indexOf("tool") ?? -1;
  if ((Array.isArray(named) && named.some(isNamed)) || reaches(RED, agent.wires[toolPort], tool)) {
    return true;
  }
  return hasWireTo(RED, tool, agent);
}

/** Whether a tool's own node has a wire to an agent. */
export function hasWireTo(RED: Pick<Red, "nodes">, tool: string, agent: RedNode): boolean {
  const node = RED.nodes.getNode(tool);
  return node !== null && runsInSidecar(node.type) && reaches(RED, node.wires.flat(), agent.id);
}

/** Whether one of these wires reaches a node. */
function reaches(RED: Pick<Red, "nodes">, wires: (string | null)[] | undefined, to: string): boolean {
  const seen = new Set<string>();
  const queue = [...(wires ?? [])];
  for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
    if (id === to) {
      return true;
    }
    if (id !== null && !seen.has(id)) {
      seen.add(id);
      const node = RED.nodes.getNode(id);
      if (node !== null && (TRANSPARENT.has(node.type) || node.type.startsWith("subflow:"))) {
        queue.push(...node.wires.flat());
      }
    }
  }
  return false;
}
