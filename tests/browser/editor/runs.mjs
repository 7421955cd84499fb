// What an agent does and did: the tab Runtime / Debug, the tab Errors, and the sidebar, with runs that wait where they are told to.

import assert from "node:assert/strict";

import { contrasts, readable } from "../kit/contrast.mjs";
import { eventually } from "../kit/wait.mjs";
import { calls, desk, says } from "./flows.mjs";

/** Waits until the model was asked once more and its answer waits. */
const thinking = (stage) => eventually("the model is asked", () => stage.model.waiting() === 1);

const step = (place, iteration) => place.getByRole("listitem", { name: `Iteration ${iteration}`, exact: true });

export async function aSlowRun(stage, t) {
  const editor = await stage.with(t, desk(stage));
  const sums = [calls("calculator", { expression: "6 * 7" }, 0.35), calls("calculator", { expression: "42 / 2" }, 0.7)];
  stage.model.says(...sums, says("It is 21.", 0.95));
  stage.model.hold();
  await editor.press("ask");
  await thinking(stage);
  const tray = await editor.open("agent");
  await tray.getByRole("tab", { name: "Runtime / Debug" }).click();
  // The run is at its first question, and that is shown.
  await editor.reads(step(tray, 1), "Model is being asked");
  assert.equal(await step(tray, 2).count(), 0);
  await editor.picture("run-begins");
  stage.model.letGo(1);
  await thinking(stage);
  await editor.reads(step(tray, 1), /Model wants\s+calculator/);
  await editor.reads(step(tray, 1), /calculator\s+gave its result/);
  await editor.reads(step(tray, 2), "Model is being asked");
  // What was opened stays open while more comes.
  await step(tray, 1).getByText(/what the tool gave/i).click();
  await editor.reads(step(tray, 1), "42");
  stage.model.letGo(1);
  await thinking(stage);
  await editor.reads(step(tray, 3), "Model is being asked");
  await editor.reads(tray.getByRole("status"), "Iteration 3: the model is being asked");
  assert.equal(await step(tray, 1).getByText(/what the tool gave/i).locator("..").evaluate((one) => one.open), true);
  await editor.picture("run-goes-on");
  stage.model.letGo(1);
  await editor.reads(tray.getByRole("tabpanel"), /Answered · iterations: 3/);
  const chart = tray.getByRole("img", { name: /Confidence per iteration/ });
  assert.match(await chart.locator("title").first().textContent(), /1: 0.35, 2: 0.70, 3: 0.95/);
  assert.equal(await chart.locator("rect").count(), 3);
  await editor.reads(tray.getByRole("tabpanel"), "Iteration 3: the model has answered");
  await step(tray, 1).getByText("What the model was told").click();
  await editor.reads(step(tray, 1), "What is 6 times 7?");
  await editor.picture("run-ends");
  // A newer run is followed.
  stage.model.says(says("At once."));
  stage.model.release();
  await stage.red.ask("/inject/ask", {});
  await editor.reads(tray.getByRole("tabpanel"), /Answered · iterations: 1/);
  await editor.cancel();
}

export async function whatWentWrong(stage, t) {
  const editor = await stage.with(t, desk(stage, { maxIterations: 2 }));
  const wrongs = [
    ["INVALID_JSON", "I would rather talk than write JSON."],
    ["TOOL_NOT_ALLOWED", calls("shell", { command: "rm" })],
    ["ITERATION_OVERFLOW", calls("calculator", { expression: "1 + 1" })],
  ];
  for (const [code, answer] of wrongs) {
    stage.model.says(answer);
    await editor.press("ask");
    await editor.reads(editor.node("agent").locator(".red-ui-flow-node-status-label"), code);
  }
  const tray = await editor.open("agent");
  await tray.getByRole("tab", { name: "Errors" }).click();
  const rows = tray.getByRole("tabpanel").getByRole("group");
  await eventually("three errors", async () => (await rows.count()) === 3);
  const heads = await rows.locator("summary").allInnerTexts();
  // The newest first.
  [...wrongs].reverse().forEach(([code], place) => assert.ok(heads[place].includes(code), `${code} in ${heads[place]}`));
  assert.match(await tray.getByRole("tab", { name: /Errors/ }).innerText(), /3/);
  // The newest is open, and says what to do.
  await editor.reads(rows.first(), "What to do");
  await editor.picture("errors");
  for (const [place, words] of [[1, /allowed/i], [2, /JSON/]]) {
    await rows.nth(place).locator("summary").click();
    await editor.reads(rows.nth(place), "What to do");
    await editor.reads(rows.nth(place), words);
  }
  await editor.picture("errors-open");
  await rows.first().getByRole("button", { name: "Show the run" }).click();
  await editor.reads(tray.locator("[role=tab][aria-selected=true]"), "Runtime / Debug");
  await editor.reads(tray.getByRole("tabpanel"), "ITERATION_OVERFLOW");
}

export async function cancelled(stage, t) {
  const editor = await stage.with(t, desk(stage));
  stage.model.says(says("Too late."));
  stage.model.hold();
  await editor.press("ask");
  await thinking(stage);
  const sidebar = await editor.sidebar();
  await editor.reads(sidebar, /Connected, Redflow \d/);
  await editor.reads(sidebar, "Wires checked: all well");
  await sidebar.getByRole("button", { name: "Running", exact: true }).click();
  const runs = sidebar.getByRole("list", { name: "Runs" }).getByRole("listitem");
  await eventually("one run is at work", async () => (await runs.count()) === 1);
  await editor.reads(runs, /Desk\s+running/);
  await editor.picture("sidebar");
  await runs.getByRole("button", { name: /Desk/ }).click();
  await editor.reads(sidebar, "Model is being asked");
  await sidebar.getByRole("button", { name: "Cancel this run" }).click();
  await editor.picture("sidebar-cancel");
  await sidebar.getByRole("button", { name: "Yes, end it" }).click();
  await editor.reads(sidebar, /failed/i);
  await editor.reads(sidebar, "CANCELLED");
  stage.model.release();
  await editor.picture("sidebar-cancelled");
  readable(await contrasts(sidebar), "a run that was cancelled");
  assert.equal(await sidebar.getByRole("button", { name: "Cancel this run" }).count(), 0);
  await sidebar.getByRole("button", { name: "All runs" }).click();
  await editor.reads(sidebar, "No agent is at work now.");
}

export async function resolved(stage, t) {
  const editor = await stage.with(t, desk(stage));
  stage.model.says(calls("send_mail", { to: "desk@example.com", text: "Tea is ready." }), says("The mail is out."));
  await editor.press("ask");
  const sidebar = await editor.sidebar();
  await sidebar.getByRole("button", { name: "Waiting", exact: true }).click();
  const runs = sidebar.getByRole("list", { name: "Runs" }).getByRole("listitem");
  await eventually("one run waits", async () => (await runs.count()) === 1);
  await editor.reads(runs, /Desk\s+waits for a person/);
  await runs.getByRole("button", { name: /Desk/ }).click();
  // The call is shown whole.
  await editor.reads(sidebar, /Did the call of\s+send_mail\s+happen\?/);
  await editor.reads(sidebar, '"text": "Tea is ready."');
  await editor.picture("sidebar-waiting");
  readable(await contrasts(sidebar), "a run that waits");
  const answer = sidebar.getByRole("button", { name: "Answer, and let the run go on" });
  assert.equal(await answer.isEnabled(), false, "nothing is chosen beforehand");
  await sidebar.getByLabel("It happened").check();
  await sidebar.getByLabel(/What it gave/).fill("{ no JSON");
  await answer.click();
  await editor.reads(sidebar.getByRole("alert"), "This is not JSON");
  await sidebar.getByLabel(/What it gave/).fill('{"sent": true}');
  await answer.click();
  await editor.reads(sidebar, /Answered · iterations: 2/);
  assert.ok(JSON.stringify(stage.model.asked.at(-1)).includes("sent"), "the model is told");
  await editor.picture("sidebar-resolved");
}

export async function twoEditors(stage, t) {
  const one = await stage.with(t, desk(stage));
  const other = await stage.open(t);
  stage.model.says(says("Too late."));
  stage.model.hold();
  const [mine, theirs] = [await one.sidebar(), await other.sidebar()];
  await one.page.bringToFront();
  await one.press("ask");
  await thinking(stage);
  for (const [editor, sidebar] of [[one, mine], [other, theirs]]) {
    await editor.page.bringToFront();
    await sidebar.getByRole("button", { name: "Running", exact: true }).click();
    await editor.reads(sidebar.getByRole("listitem"), /Desk\s+running/);
  }
  await one.page.bringToFront();
  await mine.getByRole("listitem").getByRole("button", { name: /Desk/ }).click();
  await one.reads(mine, "Model is being asked");
  await other.page.bringToFront();
  await theirs.getByRole("listitem").getByRole("button", { name: /Desk/ }).click();
  await theirs.getByRole("button", { name: "Cancel this run" }).click();
  await theirs.getByRole("button", { name: "Yes, end it" }).click();
  await one.reads(mine, "CANCELLED");
  stage.model.release();
  // A wire of the one is not judged in the other, until it is deployed there.
  await one.page.bringToFront();
  await one.wire("agent", 2, "answer");
  await one.triangle("agent").waitFor();
  assert.deepEqual(await other.invalid(), []);
}
