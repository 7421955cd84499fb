// Untrusted texts: names, prompts, errors and results with HTML, scripts or direction characters. The editor shows them as
// text, cut to a limit.

import assert from "node:assert/strict";

import { eventually } from "../kit/wait.mjs";
import { desk, finalAnswer, toolCall, withoutCredentials } from "./flows.mjs";

/** Would run if it became part of the page, and changes the direction of the following text. */
const EVIL = `<img src=x onerror="window.__pwned=1"><script>window.__pwned=1</script><b>bold</b>\u202Eevil`;
/** A short form for the canvas. */
const NAME = "<img src=x onerror=__pwned=1>\u202Eevil";
const HUGE = EVIL + "x".repeat(1_000_000);

/** The most characters of one view. */
const MAX_SHOWN = 60_000;

/** Asserts that a view shows untrusted text as text, isolated in its direction, and within the limit. */
async function assertShownAsText(editor, locator, where) {
  const found = await locator.evaluateAll((all, evil) => {
    const texts = [];
    for (const root of all) {
      const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        texts.push(walker.currentNode);
      }
    }
    const untrusted = texts.filter(({ data }) => data.includes(evil.slice(0, 20)) || data.includes("\u202E"));
    return {
      count: untrusted.length,
      length: texts.reduce((sum, { length }) => sum + length, 0),
      notIsolated: untrusted
        .filter(({ parentElement }) => !["isolate", "plaintext", "isolate-override"].includes(getComputedStyle(parentElement).unicodeBidi))
        .filter(({ parentElement }) => parentElement.tagName !== "OPTION" && !parentElement.closest("svg"))
        .map(({ data, parentElement }) => `${parentElement.outerHTML.slice(0, 200)}: ${data.slice(0, 80)}`),
    };
  }, EVIL);
  assert.ok(found.count > 0, `${where} shows no untrusted text`);
  assert.deepEqual(found.notIsolated, [], `${where} changes the direction of other text`);
  assert.ok(found.length < MAX_SHOWN, `${where} shows ${found.length} characters`);
  await assertNoInjection(editor, where);
}

/** Asserts that no untrusted text became part of the page. */
async function assertNoInjection(editor, where) {
  const [ran, parts] = await editor.page.evaluate(() => [
    window.__pwned,
    [...document.querySelectorAll("img[src='x'], [onerror]")].map(({ parentElement }) => parentElement.outerHTML.slice(0, 300)),
  ]);
  assert.equal(ran, undefined, `${where}: a script ran`);
  assert.deepEqual(parts, [], `${where}: untrusted text became part of the page`);
}

/** Positions at which nodes with long names do not overlap. */
const POSITIONS = { agent: [420, 120], model: [420, 240], mail: [420, 300], answer: [420, 420], post: [720, 300], calc: [720, 240] };

/** The desk flow with untrusted names and a tool that fails with untrusted text. */
function untrustedDesk(fixture) {
  return desk(fixture).map((node) => {
    const [x, y] = POSITIONS[node.id] ?? [node.x, node.y];
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

export async function asText(fixture, t) {
  const editor = await fixture.deployAndOpen(t, untrustedDesk(fixture));
  await editor.waitForCheck("checked");
  const status = editor.node("agent").locator(".red-ui-flow-node-status-label");
  const answers = [
    { outcome: "INVALID_JSON", replies: [HUGE] },
    { outcome: "TOOL_NOT_ALLOWED", replies: [toolCall(EVIL, { a: EVIL })] },
    { outcome: "ITERATION_OVERFLOW", replies: [toolCall("send_mail", { to: EVIL, text: EVIL })] },
    { outcome: /done/, replies: [toolCall("calculator", { expression: EVIL }), finalAnswer(HUGE)] },
  ];
  for (const { outcome, replies } of answers) {
    fixture.model.setAnswers(...replies);
    await editor.press("ask");
    await editor.waitForText(status, outcome);
  }
  await assertNoInjection(editor, "the canvas");
  // The sentences of wrong wires name both ends.
  await editor.wire("agent", 2, "answer");
  await editor.wire("ask", 0, "model");
  await editor.triangle("model").waitFor();
  await editor.triangle("agent").waitFor();
  for (const mark of [editor.triangle("agent"), editor.triangle("model"), editor.badge("agent")]) {
    assert.match(await editor.tooltip(mark), /<img/);
  }
  await assertNoInjection(editor, "the tooltips");
  await editor.screenshot("untrusted-canvas");
  // A deploy lists the invalid nodes.
  await editor.page.locator("#red-ui-header-button-deploy").click();
  await editor.notices.filter({ hasText: "<img" }).waitFor();
  await assertNoInjection(editor, "the notice");
  await editor.notices.getByRole("button", { name: "Cancel" }).click();
  await editor.undo();
  await editor.undo();
  const tray = await editor.open("agent");
  const panel = tray.getByRole("tabpanel");
  await tray.getByRole("tab", { name: "Runtime / Debug" }).click();
  await editor.waitForText(panel, /Answered/);
  const closed = panel.locator("details:not([open]):not([hidden]) > summary");
  while ((await closed.count()) > 0) {
    await closed.first().click();
  }
  await eventually("all texts are read", async () => !(await panel.innerText()).includes("Reading…"));
  await assertShownAsText(editor, panel, "the tab Runtime / Debug");
  await editor.screenshot("untrusted-run");
  await tray.getByRole("tab", { name: "Errors" }).click();
  await eventually("three errors", async () => (await panel.getByRole("group").count()) >= 3);
  while ((await closed.count()) > 0) {
    await closed.first().click();
  }
  await assertShownAsText(editor, panel, "the tab Errors");
  await editor.screenshot("untrusted-errors");
  await tray.getByRole("tab", { name: "Tools" }).click();
  await assertNoInjection(editor, "the tab Tools");
  await editor.cancel();
  const sidebar = await editor.openSidebar();
  const rows = sidebar.getByRole("listitem");
  await eventually("four runs", async () => (await rows.count()) >= 4);
  await assertShownAsText(editor, sidebar, "the sidebar");
  await editor.screenshot("untrusted-sidebar");
  for (const index of [0, 1, 2, 3]) {
    await rows.nth(index).getByRole("button").first().click();
    await editor.waitForText(sidebar, /Answered|Failed/);
    await assertShownAsText(editor, sidebar, `run ${index} in the sidebar`);
    await sidebar.getByRole("button", { name: "All runs" }).click();
  }
}

/** A tool with an invalid name, and a node with a very long name. */
export async function hugeNames(fixture, t) {
  const flows = desk(fixture, { name: HUGE.slice(0, 100_000), allowedTools: ["calculator", EVIL, HUGE] });
  const mail = flows.find(({ id }) => id === "mail");
  Object.assign(mail, { toolName: EVIL, description: HUGE });
  const editor = await fixture.deployAndOpen(t, flows);
  await editor.waitForCheck("checked");
  await editor.triangle("mail").waitFor();
  const tray = await editor.openById("agent");
  await tray.getByRole("tab", { name: "Tools" }).click();
  await assertShownAsText(editor, tray.getByRole("tabpanel"), "the tab Tools");
  await editor.screenshot("untrusted-tools");
  await tray.getByRole("tab", { name: "Errors" }).click();
  await assertShownAsText(editor, tray.getByRole("tabpanel"), "the tab Errors");
  await editor.cancel();
  assert.ok(withoutCredentials(flows).length > 0);
}
