// Nothing is cut in silence: large texts, lines, flows and sums say what is left out, and how to see it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { eventually } from "../kit/wait.mjs";
import { LARGE_NODES, largeNodes } from "./large-flow.mjs";
import { openPage } from "./page.mjs";

/** A long word: the fake model may send an answer word by word. */
const WORD = `${"long".repeat(249)} `;
/** Longer than a page of a journal, and than the answer of a model may be. */
const LARGE_TEXT = `Begin. ${WORD.repeat(1_100)}The end.`;

export async function texts(t, browser, console) {
  const run = await console.ask("quick", LARGE_TEXT);
  const { page, main, check } = await openPage(t, browser, console, { path: `#/runs/${run}` });
  await main.getByRole("button", { name: "Show what was said" }).click();
  const prompt = main.getByRole("region", { name: "Question (what is new to the model)" });
  const length = () => prompt.locator("pre").evaluate((box) => box.textContent.length);
  await prompt.getByText("Only the beginning is shown. The whole text has 1.1 MB.").waitFor();
  await prompt.getByText("Characters 1 to 20,000 of 65,536.").waitFor();
  assert.equal(await length(), 20_000);
  await prompt.getByRole("button", { name: "Next part" }).click();
  await prompt.getByText("Characters 20,001 to 40,000 of 65,536.").waitFor();
  await prompt.getByRole("button", { name: "Read the whole text" }).click();
  await prompt.getByText("Only the beginning is shown").waitFor({ state: "detached" });
  await prompt.getByRole("button", { name: "Last part" }).click();
  await prompt.getByText(/^Characters 1,0\d\d,\d{3} to (1,0\d\d,\d{3}) of \1\.$/).waitFor();
  assert.match(await prompt.locator("pre").innerText(), /The end\./);
  // The page holds one part, however long the text is.
  assert.ok((await length()) <= 20_000);
  // A line of the journal that is longer than a page.
  await main.getByRole("tab", { name: "Journal" }).click();
  const said = main.getByText("This line has 1.1 MB; only its beginning is shown.");
  const line = main.locator("ol.journal > li");
  await eventually("the long line", async () => {
    const from = await line.first().getAttribute("value");
    const isThere = await said.isVisible();
    if (!isThere) {
      await main.getByRole("button", { name: "Later lines" }).click({ timeout: 2_000 });
      await main.locator(`ol.journal > li:first-child:not([value="${from}"])`).waitFor();
    }
    return isThere;
  });
  assert.equal(await line.count(), 1);
  await line.locator("summary").click();
  await main.getByText(/^Characters 1 to 20,000 of 1,0\d\d,\d{3}\.$/).waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), main.getByRole("tabpanel").getByRole("link", { name: "Journal" }).click()]);
  assert.ok(readFileSync(await download.path(), "utf8").includes(WORD.repeat(1_100)));
  await main.getByRole("button", { name: "Later lines" }).click();
  await line.nth(1).waitFor();
  check();
}

export async function largeAnswer(t, browser, console) {
  const answer = `Begin. ${WORD.repeat(300)}The end.`;
  console.model.setAnswers(answer);
  const run = await console.ask("book", "Tell");
  console.model.setAnswers(LARGE_TEXT);
  const failed = await console.ask("book", "Tell more");
  const { page, main, check } = await openPage(t, browser, console, { path: `#/runs/${run}` });
  await main.getByRole("button", { name: "Show what was said" }).click();
  const region = main.getByRole("region", { name: "Answer of the model" });
  await region.getByText(/^Only the beginning is shown\. The whole text has 299(\.\d)? kB\.$/).waitFor();
  await main.getByRole("tab", { name: "Result" }).click();
  const payload = main.getByRole("region", { name: "Payload" });
  await payload.getByText(`Characters 1 to 20,000 of ${answer.length.toLocaleString("en")}.`).waitFor();
  await payload.getByRole("button", { name: "Last part" }).click();
  await eventually("the end of it", async () => (await payload.locator("pre").innerText()).endsWith("The end."));
  // A larger one than a model may give fails, and the page says why.
  await page.evaluate((id) => (location.hash = `#/runs/${id}`), failed);
  await main.getByText(`the model's answer has ${LARGE_TEXT.length} bytes; 1048576 are allowed`).first().waitFor();
  check();
}

export async function flows(t, browser, console) {
  const { main, go, check } = await openPage(t, browser, console, { path: "#/flow/large" });
  const view = main.locator(".flow-view");
  const checkList = async () => {
    await view.getByText(`The flow has ${LARGE_NODES.toLocaleString("en")} nodes. More than 2,000 are shown as a list.`).waitFor();
    await view.getByText(`Nodes that are not in the list: ${LARGE_NODES - 2_000}. Node-RED shows all of them.`).waitFor();
    assert.equal(await view.locator("svg").count(), 0);
    const rows = view.locator("tbody tr");
    assert.equal(await rows.count(), 100);
    await view.getByText("Nodes that are shown: 100 of 2,000.").waitFor();
    await view.getByRole("button", { name: "Show more nodes" }).click();
    await eventually("more rows", async () => (await rows.count()) === 200);
    assert.ok(await view.getByRole("button", { name: "List" }).isDisabled());
  };
  await checkList();
  // A tab of a usual size is drawn.
  await main.getByLabel("Tab").selectOption("desk");
  await view.locator("svg").first().waitFor();
  await go("#/check");
  const nodes = largeNodes("http://127.0.0.1:1", "http://127.0.0.1:1/v1").filter(({ id, z }) => id === "large" || z === "large");
  await main.getByLabel("The flow as JSON").fill(JSON.stringify(nodes));
  await main.getByRole("button", { name: "Check the flow" }).click();
  await checkList();
  check();
}

/** The numbers of a table: by day, then by the name of the column. */
const readTable = (table) =>
  table.evaluate((box) => {
    const names = [...box.querySelectorAll("thead th")].map((cell) => cell.textContent).slice(1);
    return [...box.querySelectorAll("tbody tr")].map((row) => ({
      day: row.querySelector("th").textContent,
      values: [...row.querySelectorAll("td")].map((cell, index) => [names[index], Number(cell.textContent.replaceAll(",", ""))]),
    }));
  });

const MEASURES = {
  Runs: ({ runs }) => runs,
  Failures: ({ failed }) => failed,
  Calls: ({ calls }) => calls,
  "Tokens, without those from caches": ({ inputTokens, outputTokens, cachedTokens }) => inputTokens + outputTokens - cachedTokens,
  Cost: ({ cost = 0 }) => cost,
};

export async function sums(t, browser, console) {
  await console.ask("broken", "Fail");
  const today = new Date().toISOString().slice(0, 10);
  const { page, main, go, check } = await openPage(t, browser, console, { path: "#/usage?days=7" });
  for (const [by, measures] of [["agent", ["Runs", "Failures", "Tokens, without those from caches", "Cost"]], ["model", ["Tokens, without those from caches", "Cost"]], ["tool", ["Calls", "Failures"]]]) {
    await go(`#/usage?days=7&by=${by}`);
    const stats = (await console.request("GET", `/api/stats?from=${today}&to=${today}&by=${by}`)).json;
    const nameOf = ({ key, name }) => (key === "" ? "others" : (name ?? key));
    for (const measure of measures) {
      const valueOf = MEASURES[measure];
      const expected = stats.keys.map((key, index) => [nameOf(key), stats.rows.filter((row) => row.key === index).reduce((sum, row) => sum + valueOf(row), 0)]);
      const wanted = expected.filter(([, value]) => value > 0).map(([name, value]) => [name, Number(value.toFixed(9))]);
      const button = main.getByRole("button", { name: `Table: ${measure}`, exact: true });
      await eventually(`the sums by ${by}`, async () => (await main.getByRole("button", { name: "Download as CSV" }).count()) === 1 && (await button.count()) === (wanted.length > 0 ? 1 : 0));
      if (wanted.length === 0) {
        continue;
      }
      await button.click();
      const rows = await readTable(main.getByRole("table", { name: measure, exact: true }));
      const clean = (pairs) => pairs.map(([name, value]) => [name.replace(/\s+/g, " ").replace("\u202E", "⟨202E⟩"), value]);
      assert.deepEqual(rows, [{ day: today, values: clean(wanted) }], `${measure} by ${by}`);
      await button.click();
    }
    // The file has the sums of the sidecar, also those without a plot.
    const [download] = await Promise.all([page.waitForEvent("download"), main.getByRole("button", { name: "Download as CSV" }).click()]);
    const [head, ...lines] = readFileSync(await download.path(), "utf8").split("\r\n");
    assert.equal(head, `day,${by},runs,failed,calls,inputTokens,outputTokens,cachedTokens,cost,unpricedCalls,ms,instance`);
    const written = stats.rows.map((row) => [row.day, stats.keys[row.key].key || "other", row.runs, row.failed, row.calls, row.inputTokens, row.outputTokens, row.cachedTokens, row.cost ?? "", row.unpricedCalls ?? 0, row.ms, stats.keys[row.key].instance ?? ""].join(","));
    assert.deepEqual(lines, written);
    if (by === "agent") {
      assert.ok(stats.keys.some(({ key }) => key === ""), "there are more agents than keys");
      await main.getByRole("button", { name: "Table: Runs", exact: true }).waitFor();
      await main.locator("figure", { hasText: "Runs:" }).locator("ul.legend").getByText("others").waitFor();
    }
  }
  check();
}

export async function home(t, browser, console) {
  const count = async (query) => (await console.request("GET", `/api/runs?limit=1000&${query}`)).json.runs.length;
  const { main, check } = await openPage(t, browser, console, { path: "#/" });
  const failed = await count(`status=failed&since=${Date.now() - 86_400_000}`);
  await main.getByRole("link", { name: `Runs that failed in 24 hours: ${failed}` }).waitFor();
  // The large flow has more agents than the page shows.
  const { flows: tabs } = (await console.request("GET", "/api/flows")).json;
  const agents = tabs.flatMap((tab) => tab.agents).length;
  assert.equal(await main.locator("ul.agents > li").count(), 50);
  const more = main.getByRole("link", { name: `And ${agents - 50} more.` });
  assert.equal(await more.getAttribute("href"), "#/flow");
  await main.getByRole("link", { name: "All runs" }).waitFor();
  check();
}
