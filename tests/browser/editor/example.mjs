// A first use: imports the example with the dialog, deploys and runs it.

import assert from "node:assert/strict";

export async function runExample(fixture, t) {
  await fixture.nodeRed.deploy([]);
  const editor = await fixture.open(t);
  const { page } = editor;
  await page.locator("#red-ui-header-button-sidemenu").click();
  await page.locator("#menu-item-import").click();
  const dialog = page.locator("#red-ui-clipboard-dialog");
  await dialog.locator("#red-ui-clipboard-dialog-import-tabs").getByText("Examples").click();
  await dialog.getByText("@redflow/node-red-bridge").click();
  await dialog.getByText("01-calculator-agent").click();
  await editor.screenshot("import");
  await page.locator("#red-ui-clipboard-dialog-ok").click();
  await editor.until("the example is imported", () => RED.nodes.node("rf01-agent"));
  await showTab(page, "Calculator agent");
  await editor.node("rf01-agent").waitFor();
  await editor.deploy();
  await editor.press("rf01-ask");
  const output = page.locator(".red-ui-debug-msg", { hasText: "You pay 235.99." });
  await page.evaluate(() => RED.sidebar.show("debug"));
  await output.waitFor();
  await editor.screenshot("example");
  assert.equal(await output.count(), 1);
}

/** Shows the tab of the agent. Node-RED loses a click while it still arranges the tabs of an import. */
async function showTab(page, label) {
  const isShown = () => RED.workspaces.active() === RED.nodes.node("rf01-agent").z;
  for (let attempt = 1; !(await page.evaluate(isShown)); attempt += 1) {
    assert.ok(attempt < 10, "the tab of the example is never shown");
    await page.locator(".red-ui-tab").getByText(label).click();
    // Two clicks that follow each other at once would open the properties of the tab.
    await page.waitForFunction(isShown, undefined, { polling: 25, timeout: 3_000 }).catch(() => undefined);
  }
}
