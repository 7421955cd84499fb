// The runtimes of agents in the editor, as a deploy would start them.

import { AGENT_TYPES } from "../sidecar-types.js";
import { withServices } from "./agent-wiring.mjs";
import { wiring } from "./editor-wiring.mjs";

const RUNTIME = "redflow-runtime";

/** The runtimes that a deploy would start. */
export function runtimes(): EditorNode[] {
  const found: EditorNode[] = [];
  RED.nodes.eachConfig((node) => {
    if (node.type === RUNTIME && !wiring.isOff(node)) {
      found.push(node);
    }
  });
  return found;
}

/** The runtime of an agent: the one that it names, else the only one. */
export function runtimeOf(agent: EditorNode): string | undefined {
  const named = agent["runtime"];
  return typeof named === "string" && named !== "" ? named : onlyRuntime();
}

/** The runtimes of the agents that use a service. Of one that no agent uses the only one; none if there are several. */
export function runtimesOfService(service: EditorNode): string[] {
  const agents = AGENT_TYPES.flatMap((type) => wiring.all(type)).filter((agent) => !wiring.isOff(agent));
  const users = agents.filter((agent) => withServices(agent, wiring).some(({ id }) => id === service.id));
  const found = users.length > 0 ? users.map(runtimeOf) : [onlyRuntime()];
  return [...new Set(found.filter((id) => id !== undefined))];
}

function onlyRuntime(): string | undefined {
  const all = runtimes();
  return all.length === 1 ? all[0]?.id : undefined;
}
