// The dialog of a runtime. Validates the property `runtime` of an agent, as far as the editor can before a deploy. Validates
// all agents again when a runtime changes. Does not check whether the sidecar answers.

import { AGENT_TYPES } from "../sidecar-types.js";
import { adminApi } from "./admin-client.mjs";
import { runtimes } from "./agent-runtimes.mjs";
import { isBlank, isReference, secret, type Verdict } from "./rules.mjs";
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

/** For the credential `token`. Validated only while the dialog is open: only there the editor knows whether a token exists. */
export function tokenVerdict(value: unknown): Verdict {
  if (isBlank(value)) {
    return $("#node-config-input-mode").val() === "remote" ? text("nodes.problem.token") : true;
  }
  return secret(value, { name: text("nodes.field.token") });
}

/** Prepares the dialog of a runtime: the fields of its mode, and the button that shows the log. */
export function openRuntime({ id }: EditorNode): void {
  const mode = $("#node-config-input-mode");
  const showMode = (): void => {
    const isRemote = mode.val() === "remote";
    $(".redflow-remote").toggle(isRemote);
    $(".redflow-managed").toggle(!isRemote);
  };
  mode.on("change", showMode);
  showMode();
  $("#node-config-input-redflow-show-log").on("click", () => void showLog(id));
}

async function showLog(id: string): Promise<void> {
  const log = $("#node-config-input-redflow-log").show().text("…");
  try {
    const { lines } = await adminApi.log(id);
    log.text(lines.join("\n") || text("nodes.log.empty"));
    log.scrollTop(log[0].scrollHeight);
  } catch (error) {
    log.text(text((error as { status?: number }).status === 404 ? "nodes.log.notDeployed" : "nodes.log.failed"));
  }
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
      const agents = AGENT_TYPES.flatMap((type) => RED.nodes.filterNodes({ type }));
      agents.forEach((agent) => RED.editor.validateNode(agent));
      RED.view.redraw();
    });
  };
  ["nodes:add", "nodes:remove", "nodes:change"].forEach((event) => RED.events.on(event, schedule));
}
