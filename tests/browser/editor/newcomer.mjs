// Somebody who sees Agent Core for the first time: the example is imported by hand, looked at, deployed and run.

import assert from "node:assert/strict";

export async function theExample(stage, t) {
  await stage.red.deploy([]);
  const editor = await stage.open(t);
  const { page } = editor;
  await page.locator("#red-ui-header-button-sidemenu").click();
  await page.locator("#menu-item-import").click();
  const dialog = page.locator("#red-ui-clipboard-dialog");
  await dialog.locator("#red-ui-clipboard-dialog-import-tabs").getByText("Examples").click();
  await dialog.getByText("@redflow/node-red-bridge").click();
  await dialog.getByText("01-calculator-agent").click();
  await editor.picture("import");
  await page.locator("#red-ui-clipboard-dialog-ok").click();
  await page.locator(".red-ui-tab").getByText("Calculator agent").click();
  await editor.node("rf01-agent").waitFor();
  await editor.deploy();
  await editor.press("rf01-ask");
  const said = page.locator(".red-ui-debug-msg", { hasText: "You pay 235.99." });
  await page.evaluate(() => RED.sidebar.show("debug"));
  await said.waitFor();
  await editor.picture("example");
  assert.equal(await said.count(), 1);
}
