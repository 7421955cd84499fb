// Runs: the list, one run with its proof, calls that wait, and a sidecar that restarts under the page.

import assert from "node:assert/strict";

import { eventually } from "../kit/wait.mjs";
import { openPage } from "./page.mjs";

export async function proof(t, browser, console) {
  const run = await console.ask("sums", "What is 6 times 7, halved?");
  const { page, main, check } = await openPage(t, browser, console, { path: `#/runs/${run}` });
  await main.getByRole("heading", { level: 1, name: "Sums" }).waitFor();
  const tree = main.getByRole("tree");
  await tree.getByRole("treeitem", { name: /calculator/ }).first().waitFor();
  assert.equal(await tree.getByRole("treeitem").count(), 9);
  // The words are folded until someone opens them.
  assert.ok(!(await main.innerText()).includes("What is 6 times 7"));
  await main.getByRole("button", { name: "Replay" }).click();
  await main.getByText(/proved equal/i).waitFor();
  await page.keyboard.press("Escape");
  await main.getByRole("tab", { name: "Result" }).click();
  await main.getByText("It is 21.").first().waitFor();
  await main.getByRole("tab", { name: "Journal" }).click();
  await main.getByText(/run_started|started/).first().waitFor();
  check();
}

export async function difference(t, browser, console) {
  const run = await console.ask("sums", "Which byte has changed?");
  await console.changeByte("Which byte has changed?");
  const { main, check } = await openPage(t, browser, console, { path: `#/runs/${run}` });
  await main.getByRole("button", { name: "Replay" }).click();
  await main.getByText(/differ|damaged|does not contain what was written/i).first().waitFor();
  check();
}

export async function filters(t, browser, console) {
  const failed = await console.ask("prose", "Hello");
  const waiting = await console.ask("letters", "Write to Ada");
  await console.untilStatus(waiting, "waiting");
  const { page, main, check } = await openPage(t, browser, console, { path: "#/runs" });
  const rows = main.getByRole("row");
  await main.getByRole("button", { name: "Failed" }).click();
  await main.getByRole("link", { name: "Prose" }).first().waitFor();
  assert.match(page.url(), /status=failed|failed/);
  assert.equal(await rows.getByRole("link", { name: "Letters" }).count(), 0);
  // The address is the filter.
  await page.reload();
  await main.getByRole("link", { name: "Prose" }).first().waitFor();
  assert.equal(await rows.getByRole("link", { name: "Letters" }).count(), 0);
  await main.getByRole("button", { name: "Waiting" }).click();
  await main.getByRole("link", { name: "Letters" }).first().waitFor();
  await main.getByRole("button", { name: "Cancel what is filtered" }).click();
  await page.getByRole("dialog").getByRole("button", { name: /Yes, end/ }).click();
  await eventually("the run is cancelled", async () => (await console.request("GET", `/api/runs/${waiting}`)).json.summary.status === "failed");
  assert.equal((await console.request("GET", `/api/runs/${failed}`)).json.summary.status, "failed");
  check();
}

export async function inbox(t, browser, console) {
  const run = await console.ask("letters", "Write to Ada");
  await console.untilStatus(run, "waiting");
  const { page, main, check } = await openPage(t, browser, console, { path: "#/inbox", viewport: { width: 360, height: 740 } });
  await main.getByText("Dear Ada").first().waitFor();
  await main.getByRole("radio", { name: /did not|failed/i }).or(main.getByRole("button", { name: /did not|failed/i })).first().click();
  await main.locator("form").first().getByRole("button").last().click();
  await eventually("the run goes on", async () => (await console.request("GET", `/api/runs/${run}`)).json.summary.status !== "waiting");
  await page.getByText(/waits|nothing|no call/i).first().waitFor();
  check();
}

export async function restart(t, browser, console) {
  const before = await console.ask("sums", "Before");
  const { page, main, check } = await openPage(t, browser, console, { path: "#/runs" });
  const links = main.getByRole("link", { name: "Sums" });
  await links.first().waitFor();
  const count = await links.count();
  await console.kill();
  await page.getByText(/away/i).first().waitFor();
  await console.start();
  const after = await console.ask("sums", "After");
  assert.notEqual(before, after);
  // Still signed in, nothing missing or doubled.
  await eventually("the new run is shown once", async () => (await links.count()) === count + 1);
  check();
}
