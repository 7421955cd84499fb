// The dialog of an agent: its four tabs, what it refuses, the tools it finds at its wires, and all of it without a mouse.

import assert from "node:assert/strict";

import { desk } from "./flows.mjs";

export const TABS = ["General", "Tools", "Runtime / Debug", "Errors"];

const names = async (tray) => {
  const texts = await tray.getByRole("tab").allInnerTexts();
  // A number may follow the name.
  return texts.map((text) => text.trim().replace(/\s*\d+\+?$/, ""));
};

export async function fourTabs(stage, t) {
  const editor = await stage.with(t, desk(stage));
  const whole = () => editor.page.evaluate(() => JSON.stringify(RED.nodes.createExportableNodeSet([RED.nodes.node("agent")])));
  const before = await whole();
  const tray = await editor.open("agent");
  assert.deepEqual(await names(tray), TABS);
  await tray.getByRole("tab", { name: "General" }).click();
  // The strategy is shown and cannot be changed.
  const strategy = tray.getByLabel("Strategy");
  assert.equal(await strategy.isEditable().catch(() => false), false);
  await editor.picture("general");
  const iterations = tray.getByLabel(/iterations/i);
  for (const [value, isRight] of [["0", false], ["21", false], ["", false], ["1", true], ["20", true], ["4", true]]) {
    await editor.type(iterations, value);
    await editor.until(`${value} is ${isRight ? "right" : "wrong"}`, (isRight) => {
      const field = document.querySelector(".red-ui-tray #node-input-maxIterations");
      return field.classList.contains("input-error") !== isRight;
    }, isRight);
    const said = tray.getByRole("tabpanel").getByText(/iterations.*1.*20|iterations.*missing/i);
    await editor.until("what is wrong is said below the field, and no longer than it is wrong", ([isRight]) => {
      const form = document.querySelector(".red-ui-tray [role=tabpanel]:not([hidden])");
      const said = [...form.querySelectorAll(".redflow-problem")].some((one) => one.textContent.trim() && one.checkVisibility());
      return said !== isRight;
    }, [isRight]);
    assert.equal(await said.count() > 0, !isRight, value);
    if (value === "21") {
      await editor.picture("general-refused");
    }
  }
  // Nothing of it is so before it is done, and nothing after it is cancelled.
  await editor.cancel();
  assert.equal(await whole(), before);
  await editor.open("agent");
  await editor.type(tray.getByLabel(/iterations/i), "4");
  assert.equal(await whole(), before);
  await editor.done();
  assert.equal(await editor.value("agent", "maxIterations"), 4);
  assert.equal(await editor.value("agent", "strategy"), "react");
}

/** The desk, with an ordinary node as a tool, which says neither what it takes nor what it does. */
function withPlain(stage) {
  const wires = [["model"], ["calc", "mail", "plain"], [], ["answer"], []];
  const code = { func: "return msg;", outputs: 1, timeout: 0, noerr: 0, initialize: "", finalize: "", libs: [] };
  const plain = { id: "plain", type: "function", name: "plain", z: "desk", x: 450, y: 300, wires: [["agent"]], ...code };
  return [...desk(stage, { wires, allowedTools: ["calculator", "send_mail", "plain"] }), plain];
}

export async function tools(stage, t) {
  const editor = await stage.with(t, withPlain(stage));
  const tray = await editor.open("agent");
  await tray.getByRole("tab", { name: "Tools" }).click();
  const calculator = tray.getByRole("checkbox", { name: "calculator" });
  const mail = tray.getByRole("checkbox", { name: "send_mail" });
  assert.equal(await calculator.isChecked(), true);
  assert.equal(await mail.isChecked(), true);
  const row = (name) => tray.getByRole("tabpanel").getByRole("listitem").filter({ hasText: name });
  await editor.reads(row("calculator"), /changes nothing/i);
  await editor.reads(row("send_mail"), /twice/i);
  await editor.reads(row("plain"), /assumed/);
  await editor.reads(row("plain"), /No JSON Schema/);
  await editor.picture("tools");
  await mail.uncheck();
  await editor.done();
  assert.deepEqual(await editor.value("agent", "allowedTools"), ["calculator", "plain"]);
  assert.deepEqual(await editor.value("agent", "validationErrors") ?? [], []);
  // Looking changes nothing: what was just saved is all that differs.
  await editor.deploy();
  await editor.open("agent");
  for (const name of TABS) {
    await editor.tray.getByRole("tab", { name }).click();
  }
  await editor.done();
  assert.equal(await editor.page.evaluate(() => RED.nodes.dirty()), false);
  const kept = (await stage.red.flows()).find(({ id }) => id === "agent");
  assert.deepEqual(kept.allowedTools, ["calculator", "plain"]);
  assert.ok(!("redflowWires" in kept), "what is only for the editor is not deployed");
}

export async function withoutMouse(stage, t) {
  const editor = await stage.with(t, desk(stage));
  const { page } = editor;
  await editor.select("agent");
  await page.keyboard.press("Enter");
  await editor.tray.getByRole("tab", { name: "General" }).waitFor();
  await editor.settled();
  const selected = () => editor.tray.locator("[role=tab][aria-selected=true]");
  await selected().focus();
  await page.keyboard.press("Home");
  for (const name of [...TABS.slice(1), TABS[0]]) {
    await page.keyboard.press("ArrowRight");
    assert.match(await selected().innerText(), new RegExp(`^${name}`));
    assert.equal(await selected().evaluate((tab) => tab === document.activeElement), true, `${name} has the focus`);
    const outline = await selected().evaluate((tab) => {
      const { outlineStyle, boxShadow } = getComputedStyle(tab);
      return outlineStyle !== "none" || boxShadow !== "none";
    });
    assert.ok(outline, `one sees that ${name} has the focus`);
  }
  await page.keyboard.press("ArrowLeft");
  assert.match(await selected().innerText(), /^Errors/);
  await page.keyboard.press("Home");
  // From the tabs on, every field can be reached.
  const reached = new Set();
  for (let step = 0; step < 40; step += 1) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement.id));
  }
  for (const id of ["name", "maxIterations", "sessionId", "timeout", "debug"]) {
    assert.ok(reached.has(`node-input-${id}`), `${id} can be reached: ${[...reached]}`);
  }
  await selected().focus();
  await page.keyboard.press("Control+Escape");
  await editor.trayGone();
  assert.equal(await page.evaluate(() => RED.nodes.dirty()), false);
}
