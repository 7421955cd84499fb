// The console in a browser, with the real sidecar.

import { after, before, test } from "node:test";

import * as access from "./console/access.mjs";
import * as catalogue from "./console/catalogue.mjs";
import { demo } from "./console/demo.mjs";
import { startConsole } from "./console/fixture.mjs";
import * as look from "./console/look.mjs";
import * as runs from "./console/runs.mjs";
import { launch } from "./kit/chromium.mjs";

const SCENARIOS = {
  "the address of the demo shows its run, and a click proves it": demo,
  "a signed-in browser sees a run and its proof": runs.proof,
  "a changed byte of a journal is the first difference": runs.difference,
  "lists are filtered by the address and cancelled together": runs.filters,
  "a call with an unknown outcome is resolved in the inbox": runs.inbox,
  "a page survives a killed sidecar": runs.restart,
  "untrusted texts stay text": look.hostile,
  "every page without barriers": look.barriers,
  "a page below a path of a proxy": access.belowPath,
  "each scope may do what its buttons say": access.scopes,
  "a tool says which rules decide about it": catalogue.rules,
  "problems of a flow are in the user's language": catalogue.sentences,
  "pictures for the documentation": look.pictures,
  // Attaches a Node-RED, which the pictures should not show.
  "the models of the sidecar and of a Node-RED are shown and tested": catalogue.models,
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
