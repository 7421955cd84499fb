// Where the editor shows the agent of a run. Inside a subflow the id of an agent begins with the ids of the instances around it.

import { isAgent } from "./flow.mjs";

/** The agent of the editor, and the outermost instance of a subflow around it. */
export interface AgentPlace {
  agent: EditorNode;
  instance: EditorNode | undefined;
}

/** The most dashes of an id that are tried. */
const MAX_DASHES = 100;

/** Finds an agent by the id that its runs have; undefined if the editor does not have it. */
export function findAgent(id: string, nodeOf: (id: string) => EditorNode | undefined): AgentPlace | undefined {
  let instance: EditorNode | undefined;
  let dash = -1;
  for (let count = 0; count <= MAX_DASHES; count += 1) {
    // A node id may contain dashes itself.
    const found = nodeOf(id.slice(dash + 1));
    if (found && isAgent(found.type)) {
      return { agent: found, instance };
    }
    dash = id.indexOf("-", dash + 1);
    if (dash < 0) {
      return undefined;
    }
    const outer = instance === undefined ? nodeOf(id.slice(0, dash)) : undefined;
    if (outer?.type.startsWith("subflow:")) {
      instance = outer;
    }
  }
  return undefined;
}
