// The wires of the flow in the editor, for the search of an agent's services.

import type { Wiring } from "./agent-wiring.mjs";

/** The flow of the editor. */
export const wiring: Wiring = {
  next: (node, port) =>
    RED.nodes
      .getNodeLinks(node, 0)
      .filter((link) => port === undefined || link.sourcePort === port)
      .map(({ target }) => target),
  previous: (node) => RED.nodes.getNodeLinks(node, 1).map(({ source }) => source),
  node: (id) => RED.nodes.node(id) ?? undefined,
  all: (type) => RED.nodes.filterNodes({ type }),
  inside(subflow) {
    const entry = RED.nodes.subflow(subflow)?.in[0];
    const found: EditorNode[] = [];
    RED.nodes.eachLink((link) => {
      if (entry !== undefined && link.source === entry) {
        found.push(link.target);
      }
    });
    return found;
  },
  isOff: (node) => node.d === true || RED.nodes.workspace(node.z ?? "")?.disabled === true,
};
