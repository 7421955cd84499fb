// Lists: pages instead of the whole history, rows that wait while a user reads, child runs in their place, and one-key filters.

import assert from "node:assert/strict";

import { eventually } from "../kit/wait.mjs";
import { CHILDREN } from "./large-flow.mjs";
import { openPage } from "./page.mjs";

/** The most elements of a page, however long its list is. */
const MAX_ELEMENTS = 2_000;

const elementsOf = (page) => page.evaluate(() => document.querySelectorAll("*").length);

/** The ids of the rows that are drawn, from top to bottom. */
/** The numbers and the ids of the rows that are drawn: those in view, and the focused one wherever it is. */
const drawnRows = (table) =>
  table
    .locator('.rows-body [role="row"]')
    .evaluateAll((rows) =>
      rows.map((row) => [Number(row.getAttribute("aria-rowindex")), row.querySelector("a")?.getAttribute("href")?.replace("#/runs/", "") ?? row.textContent.trim()]),
    );

/** Their ids, from top to bottom. */
const drawnIds = async (table) => (await drawnRows(table)).sort(([a], [b]) => a - b).map(([, id]) => id);

/** Whether the rows of a table cover its view. */
const isViewDrawn = (box) => {
  const rows = [...box.querySelectorAll('.rows-body [role="row"]')].map((row) => row.getBoundingClientRect());
  const [view, body] = [box.getBoundingClientRect(), box.querySelector(".rows-body").getBoundingClientRect()];
  const [top, bottom] = [Math.min(...rows.map((row) => row.top)), Math.max(...rows.map((row) => row.bottom))];
  return top <= Math.max(view.top, body.top) + 1 && bottom >= Math.min(view.bottom, body.bottom) - 1;
};

/** Scrolls through a table and gives the ids of all its rows in order. `onStep` is called at each stop. */
async function scrollThrough(table, onStep = async () => undefined) {
  const ids = new Map();
  await table.evaluate((box) => (box.scrollTop = 0));
  for (let isEnd = false; !isEnd; ) {
    await table.page().waitForTimeout(60);
    await eventually("the rows in view are drawn", () => table.evaluate(isViewDrawn));
    for (const [number, id] of await drawnRows(table)) {
      ids.set(id, number);
    }
    await onStep();
    isEnd = await table.evaluate((box) => {
      const before = box.scrollTop;
      box.scrollTop += box.clientHeight;
      return box.scrollTop === before;
    });
  }
  return [...ids].sort(([, a], [, b]) => a - b).map(([id]) => id);
}

const shown = (main, n) => main.getByText(`Shown: ${n}.`, { exact: false }).waitFor();

export async function pages(t, browser, console) {
  const all = await console.allIds();
  assert.ok(all.length > 200, `${all.length} runs`);
  const { page, main, check } = await openPage(t, browser, console, { path: "#/settings" });
  await main.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
  const requests = [];
  page.on("request", (request) => requests.push(new URL(request.url())));
  await page.evaluate(() => (location.hash = "#/runs"));
  const table = main.getByRole("table", { name: "Runs" });
  await shown(main, 100);
  assert.equal(await table.getAttribute("aria-rowcount"), "101");
  // The menu counts the runs that wait.
  const isList = ({ pathname, searchParams }) => pathname === "/api/runs" && searchParams.get("status") !== "waiting";
  const lists = () => requests.filter(isList).map(({ searchParams }) => Object.fromEntries(searchParams));
  assert.deepEqual(lists(), [{ limit: "100" }], "one page is read at first");
  const ids = await scrollThrough(table, async () => assert.ok((await elementsOf(page)) < MAX_ELEMENTS));
  assert.deepEqual(ids, all, "every run once, in the sidecar's order");
  await shown(main, all.length);
  assert.equal(lists().length, Math.ceil(all.length / 100));
  assert.ok(lists().every(({ limit }) => limit === "100"));
  check();
}

export async function searchedTo(t, browser, console) {
  const { page, main, check } = await openPage(t, browser, console);
  // A search stops after 20 000 runs that do not match. Here it stops after each page of the real answer.
  let stops = 0;
  await page.route("**/api/runs?*", async (route) => {
    const response = await route.fetch();
    const json = await response.json();
    stops += 1;
    await route.fulfill({ response, json: json.next === undefined ? json : { ...json, searchedTo: Date.UTC(2026, 4, 3, 12) } });
  });
  await page.evaluate(() => (location.hash = "#/runs?agent=quick"));
  await shown(main, 100);
  await main.getByText("Searched back to May 3, 2026").waitFor();
  await main.getByRole("table", { name: "Runs" }).evaluate((box) => (box.scrollTop = box.scrollHeight));
  await page.waitForTimeout(300);
  await shown(main, 100);
  const before = stops;
  await main.getByRole("button", { name: "Go on" }).click();
  await shown(main, (await console.allIds("&agent=quick")).length);
  assert.ok(stops > before);
  assert.equal(await main.getByRole("button", { name: "Go on" }).count(), 0);
  check();
}

export async function newRows(t, browser, console) {
  const { page, main, check } = await openPage(t, browser, console, { path: "#/runs" });
  const table = main.getByRole("table", { name: "Runs" });
  const top = async () => (await drawnIds(table))[0];
  await page.mouse.move(5, 5);
  await shown(main, 100);
  const fresh = main.getByRole("button", { name: /^\d+ new$/ });
  // At rest, rows come by themselves.
  const first = await console.ask("quick", "By itself");
  await eventually("the new row", async () => (await top()) === first);
  assert.equal(await fresh.count(), 0);
  // While a row is pointed at, nothing moves.
  await table.getByRole("row").nth(3).hover();
  await console.ask("quick", "Wait");
  const last = await console.ask("quick", "Wait too");
  await main.getByRole("button", { name: "2 new", exact: true }).waitFor();
  assert.equal(await top(), first);
  await page.mouse.move(5, 5);
  await eventually("the rows that waited", async () => (await top()) === last);
  assert.equal(await fresh.count(), 0);
  // While scrolled, too. More than a page of runs begins meanwhile: none is left out afterwards.
  await table.evaluate((box) => (box.scrollTop = 44 * 90));
  await eventually("the next page", async () => Number(await table.getAttribute("aria-rowcount")) > 150);
  const before = await drawnIds(table);
  await console.fill(112);
  await main.getByRole("button", { name: "112 new", exact: true }).waitFor();
  assert.deepEqual(await drawnIds(table), before);
  await fresh.click();
  await page.mouse.move(5, 5);
  const all = await console.allIds();
  await eventually("the newest row is on top", async () => (await top()) === all[0]);
  assert.equal(await fresh.count(), 0);
  assert.deepEqual(await scrollThrough(table), all);
  check();
}

export async function children(t, browser, console) {
  const { runs } = (await console.request("GET", `/api/runs/${console.crowd}/tree?limit=500`)).json;
  const ids = runs.map(({ run }) => run.runId);
  const { page, main, go, check } = await openPage(t, browser, console, { path: "#/runs?roots=true" });
  const table = main.getByRole("table", { name: "Runs" });
  const count = () => table.getAttribute("aria-rowcount").then(Number);
  await main.getByText("Shown: 100.").waitFor();
  assert.deepEqual(await scrollThrough(table), await console.allIds("&roots=true"), "no child drowns its parent");
  await go("#/runs?agent=crowd");
  const button = main.getByRole("button", { name: `Child runs: ${CHILDREN}` });
  await button.click();
  await eventually("the first children", async () => (await count()) === 1 + 1 + 50 + 1);
  assert.equal(await button.getAttribute("aria-expanded"), "true");
  await table.evaluate((box) => (box.scrollTop = box.scrollHeight));
  await main.getByRole("button", { name: "More child runs" }).click();
  await eventually("all children", async () => (await count()) === 1 + 1 + CHILDREN);
  // The button has gone. Its neighbour gets the focus, and is scrolled into view.
  await eventually("a row has the focus", () => table.evaluate((box) => box.contains(document.activeElement)));
  assert.deepEqual(await scrollThrough(table), [console.crowd, ...ids]);
  await table.evaluate((box) => (box.scrollTop = 0));
  await button.click();
  await eventually("folded", async () => (await count()) === 2);
  // The timeline of the parent reaches all of them.
  await go(`#/runs/${console.crowd}`);
  const tree = main.getByRole("tree");
  await tree.getByRole("treeitem", { name: "Run of Child 1: answered" }).waitFor();
  await tree.focus();
  await page.keyboard.press("End");
  const chosen = tree.getByRole("treeitem", { selected: true });
  await eventually("the last row", async () => /^Run of Child \d+: answered/.test(await chosen.innerText()));
  const name = /Child \d+/.exec(await chosen.innerText())[0];
  await page.keyboard.press("Enter");
  await main.getByRole("heading", { level: 1, name, exact: true }).waitFor();
  await main.getByRole("link", { name: console.crowd.slice(0, 13) }).click();
  await main.getByRole("heading", { level: 1, name: "Crowd" }).waitFor();
  check();
}

export async function quickFilters(t, browser, console) {
  const [one, other] = [await console.ask("letters", "Write to Ada"), await console.ask("letters", "Write to Bob")];
  const failed = await console.ask("prose", "Hello");
  for (const run of [one, other]) {
    await console.untilStatus(run, "waiting");
  }
  const { page, main, check } = await openPage(t, browser, console, { path: "#/runs" });
  const table = main.getByRole("table", { name: "Runs" });
  const statuses = { 2: "running,interrupted,waiting", 3: "waiting", 4: "failed", 1: "" };
  await table.waitFor();
  for (const key of [2, 3, 4, 1]) {
    await page.keyboard.press(String(key));
    const wanted = statuses[key];
    const ids = await console.allIds(wanted === "" ? "" : `&status=${wanted}`);
    await eventually(`the runs of the key ${key}`, async () => JSON.stringify(await scrollThrough(table)) === JSON.stringify(ids));
    assert.equal(new URLSearchParams(new URL(page.url()).hash.split("?")[1]).get("status") ?? "", wanted);
    const pressed = main.getByRole("group", { name: "State" }).getByRole("button", { pressed: true });
    assert.equal(await pressed.innerText(), { 1: "All", 2: "In flight", 3: "Waiting", 4: "Failed" }[key]);
  }
  // What is filtered is cancelled, and nothing else.
  await page.keyboard.press("3");
  await main.getByLabel("Beginning of the run id").fill(one);
  await page.keyboard.press("Enter");
  await eventually("one row", async () => (await table.getAttribute("aria-rowcount")) === "2");
  assert.deepEqual(await drawnIds(table), [one]);
  // The address is the filter.
  await page.reload();
  await eventually("the same row", async () => JSON.stringify(await drawnIds(table)) === JSON.stringify([one]));
  await main.getByRole("button", { name: "Cancel what is filtered" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Runs of this filter that have not ended: 1.").waitFor();
  await dialog.getByRole("button", { name: "Yes, end 1" }).click();
  await page.getByText("Cancelled: 1. Not cancelled: 0.").waitFor();
  const summary = async (run) => (await console.request("GET", `/api/runs/${run}?only=summary`)).json;
  assert.deepEqual([(await summary(one)).status, (await summary(one)).code], ["failed", "CANCELLED"]);
  assert.equal((await summary(other)).status, "waiting");
  assert.notEqual((await summary(failed)).code, "CANCELLED");
  check();
}
