// The checker's problems of a wire, shown at the wire and at its nodes.

import assert from "node:assert/strict";

import { desk, withoutCredentials } from "./flows.mjs";

/** The checker's sentences about a message wire into a model, and about a wire from the memory port to a debug node. */
const INTO_MODEL = /messages are wired into `Fake model`, a model: only an agent may use it/i;
const FROM_MEMORY = /port 2.* binds a memory, but `Answer` is a data node/i;

export async function wrongWire(fixture, t) {
  const editor = await fixture.deployAndOpen(t, desk(fixture));
  await editor.waitForCheck("checked");
  assert.deepEqual(await editor.invalidNodes(), []);
  await editor.screenshot("canvas");
  await editor.wire("agent", 2, "answer");
  await editor.triangle("agent").waitFor();
  const sentence = await editor.tooltip(editor.triangle("agent"), "wrong-edge-tooltip");
  assert.match(sentence, FROM_MEMORY);
  assert.match(sentence, /port 3/, "explains how to fix it");
  await editor.screenshot("wrong-edge");
  assert.match(await editor.badge("agent").textContent(), /1/);
  assert.match(await editor.tooltip(editor.badge("agent")), FROM_MEMORY);
  await editor.wire("ask", 0, "model");
  await editor.triangle("model").waitFor();
  assert.match(await editor.tooltip(editor.triangle("model")), INTO_MODEL);
  await editor.screenshot("wrong-edges");
  // Undo removes the wire and its problem; redo restores both.
  await editor.undo();
  await editor.triangle("model").waitFor({ state: "hidden" });
  await editor.triangle("agent").waitFor();
  await editor.undo();
  await editor.triangle("agent").waitFor({ state: "hidden" });
  await editor.badge("agent").waitFor({ state: "hidden" });
  assert.deepEqual(await editor.invalidNodes(), []);
  await editor.redo();
  await editor.triangle("agent").waitFor();
}

export async function wrongFlows(fixture, t) {
  const editor = await fixture.deployAndOpen(t, desk(fixture));
  await editor.waitForCheck("checked");
  // Imports an agent with a debug node at its model port.
  const wrong = withoutCredentials(desk(fixture)).filter(({ id }) => ["agent", "answer"].includes(id));
  wrong[0] = { ...wrong[0], id: "imported", name: "Wrong desk", wires: [["elsewhere"], [], [], [], []] };
  wrong[1] = { ...wrong[1], id: "elsewhere" };
  await editor.import(wrong);
  const [imported] = await editor.idsByName("Wrong desk");
  await editor.triangle(imported).waitFor();
  assert.match(await editor.tooltip(editor.triangle(imported)), /port 0.* binds a model, but `Answer` is a data node/i);
  // Copies and pastes it.
  await editor.select(imported);
  await editor.page.keyboard.press("Control+c");
  await editor.page.keyboard.press("Control+v");
  await editor.dropNodes();
  await editor.until("two of them", () => RED.nodes.filterNodes({ type: "agent-core" }).length === 3);
  const [pasted] = (await editor.idsByName("Wrong desk")).filter((id) => id !== imported);
  await editor.triangle(pasted).waitFor();
  assert.match(await editor.tooltip(editor.triangle(pasted)), /model/);
  await editor.screenshot("pasted");
  // Node-RED asks for a confirmation and lists the invalid nodes.
  await editor.page.locator("#red-ui-header-button-deploy").click();
  const notice = editor.notices.filter({ hasText: "Wrong desk" });
  await notice.waitFor();
  await editor.screenshot("deploy-warns");
  await notice.getByRole("button", { name: "Confirm deploy" }).click();
  await editor.waitForDeploy();
  // The result stays after the deploy.
  await editor.waitForCheck("checked");
  await editor.triangle(imported).waitFor();
}
