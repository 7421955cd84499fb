// The waterfall of a long run: it fits its width, folds the time in which nothing ran, and reaches the end.

import assert from "node:assert/strict";

import { eventually } from "../kit/wait.mjs";
import { LONG_CALLS, LONG_ITERATIONS } from "./large-flow.mjs";
import { openPage } from "./page.mjs";

/** The rows of the long run: itself, its iterations, their model calls, one letter and the calculations. */
const ROWS = 1 + 2 * LONG_ITERATIONS + 1 + (LONG_ITERATIONS - 2) * LONG_CALLS;
/** The rows in view, and those drawn around them. */
const MAX_DRAWN_ROWS = 60;

/** The places of all bars, as shares of the width of their row. */
const barsOf = (tree) =>
  tree.locator(".redflow-row .redflow-bars").evaluateAll((charts) =>
    charts.map((chart) => {
      const whole = chart.getBoundingClientRect();
      const bars = [...chart.querySelectorAll("rect.redflow-bar")].map((bar) => bar.getBoundingClientRect());
      return bars.map(({ left, right }) => [(left - whole.left) / whole.width, (right - whole.left) / whole.width]);
    }),
  );

export async function longRun(t, browser, console) {
  await console.longEnded;
  for (const viewport of [{ width: 1280, height: 800 }, { width: 360, height: 740 }]) {
    const { page, main, check } = await openPage(t, browser, console, { path: `#/runs/${console.long}`, viewport });
    const tree = main.getByRole("tree");
    const letter = tree.getByRole("treeitem", { name: /reported later: the call happened/ });
    // At first the last iteration is in view.
    await tree.getByRole("treeitem", { name: /Model gives its answer/ }).waitFor();
    await tree.focus();
    await page.keyboard.press("Home");
    await letter.waitFor();
    // The wait for a person was longer than all the rest. It is folded, with its length.
    const said = await main.getByText("Pauses that are folded: 1, together").innerText();
    const [, seconds] = /together (\d+\.\d) s$/.exec(said);
    assert.ok(Number(seconds) >= 1, said);
    const waited = await letter.locator(".redflow-bar-waiting").evaluate((bar) => bar.getBoundingClientRect().width / bar.parentElement.getBoundingClientRect().width);
    assert.ok(waited < 0.1, `the wait takes ${waited} of the width`);
    const label = main.locator(".redflow-axis text");
    assert.equal(await label.innerText({ timeout: 1_000 }).catch(() => label.textContent()), `${seconds} s`);
    // All bars are within the width; the rest of the run is not squeezed.
    const checkBars = async () => {
      for (const bars of await barsOf(tree)) {
        assert.ok(bars.length > 0);
        assert.ok(bars.every(([from, to]) => from >= -0.001 && to <= 1.001), JSON.stringify(bars));
      }
      const overflow = await tree.evaluate((box) => box.scrollWidth - box.clientWidth);
      assert.equal(overflow, 0, "nothing to scroll sideways");
    };
    await checkBars();
    const rows = tree.getByRole("treeitem");
    assert.ok((await rows.count()) < MAX_DRAWN_ROWS, "only the rows in view are drawn");
    // The end can be reached.
    await tree.focus();
    await page.keyboard.press("End");
    const last = tree.getByRole("treeitem", { selected: true });
    await eventually("the last row", async () => /Model gives its answer/.test(await last.innerText()));
    assert.ok((await rows.count()) < MAX_DRAWN_ROWS);
    await checkBars();
    const end = (await last.locator("rect.redflow-bar").evaluate((bar) => bar.getBoundingClientRect().right / bar.parentElement.getBoundingClientRect().right));
    assert.ok(end > 0.98, `the last bar ends at ${end}`);
    const height = await tree.evaluate((box) => box.scrollHeight);
    const rowHeight = await last.evaluate((row) => row.getBoundingClientRect().height);
    assert.equal(Math.round(height / rowHeight), ROWS);
    assert.equal(await main.getByText(/Not shown, because there are too many/).count(), 0);
    check();
  }
}

export async function longJournal(t, browser, console) {
  await console.longEnded;
  const { page, main, check } = await openPage(t, browser, console, { path: `#/runs/${console.long}?tab=journal` });
  const requests = [];
  page.on("request", (request) => requests.push(new URL(request.url()).pathname));
  const lines = (await console.journal(console.long)).trimEnd().split("\n");
  assert.ok(lines.length > 300);
  const items = main.locator("ol.journal > li");
  for (const from of [1, 51, 101]) {
    await main.getByText(`Lines ${from} to ${from + 49} of ${lines.length}.`).waitFor();
    assert.equal(await items.count(), 50);
    assert.equal(await items.first().getAttribute("value"), String(from));
    await main.getByRole("button", { name: "Later lines" }).click();
  }
  await main.getByRole("button", { name: "Earlier lines" }).click();
  await main.getByText(`Lines 101 to 150 of ${lines.length}.`).waitFor();
  // A line opens in place, and is the line of the file.
  await main.getByRole("button", { name: "Show what was said" }).click();
  await items.first().locator("summary").click();
  const opened = await items.first().locator("pre").innerText();
  assert.deepEqual(JSON.parse(opened), JSON.parse(lines[100]));
  assert.ok(requests.every((path) => !path.endsWith("/journal") || path.includes(console.long)));
  check();
}
