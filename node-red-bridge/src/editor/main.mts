// Where the editor's part begins. What the pages of the nodes use is at `RedflowEditor`.

import * as agent from "./agent-dialog.mjs";
import { stopsVerdict } from "./agent-general.mjs";
import { allowedVerdict, boundVerdict } from "./agent-tools.mjs";
import { ask } from "./ask.mjs";
import { startBadges } from "./badge.mjs";
import { openChat, startChats } from "./chat.mjs";
import { checks, startChecks } from "./checks.mjs";
import * as fields from "./fields.mjs";
import { label } from "./label.mjs";
import * as rules from "./rules.mjs";
import { runtimeVerdict, startRuntimes } from "./runtimes.mjs";
import { addSidebar } from "./sidebar.mjs";
import { text } from "./text.mjs";
import { keepUntouched } from "./touched.mjs";
import { startWires } from "./wires.mjs";

declare global {
  interface Window {
    RedflowEditor?: object;
  }
}

/** Each part by itself: what one cannot do is no reason for the others not to begin. */
function start(): void {
  for (const begin of [startWires, startBadges, startChecks, startRuntimes, startChats, addSidebar]) {
    try {
      begin();
    } catch (error) {
      console.error("redflow", error);
    }
  }
}

// A module that is removed and added again while the editor is open brings this script once more. What runs already goes on;
// without an `onremove` Node-RED asks people to reload the editor, which brings the new one.
const isFirst = window.RedflowEditor === undefined;
window.RedflowEditor ??= {
  ...{ ...rules, ...fields, ...checks, ...agent },
  ...{ allowedVerdict, ask, boundVerdict, keepUntouched, label, openChat, runtimeVerdict, stopsVerdict, text },
};
RED.plugins.registerPlugin("redflow-editor", { type: "redflow-editor", onadd: () => isFirst && start() });
