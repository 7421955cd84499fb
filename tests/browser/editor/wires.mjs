// Wires that explain themselves: what the sidecar's checker holds against a wire is read where the wire is.

import assert from "node:assert/strict";

import { again, desk } from "./flows.mjs";

/** What the checker says of a wire from messages into a model, and of one from port memory into a debug node. */
const INTO_MODEL = /messages are wired into `Told model`, a model: only an agent may use it/i;
const FROM_MEMORY = /port 2.* binds a memory, but `Answer` is a data node/i;

export async function aWrongWire(stage, t) {
  const editor = await stage.with(t, desk(stage));
  await editor.checked();
  assert.deepEqual(await editor.invalid(), []);
  await editor.picture("canvas");
  await editor.wire("agent", 2, "answer");
  await editor.triangle("agent").waitFor();
  const sentence = await editor.tooltip(editor.triangle("agent"), "wrong-edge-says-why");
  assert.match(sentence, FROM_MEMORY);
  assert.match(sentence, /port 3/, "it says what to do");
  await editor.picture("wrong-edge");
  assert.match(await editor.badge("agent").textContent(), /1/);
  assert.match(await editor.tooltip(editor.badge("agent")), FROM_MEMORY);
  await editor.wire("ask", 0, "model");
  await editor.triangle("model").waitFor();
  assert.match(await editor.tooltip(editor.triangle("model")), INTO_MODEL);
  await editor.picture("wrong-edges");
  // Undo takes the wire away, and what was said of it; redo brings both.
  await editor.undo();
  await editor.triangle("model").waitFor({ state: "hidden" });
  await editor.triangle("agent").waitFor();
  await editor.undo();
  await editor.triangle("agent").waitFor({ state: "hidden" });
  await editor.badge("agent").waitFor({ state: "hidden" });
  assert.deepEqual(await editor.invalid(), []);
  await editor.redo();
  await editor.triangle("agent").waitFor();
}

export async function wrongFlows(stage, t) {
  const editor = await stage.with(t, desk(stage));
  await editor.checked();
  // Imported: another agent, whose messages go where a model belongs.
  const wrong = again(desk(stage)).filter(({ id }) => ["agent", "answer"].includes(id));
  wrong[0] = { ...wrong[0], id: "imported", name: "Wrong desk", wires: [["elsewhere"], [], [], [], []] };
  wrong[1] = { ...wrong[1], id: "elsewhere" };
  await editor.import(wrong);
  const [imported] = await editor.named("Wrong desk");
  await editor.triangle(imported).waitFor();
  assert.match(await editor.tooltip(editor.triangle(imported)), /port 0.* binds a model, but `Answer` is a data node/i);
  // Copied and pasted.
  await editor.select(imported);
  await editor.page.keyboard.press("Control+c");
  await editor.page.keyboard.press("Control+v");
  await editor.place();
  await editor.until("two of them", () => RED.nodes.filterNodes({ type: "agent-core" }).length === 3);
  const [pasted] = (await editor.named("Wrong desk")).filter((id) => id !== imported);
  await editor.triangle(pasted).waitFor();
  assert.match(await editor.tooltip(editor.triangle(pasted)), /model/);
  await editor.picture("pasted");
  // Deploying asks first, as Node-RED does, and lists them.
  await editor.page.locator("#red-ui-header-button-deploy").click();
  const asked = editor.notices.filter({ hasText: "Wrong desk" });
  await asked.waitFor();
  await editor.picture("deploy-warns");
  await asked.getByRole("button", { name: "Confirm deploy" }).click();
  await editor.deployed();
  // What is deployed keeps its verdict.
  await editor.checked();
  await editor.triangle(imported).waitFor();
}
