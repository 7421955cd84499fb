// Validates the property `runtime` of an agent, as far as the editor can before a deploy. Validates all agents again when a
// runtime changes. Does not check whether the sidecar answers.

import { isBlank, isReference, type Verdict } from "./rules.mjs";
import { text } from "./text.mjs";

const RUNTIME = "redflow-runtime";

/** The value of Node-RED's list of config nodes while none is chosen. */
const NONE = "_ADD_";

/** For the property `runtime` of an agent: true, or a sentence. It may be empty while there is exactly one runtime. */
export function runtimeVerdict(value: unknown): Verdict {
  const present = runtimes();
  if (isReference(value)) {
    return true;
  }
  if (present.length === 0) {
    return text("nodes.problem.noRuntime");
  }
  const chosen = isBlank(value) || value === NONE ? present : present.filter(({ id }) => id === value);
  const [only] = chosen;
  if (only === undefined || chosen.length > 1) {
    return text(only === undefined ? "nodes.problem.runtimeGone" : "nodes.problem.manyRuntimes");
  }
  return only.valid === false ? text("nodes.problem.runtimeWrong") : true;
}

/** The runtimes that a deploy would start. */
function runtimes(): EditorNode[] {
  const found: EditorNode[] = [];
  RED.nodes.eachConfig((node) => {
    const isOff = node.d === true || RED.nodes.workspace(node.z ?? "")?.disabled === true;
    if (node.type === RUNTIME && !isOff) {
      found.push(node);
    }
  });
  return found;
}

/** Validates all agents when a runtime is added, removed or changed: Node-RED itself validates only those that name it. */
export function startRuntimes(): void {
  let isScheduled = false;
  const schedule = (node: EditorNode): void => {
    if (node.type !== RUNTIME || isScheduled) {
      return;
    }
    isScheduled = true;
    // Later, because many runtimes may change at once, and a removed one is still in the model during the event.
    queueMicrotask(() => {
      isScheduled = false;
      RED.nodes.filterNodes({ type: "agent-core" }).forEach((agent) => RED.editor.validateNode(agent));
      RED.view.redraw();
    });
  };
  ["nodes:add", "nodes:remove", "nodes:change"].forEach((event) => RED.events.on(event, schedule));
}
