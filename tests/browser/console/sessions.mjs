// Sessions that end, two tabs of one browser, a hidden tab, and a console that was updated under an open page.

import assert from "node:assert/strict";
import { appendFileSync, cpSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { serve } from "../kit/sidecar.mjs";
import { eventually } from "../kit/wait.mjs";
import { openPage } from "./page.mjs";

const HIDDEN_MS = 60_000;

export async function ended(t, browser, console) {
  const run = await console.ask("sums", "Before the end");
  const heading = (page, name) => page.getByRole("main").getByRole("heading", { level: 1, name });
  const signIn = async (page) => {
    await page.getByLabel("Token").fill(console.token);
    await page.keyboard.press("Enter");
  };
  /** What a page does when its token was removed. */
  const cases = [
    // It reads another page.
    { path: "#/runs?status=completed", ready: "[data-entry]", act: (page) => page.getByRole("link", { name: "Tools" }).click(), is: [/#\/tools$/, "Tools"] },
    // It acts.
    { path: `#/runs/${run}?tab=journal`, ready: "details", act: (page) => page.getByRole("button", { name: "Replay" }).click(), is: [new RegExp(`#/runs/${run}\\?tab=journal$`), "Sums"] },
    // It is loaded again.
    { path: "#/usage?by=model", ready: ".plot", act: (page) => page.reload(), is: [/#\/usage\?by=model$/, "Usage"] },
  ];
  for (const [index, { path, ready, act, is: [address, name] }] of cases.entries()) {
    const token = await console.tokenWith(`removed-${index}`, "run");
    const { page, check } = await openPage(t, browser, console, { token, path });
    await page.getByRole("main").locator(ready).first().waitFor();
    assert.equal((await console.request("DELETE", `/api/tokens/removed-${index}`)).status, 204);
    await act(page);
    await page.getByLabel("Token").waitFor();
    assert.match(page.url(), address);
    await signIn(page);
    await heading(page, name).waitFor();
    assert.match(page.url(), address);
    check();
  }
}

export async function twoTabs(t, browser, console) {
  const [cancelled, resolved] = [await console.ask("letters", "To cancel"), await console.ask("letters", "To resolve")];
  await console.untilStatus(cancelled, "waiting");
  await console.untilStatus(resolved, "waiting");
  const one = await openPage(t, browser, console, { path: "#/runs" });
  const page = await one.context.newPage();
  await page.goto(`${console.url()}/#/runs/${cancelled}`);
  const main = page.getByRole("main");
  await one.page.evaluate(() => (window.isSame = true));
  // A run is cancelled in one tab.
  const row = (id) => one.main.getByRole("row").filter({ has: one.page.locator(`a[href="#/runs/${id}"]`) });
  await row(cancelled).getByText("waits for a person").waitFor();
  await main.getByRole("button", { name: "Cancel this run" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Yes, end it" }).click();
  await row(cancelled).getByText("failed").waitFor();
  // A run begins.
  const { length: before } = (await console.request("GET", "/api/runs?limit=200")).json.runs;
  await main.getByRole("button", { name: "Ask again" }).click();
  await page.getByRole("dialog").getByRole("textbox").fill("From the other tab");
  await page.getByRole("dialog").getByRole("button", { name: "Ask", exact: true }).click();
  await eventually("the address is that of the new run", () => !page.url().includes(cancelled));
  const begun = page.url().split("/").at(-1);
  await row(begun).waitFor();
  assert.equal((await console.request("GET", "/api/runs?limit=200")).json.runs.length, before + 1);
  // Both resolve one call: the first answer holds, the second tab says so.
  await one.go(`#/runs/${resolved}`);
  await page.evaluate((id) => (location.hash = `#/runs/${id}`), resolved);
  const forms = [one.main, main].map((tab) => tab.locator("form.redflow-resolve"));
  for (const form of forms) {
    await form.getByRole("radio").first().check();
  }
  let release;
  const held = new Promise((resolve) => (release = resolve));
  await one.page.route("**/resolve", async (route) => {
    await held;
    await route.continue();
  });
  await forms[0].getByRole("button").last().click();
  await forms[1].getByRole("button").last().click();
  await console.untilStatus(resolved, "completed");
  // The first tab sees the end of the run, then the refusal of its own answer.
  await forms[0].waitFor({ state: "detached" });
  release();
  await one.page.getByText(/RUN_\w+: .+/).waitFor();
  assert.ok(await one.page.evaluate(() => window.isSame), "without a reload");
  one.check();
  await console.request("POST", `/api/runs/${begun}/cancel`, {});
}

export async function hidden(t, browser, console) {
  await console.ask("sums", "Before it is hidden");
  const context = await browser.newContext();
  t.after(() => context.close());
  const page = await context.newPage();
  const sockets = [];
  page.on("websocket", (socket) => {
    const seen = { isClosed: false, received: "" };
    socket.on("close", () => (seen.isClosed = true));
    socket.on("framereceived", ({ payload }) => (seen.received += payload));
    sockets.push(seen);
  });
  await page.clock.install();
  const setHidden = (isHidden) =>
    page.evaluate((isHidden) => {
      Object.defineProperty(document, "hidden", { value: isHidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, isHidden);
  await page.goto(`${console.url()}${await console.signInPath()}#/runs`);
  const links = page.getByRole("main").locator("[data-entry]");
  await links.first().waitFor();
  const count = async () => Number(await page.getByRole("table", { name: "Runs" }).getAttribute("aria-rowcount"));
  const before = await count();
  const open = () => sockets.filter(({ isClosed }) => !isClosed);
  await eventually("one socket is open", () => open().length === 1);
  const last = await console.ask("sums", "Seen, so that there is a cursor");
  await page.locator(`a[href="#/runs/${last}"]`).waitFor();
  await setHidden(true);
  await page.clock.fastForward(HIDDEN_MS - 5_000);
  assert.equal(open().length, 1, "it stays connected for a while");
  await page.clock.fastForward(10_000);
  await eventually("the socket is closed", () => open().length === 0);
  const meanwhile = await console.ask("sums", "While it is hidden");
  await setHidden(false);
  await page.locator(`a[href="#/runs/${meanwhile}"]`).waitFor();
  assert.equal(await count(), before + 2, "nothing is missing or doubled");
  // Resumed at the cursor: the new socket brings what happened without one.
  await eventually("the missed event comes", () => open()[0]?.received.includes(meanwhile));
}

export async function updated(t, browser) {
  // The binary may have this folder embedded; here it is one that can change.
  const built = process.env.REDFLOW_CONSOLE ?? fileURLToPath(new URL("../../../console/dist/", import.meta.url));
  assert.ok(existsSync(join(built, "console.js")), `${built} has no console: run \`cargo xtask console\``);
  const folder = mkdtempSync(join(tmpdir(), "redflow-console-files-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  cpSync(built, folder, { recursive: true });
  const { url, token } = await serve(t, { consoleFolder: folder });
  const context = await browser.newContext({ locale: "en-US" });
  t.after(() => context.close());
  const page = await context.newPage();
  await page.goto(`${url}/#/settings`);
  await page.getByLabel("Token").fill(token);
  await page.keyboard.press("Enter");
  await page.getByLabel("Language").waitFor();
  const script = await page.locator("script[src]").getAttribute("src");
  appendFileSync(join(folder, "icon.svg"), "<!-- another one -->");
  assert.equal((await fetch(new URL(script, url))).status, 404);
  await page.getByLabel("Language").selectOption("de");
  await page.getByText("The sidecar was updated. Reload the page.").waitFor();
  await page.reload();
  await page.getByLabel("Language").selectOption("de");
  await page.getByRole("heading", { level: 1, name: "Einstellungen" }).waitFor();
}

export async function leaves(t, browser, console) {
  const id = await console.ask("sums", "Left behind");
  const { page, main, go, check } = await openPage(t, browser, console, { path: `#/runs/${id}` });
  let [release, began] = [];
  const held = new Promise((resolve) => (release = resolve));
  const begun = new Promise((resolve) => (began = resolve));
  await page.route((url) => url.pathname === "/api/runs", async (route) => {
    if (route.request().method() !== "POST") {
      await route.continue();
      return;
    }
    await held;
    const response = await route.fetch();
    const json = await response.json();
    await route.fulfill({ response, json });
    began(json.runs[0].runId);
  });
  await main.getByRole("button", { name: "Ask again" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Ask", exact: true }).click();
  await go("#/check");
  release();
  const next = await begun;
  await eventually("the run has begun", async () => (await console.request("GET", `/api/runs/${next}`)).status === 200);
  await main.getByRole("button", { name: "Check the flow" }).waitFor();
  // The page has the answer by now, and would go to the run at once.
  await page.waitForTimeout(300);
  assert.ok(page.url().endsWith("#/check"), page.url());
  check();
}
