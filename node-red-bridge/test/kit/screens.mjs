// A program that prints what people read in one language. A process of its own: the editor keeps the texts of its language.

import { Window } from "happy-dom";
import { translator } from "./texts.mjs";

const { window } = new Window();
const { document } = window;
Object.assign(globalThis, { window, document, Node: window.Node });
const [host, field] = [document.createElement("div"), document.createElement("input")];
[host.id, field.id] = ["node-input-redflow-test", "node-input-model"];
document.body.append(host, field);
const [, , language] = process.argv;
let notice;
globalThis.RED = {
  _: translator(language),
  i18n: { lang: () => language },
  nodes: {
    node: () => undefined,
    eachNode: () => undefined,
    eachConfig: (visit) => visit({ id: "rt", type: "redflow-runtime" }),
    workspace: () => undefined,
    filterNodes: () => [],
    createCompleteNodeSet: () => [{ id: "a", type: "agent-core", wires: [] }],
  },
  events: { on: () => undefined },
  comms: { subscribe: () => undefined },
  notify: (content) => {
    notice = content;
    return { close: () => undefined };
  },
};
globalThis.$ = () => ({ length: 0 });

const { RequestError, adminApi } = await import("../../editor-build/editor/admin-client.mjs");
const { prepareModelTest } = await import("../../editor-build/editor/model-test.mjs");
const { page } = await import("../../editor-build/editor/waiting-notices.mjs");
const { mountTimeline } = await import("../../editor-build/timeline/index.js");
const { timelineEnvironment } = await import("../../editor-build/editor/timeline-environment.mjs");
const { onChecked, startChecks, state: checkState } = await import("../../editor-build/editor/checks.mjs");
const { RuntimesPanel } = await import("../../editor-build/editor/sidebar-runtimes.mjs");
const { applyEvents, emptyTimeline } = await import("@redflow/bindings");

/** Waits until all promises of a fake request have ended. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** What a button of a model's dialog shows, while it waits and at the end. */
async function press(at, answers) {
  Object.assign(adminApi, { runtimes: async () => ({ runtimes: [{ id: "rt", state: { is: "connected" } }] }) }, answers);
  prepareModelTest({ id: "m", type: "openai-model", _def: { defaults: {} } });
  host.querySelectorAll("button")[at].click();
  const busy = host.textContent;
  await settle();
  return [busy, host.textContent];
}

const tested = { ok: true, type: "openai-model", provider: "openai", model: "m", durationMs: 1_500, answer: "Yes." };
const facts = { server: "s", sent: { address: "a" }, usage: { inputTokens: 3, outputTokens: 4 }, tokensPerSecond: 2.5, contextWindow: 4096 };
const fails = (status, code, message) => async () => {
  throw new RequestError(status, { code, message });
};
const test = (answer) => press(0, { testModel: async () => answer });
const list = (models) => press(1, { listModels: async () => ({ models }) });
const screens = {};
[screens.busy, screens.tested] = await test({ ...tested, ...facts, schema: "honoured" });
[, screens.ignored] = await test({ ...tested, ...facts, schema: "ignored" });
[, screens.notSent] = await test({ ...tested, ...facts, schema: "not_sent" });
[, screens.failed] = await test({ ...tested, ok: false, error: { code: "TIMEOUT", message: "late" } });
[, screens.forbidden] = await press(0, { testModel: fails(403, "FORBIDDEN", "") });
[, screens.noNodeRed] = await press(0, { testModel: fails(0, "NODE_RED_UNREACHABLE", "") });
[, screens.noRuntime] = await press(0, { runtimes: async () => ({ runtimes: [] }) });
[, screens.noModels] = await list([]);
[, screens.models] = await list([{ id: "m", contextWindow: 4096 }]);

const refused = { is: "refused", code: "UNAUTHORIZED", message: "english", phrase: { key: "token_refused" } };
const offline = { is: "offline", reason: "english", phrase: { key: "offline_nothing_listens" } };
const panel = new RuntimesPanel(() => undefined);
const runtimes = (state) => ({ runtimes: [{ id: "rt", name: "", address: "", waiting: 0, state }] });
const showRuntime = (state) => {
  panel.show({ list: runtimes(state) });
  return panel.root.textContent;
};
[screens.refused, screens.offline] = [showRuntime(refused), showRuntime(offline)];

/** The check of the flow says why it cannot be made. */
adminApi.runtimes = async () => runtimes(refused);
const checked = new Promise((resolve) => onChecked(() => checkState().is === "not_checked" && resolve()));
startChecks();
await checked;
screens.notChecked = checkState().reason;

page.open("rt", { runId: "r", name: "Desk", agent: { nodeId: "a" }, waiting: { tool: "mail" } }, () => undefined);
screens.notice = notice.textContent;

const events = [
  { type: "run_started", name: "Desk", maxIterations: 5, tools: ["mail"] },
  { type: "model_called", iteration: 1 },
  { type: "model_answered", iteration: 1, action: "tool", tool: "mail", durationMs: 5, usage: { inputTokens: 3, outputTokens: 4 } },
  { type: "tool_called", iteration: 1, tool: "mail", callId: "c", input: {} },
  { type: "tool_returned", iteration: 1, tool: "mail", callId: "c", success: true, durationMs: 5 },
  { type: "model_called", iteration: 2 },
  { type: "model_answered", iteration: 2, action: "final", durationMs: 5 },
  { type: "run_finished", stopReason: "final_answer", iterations: 2, durationMs: 20 },
];
const timeline = applyEvents(emptyTimeline(), events.map((event, at) => ({ runId: "r", seq: at + 1, at, agent: { instance: "i", nodeId: "a" }, event })));

/** Waits until a condition holds: Preact draws a little later. */
async function until(holds) {
  for (let waited = 0; !holds(); waited += 10) {
    if (waited > 10_000) {
      throw new Error(`not shown: ${holds}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** The timeline with all its texts opened, while they are read and after that. */
async function showTimeline(answer) {
  let resume;
  const held = new Promise((resolve) => (resume = resolve));
  const read = () => held.then(answer);
  const root = document.createElement("div");
  document.body.append(root);
  mountTimeline(root, timelineEnvironment, read).show(timeline, 0);
  const details = [...root.querySelectorAll("details")];
  for (const one of details) {
    one.open = true;
    one.dispatchEvent(new window.Event("toggle"));
  }
  await until(() => details.every((one) => one.querySelector("pre").textContent !== ""));
  const reading = root.textContent;
  const before = details.map((one) => one.querySelector("pre").textContent);
  resume();
  await until(() => details.every((one, at) => one.querySelector("pre").textContent !== before[at]));
  return [reading, root.textContent, details.map((one) => one.querySelector("summary").textContent).join("\n")];
}
[screens.reading, screens.none, screens.summaries] = await showTimeline(async () => ({ calls: [] }));
[, screens.unread] = await showTimeline(fails(503, "RUNTIME_UNREACHABLE", "gone"));
process.stdout.write(JSON.stringify(screens), () => process.exit());
