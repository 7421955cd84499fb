// The entry point of the editor plugin. The html files of the nodes use it as `RedflowEditor`.

import * as agent from "./agent-dialog.mjs";
import { stopsVerdict } from "./stop-conditions.mjs";
import { allowedVerdict, boundVerdict } from "./agent-tools.mjs";
import { startBadges } from "./badge.mjs";
import { openChat, startChats } from "./chat-window.mjs";
import { checks, startChecks } from "./checks.mjs";
import * as fields from "./fields.mjs";
import { prepareMcp } from "./mcp-client.mjs";
import { prepareModelTest } from "./model-test.mjs";
import { prepareServices } from "./named-services.mjs";
import { label } from "./node-label.mjs";
import { prepareParameters } from "./parameters-view.mjs";
import { listRegistry } from "./registry-tool.mjs";
import * as rules from "./rules.mjs";
import { openRuntime, runtimeVerdict, startRuntimes, tokenVerdict } from "./runtimes.mjs";
import { addSidebar } from "./sidebar.mjs";
import { startStatuses } from "./statuses.mjs";
import { text } from "./text.mjs";
import { keepUntouched } from "./touched-fields.mjs";
import { startToolTicks } from "./tool-ticks.mjs";
import { startWaitingNotices } from "./waiting-notices.mjs";
import { startWires } from "./wires.mjs";

declare global {
  interface Window {
    RedflowEditor?: object;
  }
}

/** Starts each part by itself, so that a failure of one does not stop the others. */
function start(): void {
  const parts = [
    startWires,
    startToolTicks,
    startBadges,
    startChecks,
    startStatuses,
    startRuntimes,
    startChats,
    addSidebar,
    startWaitingNotices,
  ];
  for (const startPart of parts) {
    try {
      startPart();
    } catch (error) {
      console.error("redflow", error);
    }
  }
}

// Node-RED loads this script again when the module is removed and added while the editor is open. The running parts stay.
// Without an `onremove` Node-RED asks users to reload the editor, which starts the new version.
const isFirst = window.RedflowEditor === undefined;
window.RedflowEditor ??= {
  ...{ ...rules, ...fields, ...checks, ...agent },
  ...{ allowedVerdict, boundVerdict, keepUntouched, label, listRegistry, openChat, openRuntime, prepareMcp, prepareModelTest, prepareParameters, prepareServices, runtimeVerdict, stopsVerdict, text, tokenVerdict },
};
RED.plugins.registerPlugin("redflow-editor", { type: "redflow-editor", onadd: () => isFirst && start() });
