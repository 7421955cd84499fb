// The dialog of an agent: its four tabs, validation, connected tools, and use without a mouse.

import assert from "node:assert/strict";

import { desk } from "./flows.mjs";

export const TABS = ["General", "Tools", "Runtime / Debug", "Errors"];

const tabNames = async (tray) => {
  const texts = await tray.getByRole("tab").allInnerTexts();
  // A number may follow the name.
  return texts.map((text) => text.trim().replace(/\s*\d+\+?$/, ""));
};

export async function fourTabs(fixture, t) {
  const editor = await fixture.deployAndOpen(t, desk(fixture));
  const exported = () => editor.page.evaluate(() => JSON.stringify(RED.nodes.createExportableNodeSet([RED.nodes.node("agent")])));
  const before = await exported();
  const tray = await editor.open("agent");
  assert.deepEqual(await tabNames(tray), TABS);
  await tray.getByRole("tab", { name: "General" }).click();
  // The strategy is shown and cannot be changed.
  const strategy = tray.getByLabel("Strategy");
  assert.equal(await strategy.isEditable().catch(() => false), false);
  await editor.screenshot("general");
  const iterations = tray.getByLabel(/iterations/i);
  for (const [value, isValid] of [["0", false], ["21", false], ["", false], ["1", true], ["20", true], ["4", true]]) {
    await editor.type(iterations, value);
    await editor.until(`${value} is ${isValid ? "valid" : "invalid"}`, (isValid) => {
      const field = document.querySelector(".red-ui-tray #node-input-maxIterations");
      return field.classList.contains("input-error") !== isValid;
    }, isValid);
    const problem = tray.getByRole("tabpanel").getByText(/iterations.*1.*20|iterations.*missing/i);
    await editor.until("the problem is shown below the field while it is invalid", ([isValid]) => {
      const form = document.querySelector(".red-ui-tray [role=tabpanel]:not([hidden])");
      const isShown = [...form.querySelectorAll(".redflow-problem")].some((one) => one.textContent.trim() && one.checkVisibility());
      return isShown !== isValid;
    }, [isValid]);
    assert.equal(await problem.count() > 0, !isValid, value);
    if (value === "21") {
      await editor.screenshot("general-refused");
    }
  }
  // The node changes only with Done.
  await editor.cancel();
  assert.equal(await exported(), before);
  await editor.open("agent");
  await editor.type(tray.getByLabel(/iterations/i), "4");
  assert.equal(await exported(), before);
  await editor.done();
  assert.equal(await editor.value("agent", "maxIterations"), 4);
  assert.equal(await editor.value("agent", "strategy"), "react");
}

/** Wiring a tool allows it, and taking that back takes both back. */
export async function wiringAllows(fixture, t) {
  const editor = await fixture.deployAndOpen(t, desk(fixture, { wires: [["model"], [], [], ["answer"], []], allowedTools: [] }));
  const { page } = editor;
  const allowed = (expected) =>
    editor.until(`allowed: ${expected}`, (expected) => JSON.stringify(RED.nodes.node("agent").allowedTools) === expected, JSON.stringify(expected));
  const remove = async (target) => {
    await page.evaluate((target) => {
      const link = RED.nodes.getNodeLinks("agent", 0).find((link) => link.target.id === target);
      RED.view.select({ links: [link] });
      RED.actions.invoke("core:delete-selection");
    }, target);
  };
  await editor.wire("agent", 1, "calc");
  await allowed(["calculator"]);
  // A moved node is a step of the history without an event about wires. Both steps are taken back.
  await editor.undo();
  await page.evaluate(() => {
    const n = RED.nodes.node("answer");
    RED.history.push({ t: "move", nodes: [{ n, ox: n.x, oy: n.y, dirty: true, moved: n.moved }], dirty: RED.nodes.dirty() });
  });
  await editor.wire("agent", 1, "calc");
  await allowed(["calculator"]);
  await editor.undo();
  await allowed([]);
  await editor.undo();
  await editor.wire("agent", 1, "calc");
  await allowed(["calculator"]);
  await editor.wire("agent", 1, "mail");
  await allowed(["calculator", "send_mail"]);
  await editor.until("no problem is left", () => (RED.nodes.node("agent").validationErrors ?? []).length === 0);
  await editor.undo();
  await allowed(["calculator"]);
  assert.equal(await page.evaluate(() => RED.nodes.getNodeLinks("agent", 0).some(({ target }) => target.id === "mail")), false);
  await editor.redo();
  await allowed(["calculator", "send_mail"]);
  // Unticking is the user's act: it stays when another wire goes.
  const tray = await editor.open("agent");
  await tray.getByRole("tab", { name: "Tools" }).click();
  await tray.getByRole("checkbox", { name: "send_mail" }).uncheck();
  await editor.done();
  await allowed(["calculator"]);
  await remove("calc");
  await allowed([]);
  // A renamed tool stays allowed.
  await editor.wire("agent", 1, "calc");
  await allowed(["calculator"]);
  await editor.open("calc");
  await editor.type(editor.tray.locator("#node-input-toolName"), "sums");
  await editor.done();
  await allowed(["sums"]);
  // An imported flow is left as its author saved it.
  await editor.deploy();
  await editor.load();
  await editor.until("the flow is loaded", () => RED.nodes.node("agent"));
  assert.deepEqual(await editor.value("agent", "allowedTools"), ["sums"]);
  assert.equal(await page.evaluate(() => RED.nodes.dirty()), false);
}

/** The desk flow with a function node as a tool, which has no schema and no effect class. */
function withPlain(fixture) {
  const wires = [["model"], ["calc", "mail", "plain"], [], ["answer"], []];
  const code = { func: "return msg;", outputs: 1, timeout: 0, noerr: 0, initialize: "", finalize: "", libs: [] };
  const plain = { id: "plain", type: "function", name: "plain", z: "desk", x: 450, y: 300, wires: [["agent"]], ...code };
  return [...desk(fixture, { wires, allowedTools: ["calculator", "send_mail", "plain"] }), plain];
}

export async function tools(fixture, t) {
  const editor = await fixture.deployAndOpen(t, withPlain(fixture));
  const tray = await editor.open("agent");
  await tray.getByRole("tab", { name: "Tools" }).click();
  const calculator = tray.getByRole("checkbox", { name: "calculator" });
  const mail = tray.getByRole("checkbox", { name: "send_mail" });
  assert.equal(await calculator.isChecked(), true);
  assert.equal(await mail.isChecked(), true);
  const row = (name) => tray.getByRole("tabpanel").getByRole("listitem").filter({ hasText: name });
  await editor.waitForText(row("calculator"), /changes nothing/i);
  await editor.waitForText(row("send_mail"), /twice/i);
  await editor.waitForText(row("plain"), /assumed/);
  await editor.waitForText(row("plain"), /No JSON Schema/);
  await editor.screenshot("tools");
  await mail.uncheck();
  await editor.done();
  assert.deepEqual(await editor.value("agent", "allowedTools"), ["calculator", "plain"]);
  assert.deepEqual(await editor.value("agent", "validationErrors") ?? [], []);
  // Opening the tabs changes nothing.
  await editor.deploy();
  await editor.open("agent");
  for (const name of TABS) {
    await editor.tray.getByRole("tab", { name }).click();
  }
  await editor.done();
  assert.equal(await editor.page.evaluate(() => RED.nodes.dirty()), false);
  const deployed = (await fixture.nodeRed.flows()).find(({ id }) => id === "agent");
  assert.deepEqual(deployed.allowedTools, ["calculator", "plain"]);
  assert.ok(!("redflowWires" in deployed), "the pseudo property is not deployed");
}

export async function withoutMouse(fixture, t) {
  const editor = await fixture.deployAndOpen(t, desk(fixture));
  const { page } = editor;
  await editor.select("agent");
  await page.keyboard.press("Enter");
  await editor.tray.getByRole("tab", { name: "General" }).waitFor();
  await editor.waitForDialog();
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
    assert.ok(outline, `the focus of ${name} is visible`);
  }
  await page.keyboard.press("ArrowLeft");
  assert.match(await selected().innerText(), /^Errors/);
  await page.keyboard.press("Home");
  // The tab key reaches every field.
  const focused = new Set();
  for (let step = 0; step < 40; step += 1) {
    await page.keyboard.press("Tab");
    focused.add(await page.evaluate(() => document.activeElement.id));
  }
  for (const id of ["name", "maxIterations", "sessionId", "timeout", "debug"]) {
    assert.ok(focused.has(`node-input-${id}`), `${id} is not reached: ${[...focused]}`);
  }
  await selected().focus();
  await page.keyboard.press("Control+Escape");
  await editor.waitForDialogClosed();
  assert.equal(await page.evaluate(() => RED.nodes.dirty()), false);
  // The shortcut opens the sidebar and moves the focus there.
  await page.evaluate(() => {
    RED.sidebar.show("info");
    RED.view.focus();
  });
  await page.keyboard.press("Control+g");
  await page.keyboard.press("r");
  await editor.until("the sidebar has the focus", () => document.activeElement?.classList.contains("redflow-sidebar"));
  await page.locator(".redflow-sidebar").getByRole("button", { name: "All", exact: true }).waitFor();
  await page.keyboard.press("Tab");
  await editor.until("the tab key goes on inside", () => document.activeElement?.closest(".redflow-sidebar"));
}
