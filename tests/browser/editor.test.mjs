// The editors of both lines of Node-RED, with the palette module as npm installs it and a real sidecar: what a person sees
// and does there. Pictures of it are kept in `dist/editor`.

import { killedAndBack } from "./editor/away.mjs";
import { twoHundredAgents } from "./editor/crowd.mjs";
import * as dialog from "./editor/dialog.mjs";
import { tenThousand } from "./editor/events.mjs";
import * as hostile from "./editor/hostile.mjs";
import * as newcomer from "./editor/newcomer.mjs";
import * as palette from "./editor/palette.mjs";
import * as runs from "./editor/runs.mjs";
import { onLines } from "./editor/stage.mjs";
import * as wires from "./editor/wires.mjs";
import * as words from "./editor/words.mjs";
import { LINES } from "./kit/node-red.mjs";

const SCENES = {
  "the example is imported, deployed and run": newcomer.theExample,
  "the agent's dialog has four tabs": dialog.fourTabs,
  "its tools are those at its wires": dialog.tools,
  "its dialog needs no mouse": dialog.withoutMouse,
  "a wrong wire explains itself": wires.aWrongWire,
  "wrong flows are imported, pasted and deployed": wires.wrongFlows,
  "the timeline grows while a slow run goes on": runs.aSlowRun,
  "errors say what to do": runs.whatWentWrong,
  "a run is cancelled from the sidebar": runs.cancelled,
  "a waiting call is resolved from the sidebar": runs.resolved,
  "two editors see the same runs": runs.twoEditors,
  "the sidecar is killed and comes back": killedAndBack,
  "Spanish and German": words.languages,
  "light and dark": words.lightAndDark,
  "every dialog, in another language": palette.everyDialog,
  "the window of a chat": palette.chat,
  "hostile texts are texts": hostile.asText,
  "hostile names are texts": hostile.hugeNames,
  "ten thousand events": tenThousand,
  "two hundred agents": twoHundredAgents,
};

onLines(LINES, SCENES);
