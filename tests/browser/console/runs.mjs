// Runs: the list, one run with its proof, calls that wait, and a sidecar that restarts under the page.

import assert from "node:assert/strict";

import { eventually } from "../kit/wait.mjs";
import { openPage } from "./page.mjs";

export async function proof(t, browser, console) {
  const run = await console.ask("sums", "What is 6 times 7, halved?");
  const { main, check } = await openPage(t, browser, console, { path: `#/runs/${run}` });
  await main.getByRole("heading", { level: 1, name: "Sums" }).waitFor();
  const tree = main.getByRole("tree");
  await tree.getByRole("treeitem", { name: /calculator/ }).first().waitFor();
  assert.equal(await tree.getByRole("treeitem").count(), 9);
  // The words are folded until someone opens them.
  assert.ok(!(await main.innerText()).includes("What is 6 times 7"));
  const { facts, effects } = (await console.request("POST", `/api/runs/${run}/replay`)).json;
  assert.ok(facts > 0 && effects > 0);
  await main.getByRole("button", { name: "Replay" }).click();
  await main.getByText(`Proved equal: ${facts} facts, ${effects} effects.`).waitFor();
  await main.getByRole("tab", { name: "Result" }).click();
  await main.getByRole("button", { name: "Show what was said" }).click();
  await main.getByRole("region", { name: "Payload" }).getByText("It is 21.", { exact: true }).waitFor();
  await main.getByRole("tab", { name: "Journal" }).click();
  const lines = (await console.journal(run)).trimEnd().split("\n");
  await main.getByText(`Lines 1 to ${lines.length} of ${lines.length}.`).waitFor();
  assert.equal(await main.locator("ol.journal > li").count(), lines.length);
  check();
}

export async function difference(t, browser, console) {
  const run = await console.ask("sums", "Which byte has changed?");
  await console.changeByte("Which byte has changed?");
  // What `redflow replay` prints, the page says too.
  const printed = console.replay(run);
  assert.equal(printed.status, 1, printed.text);
  const [, code, sentence] = /^error\[(\w+)\]: (.+)$/m.exec(printed.text);
  assert.equal(code, "DATA_CORRUPT");
  const { main, check } = await openPage(t, browser, console, { path: `#/runs/${run}` });
  await main.locator(".facts .badge", { hasText: "damaged" }).waitFor();
  const proof = main.getByRole("region", { name: "Proof" });
  await proof.getByRole("button", { name: "Replay" }).click();
  const [, facts, effects] = /^damaged: (\d+) facts? and (\d+) effects? /m.exec(printed.text);
  await proof.getByText(`Damaged: ${facts} facts and ${effects} effects are proved equal`).waitFor();
  const [, line, message] = /^different: line (\d+)[^:]*: (.+)$/m.exec(printed.text);
  await proof.getByText(`Line ${line}: ${message}`).waitFor();
  await proof.locator(".problem").getByText(sentence, { exact: true }).waitFor();
  assert.equal(await proof.locator(".problem code").first().innerText(), code);
  assert.equal(await proof.locator(".proved").count(), 0);
  await main.getByRole("tab", { name: "Journal" }).click();
  await main.getByRole("tabpanel").getByText(sentence, { exact: true }).waitFor();
  check();
}

export async function inbox(t, browser, console) {
  const run = await console.ask("letters", "Write to Ada");
  await console.untilStatus(run, "waiting");
  const { page, main, check } = await openPage(t, browser, console, { path: "#/inbox", viewport: { width: 360, height: 740 } });
  const card = main.getByRole("listitem").filter({ has: page.locator(`a[href="#/runs/${run}"]`) });
  await card.getByText("Dear Ada").waitFor();
  await card.getByText("Did the call of http_request happen?").waitFor();
  // No answer is preselected.
  assert.ok(await card.getByRole("button", { name: "Answer and continue the run" }).isDisabled());
  await card.getByRole("radio", { name: "It did not happen", exact: true }).check();
  await card.getByLabel("The reason, for the model (optional)").fill("The post office is closed");
  await card.getByRole("button", { name: "Answer and continue the run" }).click();
  await page.getByText("Answered. The run continues.").waitFor();
  await card.waitFor({ state: "detached" });
  await console.untilStatus(run, "completed");
  const { result, calls } = (await console.request("GET", `/api/runs/${run}`)).json;
  assert.equal(result.payload, "It is posted.");
  assert.deepEqual(calls.map(({ tool, result: { success, error } }) => [tool, success, error]), [["http_request", false, "the call did not happen: The post office is closed"]]);
  check();
}

export async function restart(t, browser, console) {
  await console.ask("sums", "Before");
  const { page, main, check } = await openPage(t, browser, console, { path: "#/runs" });
  const table = main.getByRole("table", { name: "Runs" });
  const shown = () => table.locator("a.row-link").evaluateAll((links) => links.map((link) => link.getAttribute("href").replace("#/runs/", "")));
  await table.getByRole("link", { name: "Sums" }).first().waitFor();
  const before = await console.allIds();
  assert.ok(before.length < 100, "one page has them all");
  await page.setViewportSize({ width: 1280, height: 5_000 });
  await eventually("all rows are drawn", async () => (await shown()).length === before.length);
  assert.deepEqual((await shown()).toSorted(), before.toSorted());
  await console.kill();
  await page.getByText(/^Offline since /).waitFor();
  // What was read stays, what would change something is off.
  assert.equal((await shown()).length, before.length);
  assert.ok(await main.getByRole("button", { name: "Cancel what is filtered" }).isDisabled());
  await console.start();
  const after = await console.ask("sums", "After");
  // Still signed in; nothing is missing or doubled.
  await eventually("the new run is shown", async () => (await shown()).includes(after));
  assert.deepEqual((await shown()).toSorted(), (await console.allIds()).toSorted());
  assert.equal((await shown()).length, before.length + 1);
  await page.getByText(/^Offline since /).waitFor({ state: "detached" });
  assert.ok(await main.getByRole("button", { name: "Cancel what is filtered" }).isEnabled());
  check();
}
