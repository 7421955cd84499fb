// The editors of Node-RED 4 and 5, with the palette module as npm installs it and a real sidecar. Screenshots are in
// `dist/editor`.

import { chatImages } from "./editor/chat-images.mjs";
import { killedAndRestarted } from "./editor/sidecar-killed.mjs";
import { twoHundredAgents } from "./editor/many-agents.mjs";
import { agentProblems } from "./editor/agent-problems.mjs";
import * as agentDialog from "./editor/agent-dialog.mjs";
import * as aiAgent from "./editor/ai-agent.mjs";
import { tenThousandEvents } from "./editor/many-events.mjs";
import * as untrustedText from "./editor/untrusted-text.mjs";
import { missingKey } from "./editor/missing-key.mjs";
import { runExample } from "./editor/example.mjs";
import * as dialogs from "./editor/dialogs.mjs";
import * as runs from "./editor/runs.mjs";
import { testVersions } from "./editor/fixture.mjs";
import * as wires from "./editor/wires.mjs";
import * as languages from "./editor/languages.mjs";
import { LINES } from "./kit/node-red.mjs";

const SCENARIOS = {
  "imports, deploys and runs the example": runExample,
  "names a model without a key": missingKey,
  "shows what is wrong with an agent, and whose run it is": agentProblems,
  "the agent's dialog has four tabs": agentDialog.fourTabs,
  "its tab Tools lists the connected tools": agentDialog.tools,
  "wiring a tool allows it": agentDialog.wiringAllows,
  "its dialog works without a mouse": agentDialog.withoutMouse,
  "the AI Agent's dialog binds services by wires and by choice": aiAgent.dialog,
  "an AI Agent's calls run side by side": aiAgent.parallelCalls,
  "several calls of one answer ask, one after the other": aiAgent.severalQuestions,
  "shows the text of a model while it is written": aiAgent.streamedText,
  "agents for one thing": aiAgent.oneThing,
  "explains a wrong wire": wires.wrongWire,
  "checks imported, pasted and deployed flows": wires.wrongFlows,
  "the timeline grows during a slow run": runs.slowRun,
  "errors explain how to fix them": runs.errors,
  "cancels a run in the sidebar": runs.cancel,
  "resolves a waiting call in the sidebar": runs.resolve,
  "two editors show the same runs": runs.twoEditors,
  "handles a killed and restarted sidecar": killedAndRestarted,
  "Spanish and German": languages.translations,
  "light and dark": languages.lightAndDark,
  "every dialog in another language": dialogs.everyDialog,
  "a dialog has the fields of the chosen authentication": dialogs.partsByChoice,
  "an Azure model has the fields of its sign-in": dialogs.azureSignIn,
  "a table of parameters writes the schema of a tool": dialogs.parameters,
  "models share a key": dialogs.sharedKey,
  "a model's dialog tests it and lists the models": dialogs.modelTest,
  "the chat window": dialogs.chat,
  "images in the chat window": chatImages,
  "shows untrusted texts as text": untrustedText.asText,
  "shows untrusted names as text": untrustedText.hugeNames,
  "ten thousand events": tenThousandEvents,
  "two hundred agents": twoHundredAgents,
};

testVersions(LINES, SCENARIOS);
