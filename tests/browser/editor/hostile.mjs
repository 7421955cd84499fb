// Texts of strangers: names, prompts, errors and results that are HTML, scripts, or turn what stands beside them around. All of
// it is shown as text, and no more of it than can be read.

import assert from "node:assert/strict";

import { eventually } from "../kit/wait.mjs";
import { again, calls, desk, says } from "./flows.mjs";

/** Would run, if it ever became a part of the page; and turns the direction of what follows. */
const EVIL = `<img src=x onerror="window.__pwned=1"><script>window.__pwned=1</script><b>bold</b>\u202Eevil`;
/** The same, short enough for the canvas. */
const NAME = "<img src=x onerror=__pwned=1>\u202Eevil";
const HUGE = EVIL + "x".repeat(1_000_000);

/** Characters that one view of ours may show in all. */
const SHOWN_MOST = 60_000;

/** Holds that a view of ours shows what is evil as text, apart from what stands beside it, and not too much of it. */
async function harmless(editor, place, where) {
  const found = await place.evaluateAll((all, evil) => {
    const texts = [];
    for (const root of all) {
      const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        texts.push(walker.currentNode);
      }
    }
    const strange = texts.filter(({ data }) => data.includes(evil.slice(0, 20)) || data.includes("\u202E"));
    return {
      seen: strange.length,
      length: texts.reduce((sum, { length }) => sum + length, 0),
      loose: strange
        .filter(({ parentElement }) => !["isolate", "plaintext", "isolate-override"].includes(getComputedStyle(parentElement).unicodeBidi))
        .filter(({ parentElement }) => parentElement.tagName !== "OPTION" && !parentElement.closest("svg"))
        .map(({ data, parentElement }) => `${parentElement.outerHTML.slice(0, 200)}: ${data.slice(0, 80)}`),
    };
  }, EVIL);
  assert.ok(found.seen > 0, `${where} shows it`);
  assert.deepEqual(found.loose, [], `${where} turns what stands beside it`);
  assert.ok(found.length < SHOWN_MOST, `${where} shows ${found.length} characters`);
  await untouched(editor, where);
}

/** Holds that nothing of it has become a part of the page. */
async function untouched(editor, where) {
  const [ran, parts] = await editor.page.evaluate(() => [
    window.__pwned,
    [...document.querySelectorAll("img[src='x'], [onerror]")].map(({ parentElement }) => parentElement.outerHTML.slice(0, 300)),
  ]);
  assert.equal(ran, undefined, `${where}: a script ran`);
  assert.deepEqual(parts, [], `${where}: it became a part of the page`);
}

/** Where the nodes with long names do not cover each other. */
const PLACES = { agent: [420, 120], model: [420, 240], mail: [420, 300], answer: [420, 420], post: [720, 300], calc: [720, 240] };

/** The desk, with every name a bad one and a tool that fails badly. */
function evilDesk(stage) {
  return desk(stage).map((node) => {
    const [x, y] = PLACES[node.id] ?? [node.x, node.y];
    const name = ["agent", "model", "answer", "mail"].includes(node.id) ? NAME : node.name;
    const named = { ...node, x, y, name };
    if (node.id === "desk") {
      return { ...node, label: EVIL };
    }
    if (node.id === "ask") {
      return { ...named, payload: EVIL };
    }
    if (node.id === "mail") {
      return { ...named, timeout: 30_000, effect: "read" };
    }
    return node.id === "post" ? { ...named, func: "msg.error = msg.payload.text + 'x'.repeat(1e6); return msg;" } : named;
  });
}

export async function asText(stage, t) {
  const editor = await stage.with(t, evilDesk(stage));
  await editor.checked();
  const status = editor.node("agent").locator(".red-ui-flow-node-status-label");
  const answers = [
    ["INVALID_JSON", [HUGE]],
    ["TOOL_NOT_ALLOWED", [calls(EVIL, { a: EVIL })]],
    ["ITERATION_OVERFLOW", [calls("send_mail", { to: EVIL, text: EVIL })]],
    [/done/, [calls("calculator", { expression: EVIL }), says(HUGE)]],
  ];
  for (const [outcome, said] of answers) {
    stage.model.says(...said);
    await editor.press("ask");
    await editor.reads(status, outcome);
  }
  await untouched(editor, "the canvas");
  // Wrong wires, whose sentences name both ends.
  await editor.wire("agent", 2, "answer");
  await editor.wire("ask", 0, "model");
  await editor.triangle("model").waitFor();
  await editor.triangle("agent").waitFor();
  for (const place of [editor.triangle("agent"), editor.triangle("model"), editor.badge("agent")]) {
    assert.match(await editor.tooltip(place), /<img/);
  }
  await untouched(editor, "the tooltips");
  await editor.picture("hostile-canvas");
  // Deploying lists them.
  await editor.page.locator("#red-ui-header-button-deploy").click();
  await editor.notices.filter({ hasText: "<img" }).waitFor();
  await untouched(editor, "the notice");
  await editor.notices.getByRole("button", { name: "Cancel" }).click();
  await editor.undo();
  await editor.undo();
  const tray = await editor.open("agent");
  const panel = tray.getByRole("tabpanel");
  await tray.getByRole("tab", { name: "Runtime / Debug" }).click();
  await editor.reads(panel, /Answered/);
  const opened = panel.locator("details:not([open]) > summary");
  while ((await opened.count()) > 0) {
    await opened.first().click();
  }
  await harmless(editor, panel, "the tab Runtime / Debug");
  await editor.picture("hostile-run");
  await tray.getByRole("tab", { name: "Errors" }).click();
  await eventually("three errors", async () => (await panel.getByRole("group").count()) >= 3);
  while ((await opened.count()) > 0) {
    await opened.first().click();
  }
  await harmless(editor, panel, "the tab Errors");
  await editor.picture("hostile-errors");
  await tray.getByRole("tab", { name: "Tools" }).click();
  await untouched(editor, "the tab Tools");
  await editor.cancel();
  const sidebar = await editor.sidebar();
  const rows = sidebar.getByRole("listitem");
  await eventually("four runs", async () => (await rows.count()) >= 4);
  await harmless(editor, sidebar, "the sidebar");
  await editor.picture("hostile-sidebar");
  for (const place of [0, 1, 2, 3]) {
    await rows.nth(place).getByRole("button").first().click();
    await editor.reads(sidebar, /Answered|Failed/);
    await harmless(editor, sidebar, `run ${place} in the sidebar`);
    await sidebar.getByRole("button", { name: "All runs" }).click();
  }
}

/** A tool whose name no model can call, and a node whose name fills a book. */
export async function hugeNames(stage, t) {
  const flows = desk(stage, { name: HUGE.slice(0, 100_000), allowedTools: ["calculator", EVIL, HUGE] });
  const mail = flows.find(({ id }) => id === "mail");
  Object.assign(mail, { toolName: EVIL, description: HUGE });
  const editor = await stage.with(t, flows);
  await editor.checked();
  await editor.triangle("mail").waitFor();
  const tray = await editor.openById("agent");
  await tray.getByRole("tab", { name: "Tools" }).click();
  await harmless(editor, tray.getByRole("tabpanel"), "the tab Tools");
  await editor.picture("hostile-tools");
  await tray.getByRole("tab", { name: "Errors" }).click();
  await harmless(editor, tray.getByRole("tabpanel"), "the tab Errors");
  await editor.cancel();
  assert.ok(again(flows).length > 0);
}
