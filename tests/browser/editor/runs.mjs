// The runs of an agent in the tabs Runtime / Debug and Errors and in the sidebar, with a model that the test controls.

import assert from "node:assert/strict";

import { measureContrasts, assertReadable } from "../kit/contrast.mjs";
import { eventually } from "../kit/wait.mjs";
import { desk, finalAnswer, toolCall } from "./flows.mjs";

/** Waits until the model is called and its answer is held back. */
const modelCalled = (fixture) => eventually("the model is called", () => fixture.model.waiting() === 1);

const step = (locator, iteration) => locator.getByRole("listitem", { name: `Iteration ${iteration}`, exact: true });

export async function slowRun(fixture, t) {
  // The texts need no debug.
  const editor = await fixture.deployAndOpen(t, desk(fixture, { debug: false }));
  const sums = [toolCall("calculator", { expression: "6 * 7" }, 0.35), toolCall("calculator", { expression: "42 / 2" }, 0.7)];
  fixture.model.setAnswers(...sums, finalAnswer("It is 21.", 0.95));
  fixture.model.hold();
  await editor.press("ask");
  await modelCalled(fixture);
  const tray = await editor.open("agent");
  await tray.getByRole("tab", { name: "Runtime / Debug" }).click();
  // The timeline shows the first call of the model.
  await editor.waitForText(step(tray, 1), "Calling the model");
  assert.equal(await step(tray, 2).count(), 0);
  await editor.screenshot("run-starts");
  fixture.model.releaseSome(1);
  await modelCalled(fixture);
  await editor.waitForText(step(tray, 1), /Model calls\s+calculator/);
  await editor.waitForText(step(tray, 1), /calculator\s+returned its result/);
  await editor.waitForText(step(tray, 2), "Calling the model");
  // Opened details stay open when the timeline grows.
  const result = step(tray, 1).getByText("Result of the tool");
  assert.equal(await step(tray, 1).locator("details[open]").count(), 0, "texts are folded");
  await result.click();
  await editor.waitForText(step(tray, 1).locator("details[open]"), "42");
  // A text that is read during the call is read again after it.
  await step(tray, 2).getByText("Question").click();
  await editor.waitForText(step(tray, 2).locator("details[open]"), "42");
  fixture.model.releaseSome(1);
  await modelCalled(fixture);
  await editor.waitForText(step(tray, 3), "Calling the model");
  await editor.waitForText(tray.getByRole("status"), "Iteration 3: calling the model");
  assert.equal(await result.locator("..").evaluate((one) => one.open), true);
  await editor.waitForText(tray.getByRole("tabpanel"), "Tokens: 22 read, 14 written · Cost: 0.162");
  await editor.screenshot("run-continues");
  fixture.model.releaseSome(1);
  await editor.waitForText(tray.getByRole("tabpanel"), /Answered · iterations: 3/);
  const chart = tray.getByRole("img", { name: /Confidence per iteration/ });
  assert.match(await chart.locator("title").first().textContent(), /1: 0.35, 2: 0.70, 3: 0.95/);
  assert.equal(await chart.locator("rect").count(), 3);
  await editor.waitForText(tray.getByRole("tabpanel"), "Iteration 3: the model has answered");
  await editor.openText(step(tray, 1), "Question", "What is 6 times 7?");
  await editor.openText(step(tray, 1), "Answer of the model", '"expression":"6 * 7"');
  await editor.openText(step(tray, 1), "Input of the tool", '"expression": "6 * 7"');
  await editor.openText(tray.getByRole("tabpanel"), "Answer of the agent", "It is 21.");
  await editor.waitForText(tray.getByRole("tabpanel"), "Tokens: 33 read, 21 written · Cost: 0.243");
  await editor.screenshot("run-ends");
  // The tab switches to a newer run.
  fixture.model.setAnswers(finalAnswer("At once."));
  fixture.model.release();
  await fixture.nodeRed.request("/inject/ask", {});
  await editor.waitForText(tray.getByRole("tabpanel"), /Answered · iterations: 1/);
  await editor.cancel();
}

export async function errors(fixture, t) {
  const editor = await fixture.deployAndOpen(t, desk(fixture, { maxIterations: 2 }));
  const failures = [
    ["INVALID_JSON", "I would rather talk than write JSON."],
    ["TOOL_NOT_ALLOWED", toolCall("shell", { command: "rm" })],
    ["ITERATION_OVERFLOW", toolCall("calculator", { expression: "1 + 1" })],
  ];
  for (const [code, answer] of failures) {
    fixture.model.setAnswers(answer);
    await editor.press("ask");
    await editor.waitForText(editor.node("agent").locator(".red-ui-flow-node-status-label"), code);
  }
  const tray = await editor.open("agent");
  await tray.getByRole("tab", { name: "Errors" }).click();
  const rows = tray.getByRole("tabpanel").getByRole("group");
  await eventually("three errors", async () => (await rows.count()) === 3);
  const heads = await rows.locator("summary").allInnerTexts();
  // The newest first.
  [...failures].reverse().forEach(([code], index) => assert.ok(heads[index].includes(code), `${code} in ${heads[index]}`));
  assert.match(await tray.getByRole("tab", { name: /Errors/ }).innerText(), /3/);
  // The newest is open and explains how to fix it.
  await editor.waitForText(rows.first(), "What to do");
  await editor.screenshot("errors");
  for (const [index, pattern] of [[1, /allowed/i], [2, /JSON/]]) {
    await rows.nth(index).locator("summary").click();
    await editor.waitForText(rows.nth(index), "What to do");
    await editor.waitForText(rows.nth(index), pattern);
  }
  await editor.screenshot("errors-open");
  await rows.first().getByRole("button", { name: "Show the run" }).click();
  await editor.waitForText(tray.locator("[role=tab][aria-selected=true]"), "Runtime / Debug");
  await editor.waitForText(tray.getByRole("tabpanel"), "ITERATION_OVERFLOW");
}

export async function cancel(fixture, t) {
  const editor = await fixture.deployAndOpen(t, desk(fixture));
  fixture.model.setAnswers(finalAnswer("Too late."));
  fixture.model.hold();
  await editor.press("ask");
  await modelCalled(fixture);
  const sidebar = await editor.openSidebar();
  await editor.waitForText(sidebar, /Connected, Redflow \d/);
  await editor.waitForText(sidebar, "Wires checked: no errors");
  await sidebar.getByRole("button", { name: "Running", exact: true }).click();
  const runs = sidebar.getByRole("list", { name: "Runs" }).getByRole("listitem");
  await eventually("one run is active", async () => (await runs.count()) === 1);
  await editor.waitForText(runs, /Desk\s+running/);
  await editor.screenshot("sidebar");
  await runs.getByRole("button", { name: /Desk/ }).click();
  await editor.waitForText(sidebar, "Calling the model");
  await sidebar.getByRole("button", { name: "Cancel this run" }).click();
  await editor.screenshot("sidebar-cancel");
  await sidebar.getByRole("button", { name: "Yes, end it" }).click();
  await editor.waitForText(sidebar, /failed/i);
  await editor.waitForText(sidebar, "CANCELLED");
  fixture.model.release();
  await editor.screenshot("sidebar-cancelled");
  assertReadable(await measureContrasts(sidebar), "a cancelled run");
  assert.equal(await sidebar.getByRole("button", { name: "Cancel this run" }).count(), 0);
  await sidebar.getByRole("button", { name: "All runs" }).click();
  await editor.waitForText(sidebar, "No agent is running.");
}

export async function resolve(fixture, t) {
  const editor = await fixture.deployAndOpen(t, desk(fixture));
  fixture.model.setAnswers(toolCall("send_mail", { to: "desk@example.com", text: "Tea is ready." }), finalAnswer("The mail is out."));
  await editor.press("ask");
  // A notice asks, also after a reload of the page.
  const notice = editor.notices.filter({ hasText: "waits for your answer" });
  await editor.waitForText(notice, /Desk waits for your answer: did the call of send_mail happen\?/);
  await editor.screenshot("notice");
  assert.equal(await notice.locator(":focus").count(), 0, "a notice does not take the focus");
  await editor.load();
  await notice.waitFor();
  const sidebar = await editor.openSidebar();
  await sidebar.getByRole("button", { name: "Waiting", exact: true }).click();
  const runs = sidebar.getByRole("list", { name: "Runs" }).getByRole("listitem");
  await eventually("one run waits", async () => (await runs.count()) === 1);
  await editor.waitForText(runs, /Desk\s+waits for a person.*18 tokens · Cost: 0.081/s);
  assert.equal(await notice.count(), 1);
  await notice.getByRole("button", { name: "Show the run" }).click();
  await notice.waitFor({ state: "detached" });
  // The form shows the whole call.
  await editor.waitForText(sidebar, /Did the call of\s+send_mail\s+happen\?/);
  await editor.waitForText(sidebar, '"text": "Tea is ready."');
  await editor.screenshot("sidebar-waiting");
  assertReadable(await measureContrasts(sidebar), "a waiting run");
  const answer = sidebar.getByRole("button", { name: "Answer and continue the run" });
  assert.equal(await answer.isEnabled(), false, "no answer is preselected");
  await sidebar.getByLabel("It happened", { exact: true }).check();
  await sidebar.getByLabel(/Its result/).fill("{ no JSON");
  await answer.click();
  await editor.waitForText(sidebar.getByRole("alert"), "This is not JSON");
  await sidebar.getByLabel(/Its result/).fill('{"sent": true}');
  await answer.click();
  await editor.waitForText(sidebar, /Answered · iterations: 2/);
  assert.ok(JSON.stringify(fixture.model.requests.at(-1)).includes("sent"), "the model receives the result");
  await editor.screenshot("sidebar-resolved");
}

export async function twoEditors(fixture, t) {
  const one = await fixture.deployAndOpen(t, desk(fixture));
  const other = await fixture.open(t);
  fixture.model.setAnswers(finalAnswer("Too late."));
  fixture.model.hold();
  const [oneSidebar, otherSidebar] = [await one.openSidebar(), await other.openSidebar()];
  await one.page.bringToFront();
  await one.press("ask");
  await modelCalled(fixture);
  for (const [editor, sidebar] of [[one, oneSidebar], [other, otherSidebar]]) {
    await editor.page.bringToFront();
    await sidebar.getByRole("button", { name: "Running", exact: true }).click();
    await editor.waitForText(sidebar.getByRole("listitem"), /Desk\s+running/);
  }
  await one.page.bringToFront();
  await oneSidebar.getByRole("listitem").getByRole("button", { name: /Desk/ }).click();
  await one.waitForText(oneSidebar, "Calling the model");
  await other.page.bringToFront();
  await otherSidebar.getByRole("listitem").getByRole("button", { name: /Desk/ }).click();
  await otherSidebar.getByRole("button", { name: "Cancel this run" }).click();
  await otherSidebar.getByRole("button", { name: "Yes, end it" }).click();
  await one.waitForText(oneSidebar, "CANCELLED");
  fixture.model.release();
  // The other editor does not check the wire before a deploy.
  await one.page.bringToFront();
  await one.wire("agent", 2, "answer");
  await one.triangle("agent").waitFor();
  assert.deepEqual(await other.invalidNodes(), []);
}
