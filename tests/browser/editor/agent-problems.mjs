// What people see of an agent with a problem, at its node and in its dialog, and of a run inside a subflow.

import assert from "node:assert/strict";

import { eventually } from "../kit/wait.mjs";
import { agent, calculator, desk, finalAnswer, inject, model } from "./flows.mjs";

/** A reserved port where nothing listens. */
const CLOSED_PORT = 1;

/** A status has at most this many characters, with an ellipsis at the end. */
const STATUS_LENGTH = 40;

const DISABLED = "`Night model` is disabled; it is the model of `Guard`";
const NO_MEMORY = "Redis cannot be reached: the agent runs without its memory `Talks`";

/**
 * Four agents: `Guard` with a disabled model, `Teller` with a function as its tool, `Clerk` with a memory that is down, and
 * `Porter` in a subflow.
 */
function flows(fixture) {
  const [, runtime] = desk(fixture);
  const [z, inside] = ["problems", "hotel"];
  const own = { allowedTools: ["calculator"], sessionId: "one" };
  const count = { func: "return msg;", outputs: 1, timeout: 0, noerr: 0, initialize: "", finalize: "", libs: [] };
  return [
    { id: z, type: "tab", label: "Problems", disabled: false, info: "" },
    runtime,
    agent("guard", [["night"], ["calc"], [], [], []], z, 260, 80, { ...own, name: "Guard" }),
    { ...model(fixture, z, 480, 60), id: "night", name: "Night model", d: true },
    agent("teller", [["model"], ["calc", "count"], [], [], []], z, 260, 200, { ...own, name: "Teller" }),
    model(fixture, z, 480, 180),
    { id: "count", type: "function", name: "Count", z, x: 480, y: 220, wires: [[]], ...count },
    calculator("calc", z, 480, 260),
    inject("ask-clerk", "clerk", z, 100, 320),
    agent("clerk", [["model"], ["calc"], ["talks"], [], []], z, 260, 320, { ...own, name: "Clerk" }),
    { id: "talks", type: "redis-memory", name: "Talks", z, x: 480, y: 320, wires: [[]], host: "127.0.0.1", port: CLOSED_PORT },
    inject("ask-porter", "front", z, 100, 440),
    { id: "front", type: `subflow:${inside}`, name: "Front desk", z, x: 260, y: 440, wires: [[]], env: [] },
    {
      ...{ id: inside, type: "subflow", name: "Hotel", info: "", env: [] },
      in: [{ x: 50, y: 50, wires: [{ id: "porter" }] }],
      out: [{ x: 400, y: 50, wires: [{ id: "porter", port: 3 }] }],
    },
    agent("porter", [["own-model"], ["own-calc"], [], [], []], inside, 200, 50, { ...own, name: "Porter" }),
    { ...model(fixture, inside, 400, 120), id: "own-model" },
    calculator("own-calc", inside, 400, 180),
  ];
}

export async function agentProblems(fixture, t) {
  const editor = await fixture.deployAndOpen(t, flows(fixture));
  await editor.waitForCheck("checked");
  await disabledModel(editor);
  await functionAsTool(editor);
  await memoryDown(editor);
  await endedRun(fixture, editor);
  await runInSubflow(editor);
}

const cut = (text) => (text.length > STATUS_LENGTH ? `${text.slice(0, STATUS_LENGTH - 1)}…` : text);

/** Waits for the colour and the text of a status. A long text is cut. */
async function waitForStatus(editor, id, fill, whole) {
  const text = cut(whole);
  await eventually(`the status ${text}`, async () => {
    const status = await editor.value(id, "status");
    assert.deepEqual([status?.fill, status?.text], [fill, text]);
    return true;
  });
  assert.equal(await editor.node(id).locator(".red-ui-flow-node-status-label").textContent(), text);
}

/** Opens the tab Errors and waits for what its first row says. */
async function waitForError(editor, id, ...expected) {
  const tray = await editor.open(id);
  await tray.getByRole("tab", { name: /^Errors/ }).click();
  const row = tray.getByRole("tabpanel").getByRole("group").first();
  for (const text of expected) {
    await editor.waitForText(row, text);
  }
  await editor.screenshot(`problem-${id}`);
  await editor.cancel();
}

async function disabledModel(editor) {
  await waitForStatus(editor, "guard", "red", DISABLED);
  assert.ok((await editor.tooltip(editor.triangle("guard"))).includes(DISABLED));
  await waitForError(editor, "guard", DISABLED, "Enable Night model and deploy");
}

async function functionAsTool(editor) {
  const tooltip = await editor.tooltip(editor.triangle("teller"), "problem-function");
  assert.match(tooltip, /`Count` is used as a tool, but it never returns/);
  assert.match(tooltip.replaceAll(/\s+/g, " "), /wire a flow-tool to its first node/);
}

async function memoryDown(editor) {
  await waitForStatus(editor, "clerk", "yellow", NO_MEMORY);
  assert.equal(await editor.triangle("clerk").isVisible(), false, "the agent works");
  await waitForError(editor, "clerk", "MEMORY_ERROR", NO_MEMORY);
}

/** A new message clears the status of the run before it, before its own run has one. */
async function endedRun(fixture, editor) {
  fixture.model.setAnswers("I would rather talk than write JSON.");
  await editor.press("ask-clerk");
  await waitForStatus(editor, "clerk", "red", "INVALID_JSON after 1 iteration");
  await editor.page.evaluate(() => {
    window.statuses = [];
    RED.comms.subscribe("status/clerk", (_, { text }) => window.statuses.push(text));
  });
  await editor.until("the status of now is known", () => window.statuses.length > 0);
  fixture.model.setAnswers(finalAnswer("Here."));
  fixture.model.hold();
  await editor.press("ask-clerk");
  await editor.until("the model is called", () => window.statuses.includes("iteration 1: model"));
  fixture.model.release();
  const [before, after] = await editor.page.evaluate(() => window.statuses);
  assert.deepEqual([before, after], ["INVALID_JSON after 1 iteration", cut(NO_MEMORY)]);
}

/** The run names its agent and the instance of the subflow, and leads to the instance. */
async function runInSubflow(editor) {
  await editor.press("ask-porter");
  const sidebar = await editor.openSidebar();
  const run = sidebar.getByRole("listitem").filter({ hasText: "Porter" });
  await editor.waitForText(run, /^Porter \(Front desk\)/);
  await editor.page.evaluate(() => RED.workspaces.show("hotel"));
  await editor.node("porter").waitFor();
  await Promise.all([
    // Node-RED shows it for seconds only.
    editor.until("the instance is shown", () => RED.workspaces.active() === "problems" && RED.nodes.node("front").highlighted),
    run.getByRole("button", { name: "Show the agent on the canvas" }).click(),
  ]);
  await editor.screenshot("problem-subflow");
}
