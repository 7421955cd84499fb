// The console in a browser, with the real sidecar.

import { after, before, test } from "node:test";

import * as access from "./console/access.mjs";
import * as bounds from "./console/bounds.mjs";
import * as catalogue from "./console/catalogue.mjs";
import * as controls from "./console/controls.mjs";
import { demo } from "./console/demo.mjs";
import * as displays from "./console/displays.mjs";
import { startConsole } from "./console/fixture.mjs";
import * as keyboard from "./console/keyboard.mjs";
import * as knowledge from "./console/knowledge.mjs";
import { startLarge } from "./console/large.mjs";
import * as lists from "./console/lists.mjs";
import * as look from "./console/look.mjs";
import * as mcp from "./console/mcp.mjs";
import * as memory from "./console/memory.mjs";
import * as privacy from "./console/privacy.mjs";
import * as runs from "./console/runs.mjs";
import * as scopes from "./console/scopes.mjs";
import * as sessions from "./console/sessions.mjs";
import * as waterfall from "./console/waterfall.mjs";
import { launch } from "./kit/chromium.mjs";

const SCENARIOS = {
  "the address of the demo shows its run, and a click proves it": demo,
  "a signed-in browser sees a run and its proof": runs.proof,
  "a changed byte of a journal is the first difference": runs.difference,
  "one key filters a list; what is filtered is cancelled together": lists.quickFilters,
  "a call with an unknown outcome is resolved in the inbox": runs.inbox,
  "a page survives a killed sidecar": runs.restart,
  "words stay folded until someone asks": privacy.folded,
  "one key hides all words on every page": privacy.shade,
  "every page without barriers": look.barriers,
  "Tab reaches every control, and its focus is seen": controls.everyControl,
  "controls of a narrow page are large enough to touch": controls.narrowTargets,
  "lists by keyboard": keyboard.lists,
  "narrow pages by keyboard": keyboard.sheets,
  "a run by keyboard": keyboard.run,
  "runs that wait, by keyboard": keyboard.waits,
  "flows and checks by keyboard": keyboard.flow,
  "usage, models and tools by keyboard": keyboard.rest,
  "knowledge bases by keyboard": knowledge.byKeyboard,
  "settings by keyboard, and letters that can be off": keyboard.settings,
  "a page below a path of a proxy": access.belowPath,
  "each scope may do what its buttons say": scopes.scopes,
  "an ended session: the sign-in, then the page where it was": sessions.ended,
  "two tabs see what the other one does": sessions.twoTabs,
  "a user who leaves while a question is sent stays there": sessions.leaves,
  "a hidden tab is disconnected, and resumed where it was": sessions.hidden,
  "a page whose console was updated says so": sessions.updated,
  "forced colours and less motion": displays.forcedColours,
  "a tool says which rules decide about it": catalogue.rules,
  "problems of a flow are in the user's language": catalogue.sentences,
  "files become a knowledge base that is searched; each passage says why": knowledge.documents,
  "screenshots for the documentation": look.screenshots,
  // Attaches a Node-RED, which the screenshots should not show.
  "the models of the sidecar and of a Node-RED are shown and tested": catalogue.models,
};

/** With more runs, texts and nodes than a page shows at once. */
const LARGE_SCENARIOS = {
  "a list is read and drawn page by page": lists.pages,
  "a search that stops says so and goes on": lists.searchedTo,
  "new rows wait while a user reads": lists.newRows,
  "child runs open in their place": lists.children,
  "a waterfall always fits and reaches the end": waterfall.longRun,
  "a journal is read page by page": waterfall.longJournal,
  "a long text is cut and can be read whole": bounds.texts,
  "a large answer of a model is shown, a larger one is refused": bounds.largeAnswer,
  "a flow with too many nodes is a list": bounds.flows,
  "tables and files of usage have the sums of the sidecar": bounds.sums,
  "the first page says what it leaves out": bounds.home,
  "a sidecar without knowledge bases says what to do": knowledge.empty,
  "untrusted texts stay text": look.hostile,
  "untrusted documents stay text": knowledge.hostile,
  "a report has no words and no secrets": privacy.report,
};

/** With an agent that has a long memory. */
const MEMORY_SCENARIOS = {
  "a memory is searched, each entry says why; an entry is changed by two users": memory.entries,
  "a run shows what its memory has recalled": memory.recall,
  "entries that wait are reviewed, and the data of a user is forgotten": memory.review,
  "untrusted entries stay text": memory.hostile,
  "memories by keyboard": memory.byKeyboard,
  "each scope may change of a memory what its buttons say": memory.scopes,
};

/** With MCP servers. */
const MCP_SCENARIOS = {
  "a changed definition of an MCP server is shown with its difference and approved": mcp.approvals,
  "an MCP server that cannot be used says why, and connects again": mcp.offline,
  "untrusted texts of MCP servers stay text": mcp.hostile,
  "MCP servers by keyboard": mcp.byKeyboard,
  "each scope may do with MCP servers what its buttons say": mcp.scopes,
};

let [browser, console, large, remembering, connecting] = [];
before(async () => {
  const starting = [launch(), startConsole(), startLarge(), memory.startMemory(), mcp.startMcp()];
  [browser, console, large, remembering, connecting] = await Promise.all(starting);
});
after(async () => {
  await browser?.close();
  await console?.stop();
  await large?.stop();
  await remembering?.stop();
  await connecting?.stop();
});

for (const [name, scenario] of Object.entries(SCENARIOS)) {
  test(name, (t) => scenario(t, browser, console));
}
for (const [name, scenario] of Object.entries(LARGE_SCENARIOS)) {
  test(name, (t) => scenario(t, browser, large));
}
for (const [name, scenario] of Object.entries(MEMORY_SCENARIOS)) {
  test(name, (t) => scenario(t, browser, remembering));
}
for (const [name, scenario] of Object.entries(MCP_SCENARIOS)) {
  test(name, (t) => scenario(t, browser, connecting));
}
