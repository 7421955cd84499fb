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
  await page.locator(".red-ui-tab").getByText("Calculator agent").click();
  await editor.until("its tab is shown", () => RED.workspaces.active() === RED.nodes.node("rf01-agent").z);
  await editor.node("rf01-agent").waitFor();
  await editor.deploy();
  await editor.press("rf01-ask");
  const output = page.locator(".red-ui-debug-msg", { hasText: "You pay 235.99." });
  await page.evaluate(() => RED.sidebar.show("debug"));
  await output.waitFor();
  await editor.screenshot("example");
  assert.equal(await output.count(), 1);
}
