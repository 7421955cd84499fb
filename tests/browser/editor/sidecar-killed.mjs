// The sidecar is killed and restarted. The editor shows no results meanwhile.

import assert from "node:assert/strict";

import { measureContrasts, assertReadable } from "../kit/contrast.mjs";
import { desk } from "./flows.mjs";

export async function killedAndRestarted(fixture, t) {
  const editor = await fixture.deployAndOpen(t, desk(fixture));
  await editor.waitForCheck("checked");
  await editor.wire("agent", 2, "answer");
  await editor.triangle("agent").waitFor();
  await fixture.sidecar.kill();
  await editor.waitForCheck("not_checked");
  // The previous result disappears.
  await editor.triangle("agent").waitFor({ state: "hidden" });
  assert.equal((await editor.badge("agent").textContent()).trim(), "?");
  assert.match(await editor.tooltip(editor.badge("agent")), /not checked/i);
  // Another wrong wire is not checked.
  await editor.wire("ask", 0, "model");
  assert.deepEqual(await editor.invalidNodes(), []);
  const sidebar = await editor.openSidebar();
  await editor.waitForText(sidebar, /Not connected: .+/);
  await editor.waitForText(sidebar, /Wires not checked: .+/);
  assertReadable(await measureContrasts(sidebar), "the sidebar without a sidecar");
  await editor.screenshot("offline");
  // The tabs of the agent show that their data are missing.
  const tray = await editor.open("agent");
  await tray.getByRole("tab", { name: "Runtime / Debug" }).click();
  await editor.waitForText(tray.getByRole("tabpanel"), /sidecar is not connected/);
  await tray.getByRole("tab", { name: "Errors" }).click();
  await editor.waitForText(tray.getByRole("tabpanel"), /not checked/);
  assert.doesNotMatch(await tray.getByRole("tabpanel").innerText(), /There are no errors/, "unknown without a sidecar");
  await editor.screenshot("offline-errors");
  await editor.cancel();
  await fixture.sidecar.start();
  await editor.waitForCheck("checked");
  await editor.waitForText(sidebar, /Connected, Redflow \d/);
  await editor.waitForText(sidebar, /Wires checked\. Errors: \d/);
  await editor.triangle("agent").waitFor();
  await editor.triangle("model").waitFor();
  await editor.screenshot("back");
}
