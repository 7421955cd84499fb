// The console in a browser, with the real sidecar.

import { after, before, test } from "node:test";

import * as access from "./console/access.mjs";
import * as controls from "./console/controls.mjs";
import * as displays from "./console/displays.mjs";
import { startConsole } from "./console/fixture.mjs";
import * as keyboard from "./console/keyboard.mjs";
import * as look from "./console/look.mjs";
import * as runs from "./console/runs.mjs";
import * as scopes from "./console/scopes.mjs";
import * as sessions from "./console/sessions.mjs";
import { launch } from "./kit/chromium.mjs";

const SCENARIOS = {
  "a signed-in browser sees a run and its proof": runs.proof,
  "a changed byte of a journal is the first difference": runs.difference,
  "lists are filtered by the address and cancelled together": runs.filters,
  "a call with an unknown outcome is resolved in the inbox": runs.inbox,
  "a page survives a killed sidecar": runs.restart,
  "untrusted texts stay text": look.hostile,
  "every page without barriers": look.barriers,
  "Tab reaches every control, and its focus is seen": controls.everyControl,
  "controls of a narrow page are large enough to touch": controls.narrowTargets,
  "lists by keyboard": keyboard.lists,
  "narrow pages by keyboard": keyboard.sheets,
  "a run by keyboard": keyboard.run,
  "runs that wait, by keyboard": keyboard.waits,
  "flows and checks by keyboard": keyboard.flow,
  "usage, models and tools by keyboard": keyboard.rest,
  "settings by keyboard, and letters that can be off": keyboard.settings,
  "a page below a path of a proxy": access.belowPath,
  "each scope may do what its buttons say": scopes.scopes,
  "an ended session: the sign-in, then the page where it was": sessions.ended,
  "two tabs see what the other one does": sessions.twoTabs,
  "a hidden tab is disconnected, and resumed where it was": sessions.hidden,
  "a page whose console was updated says so": sessions.updated,
  "forced colours and less motion": displays.forcedColours,
  "pictures for the documentation": look.pictures,
};

let [browser, console] = [];
before(async () => {
  [browser, console] = [await launch(), await startConsole()];
});
after(async () => {
  await browser?.close();
  await console?.stop();
});

for (const [name, scenario] of Object.entries(SCENARIOS)) {
  test(name, (t) => scenario(t, browser, console));
}
