// The dialog of a service that names other services, such as the short memory of a long one: a select of the nodes that fit.

import { fillService } from "./agent-services-view.mjs";
import { namedCandidates } from "./agent-services.mjs";
import { fieldOf } from "./touched-fields.mjs";

/** Fills the selects of the properties, each with the role of the nodes that it names. Call it in `oneditprepare`. */
export function prepareServices(node: EditorNode, properties: Record<string, string>): void {
  const isSubflow = (id: string): boolean => Boolean(RED.nodes.subflow(id));
  for (const [name, role] of Object.entries(properties)) {
    const field = fieldOf("node-input", name);
    if (field !== undefined && "options" in field) {
      fillService(field, node[name], [], namedCandidates(node, role, RED.nodes.filterNodes({}), isSubflow));
    }
  }
}
