// Whether an agent has a runtime, as far as the editor can see before a deploy. Owns that sentence, and when agents are looked
// at again; whether the sidecar answers is for others.

import { isBlank, isReference, type Verdict } from "./rules.mjs";
import { text } from "./text.mjs";

const RUNTIME = "redflow-runtime";

/** What Node-RED's list of configuration nodes holds while none is chosen. */
const NONE = "_ADD_";

/** For the property `runtime` of an agent: true, or what to do. It may be empty while there is exactly one. */
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

/** Has Node-RED look again at all agents when a runtime comes, goes or changes: it does so itself only for those that name it. */
export function startRuntimes(): void {
  let isWaiting = false;
  const look = (node: EditorNode): void => {
    if (node.type !== RUNTIME || isWaiting) {
      return;
    }
    isWaiting = true;
    // Many may come at once, and one that goes is still there while this is told.
    queueMicrotask(() => {
      isWaiting = false;
      RED.nodes.filterNodes({ type: "agent-core" }).forEach((agent) => RED.editor.validateNode(agent));
      RED.view.redraw();
    });
  };
  ["nodes:add", "nodes:remove", "nodes:change"].forEach((event) => RED.events.on(event, look));
}
