// The sidecar is killed, and comes back: nothing is guessed meanwhile.

import assert from "node:assert/strict";

import { contrasts, readable } from "../kit/contrast.mjs";
import { desk } from "./flows.mjs";

export async function killedAndBack(stage, t) {
  const editor = await stage.with(t, desk(stage));
  await editor.checked();
  await editor.wire("agent", 2, "answer");
  await editor.triangle("agent").waitFor();
  await stage.sidecar.kill();
  await editor.checked(false);
  // What was said before is no longer said.
  await editor.triangle("agent").waitFor({ state: "hidden" });
  assert.equal((await editor.badge("agent").textContent()).trim(), "?");
  assert.match(await editor.tooltip(editor.badge("agent")), /not checked/i);
  // A wrong wire more: nobody says anything about it.
  await editor.wire("ask", 0, "model");
  assert.deepEqual(await editor.invalid(), []);
  const sidebar = await editor.sidebar();
  await editor.reads(sidebar, /Not connected: .+/);
  await editor.reads(sidebar, /Wires not checked: .+/);
  readable(await contrasts(sidebar), "the sidebar without a sidecar");
  await editor.picture("away");
  // Nor do the tabs of the agent pretend to know.
  const tray = await editor.open("agent");
  await tray.getByRole("tab", { name: "Runtime / Debug" }).click();
  await editor.reads(tray.getByRole("tabpanel"), /sidecar is not connected/);
  await tray.getByRole("tab", { name: "Errors" }).click();
  await editor.reads(tray.getByRole("tabpanel"), /not checked/);
  assert.doesNotMatch(await tray.getByRole("tabpanel").innerText(), /Nothing has gone wrong/, "that would be a guess");
  await editor.picture("away-errors");
  await editor.cancel();
  await stage.sidecar.come();
  await editor.checked();
  await editor.reads(sidebar, /Connected, Redflow \d/);
  await editor.reads(sidebar, /Wires checked\. Errors: \d/);
  await editor.triangle("agent").waitFor();
  await editor.triangle("model").waitFor();
  await editor.picture("back");
}
